package backendtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

// builder makes small plans with random parameters.
type builder struct {
	*plan.Plan
	rnd *rand.Rand
}

const (
	vocab   = 83
	context = 1200
)

func newBuilder(family string, seed uint64) *builder {
	return &builder{&plan.Plan{Family: family, Vocab: vocab, Context: context}, rand.New(rand.NewPCG(seed, 1))}
}

func (b *builder) buf(name string, width int) plan.Val {
	b.Buffers = append(b.Buffers, plan.Buffer{Name: name, Width: width})
	return plan.Val{Buf: len(b.Buffers) - 1, Width: width}
}

func (b *builder) add(ops ...plan.Op) { b.Ops = append(b.Ops, ops...) }

// weight makes a stack of matrices of standard deviation 1/sqrt(k), in a storage format.
func (b *builder) weight(t quant.Type, experts, rows, k int) plan.WeightID {
	x := make([]float32, max(1, experts)*rows*k)
	for i := range x {
		x[i] = float32(b.rnd.NormFloat64() / math.Sqrt(float64(k)))
	}
	size, err := t.RowBytes(k)
	if err != nil {
		panic(err)
	}
	data := make([]byte, max(1, experts)*rows*size)
	if t == quant.F32 {
		copy(data, unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x)))
	} else if !t.CanQuantize() {
		b.blocks(t, data, k)
	} else if err := quant.Quantize(t, data, x); err != nil {
		panic(err)
	}
	name := fmt.Sprintf("w%d", len(b.Weights))
	b.Weights = append(b.Weights, plan.Weight{Name: name, Type: t, Experts: experts, Rows: rows, K: k, Bytes: data})
	return plan.WeightID(len(b.Weights) - 1)
}

// blocks fills data with random blocks of a format that nothing here encodes, for rows of k weights.
func (b *builder) blocks(t quant.Type, data []byte, k int) {
	for i := range data {
		data[i] = byte(b.rnd.Uint32())
	}
	scales := map[quant.Type]struct {
		at   []int
		size float64 // of a weight, about, where the scale is 1
	}{
		quant.IQ4_NL: {[]int{0}, 60}, quant.IQ4_XS: {[]int{0}, 60 * 16}, quant.Q2_K: {[]int{80, 82}, 8},
		quant.Q3_K: {[]int{108}, 2 * 16},
	}[t]
	for at := 0; at < len(data); at += t.BlockBytes() {
		for _, s := range scales.at {
			d := (0.5 + b.rnd.Float64()) / scales.size / math.Sqrt(float64(k))
			binary.LittleEndian.PutUint16(data[at+s:], quant.F32ToF16(float32(d)))
		}
	}
}

// vector makes n values around mean.
func (b *builder) vector(n int, mean, deviation float64) plan.VectorID {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(mean + deviation*b.rnd.NormFloat64())
	}
	b.Vectors = append(b.Vectors, plan.Vector{Name: fmt.Sprintf("v%d", len(b.Vectors)), Data: v})
	return plan.VectorID(len(b.Vectors) - 1)
}

func (b *builder) rope(pairs int, scale float64) plan.RopeID {
	f := make([]float64, pairs)
	for i := range f {
		f[i] = math.Exp(-9.2 * float64(i) / float64(pairs))
	}
	b.Ropes = append(b.Ropes, plan.Rope{InvFreq: f, Scale: scale})
	return plan.RopeID(len(b.Ropes) - 1)
}

func (b *builder) state(size int) plan.StateID {
	b.States = append(b.States, plan.State{Name: fmt.Sprintf("s%d", len(b.States)), Size: size})
	return plan.StateID(len(b.States) - 1)
}

// group adds a layer to the group of a window, and the group where it is new.
func (b *builder) group(window int, l plan.KVLayer) (group, layer int) {
	for i := range b.Groups {
		if b.Groups[i].Window == window {
			b.Groups[i].Layers = append(b.Groups[i].Layers, l)
			return i, len(b.Groups[i].Layers) - 1
		}
	}
	b.Groups = append(b.Groups, plan.Group{Window: window, Layers: []plan.KVLayer{l}})
	return len(b.Groups) - 1, 0
}

func (b *builder) linear(t quant.Type, in plan.Val, bias bool, outs ...plan.Val) {
	m := &plan.MatMul{In: in, Out: outs}
	for _, o := range outs {
		m.W = append(m.W, b.weight(t, 0, o.Width, in.Width))
		if bias {
			m.Bias = append(m.Bias, b.vector(o.Width, 0, 0.3))
		}
	}
	b.add(m)
}

