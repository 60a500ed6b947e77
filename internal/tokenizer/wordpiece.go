package tokenizer

import "unicode/utf8"

// wordPiece cuts a word into the longest tokens from left to right; a word
// that cannot be cut is unknown (Schuster and Nakajima 2012).
type wordPiece struct {
	starts, rest *trie // tokens that begin a word and those that continue one
	startID      []int32
	restID       []int32
	unk          int32
	maxRunes     int // longer words are unknown
}

func (m *wordPiece) encode(_ *state, dst []int32, word string) []int32 {
	if word == "" {
		return dst
	}
	if len(word) > m.maxRunes && utf8.RuneCountInString(word) > m.maxRunes {
		return append(dst, m.unk)
	}
	begin := len(dst)
	t, ids := m.starts, m.startID
	for i := 0; i < len(word); {
		k, n := t.longest(word[i:])
		for n > 0 && i+n < len(word) && !utf8.RuneStart(word[i+n]) {
			k, n = t.longest(word[i : i+n-1]) // tokens end where characters end
		}
		if n == 0 {
			return append(dst[:begin], m.unk)
		}
		dst = append(dst, ids[k])
		i += n
		t, ids = m.rest, m.restID
	}
	return dst
}

// newWordPiece sorts the tokens of a vocabulary by where they may stand. split
// returns what a token matches, whether that continues a word, and whether it
// can be produced at all.
func newWordPiece(
	tokens *stringTable,
	split func(id int32, token string) (text string, continues, ok bool),
	unk int32,
	maxRunes int,
) *wordPiece {
	m := &wordPiece{unk: unk, maxRunes: maxRunes}
	var starts, rest []string
	for id := range int32(tokens.len()) {
		token := string(tokens.get(id))
		if token == "" {
			continue
		}
		text, continues, ok := split(id, token)
		if !ok {
			continue
		}
		if continues {
			rest, m.restID = append(rest, text), append(m.restID, id)
		} else {
			starts, m.startID = append(starts, text), append(m.startID, id)
		}
	}
	m.starts, m.rest = newTrie(starts), newTrie(rest)
	return m
}

// wordLevel knows whole words only.
type wordLevel struct {
	tokens *stringTable
	unk    int32 // -1: other words vanish
}

func (m *wordLevel) encode(_ *state, dst []int32, word string) []int32 {
	if id, ok := m.tokens.find(word); ok {
		return append(dst, id)
	}
	if m.unk >= 0 && word != "" {
		dst = append(dst, m.unk)
	}
	return dst
}
