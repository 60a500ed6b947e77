package cuda

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
)

const (
	align     = 256 // of everything that is allocated
	tileCols  = 8   // columns of a tile of activations
	chunkKeys = 512 // keys of a chunk of attention
	maxParts  = 64 << 20
	maxSums   = 32 << 20 // of products whose segments are divided
)

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// sizes say what a plan takes on a device, in bytes where nothing else is said.
type sizes struct {
	weights int64
	scratch int64

	weightAt []int64 // by weight, of those that are multiplied
	vectorAt []int64 // by vector, after the weights

	groups     []groupLayout
	elem       int // bytes of a cached value
	slotFloats int
	stateOff   []int // by state

	region // of scratch memory

	buffers []int64 // where the plan's buffers lie
	act     quantized
	parts   int64
	sums    int64   // of segments of products
	ropes   []int64 // cosines; sines follow
	embeds  map[*plan.Embed]int64
	routes  []routeAt
	experts expertsAt
	inputs  inputs

	hostEmbeds int // bytes of decoded embeddings of a step
}

// A region gives out memory.
type region struct{ size int64 }

func (r *region) take(n int) int64 {
	at := r.size
	r.size += int64(roundUp(n, align))
	return at
}

// quantized says where quantized activations lie.
type quantized struct{ frag, meta, sums int64 }

func (r *region) quantized(columns, k int) quantized {
	n := (columns + tileCols - 1) / tileCols * (roundUp(k, unitWeights) / 32)
	return quantized{r.take(256 * n), r.take(64 * n), r.take(64 * n)}
}

type routeAt struct{ ids, weights int64 }

// expertsAt is memory that all expert operations share.
type expertsAt struct {
	col, slot, expert, tiles int64
	in, mid                  quantized
	floatIn, floatMid        int64
	gate, up, down           int64
}

// groupLayout says how pages of a group lie: each layer has a region of its own, in which its parts of all pages follow
// each
// other. A layer's part holds heads, a head its keys as [KDim/V][32][V] and its values as [32][VDim], V numbers being
// 16 bytes.
type groupLayout struct {
	pageBytes int
	layers    []layerLayout
}

type layerLayout struct {
	plan.KVLayer
	off       int // of the layer in a page; times the number of pages, of its region
	bytes     int
	headBytes int
	vOff      int
}

func groupLayouts(p *plan.Plan, elem int) []groupLayout {
	var out []groupLayout
	per := 16 / elem
	for _, g := range p.Groups {
		var gl groupLayout
		for _, kl := range g.Layers {
			l := layerLayout{KVLayer: kl, off: gl.pageBytes}
			l.vOff = roundUp(kl.KDim, per) * backend.PageTokens * elem
			l.headBytes = l.vOff
			if !kl.VInK {
				l.headBytes += roundUp(backend.PageTokens*kl.VDim*elem, 16)
			}
			l.bytes = kl.Heads * l.headBytes
			gl.pageBytes += l.bytes
			gl.layers = append(gl.layers, l)
		}
		out = append(out, gl)
	}
	return out
}

// inputs say where the numbers of a step lie in its block of input, in words of 4 bytes. The block is copied to the
// device as
// a whole, but for the page tables, of which the part in use is.
type inputs struct {
	pos, seq, spans, outs int
	tiles                 [4]int // {first row, rows} for tiles of up to 1, 2, 4, 8 rows of a sequence
	tileOf                [4]int // by row: the first row of its tile
	factors               map[*plan.PosScale]int
	head                  int // words before the tables
	tables                int // of the first group; of group g, g*tableWords further
	tableWords            int
	words                 int
}

// Places in the header.
const (
	inRows = iota
	inOuts
	inSeqs
	inStride
	inTiles  // for tiles of 1, 2, 4, 8 rows
	inHeader = 16
)

// tilesOf returns the number of the tables for tiles of up to n rows.
func tilesOf(n int) int {
	switch {
	case n >= 8:
		return 3
	case n >= 4:
		return 2
	case n >= 2:
		return 1
	}
	return 0
}

func newInputs(p *plan.Plan, o backend.Options) inputs {
	in := inputs{words: inHeader, factors: map[*plan.PosScale]int{}}
	take := func(n int) int {
		at := in.words
		in.words += n
		return at
	}
	in.pos, in.seq, in.spans, in.outs = take(o.MaxRows), take(o.MaxRows), take(3*o.MaxSeqs), take(o.MaxOut)
	for i := range in.tiles {
		in.tiles[i], in.tileOf[i] = take(2*o.MaxRows), take(o.MaxRows)
	}
	for _, op := range p.Ops {
		if op, ok := op.(*plan.PosScale); ok {
			in.factors[op] = take(o.MaxRows)
		}
	}
	in.words = roundUp(in.words, 4)
	in.head, in.tables = in.words, in.words
	in.tableWords = o.MaxSeqs * ((p.Context + backend.PageTokens - 1) / backend.PageTokens)
	take(in.tableWords * len(p.Groups))
	return in
}

