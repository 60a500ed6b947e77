package cuda

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend/cuda/driver"
	"github.com/baleenrun/baleen/internal/backend/cuda/kernels"
	"github.com/baleenrun/baleen/internal/plan"
)

// compiler turns operations into launches.
type compiler struct {
	*exec
	gathered bool      // after Gather
	quant    plan.Val  // what the buffer of quantized activations holds at this point; width 0: nothing
	ops      []plan.Op // what comes after the operation
	residual *plan.Add // done by the norm that comes next
	skip     int       // operations that are done already
	opName   string    // what launches are made for
}

func (e *exec) compile() error {
	c := &compiler{exec: e}
	for i, op := range e.plan.Ops {
		if c.skip > 0 { // done with the operation before
			c.skip--
			continue
		}
		c.ops = e.plan.Ops[i+1:]
		c.opName = strings.TrimPrefix(fmt.Sprintf("%T", op), "*plan.")
		if err := c.op(op); err != nil {
			return fmt.Errorf("operation %d (%T): %w", i, op, err)
		}
	}
	return nil
}

// overwritten forgets quantized values that an operation changed.
func (c *compiler) overwritten(vs []plan.Val) {
	for _, v := range vs {
		q := c.quant
		if v.Buf == q.Buf && v.Off < q.Off+q.Width && q.Off < v.Off+v.Width {
			c.quant = plan.Val{}
		}
	}
}

func (c *compiler) op(op plan.Op) error {
	var err error
	var made plan.Val // values that the operation leaves quantized too
	switch o := op.(type) {
	case *plan.Embed:
		err = c.embed(o)
	case *plan.Norm:
		made, err = c.norm(o)
	case *plan.MatMul:
		err = c.matMul(o)
	case *plan.HeadMatMul:
		err = c.headMatMul(o)
	case *plan.RopeOp:
		if k, s := c.ropeStored(o); s != nil {
			c.skip = 2
			return c.ropeStore(o, k, s)
		}
		err = c.rope(o)
	case *plan.StoreKV:
		err = c.storeKV(o)
	case *plan.Attention:
		made, err = c.attention(o)
	case *plan.Add:
		if len(c.ops) > 0 {
			if n, ok := c.ops[0].(*plan.Norm); ok && n.In == o.Out && n.Heads == 1 {
				c.residual = o
				break
			}
		}
		made, err = c.elementOp(op)
	case *plan.Router:
		err = c.router(o)
	case *plan.Experts:
		err = c.experts(o)
	case *plan.ShortConv:
		err = c.shortConv(o)
	case *plan.DeltaScan:
		err = c.deltaScan(o)
	case *plan.Gather:
		err = c.gather(o)
	default:
		made, err = c.elementOp(op)
	}
	if err != nil {
		return err
	}
	c.overwritten(plan.Writes(op))
	if made.Width > 0 {
		c.quant = made
	}
	return nil
}

// launcher starts one kernel with parameters that never change.
type launcher struct {
	f      *driver.Function
	params unsafe.Pointer
}

func (c *compiler) launcher(unit, kernel string, params unsafe.Pointer) (launcher, error) {
	f, err := c.kernel(unit, kernel)
	return launcher{f, params}, err
}

func (l launcher) run(gx, gy, gz, threads, shared int) error {
	return l.f.Launch(gx, gy, gz, threads, shared, l.params)
}

func (c *compiler) pass(run func(b bucket) error) { c.passes = append(c.passes, pass{c.opName, run}) }

// rows returns the address of the number of rows, and what it is at most in a bucket.
func (c *compiler) rows() (uint64, func(b bucket) int) {
	if c.gathered {
		return c.in(inOuts), func(b bucket) int { return b.outs }
	}
	return c.in(inRows), func(b bucket) int { return b.rows }
}

func (e *exec) quantizedAt(q quantized) kernels.Quantized {
	return kernels.Quantized{Frag: uint64(e.at(q.frag)), Meta: uint64(e.at(q.meta)), Sums: uint64(e.at(q.sums))}
}

