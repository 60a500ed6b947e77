package cuda

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cpu/vec"
	"github.com/baleenrun/baleen/internal/backend/cuda/driver"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

// exec is a compiled plan. It is used by one goroutine; the context's thread does what it asks for.
type exec struct {
	// Fixed at Compile.
	c    *driver.Context
	info driver.Info
	plan *plan.Plan
	opt  backend.Options
	sizes
	code    code
	base    driver.Ptr // of scratch memory
	weights driver.Ptr
	input   driver.Ptr
	pages   []driver.Ptr // by group
	slots   driver.Ptr
	passes  []pass
	logits  []byte  // of the host
	hostIn  []int32 // of the host: the step's block of input
	hostRaw []byte
	embed   []byte // of the host: decoded embeddings
	owned   []driver.Ptr

	// Of steps.
	graphs   map[bucket]*driver.Graph
	seen     map[bucket]bool
	ropeDone []int       // positions in the tables
	read     []plan.File // what embeddings are read from
	batch    *backend.Batch
	done     chan error
	closed   bool
}

// A bucket is what the launches of a step depend on.
type bucket struct {
	rows, outs int // upper bounds
	seqs       int
	chunks     int // of the longest sequence's keys
}

// A pass starts a launch or two.
type pass struct {
	op  string // for messages and measurements
	run func(b bucket) error
}

// graphRows is the largest bucket whose launches are recorded: above it they take less time than the work.
const graphRows = 64

// power rounds up to a power of two; 0 stays 0.
func power(n int) int {
	if n <= 0 {
		return 0
	}
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// bucketOf returns the bucket of a batch.
func bucketOf(b *backend.Batch, o backend.Options) bucket {
	last := 0
	for i := range b.Seqs {
		last = max(last, b.Seqs[i].Pos+b.Seqs[i].Rows)
	}
	return bucket{
		rows: min(
			power(len(b.Tokens)),
			o.MaxRows,
		), outs: min(power(len(b.Out)), o.MaxOut), seqs: min(power(len(b.Seqs)),
			o.MaxSeqs),
		chunks: power((last + chunkKeys - 1) / chunkKeys),
	}
}

func (e *exec) build() error {
	e.done = make(chan error, 1)
	e.ropeDone = make([]int, len(e.plan.Ropes))
	looked := map[plan.WeightID]bool{}
	for o := range e.embeds {
		looked[o.W] = true
	}
	e.read = e.plan.Files(func(id plan.WeightID) bool { return looked[id] })
	if err := e.c.Do(e.allocate); err != nil {
		return err
	}
	if err := e.upload(); err != nil {
		return err
	}
	return e.c.Do(func() error {
		if err := e.compile(); err != nil {
			return err
		}
		return e.c.Sync()
	})
}

func (e *exec) allocate() error {
	var err error
	take := func(n int64) driver.Ptr {
		if err != nil {
			return 0
		}
		var p driver.Ptr
		if p, err = e.c.Alloc(n); err == nil && p != 0 {
			e.owned = append(e.owned, p)
		}
		return p
	}
	host := func(n int) []byte {
		if err != nil {
			return nil
		}
		var b []byte
		b, err = e.c.HostAlloc(n)
		return b
	}
	e.c.Early(e.info)
	e.weights, e.base = take(e.sizes.weights), take(e.size)
	e.input = take(4 * int64(e.inputs.words))
	for i, g := range e.groups {
		e.pages = append(e.pages, take(int64(g.pageBytes)*int64(e.opt.Pages[i])))
	}
	e.slots = take(4 * int64(e.slotFloats) * int64(e.opt.Slots))
	e.logits = host(4 * e.opt.MaxOut * e.plan.Vocab)
	e.hostRaw = host(4 * e.inputs.words)
	e.embed = host(e.hostEmbeds)
	if err != nil {
		return err
	}
	e.hostIn = unsafe.Slice((*int32)(unsafe.Pointer(&e.hostRaw[0])), e.inputs.words)
	// Pages and slots need no clearing: only what was stored is read. Padding of keys is read, though, and multiplied
	// by nothing.
	return errors.Join(e.c.Zero(e.base, e.size), e.c.Zero(e.slots, 4*int64(e.slotFloats)*int64(e.opt.Slots)))
}

func (e *exec) at(off int64) driver.Ptr { return e.base + driver.Ptr(off) }

// in is the address of a place in the block of input.
func (e *exec) in(word int) uint64 { return uint64(e.input) + 4*uint64(word) }

// val is the address of a view in the first row, and the distance of rows in values.
func (e *exec) val(v plan.Val) (uint64, int32) {
	return uint64(e.at(e.buffers[v.Buf])) + 4*uint64(v.Off), int32(e.plan.Buffers[v.Buf].Width)
}

func (e *exec) vector(id plan.VectorID) uint64 {
	if id == plan.None {
		return 0
	}
	return uint64(e.weights) + uint64(e.vectorAt[id])
}

// Submit starts a step.
func (e *exec) Submit(b *backend.Batch) error {
	if e.batch != nil {
		return errors.New("cuda: a step is already submitted")
	}
	if err := backend.CheckBatch(e.plan, e.opt, b); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	e.batch = b
	e.c.Go(func() { e.done <- e.step(b) })
	return nil
}

// Wait ends the step.
func (e *exec) Wait() ([]float32, error) {
	if e.batch == nil {
		return nil, errors.New("cuda: no step is submitted")
	}
	n := len(e.batch.Out)
	err := <-e.done
	e.batch = nil
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if n == 0 {
		return nil, nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&e.logits[0])), n*e.plan.Vocab), nil
}

