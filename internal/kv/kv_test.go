package kv

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// memory holds one number for each position of a page, and one for each slot.
type memory struct {
	pages [][][PageTokens]uint64
	slots []uint64
}

func (m *memory) PageBytes(int) int { return PageTokens * 8 }
func (m *memory) PageOut(dst []byte, g int, p int32) {
	for i, v := range m.pages[g][p] {
		binary.LittleEndian.PutUint64(dst[i*8:], v)
	}
}

func (m *memory) PageIn(g int, p int32, src []byte) {
	for i := range m.pages[g][p] {
		m.pages[g][p][i] = binary.LittleEndian.Uint64(src[i*8:])
	}
}

func (m *memory) PageCopy(g int, dst, src int32) { m.pages[g][dst] = m.pages[g][src] }
func (m *memory) SlotBytes() int                 { return 8 }
func (m *memory) SlotOut(dst []byte, slot int32) { binary.LittleEndian.PutUint64(dst, m.slots[slot]) }
func (m *memory) SlotIn(slot int32, src []byte)  { m.slots[slot] = binary.LittleEndian.Uint64(src) }
func (m *memory) SlotCopy(dst, src int32)        { m.slots[dst] = m.slots[src] }
func (m *memory) SlotZero(slot int32)            { m.slots[slot] = 0 }
func fold(h uint64, token int32) uint64          { return (h ^ uint64(token+1)) * 0x100000001B3 }
func newMemory(c Config) *memory {
	m := &memory{slots: make([]uint64, c.Slots)}
	for _, n := range c.Pages {
		m.pages = append(m.pages, make([][PageTokens]uint64, n))
	}
	return m
}

// bench is a cache over such a memory.
type bench struct {
	*testing.T
	c *Cache
	m *memory
}

func newBench(t *testing.T, c Config) *bench {
	t.Helper()
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = 2 * PageTokens
	}
	m := newMemory(c)
	k, err := New(c, m)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, k, m}
}

func (b *bench) check() {
	b.Helper()
	if err := b.c.CheckInvariants(); err != nil {
		b.Fatal(err)
	}
}

// open opens a sequence of tokens with room for all of them.
func (b *bench) open(tokens []int32) *Seq {
	b.Helper()
	s := b.c.Open(
		Want{Tokens: tokens, Limit: len(tokens) - 1, Prompt: len(tokens), Total: len(tokens), Size: len(tokens) + 100},
	)
	if s != nil {
		b.verify(s, tokens)
	}
	b.check()
	return s
}

// feed computes the next n tokens as a model would, as far as there is room.
func (b *bench) feed(s *Seq, tokens []int32, n int) int {
	b.Helper()
	n = s.Extend(min(n, s.RowsToSnapshot(), len(tokens)-s.Len()))
	if n == 0 {
		return 0
	}
	h := uint64(0)
	for i, t := range tokens[:s.Len()+n] {
		h = fold(h, t)
		if i < s.Len() {
			continue
		}
		for g := range b.c.groups {
			b.m.pages[g][s.Tables()[g][i/PageTokens]][i%PageTokens] = h + uint64(g)
		}
	}
	if b.c.recurrent() {
		for _, t := range tokens[s.Len() : s.Len()+n] {
			b.m.slots[s.Slot()] = fold(b.m.slots[s.Slot()], t)
		}
	}
	s.Advance(tokens[:s.Len()+n])
	b.check()
	b.verify(s, tokens)
	return n
}

// run feeds all tokens.
func (b *bench) run(s *Seq, tokens []int32) {
	b.Helper()
	for s.Len() < len(tokens) {
		if b.feed(s, tokens, 64) == 0 {
			b.Fatal("no room")
		}
	}
}

// verify compares what the next row would see with what it must be.
func (b *bench) verify(s *Seq, tokens []int32) {
	b.Helper()
	h := uint64(0)
	for i, t := range tokens[:s.Len()] {
		h = fold(h, t)
		for g, w := range b.c.windows {
			if w > 0 && i < s.Len()-w+1 {
				continue
			}
			p := s.Tables()[g][i/PageTokens]
			if p == none || b.m.pages[g][p][i%PageTokens] != h+uint64(g) {
				b.Fatalf("group %d (window %d): position %d of %d is wrong (page %d)", g, w, i, s.Len(), p)
			}
		}
	}
	if b.c.recurrent() && b.m.slots[s.Slot()] != h {
		b.Fatalf("the state after %d positions is wrong", s.Len())
	}
}

