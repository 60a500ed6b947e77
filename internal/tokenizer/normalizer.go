package tokenizer

import "strings"

// A normalizer rewrites text before it is cut into words.
type normalizer interface {
	apply(b *budget, s string) string
}

func normalize(b *budget, norm []normalizer, s string) string {
	for _, n := range norm {
		s = n.apply(b, s)
	}
	return s
}

// replaceString replaces one string by another.
type replaceString struct{ old, new string }

func (r replaceString) apply(_ *budget, s string) string {
	if r.old == "" {
		return s
	}
	return strings.ReplaceAll(s, r.old, r.new)
}

// prepend puts a string before text that is not empty.
type prepend string

func (p prepend) apply(_ *budget, s string) string {
	if s == "" {
		return s
	}
	return string(p) + s
}