type attn struct {
	heads, kv, dim, rotary, window int
	cap                            float32
	sinks, bias, interleaved, norm bool
}

// attention appends a grouped-query attention block with a residual.
func (b *builder) attention(t quant.Type, x plan.Val, a attn, gather bool) {
	n := fmt.Sprintf("attn%d.", len(b.Ops))
	h, q := b.buf(n+"h", x.Width), b.buf(n+"q", a.heads*a.dim)
	kv := b.buf(n+"kv", 2*a.kv*a.dim)
	k, v := kv.Slice(0, a.kv*a.dim), kv.Slice(a.kv*a.dim, a.kv*a.dim)
	o := b.buf(n+"o", a.heads*a.dim)
	b.add(&plan.Norm{In: x, Out: h, W: b.vector(x.Width, 1, 0.2), B: plan.None, Heads: 1, Eps: 1e-5})
	b.linear(t, h, a.bias, q, k, v)
	if a.norm {
		b.add(&plan.Norm{In: q, Out: q, W: b.vector(a.dim, 1, 0.2), B: plan.None, Heads: a.heads, Eps: 1e-6},
			&plan.Norm{In: k, Out: k, W: b.vector(a.kv*a.dim, 1, 0.2), B: plan.None, Heads: a.kv, Eps: 1e-6})
	}
	if a.rotary > 0 {
		r := b.rope(a.rotary/2, 1.1)
		b.add(&plan.RopeOp{X: q, Heads: a.heads, HeadDim: a.dim, Rope: r, Interleaved: a.interleaved},
			&plan.RopeOp{X: k, Heads: a.kv, HeadDim: a.dim, Rope: r, Interleaved: a.interleaved})
	}
	g, l := b.group(a.window, plan.KVLayer{Heads: a.kv, KDim: a.dim, VDim: a.dim})
	op := &plan.Attention{
		Q: q, Out: o, Heads: a.heads, Group: g, Layer: l,
		Scale: float32(1 / math.Sqrt(float64(a.dim))), SoftCap: a.cap, Sinks: plan.None,
	}
	if a.sinks {
		op.Sinks = b.vector(a.heads, 0, 1)
	}
	b.add(&plan.StoreKV{K: k, V: v, Group: g, Layer: l}, op)
	if gather {
		b.add(&plan.Gather{Vals: []plan.Val{x, o}})
	}
	b.linear(t, o, a.bias, h)
	b.add(&plan.Add{In: h, Out: x, Scale: 0.7})
}

// ffn appends a gated FFN with a residual.
func (b *builder) ffn(t quant.Type, x plan.Val, width int, kind plan.ActKind) {
	n := fmt.Sprintf("ffn%d.", len(b.Ops))
	h, g, u := b.buf(n+"h", x.Width), b.buf(n+"g", width), b.buf(n+"u", width)
	b.add(&plan.Norm{In: x, Out: h, W: b.vector(x.Width, 1, 0.2), B: plan.None, Heads: 1, Eps: 1e-5})
	b.linear(t, h, false, g, u)
	b.add(&plan.GLU{Gate: g, Up: u, Out: g, Kind: kind, Limit: 7, Alpha: 1.702})
	b.linear(t, g, false, h)
	b.add(&plan.Add{In: h, Out: x, Scale: 1})
}

func (b *builder) experts(t quant.Type, x plan.Val, width, experts, topK int, r plan.Router, weightInput bool) {
	n := fmt.Sprintf("moe%d.", len(b.Ops))
	h, logits := b.buf(n+"h", x.Width), b.buf(n+"logits", experts)
	b.Routes = append(b.Routes, plan.Route{Experts: experts, TopK: topK})
	r.In, r.Route = logits, plan.RouteID(len(b.Routes)-1)
	b.add(&plan.Norm{
		In: x, Out: h, W: b.vector(x.Width, 1, 0.2), B: b.vector(x.Width, 0, 0.2), Kind: plan.NormLayer,
		Heads: 1, Eps: 1e-5,
	})
	b.linear(quant.F32, h, false, logits)
	b.add(&r, &plan.Experts{
		In: h, Out: h, Route: r.Route, Kind: plan.ActSwiGLUOAI, Limit: 7, Alpha: 1.702, WeightInput: weightInput,
		Gate: b.weight(t, experts, width, x.Width), Up: b.weight(t, experts, width, x.Width), Down: b.weight(t, experts,
			x.Width, width),
		GateB: b.vector(
			experts*width,
			0,
			0.2,
		), UpB: b.vector(experts*width, 0, 0.2), DownB: b.vector(experts*x.Width, 0,
			0.2),
	}, &plan.Add{In: h, Out: x, Scale: 1})
}

