package family

import "github.com/baleenrun/baleen/internal/plan"

// Mistral 7B, Nemo, Small: Llama with a window over all layers. Reference: transformers models/mistral. GGUF files call
// themselves llama.
var mistral = &family{
	name:     "mistral",
	hf:       []string{"mistral"},
	defaults: map[string]any{"num_key_value_heads": 8, "max_position_embeddings": 131072},
	spec:     mistralSpec,
}

// Ministral 3: Mistral whose queries grow with the position beyond the length of pretraining. Reference: transformers
// models/ministral3; llama.cpp models/mistral3.cpp.
var ministral3 = &family{
	name: "ministral3",
	hf:   []string{"ministral3"},
	gguf: []string{"mistral3"},
	defaults: map[string]any{
		"num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 262144, "sliding_window": nil, "rms_norm_eps": 1e-5,
		"rope_parameters": map[string]any{
			"rope_type": "yarn", "rope_theta": 1e6, "factor": 16, "original_max_position_embeddings": 16384, "beta_fast": 32, "beta_slow": 1,
			"mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1,
		},
	},
	spec: mistralSpec,
}

func mistralSpec(c *config) *model {
	m := c.base()
	m.tied = c.tieKey(false)
	a := c.attentionShape(m.hidden)
	a.rope = c.rope(ropeArgs{dim: a.dim, interleaved: c.gguf, extra: []string{"llama_4_scaling_beta"}})
	if c.gguf {
		a.window = c.windowKey(0)
	} else {
		a.window = c.windowKey(4096)
		c.layerTypes(len(m.layers), "full_attention", "sliding_attention") // transformers ignores them here
	}
	beta := a.rope.params.llama4Beta
	if c.gguf {
		beta = c.floatOr("attention.temperature_scale", 0)
		c.want("attention.temperature_length", a.rope.params.original, "it is the length of pretraining")
	}
	if beta != 0 {
		length := int(a.rope.params.original)
		if length < 1 {
			c.fail("llama_4_scaling_beta without original_max_position_embeddings")
		}
		a.posScale = &plan.PosScale{Beta: beta, Length: length}
	}
	f := c.dense(c.fixedBias(false))
	for i := range m.layers {
		m.layers[i] = preNorm(a, f)
	}
	return m
}
