package kv

// none is the absent page or slot.
const none = -1

// A pool counts who uses each of a fixed number of items: the pages of one group, or the slots.
//
// An item is held by any number of sequences and owned by at most one tree node. Neither: it is free. Owned but
// not held: it is cached, and stands in a list ordered by when its last holder let go. So
// free + cached + held = total.
type pool struct {
	free    []int32
	holders []int32 // sequences that hold the item
	owner   []*node // tree node that caches the item

	// The cached items as a doubly linked list, least recently used first.
	prev, next []int32
	head, tail int32
	cached     int
}

func newPool(n int) *pool {
	p := &pool{
		free: make([]int32, n), holders: make([]int32, n), owner: make([]*node, n),
		prev: make([]int32, n), next: make([]int32, n), head: none, tail: none,
	}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i)
	}
	return p
}

// available counts the items that can be taken, by eviction if need be.
func (p *pool) available() int { return len(p.free) + p.cached }

func (p *pool) held() int { return len(p.holders) - p.available() }

// take returns a free item with one holder; the caller has seen to it that there is one.
func (p *pool) take() int32 {
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.holders[i] = 1
	return i
}

func (p *pool) hold(i int32) {
	if p.holders[i] == 0 {
		p.unlink(i)
	}
	p.holders[i]++
}

func (p *pool) drop(i int32) {
	p.holders[i]--
	if p.holders[i] > 0 {
		return
	}
	if p.owner[i] != nil {
		p.append(i)
	} else {
		p.free = append(p.free, i)
	}
}

// own makes n the owner of a held item.
func (p *pool) own(i int32, n *node) { p.owner[i] = n }

func (p *pool) disown(i int32) {
	p.owner[i] = nil
	if p.holders[i] == 0 {
		p.unlink(i)
		p.free = append(p.free, i)
	}
}

// touch makes a cached item the most recently used.
func (p *pool) touch(i int32) {
	if p.holders[i] == 0 {
		p.unlink(i)
		p.append(i)
	}
}

func (p *pool) append(i int32) {
	p.prev[i], p.next[i] = p.tail, none
	if p.tail == none {
		p.head = i
	} else {
		p.next[p.tail] = i
	}
	p.tail = i
	p.cached++
}

func (p *pool) unlink(i int32) {
	if p.prev[i] == none {
		p.head = p.next[i]
	} else {
		p.next[p.prev[i]] = p.next[i]
	}
	if p.next[i] == none {
		p.tail = p.prev[i]
	} else {
		p.prev[p.next[i]] = p.prev[i]
	}
	p.cached--
}
