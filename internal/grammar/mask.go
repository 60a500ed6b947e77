package grammar

import (
	"math/bits"
	"slices"
)

// A Masker says which tokens of a vocabulary may come next in a grammar. It keeps what it has found by state and by
// the top of the stack. It is safe for concurrent use.
// RATIONALE: How are masks computed?
type Masker struct {
	g *Grammar
	v *Vocabulary

	kept [2]*keptMasks // of the newest machine, and of the one before, which texts may still be read with
	*keptMasks
	walk walker
}

// keptMasks is what was found of one machine.
type keptMasks struct {
	m     *machine
	alone map[stateID]*alone
	whole map[wholeKey]*mask
	look  map[stateID]int32 // how many frames masks of a state have looked at
	bytes int               // what the two maps hold
}

// wholeKey is a state and the stack as far as the mask depends on it: the frames looked at, or, beyond three, all.
type wholeKey struct {
	state      stateID
	r1, r2, r3 stateID
	stack      int32
}

// mask is a set of tokens, as a list where it is small.
type mask struct {
	list []int32
	bits []uint64 // nil if the list is used
}

// alone is what a state allows without knowing the stack: tokens, and where in the tries the stack comes into play.
type alone struct {
	mask
	crossed [2][]int32 // per trie: nodes at which the frame may end, in order
}

// maxCache bounds the bytes that a Masker keeps; it begins anew when they are reached.
const maxCache = 32 << 20

// NewMasker joins a grammar with a vocabulary.
func NewMasker(g *Grammar, v *Vocabulary) *Masker {
	return &Masker{g: g, v: v}
}

// use turns to the masks of a machine.
func (k *Masker) use(m *machine) {
	for _, kept := range k.kept {
		if kept != nil && kept.m == m {
			k.keptMasks = kept
			return
		}
	}
	k.kept[1] = k.kept[0]
	k.kept[0] = &keptMasks{m: m, look: map[stateID]int32{}}
	k.keptMasks = k.kept[0]
	k.reset()
}

func (k *keptMasks) reset() {
	k.alone, k.whole, k.bytes = map[stateID]*alone{}, map[wholeKey]*mask{}, 0
}

// Words is the length of a mask in 64-bit words.
func (v *Vocabulary) Words() int { return (v.size + 63) / 64 }

// Words is the length of the masks in 64-bit words.
func (k *Masker) Words() int { return k.v.Words() }

// Mask sets dst, of Words words, to the tokens that may come next: bit id&63 of word id>>6. End tokens are among them
// exactly where the text may end. Its error tells that a limit was met.
func (k *Masker) Mask(t Matcher, dst []uint64) error {
	k.g.mu.Lock()
	defer k.g.mu.Unlock()
	m := t.m
	k.use(m)
	clear(dst)
	for _, c := range t.set {
		k.of(c).orInto(dst)
	}
	if m.json != nil { // a walk does not remember a key or item that begins before it: a token may hold the same again
		doubtful := k.v.quotes
		if slices.ContainsFunc(t.set, func(c config) bool { return m.remembersItems(c.state) }) {
			doubtful = slices.Concat(doubtful, k.v.commas)
		}
		for _, id := range doubtful {
			if dst[id>>6]>>(id&63)&1 == 1 {
				if _, ok, err := t.run(k.v.tokens[id]); !ok || err != nil {
					dst[id>>6] &^= 1 << (id & 63)
				}
			}
		}
	}
	if m.acceptingAny(t.set) {
		for _, id := range k.v.end {
			dst[id>>6] |= 1 << (id & 63)
		}
	}
	return m.err
}

// AcceptToken returns the place after a token; ok is false where the grammar does not allow it. An end token is
// allowed where the text may end, and leaves the place as it is.
func (k *Masker) AcceptToken(t Matcher, id int32) (next Matcher, ok bool, err error) {
	if id < 0 || int(id) >= k.v.size {
		return t, false, nil
	}
	for _, e := range k.v.end {
		if e == id {
			return t, t.Accepting(), nil
		}
	}
	if len(k.v.tokens[id]) == 0 {
		return t, false, nil
	}
	return t.Accept(k.v.tokens[id])
}

func (s *mask) orInto(dst []uint64) {
	if s.bits == nil {
		for _, id := range s.list {
			dst[id>>6] |= 1 << (id & 63)
		}
		return
	}
	for i, w := range s.bits {
		dst[i] |= w
	}
}

