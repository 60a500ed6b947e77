package chattmpl

import "strings"

// filterPprint prints a value as repr does; values that would not fit one line
// are refused rather than laid out differently from Python.
func filterPprint(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("pprint"); err != nil {
		return nil, err
	}
	s, err := in.repr(x)
	if err != nil {
		return nil, err
	}
	if runeLen(s.s) > 80 {
		return nil, &evalError{
			kind: "NotSupported",
			msg:  "pprint of more than 80 characters is not supported, use tojson",
		}
	}
	return s, nil
}

// filterWordWrap wraps each line of a text to a width, at spaces, and at
// hyphens and inside long words as asked.
func filterWordWrap(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("wordwrap", "width?", "break_long_words?", "wrapstring?", "break_on_hyphens?")
	if err != nil {
		return nil, err
	}
	s, ok := x.(Str)
	if !ok {
		if u, isU := x.(undefined); isU {
			return nil, u.fail()
		}
		return nil, &evalError{
			kind: "AttributeError",
			msg:  "'" + x.typeName() + "' object has no attribute 'splitlines'",
		}
	}
	width := int64(79)
	if v[0] != nil {
		if width, err = indexInt(v[0], "width"); err != nil {
			return nil, err
		}
	}
	sep := lit("\n")
	if w, ok := v[2].(Str); ok {
		sep = w
	}
	if width <= 0 {
		return nil, valueErrf("invalid width %d (must be > 0)", width)
	}
	if err := in.charge(2 * len(s.s)); err != nil { // there may be a word for every two bytes
		return nil, err
	}
	opt := func(v Value) bool { return v == nil || truth(v) }
	w := wrapper{width: int(min(width, int64(len(s.s)+1))), long: opt(v[1]), hyphens: opt(v[3])}
	b := in.newBuilder()
	lines, err := in.lines(s, false)
	if err != nil {
		return nil, err
	}
	for i, line := range lines {
		if i > 0 {
			b.str(sep)
		}
		for k, part := range w.wrap(line) {
			if k > 0 {
				b.str(sep)
			}
			b.str(part)
		}
	}
	return in.finish(b)
}

type wrapper struct {
	width         int
	long, hyphens bool
}

// wrapSpace is the white space that wrapping cuts at.
func wrapSpace(r rune) bool { return strings.ContainsRune("\t\n\v\f\r ", r) }

// chunks cuts a line into words and runs of spaces; words end after hyphens
// between letters too.
func (w *wrapper) chunks(s string) []rng {
	var out []rng
	for i := 0; i < len(s); {
		j := i
		if wrapSpace(rune(s[i])) {
			for j < len(s) && wrapSpace(rune(s[j])) {
				j++
			}
			out = append(out, rng{i, j})
			i = j
			continue
		}
		for j < len(s) && !wrapSpace(rune(s[j])) {
			j++
		}
		if w.hyphens {
			out = append(out, hyphenated(s, i, j)...)
		} else {
			out = append(out, rng{i, j})
		}
		i = j
	}
	return out
}

// hyphenated cuts the word [i,j) after single hyphens that have two letters
// before and a letter after them.
func hyphenated(s string, i, j int) []rng {
	var out []rng
	start := i
	for k := i + 2; k+1 < j; k++ {
		if s[k] == '-' && letterAt(s[:k], true) && letterAt(strings.TrimSuffix(s[:k], lastRune(s[:k])), true) &&
			letterAt(s[k+1:j], false) &&
			s[k-1] != '-' &&
			k-start >= 2 {
			out = append(out, rng{start, k + 1})
			start = k + 1
		}
	}
	return append(out, rng{start, j})
}

func lastRune(s string) string {
	r := []rune(s[max(0, len(s)-4):])
	if len(r) == 0 {
		return ""
	}
	return string(r[len(r)-1])
}

// letterAt tells whether a string ends (or starts) with a letter.
func letterAt(s string, end bool) bool {
	if end {
		s = lastRune(s)
	}
	for _, r := range s {
		return isAlpha(r)
	}
	return false
}

// begin is at most the first most characters of a text: how many there are, where they end, and whether that is all. It
// looks no further: of a word without end each line cuts off a little, and counting all that is left each time would
// take the square of its length.
func begin(s string, most int) (n, end int, whole bool) {
	for i := range s {
		if n == most {
			return n, i, false
		}
		n++
	}
	return n, len(s), true
}

func fits(s string, width int) bool {
	_, _, whole := begin(s, width)
	return whole
}

// wrap lays chunks out in lines of at most width characters.
func (w *wrapper) wrap(s Str) []Str {
	var lines []Str
	chunks := w.chunks(s.s)
	blank := func(c rng) bool { return wrapSpace(rune(s.s[c.lo])) }
	for len(chunks) > 0 {
		if len(lines) > 0 && blank(chunks[0]) {
			if chunks = chunks[1:]; len(chunks) == 0 {
				break
			}
		}
		line, n := chunks[0], 0
		line.hi = line.lo
		for len(chunks) > 0 {
			more, _, whole := begin(s.s[chunks[0].lo:chunks[0].hi], w.width-n)
			if !whole {
				break
			}
			n += more
			line.hi = chunks[0].hi
			chunks = chunks[1:]
		}
		trim := wrapSpace
		if len(chunks) > 0 && !fits(s.s[chunks[0].lo:chunks[0].hi], w.width) {
			c := &chunks[0]
			switch {
			case w.long && w.width == n: // textwrap drops the nothing that it cut off, not the space before it
				trim = func(rune) bool { return false }
			case w.long && w.width > n:
				_, off, _ := begin(s.s[c.lo:c.hi], w.width-n)
				line.hi, c.lo = c.lo+off, c.lo+off
			case !w.long && n == 0:
				line.hi = c.hi
				chunks = chunks[1:]
			}
		}
		text := s.sub(line.lo, line.hi).trimRight(trim)
		if text.s != "" || line.hi == line.lo {
			lines = append(lines, text)
		}
	}
	return lines
}
