package tokenizer

import (
	"slices"
	"strings"
)

// trie maps byte strings to values and walks a text along them.
type trie struct {
	nodes  []trieNode
	labels []byte
	child  []int32
	first  [256]bool // bytes that begin a string
}

type trieNode struct {
	value    int32 // -1: no string ends here
	from, to uint32
}

// newTrie builds a trie; the value of a string is its index in keys. Empty
// strings are left out, and of equal strings the last counts.
func newTrie(keys []string) *trie {
	order := make([]int32, 0, len(keys))
	for i, k := range keys {
		if k != "" {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return strings.Compare(keys[a], keys[b]) })
	t := &trie{nodes: make([]trieNode, 1, 2*len(keys)+1)}
	type todo struct {
		node   int32
		lo, hi int
		depth  int
	}
	queue := []todo{{0, 0, len(order), 0}}
	for len(queue) > 0 {
		q := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		value := int32(-1)
		lo := q.lo
		for lo < q.hi && len(keys[order[lo]]) == q.depth {
			value = order[lo]
			lo++
		}
		from := uint32(len(t.labels))
		for lo < q.hi {
			c := keys[order[lo]][q.depth]
			end := lo + 1
			for end < q.hi && keys[order[end]][q.depth] == c {
				end++
			}
			node := int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{})
			t.labels = append(t.labels, c)
			t.child = append(t.child, node)
			queue = append(queue, todo{node, lo, end, q.depth + 1})
			lo = end
		}
		t.nodes[q.node] = trieNode{value, from, uint32(len(t.labels))}
	}
	for _, c := range t.labels[t.nodes[0].from:t.nodes[0].to] {
		t.first[c] = true
	}
	return t
}

// next returns the node behind byte c, or -1.
func (t *trie) next(node int32, c byte) int32 {
	n := &t.nodes[node]
	labels := t.labels[n.from:n.to]
	if len(labels) > 8 {
		if i, ok := slices.BinarySearch(labels, c); ok {
			return t.child[int(n.from)+i]
		}
		return -1
	}
	for i, l := range labels {
		if l == c {
			return t.child[int(n.from)+i]
		}
	}
	return -1
}

// longest returns the longest string at the start of s: its value and length.
func (t *trie) longest(s string) (value int32, n int) {
	value = -1
	node := int32(0)
	for i := range len(s) {
		if node = t.next(node, s[i]); node < 0 {
			break
		}
		if v := t.nodes[node].value; v >= 0 {
			value, n = v, i+1
		}
	}
	return value, n
}
