package plan

import (
	"fmt"
	"math"
)

// Check reports the first thing in p that does not fit together: views that leave their buffers, identifiers without an
// entry, weights, vectors and states of other sizes than their operations need. An executor may rely on what it checks.
func (p *Plan) Check() error {
	c := &checker{p: p}
	for i, w := range p.Weights {
		c.weightEntry(i, w)
	}
	for i, r := range p.Ropes {
		c.that(len(r.InvFreq) > 0, "rope %d is empty", i)
		c.that(
			r.Long == nil || len(r.Long) == len(r.InvFreq) && p.LongFrom > 0,
			"rope %d has %d frequencies, and %d for sequences of more than %d tokens",
			i,
			len(r.InvFreq),
			len(r.Long),
			p.LongFrom,
		)
	}
	for i, r := range p.Routes {
		c.that(r.TopK >= 1 && r.TopK <= r.Experts, "route %d chooses %d of %d experts", i, r.TopK, r.Experts)
	}
	for g, group := range p.Groups {
		c.that(group.Window >= 0, "group %d has window %d", g, group.Window)
		for l, k := range group.Layers {
			c.that(
				k.Heads >= 1 && k.KDim >= 1 && k.VDim >= 1 && (!k.VInK || k.VDim <= k.KDim),
				"layer %d of group %d is %+v",
				l,
				g,
				k,
			)
		}
	}
	gathered := false
	for i, op := range p.Ops {
		if c.err != nil {
			break
		}
		c.at = fmt.Sprintf("operation %d, %T", i, op)
		c.op(op)
		c.that(!gathered || !needsAllRows(op), "it comes after Gather, where rows have left their places")
		_, isGather := op.(*Gather)
		gathered = gathered || isGather
	}
	c.at = "logits"
	c.val(p.Logits, p.Vocab)
	return c.err
}

// needsAllRows reports whether an operation reads a row's token, position or sequence, which are those of the step's
// rows before Gather.
func needsAllRows(op Op) bool {
	switch op.(type) {
	case *Embed, *RopeOp, *PosScale, *StoreKV, *Attention, *ShortConv, *DeltaScan, *Gather:
		return true
	}
	return false
}

// checker keeps the first error.
type checker struct {
	p   *Plan
	at  string
	err error
}

func (c *checker) that(ok bool, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = fmt.Errorf("plan: %s: %s", c.at, fmt.Sprintf(format, args...))
	}
}

func (c *checker) weightEntry(i int, w Weight) {
	c.at = fmt.Sprintf("weight %d (%s)", i, w.Name)
	c.that(w.Rows >= 1 && w.K >= 1 && w.Experts >= 0, "%d x %d x %d", w.Experts, w.Rows, w.K)
	if c.err != nil {
		return
	}
	row, err := w.Type.RowBytes(w.K)
	c.that(err == nil, "%v", err)
	if err != nil || w.Parts == nil {
		c.that(err != nil || len(w.Bytes)/row/w.Rows == max(w.Experts, 1) && len(w.Bytes)%(row*w.Rows) == 0,
			"%d bytes for %d x %d x %d of %v", len(w.Bytes), w.Experts, w.Rows, w.K, w.Type)
		return
	}
	rows := 0
	for _, p := range w.Parts {
		c.that(p.Rows >= 1 && (p.File == nil) != (p.Convert == nil), "a part of %d rows comes from one place", p.Rows)
		rows += p.Rows
	}
	c.that(rows == w.AllRows(), "parts of %d rows for %d x %d", rows, w.Experts, w.Rows)
}

// val checks a view; width 0 means any.
func (c *checker) val(v Val, width int) {
	if v.Buf < 0 || v.Buf >= len(c.p.Buffers) {
		c.that(false, "there is no buffer %d", v.Buf)
		return
	}
	b := c.p.Buffers[v.Buf]
	c.that(
		v.Off >= 0 && v.Width >= 1 && v.Off <= b.Width-v.Width,
		"view %d+%d leaves buffer %q of %d",
		v.Off,
		v.Width,
		b.Name,
		b.Width,
	)
	c.that(width == 0 || v.Width == width, "view of %q is %d wide, not %d", b.Name, v.Width, width)
}

// weight returns a weight's entry.
func (c *checker) weight(id WeightID) Weight {
	if int(id) < 0 || int(id) >= len(c.p.Weights) {
		c.that(false, "there is no weight %d", id)
		return Weight{}
	}
	return c.p.Weights[id]
}

// vector checks that an optional vector has one of the lengths.
func (c *checker) vector(id VectorID, lengths ...int) {
	if id == None {
		return
	}
	if int(id) < 0 || int(id) >= len(c.p.Vectors) {
		c.that(false, "there is no vector %d", id)
		return
	}
	v := c.p.Vectors[id]
	for _, n := range lengths {
		if len(v.Data) == n {
			return
		}
	}
	c.that(false, "vector %q has %d numbers, not %v", v.Name, len(v.Data), lengths)
}