// step runs on the context's thread.
func (e *exec) step(b *backend.Batch) error {
	if err := e.fillRopes(b); err != nil {
		return err
	}
	if err := e.sendInput(b); err != nil {
		return err
	}
	if err := e.sendEmbeddings(b); err != nil {
		return err
	}
	if err := e.run(bucketOf(b, e.opt)); err != nil {
		return err
	}
	if n := len(b.Out); n > 0 {
		at, _ := e.val(e.plan.Logits)
		if err := e.c.Out(e.logits[:4*n*e.plan.Vocab], driver.Ptr(at)); err != nil {
			return err
		}
	}
	// What was read from a file that was written meanwhile is no result.
	return errors.Join(e.c.Sync(), plan.Unchanged(e.read))
}

// run starts the launches of a bucket, from a graph when the bucket comes again.
func (e *exec) run(b bucket) error {
	all := func() error {
		for _, p := range e.passes {
			if err := p.run(b); err != nil {
				return fmt.Errorf("%s: %w", p.op, err)
			}
		}
		return nil
	}
	if g := e.graphs[b]; g != nil {
		return g.Launch()
	}
	if b.rows > graphRows || !e.seen[b] {
		e.seen[b] = true
		return all()
	}
	g, err := e.c.Record(all)
	if err != nil {
		return err
	}
	e.graphs[b] = g
	return g.Launch()
}

// fillInput writes the block of input of a batch and returns the stride of its page tables.
func (e *exec) fillInput(b *backend.Batch) (stride int) {
	in, w := &e.inputs, e.hostIn
	r := 0
	for i := range b.Seqs {
		s := &b.Seqs[i]
		copy(w[in.spans+3*i:], []int32{int32(r), int32(s.Rows), s.Slot})
		for j := range s.Rows {
			w[in.pos+r+j], w[in.seq+r+j] = int32(s.Pos+j), int32(i)
		}
		r += s.Rows
		stride = max(stride, (s.Pos+s.Rows-1)/backend.PageTokens+1)
	}
	copy(w[in.outs:], b.Out)
	w[inRows], w[inOuts], w[inSeqs], w[inStride] = int32(r), int32(len(b.Out)), int32(len(b.Seqs)), int32(stride)
	for t := range in.tiles {
		w[inTiles+t] = int32(fillTiles(b, 1<<t, w[in.tiles[t]:], w[in.tileOf[t]:]))
	}
	for op, at := range in.factors {
		for i := range r {
			n := math.Floor(float64(int(w[in.pos+i])+op.Offset) / float64(op.Length))
			w[at+i] = int32(math.Float32bits(float32(1 + float64(op.Beta*vec.Log(1+n)))))
		}
	}
	for g := range e.groups {
		for i := range b.Seqs {
			s := &b.Seqs[i]
			n := (s.Pos+s.Rows-1)/backend.PageTokens + 1
			copy(w[in.tables+g*in.tableWords+i*stride:], s.Pages[g][:n])
		}
	}
	return stride
}

