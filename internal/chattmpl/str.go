package chattmpl

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Str is a string together with the byte ranges of it that came from the input.
type Str struct {
	s      string
	taint  []rng // sorted, disjoint, non-empty, never touching
	markup bool  // made by escape or safe: joins by escaping the other side
}

// rng is the half-open byte range [lo, hi).
type rng struct{ lo, hi int }

func inputStr(s string) Str {
	if s == "" {
		return Str{}
	}
	return Str{s: s, taint: []rng{{0, len(s)}}}
}

func lit(s string) Str { return Str{s: s} }

// String returns the text of the value.
func (s Str) String() string { return s.s }

func (s Str) spans() []Span {
	var out []Span
	pos := 0
	for _, r := range s.taint {
		if r.lo > pos {
			out = append(out, Span{Text: s.s[pos:r.lo]})
		}
		out = append(out, Span{Text: s.s[r.lo:r.hi], FromInput: true})
		pos = r.hi
	}
	if pos < len(s.s) {
		out = append(out, Span{Text: s.s[pos:]})
	}
	return out
}

// tainted tells whether any byte of the string came from the input.
func (s Str) tainted() bool { return len(s.taint) > 0 }

// plain drops the markup flag.
func (s Str) plain() Str { s.markup = false; return s }

func (s Str) asMarkup() Str { s.markup = true; return s }

// fully makes a string whose every byte has the given origin.
func fully(s string, tainted bool) Str {
	if tainted {
		return inputStr(s)
	}
	return Str{s: s}
}

// sub returns the bytes [lo, hi) with their origins.
func (s Str) sub(lo, hi int) Str {
	if lo >= hi {
		return Str{markup: s.markup}
	}
	out := Str{s: s.s[lo:hi], markup: s.markup}
	if len(s.taint) == 0 {
		return out
	}
	i := sort.Search(len(s.taint), func(i int) bool { return s.taint[i].hi > lo })
	j := i
	for j < len(s.taint) && s.taint[j].lo < hi {
		j++
	}
	if i == j {
		return out
	}
	out.taint = make([]rng, j-i)
	for k := range out.taint {
		r := s.taint[i+k]
		out.taint[k] = rng{max(r.lo, lo) - lo, min(r.hi, hi) - lo}
	}
	return out
}

// builder joins strings and keeps the origin of each byte.
type builder struct {
	buf   []byte
	taint []rng
	max   int  // most bytes it may hold; 0 means no limit
	over  bool // it was full and dropped something
}

func (b *builder) fits(n int) bool {
	if b.over || b.max > 0 && len(b.buf)+n > b.max {
		b.over = true
	}
	return !b.over
}

func (b *builder) lit(s string) { b.mark(s, false) }

func (b *builder) mark(s string, tainted bool) {
	if !b.fits(len(s)) {
		return
	}
	lo := len(b.buf)
	b.buf = append(b.buf, s...)
	if tainted {
		b.addRange(lo, len(b.buf))
	}
}

func (b *builder) rune(r rune, tainted bool) {
	if !b.fits(utf8.UTFMax) {
		return
	}
	lo := len(b.buf)
	b.buf = utf8.AppendRune(b.buf, r)
	if tainted {
		b.addRange(lo, len(b.buf))
	}
}

func (b *builder) addRange(lo, hi int) {
	if lo == hi {
		return
	}
	if n := len(b.taint); n > 0 && b.taint[n-1].hi == lo {
		b.taint[n-1].hi = hi
		return
	}
	b.taint = append(b.taint, rng{lo, hi})
}

func (b *builder) str(s Str) {
	if !b.fits(len(s.s)) {
		return
	}
	base := len(b.buf)
	b.buf = append(b.buf, s.s...)
	for _, r := range s.taint {
		b.addRange(base+r.lo, base+r.hi)
	}
}

// sub appends the bytes [lo, hi) of s.
func (b *builder) sub(s Str, lo, hi int) {
	if len(s.taint) == 0 {
		b.lit(s.s[lo:hi])
		return
	}
	b.str(s.sub(lo, hi))
}

