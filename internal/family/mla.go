package family

import "github.com/baleenrun/baleen/internal/plan"

// latentAttention is DeepSeek's multi-head latent attention (arXiv 2405.04434) in absorbed form: keys and values of all
// heads are projections of one latent vector per position, so the query is projected into the latent's space instead
// (k_b), attention runs over latents, one key head for all, and its result is projected out of it (v_b). The cache
// holds the latent and one rotated key part that all heads share.
type latentAttention struct {
	heads             int
	queryRank, rank   int // queryRank 0: queries are projected directly
	plain, rotated, v int // dimensions of a head: not rotated, rotated, value
	bias, outBias     bias
	rope              *rope
	scale             float64
}

func (a *latentAttention) lower(b *builder, in plan.Val) plan.Val {
	head, key := a.plain+a.rotated, a.rank+a.rotated
	q := b.buffer("q", a.heads*head)
	if a.queryRank > 0 {
		qa := b.buffer("q_a", a.queryRank)
		b.linear("attn_q_a", in, qa, a.bias)
		b.emit(
			&plan.Norm{
				In:    qa,
				Out:   qa,
				W:     b.norm("attn_q_a_norm", a.queryRank),
				B:     plan.None,
				Heads: 1,
				Eps:   latentEps,
			},
		)
		b.linear("attn_q_b", qa, q, noBias)
	} else {
		b.linear("attn_q", in, q, noBias)
	}
	kv := b.buffer("kv", key)
	b.linear("attn_kv_a_mqa", in, kv, a.bias)
	latent := kv.Slice(0, a.rank)
	b.emit(
		&plan.Norm{
			In:    latent,
			Out:   latent,
			W:     b.norm("attn_kv_a_norm", a.rank),
			B:     plan.None,
			Heads: 1,
			Eps:   latentEps,
		},
	)
	b.rotate(a.rope, kv.Slice(a.rank, a.rotated), 1, a.rotated)
	turn := *a.rope
	turn.off, turn.id, turn.placed = a.plain, b.table(a.rope), true
	b.rotate(&turn, q, a.heads, head)

	kb, vb := a.absorbed(b)
	qk := b.buffer("q_latent", a.heads*key)
	b.emit(&plan.HeadMatMul{In: q, Out: qk, W: kb, InStride: head, OutStride: key})
	b.emit(
		&plan.CopyHeads{
			In:        q,
			Out:       qk,
			Heads:     a.heads,
			Width:     a.rotated,
			InStride:  head,
			InOff:     a.plain,
			OutStride: key,
			OutOff:    a.rank,
		},
	)
	group, layer := b.group(0, plan.KVLayer{Heads: 1, KDim: key, VDim: a.rank, VInK: true})
	b.emit(&plan.StoreKV{K: kv, Group: group, Layer: layer})
	mixed := b.buffer("attn", a.heads*a.rank)
	b.emit(
		&plan.Attention{
			Q:     qk,
			Out:   mixed,
			Heads: a.heads,
			Group: group,
			Layer: layer,
			Scale: attentionScale(a.scale),
			Sinks: plan.None,
		},
	)
	b.gather(mixed)
	out := b.buffer("attn_v", a.heads*a.v)
	b.emit(&plan.HeadMatMul{In: mixed, Out: out, W: vb, InStride: a.rank, OutStride: a.v})
	y := b.buffer("y", b.m.hidden)
	b.linear("attn_output", out, y, a.outBias)
	return y
}

// latentEps is what the reference's norms of latents use, whatever the configuration says.
const latentEps = 1e-6

// absorbed returns k_b, for each head [rank][plain], and v_b, [v][rank].
func (a *latentAttention) absorbed(b *builder) (kb, vb plan.WeightID) {
	if b.hasRole("attn_k_b", ".weight") {
		kb = b.addStack(b.take("attn_k_b", ".weight"), a.heads, a.rank, a.plain)
		return kb, b.addStack(b.take("attn_v_b", ".weight"), a.heads, a.v, a.rank)
	}
	t := b.take("attn_kv_b", ".weight")
	if t.rows() != a.heads*(a.plain+a.v) || t.k() != a.rank {
		fail(
			"family: tensor %q has shape %v, %d heads of %d + %d rows of %d are needed",
			t.name,
			t.shape,
			a.heads,
			a.plain,
			a.v,
			a.rank,
		)
	}
	_, values := alternate(a.heads, a.plain, a.v)
	var keys []*tensor
	for h := range a.heads {
		keys = append(keys, t.slice(h*(a.plain+a.v), a.plain))
	}
	return b.addStack(transposeAll(keys), a.heads, a.rank, a.plain), b.addStack(t.pick(values), a.heads, a.v, a.rank)
}

// transposeAll transposes matrices of one shape and joins them.
func transposeAll(list []*tensor) *tensor {
	first := list[0]
	out := &tensor{name: first.name, shape: []int{len(list) * first.k(), first.rows()}, names: first.names}
	for _, t := range list {
		typ, part := transpose(t)
		out.typ, out.parts = typ, append(out.parts, part)
	}
	return out
}
