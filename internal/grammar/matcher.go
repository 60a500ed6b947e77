package grammar

import "slices"

// A Matcher is a place in a grammar: the text so far, as far as it matters. It is a value; going on gives a new one and
// leaves the old one as it was, so a copy is how to come back.
type Matcher struct {
	g    *Grammar
	m    *machine
	set  []config // the places that the text may have led to; never changed once made
	word []byte   // inside a key, or an item that must differ from others: what has been read of it
}

// Matcher returns the place before any text.
func (g *Grammar) Matcher() Matcher {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.m.keys) > renewAt || g.m.err != nil {
		g.renew()
	}
	return Matcher{g: g, m: g.m, set: []config{g.start}}
}

// Accept returns the place after some bytes. ok is false where the grammar does not allow them; err tells that a
// limit was met, which also ends the match.
func (t Matcher) Accept(text []byte) (next Matcher, ok bool, err error) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	next, ok, err = t.run(text)
	if err != nil || !ok {
		return t, false, err
	}
	return next, true, nil
}

func (t Matcher) run(text []byte) (Matcher, bool, error) {
	m, set, word := t.m, t.set, t.word
	lowest := int32(0)
	for i, b := range text {
		inWord := m.inWord(set)
		var next []config
		if i > 0 && len(set) == 1 {
			next = make([]config, 0, 1)
		}
		for _, c := range set {
			next = m.step(c, b, next, 0, &lowest)
		}
		switch {
		case m.err != nil:
			return t, false, m.err
		case len(next) > MaxPlaces:
			return t, false, errPlaces
		case len(next) == 0:
			return t, false, nil
		}
		switch after := m.inWord(next); {
		case inWord && after, after && b != '"', after && m.startsItem(next):
			word = append(word[:len(word):len(word)], b)
		case inWord:
			for i := range next {
				next[i].state = m.closeWord(next[i].state, word)
			}
			word = nil
			if m.err != nil {
				return t, false, m.err
			}
		default:
			word = nil
		}
		set = next
	}
	return Matcher{g: t.g, m: m, set: set, word: word}, true, nil
}

// inWord reports whether some place is inside an object's key or an item that must differ from others; where
// alternatives are, their keys and items begin and end together.
func (m *machine) inWord(set []config) bool {
	for _, c := range set {
		if k := m.keys[c.state].kind; k == kKey || k == kItem {
			return true
		}
	}
	return false
}

// startsItem tells a quote that begins an item from one that begins a key: the first belongs to the text.
func (m *machine) startsItem(set []config) bool {
	return slices.ContainsFunc(set, func(c config) bool { return m.keys[c.state].kind == kItem })
}

// Accepting reports whether the text may end here.
func (t Matcher) Accepting() bool {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	return t.m.acceptingAny(t.set)
}

func (m *machine) acceptingAny(set []config) bool {
	for _, c := range set {
		if m.accepting(c) {
			return true
		}
	}
	return false
}

// maxForced bounds how much text Forced looks ahead for.
const maxForced = 4096

// Forced returns the longest text that must come next: up to where there is a choice, or where the text may end.
func (t Matcher) Forced() []byte {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	m := t.m
	var out []byte
	for len(out) < maxForced && !m.acceptingAny(t.set) {
		only, n := byte(0), 0
		for b := 0; b < 256 && n < 2; b++ {
			for _, c := range t.set {
				if m.leads(c, byte(b)) {
					only = byte(b)
					n++
					break
				}
			}
		}
		if n != 1 {
			break
		}
		next, ok, err := t.run([]byte{only})
		if err != nil || !ok {
			break
		}
		out = append(out, only)
		t = next
	}
	return out
}

// leads reports whether a byte may follow a place.
func (m *machine) leads(c config, b byte) bool {
	if c.state != done && m.next(c.state, b) != dead {
		return true
	}
	if m.accept[c.state] {
		for _, f := range m.stacks[c.stack] {
			if f.below >= 0 && m.leads(config{f.ret, f.below}, b) {
				return true
			}
		}
	}
	return false
}

// Done reports whether nothing may follow: the text must end.
func (t Matcher) Done() bool {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	for b := range 256 {
		for _, c := range t.set {
			if t.m.leads(c, byte(b)) {
				return false
			}
		}
	}
	return true
}

// Longest accepts as much of a text as fits and returns the place after it and the number of its bytes.
func (t Matcher) Longest(text []byte) (Matcher, int, error) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	for i := range text {
		next, ok, err := t.run(text[i : i+1])
		if err != nil || !ok {
			return t, i, err
		}
		t = next
	}
	return t, len(text), nil
}
