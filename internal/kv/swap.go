package kv

// host is a sequence in host memory.
type host struct {
	pages [][][]byte // by group and page; nil where returned
	slot  []byte
	bytes int64
}

// SwapOut moves a sequence to host memory and lets go of its pages and slot. It does nothing and returns false
// where the host memory set aside does not suffice.
func (s *Seq) SwapOut() bool {
	c := s.c
	h := &host{pages: make([][][]byte, len(s.tables))}
	for g, t := range s.tables {
		for _, p := range t {
			if p != none {
				h.bytes += int64(c.mem.PageBytes(g))
			}
		}
	}
	if c.recurrent() {
		h.bytes += int64(c.mem.SlotBytes())
	}
	if c.swapped+h.bytes > c.swapLimit {
		return false
	}
	c.swapped += h.bytes
	for g, t := range s.tables {
		h.pages[g] = make([][]byte, len(t))
		for i, p := range t {
			if p != none {
				h.pages[g][i] = make([]byte, c.mem.PageBytes(g))
				c.mem.PageOut(h.pages[g][i], g, p)
			}
		}
	}
	if c.recurrent() {
		h.slot = make([]byte, c.mem.SlotBytes())
		c.mem.SlotOut(h.slot, s.slot)
	}
	s.host = h
	s.unhold()
	return true
}

// SwapIn moves a sequence back, sharing what the tree still has of tokens, its computed ones. It does nothing and
// returns false where there is no slot, or where pages for total positions are not available beyond reserved ones.
func (s *Seq) SwapIn(tokens []int32, total int, reserved []int) bool {
	c, h := s.c, s.host
	if c.recurrent() && c.slots.available() == 0 {
		return false
	}
	if s.root = c.root(s.root.salt); s.node == nil {
		s.node = s.root
		s.node.pins++
	}
	c.walk(s.root, tokens)
	depth := len(c.path)
	for g := range c.groups {
		for i := range h.pages[g] {
			p := int32(none)
			if h.pages[g][i] != nil && i < depth && c.path[i].pages[g] != none {
				p = c.path[i].pages[g]
				c.groups[g].hold(p)
			}
			s.tables[g] = append(s.tables[g], p)
		}
	}
	if depth > 0 {
		s.pin(c.path[depth-1])
	}
	for g, p := range c.groups {
		missing := 0
		for i, b := range h.pages[g] {
			if b != nil && s.tables[g][i] == none {
				missing++
			}
		}
		for s.low[g] = 0; s.low[g] < len(h.pages[g]) && h.pages[g][s.low[g]] == nil; {
			s.low[g]++
		}
		if p.available() < missing+s.need(g, total)+at(reserved, g) {
			s.unhold()
			return false
		}
	}
	s.swapIn(tokens, depth)
	return true
}

// swapIn fills the gaps from host memory once there is room.
func (s *Seq) swapIn(tokens []int32, depth int) {
	c, h := s.c, s.host
	for g := range c.groups {
		for i, b := range h.pages[g] {
			if b != nil && s.tables[g][i] == none {
				p := c.page(g)
				c.mem.PageIn(g, p, b)
				s.tables[g][i] = p
			}
		}
	}
	if c.recurrent() {
		s.slot = c.slot()
		c.mem.SlotIn(s.slot, h.slot)
	}
	c.swapped -= h.bytes
	s.host = nil
	s.committed = depth
	s.commit(tokens)
}

// walk leaves in c.path the nodes that hold whole pages of tokens.
func (c *Cache) walk(root *node, tokens []int32) {
	c.path = c.path[:0]
	for n := root; ; {
		n = child(n, tokens[len(c.path)*PageTokens:])
		if n == nil {
			return
		}
		c.path = append(c.path, n)
	}
}