// fillTiles divides each sequence's rows into tiles and returns their number.
func fillTiles(b *backend.Batch, most int, tiles, of []int32) int {
	n, r := 0, 0
	for i := range b.Seqs {
		for left := b.Seqs[i].Rows; left > 0; {
			size := min(most, left)
			tiles[2*n], tiles[2*n+1] = int32(r), int32(size)
			for j := range size {
				of[r+j] = int32(r)
			}
			n, r, left = n+1, r+size, left-size
		}
	}
	return n
}

func (e *exec) sendInput(b *backend.Batch) error {
	stride := e.fillInput(b)
	in := &e.inputs
	if err := e.c.In(e.input, e.hostRaw[:4*in.head]); err != nil {
		return err
	}
	for g := range e.groups {
		at := 4 * (in.tables + g*in.tableWords)
		if err := e.c.In(e.input+driver.Ptr(at), e.hostRaw[at:at+4*stride*len(b.Seqs)]); err != nil {
			return err
		}
	}
	return nil
}

// sendEmbeddings decodes the rows' embeddings and copies them to the device.
func (e *exec) sendEmbeddings(b *backend.Batch) error {
	host := e.embed
	for _, op := range e.plan.Ops {
		o, ok := op.(*plan.Embed)
		if !ok {
			continue
		}
		w := &e.plan.Weights[o.W]
		k := w.K
		x := unsafe.Slice((*float32)(unsafe.Pointer(&host[0])), e.opt.MaxRows*k)
		if err := decodeRows(w, b.Tokens, x); err != nil {
			return err
		}
		if err := e.c.In(e.at(e.embeds[o]), host[:4*k*len(b.Tokens)]); err != nil {
			return err
		}
		host = host[4*e.opt.MaxRows*k:]
	}
	return nil
}

// decodeRows decodes the rows of w that tokens name, on more than one processor where there are many.
func decodeRows(w *plan.Weight, tokens []int32, x []float32) error {
	n, err := w.Type.RowBytes(w.K)
	if err != nil {
		return err
	}
	some := func(lo, hi int) error {
		row := make([]byte, n)
		for i := lo; i < hi; i++ {
			if err := w.ReadRows(row, int(tokens[i]), 1); err != nil {
				return err
			}
			if err := quant.Dequantize(w.Type, x[i*w.K:(i+1)*w.K], row); err != nil {
				return err
			}
		}
		return nil
	}
	const least = 8
	parts := min(runtime.GOMAXPROCS(0), len(tokens)/least)
	if parts < 2 {
		return some(0, len(tokens))
	}
	errs := make([]error, parts)
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() { errs[p] = some(p*len(tokens)/parts, (p+1)*len(tokens)/parts) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ropeAhead is how many positions are computed at once.
const ropeAhead = 256

// fillRopes makes the angles of the batch's positions available.
func (e *exec) fillRopes(b *backend.Batch) error {
	last := 0
	for i := range b.Seqs {
		last = max(last, b.Seqs[i].Pos+b.Seqs[i].Rows)
	}
	for i := range e.plan.Ropes {
		r := &e.plan.Ropes[i]
		from, pairs := e.ropeDone[i], len(r.InvFreq)
		if last <= from {
			continue
		}
		to := min(max(last, from+ropeAhead), e.plan.Context)
		both := make([]float32, 2*(to-from)*pairs)
		cos, sin := both[:(to-from)*pairs], both[(to-from)*pairs:]
		for p := from; p < to; p++ {
			vec.RopeAngles(r.InvFreq, r.Scale, p, cos[(p-from)*pairs:][:pairs], sin[(p-from)*pairs:][:pairs])
		}
		at := e.at(e.ropes[i]) + driver.Ptr(4*from*pairs)
		if err := errors.Join(e.c.In(at, bytesOf(cos)), e.c.In(at+driver.Ptr(4*e.plan.Context*pairs), bytesOf(sin)),
			e.c.Sync()); err != nil {
			return err
		}
		e.ropeDone[i] = to
	}
	return nil
}

func bytesOf(f []float32) []byte {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&f[0])), 4*len(f))
}

