package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// addedToken is a token that is found in the text before the model sees it.
type addedToken struct {
	id         int32
	text       string
	control    bool // only found where control tokens are allowed
	normalized bool // found in the normalized text
	singleWord bool // not inside a word
	lstrip     bool // takes the white space before it
	rstrip     bool // takes the white space behind it
}

// addedTokens finds tokens, leftmost first and then longest: in the text as it
// is those that are not normalized, in the rest, normalized, the others.
type addedTokens struct {
	plain, normalized *addedSet
}

type addedSet struct {
	tokens []addedToken
	trie   *trie
}

func newAddedTokens(tokens []addedToken, norm []normalizer) (*addedTokens, error) {
	size := 0
	for _, t := range tokens {
		size += len(t.text)
	}
	b := newBudget(size)
	a := &addedTokens{plain: &addedSet{}, normalized: &addedSet{}}
	var keys, normalKeys []string
	for _, t := range tokens {
		if t.normalized {
			a.normalized.tokens = append(a.normalized.tokens, t)
			normalKeys = append(normalKeys, normalize(b, norm, t.text))
		} else {
			a.plain.tokens = append(a.plain.tokens, t)
			keys = append(keys, t.text)
		}
	}
	a.plain.trie, a.normalized.trie = newTrie(keys), newTrie(normalKeys)
	return a, b.err(size)
}

// hasControl reports whether a set has control tokens.
func (s *addedSet) hasControl() bool {
	return slices.ContainsFunc(s.tokens, func(t addedToken) bool { return t.control })
}

// match is a stretch of text that is one token, or, with a negative id, text.
type match struct {
	id         int32
	start, end int
}

// A span is a stretch of text in which control tokens may be recognised.
type span struct{ start, end int }

// covers reports whether one of the spans holds all of [start, end).
func covers(spans []span, start, end int) bool {
	i, found := slices.BinarySearchFunc(spans, start, func(s span, x int) int { return s.start - x })
	if !found {
		i--
	}
	return i >= 0 && spans[i].end >= end
}

// split appends the matches in s and the texts between them.
func (a *addedSet) split(out []match, s string, allowed []span) []match {
	done := 0
	if len(a.tokens) > 0 {
		for i := 0; i < len(s); {
			if !a.trie.first[s[i]] {
				i++
				continue
			}
			k, n := a.trie.longest(s[i:])
			if n == 0 {
				i++
				continue
			}
			start, end := i, i+n
			i = end
			t := &a.tokens[k]
			if t.control && !covers(allowed, start, end) || t.singleWord && insideWord(s, start, end) {
				continue
			}
			if t.lstrip {
				start = max(done, len(strings.TrimRightFunc(s[:start], isSpace)))
			}
			if t.rstrip {
				end = len(s) - len(strings.TrimLeftFunc(s[end:], isSpace))
			}
			if done < start {
				out = append(out, match{-1, done, start})
			}
			out = append(out, match{t.id, start, end})
			done = end
			i = max(i, end)
		}
	}
	if done < len(s) {
		out = append(out, match{-1, done, len(s)})
	}
	return out
}

// insideWord reports whether a word character touches s[start:end].
func insideWord(s string, start, end int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:start])
	after, m := utf8.DecodeRuneInString(s[end:])
	return n > 0 && tabFlags.at(before)&flagWord != 0 || m > 0 && tabFlags.at(after)&flagWord != 0
}
