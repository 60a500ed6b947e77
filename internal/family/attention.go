package family

import (
	"math"

	"github.com/baleenrun/baleen/internal/family/exactmath"
	"github.com/baleenrun/baleen/internal/plan"
)

// attention is grouped-query attention with its variants.
type attention struct {
	heads, kv, dim int
	bias, outBias  bias
	qkNorm         qkNorm
	rope           *rope // nil: no positions
	window         int   // 0: all positions
	sinks          bool
	gated          bool    // attn_q holds, for each head, the query and then a gate for the head's output
	scale          float64 // 0: 1/sqrt(dim)
	cap            float64
	clip           float64        // 0: none; limit of queries, keys and values
	posScale       *plan.PosScale // scales the query; X is filled in
}

// qkNorm says what is normalized before the rotation.
type qkNorm uint8

const (
	noQKNorm   qkNorm = iota
	headQKNorm        // each head, with the weights of one
	fullQKNorm        // all heads together
)

// attentionShape reads the keys that all grouped-query families share.
func (c *config) attentionShape(hidden int) *attention {
	a := &attention{heads: c.dim("num_attention_heads", maxHeads)}
	a.kv = c.dimOr("num_key_value_heads", a.heads, maxHeads)
	if a.heads%a.kv != 0 {
		c.fail("%d attention heads cannot share %d key heads", a.heads, a.kv)
	}
	if v, ok := c.get("head_dim"); ok {
		a.dim = c.integer("head_dim", v, 1, maxHead)
	} else if a.dim = hidden / a.heads; a.dim < 1 || a.dim > maxHead || hidden%a.heads != 0 {
		c.fail("hidden size %d is not a multiple of %d heads", hidden, a.heads)
	}
	if c.gguf && c.intOr("attention.value_length", a.dim, 1, maxHead) != a.dim {
		c.fail("keys of %d and values of another size are not supported", a.dim)
	}
	return a
}

func (a *attention) lower(b *builder, in plan.Val) plan.Val {
	width := a.heads * a.dim
	q, gate := b.buffer("q", width), plan.Val{}
	k, v := b.buffer("k", a.kv*a.dim), b.buffer("v", a.kv*a.dim)
	mm := &plan.MatMul{In: in, Out: []plan.Val{q, k, v}}
	if a.gated {
		gate = b.buffer("attn_gate", width)
		a.gatedWeights(b, mm, gate)
	} else {
		mm.W, mm.Bias = b.fused("attn_qkv", []split{{"attn_q", width}, {"attn_k", k.Width}, {"attn_v", v.Width}}, in.Width, a.bias)
	}
	b.emit(mm)
	a.normalize(b, q, k)
	if a.clip != 0 {
		for _, x := range mm.Out[:3] {
			b.emit(&plan.Clamp{X: x, Limit: float32(a.clip)})
		}
	}
	b.rotate(a.rope, q, a.heads, a.dim)
	b.rotate(a.rope, k, a.kv, a.dim)
	if a.posScale != nil {
		s := *a.posScale
		s.X = q
		b.emit(&s)
	}
	group, layer := b.group(a.window, plan.KVLayer{Heads: a.kv, KDim: a.dim, VDim: a.dim})
	b.emit(&plan.StoreKV{K: k, V: v, Group: group, Layer: layer})
	out := b.buffer("attn", width)
	scale := a.scale
	if scale == 0 {
		scale = 1 / exactmath.Sqrt(float64(a.dim))
	}
	op := &plan.Attention{
		Q: q, Out: out, Heads: a.heads, Group: group, Layer: layer,
		Scale: attentionScale(scale), SoftCap: float32(a.cap), Sinks: plan.None,
	}
	if a.sinks {
		op.Sinks = b.vector("attn_sinks", "", a.heads)
	}
	b.emit(op)
	if a.gated {
		b.gather(out, gate)
		b.emit(&plan.Gate{X: out, G: gate, Out: out, Kind: plan.ActSigmoid})
	} else {
		b.gather(out)
	}
	y := b.buffer("y", b.m.hidden)
	b.linear("attn_output", out, y, a.outBias)
	return y
}

func (a *attention) normalize(b *builder, q, k plan.Val) {
	eps := float32(b.m.eps)
	switch a.qkNorm {
	case headQKNorm:
		b.emit(&plan.Norm{In: q, Out: q, W: b.norm("attn_q_norm", a.dim), B: plan.None, Heads: a.heads, Eps: eps})
		b.emit(&plan.Norm{In: k, Out: k, W: b.norm("attn_k_norm", a.dim), B: plan.None, Heads: a.kv, Eps: eps})
	case fullQKNorm:
		b.emit(&plan.Norm{In: q, Out: q, W: b.norm("attn_q_norm", q.Width), B: plan.None, Heads: 1, Eps: eps})
		b.emit(&plan.Norm{In: k, Out: k, W: b.norm("attn_k_norm", k.Width), B: plan.None, Heads: 1, Eps: eps})
	}
}

// gatedWeights separates queries and gates, which alternate head by head.
func (a *attention) gatedWeights(b *builder, mm *plan.MatMul, gate plan.Val) {
	width, k := a.heads*a.dim, mm.In.Width
	mm.Out = append(mm.Out, gate)
	t := b.take("attn_q", ".weight")
	if t.rows() != 2*width {
		fail("family: tensor %q has shape %v, queries and gates need %d rows", t.name, t.shape, 2*width)
	}
	query, gates := alternate(a.heads, a.dim, a.dim)
	mm.W = []plan.WeightID{
		b.addWeight(t.pick(query), width, k),
		b.weight("attn_k", a.kv*a.dim, k),
		b.weight("attn_v", a.kv*a.dim, k),
		b.addWeight(t.pick(gates), width, k),
	}
	mm.Bias = []plan.VectorID{
		plan.None,
		b.optional("attn_k", a.kv*a.dim, a.bias),
		b.optional("attn_v", a.kv*a.dim, a.bias),
		plan.None,
	}
	if a.bias == hasBias || a.bias == biasIfPresent && b.hasRole("attn_q", ".bias") {
		bt := b.take("attn_q", ".bias")
		if bt.elements() != 2*width {
			fail("family: tensor %q has %d numbers, %d are needed", bt.name, bt.elements(), 2*width)
		}
		all := bt.floats()
		mm.Bias[0], mm.Bias[3] = b.addData(bt.name, pickFloats(all, query)), b.addData(bt.name, pickFloats(all, gates))
	}
}

// attentionScale rounds what scores are multiplied by. Executors rely on its being positive, so that it keeps their
// order.
func attentionScale(v float64) float32 {
	s := float32(v)
	if !(s > 0 && s <= math.MaxFloat32) {
		fail("family: configuration: scores of attention are multiplied by %v, which must be positive and finite", v)
	}
	return s
}