func count(from, n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = int32(from + i)
	}
	return t
}

func join(parts ...[]int32) []int32 { return slices.Concat(parts...) }

func TestReuse(t *testing.T) {
	first := count(0, 200)
	configs := map[string]Config{
		"full":             {Windows: []int{0}, Pages: []int{64}},
		"window":           {Windows: []int{48}, Pages: []int{64}},
		"small window":     {Windows: []int{0, 20}, Pages: []int{64, 64}},
		"state":            {Slots: 20},
		"full and state":   {Windows: []int{0}, Pages: []int{64}, Slots: 20},
		"window and state": {Windows: []int{48}, Pages: []int{64}, Slots: 20},
	}
	tests := []struct {
		name             string
		tokens           []int32
		pages, snapshots int // tokens to be reused: by page, and by the snapshots at 64, 128, 192 and 200
	}{
		{"nothing in common", count(1000, 100), 0, 0},
		{"the same", first, 199, 192},
		{"one page", join(first[:32], count(500, 10)), 32, 0},
		{"inside a page", join(first[:50], count(500, 10)), 50, 0},
		{"first token only", join(first[:1], count(500, 10)), 1, 0},
		{"behind a snapshot", join(first[:130], count(500, 10)), 130, 128},
		{"before a snapshot", join(first[:127], count(500, 10)), 127, 64},
		{"longer", join(first, count(500, 10)), 200, 200},
	}
	for name, c := range configs {
		for i, tt := range append(tests, tests...) {
			running := i >= len(tests) // others find the prompt while its answer is still being generated
			t.Run(fmt.Sprintf("%s/%s/running %v", name, tt.name, running), func(t *testing.T) {
				b := newBench(t, c)
				s := b.open(first)
				b.run(s, first)
				if running {
					b.run(s, join(first, []int32{77, 78, 79}))
				} else {
					s.Close(first, true)
				}
				b.check()
				s = b.open(tt.tokens)
				want := tt.pages
				if c.Slots > 0 {
					want = tt.snapshots
				}
				if s.Len() != want {
					t.Errorf("%d tokens reused, want %d", s.Len(), want)
				}
				b.run(s, tt.tokens)
				s.Close(tt.tokens, true)
				b.check()
			})
		}
	}
}

func TestWindowMatchNeedsItsPages(t *testing.T) {
	// Window pages in the middle are given up; a match there is none, at the ends it is.
	b := newBench(t, Config{Windows: []int{0, 40}, Pages: []int{64, 6}})
	tokens := count(0, 400)
	s := b.open(tokens)
	b.run(s, tokens)
	s.Close(tokens, true)
	b.check()
	for _, tt := range []struct{ n, want int }{{400, 400}, {200, 0}, {390, 390}} {
		s := b.c.Open(
			Want{Tokens: join(tokens[:tt.n], count(900, 5)), Limit: tt.n, Prompt: tt.n + 5, Total: tt.n + 5, Size: 500},
		)
		b.check()
		if s.Len() != tt.want {
			t.Errorf("match of %d tokens: %d reused, want %d", tt.n, s.Len(), tt.want)
		}
		s.Close(nil, false)
		b.check()
	}
}

func TestWindowPagesAreReturned(t *testing.T) {
	for _, w := range []int{1, 31, 32, 33, 64, 100} {
		b := newBench(t, Config{Windows: []int{w}, Pages: []int{MinPages(w)}})
		tokens := count(0, 1000) // far more than the pages hold
		s := b.open(tokens[:1])
		for s.Len() < len(tokens) {
			if b.feed(s, tokens, 1+s.Len()%PageTokens) == 0 {
				t.Fatalf("window %d: no room at %d", w, s.Len())
			}
			if held := b.c.Pages(0).Held; held > pagesFor(w)+1 {
				t.Fatalf("window %d: %d pages held at %d", w, held, s.Len())
			}
		}
		s.Close(tokens, true)
		b.check()
	}
}