func (b *builder) done() Str { return Str{s: string(b.buf), taint: b.taint} }

func (b *builder) len() int { return len(b.buf) }

func concat(parts ...Str) Str {
	var b builder
	n := 0
	for _, p := range parts {
		n += len(p.s)
	}
	b.buf = make([]byte, 0, n)
	for _, p := range parts {
		b.str(p)
	}
	return b.done()
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// runeLen is the length in code points.
func runeLen(s string) int { return utf8.RuneCountInString(s) }

// byteAt is the byte offset of code point i, which may be the length.
func byteAt(s string, i int) int {
	if i <= 0 {
		return 0
	}
	if isASCII(s) {
		return min(i, len(s))
	}
	for off := range s {
		if i == 0 {
			return off
		}
		i--
	}
	return len(s)
}

// taintCursor answers for rising offsets whether the byte there is input.
type taintCursor struct {
	r []rng
	i int
}

func (c *taintCursor) at(off int) bool {
	for c.i < len(c.r) && c.r[c.i].hi <= off {
		c.i++
	}
	return c.i < len(c.r) && c.r[c.i].lo <= off
}

// mapRunes rewrites each code point; the result has its origin.
func mapRunes(s Str, f func(b *builder, off int, r rune, tainted bool)) Str {
	var b builder
	b.buf = make([]byte, 0, len(s.s))
	c := taintCursor{r: s.taint}
	for off, r := range s.s {
		f(&b, off, r, c.at(off))
	}
	out := b.done()
	out.markup = s.markup
	return out
}

// isSpace is Python's notion of white space.
func isSpace(r rune) bool {
	switch {
	case r >= 0x09 && r <= 0x0d, r >= 0x1c && r <= 0x20, r == 0x85, r == 0xa0, r == 0x1680:
		return true
	case r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

func (s Str) trimLeft(f func(rune) bool) Str {
	return s.sub(len(s.s)-len(strings.TrimLeftFunc(s.s, f)), len(s.s))
}

func (s Str) trimRight(f func(rune) bool) Str {
	return s.sub(0, len(strings.TrimRightFunc(s.s, f)))
}

// splitLines cuts at every line boundary that Python knows.
func (s Str) splitLines(keep bool) []Str {
	var out []Str
	start := 0
	for i := 0; i < len(s.s); {
		r, n := utf8.DecodeRuneInString(s.s[i:])
		switch {
		case r == '\r' && strings.HasPrefix(s.s[i+1:], "\n"):
			n = 2
		case r >= '\n' && r <= '\r', r >= 0x1c && r <= 0x1e, r == 0x85, r == 0x2028, r == 0x2029:
		default:
			i += n
			continue
		}
		end := i
		i += n
		if keep {
			end = i
		}
		out = append(out, s.sub(start, end))
		start = i
	}
	if start < len(s.s) {
		out = append(out, s.sub(start, len(s.s)))
	}
	return out
}

// replaceInto puts repl for up to count occurrences of old; a negative count
// means all.
func (s Str) replaceInto(b *builder, old string, repl Str, count int) {
	if old == "" {
		n := 0
		for off, r := range s.s {
			if count < 0 || n < count {
				b.str(repl)
				n++
			}
			b.sub(s, off, off+utf8.RuneLen(r))
		}
		if count < 0 || n < count {
			b.str(repl)
		}
		return
	}
	pos := 0
	for n := 0; (count < 0 || n < count) && !b.over; n++ {
		i := strings.Index(s.s[pos:], old)
		if i < 0 {
			break
		}
		b.sub(s, pos, pos+i)
		b.str(repl)
		pos += i + len(old)
	}
	b.sub(s, pos, len(s.s))
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&#34;", "'", "&#39;")

// escapeHTML escapes the five special characters and sets the markup flag.
func escapeHTML(s Str) Str {
	if s.markup {
		return s
	}
	out := mapRunes(s, func(b *builder, off int, r rune, t bool) {
		switch r {
		case '&', '<', '>', '"', '\'':
			b.mark(htmlEscapes.Replace(string(r)), t)
		default:
			b.rune(r, t)
		}
	})
	return out.asMarkup()
}
