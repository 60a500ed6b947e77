package synth

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/quant"
)

// tensor is one weight of the file to be written.
type tensor struct {
	name  string
	dims  []int // ggml order: the input dimension first
	typ   quant.Type
	sigma float64 // standard deviation; 0: a norm, all near one
}

func (t tensor) bytes() int64 {
	row, err := t.typ.RowBytes(t.dims[0])
	if err != nil {
		panic(err) // fitting chose the format for this row
	}
	n := int64(row)
	for _, d := range t.dims[1:] {
		n *= int64(d)
	}
	return n
}

// Size is the number of bytes that the weights of a file will take.
func Size(s Shape, r Recipe) int64 {
	var n int64
	for _, t := range tensors(s, r) {
		n += t.bytes()
	}
	return n
}

// Write writes a GGUF of the shape to w. The same seed gives the same file. progress may be nil; it is told the
// bytes of weights that are written.
func Write(ctx context.Context, w io.Writer, s Shape, r Recipe, seed uint64, progress func(done int64)) error {
	out := gguf.NewWriter(w)
	for _, kv := range keys(s, r) {
		if err := out.Set(kv.key, kv.value); err != nil {
			return err
		}
	}
	all := tensors(s, r)
	for _, t := range all {
		if err := out.AddTensor(t.name, t.dims, t.typ); err != nil {
			return err
		}
	}
	src := &source{
		ctx:      ctx,
		pools:    map[quant.Type]*pool{},
		rng:      rand.New(rand.NewPCG(seed, 0x62616c65656e)),
		progress: progress,
	}
	for _, t := range all {
		if err := src.begin(t); err != nil {
			return err
		}
		if err := out.WriteTensorFrom(t.name, src); err != nil {
			return err
		}
	}
	return out.Close()
}

// tensors lists the weights in file order.
func tensors(s Shape, r Recipe) []tensor {
	var ts []tensor
	weight := func(name string, what role, layer int, dims ...int) {
		ts = append(ts, tensor{name, dims, r.pick(s, what, layer, dims[0]), 1 / math.Sqrt(float64(dims[0]))})
	}
	vector := func(name string, n int, sigma float64) {
		ts = append(ts, tensor{name, []int{n}, quant.F32, sigma})
	}
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	weight("token_embd.weight", embeddingRole, 0, s.Dim, s.Vocab)
	for l := range s.Layers {
		p := fmt.Sprintf("blk.%d.", l)
		vector(p+"attn_norm.weight", s.Dim, 0)
		weight(p+"attn_q.weight", plainRole, l, s.Dim, q)
		weight(p+"attn_k.weight", keyRole, l, s.Dim, kv)
		weight(p+"attn_v.weight", valueRole, l, s.Dim, kv)
		weight(p+"attn_output.weight", attnOutRole, l, q, s.Dim)
		if s.QKVBias {
			vector(p+"attn_q.bias", q, 0.1)
			vector(p+"attn_k.bias", kv, 0.1)
			vector(p+"attn_v.bias", kv, 0.1)
		}
		switch s.QKNorm {
		case HeadQKNorm:
			vector(p+"attn_q_norm.weight", s.HeadDim, 0)
			vector(p+"attn_k_norm.weight", s.HeadDim, 0)
		case FullQKNorm:
			vector(p+"attn_q_norm.weight", q, 0)
			vector(p+"attn_k_norm.weight", kv, 0)
		}
		vector(p+"ffn_norm.weight", s.Dim, 0)
		if s.Experts == 0 {
			weight(p+"ffn_gate.weight", plainRole, l, s.Dim, s.FF)
			weight(p+"ffn_up.weight", plainRole, l, s.Dim, s.FF)
			weight(p+"ffn_down.weight", downRole, l, s.FF, s.Dim)
			continue
		}
		ts = append(
			ts,
			tensor{p + "ffn_gate_inp.weight", []int{s.Dim, s.Experts}, quant.F32, 1 / math.Sqrt(float64(s.Dim))},
		)
		weight(p+"ffn_gate_exps.weight", plainRole, l, s.Dim, s.ExpertFF, s.Experts)
		weight(p+"ffn_up_exps.weight", plainRole, l, s.Dim, s.ExpertFF, s.Experts)
		weight(p+"ffn_down_exps.weight", downRole, l, s.ExpertFF, s.Dim, s.Experts)
	}
	vector("output_norm.weight", s.Dim, 0)
	if !s.Tied {
		weight("output.weight", outputRole, 0, s.Dim, s.Vocab)
	}
	return ts
}