// pack makes a mask of bits, which it may keep.
func pack(set []uint64) (mask, int) {
	n := 0
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	if n*4 >= len(set)*8/2 {
		kept := append([]uint64(nil), set...)
		return mask{bits: kept}, len(kept) * 8
	}
	list := make([]int32, 0, n)
	for i, w := range set {
		for ; w != 0; w &= w - 1 {
			list = append(list, int32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return mask{list: list}, n * 4
}

// of is the mask of one place.
func (k *Masker) of(c config) *mask {
	m := k.m
	if m.depths[c.stack]+k.v.longest >= MaxDepth { // the limit on the depth may decide: look at every token
		k.walk.start(m, k.v)
		for _, t := range k.v.tries {
			k.walk.subtree(t, -1, c)
		}
		found, _ := pack(k.walk.set)
		return &found
	}
	s := m.similar(c.state, k.v.longest)
	key, ok := k.key(s, c.stack)
	if ok {
		if found := k.whole[key]; found != nil {
			return found
		}
	}
	if k.bytes > maxCache {
		k.reset()
	}
	a := k.aloneOf(s)
	if c.stack == emptyStack || len(a.crossed[0])+len(a.crossed[1]) == 0 {
		return &a.mask
	}
	k.walk.start(m, k.v)
	a.orInto(k.walk.set)
	k.walk.lowest = m.depths[c.stack] - 1
	for _, f := range m.stacks[c.stack] {
		if f == bottom {
			k.walk.lowest = -1
			continue
		}
		for i, t := range k.v.tries {
			for _, n := range a.crossed[i] {
				k.walk.subtree(t, n, config{f.ret, f.below})
			}
		}
	}
	if looked := m.depths[c.stack] - k.walk.lowest; looked > k.look[s] {
		k.look[s] = looked
		key, _ = k.key(s, c.stack)
	}
	found, size := pack(k.walk.set)
	k.whole[key] = &found
	k.bytes += size + 100
	return &found
}

// key is where the mask of a state and a stack is kept.
func (k *Masker) key(s stateID, stack int32) (wholeKey, bool) {
	look := k.look[s]
	w := wholeKey{state: s, stack: -1}
	if look > 3 {
		w.stack = stack
		return w, true
	}
	for _, r := range []*stateID{&w.r1, &w.r2, &w.r3}[:look] {
		if frames := k.m.stacks[stack]; len(frames) > 1 || frames[0] == bottom {
			w.stack = stack
			break
		} else {
			*r, stack = frames[0].ret, frames[0].below
		}
	}
	return w, look > 0
}

func (k *Masker) aloneOf(s stateID) *alone {
	if a := k.alone[s]; a != nil {
		return a
	}
	a := &alone{}
	w := &k.walk
	w.start(k.m, k.v)
	w.note = true
	for i, t := range k.v.tries {
		w.crossed = w.crossed[:0]
		if w.m.accept[s] {
			w.crossed = append(w.crossed, -1)
		}
		if room := w.m.plainRoom(s); i == 0 && room > 0 {
			copy(w.set, k.v.plain[min(room, maxPlain)])
			w.crossed = nil
		} else {
			w.subtree(t, -1, config{s, baseStack})
		}
		a.crossed[i] = slices.Clone(w.crossed)
	}
	w.note = false
	var size int
	a.mask, size = pack(w.set)
	k.bytes += size + 4*(len(a.crossed[0])+len(a.crossed[1])) + 100
	k.alone[s] = a
	return a
}

// walker walks a trie in step with the automaton.
type walker struct {
	m       *machine
	v       *Vocabulary
	set     []uint64
	arena   []config
	from    []int32 // depth → where its places begin in arena
	note    bool    // collect crossed
	crossed []int32 // nodes after which everything above baseStack may end
	lowest  int32   // the depth of the lowest frame that was looked at
}

func (w *walker) start(m *machine, v *Vocabulary) {
	w.m, w.v = m, v
	if w.set == nil {
		w.set = make([]uint64, v.Words())
		w.from = make([]int32, max(v.tries[0].height, v.tries[1].height)+2)
	}
	clear(w.set)
}

// subtree adds the tokens below a node (-1: all) that may follow a place reached at that node.
func (w *walker) subtree(t *trie, node int32, c config) {
	m := w.m
	plain := t == w.v.tries[0]
	base, end := uint16(0), int32(len(t.bytes))
	if node >= 0 {
		base, end = t.depth[node], t.skip[node]
	}
	w.arena = append(w.arena[:0], c)
	w.from[0], w.from[1] = 0, 1
	for n := node + 1; n < end; {
		d := t.depth[n] - base // 1 below the node
		b := t.bytes[n]
		parents := w.arena[w.from[d-1]:w.from[d]]
		out := w.arena[:w.from[d]]
		if len(parents) == 1 && !m.accept[parents[0].state] {
			p := parents[0]
			var e int32
			if r := m.rows[p.state]; r != nil && r[b] != unknown {
				e = r[b]
			} else {
				e = m.next(p.state, b)
			}
			switch {
			case e == dead:
				n = t.skip[n]
				continue
			case e > 0:
				out = append(out, config{e, p.stack})
			default:
				out = m.step(p, b, out, int(w.from[d]), &w.lowest)
			}
		} else {
			for i := w.from[d-1]; i < w.from[d]; i++ {
				out = m.step(w.arena[i], b, out, int(w.from[d]), &w.lowest)
			}
		}
		w.arena = out
		if int32(len(out)) == w.from[d] {
			n = t.skip[n]
			continue
		}
		w.from[d+1] = int32(len(out))
		if plain {
			// Where any characters may follow, everything below is allowed.
			below := int(t.below[n])
			if below > 0 &&
				slices.ContainsFunc(out[w.from[d]:], func(c config) bool { return m.plainRoom(c.state) >= below }) {
				for _, id := range t.ids[t.first[n]:t.first[t.skip[n]]] {
					w.set[id>>6] |= 1 << (id & 63)
				}
				n = t.skip[n]
				continue
			}
		}
		if w.note && t.skip[n] > n+1 {
			for _, c := range out[w.from[d]:] {
				if m.ends(c, floor) {
					w.crossed = append(w.crossed, n)
					break
				}
			}
		}
		for _, id := range t.ids[t.first[n]:t.first[n+1]] {
			w.set[id>>6] |= 1 << (id & 63)
		}
		n++
	}
}
