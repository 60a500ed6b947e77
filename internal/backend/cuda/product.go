package cuda

import (
	"fmt"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend/cuda/driver"
	"github.com/baleenrun/baleen/internal/backend/cuda/kernels"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

// maxTogether is how many matrices one launch multiplies by.
const maxTogether = 4

// productShared is the shared memory that a product needs at least, for so many columns (float) or tiles of columns
// (quantized).
func productShared(t quant.Type, k, n int) int {
	segments := (k + 511) / 512
	if floatBytes(t) > 0 {
		return floatShared(segments, n, 1)
	}
	return fewShared(t, segments, n, 1)
}

// floatShared is the shared memory of a product with float weights: the warps' activations, and segments' sums.
func floatShared(segments, columns, warps int) int {
	const piece = 128
	return 4 * columns * (warps*piece + segments*floatRows)
}

// stages is how many units each warp of a product with few columns has in shared memory, as in matmul_quant.cu.
//
// RATIONALE: Why does each warp fetch its own weights ahead?
func stages(t quant.Type) int {
	switch n := packings[t].unitBytes(); {
	case n <= 2560:
		return 4
	case n <= 3456:
		return 3
	}
	return 2
}

// fewShared is the shared memory of a product with few columns: the warps' units, and two sets of segments' sums.
func fewShared(t quant.Type, segments, tiles, warps int) int {
	return warps*stages(t)*packings[t].unitBytes() + 2*segments*tiles*512
}

// manyShared is the shared memory of a product with many columns: activations of half a unit and units of weights,
// twice.
func manyShared(t quant.Type, s shape) int {
	const half, tiles = 4, 8
	act := half * tiles * (256 + 64)
	switch t {
	case quant.Q4_0, quant.Q5_0, quant.Q2_K, quant.Q3_K, quant.Q6_K: // the sums of activations
		act += half * tiles * 64
	}
	return 2*act + 2*s.groups*packings[t].unitBytes()
}

// fewWarps chooses the number of warps that share a group's segments: as many as fit, up to 8, with the least left
// over.
// 0: not even one fits.
func fewWarps(t quant.Type, segments, tiles, limit int) int {
	best, rounds := 0, 0
	for w := 1; w <= min(8, segments); w++ {
		if fewShared(t, segments, tiles, w) > limit {
			break
		}
		if r := (segments + w - 1) / w; best == 0 || r < rounds {
			best, rounds = w, r
		}
	}
	return best
}

// fewBlocks is how many blocks of threads go through the groups of rows: what a device holds at once, each with as much
// to do.
func fewBlocks(groups, others, warps, shared, cores int) int {
	const warpsOfCore, sharedOfCore = 16, 220 << 10
	each := max(1, min(warpsOfCore/warps, sharedOfCore/shared))
	n := max(1, min(groups, cores*each/others))
	rounds := (groups + n - 1) / n
	return (groups + rounds - 1) / rounds
}

// A product is what one launch multiplies.
type product struct {
	t       quant.Type
	k       int
	ws      []*plan.Weight
	m       kernels.Matrices
	groups  int
	counter uint64           // number of columns
	most    func(bucket) int // at most
	q       kernels.Quantized
	x       uint64 // float input
	xStride int

	// Products of experts: a tile of 8 columns has one. Products of heads: each has its own columns.
	expert             uint64
	heads              int
	matrixBytes        int64
	headTiles          int
	headInput, headOut int

	sum *plan.Add // of one matrix: the results are added to other values too
}

// add puts one more matrix into the launch.
func (p *product) add(w *plan.Weight, at, y uint64, yStride int32, bias uint64) error {
	per, size, err := groupShape(w.Type, w.K)
	if err != nil {
		return err
	}
	n := len(p.ws)
	groups := (w.Rows + per - 1) / per
	p.ws = append(p.ws, w)
	p.groups += groups
	p.t, p.k, p.matrixBytes = w.Type, w.K, int64(groups)*int64(size)
	p.m.W[n], p.m.Y[n], p.m.Bias[n] = at, y, bias
	p.m.Rows[n], p.m.Groups[n], p.m.YStride[n] = int32(w.Rows), int32(p.groups), yStride
	return nil
}

func (c *compiler) weightAddr(id plan.WeightID) uint64 {
	return uint64(c.weights) + uint64(c.weightAt[id])
}

func (c *compiler) matMul(o *plan.MatMul) error {
	count, most := c.rows()
	if c.anyQuantized(o.W) && c.quant != o.In {
		p := &kernels.Element{Op: kernels.OpQuantize, Q: c.quantizedAt(c.act)}
		p.A, p.AStride = c.val(o.In)
		if err := c.element(p, o.In.Width); err != nil {
			return err
		}
		c.quant = o.In
	}
	x, xStride := c.val(o.In)
	for first := 0; first < len(o.W); {
		p := &product{counter: count, most: most, q: c.quantizedAt(c.act), x: x, xStride: int(xStride), heads: 1}
		for ; first < len(o.W) && len(p.ws) < maxTogether; first++ {
			w := &c.plan.Weights[o.W[first]]
			if len(p.ws) > 0 && w.Type != p.t {
				break
			}
			y, yStride := c.val(o.Out[first])
			bias := uint64(0)
			if o.Bias != nil {
				bias = c.vector(o.Bias[first])
			}
			if err := p.add(w, c.weightAddr(o.W[first]), y, yStride, bias); err != nil {
				return err
			}
		}
		if len(o.W) == 1 && floatBytes(p.t) == 0 && len(c.ops) > 0 {
			if a, ok := c.ops[0].(*plan.Add); ok && a.In == o.Out[0] && !overlaps(a.Out, o.Out[0]) &&
				!overlaps(a.Out, o.In) {
				p.sum, c.skip = a, 1
				c.overwritten([]plan.Val{a.Out})
			}
		}
		if err := c.product(p); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) headMatMul(o *plan.HeadMatMul) error {
	w := &c.plan.Weights[o.W]
	count, most := c.rows()
	p := &product{counter: count, most: most, heads: w.Experts, headOut: o.OutStride}
	x, xStride := c.val(o.In)
	if floatBytes(w.Type) > 0 {
		p.x, p.xStride, p.headInput = x+4*uint64(o.InOff), int(xStride), o.InStride
	} else {
		p.headTiles = (c.opt.MaxRows + tileCols - 1) / tileCols
		p.q = c.quantizedAt(c.act)
		q := &kernels.HeadQuantize{
			Rows: count, X: x, Q: p.q, Stride: xStride, HeadStride: int32(o.InStride), Off: int32(o.InOff), K: int32(w.K),
			Tiles: int32(p.headTiles),
		}
		l, err := c.launcher("elementwise", "quantize_heads", unsafe.Pointer(q))
		if err != nil {
			return err
		}
		c.quant = plan.Val{}
		c.pass(func(b bucket) error {
			if most(b) == 0 {
				return nil
			}
			return l.run(blocks(w.K), most(b), w.Experts, threads, 0)
		})
	}
	y, yStride := c.val(o.Out)
	if err := p.add(w, c.weightAddr(o.W), y+4*uint64(o.OutOff), yStride, 0); err != nil {
		return err
	}
	return c.product(p)
}

// product adds the launch.
func (c *compiler) product(p *product) error {
	c.opName = fmt.Sprintf("%v %d x %d", p.t, p.groups*map[bool]int{
		true:  floatRows,
		false: groupRows,
	}[floatBytes(p.t) > 0], p.k)
	if floatBytes(p.t) > 0 {
		return c.floatProduct(p)
	}
	return c.quantProduct(p)
}

// floatProduct adds a launch of a product with float weights.
//
// RATIONALE: Why do CUDA kernels keep the CPU's chains for float weights too?
func (c *compiler) floatProduct(p *product) error {
	a := &kernels.FloatProduct{
		Cols: p.counter, Expert: p.expert, M: p.m, X: p.x, MatrixBytes: p.matrixBytes, XStride: int32(p.xStride),
		K: int32(p.k), N: int32(len(p.ws)),
		HeadX: int32(p.headInput), HeadY: int32(p.headOut),
	}
	one, err := c.launcher(unitOf(p.t), "float_1", unsafe.Pointer(a))
	if err != nil {
		return err
	}
	eight, err := c.launcher(unitOf(p.t), "float_8", unsafe.Pointer(a))
	if err != nil {
		return err
	}
	many, err := c.launcher(unitOf(p.t), "float_32", unsafe.Pointer(a))
	if err != nil {
		return err
	}
	segments := (p.k + 511) / 512
	const wide = 32
	warps := min(8, segments)
	fits := func(columns int) bool { return floatShared(segments, columns, warps) <= c.sharedLimit() }
	one8, one32 := fits(tileCols), fits(wide) && p.expert == 0
	if !fits(1) {
		warps = 1
	}
	c.pass(func(b bucket) error {
		n := p.most(b)
		if n == 0 {
			return nil
		}
		size := 32 * warps
		switch {
		case n == 1 || !one8:
			return one.run(p.groups, n, p.heads, size, floatShared(segments, 1, warps))
		case n > 2*tileCols && one32:
			return many.run(p.groups, (n+wide-1)/wide, p.heads, size, floatShared(segments, wide, warps))
		}
		return eight.run(p.groups, (n+tileCols-1)/tileCols, p.heads, size, floatShared(segments, tileCols, warps))
	})
	return nil
}

func (e *exec) sharedLimit() int { return usableShared(e.info.Shared) }

// A shape is a way of multiplying quantized weights.
type shape struct {
	kernel string
	tiles  int // of columns, that a block of threads has
	groups int // of rows; 0: one, whose segments warps share
}

var (
	one1   = shape{"one_1", 1, 0}
	few1   = shape{"few_1", 1, 0}
	few2   = shape{"few_2", 2, 0}
	few4   = shape{"few_4", 4, 0}
	many1  = shape{"many_1", 8, 4}
	many2  = shape{"many_2", 8, 8}
	split1 = shape{"split_1", 8, 4}
)

// shapeFor chooses the way for a number of columns.
func shapeFor(t quant.Type, columns, groups, segments, cores, shared int) shape {
	if columns > 32 && manyShared(t, many2) > shared {
		columns = 32 // a device with little shared memory
	}
	fits := func(s shape) bool { return fewWarps(t, segments, s.tiles, shared) >= min(4, segments) }
	switch {
	case columns > 32:
		// Where rows do not fill the device, segments are divided and their sums added by another kernel.
		if (groups+3)/4*((columns+63)/64) < 2*cores && 4*segments*columns*groupRows*(groups+3) <= maxSums {
			return split1
		}
		// A core holds 3 blocks of threads of one kind and 2 of the other, which does twice as much in 1.8 times as
		// long.
		tiles := (columns + 63) / 64
		waves := func(blocks, each int) int { return (blocks + each*cores - 1) / (each * cores) }
		if 36*waves((groups+7)/8*tiles, 2) < 30*waves((groups+3)/4*tiles, 3) {
			return many2
		}
		return many1
	case columns > 16 && fits(few4):
		return few4
	case columns > 8 && fits(few2):
		return few2
	}
	if columns == 1 {
		return one1
	}
	return few1
}

func (c *compiler) quantProduct(p *product) error {
	segments := (p.k + 511) / 512
	base := kernels.QuantProduct{
		Cols: p.counter, Expert: p.expert, M: p.m, Q: p.q, MatrixBytes: p.matrixBytes, Blocks: int32(roundUp(p.k/32,
			unitWeights/32)), N: int32(len(p.ws)),
		HeadTiles: int32(p.headTiles), HeadY: int32(p.headOut),
	}
	if p.sum != nil {
		base.Sum, base.SumStride = c.val(p.sum.Out)
		base.SumScale = p.sum.Scale
	}
	type way struct {
		f *driver.Function
		p *kernels.QuantProduct
		g int // blocks of threads over the rows
	}
	ways := map[shape]way{}
	for _, s := range []shape{one1, few1, few2, few4, many1, many2, split1} {
		f, err := c.kernel(unitOf(p.t), s.kernel)
		if err != nil {
			return err
		}
		a := base
		w := way{f, &a, p.groups}
		if s.groups > 0 { // a block of threads has rows of one matrix: each matrix's groups are rounded up
			w.g = 0
			for i, m := range p.ws {
				w.g += ((m.Rows+groupRows-1)/groupRows + s.groups - 1) / s.groups
				a.M.Groups[i] = int32(w.g * s.groups)
			}
		}
		if s == split1 {
			a.Part, a.Split, a.PartRows = uint64(c.at(c.sums)), 1, int32(w.g*s.groups*groupRows)
		}
		ways[s] = w
	}
	add, err := c.kernel(unitOf(p.t), "sum_parts")
	if err != nil {
		return err
	}
	c.pass(func(b bucket) error {
		n := p.most(b)
		if n == 0 {
			return nil
		}
		s := few1
		if p.expert == 0 && p.heads == 1 {
			s = shapeFor(p.t, n, p.groups, segments, c.info.Cores, c.sharedLimit())
		}
		w := ways[s]
		columns := s.tiles * tileCols
		size, shared, across := 128, manyShared(p.t, s), w.g
		if s.groups == 0 {
			warps := fewWarps(p.t, segments, s.tiles, c.sharedLimit())
			size, shared = 32*warps, fewShared(p.t, segments, s.tiles, warps)
			across = fewBlocks(w.g, (n+columns-1)/columns*p.heads, warps, shared, c.info.Cores)
		}
		deep := p.heads
		if s == split1 {
			deep = segments
		}
		if err := w.f.Launch(across, (n+columns-1)/columns, deep, size, shared, unsafe.Pointer(w.p)); err != nil {
			return fmt.Errorf("%q: %w", p.ws[0].Name, err)
		}
		if s == split1 {
			return add.Launch(blocks(int(w.p.PartRows)), n, 1, threads, 0, unsafe.Pointer(w.p))
		}
		return nil
	})
	return nil
}

// experts adds the launches of a mixture: slots are sorted by expert, so that each multiplies its rows together.
func (c *compiler) experts(o *plan.Experts) error {
	r := c.plan.Routes[o.Route]
	x := &c.sizes.experts
	count, most := c.rows()
	ids, weights := uint64(c.at(c.routes[o.Route].ids)), uint64(c.exec.at(c.routes[o.Route].weights))
	at := func(off int64) uint64 { return uint64(c.at(off)) }
	sorted := &kernels.Sort{
		Rows: count, IDs: ids, Col: at(x.col), Slot: at(x.slot), Expert: at(x.expert), Tiles: at(x.tiles),
		TopK: int32(r.TopK), Experts: int32(r.Experts),
	}
	sort, err := c.launcher("experts", "sort_slots", unsafe.Pointer(sorted))
	if err != nil {
		return err
	}
	c.pass(func(b bucket) error {
		if most(b) == 0 {
			return nil
		}
		return sort.run(1, 1, 1, 1024, 4*(2*r.Experts+1))
	})
	gate, up, down := &c.plan.Weights[o.Gate], &c.plan.Weights[o.Up], &c.plan.Weights[o.Down]
	columns := func(b bucket) int { return tileCols * maxTiles(most(b)*r.TopK, r.Experts) }
	common := kernels.Expert{
		Cols: at(x.tiles) + 4, Slot: at(x.slot), Col: at(x.col), Expert: at(x.expert), IDs: ids, Weights: weights,
		TopK: int32(r.TopK),
		Kind: int32(o.Kind), Limit: o.Limit, Alpha: o.Alpha,
	}
	if o.WeightInput {
		common.Weigh = 1
	}
	step := func(kernel string, p *kernels.Expert, cols func(bucket) int) error {
		l, err := c.launcher("experts", kernel, unsafe.Pointer(p))
		if err != nil {
			return err
		}
		c.pass(func(b bucket) error {
			if cols(b) == 0 {
				return nil
			}
			return l.run(blocks(int(p.Width)), cols(b), 1, threads, 0)
		})
		return nil
	}

	in := common
	in.X, in.XStride = c.val(o.In)
	in.Width = int32(gate.K)
	if floatBytes(gate.Type) > 0 {
		in.Out = at(x.floatIn)
	} else {
		in.Q = c.quantizedAt(x.in)
	}
	if err := step("expert_input", &in, columns); err != nil {
		return err
	}
	multiply := func(q quantized, input int64, k int, ws []plan.WeightID, outs []int64) error {
		for first := 0; first < len(ws); {
			p := &product{
				counter: at(
					x.tiles,
				) + 4, most: columns, expert: at(x.expert), heads: 1, q: c.quantizedAt(q), x: at(input),
				xStride: k,
			}
			for ; first < len(ws); first++ {
				w := &c.plan.Weights[ws[first]]
				if len(p.ws) > 0 && w.Type != p.t {
					break
				}
				if err := p.add(w, c.weightAddr(ws[first]), at(outs[first]), int32(w.Rows), 0); err != nil {
					return err
				}
			}
			if err := c.product(p); err != nil {
				return err
			}
		}
		return nil
	}
	if err := multiply(x.in, x.floatIn, gate.K, []plan.WeightID{o.Gate, o.Up}, []int64{x.gate, x.up}); err != nil {
		return err
	}
	mid := common
	mid.X, mid.U, mid.Width, mid.Bias, mid.Bias2 = at(x.gate), at(x.up), int32(gate.Rows), c.vector(o.GateB),
		c.vector(o.UpB)
	if floatBytes(down.Type) > 0 {
		mid.Out = at(x.floatMid)
	} else {
		mid.Q = c.quantizedAt(x.mid)
	}
	if err := step("expert_gate", &mid, columns); err != nil {
		return err
	}
	if err := multiply(x.mid, x.floatMid, down.K, []plan.WeightID{o.Down}, []int64{x.down}); err != nil {
		return err
	}
	sum := common
	sum.Cols, sum.X, sum.Width, sum.Bias = count, at(x.down), int32(down.Rows), c.vector(o.DownB)
	sum.Out, sum.OutStride = c.val(o.Out)
	_ = up
	return step("expert_sum", &sum, most)
}