func (c *checker) needed(id VectorID, lengths ...int) {
	c.that(id != None, "a vector is missing")
	c.vector(id, lengths...)
}

func (c *checker) state(id StateID, size int) {
	ok := int(id) >= 0 && int(id) < len(c.p.States)
	c.that(
		ok && c.p.States[max(0, min(int(id), len(c.p.States)-1))].Size == size,
		"state %d does not hold %d numbers",
		id,
		size,
	)
}

func (c *checker) route(id RouteID) Route {
	if int(id) < 0 || int(id) >= len(c.p.Routes) {
		c.that(false, "there is no route %d", id)
		return Route{}
	}
	return c.p.Routes[id]
}

func (c *checker) layer(group, layer int) KVLayer {
	if group < 0 || group >= len(c.p.Groups) || layer < 0 || layer >= len(c.p.Groups[group].Layers) {
		c.that(false, "there is no layer %d in group %d", layer, group)
		return KVLayer{Heads: 1}
	}
	return c.p.Groups[group].Layers[layer]
}

// heads checks that slices of a width at a stride lie inside a view.
func (c *checker) heads(v Val, n, width, stride, off int) {
	c.val(v, 0)
	c.that(
		n >= 1 && width >= 1 && off >= 0 && stride >= 0 && n <= 1<<20 && stride <= 1<<30 &&
			(n-1)*stride+off+width <= v.Width,
		"%d slices of %d at stride %d from %d leave a view of %d",
		n,
		width,
		stride,
		off,
		v.Width,
	)
}

func (c *checker) op(op Op) {
	switch op := op.(type) {
	case *Embed:
		c.val(op.Out, c.weight(op.W).K)
		c.that(c.weight(op.W).Rows == c.p.Vocab, "the embedding has %d rows for %d tokens", c.weight(op.W).Rows, c.p.Vocab)
	case *Norm:
		c.val(op.In, 0)
		c.val(op.Out, op.In.Width)
		c.that(op.Heads >= 1 && op.In.Width%max(op.Heads, 1) == 0, "%d heads of %d", op.Heads, op.In.Width)
		c.vector(op.W, op.In.Width/max(op.Heads, 1), op.In.Width)
		c.vector(op.B, op.In.Width/max(op.Heads, 1), op.In.Width)
	case *MatMul:
		c.matMul(op)
	case *HeadMatMul:
		w := c.weight(op.W)
		c.that(w.Experts >= 1, "weight %q is no stack", w.Name)
		c.heads(op.In, w.Experts, w.K, op.InStride, op.InOff)
		c.heads(op.Out, w.Experts, w.Rows, op.OutStride, op.OutOff)
	case *RopeOp:
		ok := int(op.Rope) >= 0 && int(op.Rope) < len(c.p.Ropes)
		c.that(ok, "there is no rope %d", op.Rope)
		if ok {
			n := 2 * len(c.p.Ropes[op.Rope].InvFreq)
			c.that(op.Off+n <= op.HeadDim, "%d values from %d on in heads of %d", n, op.Off, op.HeadDim)
			c.heads(op.X, op.Heads, n, op.HeadDim, op.Off)
		}
	case *StoreKV:
		l := c.layer(op.Group, op.Layer)
		c.val(op.K, l.Heads*l.KDim)
		if !l.VInK {
			c.val(op.V, l.Heads*l.VDim)
		}
	case *Attention:
		l := c.layer(op.Group, op.Layer)
		c.that(op.Heads >= 1 && op.Heads%l.Heads == 0, "%d heads share %d key heads", op.Heads, l.Heads)
		c.val(op.Q, op.Heads*l.KDim)
		c.val(op.Out, op.Heads*l.VDim)
		c.that(op.Window >= 0, "a window of %d", op.Window)
		c.that(op.Scale > 0 && op.Scale <= math.MaxFloat32, "a scale of %v", op.Scale)
		c.vector(op.Sinks, op.Heads)
	case *Router, *Experts:
		c.expertOp(op)
	case *ShortConv, *DeltaScan, *Decay:
		c.recurrentOp(op)
	default:
		c.elementOp(op)
	}
}

func (c *checker) matMul(op *MatMul) {
	c.val(op.In, 0)
	c.that(len(op.W) == len(op.Out) && len(op.W) > 0 && (op.Bias == nil || len(op.Bias) == len(op.W)),
		"%d weights, %d outputs, %d biases", len(op.W), len(op.Out), len(op.Bias))
	for i := range op.W {
		if c.err != nil {
			return
		}
		w := c.weight(op.W[i])
		c.that(w.K == op.In.Width && w.Experts == 0, "weight %q takes %d values, not %d", w.Name, w.K, op.In.Width)
		c.val(op.Out[i], w.Rows)
		if op.Bias != nil {
			c.vector(op.Bias[i], w.Rows)
		}
	}
}

