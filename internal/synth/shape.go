// Package synth writes GGUF files of known shapes with random weights, so that speed and memory can be measured
// without downloading anything. The files load in llama.cpp as well. It knows how GGUF models are laid out; it
// runs nothing.
package synth

import (
	"fmt"
	"sort"
	"strings"
)

// QKNorm says how a shape normalizes queries and keys.
type QKNorm uint8

// The ways to normalize queries and keys.
const (
	NoQKNorm   QKNorm = iota
	HeadQKNorm        // one weight per dimension of a head
	FullQKNorm        // one weight per dimension of all heads
)

// A Shape is the architecture of a model in numbers.
type Shape struct {
	Name, Arch   string // Arch is GGUF's general.architecture
	Pre          string // GGUF's name of the pre-tokenizer
	Layers       int
	Dim, FF      int // FF is the dense feed-forward width, and what GGUF calls so where all layers have experts
	Heads        int
	KVHeads      int
	HeadDim      int
	Vocab        int
	Context      int
	RopeBase     float32
	Eps          float32
	Tied         bool // the output shares the token embedding
	QKVBias      bool
	QKNorm       QKNorm
	Experts      int    // 0: dense
	Used         int    // experts per token
	ExpertFF     int    // feed-forward width of an expert
	ChatTemplate string // Jinja; empty: the model continues text
}

var shapes = []Shape{
	{
		Name: "tiny", Arch: "llama", Pre: "llama-bpe", Layers: 2, Dim: 64, FF: 192, Heads: 4, KVHeads: 2, HeadDim: 16, Vocab: 1024,
		Context: 2048, RopeBase: 10000, Eps: 1e-5, Tied: true,
	},
	{
		Name: "tiny-moe", Arch: "qwen3moe", Pre: "qwen2", Layers: 2, Dim: 64, FF: 128, Heads: 4, KVHeads: 2, HeadDim: 32, Vocab: 1024,
		Context: 2048, RopeBase: 10000, Eps: 1e-6, QKNorm: HeadQKNorm, Experts: 8, Used: 2, ExpertFF: 96,
	},
	{
		Name: "smollm2-135m", Arch: "llama", Pre: "smollm", Layers: 30, Dim: 576, FF: 1536, Heads: 9, KVHeads: 3, HeadDim: 64, Vocab: 49152,
		Context: 8192, RopeBase: 100000, Eps: 1e-5, Tied: true,
	},
	{
		Name: "qwen2.5-0.5b", Arch: "qwen2", Pre: "qwen2", Layers: 24, Dim: 896, FF: 4864, Heads: 14, KVHeads: 2, HeadDim: 64, Vocab: 151936,
		Context: 32768, RopeBase: 1e6, Eps: 1e-6, Tied: true, QKVBias: true,
	},
	{
		Name: "qwen2.5-1.5b", Arch: "qwen2", Pre: "qwen2", Layers: 28, Dim: 1536, FF: 8960, Heads: 12, KVHeads: 2, HeadDim: 128, Vocab: 151936,
		Context: 32768, RopeBase: 1e6, Eps: 1e-6, Tied: true, QKVBias: true,
	},
	{
		Name: "qwen2.5-7b", Arch: "qwen2", Pre: "qwen2", Layers: 28, Dim: 3584, FF: 18944, Heads: 28, KVHeads: 4, HeadDim: 128, Vocab: 152064,
		Context: 32768, RopeBase: 1e6, Eps: 1e-6, QKVBias: true,
	},
	{
		Name: "llama-3.2-1b", Arch: "llama", Pre: "llama-bpe", Layers: 16, Dim: 2048, FF: 8192, Heads: 32, KVHeads: 8, HeadDim: 64, Vocab: 128256,
		Context: 131072, RopeBase: 500000, Eps: 1e-5, Tied: true,
	},
	{
		Name: "llama-3.2-3b", Arch: "llama", Pre: "llama-bpe", Layers: 28, Dim: 3072, FF: 8192, Heads: 24, KVHeads: 8, HeadDim: 128, Vocab: 128256,
		Context: 131072, RopeBase: 500000, Eps: 1e-5, Tied: true,
	},
	{
		Name: "llama-3.1-8b", Arch: "llama", Pre: "llama-bpe", Layers: 32, Dim: 4096, FF: 14336, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 128256,
		Context: 131072, RopeBase: 500000, Eps: 1e-5,
	},
	{
		Name: "qwen3-0.6b", Arch: "qwen3", Pre: "qwen2", Layers: 28, Dim: 1024, FF: 3072, Heads: 16, KVHeads: 8, HeadDim: 128, Vocab: 151936,
		Context: 40960, RopeBase: 1e6, Eps: 1e-6, Tied: true, QKNorm: HeadQKNorm,
	},
	{
		Name: "qwen3-4b", Arch: "qwen3", Pre: "qwen2", Layers: 36, Dim: 2560, FF: 9728, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 151936,
		Context: 40960, RopeBase: 1e6, Eps: 1e-6, Tied: true, QKNorm: HeadQKNorm,
	},
	{
		Name: "qwen3-8b", Arch: "qwen3", Pre: "qwen2", Layers: 36, Dim: 4096, FF: 12288, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 151936,
		Context: 40960, RopeBase: 1e6, Eps: 1e-6, QKNorm: HeadQKNorm,
	},
	{
		Name: "olmoe", Arch: "olmoe", Pre: "olmo", Layers: 16, Dim: 2048, FF: 1024, Heads: 16, KVHeads: 16, HeadDim: 128, Vocab: 50304,
		Context: 4096, RopeBase: 10000, Eps: 1e-5, QKNorm: FullQKNorm, Experts: 64, Used: 8, ExpertFF: 1024,
	},
	{
		Name: "qwen3-30b-a3b", Arch: "qwen3moe", Pre: "qwen2", Layers: 48, Dim: 2048, FF: 6144, Heads: 32, KVHeads: 4, HeadDim: 128, Vocab: 151936,
		Context: 40960, RopeBase: 1e6, Eps: 1e-6, QKNorm: HeadQKNorm, Experts: 128, Used: 8, ExpertFF: 768,
	},
	{
		Name: "mixtral-8x7b", Arch: "llama", Pre: "llama-bpe", Layers: 32, Dim: 4096, FF: 14336, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 32000,
		Context: 32768, RopeBase: 1e6, Eps: 1e-5, Experts: 8, Used: 2, ExpertFF: 14336,
	},
}

// Shapes returns the known shapes by name.
func Shapes() []Shape {
	out := append([]Shape(nil), shapes...)
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Lookup finds a shape by name; case does not matter.
func Lookup(name string) (Shape, error) {
	var names []string
	for _, s := range Shapes() {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Shape{}, fmt.Errorf("no shape is named %q; there are %s", name, strings.Join(names, ", "))
}