func TestEvictionTakesTheLeastRecentlyUsed(t *testing.T) {
	b := newBench(t, Config{Windows: []int{0}, Pages: []int{12}})
	prompts := [][]int32{count(0, 96), count(1000, 96), count(2000, 96), count(3000, 96)}
	for _, p := range prompts {
		s := b.open(p)
		b.run(s, p)
		s.Close(p, true)
	}
	s := b.open(prompts[0]) // now the most recently used
	s.Close(prompts[0], false)
	s = b.open(count(5000, 96))
	b.run(s, count(5000, 96))
	s.Close(count(5000, 96), true)
	for i, want := range []int{95, 0, 95, 95} {
		if got := b.c.find(b.c.root(""), prompts[i][:95]).n; got != want {
			t.Errorf("prompt %d: %d tokens cached, want %d", i, got, want)
		}
	}
}

func TestOpenRefusesWithoutRoom(t *testing.T) {
	b := newBench(t, Config{Windows: []int{0}, Pages: []int{10}})
	a := b.open(count(0, 160))
	b.run(a, count(0, 160))
	if s := b.open(count(1000, 161)); s != nil {
		t.Error("opened without room")
	}
	if s := b.open(join(count(0, 150), count(900, 171))); s != nil {
		t.Error("opened without room beside a shared prefix")
	}
	w := Want{Tokens: count(1000, 100), Limit: 99, Prompt: 100, Total: 100, Size: 100, Reserved: []int{2}}
	if b.c.Open(w) != nil {
		t.Error("opened with reserved pages")
	}
	shares := join(count(0, 150), count(900, 130))
	s := b.open(shares)
	if s == nil || s.Len() != 150 {
		t.Fatalf("a prompt that shares 4 of its 9 pages is refused")
	}
	b.run(s, shares)
	if got := s.Extend(100); got != 8 {
		t.Errorf("room for %d rows, want the 8 of the last page", got)
	}
}

// TestOpenInACacheThatIsJustLargeEnough: what an earlier sequence left must not keep one out that has the cache alone.
// Where a match ends inside a page, the copy of that page needs one more.
func TestOpenInACacheThatIsJustLargeEnough(t *testing.T) {
	for _, c := range []Config{
		{Windows: []int{0}, Pages: []int{10}},
		{Windows: []int{40}, Pages: []int{MinPages(40)}},
		{Windows: []int{0, 40}, Pages: []int{10, MinPages(40)}},
		{Windows: []int{0}, Pages: []int{10}, Slots: 4},
	} {
		for _, common := range []int{1, 50, 127, 130, 150, 319} {
			b := newBench(t, c)
			first := count(0, common)
			s := b.open(first)
			b.run(s, first)
			s.Close(first, true)
			tokens := join(first, count(900, 320-common))
			if s = b.open(tokens); s == nil {
				t.Errorf("%+v: 320 tokens of which %d are cached are refused", c, common)
				continue
			}
			if whole := common / PageTokens * PageTokens; c.Slots == 0 && s.Len() < whole {
				t.Errorf("%+v: %d of %d cached tokens are taken", c, s.Len(), whole)
			}
			b.run(s, tokens)
			s.Close(tokens, true)
			b.check()
		}
	}
}

func TestRematchTakesOver(t *testing.T) {
	for _, c := range []Config{{Windows: []int{0}, Pages: []int{64}}, {Windows: []int{0, 40}, Pages: []int{64, 30}, Slots: 20}} {
		b := newBench(t, c)
		tokens := count(0, 200)
		x, y := b.open(tokens), b.open(join(tokens[:180], count(700, 10)))
		b.feed(y, tokens, 3)
		b.run(x, tokens)
		want := 180
		if c.Slots > 0 {
			want = 128
		}
		other := join(tokens[:180], count(700, 10))
		if !y.Rematch(other, len(other)-1) || y.Len() != want {
			t.Errorf("%d tokens taken over, want %d", y.Len(), want)
		}
		b.check()
		b.verify(y, other)
		b.run(y, other)
		if y.Rematch(other, len(other)-1) {
			t.Error("taken over from itself")
		}
		x.Close(tokens, true)
		y.Close(other, true)
		b.check()
	}
}