// PageBytes is the size of a page of a group.
func (e *exec) PageBytes(group int) int { return e.groups[group].pageBytes }

// eachPart calls f with the address of a page's part of every layer, its size, and where it lies in a page that stands
// alone.
func (e *exec) eachPart(group int, page int32, f func(at driver.Ptr, n, off int) error) error {
	for _, l := range e.groups[group].layers {
		at := e.pages[group] + driver.Ptr(l.off*e.opt.Pages[group]) + driver.Ptr(int(page)*l.bytes)
		if err := f(at, l.bytes, l.off); err != nil {
			return err
		}
	}
	return nil
}

// moved runs copies. They cannot be refused for what they are, only fail with the device, which the next step tells.
func (e *exec) moved(f func() error) {
	_ = e.c.Do(func() error { return errors.Join(f(), e.c.Sync()) })
}

// PageOut copies a page to host memory.
func (e *exec) PageOut(dst []byte, group int, page int32) {
	e.moved(func() error {
		return e.eachPart(group, page, func(at driver.Ptr, n, off int) error { return e.c.Out(dst[off:off+n], at) })
	})
}

// PageIn copies a page from host memory.
func (e *exec) PageIn(group int, page int32, src []byte) {
	e.moved(func() error {
		return e.eachPart(group, page, func(at driver.Ptr, n, off int) error { return e.c.In(at, src[off:off+n]) })
	})
}

// PageCopy copies one page to another.
func (e *exec) PageCopy(group int, dst, src int32) {
	e.moved(func() error {
		return e.eachPart(group, dst, func(at driver.Ptr, n, _ int) error {
			return e.c.Copy(at, at+driver.Ptr(int64(src-dst)*int64(n)), n)
		})
	})
}

func (e *exec) slot(i int32) driver.Ptr { return e.slots + driver.Ptr(int(i)*e.SlotBytes()) }

// SlotBytes is the size of a recurrent slot.
func (e *exec) SlotBytes() int { return 4 * e.slotFloats }

// SlotOut copies a slot to host memory.
func (e *exec) SlotOut(dst []byte, slot int32) {
	e.moved(func() error { return e.c.Out(dst[:e.SlotBytes()], e.slot(slot)) })
}

// SlotIn copies a slot from host memory.
func (e *exec) SlotIn(slot int32, src []byte) {
	e.moved(func() error { return e.c.In(e.slot(slot), src[:e.SlotBytes()]) })
}

// SlotCopy copies one slot to another.
func (e *exec) SlotCopy(dst, src int32) {
	e.moved(func() error { return e.c.Copy(e.slot(dst), e.slot(src), e.SlotBytes()) })
}

// SlotZero makes a slot that of a new sequence.
func (e *exec) SlotZero(slot int32) {
	e.moved(func() error { return e.c.Zero(e.slot(slot), int64(e.SlotBytes())) })
}

// Close waits for a running step and gives everything back.
func (e *exec) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	if e.batch != nil {
		<-e.done
	}
	err := e.c.Do(func() error {
		var errs []error
		for _, g := range e.graphs {
			errs = append(errs, g.Close())
		}
		errs = append(errs, e.code.unload())
		for _, p := range e.owned {
			errs = append(errs, e.c.Free(p))
		}
		errs = append(errs, e.c.HostFree(e.logits), e.c.HostFree(e.hostRaw), e.c.HostFree(e.embed))
		return errors.Join(errs...)
	})
	e.c.Close()
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}