// wanted reports whether the next operation multiplies v by quantized weights, so that who writes v may quantize it
// too.
func (c *compiler) wanted(v plan.Val) bool {
	if len(c.ops) == 0 {
		return false
	}
	m, ok := c.ops[0].(*plan.MatMul)
	return ok && m.In == v && v.Width%32 == 0 && c.anyQuantized(m.W)
}

func (c *compiler) anyQuantized(ws []plan.WeightID) bool {
	for _, id := range ws {
		if floatBytes(c.plan.Weights[id].Type) == 0 {
			return true
		}
	}
	return false
}

const threads = 256

func blocks(n int) int { return (n + threads - 1) / threads }

// element adds a launch of elementwise over width values of each row.
func (c *compiler) element(p *kernels.Element, width int) error {
	count, most := c.rows()
	p.Rows, p.Width = count, int32(width)
	l, err := c.launcher("elementwise", "elementwise", unsafe.Pointer(p))
	if err != nil {
		return err
	}
	c.pass(func(b bucket) error {
		if most(b) == 0 {
			return nil
		}
		return l.run(blocks(width), most(b), 1, threads, 0)
	})
	return nil
}

func (c *compiler) embed(o *plan.Embed) error {
	p := &kernels.Element{Op: kernels.OpScale, A: uint64(c.at(c.embeds[o])), AStride: int32(o.Out.Width), F: o.Scale}
	p.Out, p.OutStride = c.val(o.Out)
	return c.element(p, o.Out.Width)
}

func (c *compiler) elementOp(op plan.Op) (made plan.Val, err error) {
	p := &kernels.Element{}
	width := 0
	inPlace := func(v plan.Val) {
		p.A, p.AStride = c.val(v)
		p.Out, p.OutStride = p.A, p.AStride
		width = v.Width
	}
	from := func(in, out plan.Val) {
		p.A, p.AStride = c.val(in)
		p.Out, p.OutStride = c.val(out)
		width = in.Width
	}
	switch o := op.(type) {
	case *plan.Act:
		p.Op, p.Kind = kernels.OpAct, int32(o.Kind)
		from(o.In, o.Out)
		made = o.Out
	case *plan.GLU:
		p.Op, p.Kind, p.F, p.F2 = kernels.OpGLU, int32(o.Kind), o.Limit, o.Alpha
		from(o.Gate, o.Out)
		p.B, p.BStride = c.val(o.Up)
		made = o.Out
	case *plan.Gate:
		p.Op, p.Kind, p.N = kernels.OpGate, int32(o.Kind), int32(o.X.Width/o.G.Width)
		from(o.X, o.Out)
		p.B, p.BStride = c.val(o.G)
		made = o.Out
	case *plan.Add:
		p.Op, p.F = kernels.OpAdd, o.Scale
		from(o.In, o.Out)
	case *plan.Scale:
		p.Op, p.F, p.V = kernels.OpScale, o.Factor, c.vector(o.V)
		if o.V != plan.None {
			p.VLen = int32(len(c.plan.Vectors[o.V].Data))
		}
		inPlace(o.X)
	case *plan.SoftCap:
		p.Op, p.F = kernels.OpSoftCap, o.Cap
		inPlace(o.X)
	case *plan.PosScale:
		p.Op, p.V = kernels.OpRowScale, c.in(c.inputs.factors[o])
		inPlace(o.X)
	case *plan.Clamp:
		p.Op, p.F = kernels.OpClamp, o.Limit
		inPlace(o.X)
	case *plan.CopyHeads:
		p.Op, p.N = kernels.OpCopyHeads, int32(o.Width)
		p.M, p.OffIn, p.M2, p.OffOut = int32(o.InStride), int32(o.InOff), int32(o.OutStride), int32(o.OutOff)
		from(o.In, o.Out)
		width = o.Heads * o.Width
	case *plan.Copy:
		p.Op = kernels.OpCopy
		from(o.In, o.Out)
	case *plan.Decay:
		p.Op, p.V, p.V2 = kernels.OpDecay, c.vector(o.ALog), c.vector(o.Bias)
		p.N = int32(o.X.Width / len(c.plan.Vectors[o.ALog].Data))
		if o.AIsNeg {
			p.Kind = 1
		}
		from(o.X, o.Out)
	default:
		return made, fmt.Errorf("there is no kernel for it")
	}
	if made.Width > 0 && c.wanted(made) {
		p.Q = c.quantizedAt(c.act)
	} else {
		made = plan.Val{}
	}
	return made, c.element(p, width)
}

