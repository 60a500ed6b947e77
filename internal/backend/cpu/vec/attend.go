package vec

import (
	"math"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend"
)

// ChunkTokens is the number of keys that attention treats as one: softmax and weighted sum are computed for the
// keys of a chunk, chunks lie at multiples of ChunkTokens, and their results are merged in order.
const ChunkTokens = segment

const pageTokens = backend.PageTokens

// scoreStride is the distance of rows of scores: an odd number of cache lines, so that the scores of all rows for one
// key do not fall into the same few sets of the caches.
const scoreStride = segment + Lanes

// AttendArgs is one work item of attention: consecutive query rows of one sequence, and the query heads that share
// one key head. Keys and values of the rows themselves are stored before.
type AttendArgs struct {
	// The pages: page number p, Pages[position/PageTokens], starts at p*PageStride in Base. KOff is where the
	// head's keys lie in a page, as [PageTokens/16][KDim][16]; VOff where its values lie, as [PageTokens][VDim].
	// With VInK the values are the first VDim dimensions of the keys and VOff is not used. The offsets, and
	// PageStride, are multiples of 4. Entries of Pages before the window are not read.
	Base       []byte
	Pages      []int32
	PageStride int
	KOff, VOff int
	Type       backend.KVType
	KDim, VDim int
	VInK       bool

	// The queries: row r, at position Pos+r, has its head h (KDim values) at r*QStride+h*KDim; its result
	// (VDim values) goes to r*OutStride+h*VDim.
	Rows, Pos, Heads   int
	Q, Out             []float32
	QStride, OutStride int

	Scale   float32
	SoftCap float32   // 0: none
	Window  int       // 0: all keys up to the row's own; else the last Window of them
	Sinks   []float32 // one per head, or nil

	// Scratch is working memory of at least AttendScratchBytes, aligned to 4 bytes. Its contents do not matter.
	Scratch []byte
}

// AttendScratchBytes is the size of the scratch memory for work items of up to rows query rows.
func AttendScratchBytes(rows, heads, kdim, vdim int) int {
	n := rows * heads
	vp := padded(vdim)
	return 4 * (n*(kdim+scoreStride+2*vp+4) + 2*padded(n) + pageTokens*max(kdim, vp) + pageTokens*vp)
}

// TileRows is the number of query rows per work item that suits a prompt: enough rows to use each loaded key
// many times, few enough that scores stay in the second-level cache.
func TileRows(heads int) int { return max(1, 64/heads) }

func padded(n int) int { return (n + Lanes - 1) &^ (Lanes - 1) }

// Chunks returns the chunks [first, end) that the rows of the work item read.
func (a *AttendArgs) Chunks() (first, end int) {
	lo, _ := a.span(0)
	_, hi := a.span(a.Rows - 1)
	return lo / segment, (hi + segment - 1) / segment
}

// span returns the keys [lo, hi) of query row r.
func (a *AttendArgs) span(r int) (lo, hi int) {
	hi = a.Pos + r + 1
	if a.Window > 0 {
		lo = max(0, hi-a.Window)
	}
	return lo, hi
}

// PartFloats is the number of float32 values that the partial results of one chunk take.
func (a *AttendArgs) PartFloats() int { return PartFloats(a.Rows, a.Heads, a.VDim) }

// PartFloats is the same for so many query rows and heads.
func PartFloats(rows, heads, vdim int) int { return rows * heads * (2 + vdim) }

// attention is the working state of a work item, cut out of its scratch memory. Row i of n is head i%Heads of
// query row i/Heads.
type attention struct {
	AttendArgs // a copy, so that the caller's may stay on its stack
	k          *Kernels
	n          int
	vp         int     // VDim rounded up to Lanes
	rest       float32 // what weights are computed from is multiplied by it: Scale, or 1 where scores are scaled and capped before
	from, to   int     // pages of the present chunk
	end        int     // of all chunks

	q      []float32 // by tile of rows: [KDim][rows of the tile]
	scores []float32 // [n][scoreStride]
	chunk  []float32 // [n][vp]: weighted sums of the chunk
	state  []float32 // [n][vp]: those of the chunks merged so far
	m, l   []float32 // [n]: maximum and sum so far; l is 0 before the first chunk
	cm, cl []float32 // [n]: those of the chunk; cl is 0 where the row reads no key of it
	fm, fc []float32 // [n, padded]: factors of state and chunk when they are merged
	kPage  []float32 // one page's keys as float32
	vPage  []float32 // one page's values as float32: [PageTokens][vp]
}

