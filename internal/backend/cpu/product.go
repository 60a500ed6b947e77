package cpu

import (
	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
	"github.com/baleenrun/baleen/internal/plan"
)

// leastBytes is the smallest run of weights that a thread takes at once.
const leastBytes = 32 << 10

// manyRows is the number of rows from which arithmetic takes longer than reading the weights.
const manyRows = 32

// A product is one matrix of a matrix pass.
type product struct {
	m      *matmul.Matrix
	out    plan.Val
	in     plan.Val
	first  int // number of its first group in the pass
	act    matmul.Act
	actLen int // bytes of a quantized row
}

// productPass multiplies the rows by several matrices that share an input.
type productPass struct {
	products []product
	groups   int
	least    int
	each     func(worker, lo, hi int)
}

func (p *productPass) run(e *exec) {
	if e.rows > 0 {
		e.pool.run(p.groups, e.leastGroups(p.groups, p.least), p.each)
	}
}

// leastGroups is the smallest number of groups that a thread takes at once, given how many make leastBytes. With many
// rows each taking goes through all activations again, which do not stay in the second-level cache.
func (e *exec) leastGroups(groups, least int) int {
	if e.rows < manyRows {
		return least
	}
	return max(least, groups/(2*e.pool.n))
}

func (c *compiler) matMul(o *plan.MatMul) error {
	e := c.e
	p := &productPass{}
	widest := 0
	for i, id := range o.W {
		m := &e.weights[id].m[0]
		c.quantize(m.Act(), o.In)
		p.products = append(p.products, product{
			m: m, in: o.In, out: o.Out[i], first: p.groups, act: m.Act(), actLen: m.Act().Bytes(m.K),
		})
		p.groups += m.Groups
		widest = max(widest, m.Stride)
	}
	p.least = max(1, leastBytes/widest)
	p.each = func(worker, lo, hi int) { e.multiply(worker, p.products, lo, hi) }
	c.pass(p)
	c.overwritten(o.Out)
	for i, id := range o.Bias {
		if id == plan.None {
			continue
		}
		b, out := e.vector(id), o.Out[i]
		c.row(out.Width, func(_, r0, r1 int) {
			for r := r0; r < r1; r++ {
				e.vec.Add(e.at(out, r), b, 1)
			}
		})
	}
	return nil
}

// multiply computes groups [lo,hi) of the products laid end to end.
// RATIONALE: Why are weights not fetched ahead of a step's next part?
func (e *exec) multiply(worker int, ps []product, lo, hi int) {
	for i := range ps {
		p := &ps[i]
		g0, g1 := max(lo-p.first, 0), min(hi-p.first, p.m.Groups)
		if g0 >= g1 {
			continue
		}
		act, stride := e.input(p)
		y, yStride := e.from(p.out, 0)
		e.mul(worker, p.m, g0, g1, act, stride, e.rows, y, yStride)
	}
}

// input returns the rows that p multiplies, as its format wants them.
func (e *exec) input(p *product) (act []byte, stride int) {
	if p.act == matmul.ActF32 {
		x, n := e.from(p.in, 0)
		return bytesOf(x), 4 * n
	}
	return e.acts[p.act], p.actLen
}

// quantize adds the quantization of v to the open pass, unless the format's buffer holds it already.
// RATIONALE: Why are activations quantized to 8 bits?
func (c *compiler) quantize(a matmul.Act, v plan.Val) {
	if a == matmul.ActF32 || c.quant[a] == v && v.Width > 0 {
		return
	}
	e := c.e
	n := a.Bytes(v.Width)
	c.row(v.Width, func(_, r0, r1 int) {
		for r := r0; r < r1; r++ {
			e.mm.Quantize(a, e.acts[a][r*n:(r+1)*n], e.at(v, r))
		}
	})
	c.quant[a] = v
}

// headPass multiplies slices of the rows by a matrix each.
func (c *compiler) headMatMul(o *plan.HeadMatMul) error {
	e := c.e
	w := &e.weights[o.W]
	heads, k := len(w.m), w.K
	act := w.m[0].Act()
	groups := w.m[0].Groups
	actLen := act.Bytes(k)
	slice := func(r, h int) []float32 {
		x := e.at(o.In, r)
		return x[h*o.InStride+o.InOff:][:k]
	}
	if act != matmul.ActF32 {
		delete(c.quant, act)
		c.row(heads*k, func(_, r0, r1 int) {
			for r := r0; r < r1; r++ {
				for h := range heads {
					i := h*e.opt.MaxRows + r
					e.mm.Quantize(act, e.acts[act][i*actLen:(i+1)*actLen], slice(r, h))
				}
			}
		})
	}
	each := func(worker, lo, hi int) {
		for lo < hi {
			h, g0 := lo/groups, lo%groups
			g1 := min(groups, g0+hi-lo)
			var in []byte
			stride := actLen
			if act == matmul.ActF32 {
				x, n := e.from(o.In, 0)
				in, stride = bytesOf(x[h*o.InStride+o.InOff:]), 4*n
			} else {
				in = e.acts[act][h*e.opt.MaxRows*actLen:]
			}
			y, yStride := e.from(o.Out, 0)
			e.mul(worker, &w.m[h], g0, g1, in, stride, e.rows, y[h*o.OutStride+o.OutOff:], yStride)
			lo += g1 - g0
		}
	}
	least := max(1, leastBytes/w.m[0].Stride)
	c.pass(passFunc(func() { e.pool.run(heads*groups, least, each) }))
	c.overwritten([]plan.Val{o.Out})
	return nil
}
