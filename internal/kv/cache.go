// Package kv owns the memory of sequences: pages of keys and values, slots of recurrent states, and the prefix
// tree that lets sequences share them.
//
// It knows token ids, pages and slots by number, and a Memory that moves them; it knows no text, requests,
// models or HTTP. It is used by one goroutine, while no step runs.
//
// A sequence holds its pages. When a page is full its tokens and its number enter the tree, so that the tree owns
// it too and others can hold it. What no sequence holds stays cached until the memory is needed, least recently
// used first. In a sequence of fed tokens:
//
//	[0, committed*PageTokens)    the tree's; other sequences may hold these pages, nobody writes to them
//	[committed*PageTokens, fed)  the sequence's own; the tree may own a page as far as it was filled, and the
//	                             sequence goes on writing behind that
package kv

import (
	"errors"
	"fmt"
	"math"

	"github.com/baleenrun/baleen/internal/backend"
)

// PageTokens is the number of positions in a page.
const PageTokens = backend.PageTokens

// Memory moves pages and slots; a backend.Exec is one.
type Memory interface {
	PageBytes(group int) int
	PageOut(dst []byte, group int, page int32)
	PageIn(group int, page int32, src []byte)
	PageCopy(group int, dst, src int32)
	SlotBytes() int
	SlotOut(dst []byte, slot int32)
	SlotIn(slot int32, src []byte)
	SlotCopy(dst, src int32)
	SlotZero(slot int32)
}

// Config says what there is to manage.
type Config struct {
	Windows       []int // of each group, in tokens; 0: all positions
	Pages         []int // pages of each group
	Slots         int   // recurrent slots; 0: the plan has no states
	SnapshotEvery int   // positions between snapshots of recurrent states, a multiple of PageTokens
	SwapBytes     int64 // host memory for sequences that are swapped out
}

// A Cache manages the pages and slots of one compiled plan.
type Cache struct {
	mem       Memory
	windows   []int
	every     int
	swapLimit int64

	groups []*pool
	slots  *pool
	roots  map[string]*node
	seqs   []*Seq // all that are open

	nodes, maxNodes int
	spare           []*node
	path            []*node // of the last find
	swapped         int64   // host bytes in use
	evicted         int64   // pages
}

// New returns an empty cache.
func New(c Config, m Memory) (*Cache, error) {
	if len(c.Windows) != len(c.Pages) {
		return nil, fmt.Errorf("kv: %d windows and %d page counts", len(c.Windows), len(c.Pages))
	}
	if len(c.Windows) == 0 && c.Slots == 0 {
		return nil, errors.New("kv: neither pages nor slots")
	}
	if c.SnapshotEvery%PageTokens != 0 || c.SnapshotEvery <= 0 {
		return nil, fmt.Errorf("kv: snapshots every %d positions, want a multiple of %d", c.SnapshotEvery, PageTokens)
	}
	k := &Cache{
		mem: m, windows: c.Windows, every: c.SnapshotEvery, swapLimit: c.SwapBytes,
		slots: newPool(c.Slots), roots: map[string]*node{}, maxNodes: 1024 + 4*c.Slots,
	}
	for g, n := range c.Pages {
		if least := MinPages(c.Windows[g]); n < least {
			return nil, fmt.Errorf("kv: %d pages for window %d, want at least %d", n, c.Windows[g], least)
		}
		k.groups = append(k.groups, newPool(n))
		k.maxNodes += 4 * n
	}
	return k, nil
}

// MinPages is the least number of pages with which one sequence can advance a page at a time.
func MinPages(window int) int {
	if window == 0 {
		return 1
	}
	return pagesFor(window) + 2
}

// pagesFor returns the pages of n positions from a page's start on.
func pagesFor(n int) int { return (n + PageTokens - 1) / PageTokens }

// Capacity returns how many positions one sequence alone can have.
func (c *Cache) Capacity() int {
	n := math.MaxInt
	for g, w := range c.windows {
		// A window that is smaller than its group's pages never ends a sequence.
		if p := len(c.groups[g].holders); w == 0 {
			n = min(n, p*PageTokens)
		}
	}
	return n
}

func (c *Cache) recurrent() bool { return len(c.slots.holders) > 0 }

// page returns a page of group g with one holder, or none.
func (c *Cache) page(g int) int32 {
	p := c.groups[g]
	if len(p.free) == 0 {
		if p.cached == 0 {
			return none
		}
		c.evictPage(g)
	}
	return p.take()
}

// slot returns a slot with one holder, or none.
func (c *Cache) slot() int32 {
	if len(c.slots.free) == 0 {
		if c.slots.cached == 0 {
			return none
		}
		c.evictSnapshot()
	}
	return c.slots.take()
}

// Level counts the items of a group, or the slots: Free + Cached + Held = Total.
type Level struct{ Total, Free, Cached, Held int }

func (p *pool) level() Level {
	return Level{len(p.holders), len(p.free), p.cached, p.held()}
}

// Pages returns the level of a group.
func (c *Cache) Pages(group int) Level { return c.groups[group].level() }

// Slots returns the level of the slots.
func (c *Cache) Slots() Level { return c.slots.level() }

// SwapBytes returns the host memory in use.
func (c *Cache) SwapBytes() int64 { return c.swapped }

// Evicted returns how many cached pages were given up so far.
func (c *Cache) Evicted() int64 { return c.evicted }
