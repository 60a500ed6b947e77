package cpu

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cpu/vec"
	"github.com/baleenrun/baleen/internal/plan"
)

// A tile is a run of rows of one sequence whose attention one thread computes for one key head.
type tile struct {
	span, row, rows int // row counts from the sequence's first row of the step
}

// makeTiles divides the step's rows into runs of about the same length, at most tileRows, later rows first: they read
// the most keys, and a share that ends with short work is easier to balance.
func (e *exec) makeTiles() {
	e.tiles = e.tiles[:0]
	for i := range e.spans {
		n := e.spans[i].Rows
		for tiles := (n + e.sizes.tileRows - 1) / e.sizes.tileRows; tiles > 0; tiles-- {
			size := n / tiles
			e.tiles = append(e.tiles, tile{i, n - size, size})
			n -= size
		}
	}
}

// attentionPass computes one attention operation. Work is divided by key head and tile, head by head: where threads
// divide the heads evenly, each has as much to do, however many keys the sequences have. Where whole pieces are too few
// or too different for the threads, work is divided by chunks of keys too, whose results are merged in order.
// RATIONALE: Why do attention's kernels fetch in step with their arithmetic?
type attentionPass struct {
	e      *exec
	o      *plan.Attention
	layer  layerLayout
	region []byte
	heads  int // query heads per key head
	window int
	sinks  []float32

	partAt    []int // by head and tile: where its parts begin in exec.parts: [chunk][floats of a part]
	chunkWork []chunkWork

	whole, part, merge func(worker, lo, hi int)
}

type chunkWork struct{ item, chunk int }

func (c *compiler) attention(o *plan.Attention) error {
	e := c.e
	l := e.sizes.groups[o.Group].layers[o.Layer]
	if l.Heads <= 0 || o.Heads%l.Heads != 0 || o.Q.Width != o.Heads*l.KDim || o.Out.Width != o.Heads*l.VDim {
		return fmt.Errorf("%d query heads of width %d over %d key heads of %d", o.Heads, o.Q.Width, l.Heads, l.KDim)
	}
	p := &attentionPass{
		e:      e,
		o:      o,
		layer:  l,
		region: e.region(o.Group, &l),
		heads:  o.Heads / l.Heads,
		sinks:  e.vector(o.Sinks),
	}
	p.window = e.plan.Groups[o.Group].Window
	if o.Window > 0 && (p.window == 0 || o.Window < p.window) {
		p.window = o.Window
	}
	p.whole, p.part, p.merge = p.runWhole, p.runPart, p.runMerge
	c.pass(p)
	c.overwritten([]plan.Val{o.Out})
	return nil
}

// args fills in a work item: a head's tile.
func (p *attentionPass) args(a *vec.AttendArgs, item, worker int) {
	e := p.e
	t, h := e.tiles[item%len(e.tiles)], item/len(e.tiles)
	s := e.spans[t.span]
	q, qStride := e.from(p.o.Q, s.row+t.row)
	out, outStride := e.from(p.o.Out, s.row+t.row)
	*a = vec.AttendArgs{
		Base: p.region, Pages: s.Pages[p.o.Group], PageStride: p.layer.bytes,
		KOff: h * p.layer.headBytes, VOff: h*p.layer.headBytes + p.layer.vOff,
		Type: e.opt.KV, KDim: p.layer.KDim, VDim: p.layer.VDim, VInK: p.layer.VInK,
		Rows: t.rows, Pos: s.Pos + t.row, Heads: p.heads,
		Q: q[h*p.heads*p.layer.KDim:], QStride: qStride,
		Out: out[h*p.heads*p.layer.VDim:], OutStride: outStride,
		Scale: p.o.Scale, SoftCap: p.o.SoftCap, Window: p.window,
		Scratch: e.scratch[worker],
	}
	if p.sinks != nil {
		a.Sinks = p.sinks[h*p.heads : (h+1)*p.heads]
	}
}

func (p *attentionPass) run(e *exec) {
	items := len(e.tiles) * p.layer.Heads
	if p.balanced(items) || !p.divide(items) {
		e.pool.run(items, 1, p.whole)
		return
	}
	e.pool.run(len(p.chunkWork), 1, p.part)
	e.pool.run(items, 1, p.merge)
}

func (p *attentionPass) runWhole(worker, lo, hi int) {
	var a vec.AttendArgs
	for i := lo; i < hi; i++ {
		p.args(&a, i, worker)
		p.e.vec.Attend(&a)
	}
}

// balanced reports whether whole work items keep all threads busy: threads divide the heads evenly, each item is small
// beside a thread's share, or they are as many for each thread and of about the same size.
func (p *attentionPass) balanced(items int) bool {
	n := p.e.pool.n
	if p.layer.Heads%n == 0 {
		return true
	}
	largest, all := 0, 0
	for _, t := range p.e.tiles {
		first, end := 0, p.e.spans[t.span].Pos+t.row+t.rows
		if p.window > 0 {
			first = max(0, end-t.rows+1-p.window)
		}
		work := t.rows * (end - first)
		largest, all = max(largest, work), all+work
	}
	all *= p.layer.Heads
	return 4*largest*n <= all || items%n == 0 && 8*largest*items <= 9*all
}

// divide lists the chunks of the work items, and reports whether there are more than items, and room for their results.
func (p *attentionPass) divide(items int) bool {
	p.chunkWork, p.partAt = p.chunkWork[:0], p.partAt[:0]
	var a vec.AttendArgs
	size := 0
	for i := range items {
		p.args(&a, i, 0)
		p.partAt = append(p.partAt, size)
		first, end := a.Chunks()
		for c := first; c < end; c++ {
			p.chunkWork = append(p.chunkWork, chunkWork{i, c})
			size += a.PartFloats()
		}
	}
	return len(p.chunkWork) > items && size <= len(p.e.parts)
}

func (p *attentionPass) runPart(worker, lo, hi int) {
	var a vec.AttendArgs
	for _, w := range p.chunkWork[lo:hi] {
		p.args(&a, w.item, worker)
		p.e.vec.AttendPart(&a, w.chunk, w.chunk+1, p.e.parts[p.partAt[w.item]:])
	}
}

func (p *attentionPass) runMerge(worker, lo, hi int) {
	var a vec.AttendArgs
	for i := lo; i < hi; i++ {
		p.args(&a, i, worker)
		p.e.vec.AttendMerge(&a, p.e.parts[p.partAt[i]:])
	}
}

// storeKV returns what writes the keys and values of a row to their page.
func (e *exec) storeKV(o *plan.StoreKV) func(r int) {
	l := e.sizes.groups[o.Group].layers[o.Layer]
	region := e.region(o.Group, &l)
	return func(r int) {
		pos := int(e.pos[r])
		s := e.spanOf(r)
		page := region[int(s.Pages[o.Group][pos/backend.PageTokens])*l.bytes:][:l.bytes]
		k := e.at(o.K, r)
		for h := range l.Heads {
			mem := page[h*l.headBytes:][:l.headBytes]
			e.vec.StoreK(e.opt.KV, mem[:l.vOff], pos%backend.PageTokens, k[h*l.KDim:(h+1)*l.KDim])
			if !l.VInK {
				v := e.at(o.V, r)
				e.vec.StoreV(e.opt.KV, mem[l.vOff:], pos%backend.PageTokens, v[h*l.VDim:(h+1)*l.VDim])
			}
		}
	}
}

// spanOf returns the sequence that row r belongs to.
func (e *exec) spanOf(r int) *span { return &e.spans[e.owner[r]] }
