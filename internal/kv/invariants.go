package kv

import "fmt"

// CheckInvariants counts everything anew and returns an error where the books are wrong: free + cached + held =
// total, pages held as often as sequences have them, owned by the nodes that list them. Tests call it after
// every step.
func (c *Cache) CheckInvariants() error {
	b := books{c: c}
	for range len(c.groups) + 1 {
		b.holders = append(b.holders, map[int32]int32{})
		b.owner = append(b.owner, map[int32]*node{})
	}
	pins := map[*node]int{}
	var bytes int64
	for _, s := range c.seqs {
		if s.host != nil {
			bytes += s.host.bytes
			continue
		}
		pins[s.node]++
		b.sequence(s)
	}
	if bytes != c.swapped {
		b.errorf("%d bytes swapped, counted %d", bytes, c.swapped)
	}
	nodes := 0
	for salt, r := range c.roots {
		if r.salt != salt || r.parent != nil {
			b.errorf("root of salt %q is wrong", salt)
		}
		nodes += b.tree(r, pins) - 1
	}
	if nodes != c.nodes {
		b.errorf("%d nodes, counted %d", nodes, c.nodes)
	}
	for g, p := range c.groups {
		b.pool(fmt.Sprintf("group %d", g), p, b.holders[g], b.owner[g])
	}
	b.pool("slots", c.slots, b.holders[len(c.groups)], b.owner[len(c.groups)])
	return b.err
}

// books is what CheckInvariants counts; slots come after the groups.
type books struct {
	c       *Cache
	holders []map[int32]int32
	owner   []map[int32]*node
	err     error
}

func (b *books) errorf(format string, a ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("kv: "+format, a...)
	}
}

func (b *books) sequence(s *Seq) {
	for g, t := range s.tables {
		if len(t)*PageTokens < s.fed {
			b.errorf("group %d: %d pages for %d positions", g, len(t), s.fed)
		}
		first := firstPage(s.fed, b.c.windows[g])
		for i, p := range t {
			if p != none {
				b.holders[g][p]++
			}
			if (p == none) != (i < s.low[g]) {
				b.errorf("group %d: page %d of a sequence is %d, %d are returned", g, i, p, s.low[g])
			}
		}
		if s.low[g] > first {
			b.errorf("group %d: %d pages returned, %d are before the window", g, s.low[g], first)
		}
	}
	if s.slot != none {
		b.holders[len(b.c.groups)][s.slot]++
	}
}

// tree walks the nodes below n, which it counts.
func (b *books) tree(n *node, pins map[*node]int) int {
	if n.pins != pins[n] {
		b.errorf("node pinned %d times by %d sequences", n.pins, pins[n])
	}
	if n.empty() {
		b.errorf("empty node")
	}
	for g, p := range n.pages {
		if p == none {
			if b.c.windows[g] == 0 {
				b.errorf("node without page in group %d", g)
			}
			continue
		}
		if b.owner[g][p] != nil {
			b.errorf("group %d: page %d in two nodes", g, p)
		}
		b.owner[g][p] = n
	}
	for _, s := range n.snaps {
		if s.end < 1 || s.end > n.n {
			b.errorf("snapshot at %d of %d tokens", s.end, n.n)
		}
		b.owner[len(b.c.groups)][s.slot] = n
	}
	count := 1
	for k := n.first; k != nil; k = k.next {
		if k.parent != n || k.next != nil && k.next.prev != k {
			b.errorf("node is not linked to its parent or sibling")
		}
		if k.n < 1 || k.n > PageTokens || k.n < PageTokens && k.first != nil {
			b.errorf("node of %d tokens", k.n)
		}
		for o := k.next; o != nil; o = o.next {
			if l := Common(k.tokens[:k.n], o.tokens[:o.n]); l == k.n || l == o.n {
				b.errorf("a node's tokens begin with its sibling's")
			}
		}
		count += b.tree(k, pins)
	}
	return count
}

func (b *books) pool(name string, p *pool, holders map[int32]int32, owner map[int32]*node) {
	listed := map[int32]bool{}
	for i, before := p.head, int32(none); i != none; before, i = i, p.next[i] {
		if p.prev[i] != before || listed[i] {
			b.errorf("%s: the list of cached items is broken", name)
			return
		}
		listed[i] = true
	}
	free := map[int32]bool{}
	for _, i := range p.free {
		free[i] = true
	}
	if len(listed) != p.cached || len(free) != len(p.free) || len(p.free)+p.cached+p.held() != len(p.holders) {
		b.errorf("%s: free %d, cached %d, held %d of %d", name, len(p.free), p.cached, p.held(), len(p.holders))
	}
	for i := range p.holders {
		i := int32(i)
		if p.holders[i] != holders[i] {
			b.errorf("%s: item %d has %d holders, counted %d", name, i, p.holders[i], holders[i])
		}
		if p.owner[i] != owner[i] {
			b.errorf("%s: item %d has another owner than the tree says", name, i)
		}
		if want := holders[i] == 0 && owner[i] != nil; listed[i] != want {
			b.errorf("%s: item %d cached: %v, want %v", name, i, listed[i], want)
		}
		if want := holders[i] == 0 && owner[i] == nil; free[i] != want {
			b.errorf("%s: item %d free: %v, want %v", name, i, free[i], want)
		}
	}
}
