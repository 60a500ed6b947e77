package grammar

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
)

// A Vocabulary is the tokens of a model by their bytes, as tries in depth-first order, so that an automaton walks all
// tokens with a common beginning together. It is made once for a model and is safe for concurrent use.
type Vocabulary struct {
	size    int
	longest int32 // bytes of the longest token
	tokens  [][]byte
	end     []int32  // tokens that end a text
	tries   [2]*trie // plain tokens, and the others

	quotes []int32 // tokens with three quotes or more, which may end a key and hold another
	commas []int32 // tokens with a comma and more, which may end an item and begin another

	// Tokens that stand for whole characters inside a JSON string, none of which needs an escape, are plain, unless
	// they have very many. plain[n] holds those with up to n characters.
	plain [][]uint64
}

// maxPlain is the most characters of a token that is counted as plain.
const maxPlain = 48

// trie holds tokens in depth-first order of their bytes.
type trie struct {
	bytes  []byte
	depth  []uint16 // 1 for first bytes
	skip   []int32  // the node after a node's subtree
	first  []int32  // tokens of node i: ids[first[i]:first[i+1]], of its subtree: ids[first[i]:first[skip[i]]]
	below  []uint16 // bytes of the longest way down from a node
	ids    []int32
	height int
}

// NewVocabulary indexes tokens: tokens[id] is what token id adds to a text, nil or empty for tokens that never stand
// for text, such as control tokens. The end tokens end a text.
func NewVocabulary(tokens [][]byte, end []int32) (*Vocabulary, error) {
	v := &Vocabulary{size: len(tokens), tokens: tokens}
	for _, id := range end {
		if id < 0 || int(id) >= len(tokens) {
			return nil, fmt.Errorf("grammar: end token %d is not one of %d tokens", id, len(tokens))
		}
		if !slices.Contains(v.end, id) {
			v.end = append(v.end, id)
		}
	}
	words := (len(tokens) + 63) / 64
	v.plain = make([][]uint64, maxPlain+1)
	for i := range v.plain {
		v.plain[i] = make([]uint64, words)
	}
	var plain, rest []int32
	for id, b := range tokens {
		if len(b) == 0 || slices.Contains(v.end, int32(id)) {
			continue
		}
		if len(b) > 1<<15 {
			return nil, fmt.Errorf("grammar: token %d has %d bytes", id, len(b))
		}
		v.longest = max(v.longest, int32(len(b)))
		if i := bytes.IndexByte(b, ','); i >= 0 && i < len(b)-1 {
			v.commas = append(v.commas, int32(id))
		}
		if bytes.Count(b, []byte{'"'}) >= 3 {
			v.quotes = append(v.quotes, int32(id))
		}
		if n := plainLength(b); n > 0 && n <= maxPlain {
			plain = append(plain, int32(id))
			for i := n; i <= maxPlain; i++ {
				v.plain[i][id>>6] |= 1 << (id & 63)
			}
		} else {
			rest = append(rest, int32(id))
		}
	}
	v.tries = [2]*trie{newTrie(tokens, plain), newTrie(tokens, rest)}
	return v, nil
}

// Size is the number of token ids, which is how many bits a mask has.
func (v *Vocabulary) Size() int { return v.size }

// plainLength is how many characters a token has if all are whole and need no escape in JSON, else 0.
func plainLength(b []byte) int {
	if !utf8.Valid(b) {
		return 0
	}
	n := 0
	for _, r := range string(b) {
		if r < 0x20 || r == '"' || r == '\\' {
			return 0
		}
		n++
	}
	return n
}

func newTrie(tokens [][]byte, ids []int32) *trie {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b int32) int {
		if c := bytes.Compare(tokens[a], tokens[b]); c != 0 {
			return c
		}
		return int(a - b)
	})
	t := &trie{ids: ids}
	var open []int32 // the path of nodes to the last token
	var last []byte
	for i, id := range ids {
		b := tokens[id]
		common := 0
		for common < len(last) && common < len(b) && last[common] == b[common] {
			common++
		}
		if i > 0 && common == len(b) && len(last) == len(b) {
			continue // the same bytes: the node's tokens stay together in ids
		}
		for len(open) > common {
			t.skip[open[len(open)-1]] = int32(len(t.bytes))
			open = open[:len(open)-1]
		}
		for d := common; d < len(b); d++ {
			open = append(open, int32(len(t.bytes)))
			t.bytes = append(t.bytes, b[d])
			t.depth = append(t.depth, uint16(d+1))
			t.skip = append(t.skip, 0)
			t.first = append(t.first, int32(i))
		}
		t.height = max(t.height, len(b))
		last = b
	}
	for _, n := range open {
		t.skip[n] = int32(len(t.bytes))
	}
	// A node's tokens are ids[first[n]:first[n+1]]: a token sorts before those that it begins, so where one ends at a
	// node the next node was made for a later token, and where none does, for the same.
	t.first = append(t.first, int32(len(ids)))
	t.below = make([]uint16, len(t.bytes))
	for n := len(t.bytes) - 2; n >= 0; n-- {
		for c := int32(n + 1); c < t.skip[n]; c = t.skip[c] {
			t.below[n] = max(t.below[n], t.below[c]+1)
		}
	}
	return t
}