// Attend computes the work item.
func (k *Kernels) Attend(a *AttendArgs) {
	var s attention
	s.init(k, a)
	s.packQueries()
	s.start()
	for c, end := a.Chunks(); c < end; c++ {
		s.run(c)
		s.merge()
	}
	s.finish()
}

// AttendPart computes the chunks [c0, c1) of the work item and leaves their partial results in part, which holds
// PartFloats for each chunk from the first one of Chunks on. Different chunks may be computed at the same time,
// each call with its own Scratch.
func (k *Kernels) AttendPart(a *AttendArgs, c0, c1 int, part []float32) {
	var s attention
	s.init(k, a)
	s.packQueries()
	first, _ := a.Chunks()
	for c := c0; c < c1; c++ {
		s.run(c)
		p := part[(c-first)*a.PartFloats():]
		for i := range s.n {
			row := p[i*(2+a.VDim):][:2+a.VDim]
			row[0], row[1] = s.cm[i], s.cl[i]
			copy(row[2:], s.chunk[i*s.vp:])
		}
	}
}

// AttendMerge merges the partial results of all chunks, in order, and writes Out. The result has the bits of
// Attend's.
func (k *Kernels) AttendMerge(a *AttendArgs, part []float32) {
	var s attention
	s.init(k, a)
	s.start()
	first, end := a.Chunks()
	for c := first; c < end; c++ {
		p := part[(c-first)*a.PartFloats():]
		for i := range s.n {
			row := p[i*(2+a.VDim):][:2+a.VDim]
			s.cm[i], s.cl[i] = row[0], row[1]
			o := s.chunk[i*s.vp:][:s.vp]
			clear(o[copy(o, row[2:]):])
		}
		s.merge()
	}
	s.finish()
}

func (s *attention) init(k *Kernels, a *AttendArgs) {
	s.AttendArgs, s.k = *a, k
	s.n, s.vp, s.rest = a.Rows*a.Heads, padded(a.VDim), a.Scale
	if a.SoftCap > 0 {
		s.rest = 1
	}
	_, last := a.span(a.Rows - 1)
	s.end = (last + pageTokens - 1) / pageTokens
	free := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(a.Scratch))), len(a.Scratch)/4)
	take := func(n int) []float32 {
		x := free[:n:n]
		free = free[n:]
		return x
	}
	s.scores = take(s.n * scoreStride)
	s.chunk = take(s.n * s.vp)
	s.state = take(s.n * s.vp)
	s.q = take(s.n * a.KDim)
	s.m, s.l, s.cm, s.cl = take(s.n), take(s.n), take(s.n), take(s.n)
	s.fm, s.fc = take(padded(s.n)), take(padded(s.n))
	s.kPage = take(pageTokens * max(a.KDim, s.vp))
	s.vPage = take(pageTokens * s.vp)
}

// tile returns how many of the rows from i on, of n, a kernel takes at once: tiles of about the same size.
func tile(i, n, most int) int {
	tiles := (n - i + most - 1) / most
	return (n - i + tiles - 1) / tiles
}

const (
	qkRows = 8
	pvRows = 4
)

func (s *attention) packQueries() {
	for i := 0; i < s.n; {
		t := tile(i, s.n, qkRows)
		dst := s.q[i*s.KDim:][:t*s.KDim]
		var src [qkRows][]float32
		for r := range t {
			src[r] = s.Q[(i+r)/s.Heads*s.QStride+(i+r)%s.Heads*s.KDim:][:s.KDim]
		}
		for r := 0; r < t; r += 4 {
			interleave(dst[r:], t, src[r:min(r+4, t)])
		}
		i += t
	}
}

