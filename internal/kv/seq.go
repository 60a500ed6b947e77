package kv

import (
	"math"
	"slices"
)

// A Seq is the memory of one sequence. The caller keeps the tokens.
type Seq struct {
	c      *Cache
	root   *node
	prompt int // tokens of the prompt: a snapshot is due at its end

	fed       int       // positions that are computed
	tables    [][]int32 // by group: pages by position/PageTokens, none where returned
	low       []int     // by group: the first entry of the table that is not returned
	committed int       // pages in the tree
	node      *node     // the last of them, pinned
	slot      int32

	host *host // where it is swapped out
}

// A Want describes a sequence to be opened.
type Want struct {
	Salt     string
	Tokens   []int32 // all that is known of it
	Limit    int     // at most this many are taken from the cache
	Prompt   int     // how many of them are the prompt: a snapshot is due at its end
	Total    int     // pages for this many positions must be available, at least len(Tokens)
	Reserved []int   // by group: pages that must stay available beyond that; nil: none
	Size     int     // positions that the sequence may come to have: its tables are made for them
}

// Open starts a sequence with the longest reusable prefix. It returns nil where there is no room now.
func (c *Cache) Open(w Want) *Seq {
	for limit := w.Limit; ; {
		s, m := c.open(w, limit)
		if s != nil || m.tail == nil {
			return s
		}
		// While a match's tail is copied there are two pages of it: one more than a cache may have that is just large
		// enough for the sequence. So it goes without.
		limit = m.n / PageTokens * PageTokens
	}
}

// open starts a sequence with at most limit tokens from the cache, and returns what it found there.
func (c *Cache) open(w Want, limit int) (*Seq, match) {
	s := &Seq{
		c:      c,
		prompt: w.Prompt,
		slot:   none,
		low:    make([]int, len(c.groups)),
		tables: make([][]int32, len(c.groups)),
	}
	s.root = c.root(w.Salt)
	s.node = s.root
	s.node.pins++
	for g := range s.tables {
		s.tables[g] = make([]int32, 0, pagesFor(w.Size))
	}
	c.seqs = append(c.seqs, s)
	m := c.find(s.root, w.Tokens[:limit])
	s.hold(m) // before a slot is taken: that must not be the one with the state to start from
	room := true
	for g := range c.groups {
		room = room && c.groups[g].available() >= s.need(g, w.Total)+at(w.Reserved, g)
	}
	if room && c.recurrent() {
		s.openSlot(&m)
		room = s.slot != none
	}
	if !room {
		s.drop(m)
		s.release()
		return nil, m
	}
	s.adopt(m)
	return s, m
}

// openSlot takes a zeroed slot where there is one. Else the held snapshot of the match, if it has one, is the last that
// no sequence holds: it becomes the sequence's own.
func (s *Seq) openSlot(m *match) {
	if s.slot = s.c.slot(); s.slot != none {
		s.c.mem.SlotZero(s.slot)
	} else if m.slot != none {
		s.slot, m.slot = m.slot, none
		s.c.forget(s.slot)
	}
}

func at(v []int, i int) int {
	if v == nil {
		return 0
	}
	return v[i]
}

// hold takes hold of a match's whole pages, and of its tail for as long as it takes to copy it.
func (s *Seq) hold(m match) {
	whole := m.n / PageTokens
	for g, w := range s.c.windows {
		first := firstPage(m.n, w)
		for i := range whole {
			p := int32(none)
			if i >= first {
				p = s.c.path[i].pages[g]
				s.c.groups[g].hold(p)
			}
			s.tables[g] = append(s.tables[g], p)
		}
		s.low[g] = min(first, whole)
		if m.tail != nil {
			s.c.groups[g].hold(m.tail.pages[g])
		}
	}
	if m.slot != none {
		s.c.slots.hold(m.slot)
	}
	if whole > 0 {
		s.pin(s.c.path[whole-1])
	}
	s.fed, s.committed = whole*PageTokens, whole
}

// drop lets go of a match's tail and snapshot.
func (s *Seq) drop(m match) {
	if m.tail != nil {
		for g := range s.c.groups {
			s.c.groups[g].drop(m.tail.pages[g])
		}
	}
	if m.slot != none {
		s.c.slots.drop(m.slot)
	}
}

// adopt copies a held match's tail and snapshot. The caller has seen to it that pages are available: the tail's
// own page is among those, or held.
func (s *Seq) adopt(m match) {
	if m.tail != nil {
		for g := range s.c.groups {
			p := s.c.page(g)
			s.c.mem.PageCopy(g, p, m.tail.pages[g])
			s.tables[g] = append(s.tables[g], p)
		}
	}
	s.fed = m.n
	if m.slot != none {
		s.c.mem.SlotCopy(s.slot, m.slot)
	}
	s.drop(m)
}

