package grammar

import (
	"encoding/json"
	"slices"
	"strings"
)

// seenSets holds sets of texts that must not come again, each as a trie. Set 0 is empty; node 0 is outside of every
// trie, and stays there.
type seenSets struct {
	ids  map[string]int32
	sets []seenSet
}

type seenSet struct {
	texts []string // sorted
	nodes []seenNode
}

type seenNode struct {
	next map[rune]int32
	end  bool
}

// add is the set with one more text.
func (s *seenSets) add(set int32, text string) int32 {
	if s.ids == nil {
		s.ids, s.sets = map[string]int32{"": 0}, make([]seenSet, 1)
	}
	texts := s.sets[set].texts
	at, found := slices.BinarySearch(texts, text)
	if found {
		return set
	}
	texts = slices.Insert(slices.Clone(texts), at, text)
	k := strings.Join(texts, "\xff") // no byte of a text
	if id, ok := s.ids[k]; ok {
		return id
	}
	new := seenSet{texts: texts, nodes: make([]seenNode, 2)}
	for _, t := range texts {
		n := int32(1)
		for _, r := range t {
			if new.nodes[n].next == nil {
				new.nodes[n].next = map[rune]int32{}
			}
			next, ok := new.nodes[n].next[r]
			if !ok {
				next = int32(len(new.nodes))
				new.nodes[n].next[r] = next
				new.nodes = append(new.nodes, seenNode{})
			}
			n = next
		}
		new.nodes[n].end = true
	}
	id := int32(len(s.sets))
	s.ids[k] = id
	s.sets = append(s.sets, new)
	return id
}

func (s *seenSets) count(set int32) int {
	if set == 0 {
		return 0
	}
	return len(s.sets[set].texts)
}

// root is the node before the first character.
func (s *seenSets) root(set int32) int32 {
	if set == 0 {
		return 0
	}
	return 1
}

func (s *seenSets) step(set, node int32, r rune) int32 {
	if node == 0 {
		return 0
	}
	return s.sets[set].nodes[node].next[r]
}

func (s *seenSets) ends(set, node int32) bool { return node != 0 && s.sets[set].nodes[node].end }

// any reports whether a character of a range goes on being the beginning of a text of the set.
func (s *seenSets) any(set, node int32, lo, hi rune) bool {
	for r := range s.sets[set].nodes[node].next {
		if r >= lo && r <= hi {
			return true
		}
	}
	return false
}

// closeWord is the state after a key's closing quote, or after an item of an array whose items differ, with the key or
// item among those that were seen. word is its text.
func (m *machine) closeWord(s stateID, word []byte) stateID {
	k := m.keys[s]
	if k.kind == kArr && m.json.arrs[k.a].Texts != nil {
		k.f = m.json.seen.add(k.f, string(word))
		return m.intern(k)
	}
	if k.kind != kObj {
		return s
	}
	o := m.json.objs[k.a]
	if k.d != hasKey || int(k.c) <= len(o.Names) {
		return s
	}
	var text string
	if json.Unmarshal(slices.Concat([]byte{'"'}, word, []byte{'"'}), &text) != nil {
		return s
	}
	k.f = m.json.seen.add(m.json.progress[k.b].extra, text)
	return m.intern(k)
}

// remembersItems reports whether a state is in an array whose items must differ.
func (m *machine) remembersItems(s stateID) bool {
	k := m.keys[s]
	return k.kind == kItem || k.kind == kArr && m.json.arrs[k.a].Texts != nil
}