func (c *compiler) norm(o *plan.Norm) (made plan.Val, err error) {
	n := o.In.Width / o.Heads
	p := &kernels.Norm{N: int32(n), Kind: int32(o.Kind), W: c.vector(o.W), B: c.vector(o.B), Eps: o.Eps}
	p.X, p.XStride = c.val(o.In)
	p.Out, p.OutStride = c.val(o.Out)
	switch o.Kind {
	case plan.NormL2:
		p.W, p.B = 0, 0
	case plan.NormRMS:
		p.B = 0
	}
	each := func(id plan.VectorID) int32 { // one set of weights per head
		if id != plan.None && len(c.plan.Vectors[id].Data) > n {
			return int32(n)
		}
		return 0
	}
	p.WStep, p.BStep = each(o.W), each(o.B)
	if r := c.residual; r != nil {
		p.Add, p.AddStride = c.val(r.In)
		p.AddScale = r.Scale
		c.residual = nil
	}
	if c.wanted(o.Out) && (o.Heads == 1 || n%32 == 0) {
		p.Q, made = c.quantizedAt(c.act), o.Out
	}
	divided := p.Add == 0 && n >= 1024 && !overlaps(o.In, o.Out)
	count, most := c.rows()
	p.Rows = count
	l, err := c.launcher("elementwise", "norm", unsafe.Pointer(p))
	if err != nil {
		return made, err
	}
	size := min(1024, max(32, roundUp(n/4, 32)))
	c.pass(func(b bucket) error {
		if most(b) == 0 {
			return nil
		}
		// Few rows leave most of the device idle: each is divided, unless it is written to where it is read from.
		parts := 1
		if divided && o.Heads*most(b) <= 16 {
			parts = 8
		}
		return l.run(o.Heads, most(b), parts, size, 4*n)
	})
	return made, nil
}

func (c *compiler) ropeArgs(o *plan.RopeOp) kernels.Rope {
	pairs := len(c.plan.Ropes[o.Rope].InvFreq)
	p := kernels.Rope{
		Pos: c.in(c.inputs.pos), Cos: uint64(c.at(c.ropes[o.Rope])), Heads: int32(o.Heads), HeadDim: int32(o.HeadDim),
		Off: int32(o.Off), Pairs: int32(pairs),
	}
	p.Sin = p.Cos + uint64(4*c.plan.Context*pairs)
	p.X, p.Stride = c.val(o.X)
	if o.Interleaved {
		p.Interleaved = 1
	}
	p.Rows, _ = c.rows()
	return p
}

func (c *compiler) rope(o *plan.RopeOp) error {
	p := c.ropeArgs(o)
	l, err := c.launcher("attention", "rope", unsafe.Pointer(&p))
	if err != nil {
		return err
	}
	c.pass(func(b bucket) error { return l.run(blocks(o.Heads*int(p.Pairs)), b.rows, 1, threads, 0) })
	return nil
}