func (s *Seq) pin(n *node) {
	n.pins++
	s.unpin()
	s.node = n
}

func (s *Seq) unpin() {
	s.node.pins--
	s.c.prune(s.node)
}

// Len returns how many positions are computed.
func (s *Seq) Len() int { return s.fed }

// Tables returns the page tables by group, for a backend.Seq. They change with every call of a method.
func (s *Seq) Tables() [][]int32 { return s.tables }

// Slot returns the recurrent slot.
func (s *Seq) Slot() int32 { return s.slot }

// Need adds to need the pages by group that the sequence still takes until it has total positions.
func (s *Seq) Need(need []int, total int) {
	for g := range need {
		need[g] += s.need(g, total)
	}
}

func (s *Seq) need(g, total int) int {
	n := pagesFor(total) - len(s.tables[g])
	if w := s.c.windows[g]; w > 0 {
		n = min(n, MinPages(w)-(len(s.tables[g])-s.low[g]))
	}
	return max(n, 0)
}

// Extend makes room for up to n more rows and returns for how many there is room.
func (s *Seq) Extend(n int) int {
	for g, p := range s.c.groups {
		n = min(n, (len(s.tables[g])+p.available())*PageTokens-s.fed)
	}
	for g := range s.c.groups {
		for len(s.tables[g])*PageTokens < s.fed+n {
			s.tables[g] = append(s.tables[g], s.c.page(g))
		}
	}
	return n
}

// RowsToSnapshot returns after how many rows, at least one, a snapshot is due. A step must not go beyond that.
func (s *Seq) RowsToSnapshot() int {
	if !s.c.recurrent() {
		return math.MaxInt
	}
	next := (s.fed/s.c.every + 1) * s.c.every
	for _, m := range [...]int{s.lastPage(), s.prompt} {
		if m > s.fed {
			next = min(next, m)
		}
	}
	return next - s.fed
}

// LastMark returns the last position up to n from which another sequence of the same tokens can go on once this one
// is past it.
func (s *Seq) LastMark(n int) int {
	if !s.c.recurrent() {
		return n
	}
	last := n / s.c.every * s.c.every
	for _, m := range [...]int{s.lastPage(), s.prompt} {
		if m <= n {
			last = max(last, m)
		}
	}
	return last
}

// lastPage is the last page boundary from which the prompt's last token is still to be computed: where the same
// prompt starts the next time.
func (s *Seq) lastPage() int { return max(s.prompt-1, 0) / PageTokens * PageTokens }

// Advance says that tokens are now computed, all that the sequence has. Full pages enter the tree, snapshots that
// are due are taken, and pages before every window are returned.
func (s *Seq) Advance(tokens []int32) {
	s.fed = len(tokens)
	s.commit(tokens)
	if s.fed == s.prompt || s.recurrentMark() {
		s.commitTail(tokens, false)
	}
	for g, w := range s.c.windows {
		if w == 0 {
			continue
		}
		for first := min(firstPage(s.fed, w), len(s.tables[g])); s.low[g] < first; s.low[g]++ {
			if p := s.tables[g][s.low[g]]; p != none {
				s.c.groups[g].drop(p)
				s.tables[g][s.low[g]] = none
			}
		}
	}
	s.c.trim()
}

func (s *Seq) recurrentMark() bool {
	return s.c.recurrent() && (s.fed%s.c.every == 0 || s.fed == s.lastPage())
}

// commit enters the full pages into the tree.
func (s *Seq) commit(tokens []int32) {
	for (s.committed+1)*PageTokens <= s.fed {
		s.pin(s.commitPage(tokens, s.committed, PageTokens))
		s.committed++
	}
}

// commitTail enters the last page into the tree as far as it is filled, and the recurrent state: a copy of it, or
// with give the slot itself.
func (s *Seq) commitTail(tokens []int32, give bool) {
	if s.fed == 0 {
		return
	}
	n, end := s.node, PageTokens
	if t := s.fed % PageTokens; t > 0 {
		n, end = s.commitPage(tokens, s.committed, t), t
	}
	if s.c.recurrent() {
		s.snapshot(n, end, give)
	}
}

