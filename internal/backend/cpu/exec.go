package cpu

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
	"github.com/baleenrun/baleen/internal/backend/cpu/vec"
	"github.com/baleenrun/baleen/internal/plan"
)

// exec is a compiled plan. It is used by one goroutine; its pool works only inside its methods.
type exec struct {
	// Fixed at Compile.
	plan    *plan.Plan
	opt     backend.Options
	mm      *matmul.Kernels
	vec     *vec.Kernels
	pool    *pool
	arena   arena
	sizes   sizes
	weights []weight
	bufs    []buffer
	acts    [][]byte // one buffer of quantized rows per activation format
	routes  []route
	ropes   []*ropeTable
	pages   [][]byte // by group
	slots   []float32
	scratch [][]byte     // by thread
	parts   []float32    // partial results of attention
	tuners  []tunerTable // by thread
	passes  []pass
	read    []plan.File // what steps read from
	expertScratch

	// Of the step.
	batch *backend.Batch
	rows  int     // rows that passes work on: all, or those with logits after Gather
	pos   []int32 // position of each row
	owner []int32 // index of each row's sequence in spans
	spans []span  // sequences of the batch
	tiles []tile  // work of attention

	failed atomic.Pointer[error] // what kept a row from being computed; set by any thread
}

// A buffer is the memory of a plan.Buffer.
type buffer struct {
	width int
	data  []float32
}

// A span is a sequence's part of the batch.
type span struct {
	*backend.Seq
	row int // its first row
}

// A pass is a part of a step that ends before the next begins.
type pass interface{ run(e *exec) }

// at returns the values of v in row r.
func (e *exec) at(v plan.Val, r int) []float32 {
	b := &e.bufs[v.Buf]
	o := r*b.width + v.Off
	return b.data[o : o+v.Width : o+v.Width]
}

// from returns the buffer of v from row r on, and the distance between rows.
func (e *exec) from(v plan.Val, r int) ([]float32, int) {
	b := &e.bufs[v.Buf]
	return b.data[r*b.width+v.Off:], b.width
}

func (e *exec) vector(id plan.VectorID) []float32 {
	if id == plan.None {
		return nil
	}
	return e.plan.Vectors[id].Data
}

func (e *exec) build() (err error) {
	p := e.plan
	e.sizes = measure(p, e.opt)
	if len(e.opt.Pages) != len(p.Groups) {
		return fmt.Errorf("cpu: pages given for %d groups, the plan has %d", len(e.opt.Pages), len(p.Groups))
	}
	if e.weights, err = loadWeights(p, &e.arena, e.mm, e.pool, e.opt.Progress); err != nil {
		return err
	}
	if err := e.allocate(); err != nil {
		return err
	}
	for range e.pool.n {
		e.tuners = append(e.tuners, newTunerTable(e.weights))
	}
	for _, r := range p.Routes {
		n := e.opt.MaxRows * r.TopK
		e.routes = append(e.routes, route{Route: r, ids: make([]int32, n), weights: make([]float32, n)})
	}
	e.pos = make([]int32, e.opt.MaxRows)
	e.owner = make([]int32, e.opt.MaxRows)
	e.spans = make([]span, 0, e.opt.MaxSeqs)
	return e.compile()
}

// allocate takes the working memory, the pages and the slots.
func (e *exec) allocate() error {
	var failed error
	take := func(n int) []byte {
		b, err := e.arena.alloc(n)
		if failed == nil {
			failed = err
		}
		return b
	}
	for i, n := range e.sizes.buffers {
		e.bufs = append(e.bufs, buffer{width: e.plan.Buffers[i].Width, data: floats(take(n))})
	}
	for _, n := range e.sizes.acts {
		e.acts = append(e.acts, take(n))
	}
	for i := range e.plan.Ropes {
		r := &e.plan.Ropes[i]
		table := func(freqs []float64) *ropeTable {
			n := 4 * e.plan.Context * len(freqs)
			return &ropeTable{
				freqs: freqs,
				scale: r.Scale,
				pairs: len(freqs),
				cos:   floats(take(n)),
				sin:   floats(take(n)),
			}
		}
		t := table(r.InvFreq)
		t.long = t
		if r.Long != nil {
			t.long = table(r.Long)
		}
		e.ropes = append(e.ropes, t)
	}
	for i, g := range e.sizes.groups {
		e.pages = append(e.pages, take(g.pageBytes*e.opt.Pages[i]))
	}
	e.slots = floats(take(4 * e.sizes.slotFloats * e.opt.Slots))
	for range e.pool.n {
		e.scratch = append(e.scratch, take(e.sizes.thread))
	}
	e.parts = floats(take(e.sizes.parts))
	x := &e.sizes.experts
	e.expertScratch = expertScratch{
		in: take(x.in), mid: take(x.mid), g: floats(take(x.gate)), u: floats(take(x.gate)), d: floats(take(x.down)),
	}
	return failed
}

