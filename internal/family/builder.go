package family

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/plan"
)

// builder turns a model into a plan. Buffers are shared by all layers: an operation's result lives until the next layer
// writes a buffer of the same name, and only the stream x lives longer.
type builder struct {
	c    *config
	fam  *family
	src  source
	used map[string]bool // tensors read
	m    *model
	root string  // safetensors: prefix of the text model's tensors
	head string  // safetensors: name of the output projection
	plus float32 // what is added to norm weights

	p       *plan.Plan
	buffers map[string]int
	layer   int // being lowered; -1: the model itself
	last    bool
	x       plan.Val // the residual stream
}

// build lowers m.
func build(c *config, fam *family, m *model) *plan.Plan {
	b := &builder{c: c, fam: fam, src: c.source, used: map[string]bool{}, m: m, buffers: map[string]int{}, layer: -1}
	b.p = &plan.Plan{Family: fam.name, Vocab: m.vocab, Context: m.context}
	if c.limit > 0 {
		b.p.Context = c.limit
	}
	if !c.gguf {
		b.findRoot()
		if fam.onePlus && !b.mlxDeltaNet() {
			b.plus = 1
		}
	}
	embed := b.embed()
	for i := range m.layers {
		b.layer, b.last = i, i == len(m.layers)-1
		b.lowerLayer(&m.layers[i])
	}
	b.layer = -1
	b.output(embed)
	b.checkUnused()
	return b.p
}

func (b *builder) embed() plan.WeightID {
	t := b.take("token_embd", ".weight")
	if b.c.gguf && b.m.vocab == 0 {
		b.m.vocab = t.rows()
		b.p.Vocab = t.rows()
	}
	w := b.addWeight(t, b.m.vocab, b.m.hidden)
	b.x = b.buffer("x", b.m.hidden)
	scale := float32(1)
	if b.m.embedScale != 0 {
		scale = float32(b.m.embedScale)
	}
	b.emit(&plan.Embed{Out: b.x, W: w, Scale: scale})
	return w
}

func (b *builder) lowerLayer(l *layer) {
	h := b.normed(l.preMix, b.x, "h")
	y := b.normed(l.postMix, l.mix.lower(b, h), "")
	b.add(y)
	if l.ffn == nil {
		return
	}
	h = b.normed(l.preFFN, b.x, "h")
	y = b.normed(l.postFFN, l.ffn.lower(b, h), "")
	b.add(y)
}

// add adds a layer's contribution to the stream.
func (b *builder) add(y plan.Val) {
	scale := float32(1)
	if b.m.residual != 0 {
		scale = float32(b.m.residual)
	}
	b.emit(&plan.Add{In: y, Out: b.x, Scale: scale})
}

// normed applies the norm of a role, into a buffer or (name "") in place. Role "" is no norm.
func (b *builder) normed(role string, in plan.Val, name string) plan.Val {
	if role == "" {
		return in
	}
	out := in
	if name != "" {
		out = b.buffer(name, in.Width)
	}
	b.emit(
		&plan.Norm{
			In:    in,
			Out:   out,
			Kind:  b.m.norm,
			W:     b.norm(role, in.Width),
			B:     b.normBias(role, in.Width),
			Heads: 1,
			Eps:   float32(b.m.eps),
		},
	)
	return out
}

func (b *builder) output(embed plan.WeightID) {
	role := b.m.finalNorm
	if role == "" {
		role = "output_norm"
	}
	h := b.normed(role, b.x, "h")
	w := embed
	present := b.hasRole("output", ".weight")
	switch {
	case b.m.tied == untied && !present:
		b.take("output", ".weight") // says what is missing
	case present: // where it is tied, but saved nevertheless, the reference ties only what is equal
		w = b.weight("output", b.m.vocab, b.m.hidden)
	}
	logits := b.buffer("logits", b.m.vocab)
	b.emit(&plan.MatMul{In: h, Out: []plan.Val{logits}, W: []plan.WeightID{w}})
	if b.m.logitScale != 0 && b.m.logitScale != 1 {
		b.emit(&plan.Scale{X: logits, Factor: float32(b.m.logitScale), V: plan.None})
	}
	if b.m.logitCap != 0 {
		b.emit(&plan.SoftCap{X: logits, Cap: float32(b.m.logitCap)})
	}
	b.p.Logits = logits
}

