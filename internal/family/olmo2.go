package family

import "github.com/baleenrun/baleen/internal/plan"

// OLMo 2: norms after the mixer and the FFN only, queries and keys normalized over all heads. Reference: transformers
// models/olmo2; llama.cpp models/olmo2.cpp.
var olmo2 = &family{
	name:     "olmo2",
	hf:       []string{"olmo2"},
	gguf:     []string{"olmo2"},
	defaults: map[string]any{"rms_norm_eps": 1e-5},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("attention_bias", false)
		a.outBias = a.bias
		a.qkNorm = fullQKNorm
		a.rope = c.rope(ropeArgs{dim: a.dim})
		f := c.dense(c.fixedBias(false))
		for i := range m.layers {
			m.layers[i] = layer{mix: a, ffn: f, postMix: "post_attention_norm", postFFN: "post_ffw_norm"}
		}
		return m
	},
}

// OLMoE: OLMo with experts, norms before. Reference: transformers models/olmoe; llama.cpp models/olmoe.cpp.
var olmoe = &family{
	name:    "olmoe",
	hf:      []string{"olmoe"},
	gguf:    []string{"olmoe"},
	hfNames: expertNames,
	defaults: map[string]any{
		"rms_norm_eps":            1e-5,
		"num_experts":             64,
		"num_experts_per_tok":     8,
		"max_position_embeddings": 4096,
	},
	keys: map[string]string{"attention.clamp_kqv": "clip_qkv"},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("attention_bias", false)
		a.outBias = a.bias
		a.qkNorm = fullQKNorm
		a.clip = c.floatOr("clip_qkv", 0)
		a.rope = c.rope(ropeArgs{dim: a.dim})
		f := &moe{
			width:  c.dim("intermediate_size", maxDim),
			act:    c.activation("hidden_act", "silu"),
			router: router0(plan.GateSoftmax),
		}
		f.experts, f.topK = c.expertCounts("num_experts")
		if c.gguf {
			f.width = c.dimOr("moe_intermediate_size", f.width, maxDim)
		}
		f.router.Norm = c.boolOr("norm_topk_prob", false)
		for i := range m.layers {
			m.layers[i] = preNorm(a, f)
		}
		return m
	},
}
