//go:build !purego && (amd64 || arm64)

package matmul

import (
	"sync"
	"unsafe"

	"github.com/baleenrun/baleen/internal/quant"
)

// The way through a product that all assembly kernels share. Quantized weights are expanded one segment of one or two
// groups at a time, into bytes that the dot product instructions take and float32 scales, and then multiplied from the
// first-level cache with all rows of activations.

type (
	// expandFunc expands blocks of a group, starting at the unit w, to q and s, where blocks lie qstep and sstep bytes
	// apart. Memory ahead bytes further on is fetched into the second-level cache.
	expandFunc func(w *byte, blocks int, q *byte, qstep int, s *byte, sstep int, ahead int)
	// tileFunc multiplies an expanded segment of its number of groups with tiles times its number of rows; the sums are
	// added to y, or with first=1 replace it.
	tileFunc func(q, s *byte, blocks int, a *byte, astride int, y *float32, ystride, tiles, first int)
	// fewFunc multiplies whole packed groups, wstride bytes apart, with its number of rows; y is overwritten. For each
	// line of weights one is fetched into the second-level cache, in the order of memory, from ahead bytes further on.
	fewFunc func(w *byte, count, wstride, blocks int, a *byte, astride int, y *float32, ystride, ahead int)
	// floatFunc does the same as tileFunc with n packed float weights of each of its groups, which lie wstride bytes
	// apart.
	floatFunc func(w *byte, wstride int, n int, a *byte, astride int, y *float32, ystride, tiles, first int)
)

const (
	maxTile = 12 // rows of the largest tile
	maxPair = 4  // groups of the largest tile
	maxFew  = 12 // rows up to which there are kernels that read packed weights
)

// native holds the assembly kernels of an instruction set.
type native struct {
	expand [len(formats)]expandFunc
	few    [len(formats)][maxFew + 1]fewFunc
	tiles  [len(formats)]*tileSet
	floats [3][maxPair + 1][maxTile + 1]floatFunc
	// pair is how many groups of quantized weights are expanded together, wide the number of rows of the largest tile
	// of so many; pairFloat and wideFloat are the same for float weights, pairOne for one row of activations.
	pair, wide, pairFloat, wideFloat, pairOne int
}

// tileSet holds tiles by their number of groups and of rows of activations.
type tileSet [maxPair + 1][maxTile + 1]tileFunc

// Rows of activations that are multiplied with a segment before the next is expanded: their segments, 768 bytes each,
// stay in the second-level cache beside it.
const rowBlock = 256