func (b *builder) emit(op plan.Op) { b.p.Ops = append(b.p.Ops, op) }

// gather drops the rows without logits, if this is the last layer; keep are the views still needed beside the stream.
func (b *builder) gather(keep ...plan.Val) {
	if b.last {
		b.emit(&plan.Gather{Vals: append([]plan.Val{b.x}, keep...)})
	}
}

// buffer returns the first width values of the buffer with that name, which is as wide as its widest use.
func (b *builder) buffer(name string, width int) plan.Val {
	id, ok := b.buffers[name]
	if !ok {
		id = len(b.p.Buffers)
		b.buffers[name] = id
		b.p.Buffers = append(b.p.Buffers, plan.Buffer{Name: name})
	}
	b.p.Buffers[id].Width = max(b.p.Buffers[id].Width, width)
	return plan.Val{Buf: id, Width: width}
}

// take reads the tensor of a role and marks it as used.
func (b *builder) take(role, suffix string) *tensor {
	return b.takeName(b.tensorName(b.layer, role, suffix))
}

func (b *builder) takeName(name string) *tensor {
	t := b.src.get(name)
	for _, name := range t.names {
		b.used[name] = true
	}
	return t
}

// weight adds the matrix of a role.
func (b *builder) weight(role string, rows, k int) plan.WeightID {
	return b.addWeight(b.take(role, ".weight"), rows, k)
}

// addWeight adds a matrix after checking its shape.
func (b *builder) addWeight(t *tensor, rows, k int) plan.WeightID {
	return b.addStack(t, 0, rows, k)
}

// addStack adds a stack of matrices, [experts][rows][k]; experts 0 is a single one.
func (b *builder) addStack(t *tensor, experts, rows, k int) plan.WeightID {
	if t.k() != k || t.rows() != max(experts, 1)*rows {
		want := fmt.Sprintf("%d x %d", rows, k)
		if experts > 0 {
			want = fmt.Sprintf("%d x %s", experts, want)
		}
		fail("family: tensor %q has shape %v, the configuration asks for %s", t.name, t.shape, want)
	}
	t.rowBytes() // rows are whole numbers of blocks
	w := plan.Weight{Name: t.name, Type: t.typ, Experts: experts, Rows: rows, K: k, Parts: t.parts}
	b.p.Weights = append(b.p.Weights, w)
	return plan.WeightID(len(b.p.Weights) - 1)
}

// vector adds a vector of n numbers, whatever its shape.
func (b *builder) vector(role, suffix string, n int) plan.VectorID {
	return b.addVector(b.take(role, suffix), n, 0)
}

func (b *builder) addVector(t *tensor, n int, plus float32) plan.VectorID {
	if t.elements() != n {
		fail("family: tensor %q has shape %v, the configuration asks for %d numbers", t.name, t.shape, n)
	}
	data := t.floats()
	if plus != 0 {
		for i := range data {
			data[i] += plus
		}
	}
	return b.addData(t.name, data)
}

func (b *builder) addData(name string, data []float32) plan.VectorID {
	b.p.Vectors = append(b.p.Vectors, plan.Vector{Name: name, Data: data})
	return plan.VectorID(len(b.p.Vectors) - 1)
}

// norm adds the weights of a norm; those that are stored less 1 get the 1 back.
func (b *builder) norm(role string, n int) plan.VectorID {
	return b.addVector(b.take(role, ".weight"), n, b.plus)
}

func (b *builder) normBias(role string, n int) plan.VectorID {
	if b.m.norm != plan.NormLayer {
		return plan.None
	}
	return b.optional(role, n, biasIfPresent)
}

// bias says whether a projection has a bias.
type bias uint8

const (
	noBias bias = iota
	hasBias
	biasIfPresent // GGUF: its presence is the configuration
)

// biasKey reads a configuration switch.
func (c *config) biasKey(key string, def bool) bias {
	switch {
	case c.gguf:
		return biasIfPresent
	case c.boolOr(key, def):
		return hasBias
	}
	return noBias
}