// maxTiles bounds the tiles of columns into which the slots of a routed step fall.
func maxTiles(slots, experts int) int {
	return (slots + (tileCols-1)*min(slots, experts)) / tileCols
}

func measure(p *plan.Plan, o backend.Options) sizes {
	z := sizes{elem: 2, embeds: map[*plan.Embed]int64{}}
	if o.KV == backend.KVF32 {
		z.elem = 4
	}
	var w region
	z.weightAt = make([]int64, len(p.Weights))
	for i, used := range p.Multiplied() {
		if used {
			n, _ := packedBytes(p.Weights[i].Type, p.Weights[i].Rows, p.Weights[i].K) // checked by supports
			z.weightAt[i] = w.take(n * max(1, p.Weights[i].Experts))
		}
	}
	for _, v := range p.Vectors {
		z.vectorAt = append(z.vectorAt, w.take(4*len(v.Data)))
	}
	z.weights = w.size
	z.groups = groupLayouts(p, z.elem)
	for _, s := range p.States {
		z.stateOff = append(z.stateOff, z.slotFloats)
		z.slotFloats += roundUp(s.Size, align/4)
	}
	for i, rows := range p.BufferRows(o.MaxRows, o.MaxOut) {
		z.buffers = append(z.buffers, z.take(4*p.Buffers[i].Width*rows))
	}
	for _, r := range p.Ropes {
		z.ropes = append(z.ropes, z.take(8*p.Context*len(r.InvFreq)))
	}
	for _, r := range p.Routes {
		n := 4 * o.MaxRows * r.TopK
		z.routes = append(z.routes, routeAt{z.take(n), z.take(n)})
	}
	z.operations(p, o)
	z.inputs = newInputs(p, o)
	z.scratch = z.size + 4*int64(z.inputs.words)
	return z
}

// operations takes what operations need for themselves.
func (z *sizes) operations(p *plan.Plan, o backend.Options) {
	columns, k := 0, 0 // of quantized activations: tiles of all heads
	parts := 0
	var x struct{ slots, tiles, in, mid, gate, down int }
	for _, op := range p.Ops {
		switch op := op.(type) {
		case *plan.Embed:
			n := 4 * o.MaxRows * op.Out.Width
			z.embeds[op] = z.take(n)
			z.hostEmbeds += n
		case *plan.MatMul:
			for _, id := range op.W {
				if floatBytes(p.Weights[id].Type) == 0 {
					columns, k = max(columns, o.MaxRows), max(k, p.Weights[id].K)
				}
			}
		case *plan.HeadMatMul:
			if w := &p.Weights[op.W]; floatBytes(w.Type) == 0 {
				columns, k = max(columns, roundUp(o.MaxRows, tileCols)*w.Experts), max(k, w.K)
			}
		case *plan.Attention:
			l := p.Groups[op.Group].Layers[op.Layer]
			chunks := power((p.Context+chunkKeys-1)/chunkKeys) + 1 // as many as a bucket may have
			parts = max(parts, min(maxParts, 4*o.MaxRows*op.Heads*chunks*(l.VDim+2)))
		case *plan.Experts:
			r := p.Routes[op.Route]
			slots := o.MaxRows * r.TopK
			x.slots, x.tiles = max(x.slots, slots), max(x.tiles, maxTiles(slots, r.Experts))
			x.in, x.mid = max(x.in, p.Weights[op.Gate].K), max(x.mid, p.Weights[op.Down].K)
			x.down = max(x.down, p.Weights[op.Down].Rows)
		}
	}
	if k > 0 {
		z.act = z.quantized(columns, k)
	}
	z.parts = z.take(parts)
	if k > 0 {
		z.sums = z.take(maxSums)
	}
	if x.slots > 0 {
		cols := x.tiles * tileCols
		e := &z.experts
		e.col, e.slot, e.expert, e.tiles = z.take(4*x.slots), z.take(4*cols), z.take(4*x.tiles), z.take(8)
		e.in, e.mid = z.quantized(cols, x.in), z.quantized(cols, x.mid)
		e.floatIn, e.floatMid = z.take(4*cols*x.in), z.take(4*cols*x.mid)
		e.gate, e.up, e.down = z.take(4*cols*x.mid), z.take(4*cols*x.mid), z.take(4*cols*x.down)
	}
}