// ropeStored returns the rotation of keys and their storing where these follow the rotation of queries.
func (c *compiler) ropeStored(q *plan.RopeOp) (*plan.RopeOp, *plan.StoreKV) {
	if len(c.ops) < 2 {
		return nil, nil
	}
	k, ok := c.ops[0].(*plan.RopeOp)
	s, also := c.ops[1].(*plan.StoreKV)
	if !ok || !also || k.X != s.K || k.X == q.X {
		return nil, nil
	}
	if l := c.groups[s.Group].layers[s.Layer]; k.HeadDim != l.KDim || k.Heads != l.Heads || overlaps(q.X, s.K) ||
		overlaps(q.X, s.V) {
		return nil, nil
	}
	return k, s
}

func overlaps(a, b plan.Val) bool {
	return a.Buf == b.Buf && a.Off < b.Off+b.Width && b.Off < a.Off+a.Width
}

// ropeStore turns queries and keys and stores keys and values at once.
func (c *compiler) ropeStore(q, k *plan.RopeOp, s *plan.StoreKV) error {
	p := &kernels.RopeStore{Q: c.ropeArgs(q), K: c.ropeArgs(k), Store: c.storeArgs(s)}
	l := c.groups[s.Group].layers[s.Layer]
	width := q.Heads*int(p.Q.Pairs) + l.Heads*(l.KDim-int(p.K.Pairs))
	if !l.VInK {
		width += l.Heads * l.VDim
	}
	f, err := c.launcher("attention", c.kv("rope_store"), unsafe.Pointer(p))
	if err != nil {
		return err
	}
	c.overwritten([]plan.Val{q.X, k.X})
	c.pass(func(b bucket) error { return f.run(blocks(width), b.rows, 1, threads, 0) })
	return nil
}

func (c *compiler) gather(o *plan.Gather) error {
	for _, v := range o.Vals {
		p := &kernels.Gather{Outs: c.in(inOuts), Index: c.in(c.inputs.outs), Width: int32(v.Width)}
		p.X, p.Stride = c.val(v)
		l, err := c.launcher("elementwise", "gather", unsafe.Pointer(p))
		if err != nil {
			return err
		}
		c.pass(func(b bucket) error {
			if b.outs == 0 {
				return nil
			}
			return l.run(blocks(v.Width), 1, 1, threads, 0)
		})
	}
	c.gathered, c.quant = true, plan.Val{}
	return nil
}

func (c *compiler) kv(kernel string) string {
	if c.elem == 4 {
		return kernel + "_f32"
	}
	return kernel + "_f16"
}

func (c *compiler) tables(group int) kernels.Tables {
	return kernels.Tables{Pages: c.in(c.inputs.tables + group*c.inputs.tableWords), Stride: c.in(inStride)}
}

func (c *compiler) storeArgs(o *plan.StoreKV) kernels.Store {
	l := c.groups[o.Group].layers[o.Layer]
	p := kernels.Store{
		Pos: c.in(c.inputs.pos), Seq: c.in(c.inputs.seq), Tables: c.tables(o.Group), Base: c.layerBase(o.Group, l),
		PageBytes: int64(l.bytes), Heads: int32(l.Heads), KDim: int32(l.KDim), VDim: int32(l.VDim),
		HeadBytes: int32(l.headBytes), VOff: int32(l.vOff),
	}
	p.K, p.KStride = c.val(o.K)
	if !l.VInK {
		p.V, p.VStride = c.val(o.V)
	}
	p.Rows, _ = c.rows()
	return p
}

func (c *compiler) storeKV(o *plan.StoreKV) error {
	p := c.storeArgs(o)
	f, err := c.launcher("attention", c.kv("store_kv"), unsafe.Pointer(&p))
	if err != nil {
		return err
	}
	width := int(max(p.Heads*p.KDim, p.Heads*p.VDim))
	c.pass(func(b bucket) error { return f.run(blocks(width), b.rows, 1, threads, 0) })
	return nil
}

func (e *exec) layerBase(group int, l layerLayout) uint64 {
	return uint64(e.pages[group]) + uint64(l.off*e.opt.Pages[group])
}

// sharedHeads is how many of the heads that share a key head a block of threads takes: the largest divisor up to 8.
func sharedHeads(group int) int {
	for n := min(group, 8); n > 1; n-- {
		if group%n == 0 {
			return n
		}
	}
	return 1
}

