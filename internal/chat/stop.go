package chat

// A stopMatcher finds the first stop string in a text that comes in pieces, and holds back what may become one.
// The one that is complete first wins; of those complete at the same byte, the longest. So the result does not
// depend on where the pieces end. Each stop string is matched by its own automaton (Knuth, Morris and Pratt,
// "Fast pattern matching in strings", 1977).
type stopMatcher struct {
	stops []stopString
	held  []byte // the end of the text so far that begins a stop string
	hit   string
}

type stopString struct {
	text string
	fail []int // fail[n]: length of the longest proper prefix that ends text[:n]
	n    int   // bytes matched
}

func newStopMatcher(texts []string) *stopMatcher {
	if len(texts) == 0 {
		return nil
	}
	m := &stopMatcher{}
	for _, t := range texts {
		if t == "" { // it would end every answer at once; requests with one are refused
			continue
		}
		s := stopString{text: t, fail: make([]int, len(t)+1)}
		for i, n := 1, 0; i < len(t); i++ {
			for n > 0 && t[i] != t[n] {
				n = s.fail[n]
			}
			if t[i] == t[n] {
				n++
			}
			s.fail[i+1] = n
		}
		m.stops = append(m.stops, s)
	}
	return m
}

// step takes one byte and reports whether the string is complete.
func (s *stopString) step(b byte) bool {
	for s.n > 0 && s.text[s.n] != b {
		s.n = s.fail[s.n]
	}
	if s.text[s.n] == b {
		s.n++
	}
	return s.n == len(s.text)
}

// push takes the next piece and returns what can be released. With found, the text up to the stop string was
// released and the matcher is at its end.
func (m *stopMatcher) push(piece string) (release string, found bool) {
	if m == nil {
		return piece, false
	}
	for i := range len(piece) {
		length := 0
		for j := range m.stops {
			if s := &m.stops[j]; s.step(piece[i]) && len(s.text) > length {
				length, m.hit = len(s.text), s.text
			}
		}
		if length > 0 {
			release = m.cut(piece[:i+1], length)
			m.held = m.held[:0]
			return release, true
		}
	}
	hold := 0
	for j := range m.stops {
		hold = max(hold, m.stops[j].n)
	}
	if len(m.held) == 0 && hold == 0 {
		return piece, false
	}
	release = m.cut(piece, hold)
	if hold > len(piece) {
		m.held = append(m.held[len(m.held)-(hold-len(piece)):], piece...)
	} else {
		m.held = append(m.held[:0], piece[len(piece)-hold:]...)
	}
	return release, false
}

// cut returns held and piece without the last n bytes.
func (m *stopMatcher) cut(piece string, n int) string {
	if n <= len(piece) {
		return string(m.held) + piece[:len(piece)-n]
	}
	return string(m.held[:len(m.held)+len(piece)-n])
}

// flush returns what is still held back. What comes next is another text: no stop string reaches into it.
func (m *stopMatcher) flush() string {
	if m == nil {
		return ""
	}
	t := string(m.held)
	m.held = m.held[:0]
	for j := range m.stops {
		m.stops[j].n = 0
	}
	return t
}