// latent appends latent attention in absorbed form.
func (b *builder) latent(t quant.Type, x plan.Val) {
	const heads, nope, rot, lora, vdim = 4, 32, 8, 64, 32
	h, q := b.buf("mla.h", x.Width), b.buf("mla.q", heads*(nope+rot))
	kv, ql := b.buf("mla.kv", lora+rot), b.buf("mla.ql", heads*(lora+rot))
	ol, o := b.buf("mla.ol", heads*lora), b.buf("mla.o", heads*vdim)
	r := b.rope(rot/2, 1)
	g, l := b.group(0, plan.KVLayer{Heads: 1, KDim: lora + rot, VDim: lora, VInK: true})
	b.add(&plan.Norm{In: x, Out: h, W: b.vector(x.Width, 1, 0.2), B: plan.None, Heads: 1, Eps: 1e-5})
	b.linear(t, h, false, q, kv)
	b.add(
		&plan.Norm{
			In: kv.Slice(0, lora), Out: kv.Slice(0, lora), W: b.vector(lora, 1, 0.2), B: plan.None, Heads: 1,
			Eps: 1e-6,
		},
		&plan.RopeOp{X: q, Heads: heads, HeadDim: nope + rot, Off: nope, Rope: r, Interleaved: true},
		&plan.RopeOp{X: kv, Heads: 1, HeadDim: lora + rot, Off: lora, Rope: r, Interleaved: true},
		&plan.HeadMatMul{
			In:        q,
			Out:       ql,
			W:         b.weight(t, heads, lora, nope),
			InStride:  nope + rot,
			OutStride: lora + rot,
		},
	)
	b.add(&plan.CopyHeads{
		In: q, Out: ql, Heads: heads, Width: rot, InStride: nope + rot, InOff: nope,
		OutStride: lora + rot, OutOff: lora,
	},
		&plan.Clamp{X: kv, Limit: 1.5}, &plan.PosScale{X: q, Beta: 0.1, Length: 16},
		&plan.StoreKV{K: kv, Group: g, Layer: l},
		&plan.Attention{Q: ql, Out: ol, Heads: heads, Group: g, Layer: l, Scale: 0.16, Sinks: plan.None},
		&plan.HeadMatMul{In: ol, Out: o, W: b.weight(t, heads, vdim, lora), InStride: lora, OutStride: vdim})
	b.linear(t, o, false, h)
	b.add(&plan.Add{In: h, Out: x, Scale: 1})
}

// delta appends a gated delta net with its convolution.
func (b *builder) delta(t quant.Type, x plan.Val, tiled, perChannel bool) {
	const kheads, vheads, kdim, vdim, kernel = 2, 4, 32, 24, 4
	n := fmt.Sprintf("delta%d.", len(b.Ops))
	width := 2*kheads*kdim + vheads*vdim
	decays := vheads
	if perChannel {
		decays *= kdim
	}
	h, qkv := b.buf(n+"h", x.Width), b.buf(n+"qkv", width)
	gate, beta, decay := b.buf(n+"z", vheads*vdim), b.buf(n+"beta", vheads), b.buf(n+"decay", decays)
	o := b.buf(n+"o", vheads*vdim)
	q, k, v := qkv.Slice(0, kheads*kdim), qkv.Slice(kheads*kdim, kheads*kdim), qkv.Slice(2*kheads*kdim, vheads*vdim)
	b.add(&plan.Norm{In: x, Out: h, W: b.vector(x.Width, 1, 0.2), B: plan.None, Heads: 1, Eps: 1e-5})
	b.linear(t, h, false, qkv, gate, beta, decay)
	b.add(&plan.ShortConv{
		In: qkv, Out: qkv, W: b.vector(width*kernel, 0, 0.5), B: plan.None, Kernel: kernel,
		Kind: plan.ActSiLU, State: b.state((kernel - 1) * width),
	},
		&plan.Norm{In: q, Out: q, Kind: plan.NormL2, W: plan.None, B: plan.None, Heads: kheads, Eps: 1e-6},
		&plan.Norm{In: k, Out: k, Kind: plan.NormL2, W: plan.None, B: plan.None, Heads: kheads, Eps: 1e-6},
		&plan.Act{In: beta, Out: beta, Kind: plan.ActSigmoid},
		&plan.Decay{X: decay, Out: decay, ALog: b.vector(vheads, 0, 0.5), Bias: b.vector(decays, 0, 0.5)},
		&plan.DeltaScan{
			Q: q, K: k, V: v, Decay: decay, Beta: beta, Out: o, KHeads: kheads, VHeads: vheads, KDim: kdim, VDim: vdim,
			Scale: 0.18, PerChannel: perChannel, Tiled: tiled, State: b.state(vheads * kdim * vdim),
		},
		&plan.Norm{In: o, Out: o, W: b.vector(vdim, 1, 0.2), B: plan.None, Heads: vheads, Eps: 1e-6},
		&plan.Gate{X: o, G: gate, Out: o, Kind: plan.ActSiLU})
	b.linear(t, o, false, h)
	b.add(&plan.Add{In: h, Out: x, Scale: 1})
}