// interleave writes src[r][d] to dst[d*step+r].
func interleave(dst []float32, step int, src [][]float32) {
	if len(src) == 4 {
		a, b, c, e := src[0], src[1], src[2], src[3]
		b, c, e = b[:len(a)], c[:len(a)], e[:len(a)]
		for d := range a {
			out := (*[4]float32)(dst[d*step:])
			out[0], out[1], out[2], out[3] = a[d], b[d], c[d], e[d]
		}
		return
	}
	for r, x := range src {
		for d, v := range x {
			dst[d*step+r] = v
		}
	}
}

// start sets the state before the first chunk: empty, or the sink as a key of score sink and value zero.
func (s *attention) start() {
	for i := range s.n {
		s.m[i], s.l[i] = 0, 0
		if s.Sinks != nil {
			s.m[i], s.l[i] = s.Sinks[i%s.Heads], 1
		}
	}
	clear(s.state)
}

// merge joins the results of one more chunk to the state.
func (s *attention) merge() {
	clear(s.fm)
	clear(s.fc)
	for i := range s.n {
		top := maxf(s.m[i], s.cm[i])
		s.fm[i], s.fc[i] = s.m[i]-top, s.cm[i]-top
	}
	exp := s.k.ops.unary[uExp]
	exp(s.fm, s.fm)
	exp(s.fc, s.fc)
	for i := range s.n {
		if s.cl[i] == 0 {
			continue // the row reads no key of the chunk
		}
		state, o := s.state[i*s.vp:][:s.vp], s.chunk[i*s.vp:][:s.vp]
		if s.l[i] == 0 {
			s.m[i], s.l[i] = s.cm[i], s.cl[i]
			copy(state, o)
			continue
		}
		s.m[i] = maxf(s.m[i], s.cm[i])
		s.l[i] = fma(s.cl[i], s.fc[i], float32(s.l[i]*s.fm[i]))
		s.k.ops.axpby(state, o, s.fm[i], s.fc[i])
	}
}

func (s *attention) finish() {
	for i := range s.n {
		state := s.state[i*s.vp:][:s.vp]
		s.k.ops.scale(state, state, 1/s.l[i])
		copy(s.Out[i/s.Heads*s.OutStride+i%s.Heads*s.VDim:][:s.VDim], state)
	}
}

// run computes one chunk for all rows: cm, cl, chunk.
func (s *attention) run(c int) {
	base := c * segment
	lo, _ := s.span(0)
	_, hi := s.span(s.Rows - 1)
	lo, hi = max(lo, base), min(hi, base+segment)
	s.from, s.to = lo/pageTokens, (hi+pageTokens-1)/pageTokens
	for p := s.from; p < s.to; p++ {
		s.scorePage(p, base)
	}
	s.softmax(base)
	clear(s.chunk)
	for p := s.from; p < s.to; p++ {
		s.sumPage(p, base)
	}
}

// within clips the keys of row i to the tokens [from, to) and returns them relative to from.
func (s *attention) within(i, from, to int) (lo, hi int) {
	lo, hi = s.span(i / s.Heads)
	lo, hi = max(lo, from)-from, min(hi, to)-from
	return lo, max(lo, hi)
}

func (s *attention) page(p, off int) *byte {
	return &s.Base[int(s.Pages[p])*s.PageStride+off]
}

// The kernels fetch what comes next from memory into the second-level cache: pages lie anywhere, so the processor does
// not foresee it, and the first level is full of what is worked on. With one tile of rows the keys' kernel fetches the
// next keys, and in the end the first values, the values' kernel the next values, and in the end the next chunk's first
// keys. With more tiles the keys' kernel fetches the next page's keys and the values behind them, spread over all
// tiles: a line every few cycles is more than memory gives. So it does with pages of float32, whose values' kernel
// fetches nothing.

