package tokenizer

import (
	"math"
	"unicode/utf8"
)

// unigram finds the most probable segmentation of a word by the Viterbi
// algorithm (Kudo 2018, arXiv:1804.10959).
type unigram struct {
	trie         *trie // values are ids
	scores       []float64
	unk          int32 // -1: unknown characters vanish
	unkScore     float64
	byteIDs      [256]int32
	byteFallback bool
	separate     bool // unknown characters are not fused
}

// unkPenalty is how much less an unknown character scores than the rarest token.
const unkPenalty = 10

// lattice is the scratch memory of a Viterbi search, one node per byte position.
type lattice struct{ nodes []latticeNode }

type latticeNode struct {
	score float64
	start int32 // where the best token that ends here starts; -1: none does
	id    int32
}

func (l *lattice) release() {
	if cap(l.nodes) > maxKept {
		l.nodes = nil
	}
}

func newUnigram(tokens []string, scores []float64, unk int32) *unigram {
	m := &unigram{trie: newTrie(tokens), scores: scores, unk: unk}
	least := math.Inf(1)
	for _, s := range scores {
		least = min(least, s)
	}
	m.unkScore = least - unkPenalty
	return m
}

// setFallback installs the byte tokens that find knows.
func (m *unigram) setFallback(find func(name string) (int32, bool)) {
	m.byteFallback = true
	for b := range m.byteIDs {
		m.byteIDs[b] = -1
		if id, ok := find(byteTokenName(byte(b))); ok {
			m.byteIDs[b] = id
		}
	}
}

func byteTokenName(b byte) string {
	const digits = "0123456789ABCDEF"
	return string([]byte{'<', '0', 'x', digits[b>>4], digits[b&15], '>'})
}

func (m *unigram) encode(st *state, dst []int32, word string) []int32 {
	if word == "" {
		return dst
	}
	nodes := m.search(st, word)
	// Collect the best path from its end.
	begin := len(dst)
	for end := int32(len(word)); end > 0; {
		n := nodes[end]
		if n.id >= 0 && n.id != m.unk {
			dst = append(dst, n.id)
			end = n.start
			continue
		}
		start := n.start
		for start > 0 && !m.separate {
			p := nodes[start]
			if p.id >= 0 && p.id != m.unk {
				break
			}
			start = p.start
		}
		dst = m.appendUnknown(dst, word[start:end])
		end = start
	}
	for i, j := begin, len(dst)-1; i < j; i, j = i+1, j-1 {
		dst[i], dst[j] = dst[j], dst[i]
	}
	return dst
}

// search returns the node of each byte position.
func (m *unigram) search(st *state, word string) []latticeNode {
	nodes := st.lattice.nodes
	if cap(nodes) <= len(word) {
		nodes = make([]latticeNode, len(word)+1)
	}
	nodes = nodes[:len(word)+1]
	st.lattice.nodes = nodes
	for i := range nodes {
		nodes[i] = latticeNode{start: -1}
	}
	for i := 0; i < len(word); {
		_, size := utf8.DecodeRuneInString(word[i:])
		base, single := nodes[i].score, false
		node := int32(0)
		for j := i; j < len(word); {
			if node = m.trie.next(node, word[j]); node < 0 {
				break
			}
			j++
			id := m.trie.nodes[node].value
			if id < 0 {
				continue
			}
			if s := base + m.scores[id]; nodes[j].start < 0 || s > nodes[j].score {
				nodes[j] = latticeNode{s, int32(i), id}
			}
			single = single || j == i+size
		}
		if !single {
			j := i + size
			if s := base + m.unkScore; nodes[j].start < 0 || s > nodes[j].score {
				nodes[j] = latticeNode{s, int32(i), -1}
			}
		}
		i += size
	}
	return nodes
}

// appendUnknown appends, in reverse, what stands for an unknown stretch.
func (m *unigram) appendUnknown(dst []int32, s string) []int32 {
	if m.byteFallback && m.all(s) {
		for i := len(s) - 1; i >= 0; i-- {
			dst = append(dst, m.byteIDs[s[i]])
		}
		return dst
	}
	if m.unk < 0 {
		return dst
	}
	return append(dst, m.unk)
}

// all reports whether each byte of s has a token, and s itself has none.
func (m *unigram) all(s string) bool {
	if id, n := m.trie.longest(s); id == m.unk && n == len(s) {
		return false
	}
	for i := range len(s) {
		if m.byteIDs[s[i]] < 0 {
			return false
		}
	}
	return true
}