func (b *builder) begin(t quant.Type, width int) plan.Val {
	x := b.buf("x", width)
	b.add(&plan.Embed{Out: x, W: b.weight(t, 0, vocab, width), Scale: 1.5})
	return x
}

func (b *builder) end(t quant.Type, x plan.Val, softCap float32) *plan.Plan {
	b.add(&plan.Norm{In: x, Out: x, W: b.vector(x.Width, 1, 0.2), B: plan.None, Heads: 1, Eps: 1e-5})
	b.Logits = b.buf("logits", vocab)
	b.linear(t, x, false, b.Logits)
	b.add(&plan.Scale{X: b.Logits, Factor: 2, V: plan.None})
	if softCap > 0 {
		b.add(&plan.SoftCap{X: b.Logits, Cap: softCap})
	}
	return b.Plan
}

// Plans returns a plan for each kind of state and block, with weights of type t. Widths are multiples of 32 only
// where t asks for it.
func Plans(t quant.Type) []*plan.Plan {
	width := 72
	if t.BlockSize() > 1 {
		width = 3 * t.BlockSize()
	}
	ff := 2*width - t.BlockSize()

	b := newBuilder("full attention", 1)
	x := b.begin(t, width)
	b.attention(t, x, attn{heads: width / 8 / 2 * 2, kv: 2, dim: 16, rotary: 16, bias: true, interleaved: true}, false)
	b.ffn(t, x, ff, plan.ActSiLU)
	b.attention(t, x, attn{heads: width / 8 / 2 * 2, kv: 1, dim: 16, rotary: 8, norm: true}, true)
	b.ffn(t, x, ff, plan.ActGELU)
	plans := []*plan.Plan{b.end(t, x, 0)}

	b = newBuilder("windows, sinks and caps", 2)
	x = b.begin(t, width)
	b.attention(t, x, attn{heads: width / 8 / 2 * 2, kv: 2, dim: 16, rotary: 16, window: 40, sinks: true}, false)
	b.ffn(t, x, ff, plan.ActGELUTanh)
	b.attention(t, x, attn{heads: width / 8 / 2 * 2, kv: 2, dim: 16, cap: 5}, false)
	b.attention(t, x, attn{heads: width / 8 / 2 * 2, kv: 2, dim: 16, rotary: 16, window: 7, cap: 9}, true)
	plans = append(plans, b.end(t, x, 11))

	b = newBuilder("experts", 3)
	x = b.begin(t, width)
	b.attention(t, x, attn{heads: width / 8 / 2 * 2, kv: 2, dim: 16, rotary: 16}, false)
	b.experts(t, x, ff, 8, 3, plan.Router{Kind: plan.GateSoftmax, Bias: plan.None, Norm: true, Scale: 1}, false)
	b.experts(t, x, ff, 8, 2, plan.Router{
		Kind: plan.GateSigmoid, Bias: b.vector(8, 0, 0.3), Groups: 4, GroupTopK: 2, GroupSum2: true, Norm: true,
		NormEps: 1e-20, Scale: 2.5,
	}, false)
	b.experts(t, x, ff, 5, 2, plan.Router{Kind: plan.GateTopKSoftmax, Bias: plan.None, Scale: 1}, true)
	plans = append(plans, b.end(t, x, 0))

	if t.BlockSize() <= 32 {
		b = newBuilder("latent attention", 4)
		x = b.begin(t, width)
		b.latent(t, x)
		b.ffn(t, x, ff, plan.ActSiLU)
		plans = append(plans, b.end(t, x, 0))

		b = newBuilder("delta net", 5)
		x = b.begin(t, width)
		b.delta(t, x, false, false)
		b.attention(t, x, attn{heads: 4, kv: 2, dim: 16, rotary: 8}, false)
		b.delta(t, x, true, false)
		b.ffn(t, x, ff, plan.ActSiLU)
		plans = append(plans, b.end(t, x, 0))
	}
	return plans
}