type keyValue struct {
	key   string
	value any
}

func keys(s Shape, r Recipe) []keyValue {
	a := s.Arch + "."
	kvs := []keyValue{
		{"general.architecture", s.Arch},
		{"general.name", "synthetic " + s.Name},
		{"general.quantization_version", uint32(2)},
		{"general.file_type", r.FileType},
		{a + "context_length", uint32(s.Context)},
		{a + "embedding_length", uint32(s.Dim)},
		{a + "block_count", uint32(s.Layers)},
		{a + "feed_forward_length", uint32(s.FF)},
		{a + "attention.head_count", uint32(s.Heads)},
		{a + "attention.head_count_kv", uint32(s.KVHeads)},
		{a + "attention.layer_norm_rms_epsilon", s.Eps},
		{a + "rope.dimension_count", uint32(s.HeadDim)},
		{a + "rope.freq_base", s.RopeBase},
		{a + "vocab_size", uint32(s.Vocab)},
	}
	if s.HeadDim*s.Heads != s.Dim {
		kvs = append(
			kvs,
			keyValue{a + "attention.key_length", uint32(s.HeadDim)},
			keyValue{a + "attention.value_length", uint32(s.HeadDim)},
		)
	}
	if s.Experts > 0 {
		kvs = append(
			kvs,
			keyValue{a + "expert_count", uint32(s.Experts)},
			keyValue{a + "expert_used_count", uint32(s.Used)},
		)
	}
	if s.Experts > 0 && s.ExpertFF != s.FF {
		kvs = append(kvs, keyValue{a + "expert_feed_forward_length", uint32(s.ExpertFF)})
	}
	if s.ChatTemplate != "" {
		kvs = append(kvs, keyValue{"tokenizer.chat_template", s.ChatTemplate})
	}
	return append(kvs, vocabulary(s)...)
}

// source makes the bytes of one tensor after the other. Blocks are drawn from a pool of blocks that were quantized
// from normally distributed numbers, which is as fast as the disk and right for every format.
type source struct {
	ctx      context.Context
	pools    map[quant.Type]*pool
	rng      *rand.Rand
	progress func(int64)
	written  int64

	pool *pool
	rest []byte // of the block being copied
}

// pool holds blocks of at least 32 elements that all have the same size.
type pool struct {
	sigma  float64
	blocks [][]byte
}

const poolBlocks = 1024

func (s *source) begin(t tensor) error {
	s.rest = nil
	if t.sigma == 0 || len(t.dims) == 1 {
		return s.beginVector(t)
	}
	if p := s.pools[t.typ]; p != nil && p.sigma == t.sigma {
		s.pool = p
		return nil
	}
	elems := max(t.typ.BlockSize(), 32)
	size := elems / t.typ.BlockSize() * t.typ.BlockBytes()
	p := &pool{sigma: t.sigma}
	values := make([]float32, elems)
	for range poolBlocks {
		for i := range values {
			values[i] = float32(s.rng.NormFloat64() * t.sigma)
		}
		b := make([]byte, size)
		if err := quant.Quantize(t.typ, b, values); err != nil {
			return err
		}
		p.blocks = append(p.blocks, b)
	}
	s.pools[t.typ], s.pool = p, p
	return nil
}

// beginVector makes a whole float32 vector, which need not be a multiple of anything: around one for norms, around
// zero for biases.
func (s *source) beginVector(t tensor) error {
	mean, sigma := 0.0, t.sigma
	if sigma == 0 {
		mean, sigma = 1, 0.05
	}
	for range t.dims[0] {
		v := float32(mean + s.rng.NormFloat64()*sigma)
		s.rest = binary.LittleEndian.AppendUint32(s.rest, math.Float32bits(v))
	}
	s.pool = nil
	return nil
}

// Read implements io.Reader; the tensor's writer takes as many bytes as the tensor has.
func (s *source) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n := 0
	for n < len(b) {
		if len(s.rest) == 0 {
			if s.pool == nil {
				break
			}
			s.rest = s.pool.blocks[s.rng.Uint32()%poolBlocks]
		}
		k := copy(b[n:], s.rest)
		s.rest = s.rest[k:]
		n += k
	}
	s.written += int64(n)
	if s.progress != nil {
		s.progress(s.written)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