// commitPage returns the node of the first t tokens of page i, made or found below s.node.
func (s *Seq) commitPage(tokens []int32, i, t int) *node {
	part := tokens[i*PageTokens : i*PageTokens+t]
	var n *node
	for k := s.node.first; k != nil; k = k.next {
		l := Common(k.tokens[:k.n], part)
		if l == t {
			if t == PageTokens {
				s.merge(k, i)
			}
			return k
		}
		if l == k.n {
			n = k // a shorter version of this page: it grows
			break
		}
	}
	if n == nil {
		n = s.c.newNode(s.node)
	}
	n.n = t
	copy(n.tokens[:], part)
	for g, p := range s.c.groups {
		mine := s.tables[g][i]
		if mine == n.pages[g] {
			continue
		}
		if n.pages[g] != none {
			p.disown(n.pages[g])
		}
		n.pages[g] = mine
		if mine != none {
			p.own(mine, n)
		}
	}
	return n
}

// merge replaces page i by the tree's page of the same tokens, which holds the same bits, and gives the tree
// what it lacks.
func (s *Seq) merge(n *node, i int) {
	for g, p := range s.c.groups {
		mine, theirs := s.tables[g][i], n.pages[g]
		switch {
		case mine == none || mine == theirs:
		case theirs == none:
			if p.owner[mine] == nil {
				p.own(mine, n)
				n.pages[g] = mine
			}
		default:
			p.hold(theirs)
			p.drop(mine)
			s.tables[g][i] = theirs
		}
	}
}

// snapshot keeps the state after the first end tokens of n.
func (s *Seq) snapshot(n *node, end int, give bool) {
	if slot, ok := n.snapAt(end); ok {
		s.c.slots.touch(slot)
		return
	}
	slot := s.slot
	if give {
		s.slot = none
	} else {
		n.pins++ // making room must not take n away
		slot = s.c.slot()
		n.pins--
		if slot == none {
			s.c.prune(n)
			return // all slots are held: the state can be computed again
		}
		s.c.mem.SlotCopy(slot, s.slot)
	}
	n.snaps = append(n.snaps, snap{end, slot})
	s.c.slots.own(slot, n)
	s.c.slots.drop(slot)
}

// Rematch looks whether others have computed at least a page more of tokens[:limit] than this sequence and takes
// that over. It reports whether it did.
func (s *Seq) Rematch(tokens []int32, limit int) bool {
	c := s.c
	m := c.find(s.root, tokens[:limit])
	for m.tail != nil && !c.roomForTail(m) {
		m = c.find(s.root, tokens[:m.n/PageTokens*PageTokens])
	}
	if m.n < s.fed+PageTokens {
		return false
	}
	old := s.tables
	s.tables = make([][]int32, len(old))
	for g := range old {
		s.tables[g] = make([]int32, 0, cap(old[g]))
	}
	s.hold(m)
	dropAll(c, old)
	s.adopt(m)
	return true
}

// roomForTail reports whether a page for a copy of the tail can be had in every group while the match is held.
func (c *Cache) roomForTail(m match) bool {
	for g, p := range c.groups {
		room := p.available()
		if p.holders[m.tail.pages[g]] == 0 {
			room--
		}
		for i := firstPage(m.n, c.windows[g]); i < m.n/PageTokens; i++ {
			if p.holders[c.path[i].pages[g]] == 0 {
				room--
			}
		}
		if room < 1 {
			return false
		}
	}
	return true
}

// Close ends a sequence. With keep its tokens, which are then all that it has, stay cached.
func (s *Seq) Close(tokens []int32, keep bool) {
	if s.host != nil {
		s.c.swapped -= s.host.bytes
		s.host = nil
	} else if keep && s.fed > 0 {
		s.commit(tokens[:s.fed])
		s.commitTail(tokens[:s.fed], true)
	}
	s.release()
	s.c.trim()
}

// release lets go of everything.
func (s *Seq) release() {
	s.unhold()
	if i := slices.Index(s.c.seqs, s); i >= 0 {
		s.c.seqs = slices.Delete(s.c.seqs, i, i+1)
	}
}

// unhold lets go of pages, slot and tree.
func (s *Seq) unhold() {
	dropAll(s.c, s.tables)
	for g := range s.tables {
		s.tables[g] = s.tables[g][:0]
		s.low[g] = 0
	}
	if s.slot != none {
		s.c.slots.drop(s.slot)
		s.slot = none
	}
	if s.node != nil {
		s.unpin()
		s.node = nil
	}
}

// dropAll lets go of the pages of tables, the last first: so leaves of the tree are evicted first.
func dropAll(c *Cache, tables [][]int32) {
	for g, t := range tables {
		for i := len(t) - 1; i >= 0; i-- {
			if t[i] != none {
				c.groups[g].drop(t[i])
			}
		}
	}
}