// A split says how attention is divided.
type split struct {
	queries int // of a block of threads: 1, 4 or 8
	heads   int // of one tile that a block takes
	rows    int // of a tile
	parts   int // chunks with results of their own; 0: a block of threads walks all chunks
}

// splitFor chooses the division of attention for a bucket: few rows leave most of the device idle unless chunks are
// computed
// beside each other, and heads that share keys too as long as keys are few.
func splitFor(b bucket, heads, group, window, vdim, cores int) split {
	shared := sharedHeads(group)
	s := split{queries: 8, heads: shared, rows: 1 << tilesOf(8/shared)}
	chunks := b.chunks
	if window > 0 {
		chunks = min(chunks, (window+s.rows-1+chunkKeys-1)/chunkKeys+1)
	}
	tiles := (b.rows + s.rows - 1) / s.rows
	if heads/shared*tiles >= 2*cores {
		return s
	}
	if 4*b.rows*heads*chunks*(vdim+2) > maxParts { // there is no room for more
		return s
	}
	switch {
	case b.rows*heads*chunks <= 2*cores:
		s = split{queries: 1, heads: 1, rows: 1}
	case shared == 4 || shared == 3:
		s.queries, s.rows = 4, 1
	}
	if chunks > 1 {
		s.parts = chunks
	}
	return s
}

func (c *compiler) attention(o *plan.Attention) (quantized plan.Val, err error) {
	l := c.groups[o.Group].layers[o.Layer]
	window := c.plan.Groups[o.Group].Window
	if o.Window > 0 && (window == 0 || o.Window < window) {
		window = o.Window
	}
	p := kernels.Attend{
		Pos: c.in(c.inputs.pos), Seq: c.in(c.inputs.seq), Tables: c.tables(o.Group), Base: c.layerBase(o.Group, l),
		PageBytes: int64(l.bytes), Heads: int32(o.Heads), Group: int32(o.Heads / l.Heads), KDim: int32(l.KDim),
		VDim:      int32(l.VDim),
		HeadBytes: int32(l.headBytes), VOff: int32(l.vOff), Window: int32(window), Scale: o.Scale, Cap: o.SoftCap,
		Sinks: c.vector(o.Sinks), Parts: uint64(c.at(c.parts)),
	}
	p.Q, p.QStride = c.val(o.Q)
	p.Out, p.OutStride = c.val(o.Out)
	if l.VInK {
		p.VInK = 1
	}
	if c.wanted(o.Out) && l.VDim%32 == 0 {
		p.Quantized, quantized = c.quantizedAt(c.act), o.Out
	}
	attend := map[int]*driver.Function{}
	for _, n := range []int{1, 4, 8} {
		if attend[n], err = c.kernel("attention", fmt.Sprintf("%s_%d", c.kv("attend"), n)); err != nil {
			return quantized, err
		}
	}
	merge, err := c.kernel("attention", "attend_merge")
	if err != nil {
		return quantized, err
	}
	made := map[split][2]*kernels.Attend{} // parameters of the divisions in use
	group := o.Heads / l.Heads
	c.pass(func(b bucket) error {
		s := splitFor(b, o.Heads, group, window, l.VDim, c.info.Cores)
		ps, ok := made[s]
		if !ok {
			t := tilesOf(s.rows)
			a := p
			a.Ring = int32(ringPages(l.KVLayer, c.elem))
			a.Rows, a.Tiles, a.PerTile, a.Chunks = c.in(
				inTiles+t,
			), c.in(
				c.inputs.tiles[t],
			), int32(
				s.heads,
			), int32(
				s.parts,
			)
			if s.parts > 0 {
				a.Split = 1
			}
			m := a
			m.Rows, m.Tiles = c.in(inRows), c.in(c.inputs.tileOf[t])
			ps = [2]*kernels.Attend{&a, &m}
			made[s] = ps
		}
		f := launcher{attend[s.queries], unsafe.Pointer(ps[0])}
		// Tiles of several sequences may be more than rows/s.rows: each sequence's last may be short.
		tiles := min(b.rows, b.rows/s.rows+b.seqs)
		if err := f.run(o.Heads/s.heads, max(1, s.parts), tiles, 128, attendShared(l.KVLayer, s.queries,
			c.elem)); err != nil {
			return err
		}
		if s.parts == 0 {
			return nil
		}
		return launcher{merge, unsafe.Pointer(ps[1])}.run(o.Heads, b.rows, 1, min(threads, roundUp(l.VDim, 32)), 0)
	})
	return quantized, nil
}