// fixedBias is for families that decide by themselves.
func (c *config) fixedBias(has bool) bias {
	switch {
	case c.gguf:
		return biasIfPresent
	case has:
		return hasBias
	}
	return noBias
}

// optional adds a bias as its switch says.
func (b *builder) optional(role string, n int, is bias) plan.VectorID {
	if is == noBias || is == biasIfPresent && !b.hasRole(role, ".bias") {
		return plan.None
	}
	return b.vector(role, ".bias", n)
}

// linear multiplies by one matrix.
func (b *builder) linear(role string, in, out plan.Val, is bias) {
	b.emit(&plan.MatMul{
		In: in, Out: []plan.Val{out},
		W:    []plan.WeightID{b.weight(role, out.Width, in.Width)},
		Bias: []plan.VectorID{b.optional(role, out.Width, is)},
	})
}

// split is a part of a fused projection: its own role where the checkpoint keeps parts apart, and its rows.
type split struct {
	role string
	rows int
}

// fused returns the weights and biases of parts that a checkpoint stores either fused under one role or each alone.
func (b *builder) fused(role string, parts []split, k int, is bias) (w []plan.WeightID, biases []plan.VectorID) {
	if !b.hasRole(role, ".weight") {
		for _, p := range parts {
			w = append(w, b.weight(p.role, p.rows, k))
			biases = append(biases, b.optional(p.role, p.rows, is))
		}
		return w, biases
	}
	t := b.take(role, ".weight")
	total := 0
	for _, p := range parts {
		total += p.rows
	}
	if t.rows() != total || t.k() != k {
		fail("family: tensor %q has shape %v, the configuration asks for %d x %d", t.name, t.shape, total, k)
	}
	var all []float32
	if is == hasBias || is == biasIfPresent && b.hasRole(role, ".bias") {
		bt := b.take(role, ".bias")
		if bt.elements() != total {
			fail("family: tensor %q has %d numbers, %d are needed", bt.name, bt.elements(), total)
		}
		all = bt.floats()
	}
	at := 0
	for _, p := range parts {
		w = append(w, b.addWeight(t.slice(at, p.rows), p.rows, k))
		id := plan.VectorID(plan.None)
		if all != nil {
			id = b.addData(t.name+" bias", all[at:at+p.rows])
		}
		biases = append(biases, id)
		at += p.rows
	}
	return w, biases
}

// state adds a recurrent state for the current layer.
func (b *builder) state(kind string, size int) plan.StateID {
	b.p.States = append(b.p.States, plan.State{Name: fmt.Sprintf("layer %d %s", b.layer, kind), Size: size})
	return plan.StateID(len(b.p.States) - 1)
}

// group adds a layer to the group of its window and returns where it is.
func (b *builder) group(window int, l plan.KVLayer) (group, index int) {
	if window >= b.p.Context {
		window = 0 // it never cuts anything off
	}
	group = -1
	for i, g := range b.p.Groups {
		if g.Window == window {
			group = i
		}
	}
	if group < 0 {
		group = len(b.p.Groups)
		b.p.Groups = append(b.p.Groups, plan.Group{Window: window})
	}
	g := &b.p.Groups[group]
	g.Layers = append(g.Layers, l)
	return group, len(g.Layers) - 1
}

// table adds a rope's table once.
func (b *builder) table(r *rope) plan.RopeID {
	if !r.placed {
		r.id, r.placed = plan.RopeID(len(b.p.Ropes)), true
		b.p.Ropes = append(b.p.Ropes, plan.Rope{InvFreq: r.freqs, Long: r.long, Scale: r.scale})
		if r.long != nil {
			from := int(r.params.original)
			if b.p.LongFrom != 0 && b.p.LongFrom != from {
				b.c.fail("longrope from %d and from %d positions on", b.p.LongFrom, from)
			}
			b.p.LongFrom = from
		}
	}
	return r.id
}

// rotate applies a rope to heads; a nil rope does nothing.
func (b *builder) rotate(r *rope, x plan.Val, heads, dim int) {
	if r == nil {
		return
	}
	b.emit(&plan.RopeOp{X: x, Heads: heads, HeadDim: dim, Off: r.off, Rope: b.table(r), Interleaved: r.interleaved})
}
