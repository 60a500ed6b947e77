// Package family owns the model families: for each, the names that checkpoints give it, how its configuration describes
// layers, and which tensors fill which roles. It lowers a checkpoint, GGUF or safetensors, to a plan once, at load. It
// knows containers, weight formats and plans; it knows no backends, no tokens and no text.
//
// A family is a row of data with one function, spec, that turns a configuration into a model: a list of layers made of
// building blocks (attention.go, mla.go, deltanet.go, shortconv.go, ffn.go, moe.go). Keys of GGUF files are renamed to
// those of Hugging Face configurations first (ggufconfig.go), so spec reads one language.
package family

import (
	"slices"
	"sort"

	"github.com/baleenrun/baleen/internal/plan"
)

// family describes one model family. All fields are fixed.
type family struct {
	name string
	hf   []string // values of model_type
	gguf []string // values of general.architecture

	// hfNames and ggufNames map a role to the tensor's name without layer prefix and ".weight" or ".bias", where it is
	// not the common one. A name for one role with suffix, such as "ssm_dt.bias", is complete.
	hfNames, ggufNames map[string]string
	// defaults are what transformers assumes for keys that config.json leaves out, where it is not what this package
	// assumes for every family.
	defaults map[string]any
	// keys renames GGUF keys, without the architecture's prefix, to configuration keys where it is not as usual.
	keys map[string]string
	// harmless lists further configuration keys that do not change the result.
	harmless []string
	// skip lists prefixes of tensors that are knowingly left out.
	skip []string
	// onePlus is set where norm weights are stored less 1 in safetensors. GGUF files have it added; so have MLX's
	// conversions of delta nets, but not those of Gemma.
	onePlus bool

	spec func(c *config) *model
}

// families is the registry; an alias is a row.
var families = []*family{
	llama, mistral, ministral3, mixtral, qwen2, qwen2MoE, qwen3, qwen3MoE, qwen3Next, qwen35, qwen35MoE,
	gemma, gemma2, gemma3, phi3, olmo2, olmoe, smollm3, granite, gptOSS, lfm2, lfm2MoE, deepseekV2, deepseekV3,
}

// wrappers maps multimodal types to the type of their text_config where that does not name one.
var wrappers = map[string]string{
	"gemma3": "gemma3_text", "mistral3": "mistral", "qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text",
	"llava": "llama", "pixtral": "mistral",
}

// wrapperSkip lists the tensors of vision towers, which a text model leaves out.
var wrapperSkip = []string{
	"vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector.", "model.visual.",
	"visual.", "mtp.",
}

// Names returns the names of all families, sorted.
func Names() []string {
	names := make([]string, 0, len(families))
	for _, f := range families {
		names = append(names, f.name)
	}
	sort.Strings(names)
	return names
}

func familyOf(kind string, list func(f *family) []string) *family {
	for _, f := range families {
		if slices.Contains(list(f), kind) {
			return f
		}
	}
	return nil
}

// model is what a family's spec makes of a configuration.
type model struct {
	hidden, vocab, context int

	embedScale  float64 // 0: none
	eps         float64
	norm        plan.NormKind
	finalNorm   string  // role; "" for output_norm
	residual    float64 // scale of what layers add to the stream; 0: none
	logitScale  float64 // 0: none
	logitCap    float64 // 0: none
	tied        tie
	extraLayers int // layers after the last one that are not part of the model (multi-token prediction)
	layers      []layer
}

// tie says whether the output projection is the embedding.
type tie uint8

const (
	tiedIfAbsent tie = iota // GGUF: there is no output tensor
	untied
	tied
)

// layer is one decoder layer: x += post(mix(pre(x))); x += post(ffn(pre(x))). Norms are named by role, "" is none.
type layer struct {
	mix                              mixer
	ffn                              ffn
	preMix, postMix, preFFN, postFFN string
}

// mixer lowers the part of a layer that looks at other positions. It calls b.gather after it has done so.
type mixer interface {
	lower(b *builder, in plan.Val) plan.Val
}

// ffn lowers the part of a layer that looks at its own position only.
type ffn interface {
	lower(b *builder, in plan.Val) plan.Val
}
