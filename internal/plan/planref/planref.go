// Package planref is the plain definition of every plan operation: it runs a plan over one sequence, row by row, in
// float64 with float32 buffers, as simply as it can be written. Executors are compared with it. It knows plans and
// weight formats; it has no cache, no threads and no speed.
package planref

import (
	"errors"
	"fmt"
	"math"

	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

// Run executes p over the tokens of one new sequence and returns the logits of every position, len(tokens) rows of
// p.Vocab values. Gather keeps all rows, but makes NaN of everything that it does not list. Malformed plans panic.
func Run(p *plan.Plan, tokens []int32) [][]float32 {
	m := newMachine(p, tokens)
	for _, op := range p.Ops {
		m.step(op)
	}
	logits := make([][]float32, len(tokens))
	for r := range logits {
		logits[r] = append([]float32(nil), m.row(p.Logits, r)...)
	}
	return logits
}

// Trace is Run, calling see after every operation with a reader of the buffers' present rows.
func Trace(p *plan.Plan, tokens []int32, see func(i int, op plan.Op, row func(v plan.Val, r int) []float32)) {
	m := newMachine(p, tokens)
	for i, op := range p.Ops {
		m.step(op)
		see(i, op, m.row)
	}
}

type machine struct {
	p       *plan.Plan
	tokens  []int32
	rows    int
	bufs    [][]float32   // by buffer: rows times width
	weights [][]float32   // decoded, by weight; nil until used
	keys    [][][]float32 // by group, layer: rows times heads times KDim
	values  [][][]float32
	routes  []route
}

type route struct {
	experts [][]int // by row
	weights [][]float64
}

func newMachine(p *plan.Plan, tokens []int32) *machine {
	m := &machine{p: p, tokens: tokens, rows: len(tokens)}
	for _, b := range p.Buffers {
		m.bufs = append(m.bufs, make([]float32, b.Width*m.rows))
	}
	m.weights = make([][]float32, len(p.Weights))
	for _, g := range p.Groups {
		m.keys = append(m.keys, make([][]float32, len(g.Layers)))
		m.values = append(m.values, make([][]float32, len(g.Layers)))
	}
	m.routes = make([]route, len(p.Routes))
	return m
}

// row returns row r of a view.
func (m *machine) row(v plan.Val, r int) []float32 {
	width := m.p.Buffers[v.Buf].Width
	if v.Off < 0 || v.Width < 0 || v.Off+v.Width > width {
		panic(fmt.Sprintf("planref: view %+v leaves buffer %q of width %d", v, m.p.Buffers[v.Buf].Name, width))
	}
	return m.bufs[v.Buf][r*width+v.Off:][:v.Width]
}

// weight returns the decoded values of a weight.
func (m *machine) weight(id plan.WeightID) []float32 {
	if m.weights[id] == nil {
		w := &m.p.Weights[id]
		m.weights[id] = make([]float32, w.AllRows()*w.K)
		stored := make([]byte, w.Size())
		err := w.ReadRows(stored, 0, w.AllRows())
		if err == nil {
			err = quant.Dequantize(w.Type, m.weights[id], stored)
		}
		for _, f := range w.Files() {
			err = errors.Join(err, f.Unchanged())
		}
		if err != nil {
			panic(fmt.Sprintf("planref: weight %q: %v", w.Name, err))
		}
	}
	return m.weights[id]
}

func (m *machine) vector(id plan.VectorID) []float32 {
	if id == plan.None {
		return nil
	}
	return m.p.Vectors[id].Data
}

func (m *machine) step(op plan.Op) {
	switch op := op.(type) {
	case *plan.ShortConv:
		m.shortConv(op)
	case *plan.DeltaScan:
		m.deltaScan(op)
	case *plan.StoreKV:
		m.storeKV(op)
	case *plan.Gather:
		m.gather(op)
	default:
		for r := range m.rows {
			m.rowOp(op, r)
		}
	}
}

// rowOp executes an operation whose rows are independent.
func (m *machine) rowOp(op plan.Op, r int) {
	switch op := op.(type) {
	case *plan.Embed:
		m.embed(op, r)
	case *plan.Norm:
		m.norm(op, r)
	case *plan.MatMul:
		for i, w := range op.W {
			bias := plan.VectorID(plan.None)
			if op.Bias != nil {
				bias = op.Bias[i]
			}
			m.matVec(m.row(op.Out[i], r), m.row(op.In, r), w, 0, m.vector(bias))
		}
	case *plan.HeadMatMul:
		w := m.p.Weights[op.W]
		for h := range w.Experts {
			in := m.row(op.In, r)[h*op.InStride+op.InOff:][:w.K]
			out := m.row(op.Out, r)[h*op.OutStride+op.OutOff:][:w.Rows]
			m.matVec(out, in, op.W, h, nil)
		}
	case *plan.RopeOp:
		m.rope(op, r)
	case *plan.Attention:
		m.attention(op, r)
	case *plan.Act:
		in, out := m.row(op.In, r), m.row(op.Out, r)
		for i := range out {
			out[i] = float32(act(op.Kind, float64(in[i])))
		}
	case *plan.GLU:
		gate, up, out := m.row(op.Gate, r), m.row(op.Up, r), m.row(op.Out, r)
		for i := range out {
			out[i] = float32(glu(op.Kind, float64(gate[i]), float64(up[i]), op.Limit, op.Alpha))
		}
	case *plan.Gate:
		x, g, out := m.row(op.X, r), m.row(op.G, r), m.row(op.Out, r)
		slice := len(x) / len(g)
		for i := range out {
			out[i] = float32(float64(x[i]) * act(op.Kind, float64(g[i/slice])))
		}
	case *plan.Add:
		in, out := m.row(op.In, r), m.row(op.Out, r)
		for i := range out {
			out[i] += float32(op.Scale * in[i])
		}
	case *plan.Scale:
		x, v := m.row(op.X, r), m.vector(op.V)
		for i := range x {
			x[i] *= op.Factor
			if v != nil {
				x[i] *= v[i%len(v)]
			}
		}
	case *plan.SoftCap:
		x := m.row(op.X, r)
		for i := range x {
			x[i] = float32(float64(op.Cap) * math.Tanh(float64(x[i])/float64(op.Cap)))
		}
	case *plan.PosScale:
		x := m.row(op.X, r)
		f := 1 + op.Beta*math.Log(1+float64((r+op.Offset)/op.Length))
		for i := range x {
			x[i] = float32(float64(x[i]) * f)
		}
	case *plan.Clamp:
		x := m.row(op.X, r)
		for i := range x {
			x[i] = max(min(x[i], op.Limit), -op.Limit)
		}
	case *plan.CopyHeads:
		in, out := m.row(op.In, r), m.row(op.Out, r)
		for h := range op.Heads {
			copy(out[h*op.OutStride+op.OutOff:][:op.Width], in[h*op.InStride+op.InOff:][:op.Width])
		}
	case *plan.Copy:
		copy(m.row(op.Out, r), m.row(op.In, r))
	case *plan.Router:
		m.router(op, r)
	case *plan.Experts:
		m.experts(op, r)
	case *plan.Decay:
		m.decay(op, r)
	default:
		panic(fmt.Sprintf("planref: no definition of %T", op))
	}
}

func (m *machine) embed(op *plan.Embed, r int) {
	k := m.p.Weights[op.W].K
	out := m.row(op.Out, r)
	for i, w := range m.weight(op.W)[int(m.tokens[r])*k:][:k] {
		out[i] = w * op.Scale
	}
}

func (m *machine) norm(op *plan.Norm, r int) {
	in, out := m.row(op.In, r), m.row(op.Out, r)
	w, b := m.vector(op.W), m.vector(op.B)
	n := len(in) / op.Heads
	for h := range op.Heads {
		x := in[h*n:][:n]
		var sum, squares float64
		for _, v := range x {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		var mean, scale float64
		switch op.Kind {
		case plan.NormRMS:
			scale = 1 / math.Sqrt(squares/float64(n)+float64(op.Eps))
		case plan.NormL2:
			scale = 1 / math.Sqrt(squares+float64(op.Eps))
		case plan.NormLayer:
			mean = sum / float64(n)
			var variance float64
			for _, v := range x {
				variance += (float64(v) - mean) * (float64(v) - mean)
			}
			scale = 1 / math.Sqrt(variance/float64(n)+float64(op.Eps))
		}
		for i, v := range x {
			y := (float64(v) - mean) * scale
			if w != nil {
				y *= float64(w[(h*n+i)%len(w)])
			}
			if b != nil {
				y += float64(b[(h*n+i)%len(b)])
			}
			out[h*n+i] = float32(y)
		}
	}
}

// matVec multiplies x by one matrix of a weight.
func (m *machine) matVec(out, x []float32, id plan.WeightID, expert int, bias []float32) {
	w := m.p.Weights[id]
	if len(x) != w.K || len(out) != w.Rows {
		panic(
			fmt.Sprintf(
				"planref: weight %q is %dx%d, its input has %d values, its output %d",
				w.Name,
				w.Rows,
				w.K,
				len(x),
				len(out),
			),
		)
	}
	matrix := m.weight(id)[expert*w.Rows*w.K:]
	for o := range out {
		var sum float64
		for i, v := range matrix[o*w.K:][:w.K] {
			sum += float64(v) * float64(x[i])
		}
		if bias != nil {
			sum += float64(bias[o])
		}
		out[o] = float32(sum)
	}
}

func (m *machine) rope(op *plan.RopeOp, r int) {
	t := m.p.Ropes[op.Rope]
	n := len(t.InvFreq)
	freqs := t.InvFreq
	if t.Long != nil && m.rows > m.p.LongFrom {
		freqs = t.Long
	}
	for h := range op.Heads {
		x := m.row(op.X, r)[h*op.HeadDim+op.Off:][:2*n]
		for j, f := range freqs {
			sin, cos := math.Sincos(float64(float32(float64(r) * f)))
			a, b := j, j+n
			if op.Interleaved {
				a, b = 2*j, 2*j+1
			}
			xa, xb := float64(x[a]), float64(x[b])
			x[a] = float32((xa*cos - xb*sin) * t.Scale)
			x[b] = float32((xb*cos + xa*sin) * t.Scale)
		}
	}
}

func (m *machine) storeKV(op *plan.StoreKV) {
	layer := m.p.Groups[op.Group].Layers[op.Layer]
	keys, values := []float32{}, []float32{}
	for r := range m.rows {
		k := m.row(op.K, r)
		if len(k) != layer.Heads*layer.KDim {
			panic(fmt.Sprintf("planref: keys of %d values for %+v", len(k), layer))
		}
		keys = append(keys, k...)
		if layer.VInK {
			for h := range layer.Heads {
				values = append(values, k[h*layer.KDim:][:layer.VDim]...)
			}
			continue
		}
		v := m.row(op.V, r)
		if len(v) != layer.Heads*layer.VDim {
			panic(fmt.Sprintf("planref: values of %d values for %+v", len(v), layer))
		}
		values = append(values, v...)
	}
	m.keys[op.Group][op.Layer], m.values[op.Group][op.Layer] = keys, values
}

func (m *machine) attention(op *plan.Attention, r int) {
	group := m.p.Groups[op.Group]
	layer := group.Layers[op.Layer]
	keys, values := m.keys[op.Group][op.Layer], m.values[op.Group][op.Layer]
	window := group.Window
	if op.Window != 0 && (window == 0 || op.Window < window) {
		window = op.Window
	}
	first := 0
	if window > 0 {
		first = max(0, r+1-window)
	}
	q, out, sinks := m.row(op.Q, r), m.row(op.Out, r), m.vector(op.Sinks)
	for h := range op.Heads {
		kv := h / (op.Heads / layer.Heads)
		scores := make([]float64, 0, r+1-first)
		top := math.Inf(-1)
		for t := first; t <= r; t++ {
			k := keys[(t*layer.Heads+kv)*layer.KDim:][:layer.KDim]
			var s float64
			for i, v := range q[h*layer.KDim:][:layer.KDim] {
				s += float64(v) * float64(k[i])
			}
			s *= float64(op.Scale)
			if op.SoftCap > 0 {
				s = float64(op.SoftCap) * math.Tanh(s/float64(op.SoftCap))
			}
			scores, top = append(scores, s), max(top, s)
		}
		var total float64
		if sinks != nil {
			top = max(top, float64(sinks[h]))
			total = math.Exp(float64(sinks[h]) - top)
		}
		acc := make([]float64, layer.VDim)
		for i, s := range scores {
			e := math.Exp(s - top)
			total += e
			for d, v := range values[((first+i)*layer.Heads+kv)*layer.VDim:][:layer.VDim] {
				acc[d] += e * float64(v)
			}
		}
		for d, a := range acc {
			out[h*layer.VDim+d] = float32(a / total)
		}
	}
}

func (m *machine) gather(op *plan.Gather) {
	nan := float32(math.NaN())
	for b, old := range m.bufs {
		kept := make([]float32, len(old))
		for i := range kept {
			kept[i] = nan
		}
		m.bufs[b] = kept
		for _, v := range op.Vals {
			if v.Buf != b {
				continue
			}
			width := m.p.Buffers[b].Width
			for r := range m.rows {
				copy(kept[r*width+v.Off:][:v.Width], old[r*width+v.Off:][:v.Width])
			}
		}
	}
}