// keysAhead returns what the keys' kernel fetches beside page p, and how many bytes.
func (s *attention) keysAhead(p int) (next *byte, bytes int) {
	elem := 2
	if s.Type == backend.KVF32 {
		elem = 4
	}
	keys, values := pageTokens*s.KDim*elem, pageTokens*s.VDim*elem
	switch {
	case s.n > qkRows || elem == 4:
		if p+1 == s.end {
			return nil, 0
		}
		if gap := s.VOff - s.KOff - keys; 0 <= gap && gap < 64 && !s.VInK { // values lie right behind the keys
			keys += gap + values
		}
		return s.page(p+1, s.KOff), keys
	case p+1 < s.to:
		return s.page(p+1, s.KOff), keys
	case s.VInK:
		return nil, 0
	}
	return s.page(s.from, s.VOff), values
}

// valuesAhead returns what the values' kernel fetches beside page p.
func (s *attention) valuesAhead(p int) *byte {
	switch {
	case s.n > qkRows || s.VInK || s.Type == backend.KVF32:
	case p+1 < s.to:
		return s.page(p+1, s.VOff)
	case p+1 < s.end:
		return s.page(p+1, s.KOff)
	}
	return nil
}

// distance returns how far away b is, or 0 for nothing.
func distance(a, b *byte) int {
	if b == nil {
		return 0
	}
	return int(uintptr(unsafe.Pointer(b)) - uintptr(unsafe.Pointer(a)))
}

// scorePage computes the dot products of the rows with all keys of page p. Those of keys that a row does not read
// are overwritten before use.
func (s *attention) scorePage(p, base int) {
	next, bytes := s.keysAhead(p)
	steps := (s.n + qkRows - 1) / qkRows * s.KDim
	keys := s.page(p, s.KOff)
	qk, elem := s.k.ops.qk16, 2
	switch {
	case s.Type == backend.KVF32:
		qk, elem = s.k.ops.qk32, 4
	case s.n >= s.k.widen.keys && s.KDim <= wideKDim:
		x := s.kPage[:pageTokens*s.KDim]
		s.k.ops.fromHalf(x, unsafe.Slice((*uint16)(unsafe.Pointer(keys)), len(x)))
		keys, qk, elem = (*byte)(unsafe.Pointer(&x[0])), s.k.ops.qk32, 4
	}
	from, pace, fetched := p*pageTokens, min((bytes+steps-1)/steps, pageTokens*elem), 0
	for i := 0; i < s.n; {
		t := tile(i, s.n, qkRows)
		_, last := s.span((i + t - 1) / s.Heads)
		first, _ := s.span(i / s.Heads)
		for d := 0; d < s.KDim; d += segment {
			dims := min(segment, s.KDim-d)
			k := skip(keys, d*Lanes*elem)
			if first < from+pageTokens && last > from {
				qk(
					&s.q[i*s.KDim+d*t],
					t,
					dims,
					k,
					s.KDim*Lanes*elem,
					&s.scores[i*scoreStride+from-base],
					4*scoreStride,
					d,
					distance(k, next)+fetched,
					pace,
				)
			}
			fetched += dims * pace
		}
		i += t
	}
}

// none is the score of a key that a row does not read.
var none = float32(math.Inf(-1))

// softmax turns the scores of a chunk into weights, and sets the chunk's maxima and sums. A row's maximum is found
// while the weights of the one before are computed: nothing waits for it then.
func (s *attention) softmax(base int) {
	for i := range s.n + 1 {
		if i < s.n {
			s.findMax(i, base)
		}
		if i > 0 {
			s.weigh(i-1, base)
		}
	}
}

// chunkScores returns the scores of row i, from its first key of the chunk to its last, with what lies between them and
// the next multiples of Lanes, and which of them count. There are none, and lo is hi, where the row reads no key of the
// chunk.
func (s *attention) chunkScores(i, base int) (x []float32, lo, hi int) {
	lo, hi = s.within(i, base, base+segment)
	if lo == hi {
		return nil, 0, 0 // a window may begin behind the chunk
	}
	b0 := lo &^ (Lanes - 1)
	return s.scores[i*scoreStride+b0 : i*scoreStride+padded(hi)], lo - b0, hi - b0
}

