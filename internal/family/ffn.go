package family

import "github.com/baleenrun/baleen/internal/plan"

// glu is the gated FFN: down(act(gate(x)) * up(x)).
type glu struct {
	width int
	act   plan.ActKind
	bias  bias
}

func (f *glu) lower(b *builder, in plan.Val) plan.Val {
	out := b.buffer("ffn_out", b.m.hidden)
	f.lowerAs(b, in, out, "ffn_gate_up", "ffn_gate", "ffn_up", "ffn_down")
	return out
}

// lowerAs lowers with the given roles; a fused tensor holds the gate's rows first.
func (f *glu) lowerAs(b *builder, in, out plan.Val, fused, gateRole, upRole, downRole string) {
	gate, up := b.buffer("gate", f.width), b.buffer("up", f.width)
	mm := &plan.MatMul{In: in, Out: []plan.Val{gate, up}}
	mm.W, mm.Bias = b.fused(fused, []split{{gateRole, f.width}, {upRole, f.width}}, in.Width, f.bias)
	b.emit(mm)
	b.emit(&plan.GLU{Gate: gate, Up: up, Out: gate, Kind: f.act})
	b.linear(downRole, gate, out, f.bias)
}

var activations = map[string]plan.ActKind{
	"silu": plan.ActSiLU, "swish": plan.ActSiLU,
	"gelu":              plan.ActGELU,
	"gelu_pytorch_tanh": plan.ActGELUTanh, "gelu_new": plan.ActGELUTanh, "gelu_fast": plan.ActGELUTanh,
	"relu": plan.ActReLU, "relu2": plan.ActReLU2,
}

// activation reads an activation's name.
func (c *config) activation(key, def string) plan.ActKind {
	name := c.stringOr(key, def)
	kind, ok := activations[name]
	if !ok {
		c.fail("%s is %q, which is not supported", key, name)
	}
	return kind
}