// supports tells what the kernels lack for a plan, given the shared memory of a block of threads.
func supports(p *plan.Plan, shared int) error {
	shared = usableShared(shared)
	if l := p.Logits; l.Off != 0 || l.Buf < 0 || l.Buf >= len(p.Buffers) || p.Buffers[l.Buf].Width != p.Vocab {
		return fmt.Errorf("cuda: logits are not a buffer of their own")
	}
	if p.LongFrom > 0 {
		return fmt.Errorf("cuda: long sequences turn by other angles than short ones (LongRoPE)")
	}
	multiplied := p.Multiplied()
	for i := range p.Weights {
		w := &p.Weights[i]
		if !multiplied[i] {
			continue
		}
		if _, err := packedBytes(w.Type, w.Rows, w.K); err != nil {
			return fmt.Errorf("cuda: weight %q: %w", w.Name, err)
		}
		if w.Parts == nil && int64(len(w.Bytes)) != w.Size() {
			return fmt.Errorf("cuda: weight %q has %d bytes, its shape needs %d", w.Name, len(w.Bytes), w.Size())
		}
		if productShared(w.Type, w.K, 1) > shared {
			return fmt.Errorf("cuda: weight %q: rows of %d values are too long for the device", w.Name, w.K)
		}
	}
	for i, op := range p.Ops {
		if err := supportsOp(p, op, shared); err != nil {
			return fmt.Errorf("cuda: operation %d (%T): %w", i, op, err)
		}
	}
	return nil
}

func supportsOp(p *plan.Plan, op plan.Op, shared int) error {
	short := func(what string, need int) error {
		if need > shared {
			return fmt.Errorf("%s needs %d bytes of shared memory, the device has %d", what, need, shared)
		}
		return nil
	}
	switch op := op.(type) {
	case *plan.Embed:
		w := &p.Weights[op.W]
		switch {
		case w.Parts == nil && int64(len(w.Bytes)) != w.Size() || w.Size() == 0 || w.Rows < p.Vocab || op.Out.Width != w.K:
			return fmt.Errorf("embedding %q of %d bytes is not %d rows of %d values", w.Name, len(w.Bytes), w.Rows, w.K)
		case !w.Type.CanDequantize():
			return fmt.Errorf("embedding %q: format %v has no decoder", w.Name, w.Type)
		}
	case *plan.Norm:
		return short("a row", 4*op.In.Width/max(1, op.Heads))
	case *plan.Attention:
		l := p.Groups[op.Group].Layers[op.Layer]
		if l.VDim > 512 {
			return fmt.Errorf("values of %d numbers a head; kernels take 512", l.VDim)
		}
		return short("attention", attendShared(l, 8, 4))
	case *plan.Router:
		return short("a router", routeShared(p.Routes[op.Route]))
	case *plan.Experts:
		gate, up := &p.Weights[op.Gate], &p.Weights[op.Up]
		if (floatBytes(gate.Type) == 0) != (floatBytes(up.Type) == 0) {
			return fmt.Errorf("experts of %v and %v do not fit together", gate.Type, up.Type)
		}
	case *plan.DeltaScan:
		return short("a state", deltaShared(op))
	case *plan.MatMul, *plan.HeadMatMul, *plan.RopeOp, *plan.StoreKV, *plan.Act, *plan.GLU, *plan.Gate, *plan.Add,
		*plan.Scale,
		*plan.SoftCap, *plan.PosScale, *plan.Clamp, *plan.CopyHeads, *plan.Copy, *plan.ShortConv, *plan.Decay, *plan.Gather:
	default:
		return fmt.Errorf("there is no kernel for it")
	}
	return nil
}

// Dynamic shared memory of kernels.

// usableShared is what a block of threads may have of a device's shared memory beside the variables of the kernels.
func usableShared(shared int) int { return shared - 32<<10 }

func attendShared(l plan.KVLayer, queries, elem int) int {
	n := queries * (chunkKeys + 4 + roundUp(l.KDim, 16/elem))
	n += roundUp(queries*l.VDim, 4)
	return 4*n + ringPages(l, elem)*valuesOfPage(l, elem)
}

// valuesOfPage is the size of a page's values of one head, rounded up to what is copied at once.
func valuesOfPage(l plan.KVLayer, elem int) int {
	return roundUp(l.VDim, 16/elem) * backend.PageTokens * elem
}

// ringPages is how many pages of values attention has in shared memory: up to 4.
func ringPages(l plan.KVLayer, elem int) int {
	return max(1, min(4, 40<<10/valuesOfPage(l, elem)))
}

func routeShared(r plan.Route) int      { return 4 * (2*r.Experts + max(r.Experts, r.TopK)) }
func deltaShared(o *plan.DeltaScan) int { return 4 * o.KDim * (32 + 4) }
