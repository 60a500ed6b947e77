package kv

// A node of the prefix tree stands for the tokens of one page; the path from the root spells what came before.
// Only leaves hold less than a page. No child's tokens begin with another child's.
//
// The pages of groups without window are there as long as the node is. A window group may have given its page
// back: then the entry is none. A node without pages stays while it is on the way to others.
type node struct {
	parent     *node
	first      *node // children, a doubly linked list
	prev, next *node
	pins       int // sequences whose deepest node this is
	tokens     [PageTokens]int32
	n          int     // tokens
	pages      []int32 // by group
	snaps      []snap
	salt       string // roots only
}

// A snap is a recurrent state after the first end tokens of a node.
type snap struct {
	end  int
	slot int32
}

func (n *node) snapAt(end int) (int32, bool) {
	for _, s := range n.snaps {
		if s.end == end {
			return s.slot, true
		}
	}
	return none, false
}

// empty reports whether nothing is lost with a node.
func (n *node) empty() bool {
	if n.first != nil || n.pins > 0 || len(n.snaps) > 0 {
		return false
	}
	for _, p := range n.pages {
		if p != none {
			return false
		}
	}
	return true
}

// Common counts the equal tokens at the start of a and b.
func Common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func (c *Cache) root(salt string) *node {
	r := c.roots[salt]
	if r == nil {
		r = &node{salt: salt}
		c.roots[salt] = r
	}
	return r
}

// newNode adds an empty child.
func (c *Cache) newNode(parent *node) *node {
	if len(c.spare) == 0 {
		const slab = 256
		nodes := make([]node, slab)
		pages := make([]int32, slab*len(c.groups))
		for i := range nodes {
			nodes[i].pages = pages[i*len(c.groups) : (i+1)*len(c.groups) : (i+1)*len(c.groups)]
			c.spare = append(c.spare, &nodes[i])
		}
	}
	n := c.spare[len(c.spare)-1]
	c.spare = c.spare[:len(c.spare)-1]
	for g := range n.pages {
		n.pages[g] = none
	}
	n.parent, n.prev, n.next = parent, nil, parent.first
	if parent.first != nil {
		parent.first.prev = n
	}
	parent.first = n
	c.nodes++
	return n
}

// remove takes a node without children out of the tree. Pages that sequences hold stay theirs.
func (c *Cache) remove(n *node) {
	for g, p := range n.pages {
		if p != none {
			n.pages[g] = none
			c.groups[g].disown(p)
		}
	}
	for _, s := range n.snaps {
		c.slots.disown(s.slot)
	}
	n.snaps = n.snaps[:0]
	c.prune(n)
}

// prune removes n, and then the nodes above it, as far as nothing is lost.
func (c *Cache) prune(n *node) {
	for n.empty() {
		up := n.parent
		if up == nil {
			delete(c.roots, n.salt)
			return
		}
		if n.prev != nil {
			n.prev.next = n.next
		} else {
			up.first = n.next
		}
		if n.next != nil {
			n.next.prev = n.prev
		}
		n.parent, n.prev, n.next, n.n = nil, nil, nil, 0
		c.spare = append(c.spare, n)
		c.nodes--
		n = up
	}
}

// evictPage frees the least recently used cached page of a group.
func (c *Cache) evictPage(g int) {
	p := c.groups[g].head
	n := c.groups[g].owner[p]
	c.evicted++
	if c.windows[g] == 0 {
		// Who holds a page holds those before it, and lets go of them after it: so the head of the list is a leaf.
		c.remove(n)
		return
	}
	n.pages[g] = none
	c.groups[g].disown(p)
	c.prune(n)
}

// evictSnapshot frees the least recently used snapshot.
func (c *Cache) evictSnapshot() { c.forget(c.slots.head) }

// forget takes a snapshot out of the tree. A slot that a sequence holds stays its.
func (c *Cache) forget(slot int32) {
	n := c.slots.owner[slot]
	for i, s := range n.snaps {
		if s.slot == slot {
			n.snaps = append(n.snaps[:i], n.snaps[i+1:]...)
			break
		}
	}
	c.slots.disown(slot)
	c.prune(n)
}

// trim keeps the tree from growing without bound where no page limits it: nodes on the way to window pages or
// snapshots may have none of their own.
func (c *Cache) trim() {
	for c.nodes > c.maxNodes {
		switch g := c.longestWindowList(); {
		case c.slots.cached > 0:
			c.evictSnapshot()
		case g >= 0:
			c.evictPage(g)
		default:
			return
		}
	}
}

func (c *Cache) longestWindowList() int {
	best, n := -1, 0
	for g, p := range c.groups {
		if c.windows[g] > 0 && p.cached > n {
			best, n = g, p.cached
		}
	}
	return best
}