func (c *checker) elementOp(op Op) {
	switch op := op.(type) {
	case *Act:
		c.val(op.In, 0)
		c.val(op.Out, op.In.Width)
	case *GLU:
		c.val(op.Gate, 0)
		c.val(op.Up, op.Gate.Width)
		c.val(op.Out, op.Gate.Width)
	case *Gate:
		c.val(op.X, 0)
		c.val(op.G, 0)
		c.val(op.Out, op.X.Width)
		c.that(op.X.Width%max(op.G.Width, 1) == 0, "%d gates for %d values", op.G.Width, op.X.Width)
	case *Add:
		c.val(op.In, 0)
		c.val(op.Out, op.In.Width)
	case *Scale:
		c.val(op.X, 0)
		c.vector(op.V, 1, op.X.Width)
	case *SoftCap:
		c.val(op.X, 0)
		c.that(op.Cap > 0, "a cap of %v", op.Cap)
	case *Clamp:
		c.val(op.X, 0)
		c.that(op.Limit > 0, "a limit of %v", op.Limit)
	case *PosScale:
		c.val(op.X, 0)
		c.that(op.Length >= 1 && op.Offset >= 0, "length %d, offset %d", op.Length, op.Offset)
	case *Copy:
		c.val(op.In, 0)
		c.val(op.Out, op.In.Width)
	case *CopyHeads:
		c.heads(op.In, op.Heads, op.Width, op.InStride, op.InOff)
		c.heads(op.Out, op.Heads, op.Width, op.OutStride, op.OutOff)
	case *Gather:
		for _, v := range op.Vals {
			c.val(v, 0)
		}
	default:
		c.that(false, "unknown operation")
	}
}

func (c *checker) expertOp(op Op) {
	switch op := op.(type) {
	case *Router:
		r := c.route(op.Route)
		c.val(op.In, r.Experts)
		c.vector(op.Bias, r.Experts)
		if g := op.Groups; g > 1 {
			c.that(r.Experts%g == 0 && op.GroupTopK >= 1 && op.GroupTopK <= g && op.GroupTopK*(r.Experts/g) >= r.TopK,
				"%d of %d groups for %d of %d experts", op.GroupTopK, g, r.TopK, r.Experts)
			c.that(!op.GroupSum2 || r.Experts/g >= 2, "groups of one have no second expert")
		}
	case *Experts:
		r := c.route(op.Route)
		gate, up, down := c.weight(op.Gate), c.weight(op.Up), c.weight(op.Down)
		c.that(gate.Experts == r.Experts && up.Experts == r.Experts && down.Experts == r.Experts,
			"stacks of %d, %d and %d for %d experts", gate.Experts, up.Experts, down.Experts, r.Experts)
		c.val(op.In, gate.K)
		c.val(op.Out, down.Rows)
		c.that(up.K == gate.K && up.Rows == gate.Rows && down.K == gate.Rows, "experts' shapes differ")
		c.vector(op.GateB, r.Experts*gate.Rows)
		c.vector(op.UpB, r.Experts*up.Rows)
		c.vector(op.DownB, r.Experts*down.Rows)
	}
}

func (c *checker) recurrentOp(op Op) {
	switch op := op.(type) {
	case *ShortConv:
		c.val(op.In, 0)
		c.val(op.Out, op.In.Width)
		c.that(op.Kernel >= 2, "a kernel of %d", op.Kernel)
		c.needed(op.W, op.In.Width*op.Kernel)
		c.vector(op.B, op.In.Width)
		c.state(op.State, (op.Kernel-1)*op.In.Width)
	case *DeltaScan:
		c.that(op.KHeads >= 1 && op.VHeads >= 1 && op.VHeads%max(op.KHeads, 1) == 0, "%d value heads share %d key "+
			"heads", op.VHeads, op.KHeads)
		c.val(op.Q, op.KHeads*op.KDim)
		c.val(op.K, op.KHeads*op.KDim)
		c.val(op.V, op.VHeads*op.VDim)
		c.val(op.Out, op.VHeads*op.VDim)
		c.val(op.Beta, op.VHeads)
		decays := op.VHeads
		if op.PerChannel {
			decays *= op.KDim
		}
		c.val(op.Decay, decays)
		c.state(op.State, op.VHeads*op.KDim*op.VDim)
	case *Decay:
		c.val(op.X, 0)
		c.val(op.Out, op.X.Width)
		c.decayVectors(op)
	}
}

func (c *checker) decayVectors(op *Decay) {
	if int(op.ALog) < 0 || int(op.ALog) >= len(c.p.Vectors) {
		c.that(false, "there is no vector %d", op.ALog)
		return
	}
	n := len(c.p.Vectors[op.ALog].Data)
	c.that(n >= 1 && op.X.Width%max(n, 1) == 0, "%d numbers for %d values", n, op.X.Width)
	c.vector(op.Bias, op.X.Width)
}