// scratch is what one call of Mul works in.
type scratch struct {
	memory [align + 2*segmentBlocks*(512+4*64) + rowBlock*Lanes*4]byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// parts returns the aligned areas of the scratch: values, scales, and outputs of a group that is not full.
func (s *scratch) parts() (q, scales *byte, y []float32) {
	at := int(-uintptr(unsafe.Pointer(&s.memory)) & (align - 1))
	q, scales = &s.memory[at], &s.memory[at+2*segmentBlocks*512]
	return q, scales, unsafe.Slice((*float32)(unsafe.Pointer(&s.memory[at+2*segmentBlocks*(512+4*64)])), rowBlock*Lanes)
}

// rows is a block of rows of activations, and where their outputs for groups from g0 on go.
type rows struct {
	n         int
	act       unsafe.Pointer
	actStride int
	y         unsafe.Pointer // of row 0, group g0
	yStride   int            // bytes
	g0, g1    int
}

// output returns the address of row 0's outputs of group g.
func (r rows) output(g int) unsafe.Pointer { return unsafe.Add(r.y, (g-r.g0)*Lanes*4) }

// blocks calls f for blocks of rows and the full groups, and then for a last group that is not full, whose outputs go
// into tmp and from there to y.
func (c call) blocks(m *Matrix, tmp []float32, f func(r rows)) {
	full := c.g1
	if m.lanes(full-1) < Lanes {
		full--
	}
	for r0 := 0; r0 < c.rows; r0 += rowBlock {
		r := rows{n: min(rowBlock, c.rows-r0), act: unsafe.Pointer(&c.act[r0*c.actStride]), actStride: c.actStride}
		if c.g0 < full {
			r.g0, r.g1 = c.g0, full
			r.y, r.yStride = unsafe.Pointer(&c.y[r0*c.yStride+c.g0*Lanes]), 4*c.yStride
			f(r)
		}
		if full == c.g1 {
			continue
		}
		r.g0, r.g1 = full, c.g1
		r.y, r.yStride = unsafe.Pointer(&tmp[0]), Lanes*4
		f(r)
		lanes := m.lanes(full)
		for i := range r.n {
			copy(c.y[(r0+i)*c.yStride+full*Lanes:][:lanes], tmp[i*Lanes:])
		}
	}
}

// fewRows is the number of rows up to which a group's weights are read in one go, segment after segment, because
// reading them takes longest. With more rows a segment of the activations is kept in the cache for all groups.
const fewRows = 12

// cachedActs is how many bytes of activations stay in the second-level cache while a group of weights is multiplied
// with all of them; outputs are then brought in only once. More activations are taken segment by segment.
const cachedActs = 512 << 10

// The number of rows up to which kernels for few rows, in passes, are faster than expanding. Processors differ: on Zen
// 4 they stay ahead up to 100 rows, on Intel up to 32, or 20 of formats with two scales in a block.
const (
	fewPasses         = 32
	fewPassesTwoScale = 24
)

func (n *native) mulQuant(m *Matrix, c call) {
	if n.expand[m.form.index()] == nil { // a format that has only the plain code yet
		mulQuantGo(m, c)
		return
	}
	s := scratches.Get().(*scratch)
	q, scales, tmp := s.parts()
	i := m.form.index()
	w := quantWork{n: n, m: m, expand: n.expand[i], few: &n.few[i], tiles: n.tiles[i], q: q, scales: scales}
	w.sstep = m.form.shape.vectors() * 64
	w.ahead = c.ahead
	c.blocks(m, tmp, w.run)
	scratches.Put(s)
}

// quantWork is a product with quantized weights.
type quantWork struct {
	n         *native
	m         *Matrix
	expand    expandFunc
	few       *[maxFew + 1]fewFunc
	tiles     *tileSet
	q, scales *byte
	sstep     int // bytes of the scales of one block of one group
	ahead     int // how far in bytes weights are fetched ahead, in the order of memory
}

func (w *quantWork) run(r rows) {
	blocks := w.m.K / 32
	passes := fewPasses
	if w.m.form.shape.scales() == 2 {
		passes = fewPassesTwoScale
	}
	if r.n <= passes && w.few[1] != nil {
		w.runFew(r, blocks)
		return
	}
	pair := w.n.pair
	if r.n*blocks*recordBytes <= cachedActs {
		for g := r.g0; g < r.g1; g += pair {
			for b := 0; b < blocks; b += segmentBlocks {
				ahead := w.ahead
				if w.m.form.unit(b)+ahead >= w.m.Stride {
					ahead += (pair - 1) * w.m.Stride // the groups that follow are expanded beside this one
				}
				w.segment(r, g, min(pair, r.g1-g), b, min(segmentBlocks, blocks-b), ahead)
			}
		}
		return
	}
	for b := 0; b < blocks; b += segmentBlocks {
		for g := r.g0; g < r.g1; g += pair {
			w.segment(r, g, min(pair, r.g1-g), b, min(segmentBlocks, blocks-b), pair*w.m.Stride)
		}
	}
}

// runFew multiplies straight from the packed form. Rows that need several passes take a block of groups at a time,
// small enough to stay in the second-level cache from the first pass, which alone fetches, to the last. No call takes
// long: assembly cannot be preempted.
func (w *quantWork) runFew(r rows, blocks int) {
	const (
		bytes = 48 << 10 // of weights
		most  = 32768    // blocks times rows, some 10 ns each
	)
	if r.n <= maxFew {
		groups := max(1, most/(blocks*r.n))
		for g := r.g0; g < r.g1; g += groups {
			w.fewTile(r, 0, r.n, g, min(groups, r.g1-g), blocks, true)
		}
		return
	}
	groups := max(1, bytes/w.m.Stride)
	for g := r.g0; g < r.g1; g += groups {
		for from := 0; from < r.n; {
			size, tiles := split(r.n-from, maxFew)
			for range tiles {
				w.fewTile(r, from, size, g, min(groups, r.g1-g), blocks, from == 0)
				from += size
			}
		}
	}
}

// fewTile multiplies count groups from g on with n rows. With fetch it brings them in from memory.
func (w *quantWork) fewTile(r rows, from, n, g, count, blocks int, fetch bool) {
	ahead := 0
	if fetch {
		ahead = w.ahead
	}
	act := (*byte)(unsafe.Add(r.act, from*r.actStride))
	y := (*float32)(unsafe.Add(r.output(g), from*r.yStride))
	w.few[n](&w.m.Data[g*w.m.Stride], count, w.m.Stride, blocks, act, r.actStride, y, r.yStride, ahead)
}

// segment multiplies n blocks from block b on of count groups from g on. Memory ahead bytes further on is
// fetched meanwhile.
func (w *quantWork) segment(r rows, g, count, b, n, ahead int) {
	f := w.m.form
	at := f.unit(b)
	for i := range count {
		group := unsafe.Pointer(&w.m.Data[(g+i)*w.m.Stride+at])
		q := (*byte)(unsafe.Add(unsafe.Pointer(w.q), 512*i))
		s := (*byte)(unsafe.Add(unsafe.Pointer(w.scales), w.sstep*i))
		w.expand((*byte)(group), n, q, 512*count, s, w.sstep*count, ahead)
	}
	act, y, first := unsafe.Add(r.act, b*recordBytes), r.output(g), boolInt(b == 0)
	for from := 0; from < r.n; {
		size, tiles := split(r.n-from, w.n.wide)
		for w.tiles[count][size] == nil {
			size--
			tiles = (r.n - from) / size
		}
		w.tiles[count][size](w.q, w.scales, n, (*byte)(unsafe.Add(act, from*r.actStride)), r.actStride,
			(*float32)(unsafe.Add(y, from*r.yStride)), r.yStride, tiles, first)
		from += size * tiles
	}
}

// split divides n rows into as few tiles of at most wide rows as possible, all of one size or one less, and returns the
// larger size and how many tiles have it.
func split(n, wide int) (size, tiles int) {
	count := (n + wide - 1) / wide
	size = (n + count - 1) / count
	return size, n - (size-1)*count
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mulFloat multiplies float weights, which need no expansion.
func (n *native) mulFloat(m *Matrix, c call) {
	s := scratches.Get().(*scratch)
	_, _, tmp := s.parts()
	w := floatWork{n: n, m: m, size: floatBytes(m.Type)}
	switch m.Type {
	case quant.F32:
		w.kernels = &n.floats[0]
	case quant.F16:
		w.kernels = &n.floats[1]
	case quant.BF16:
		w.kernels = &n.floats[2]
	}
	c.blocks(m, tmp, w.run)
	scratches.Put(s)
}

// floatWork is a product with float weights.
type floatWork struct {
	n       *native
	m       *Matrix
	size    int // bytes of a weight
	kernels *[maxPair + 1][maxTile + 1]floatFunc
}

func (w *floatWork) run(r rows) {
	const segment = 32 * segmentBlocks
	pair := w.n.pairFloat
	if r.n == 1 {
		pair = w.n.pairOne
	}
	if r.n <= fewRows {
		for g := r.g0; g < r.g1; g += pair {
			for k := 0; k < w.m.K; k += segment {
				w.segment(r, g, min(pair, r.g1-g), k, min(segment, w.m.K-k))
			}
		}
		return
	}
	for k := 0; k < w.m.K; k += segment {
		for g := r.g0; g < r.g1; g += pair {
			w.segment(r, g, min(pair, r.g1-g), k, min(segment, w.m.K-k))
		}
	}
}

// segment multiplies n inputs from k on of count groups from g on.
func (w *floatWork) segment(r rows, g, count, k, n int) {
	act, first := unsafe.Add(r.act, 4*k), boolInt(k == 0)
	for count > 0 {
		groups := count
		for w.kernels[groups][1] == nil {
			groups--
		}
		y := r.output(g)
		weights := &w.m.Data[g*w.m.Stride+k*w.size*Lanes]
		for from := 0; from < r.n; {
			size, tiles := split(r.n-from, w.n.wideFloat)
			for w.kernels[groups][size] == nil {
				size--
				tiles = (r.n - from) / size
			}
			w.kernels[groups][size](weights, w.m.Stride, n, (*byte)(unsafe.Add(act, from*r.actStride)), r.actStride,
				(*float32)(unsafe.Add(y, from*r.yStride)), r.yStride, tiles, first)
			from += size * tiles
		}
		g += groups
		count -= groups
	}
}

// quantizeWith makes a quantizer of rows from one of whole blocks.
func quantizeWith(blocks func(x *float32, dst *byte, blocks int)) func(dst []byte, x []float32) {
	return func(dst []byte, x []float32) {
		if n := len(x) / 32; n > 0 {
			blocks(&x[0], unsafe.SliceData(dst), n)
			dst, x = dst[n*recordBytes:], x[32*n:]
		}
		quantizeGo(dst, x)
	}
}
