package plan

import (
	"math"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/quant"
)

// tiny is a valid plan: an embedding, a norm, one attention layer and the output.
func tiny() *Plan {
	weight := func(name string, rows, k int) Weight {
		return Weight{Name: name, Type: quant.F32, Rows: rows, K: k, Bytes: make([]byte, rows*k*4)}
	}
	x, q, k, v := Val{0, 0, 8}, Val{1, 0, 8}, Val{2, 0, 4}, Val{2, 4, 4}
	return &Plan{
		Vocab:   5,
		Buffers: []Buffer{{"x", 8}, {"q", 8}, {"kv", 8}, {"logits", 5}},
		Weights: []Weight{weight("embed", 5, 8), weight("q", 8, 8), weight("k", 4, 8)},
		Vectors: []Vector{{"norm", make([]float32, 8)}},
		Ropes:   []Rope{{InvFreq: []float64{1, 0.1}, Scale: 1}},
		Groups:  []Group{{Layers: []KVLayer{{Heads: 1, KDim: 4, VDim: 4}}}},
		Ops: []Op{
			&Embed{Out: x, W: 0, Scale: 1},
			&Norm{In: x, Out: x, W: 0, B: None, Heads: 1},
			&MatMul{In: x, Out: []Val{q, k, v}, W: []WeightID{1, 2, 2}},
			&RopeOp{X: q, Heads: 2, HeadDim: 4, Rope: 0},
			&StoreKV{K: k, V: v},
			&Attention{Q: q, Out: q, Heads: 2, Scale: 1, Sinks: None},
			&Gather{Vals: []Val{q}},
			&MatMul{In: q, Out: []Val{{3, 0, 5}}, W: []WeightID{0}},
		},
		Logits: Val{3, 0, 5},
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name, want string // want is part of the error, "" for none
		change     func(p *Plan)
	}{
		{"valid", "", func(p *Plan) {}},
		{"bytes of a weight", "bytes for", func(p *Plan) { p.Weights[1].Bytes = p.Weights[1].Bytes[4:] }},
		{"negative rows", "weight 1", func(p *Plan) { p.Weights[1].Rows = -1 }},
		{"rows times bytes overflow", "bytes for", func(p *Plan) { p.Weights[1].Rows, p.Weights[1].Experts = 1<<40, 1<<40 }},
		{"embedding of another vocabulary", "embedding", func(p *Plan) { p.Vocab = 4 }},
		{"view beyond its buffer", "leaves buffer", func(p *Plan) { p.Buffers[2].Width = 7 }},
		{"view of no buffer", "no buffer", func(p *Plan) { p.Ops[0].(*Embed).Out.Buf = 9 }},
		{"offset overflow", "leaves buffer", func(p *Plan) { p.Ops[0].(*Embed).Out.Off = int(^uint(0) >> 1) }},
		{"norm of another length", "numbers", func(p *Plan) { p.Vectors[0].Data = p.Vectors[0].Data[1:] }},
		{"no such vector", "no vector", func(p *Plan) { p.Ops[1].(*Norm).W = 3 }},
		{"no such weight", "no weight", func(p *Plan) { p.Ops[2].(*MatMul).W[1] = 3 }},
		{"input of another width", "takes", func(p *Plan) { p.Ops[2].(*MatMul).In.Width = 4 }},
		{"one output too few", "outputs", func(p *Plan) { p.Ops[2].(*MatMul).Out = p.Ops[2].(*MatMul).Out[1:] }},
		{"rotated beyond the head", "from", func(p *Plan) { p.Ops[3].(*RopeOp).Off = 1 }},
		{"too many heads", "slices", func(p *Plan) { p.Ops[3].(*RopeOp).Heads = 3 }},
		{"no such layer", "no layer", func(p *Plan) { p.Ops[4].(*StoreKV).Layer = 1 }},
		{"keys of another width", "wide", func(p *Plan) { p.Groups[0].Layers[0].KDim = 3 }},
		{"scores turned round", "a scale of -1", func(p *Plan) { p.Ops[5].(*Attention).Scale = -1 }},
		{"endless scores", "a scale of +Inf", func(p *Plan) { p.Ops[5].(*Attention).Scale = float32(math.Inf(1)) }},
		{"heads that do not divide", "share", func(p *Plan) { p.Ops[5].(*Attention).Heads = 0 }},
		{"values longer than the keys that hold them", "layer 0", func(p *Plan) { p.Groups[0].Layers[0] = KVLayer{1, 4, 5, true} }},
		{"more experts chosen than there are", "route", func(p *Plan) { p.Routes = []Route{{Experts: 2, TopK: 3}} }},
		{"a negative window", "window", func(p *Plan) { p.Ops[5].(*Attention).Window = -1 }},
		{"positions after Gather", "after Gather", func(p *Plan) { p.Ops[5], p.Ops[6] = p.Ops[6], p.Ops[5] }},
		{"Gather twice", "after Gather", func(p *Plan) { p.Ops = append(p.Ops[:7:7], p.Ops[6:]...) }},
		{"logits of another width", "logits", func(p *Plan) { p.Logits.Width = 4 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := tiny()
			test.change(p)
			err := p.Check()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("Check() = %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("Check() = %v, want an error with %q", err, test.want)
			}
		})
	}
}