// findMax sets the maximum of row i, hides the scores that do not count, and caps the others.
func (s *attention) findMax(i, base int) {
	x, lo, hi := s.chunkScores(i, base)
	if lo == hi {
		s.cm[i] = none
		return
	}
	for j := range lo {
		x[j] = none
	}
	for j := hi; j < len(x); j++ {
		x[j] = none
	}
	if s.SoftCap > 0 {
		s.k.ops.scale(x, x, s.Scale)
		s.capScores(x[lo:hi])
	}
	var acc [Lanes]float32
	s.k.ops.maxOf(x, noescapeLanes(&acc))
	s.cm[i] = treeMax(&acc) * s.rest // the largest of the scaled scores, for rounding keeps their order
}

// weigh turns the scores of row i into weights, and sets their sum.
func (s *attention) weigh(i, base int) {
	x, lo, hi := s.chunkScores(i, base)
	if lo == hi {
		s.cl[i] = 0
		return
	}
	var acc [Lanes]float32
	s.k.ops.expSum(x, s.rest, s.cm[i], noescapeLanes(&acc))
	s.cl[i] = tree(&acc)
}

// capScores caps the scores that count; the excluded ones stay infinite.
func (s *attention) capScores(x []float32) { s.k.SoftCap(x, s.SoftCap) }

// sumPage adds the weighted values of page p to the chunk's sums of the rows that read it. Rows that read the
// same keys go together.
func (s *attention) sumPage(p, base int) {
	values, stride, pv := s.values(p)
	ahead := distance(values, s.valuesAhead(p))
	from := p * pageTokens
	for i := 0; i < s.n; {
		lo, hi := s.within(i, from, from+pageTokens)
		end := i + 1
		if l, h := s.within(s.n-1, from, from+pageTokens); l == lo && h == hi {
			end = s.n // both ends move one way, so all between them read the same
		}
		for ; end < s.n; end++ {
			if l, h := s.within(end, from, from+pageTokens); l != lo || h != hi {
				break
			}
		}
		for lo < hi && i < end {
			t := tile(i, end, pvRows)
			pv(&s.chunk[i*s.vp], 4*s.vp, t, s.vp, &s.scores[i*scoreStride+from-base+lo], 4*scoreStride, hi-lo,
				skip(values, lo*stride), stride, ahead)
			ahead = 0
			i += t
		}
		i = end
	}
}

// values returns the values of page p, the bytes from one to the next, and the kernel for them. Values whose length
// is not a multiple of Lanes, and those in keys, are copied out first.
func (s *attention) values(p int) (v *byte, stride int, pv func(o *float32, oStride, n, dims int, p *float32,
	pStride, keys int, v *byte, vStride, ahead int),
) {
	buf := (*byte)(unsafe.Pointer(&s.vPage[0]))
	switch {
	case s.VInK && s.Type == backend.KVF32:
		s.k.ops.turn32(&s.vPage[0], s.page(p, s.KOff), s.KDim, s.vp)
	case s.VInK:
		s.k.ops.turn16(&s.vPage[0], s.page(p, s.KOff), s.KDim, s.vp)
	case s.VDim == s.vp && s.Type == backend.KVF32:
		return s.page(p, s.VOff), 4 * s.vp, s.k.ops.pv32
	case s.VDim == s.vp && s.n >= s.k.widen.values:
		s.k.ops.fromHalf(s.vPage, unsafe.Slice((*uint16)(unsafe.Pointer(s.page(p, s.VOff))), len(s.vPage)))
	case s.VDim == s.vp:
		return s.page(p, s.VOff), 2 * s.vp, s.k.ops.pv16
	case s.Type == backend.KVF32:
		src := unsafe.Slice((*float32)(unsafe.Pointer(s.page(p, s.VOff))), pageTokens*s.VDim)
		for j := range pageTokens {
			row := s.vPage[j*s.vp:][:s.vp]
			clear(row[copy(row, src[j*s.VDim:][:s.VDim]):])
		}
	default:
		src := unsafe.Slice((*uint16)(unsafe.Pointer(s.page(p, s.VOff))), pageTokens*s.VDim)
		for j := range pageTokens {
			row := s.vPage[j*s.vp:][:s.vp]
			s.k.F16ToF32(row[:s.VDim], src[j*s.VDim:][:s.VDim])
			clear(row[s.VDim:])
		}
	}
	return buf, 4 * s.vp, s.k.ops.pv32
}
