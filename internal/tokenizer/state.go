package tokenizer

import "hash/maphash"

const (
	cacheSize     = 1 << 13
	maxCachedWord = 22
)

// A wordEntry remembers the ids of one short word.
type wordEntry struct {
	hash uint64
	len  uint8
	n    uint8
	word [maxCachedWord]byte
	ids  [6]int32
}

// state is what one call of Encode works with; states are reused through a pool.
type state struct {
	seed    maphash.Seed
	cache   []wordEntry // direct mapped
	symbols []symbol
	heap    []uint64
	text    []byte
	matches []match
	pieces  [2][]piece
	lattice lattice
	steps   budget // left of this call
}

func (t *Tokenizer) newState() *state {
	if st, ok := t.states.Get().(*state); ok {
		return st
	}
	return &state{seed: maphash.MakeSeed(), cache: make([]wordEntry, cacheSize)}
}

// maxKept bounds the scratch memory that stays with a tokenizer after a very
// long text.
const maxKept = 1 << 16

func (t *Tokenizer) release(st *state) {
	if cap(st.symbols) > maxKept {
		st.symbols, st.heap = nil, nil
	}
	if cap(st.text) > 16*maxKept {
		st.text = nil
	}
	st.lattice.release()
	t.states.Put(st)
}
