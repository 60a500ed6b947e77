package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// charMatcher matches single characters.
type charMatcher func(r rune) bool

func (m charMatcher) matches(_ *budget, out []int, s string) []int {
	for i, r := range s {
		if m(r) {
			n := utf8.RuneLen(r)
			if r == utf8.RuneError {
				_, n = utf8.DecodeRuneInString(s[i:])
			}
			out = append(out, i, i+n)
		}
	}
	return out
}

func isPunct(r rune) bool { return tabFlags.at(r)&flagPunct != 0 }

// flagScanner isolates runs of characters with a flag, at most limit long when
// limit is not negative.
func flagScanner(flag byte, limit int) scanner {
	has := func(s string, i int) (bool, int) {
		r, n := utf8.DecodeRuneInString(s[i:])
		return tabFlags.at(r)&flag != 0, n
	}
	return func(s string, i int) int {
		in, n := has(s, i)
		left := limit
		for i += n; i < len(s); i += n {
			var now bool
			if now, n = has(s, i); now != in {
				break
			}
			if in {
				if left--; left == 0 {
					break
				}
			}
		}
		return i
	}
}

// wordMatcher matches \w+|[^\w\s]+.
type wordMatcher struct{}

func (wordMatcher) matches(_ *budget, out []int, s string) []int {
	const none, word, other = 0, 1, 2
	start, kind := 0, none
	for i, r := range s {
		k := other
		if tabFlags.at(r)&flagWord != 0 {
			k = word
		} else if isSpace(r) {
			k = none
		}
		if k == kind {
			continue
		}
		if kind != none {
			out = append(out, start, i)
		}
		start, kind = i, k
	}
	if kind != none {
		out = append(out, start, len(s))
	}
	return out
}

// fixedLength cuts words of n characters.
func fixedLength(n int) scanner {
	return func(s string, i int) int {
		for k := 0; k < n && i < len(s); k++ {
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
		}
		return i
	}
}

// metaspace writes spaces as a mark and cuts before each.
type metaspace struct {
	mark      string
	prepend   bool // words at the start of a piece get a mark too
	firstOnly bool // only at the start of the whole input
	cut       bool
}

func (m *metaspace) split(_ *budget, out, in []piece) []piece {
	for _, w := range in {
		s := strings.ReplaceAll(w.text, " ", m.mark)
		if m.prepend && (!m.firstOnly || w.atStart) && !strings.HasPrefix(s, m.mark) {
			s = m.mark + s
		}
		if !m.cut {
			out = append(out, piece{s, w.atStart})
			continue
		}
		found := literal(m.mark).matches(nil, nil, s)
		for _, c := range cut(s, found, mergedWithNext, false) {
			if c.end > c.start {
				out = append(out, piece{s[c.start:c.end], w.atStart && c.start == 0})
			}
		}
	}
	return out
}