func (c *compiler) router(o *plan.Router) error {
	r := c.plan.Routes[o.Route]
	p := &kernels.Route{
		IDs: uint64(c.at(c.routes[o.Route].ids)), Weights: uint64(c.exec.at(c.routes[o.Route].weights)),
		Bias:    c.vector(o.Bias),
		Experts: int32(r.Experts), TopK: int32(r.TopK), Kind: int32(o.Kind), Groups: int32(o.Groups),
		GroupTopK: int32(o.GroupTopK),
		NormEps:   o.NormEps, Scale: o.Scale,
	}
	p.Logits, p.Stride = c.val(o.In)
	if o.GroupSum2 {
		p.GroupSum2 = 1
	}
	if o.Norm {
		p.Norm = 1
	}
	count, most := c.rows()
	p.Rows = count
	l, err := c.launcher("experts", "route", unsafe.Pointer(p))
	if err != nil {
		return err
	}
	c.pass(func(b bucket) error {
		if most(b) == 0 {
			return nil
		}
		return l.run(most(b), 1, 1, 32, routeShared(r))
	})
	return nil
}

func (c *compiler) shortConv(o *plan.ShortConv) error {
	p := &kernels.Conv{
		Seqs: c.in(inSeqs), Spans: c.in(c.inputs.spans), W: c.vector(o.W), B: c.vector(o.B), Slots: uint64(c.slots),
		SlotFloats: int64(c.slotFloats), Channels: int32(o.In.Width), Kernel: int32(o.Kernel), Kind: int32(o.Kind),
		State: int32(c.stateOff[o.State]),
	}
	p.X, p.XStride = c.val(o.In)
	p.Out, p.OutStride = c.val(o.Out)
	l, err := c.launcher("recurrent", "short_conv", unsafe.Pointer(p))
	if err != nil {
		return err
	}
	c.pass(func(b bucket) error { return l.run(blocks(o.In.Width), b.seqs, 1, threads, 0) })
	return nil
}

func (c *compiler) deltaScan(o *plan.DeltaScan) error {
	p := &kernels.Delta{
		Seqs: c.in(inSeqs), Spans: c.in(c.inputs.spans), Slots: uint64(c.slots), SlotFloats: int64(c.slotFloats),
		KHeads: int32(o.KHeads), VHeads: int32(o.VHeads), KDim: int32(o.KDim), VDim: int32(o.VDim), Scale: o.Scale,
		State: int32(c.stateOff[o.State]),
	}
	p.Q, p.QStride = c.val(o.Q)
	p.K, p.KStride = c.val(o.K)
	p.V, p.VStride = c.val(o.V)
	p.Decay, p.DecayStride = c.val(o.Decay)
	p.Beta, p.BetaStride = c.val(o.Beta)
	p.Out, p.OutStride = c.val(o.Out)
	if o.PerChannel {
		p.PerChannel = 1
	}
	if o.Tiled {
		p.Tiled = 1
	}
	l, err := c.launcher("recurrent", "delta_scan", unsafe.Pointer(p))
	if err != nil {
		return err
	}
	c.pass(func(b bucket) error { return l.run(b.seqs, o.VHeads, (o.VDim+31)/32, 32, deltaShared(o)) })
	return nil
}
