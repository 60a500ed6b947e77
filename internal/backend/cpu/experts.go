package cpu

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
	"github.com/baleenrun/baleen/internal/plan"
)

// A route holds the experts chosen for each row, TopK of them in router order, and their weights.
type route struct {
	plan.Route
	ids     []int32
	weights []float32
}

// expertsPass runs the chosen experts of all rows. The (row, choice) pairs are called slots and are sorted by
// expert, so that each expert multiplies its rows together; a row's results are then summed in router order,
// which makes the sum independent of what else is in the batch.
type expertsPass struct {
	e              *exec
	o              *plan.Experts
	route          *route
	gate, up, down *weight
	topK           int
	actIn, actMid  matmul.Act
	inLen, midLen  int // bytes of a slot's input rows

	start  []int32 // first slot of each expert, and the end
	active []int32 // experts with slots
	slot   []int32 // by row and choice
	row    []int32 // row and choice of a slot: row*topK+choice

	in   []byte    // [slots][inLen], gathered
	g, u []float32 // [slots][ff]
	mid  []byte    // [slots][midLen]
	d    []float32 // [slots][width]

	gatherFn, gateFn, midFn, downFn, sumFn func(worker, lo, hi int)
}

// expertScratch is the memory that all expert passes share: they run one after the other.
type expertScratch struct {
	in, mid []byte
	g, u, d []float32
}

func (c *compiler) experts(o *plan.Experts) error {
	e := c.e
	p := &expertsPass{
		e: e, o: o, route: &e.routes[o.Route],
		gate: &e.weights[o.Gate], up: &e.weights[o.Up], down: &e.weights[o.Down],
	}
	p.topK = p.route.TopK
	p.actIn, p.actMid = p.gate.m[0].Act(), p.down.m[0].Act()
	if p.up.m[0].Act() != p.actIn || p.down.Rows < p.gate.K {
		return fmt.Errorf("cpu: experts of %q and %q do not fit together", p.gate.Name, p.up.Name)
	}
	p.inLen, p.midLen = p.actIn.Bytes(p.gate.K), p.actMid.Bytes(p.down.K)
	slots := e.opt.MaxRows * p.topK
	p.start = make([]int32, p.route.Experts+1)
	p.active = make([]int32, 0, p.route.Experts)
	p.slot, p.row = make([]int32, slots), make([]int32, slots)
	p.gatherFn, p.gateFn, p.midFn, p.downFn, p.sumFn = p.gatherRows, p.multiplyGateUp, p.activate, p.multiplyDown, p.sum
	if !o.WeightInput {
		c.quantize(p.actIn, o.In)
	}
	c.pass(p)
	c.overwritten([]plan.Val{o.Out})
	return nil
}

func (p *expertsPass) run(e *exec) {
	if e.rows == 0 {
		return
	}
	s := &e.expertScratch
	p.in, p.mid, p.g, p.u, p.d = s.in, s.mid, s.g, s.u, s.d
	p.sortSlots()
	slots := e.rows * p.topK
	e.pool.run(slots, max(1, serialCost/p.inLen), p.gatherFn)
	gateGroups, downGroups := p.gate.m[0].Groups, p.down.m[0].Groups
	e.pool.run(len(p.active)*2*gateGroups, max(1, leastBytes/p.gate.m[0].Stride), p.gateFn)
	e.pool.run(slots, max(1, serialCost/(4*p.gate.Rows)), p.midFn)
	e.pool.run(len(p.active)*downGroups, max(1, leastBytes/p.down.m[0].Stride), p.downFn)
	e.pool.run(e.rows, max(1, serialCost/(p.topK*p.down.Rows)), p.sumFn)
}

// sortSlots orders the (row, choice) pairs by expert, counting first.
func (p *expertsPass) sortSlots() {
	n := p.e.rows * p.topK
	clear(p.start)
	for _, id := range p.route.ids[:n] {
		p.start[id+1]++
	}
	p.active = p.active[:0]
	for x := range p.route.Experts {
		if p.start[x+1] > 0 {
			p.active = append(p.active, int32(x))
		}
		p.start[x+1] += p.start[x]
	}
	for i, id := range p.route.ids[:n] {
		s := p.start[id]
		p.start[id]++
		p.slot[i], p.row[s] = s, int32(i)
	}
	copy(p.start[1:], p.start) // each start has moved to its end: the next one's start
	p.start[0] = 0
}

