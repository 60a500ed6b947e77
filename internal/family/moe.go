package family

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

// moe is a mixture of gated experts, with an optional expert that all rows share.
type moe struct {
	experts, topK, width int
	act                  plan.ActKind
	limit, alpha         float32
	router               plan.Router // all but In, Route and Bias
	routerBias           bool        // a bias that joins the choice only
	logitBias            bool        // a bias of the router's projection
	routerIfPresent      bool        // the same, where the checkpoint has one
	bias                 bool        // biases of the experts
	alternating          bool        // gpt-oss: gate and up rows alternate, and plain matrices are stored as [experts][k][rows]
	shared               *glu        // nil: none
	sharedGate           bool        // the shared expert's output is gated by a sigmoid of its own projection
}

// router0 is the plainest router.
func router0(kind plan.GateKind) plan.Router { return plan.Router{Kind: kind, Scale: 1} }

// expertCounts reads and checks the number of experts and how many a row uses.
func (c *config) expertCounts(countKey string) (experts, topK int) {
	experts, topK = c.dim(countKey, maxExpert), c.dim("num_experts_per_tok", maxExpert)
	if topK > experts {
		c.fail("%d experts per token of %d", topK, experts)
	}
	return experts, topK
}

func (f *moe) lower(b *builder, in plan.Val) plan.Val {
	out := b.buffer("ffn_out", b.m.hidden)
	route := b.route(f.experts, f.topK)
	r := f.router
	r.Route, r.In, r.Bias = route, b.buffer("router", f.experts), plan.None
	is := noBias
	if f.logitBias {
		is = hasBias
	}
	b.linear("ffn_gate_inp", in, r.In, is)
	if f.routerBias || f.routerIfPresent && b.hasRole("exp_probs_b", "") {
		r.Bias = b.vector("exp_probs_b", "", f.experts)
	}
	b.emit(&r)
	op := &plan.Experts{
		In: in, Out: out, Route: route, Kind: f.act, Limit: f.limit, Alpha: f.alpha,
		GateB: plan.None, UpB: plan.None, DownB: plan.None,
	}
	f.weights(b, op, in.Width)
	b.emit(op)
	if f.shared != nil {
		shared := b.buffer("shared", b.m.hidden)
		f.shared.lowerAs(b, in, shared, "ffn_gate_up_shexp", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp")
		if f.sharedGate {
			g := b.buffer("shared_gate", 1)
			b.linear("ffn_gate_inp_shexp", in, g, noBias)
			b.emit(&plan.Gate{X: shared, G: g, Out: shared, Kind: plan.ActSigmoid})
		}
		b.emit(&plan.Add{In: shared, Out: out, Scale: 1})
	}
	return out
}

// route returns the route of a shape, shared by all layers that have it.
func (b *builder) route(experts, topK int) plan.RouteID {
	for i, r := range b.p.Routes {
		if r.Experts == experts && r.TopK == topK {
			return plan.RouteID(i)
		}
	}
	b.p.Routes = append(b.p.Routes, plan.Route{Experts: experts, TopK: topK})
	return plan.RouteID(len(b.p.Routes) - 1)
}

// weights finds the experts' matrices in whichever layout the checkpoint has.
func (f *moe) weights(b *builder, op *plan.Experts, k int) {
	e, n := f.experts, f.width
	switch {
	case b.hasRole("ffn_gate_up_exps", ".weight"): // GGUF, gate rows first
		t := b.take("ffn_gate_up_exps", ".weight")
		op.Gate, op.Up = f.halves(b, t, k, false)
		op.Down = b.addStack(b.take("ffn_down_exps", ".weight"), e, k, n)
	case b.hasRole("ffn_gate_exps", ".weight"): // GGUF and MLX, one stack each
		op.Gate = b.addStack(b.take("ffn_gate_exps", ".weight"), e, n, k)
		op.Up = b.addStack(b.take("ffn_up_exps", ".weight"), e, n, k)
		op.Down = b.addStack(b.take("ffn_down_exps", ".weight"), e, k, n)
	case b.hasRole("experts.gate_up", ""): // transformers' own layout: [experts][2*width][k]
		gateUp, down := b.take("experts.gate_up", ""), b.take("experts.down", "")
		if f.alternating && gateUp.typ != quant.MXFP4 {
			gateUp, down = f.transposed(gateUp), f.transposed(down)
		}
		op.Gate, op.Up = f.halves(b, gateUp, k, f.alternating)
		op.Down = b.addStack(down, e, k, n)
	default:
		op.Gate = b.addStack(f.collect(b, "expert.gate"), e, n, k)
		op.Up = b.addStack(f.collect(b, "expert.up"), e, n, k)
		op.Down = b.addStack(f.collect(b, "expert.down"), e, k, n)
	}
	if f.bias {
		f.biases(b, op, k)
	}
}

// halves separates gate and up rows of a stack: the first and second half of each expert, or alternating.
func (f *moe) halves(b *builder, t *tensor, k int, interleaved bool) (gate, up plan.WeightID) {
	if t.rows() != f.experts*2*f.width {
		fail(
			"family: tensor %q has shape %v, %d experts of 2 x %d rows are needed",
			t.name,
			t.shape,
			f.experts,
			f.width,
		)
	}
	n, block := f.experts, f.width
	if interleaved {
		n, block = f.experts*f.width, 1
	}
	first, second := alternate(n, block, block)
	return b.addStack(t.pick(first), f.experts, f.width, k), b.addStack(t.pick(second), f.experts, f.width, k)
}

// transposed turns [experts][k][rows] into [experts][rows][k].
func (f *moe) transposed(t *tensor) *tensor {
	if len(t.shape) != 3 || t.shape[0] != f.experts {
		fail("family: tensor %q has shape %v, %d matrices are needed", t.name, t.shape, f.experts)
	}
	var list []*tensor
	for e := range f.experts {
		list = append(list, t.slice(e*t.shape[1], t.shape[1]))
	}
	return transposeAll(list)
}

// collect joins the matrices of all experts; the role's name has a %d for the expert.
func (f *moe) collect(b *builder, role string) *tensor {
	pattern := b.tensorName(b.layer, role, ".weight")
	list := make([]*tensor, f.experts)
	for e := range list {
		list[e] = b.takeName(fmt.Sprintf(pattern, e))
	}
	return join(fmt.Sprintf(pattern, 0), list)
}

// biases finds the experts' biases.
func (f *moe) biases(b *builder, op *plan.Experts, k int) {
	e, n := f.experts, f.width
	if b.hasRole("ffn_gate_exps", ".bias") {
		op.GateB = b.vector("ffn_gate_exps", ".bias", e*n)
		op.UpB = b.vector("ffn_up_exps", ".bias", e*n)
		op.DownB = b.vector("ffn_down_exps", ".bias", e*k)
		return
	}
	t := b.take("experts.gate_up_bias", "")
	if t.elements() != 2*e*n {
		fail("family: tensor %q has shape %v, %d experts of 2 x %d numbers are needed", t.name, t.shape, e, n)
	}
	gate, up := alternate(e*n, 1, 1)
	all := t.floats()
	op.GateB, op.UpB = b.addData(t.name, pickFloats(all, gate)), b.addData(t.name, pickFloats(all, up))
	op.DownB = b.vector("experts.down_bias", "", e*k)
}