// Submit checks and keeps the batch. The work itself is done by Wait, on the caller's thread and the pool's:
// handing it to another goroutine would cost a wake-up per step and gain nothing, since the host has no
// processor left to prepare the next step on.
func (e *exec) Submit(b *backend.Batch) error {
	if e.batch != nil {
		return errors.New("cpu: a step is already submitted")
	}
	if err := backend.CheckBatch(e.plan, e.opt, b); err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	e.spans = e.spans[:0]
	r := 0
	for i := range b.Seqs {
		s := &b.Seqs[i]
		e.spans = append(e.spans, span{s, r})
		for j := range s.Rows {
			e.pos[r+j], e.owner[r+j] = int32(s.Pos+j), int32(i)
		}
		r += s.Rows
	}
	e.batch, e.rows = b, r
	return nil
}

// Wait runs the submitted step.
func (e *exec) Wait() ([]float32, error) {
	if e.batch == nil {
		return nil, errors.New("cpu: no step is submitted")
	}
	last := 0
	for _, s := range e.spans {
		last = max(last, s.Pos+s.Rows)
	}
	for _, t := range e.ropes {
		t.fill(last)
		t.long.fill(last)
	}
	if e.sizes.tileRows > 0 {
		e.makeTiles()
	}
	n := len(e.batch.Out)
	err := e.runPasses()
	e.batch = nil
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, nil
	}
	logits, _ := e.from(e.plan.Logits, 0)
	return logits[:n*e.plan.Vocab], nil
}

// runPasses runs the passes up to one that failed: what comes after it would store what is no result. Results of rows
// from a file that was written since it was opened are none either: nothing tells which of its contents they are of.
func (e *exec) runPasses() error {
	for _, p := range e.passes {
		p.run(e)
		if err := e.failed.Swap(nil); err != nil {
			return cmp.Or(unchanged(e.read), *err)
		}
	}
	return unchanged(e.read)
}

// fail keeps err for runPasses.
func (e *exec) fail(err error) { e.failed.Store(&err) }

// region returns the memory of a layer's part of all pages of its group.
func (e *exec) region(group int, l *layerLayout) []byte {
	n := e.opt.Pages[group]
	return e.pages[group][l.off*n : (l.off+l.bytes)*n]
}

// eachPart calls f with a page's part of every layer, and where it lies in a page that stands alone.
func (e *exec) eachPart(group int, page int32, f func(part []byte, off int)) {
	layers := e.sizes.groups[group].layers
	for i := range layers {
		l := &layers[i]
		f(e.region(group, l)[int(page)*l.bytes:][:l.bytes], l.off)
	}
}

func (e *exec) slot(slot int32) []float32 {
	n := e.sizes.slotFloats
	return e.slots[int(slot)*n : (int(slot)+1)*n]
}

// PageBytes is the size of a page of a group.
func (e *exec) PageBytes(group int) int { return e.sizes.groups[group].pageBytes }

// PageOut copies a page to host memory.
func (e *exec) PageOut(dst []byte, group int, p int32) {
	e.eachPart(group, p, func(part []byte, off int) { copy(dst[off:], part) })
}

// PageIn copies a page from host memory.
func (e *exec) PageIn(group int, p int32, src []byte) {
	e.eachPart(group, p, func(part []byte, off int) { copy(part, src[off:]) })
}

// PageCopy copies one page to another.
func (e *exec) PageCopy(group int, dst, src int32) {
	layers := e.sizes.groups[group].layers
	for i := range layers {
		l := &layers[i]
		mem := e.region(group, l)
		copy(mem[int(dst)*l.bytes:][:l.bytes], mem[int(src)*l.bytes:])
	}
}

func (e *exec) SlotBytes() int                 { return 4 * e.sizes.slotFloats }
func (e *exec) SlotOut(dst []byte, slot int32) { copy(dst, bytesOf(e.slot(slot))) }
func (e *exec) SlotIn(slot int32, src []byte)  { copy(bytesOf(e.slot(slot)), src) }
func (e *exec) SlotCopy(dst, src int32)        { copy(e.slot(dst), e.slot(src)) }
func (e *exec) SlotZero(slot int32)            { clear(e.slot(slot)) }

// Close ends the threads and frees the memory.
func (e *exec) Close() error {
	e.pool.close()
	e.arena.free()
	return nil
}
