package family

import (
	"github.com/baleenrun/baleen/internal/family/exactmath"
	"github.com/baleenrun/baleen/internal/plan"
)

// deltaNet is the gated delta net of Qwen 3-Next and 3.5 (arXiv 2412.06464): a convolution over queries, keys and
// values, the delta rule with a decay per head, and a gated norm of the result.
type deltaNet struct {
	keyHeads, valueHeads int
	keyDim, valueDim     int
	kernel               int
	tiled                bool // value heads in the order of GGUF files, those of the first key head not together
}

// deltaShape reads the shape of a delta net.
func (c *config) deltaShape() *deltaNet {
	d := &deltaNet{kernel: c.intOr("linear_conv_kernel_dim", 4, 2, 64)}
	if c.gguf {
		d.keyDim = c.dim("ssm.state_size", maxHead)
		d.keyHeads, d.valueHeads = c.dim("ssm.group_count", maxHeads), c.dim("ssm.time_step_rank", maxHeads)
		inner := c.dim("ssm.inner_size", maxDim)
		if d.valueDim = inner / d.valueHeads; d.valueDim < 1 || inner%d.valueHeads != 0 {
			c.fail("ssm.inner_size %d is not a multiple of %d heads", inner, d.valueHeads)
		}
	} else {
		d.keyDim, d.valueDim = c.dimOr("linear_key_head_dim", 128, maxHead), c.dimOr("linear_value_head_dim", 128, maxHead)
		d.keyHeads, d.valueHeads = c.dimOr("linear_num_key_heads", 16, maxHeads), c.dimOr("linear_num_value_heads", 32, maxHeads)
	}
	if d.valueHeads%d.keyHeads != 0 {
		c.fail("%d value heads cannot share %d key heads", d.valueHeads, d.keyHeads)
	}
	return d
}

// mlxDeltaNet reports whether MLX wrote the checkpoint's delta nets: their convolutions are [channels][kernel][1] then,
// and nowhere else is the last dimension 1. Nothing else tells whether norm weights have their 1 added.
func (b *builder) mlxDeltaNet() bool {
	if _, ok := lookup("ssm_conv1d", ".weight", b.fam.hfNames, commonHF); !ok {
		return false
	}
	for i := range b.m.layers {
		if name := b.tensorName(i, "ssm_conv1d", ".weight"); b.src.has(name) {
			return b.src.get(name).k() == 1
		}
	}
	return false
}

func (d *deltaNet) lower(b *builder, in plan.Val) plan.Val {
	keys, values := d.keyHeads*d.keyDim, d.valueHeads*d.valueDim
	channels := 2*keys + values
	qkv, z := b.buffer("qkv", channels), b.buffer("z", values)
	beta, decay := b.buffer("beta", d.valueHeads), b.buffer("decay", d.valueHeads)
	b.emit(&plan.MatMul{In: in, Out: []plan.Val{qkv, z, beta, decay}, W: d.projections(b, in.Width)})
	b.emit(&plan.ShortConv{
		In: qkv, Out: qkv, W: b.vector("ssm_conv1d", ".weight", channels*d.kernel), B: plan.None,
		Kernel: d.kernel, Kind: plan.ActSiLU, State: b.state("convolution", (d.kernel-1)*channels),
	})
	q, k, v := qkv.Slice(0, keys), qkv.Slice(keys, keys), qkv.Slice(2*keys, values)
	for _, x := range []plan.Val{q, k} {
		b.emit(&plan.Norm{In: x, Out: x, Kind: plan.NormL2, W: plan.None, B: plan.None, Heads: d.keyHeads, Eps: 1e-6})
	}
	b.emit(&plan.Act{In: beta, Out: beta, Kind: plan.ActSigmoid})
	b.emit(&plan.Decay{
		X: decay, Out: decay, ALog: b.vector("ssm_a", "", d.valueHeads), Bias: b.vector("ssm_dt", ".bias", d.valueHeads), AIsNeg: b.c.gguf,
	})
	out := b.buffer("attn", values)
	b.emit(&plan.DeltaScan{
		Q: q, K: k, V: v, Decay: decay, Beta: beta, Out: out, KHeads: d.keyHeads, VHeads: d.valueHeads, KDim: d.keyDim, VDim: d.valueDim,
		Scale: float32(
			1 / exactmath.Sqrt(float64(d.keyDim)),
		), Tiled: d.tiled, State: b.state("delta rule", d.valueHeads*d.keyDim*d.valueDim),
	})
	b.gather(out, z)
	// This norm's weights are stored as they are, also where the others are stored less 1.
	b.emit(
		&plan.Norm{
			In:    out,
			Out:   out,
			W:     b.vector("ssm_norm", ".weight", d.valueDim),
			B:     plan.None,
			Heads: d.valueHeads,
			Eps:   float32(b.m.eps),
		},
	)
	b.emit(&plan.Gate{X: out, G: z, Out: out, Kind: plan.ActSiLU})
	y := b.buffer("y", b.m.hidden)
	b.linear("ssm_out", out, y, noBias)
	return y
}

// projections returns the matrices of queries, keys and values together, gates, betas and decays.
func (d *deltaNet) projections(b *builder, k int) []plan.WeightID {
	keys, values, heads := d.keyHeads*d.keyDim, d.valueHeads*d.valueDim, d.valueHeads
	var w []plan.WeightID
	if b.hasRole("ssm_in", ".weight") { // grouped by key head
		t := b.take("ssm_in", ".weight")
		if t.rows() != 2*keys+2*values {
			fail("family: tensor %q has shape %v, %d rows are needed", t.name, t.shape, 2*keys+2*values)
		}
		qkv, z := d.ungroup(d.keyDim, d.keyDim, values/d.keyHeads, values/d.keyHeads)
		w = append(w, b.addWeight(t.pick(qkv...), 2*keys+values, k), b.addWeight(t.pick(z), values, k))
	} else {
		w = append(w, b.weight("attn_qkv", 2*keys+values, k), b.weight("attn_gate", values, k))
	}
	if b.hasRole("ssm_ba", ".weight") {
		t := b.take("ssm_ba", ".weight")
		if t.rows() != 2*heads {
			fail("family: tensor %q has shape %v, %d rows are needed", t.name, t.shape, 2*heads)
		}
		beta, decay := alternate(d.keyHeads, heads/d.keyHeads, heads/d.keyHeads)
		return append(w, b.addWeight(t.pick(beta), heads, k), b.addWeight(t.pick(decay), heads, k))
	}
	return append(w, b.weight("ssm_beta", heads, k), b.weight("ssm_alpha", heads, k))
}

// ungroup divides the rows of a projection whose rows lie group by group: queries of all groups, then keys, then
// values; and gates apart.
func (d *deltaNet) ungroup(sizes ...int) (first []stripe, last stripe) {
	total := 0
	for _, s := range sizes {
		total += s
	}
	at := 0
	for _, s := range sizes {
		first = append(first, stripe{at, s, total, d.keyHeads})
		at += s
	}
	n := len(first) - 1
	return first[:n], first[n]
}
