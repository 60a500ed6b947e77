package kv

// A match is a cached prefix: n tokens, in n/PageTokens whole pages along Cache.path and, where n ends inside a
// page, the first tokens of tail.
type match struct {
	n    int
	tail *node
	slot int32 // snapshot to start from, plans with states only
}

// find returns the longest prefix of tokens that can be reused, and leaves the whole pages in c.path.
func (c *Cache) find(root *node, tokens []int32) match {
	c.path = c.path[:0]
	last := root
	for last != nil {
		next := child(last, tokens[len(c.path)*PageTokens:])
		if next == nil {
			break
		}
		c.path = append(c.path, next)
		last = next
	}
	best := match{slot: none}
	if last != nil {
		rest := tokens[len(c.path)*PageTokens:]
		for n := last.first; n != nil; n = n.next {
			if l := Common(n.tokens[:n.n], rest); l > 0 {
				c.tryTail(&best, n, l)
			}
		}
	}
	if best.n > 0 {
		return best
	}
	if c.recurrent() {
		return c.bestSnapshot()
	}
	return match{n: c.wholePages() * PageTokens, slot: none}
}

// child returns the child that holds exactly the next page of tokens.
func child(n *node, tokens []int32) *node {
	if len(tokens) < PageTokens {
		return nil
	}
	page := tokens[:PageTokens]
	for n = n.first; n != nil; n = n.next {
		if n.n == PageTokens && Common(n.tokens[:], page) == PageTokens {
			return n
		}
	}
	return nil
}

// tryTail improves a match by up to l tokens of n, which follows c.path.
func (c *Cache) tryTail(best *match, n *node, l int) {
	base := len(c.path) * PageTokens
	if !c.recurrent() {
		if base+l > best.n && c.valid(base+l, n) {
			*best = match{n: base + l, tail: n, slot: none}
		}
		return
	}
	for _, s := range n.snaps {
		if s.end <= l && base+s.end > best.n && c.valid(base+s.end, n) {
			*best = match{n: base + s.end, tail: n, slot: s.slot}
		}
	}
}

// bestSnapshot returns the deepest usable snapshot along c.path.
func (c *Cache) bestSnapshot() match {
	for i := len(c.path) - 1; i >= 0; i-- {
		best := match{slot: none}
		for _, s := range c.path[i].snaps {
			n := i*PageTokens + s.end
			if n <= best.n || !c.valid(n, c.path[i]) {
				continue
			}
			best = match{n: n, slot: s.slot}
			if s.end < PageTokens {
				best.tail = c.path[i]
			}
		}
		if best.n > 0 {
			return best
		}
	}
	return match{slot: none}
}

// wholePages returns the largest number of pages along c.path after which every window is covered.
func (c *Cache) wholePages() int {
	n := len(c.path)
again:
	for g, w := range c.windows {
		for i := n - 1; i >= firstPage(n*PageTokens, w); i-- {
			if c.path[i].pages[g] == none {
				n = i
				goto again
			}
		}
	}
	return n
}

// valid reports whether every page that a row at position n can see is cached, tail being the page of n-1 where
// that is not on c.path.
func (c *Cache) valid(n int, tail *node) bool {
	end := (n + PageTokens - 1) / PageTokens
	for g, w := range c.windows {
		for i := firstPage(n, w); i < end; i++ {
			at := tail
			if i < len(c.path) {
				at = c.path[i]
			}
			if at.pages[g] == none {
				return false
			}
		}
	}
	return true
}

// firstPage returns the first page that rows from position pos on can see through a window.
func firstPage(pos, window int) int {
	if window == 0 || pos <= window {
		return 0
	}
	return (pos - window) / PageTokens
}
