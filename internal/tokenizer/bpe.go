package tokenizer

import (
	"hash/maphash"
	"strings"
	"unicode/utf8"
)

// A model turns one word into ids.
type model interface {
	encode(st *state, dst []int32, word string) []int32
}

// bpe is byte-pair encoding: the adjacent pair whose merge has the lowest rank
// is merged first, the leftmost of equals, until no pair has a merge
// (Sennrich et al. 2016, arXiv:1508.07909).
type bpe struct {
	tokens *stringTable // raw bytes of a byte-level vocabulary, else its text
	merges *pairTable   // nil: the rank of a pair is the rank of the joined token
	ranks  []uint32     // with merges nil: by id, lower merges first; noRank: never

	bytes        bool // words are cut into bytes instead of characters
	byteIDs      [256]int32
	byteFallback bool  // characters outside the vocabulary become byte tokens
	unk          int32 // -1: none
	fuseUnk      bool
	vanish       bool   // nothing stands for a character outside the vocabulary
	ignoreMerges bool   // a word that is a token is that token
	prefix       string // of characters that do not begin a word
	suffix       string // of characters that end one

	// spaceCut lets words be cut before "▁", unless it follows one of joined:
	// no token holds "▁" behind any other character, so no merge can cross.
	spaceCut bool
	joined   map[rune]bool
}

const noRank = ^uint32(0)

// pair returns the rank and id that two neighbours merge to; noRank is none.
func (m *bpe) pair(word string, a, b *symbol) (uint32, int32) {
	if m.merges != nil {
		if a.id < 0 || b.id < 0 {
			return noRank, 0
		}
		if rank, id, ok := m.merges.find(a.id, b.id); ok {
			return rank, id
		}
		return noRank, 0
	}
	if b.end-a.start > int32(m.tokens.maxLen) {
		return noRank, 0
	}
	if id, ok := m.tokens.find(word[a.start:b.end]); ok {
		return m.ranks[id], id
	}
	return noRank, 0
}

// A symbol is a stretch of a word and the token that it is so far; unmerged
// symbols outside the vocabulary have a negative id.
type symbol struct {
	id         int32
	start, end int32
	prev, next int32 // neighbours' indices; -1 at the ends
	rank       uint32
	merged     int32 // what this symbol and the next would become
}

const idUnknown, idGone = -1, -2

func (m *bpe) encode(st *state, dst []int32, word string) []int32 {
	if !m.spaceCut {
		return m.encodeWord(st, dst, word)
	}
	start := 0
	for i := 1; i < len(word); {
		k := strings.Index(word[i:], spaceMark)
		if k < 0 {
			break
		}
		i += k
		if r, _ := utf8.DecodeLastRuneInString(word[:i]); !m.joined[r] && i > start {
			dst = m.encodeWord(st, dst, word[start:i])
			start = i
		}
		i += len(spaceMark)
	}
	return m.encodeWord(st, dst, word[start:])
}

func (m *bpe) encodeWord(st *state, dst []int32, word string) []int32 {
	if word == "" {
		return dst
	}
	if len(word) > maxCachedWord {
		return m.merge(st, dst, word)
	}
	h := maphash.String(st.seed, word)
	e := &st.cache[h%cacheSize]
	if e.hash == h && string(e.word[:e.len]) == word {
		return append(dst, e.ids[:e.n]...)
	}
	n := len(dst)
	dst = m.merge(st, dst, word)
	if len(dst)-n <= len(e.ids) {
		e.hash, e.len = h, uint8(copy(e.word[:], word))
		e.n = uint8(copy(e.ids[:], dst[n:]))
	}
	return dst
}

func (m *bpe) merge(st *state, dst []int32, word string) []int32 {
	if m.ignoreMerges {
		if id, ok := m.tokens.find(word); ok {
			return append(dst, id)
		}
	}
	st.symbols = m.split(st.symbols[:0], word)
	syms := st.symbols
	if len(syms) <= 24 {
		syms = m.mergeShort(syms, word)
	} else {
		m.mergeLong(st, word)
	}
	return m.emit(dst, syms, word)
}

// split cuts a word into its first symbols.
func (m *bpe) split(syms []symbol, word string) []symbol {
	for i := 0; i < len(word); {
		n := 1
		id := m.byteIDs[word[i]]
		if !m.bytes {
			_, n = utf8.DecodeRuneInString(word[i:])
			id = m.character(word, i, i+n)
		}
		if id < 0 && m.vanish {
			i += n // its neighbours become neighbours
			continue
		}
		k := int32(len(syms))
		syms = append(syms, symbol{id: id, start: int32(i), end: int32(i + n), prev: k - 1, next: k + 1})
		i += n
	}
	if len(syms) > 0 {
		syms[len(syms)-1].next = -1
	}
	return syms
}