// TestOpenKeepsTheSnapshotThatItNeeds: where no slot is free, the one that a new sequence takes is not the one that
// holds the state it starts from, and if that is the last, it becomes the sequence's own.
func TestOpenKeepsTheSnapshotThatItNeeds(t *testing.T) {
	for _, slots := range []int{1, 2, 3, 4} {
		for _, windows := range [][]int{nil, {0}, {48}} {
			c := Config{Windows: windows, Slots: slots, SnapshotEvery: 64}
			for range windows {
				c.Pages = append(c.Pages, 64)
			}
			b := newBench(t, c)
			least := min(slots-1, 1) // the first of those that are left
			for i := range slots {   // each leaves the state of its end
				tokens := count(1000*i, 20)
				s := b.open(tokens)
				b.run(s, tokens)
				s.Close(tokens, true)
			}
			if b.c.Slots().Free > 0 {
				b.open(count(90000, 5))
			}
			if l := b.c.Slots(); l.Free > 0 || l.Cached != slots-least {
				t.Fatalf("%d slots: %+v", slots, l)
			}
			tokens := count(1000*least, 50) // goes on with the least recently used
			s := b.open(tokens)
			if s == nil || s.Len() != 20 {
				t.Fatalf("%d slots, windows %v: 20 tokens are not reused", slots, windows)
			}
			b.run(s, tokens)
			s.Close(tokens, true)
			b.check()
		}
	}
}

// TestRematchInAFullCache: only the copy of the tail needs a page, the others are held by the one that computed them.
func TestRematchInAFullCache(t *testing.T) {
	for _, c := range []Config{
		{Windows: []int{0}, Pages: []int{8}},
		{Windows: []int{0}, Pages: []int{8}, Slots: 20},
	} {
		b := newBench(t, c)
		tokens := count(0, 200)
		longer := join(tokens, count(900, 1))
		x := b.open(tokens)
		y := b.c.Open(Want{Tokens: longer, Limit: 200, Prompt: 201, Size: 201})
		b.run(x, tokens)
		if !y.Rematch(longer, 200) || y.Len() != 200 {
			t.Errorf("%+v: %d tokens taken over, want 200", c, y.Len())
		}
		b.check()
		b.run(y, longer)
		y.Close(longer, true)
		x.Close(tokens, true)
		b.check()
	}
}

