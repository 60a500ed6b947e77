package chattmpl

import "errors"

// Value is a value of the template language: None, Bool, Int, Float, Str,
// *List, *Dict and the internal kinds that templates make.
type Value interface{ typeName() string }

// Str is a string together with the byte ranges that came from the input.
type Str struct {
	s     string
	taint []rng // sorted, disjoint, non-empty, never touching
}

// rng is the half-open byte range [lo, hi).
type rng struct{ lo, hi int }

func (Str) typeName() string { return "str" }

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

// Text makes a string value that counts as template text.
func Text(s string) Value { return Str{s: s} }

// ParseJSON reads a JSON document into an ordered tree whose strings count as input.
func ParseJSON(b []byte) (Value, error) { return nil, errors.New("not available yet") }
