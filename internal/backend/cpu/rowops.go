package cpu

import (
	"fmt"
	"math"

	"github.com/baleenrun/baleen/internal/backend/cpu/vec"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

// rowOp compiles an operation whose rows are independent. cost is about the number of values touched a row.
func (c *compiler) rowOp(op plan.Op) (f rowFunc, cost int, err error) {
	e := c.e
	k := e.vec
	each := func(g func(r int)) rowFunc {
		return func(_, r0, r1 int) {
			for r := r0; r < r1; r++ {
				g(r)
			}
		}
	}
	switch o := op.(type) {
	case *plan.Embed:
		return c.embed(o)
	case *plan.Norm:
		return each(c.norm(o)), 2 * o.In.Width, nil
	case *plan.RopeOp:
		short := e.ropes[o.Rope]
		return each(func(r int) {
			x, t := e.at(o.X, r), short
			if e.batch.Seqs[e.owner[r]].Long {
				t = short.long
			}
			cos, sin := t.at(int(e.pos[r]))
			for h := range o.Heads {
				k.Rope(x[h*o.HeadDim+o.Off:][:2*t.pairs], cos, sin, o.Interleaved)
			}
		}), 2 * o.X.Width, nil
	case *plan.StoreKV:
		return each(e.storeKV(o)), 4 * (o.K.Width + o.V.Width), nil
	case *plan.Act:
		return each(func(r int) { k.Act(o.Kind, e.at(o.Out, r), e.at(o.In, r)) }), 4 * o.In.Width, nil
	case *plan.GLU:
		return each(func(r int) {
			k.GLU(o.Kind, e.at(o.Out, r), e.at(o.Gate, r), e.at(o.Up, r), o.Limit, o.Alpha)
		}), 4 * o.Out.Width, nil
	case *plan.Gate:
		return each(func(r int) { k.Gate(o.Kind, e.at(o.Out, r), e.at(o.X, r), e.at(o.G, r)) }), 4 * o.X.Width, nil
	case *plan.Add:
		return each(func(r int) { k.Add(e.at(o.Out, r), e.at(o.In, r), o.Scale) }), o.In.Width, nil
	case *plan.Scale:
		v := e.vector(o.V)
		if v != nil && len(v) != 1 && len(v) != o.X.Width {
			return nil, 0, fmt.Errorf("scale by %d values, the row has %d", len(v), o.X.Width)
		}
		return each(func(r int) {
			x := e.at(o.X, r)
			if o.Factor != 1 {
				k.ScaleBy(x, o.Factor)
			}
			switch {
			case v == nil:
			case len(v) == 1:
				k.ScaleBy(x, v[0])
			default:
				k.Mul(x, x, v)
			}
		}), o.X.Width, nil
	case *plan.SoftCap:
		return each(func(r int) { k.SoftCap(e.at(o.X, r), o.Cap) }), 4 * o.X.Width, nil
	case *plan.PosScale:
		return each(func(r int) {
			n := math.Floor(float64(int(e.pos[r])+o.Offset) / float64(o.Length))
			k.ScaleBy(e.at(o.X, r), float32(1+float64(o.Beta*vec.Log(1+n))))
		}), o.X.Width, nil
	case *plan.Clamp:
		return each(func(r int) {
			x := e.at(o.X, r)
			for i, v := range x { // a NaN stays one
				if v > o.Limit {
					x[i] = o.Limit
				} else if v < -o.Limit {
					x[i] = -o.Limit
				}
			}
		}), o.X.Width, nil
	case *plan.CopyHeads:
		return each(func(r int) {
			in, out := e.at(o.In, r), e.at(o.Out, r)
			for h := range o.Heads {
				copy(out[h*o.OutStride+o.OutOff:][:o.Width], in[h*o.InStride+o.InOff:])
			}
		}), o.Heads * o.Width, nil
	case *plan.Copy:
		return each(func(r int) { copy(e.at(o.Out, r), e.at(o.In, r)) }), o.In.Width, nil
	case *plan.Router:
		return c.router(o)
	case *plan.Decay:
		a, b := e.vector(o.ALog), e.vector(o.Bias)
		return each(func(r int) { k.Decay(e.at(o.Out, r), e.at(o.X, r), a, b, o.AIsNeg) }), 8 * o.X.Width, nil
	}
	return nil, 0, fmt.Errorf("the CPU backend does not know it")
}

func (c *compiler) embed(o *plan.Embed) (rowFunc, int, error) {
	e := c.e
	w := &e.plan.Weights[o.W]
	n, err := w.Type.RowBytes(w.K)
	if err != nil {
		return nil, 0, err
	}
	if w.Parts == nil && len(w.Bytes) != w.Rows*n || w.Rows < e.plan.Vocab || o.Out.Width != w.K {
		return nil, 0, fmt.Errorf(
			"embedding %q of %d bytes is not %d rows of %d values",
			w.Name,
			len(w.Bytes),
			w.Rows,
			w.K,
		)
	}
	e.read = e.plan.Files(func(id plan.WeightID) bool { return id == o.W })
	if !w.Type.CanDequantize() {
		return nil, 0, fmt.Errorf("embedding %q: format %v has no decoder", w.Name, w.Type)
	}
	return func(worker, r0, r1 int) {
		for r := r0; r < r1; r++ {
			x := e.at(o.Out, r)
			row, err := e.embedding(w, int(e.batch.Tokens[r]), n, worker)
			if err != nil {
				e.fail(err)
				return
			}
			_ = quant.Dequantize(w.Type, x, row) // type and sizes were checked above
			if o.Scale != 1 {
				e.vec.ScaleBy(x, o.Scale)
			}
		}
	}, 4 * w.K, nil
}

// embedding returns row r of w, which has n bytes. Rows of a file are read, not touched in its mapping: if it was cut
// short since it was opened, that is an error of the step and not the end of the process. If it was written, Wait
// finds it out.
func (e *exec) embedding(w *plan.Weight, r, n, worker int) ([]byte, error) {
	if w.Parts == nil {
		return w.Bytes[r*n : (r+1)*n], nil
	}
	row := e.scratch[worker][:n]
	if err := w.ReadRows(row, r, 1); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	return row, nil
}

func (c *compiler) norm(o *plan.Norm) func(r int) {
	e := c.e
	n := o.In.Width / o.Heads
	w, b := e.vector(o.W), e.vector(o.B)
	part := func(v []float32, h int) []float32 {
		if len(v) > n { // one set of weights per head
			return v[h*n : (h+1)*n]
		}
		return v
	}
	return func(r int) {
		x, y := e.at(o.In, r), e.at(o.Out, r)
		for h := range o.Heads {
			dst, src := y[h*n:(h+1)*n], x[h*n:(h+1)*n]
			switch o.Kind {
			case plan.NormLayer:
				e.vec.LayerNorm(dst, src, part(w, h), part(b, h), o.Eps)
			case plan.NormL2:
				e.vec.L2Norm(dst, src, o.Eps)
			default:
				e.vec.RMSNorm(dst, src, part(w, h), o.Eps)
			}
		}
	}
}

func (c *compiler) router(o *plan.Router) (rowFunc, int, error) {
	e := c.e
	rt := &e.routes[o.Route]
	bias := e.vector(o.Bias)
	if rt.TopK < 1 || rt.TopK > rt.Experts || o.In.Width != rt.Experts {
		return nil, 0, fmt.Errorf("router: %d of %d experts from %d logits", rt.TopK, rt.Experts, o.In.Width)
	}
	need := vec.RouteScratch(rt.Experts)
	return func(w, r0, r1 int) {
		for r := r0; r < r1; r++ {
			i := r * rt.TopK
			e.vec.Route(
				e.at(o.In, r),
				o,
				bias,
				rt.ids[i:i+rt.TopK],
				rt.weights[i:i+rt.TopK],
				floats(e.scratch[w])[:need],
			)
		}
	}, 16 * rt.Experts, nil
}

// A ropeTable holds the cosines and sines of positions, computed when a step first needs them.
type ropeTable struct {
	freqs    []float64
	scale    float64
	long     *ropeTable // of long sequences; itself where there is no other
	pairs    int
	cos, sin []float32 // [context][pairs]
	filled   int       // positions
}

// ropeAhead is how many positions are computed at once.
const ropeAhead = 256

// fill makes positions below n available.
func (t *ropeTable) fill(n int) {
	if n <= t.filled {
		return
	}
	for end := min(n+ropeAhead, len(t.cos)/max(1, t.pairs)); t.filled < end; t.filled++ {
		cos, sin := t.at(t.filled)
		vec.RopeAngles(t.freqs, t.scale, t.filled, cos, sin)
	}
}

func (t *ropeTable) at(pos int) (cos, sin []float32) {
	return t.cos[pos*t.pairs : (pos+1)*t.pairs], t.sin[pos*t.pairs : (pos+1)*t.pairs]
}