func (m *bpe) character(word string, i, end int) int32 {
	c := word[i:end]
	if i > 0 && m.prefix != "" {
		c = m.prefix + c
	}
	if end == len(word) && m.suffix != "" {
		c += m.suffix
	}
	if id, ok := m.tokens.find(c); ok {
		return id
	}
	return idUnknown
}

// mergeShort scans for the best pair each time; for words this is fastest.
func (m *bpe) mergeShort(syms []symbol, word string) []symbol {
	for i := 0; i+1 < len(syms); i++ {
		syms[i].rank, syms[i].merged = m.pair(word, &syms[i], &syms[i+1])
	}
	for len(syms) > 1 {
		best, rank := -1, uint32(noRank)
		for i := range syms[:len(syms)-1] {
			if syms[i].rank < rank {
				best, rank = i, syms[i].rank
			}
		}
		if best < 0 {
			break
		}
		s := &syms[best]
		s.id, s.end = s.merged, syms[best+1].end
		copy(syms[best+1:], syms[best+2:])
		syms = syms[:len(syms)-1]
		if best+1 < len(syms) {
			s.rank, s.merged = m.pair(word, s, &syms[best+1])
		}
		if best > 0 {
			p := &syms[best-1]
			p.rank, p.merged = m.pair(word, p, s)
		}
	}
	return syms
}

// mergeLong keeps the pairs in a heap of rank << 32 | position, so that long
// runs take n log n time.
func (m *bpe) mergeLong(st *state, word string) {
	syms, heap := st.symbols, st.heap[:0]
	push := func(i int32) {
		s := &syms[i]
		if s.next < 0 {
			s.rank = noRank
			return
		}
		s.rank, s.merged = m.pair(word, s, &syms[s.next])
		if s.rank != noRank {
			heap = heapPush(heap, uint64(s.rank)<<32|uint64(i))
		}
	}
	for i := range syms {
		s := &syms[i]
		s.rank = noRank
		if s.next >= 0 {
			s.rank, s.merged = m.pair(word, s, &syms[s.next])
		}
		if s.rank != noRank {
			heap = append(heap, uint64(s.rank)<<32|uint64(i))
		}
	}
	heapInit(heap)
	for len(heap) > 0 {
		var top uint64
		top, heap = heapPop(heap)
		s := &syms[uint32(top)]
		if s.id == idGone || s.rank != uint32(top>>32) || s.rank == noRank {
			continue // merged since
		}
		next := &syms[s.next]
		s.id, s.end, s.next = s.merged, next.end, next.next
		next.id = idGone
		if s.next >= 0 {
			syms[s.next].prev = int32(uint32(top))
		}
		push(int32(uint32(top)))
		if s.prev >= 0 {
			push(s.prev)
		}
	}
	st.heap = heap
}

// emit appends the ids of the symbols that are left.
func (m *bpe) emit(dst []int32, syms []symbol, word string) []int32 {
	unknown := false // the symbol before was unknown
	for i := range syms {
		s := &syms[i]
		switch {
		case s.id >= 0:
			dst, unknown = append(dst, s.id), false
		case s.id == idUnknown:
			if m.byteFallback {
				if out, ok := m.appendBytes(dst, word[s.start:s.end]); ok {
					dst, unknown = out, false
					continue
				}
			}
			if m.unk >= 0 && !(unknown && m.fuseUnk) {
				dst = append(dst, m.unk)
			}
			unknown = true
		}
	}
	return dst
}

// appendBytes appends the byte tokens of s; ok is false if one is missing.
func (m *bpe) appendBytes(dst []int32, s string) (out []int32, ok bool) {
	n := len(dst)
	for i := range len(s) {
		id := m.byteIDs[s[i]]
		if id < 0 {
			return dst[:n], false
		}
		dst = append(dst, id)
	}
	return dst, true
}

func heapInit(h []uint64) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		heapDown(h, i)
	}
}

func heapPush(h []uint64, x uint64) []uint64 {
	h = append(h, x)
	for i := len(h) - 1; i > 0; {
		p := (i - 1) / 2
		if h[p] <= h[i] {
			break
		}
		h[p], h[i] = h[i], h[p]
		i = p
	}
	return h
}

func heapPop(h []uint64) (uint64, []uint64) {
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	heapDown(h, 0)
	return top, h
}

func heapDown(h []uint64, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