func (p *expertsPass) gatherRows(_, lo, hi int) {
	e := p.e
	for s := lo; s < hi; s++ {
		i := int(p.row[s])
		r := i / p.topK
		dst := p.in[s*p.inLen : (s+1)*p.inLen]
		switch {
		case p.o.WeightInput:
			x := floats(dst)
			if p.actIn != matmul.ActF32 {
				x = p.d[s*p.down.Rows:] // free until down is computed
			}
			x = x[:p.gate.K]
			copy(x, e.at(p.o.In, r))
			e.vec.ScaleBy(x, p.route.weights[i])
			if p.actIn != matmul.ActF32 {
				e.mm.Quantize(p.actIn, dst, x)
			}
		case p.actIn == matmul.ActF32:
			copy(dst, bytesOf(e.at(p.o.In, r)))
		default:
			copy(dst, e.acts[p.actIn][r*p.inLen:(r+1)*p.inLen])
		}
	}
}

// multiplyGateUp computes groups [lo,hi) of the active experts' gate and up matrices laid end to end.
func (p *expertsPass) multiplyGateUp(worker, lo, hi int) {
	groups := p.gate.m[0].Groups
	for lo < hi {
		i, g0 := lo/groups, lo%groups
		x := p.active[i/2]
		w, out := p.gate, p.g
		if i%2 == 1 {
			w, out = p.up, p.u
		}
		g1 := min(groups, g0+hi-lo)
		s0, s1 := int(p.start[x]), int(p.start[x+1])
		p.e.mul(worker, &w.m[x], g0, g1, p.in[s0*p.inLen:], p.inLen, s1-s0, out[s0*w.Rows:], w.Rows)
		lo += g1 - g0
	}
}

// activate turns gate and up into the input of down.
func (p *expertsPass) activate(_, lo, hi int) {
	e, ff := p.e, p.gate.Rows
	gb, ub := e.vector(p.o.GateB), e.vector(p.o.UpB)
	for s := lo; s < hi; s++ {
		g, u := p.g[s*ff:(s+1)*ff], p.u[s*ff:(s+1)*ff]
		x := int(p.route.ids[p.row[s]])
		if gb != nil {
			e.vec.Add(g, gb[x*ff:(x+1)*ff], 1)
		}
		if ub != nil {
			e.vec.Add(u, ub[x*ff:(x+1)*ff], 1)
		}
		// RATIONALE: Why are gate and up not joined where they are computed?
		e.vec.GLU(p.o.Kind, g, g, u, p.o.Limit, p.o.Alpha)
		dst := p.mid[s*p.midLen : (s+1)*p.midLen]
		if p.actMid == matmul.ActF32 {
			copy(dst, bytesOf(g))
		} else {
			e.mm.Quantize(p.actMid, dst, g)
		}
	}
}

func (p *expertsPass) multiplyDown(worker, lo, hi int) {
	groups := p.down.m[0].Groups
	for lo < hi {
		i, g0 := lo/groups, lo%groups
		x := p.active[i]
		g1 := min(groups, g0+hi-lo)
		s0, s1 := int(p.start[x]), int(p.start[x+1])
		p.e.mul(worker, &p.down.m[x], g0, g1, p.mid[s0*p.midLen:], p.midLen, s1-s0, p.d[s0*p.down.Rows:], p.down.Rows)
		lo += g1 - g0
	}
}

// sum adds the experts' outputs of each row in router order.
func (p *expertsPass) sum(_, lo, hi int) {
	e, n := p.e, p.down.Rows
	db := e.vector(p.o.DownB)
	for r := lo; r < hi; r++ {
		out := e.at(p.o.Out, r)
		clear(out)
		for i := r * p.topK; i < (r+1)*p.topK; i++ {
			s := int(p.slot[i])
			d := p.d[s*n : (s+1)*n]
			if db != nil {
				x := int(p.route.ids[i])
				e.vec.Add(d, db[x*n:(x+1)*n], 1)
			}
			w := p.route.weights[i]
			if p.o.WeightInput {
				w = 1
			}
			e.vec.Add(out, d, w)
		}
	}
}
