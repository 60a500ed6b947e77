package tokenizer

import "hash/maphash"

// stringTable maps strings to dense ids and back. All strings lie in one block
// of memory, so that a vocabulary of 250,000 tokens loads fast and costs the
// garbage collector nothing.
type stringTable struct {
	seed   maphash.Seed
	data   []byte
	ends   []uint32 // ends[id] is the end of id's string in data
	slots  []uint64 // upper half of the hash << 32 | id + 1; 0 is free
	maxLen int      // longest string that can be found, in bytes
}

func newStringTable(n, bytes int) *stringTable {
	size := 16
	for size < n+n/2 {
		size *= 2
	}
	return &stringTable{
		seed:  maphash.MakeSeed(),
		data:  make([]byte, 0, bytes),
		ends:  make([]uint32, 0, n),
		slots: make([]uint64, size),
	}
}

// add appends s as the next id. Unless findable, find never returns it. The
// last of several equal strings wins.
func (t *stringTable) add(s []byte, findable bool) int32 {
	id := int32(len(t.ends))
	t.data = append(t.data, s...)
	t.ends = append(t.ends, uint32(len(t.data)))
	if findable {
		t.index(id)
	}
	return id
}

func (t *stringTable) index(id int32) {
	if len(t.ends) > len(t.slots)*3/4 {
		t.grow()
	}
	s := t.get(id)
	t.maxLen = max(t.maxLen, len(s))
	h := maphash.Bytes(t.seed, s)
	tag := h >> 32 << 32
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		e := t.slots[i]
		if e == 0 || e&^0xffffffff == tag && string(t.get(int32(uint32(e))-1)) == string(s) {
			t.slots[i] = tag | uint64(id+1)
			return
		}
	}
}

func (t *stringTable) grow() {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	mask := uint64(len(t.slots) - 1)
	for _, e := range old {
		if e == 0 {
			continue
		}
		h := maphash.Bytes(t.seed, t.get(int32(uint32(e))-1))
		i := h & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = e
	}
}

// get returns the string of an id in range.
func (t *stringTable) get(id int32) []byte {
	var start uint32
	if id > 0 {
		start = t.ends[id-1]
	}
	end := t.ends[id]
	return t.data[start:end:end]
}

func (t *stringTable) len() int { return len(t.ends) }

func (t *stringTable) find(s string) (int32, bool) {
	if len(s) > t.maxLen {
		return 0, false
	}
	return t.findHash(maphash.String(t.seed, s), s)
}

func (t *stringTable) findBytes(s []byte) (int32, bool) {
	if len(s) > t.maxLen {
		return 0, false
	}
	h := maphash.Bytes(t.seed, s)
	tag := h >> 32 << 32
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		e := t.slots[i]
		if e == 0 {
			return 0, false
		}
		if e&^0xffffffff == tag {
			if id := int32(uint32(e)) - 1; string(t.get(id)) == string(s) {
				return id, true
			}
		}
	}
}

func (t *stringTable) findHash(h uint64, s string) (int32, bool) {
	tag := h >> 32 << 32
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		e := t.slots[i]
		if e == 0 {
			return 0, false
		}
		if e&^0xffffffff == tag {
			if id := int32(uint32(e)) - 1; string(t.get(id)) == s {
				return id, true
			}
		}
	}
}

// pairTable maps a pair of ids to the rank of their merge and the merged id.
type pairTable struct {
	slots []pairSlot
	shift uint
}

type pairSlot struct {
	key    uint64 // left << 32 | right, plus 1; 0 is free
	rank   uint32
	merged int32
}

func newPairTable(n int) *pairTable {
	bits := uint(4)
	for 1<<bits < n+n/2 {
		bits++
	}
	return &pairTable{slots: make([]pairSlot, 1<<bits), shift: 64 - bits}
}

func pairKey(left, right int32) uint64 { return (uint64(uint32(left))<<32 | uint64(uint32(right))) + 1 }

// add sets the merge of a pair; a later one replaces an earlier one. The
// number of pairs is what newPairTable was told at most.
func (t *pairTable) add(left, right int32, rank uint32, merged int32) {
	key := pairKey(left, right)
	mask := uint64(len(t.slots) - 1)
	i := key * 0x9E3779B97F4A7C15 >> t.shift
	for t.slots[i].key != 0 && t.slots[i].key != key {
		i = (i + 1) & mask
	}
	t.slots[i] = pairSlot{key, rank, merged}
}

func (t *pairTable) find(left, right int32) (rank uint32, merged int32, ok bool) {
	key := pairKey(left, right)
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9E3779B97F4A7C15 >> t.shift; ; i = (i + 1) & mask {
		s := &t.slots[i&mask]
		if s.key == key {
			return s.rank, s.merged, true
		}
		if s.key == 0 {
			return 0, 0, false
		}
	}
}