func TestSwapRestoresExactly(t *testing.T) {
	for _, c := range []Config{
		{Windows: []int{0}, Pages: []int{9}, SwapBytes: 1 << 20},
		{Windows: []int{0, 40}, Pages: []int{9, 5}, Slots: 3, SwapBytes: 1 << 20},
	} {
		b := newBench(t, c)
		tokens := count(0, 150)
		s := b.open(tokens)
		b.run(s, tokens[:140])
		if !s.SwapOut() {
			t.Fatal("no room in host memory")
		}
		b.check()
		other := count(1000, 250)
		o := b.open(other)
		b.run(o, other) // overwrites all that was cached
		if s.SwapIn(tokens[:140], 150, nil) {
			t.Fatal("swapped in without room")
		}
		b.check()
		o.Close(other, false)
		if !s.SwapIn(tokens[:140], 150, nil) {
			t.Fatal("no room after the other one has ended")
		}
		b.check()
		b.verify(s, tokens)
		b.run(s, tokens)
		s.Close(tokens, true)
		b.check()
		if b.c.SwapBytes() != 0 {
			t.Errorf("%d bytes of host memory left", b.c.SwapBytes())
		}
	}
	b := newBench(t, Config{Windows: []int{0}, Pages: []int{9}, SwapBytes: 100})
	s := b.open(count(0, 50))
	b.run(s, count(0, 50))
	if s.SwapOut() {
		t.Error("swapped out beyond the limit")
	}
	b.verify(s, count(0, 50))
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []Config{
		{},
		{Windows: []int{0}},
		{Windows: []int{0}, Pages: []int{0}, SnapshotEvery: 32},
		{Windows: []int{64}, Pages: []int{3}, SnapshotEvery: 32},
		{Windows: []int{0}, Pages: []int{1}, SnapshotEvery: 33},
		{Windows: []int{0}, Pages: []int{1}},
	} {
		if _, err := New(c, newMemory(c)); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// TestRandomOperations mixes everything that can happen to sequences and looks after each operation whether the
// books are right and whether every sequence sees what it must.
func TestRandomOperations(t *testing.T) {
	configs := []Config{
		{Windows: []int{0}, Pages: []int{24}},
		{Windows: []int{40}, Pages: []int{14}},
		{Windows: []int{0, 7, 90}, Pages: []int{24, 8, 13}},
		{Slots: 7},
		{Windows: []int{0}, Pages: []int{24}, Slots: 9},
		{Windows: []int{33, 0}, Pages: []int{9, 24}, Slots: 6},
	}
	for i, c := range configs {
		for seed := range uint64(12) {
			c := c
			c.SwapBytes = int64(seed%3) * 4000
			t.Run(fmt.Sprintf("config %d/seed %d", i, seed), func(t *testing.T) {
				randomOperations(t, newBench(t, c), rand.New(rand.NewPCG(seed, uint64(i))))
			})
		}
	}
}

func randomOperations(t *testing.T, b *bench, r *rand.Rand) {
	type live struct {
		s      *Seq
		tokens []int32
	}
	var seqs []*live
	past := [][]int32{count(0, 40)}
	for range 800 {
		op := r.IntN(10)
		if len(seqs) == 0 || op == 0 {
			p := past[r.IntN(len(past))]
			tokens := join(p[:r.IntN(len(p)+1)], count(r.IntN(9)*100, 1+r.IntN(150)))
			if s := b.open(tokens[:min(len(tokens), 300)]); s != nil {
				seqs = append(seqs, &live{s, tokens[:min(len(tokens), 300)]})
			}
			continue
		}
		i := r.IntN(len(seqs))
		l := seqs[i]
		switch {
		case op == 1:
			keep := r.IntN(3) > 0
			if keep && l.s.host == nil {
				past = append(past, l.tokens)
			}
			l.s.Close(l.tokens[:l.s.Len()], keep)
			seqs = slices.Delete(seqs, i, i+1)
		case op == 2 && l.s.host == nil:
			l.s.SwapOut()
		case l.s.host != nil:
			if l.s.SwapIn(l.tokens[:l.s.Len()], len(l.tokens), nil) {
				b.verify(l.s, l.tokens)
			}
		case op == 3:
			if l.s.Rematch(l.tokens, len(l.tokens)-1) {
				b.verify(l.s, l.tokens)
			}
		case l.s.Len() == len(l.tokens) && len(l.tokens) < 330:
			l.tokens = append(slices.Clone(l.tokens), int32(r.IntN(3)))
		default:
			b.feed(l.s, l.tokens, 1+r.IntN(80))
		}
		b.check()
		for _, l := range seqs {
			if l.s.host == nil {
				b.verify(l.s, l.tokens)
			}
		}
	}
	for _, l := range seqs {
		l.s.Close(l.tokens[:l.s.Len()], r.IntN(2) == 0)
		b.check()
	}
	for g := range b.c.groups {
		if l := b.c.Pages(g); l.Held != 0 {
			t.Errorf("group %d: %+v", g, l)
		}
	}
}

func TestTreeWithoutPagesIsBounded(t *testing.T) {
	b := newBench(t, Config{Slots: 3, SnapshotEvery: PageTokens})
	for i := range 200 {
		tokens := count(i*100000, 3000)
		s := b.open(tokens)
		for s.Len() < len(tokens) {
			n := min(s.RowsToSnapshot(), len(tokens)-s.Len())
			s.Extend(n)
			s.Advance(tokens[:s.Len()+n])
		}
		s.Close(tokens, true)
		if b.c.nodes > b.c.maxNodes {
			t.Fatalf("%d nodes after %d sequences, want at most %d", b.c.nodes, i+1, b.c.maxNodes)
		}
	}
	b.check()
}

func TestCapacity(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want int
	}{
		{Config{Windows: []int{0, 32}, Pages: []int{10, 5}}, 320},
		{Config{Windows: []int{32}, Pages: []int{5}}, math.MaxInt},
	} {
		if got := newBench(t, tt.c).c.Capacity(); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.c, got, tt.want)
		}
	}
}
