package family

import "github.com/baleenrun/baleen/internal/plan"

// gpt-oss: windows in every other layer, attention sinks, biases everywhere, experts with a clamped activation, stored
// as MXFP4. Reference: transformers models/gpt_oss; llama.cpp models/openai-moe.cpp.
var gptOSS = &family{
	name: "gpt_oss",
	hf:   []string{"gpt_oss"},
	gguf: []string{"gpt-oss"},
	hfNames: map[string]string{
		"attn_sinks":           "self_attn.sinks",
		"ffn_gate_inp":         "mlp.router",
		"experts.gate_up":      "mlp.experts.gate_up_proj",
		"experts.gate_up_bias": "mlp.experts.gate_up_proj_bias",
		"experts.down":         "mlp.experts.down_proj",
		"experts.down_bias":    "mlp.experts.down_proj_bias",
		"ffn_gate_exps":        "mlp.experts.gate_proj", // MLX
		"ffn_up_exps":          "mlp.experts.up_proj",
		"ffn_down_exps":        "mlp.experts.down_proj",
	},
	ggufNames: map[string]string{"ffn_norm": "post_attention_norm"},
	defaults: map[string]any{
		"num_key_value_heads": 8, "head_dim": 64, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
		"num_experts_per_tok": 4, "num_local_experts": 128,
	},
	harmless: []string{"experts_per_token", "initial_context_length", "swiglu_limit"},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("attention_bias", true)
		a.outBias = a.bias
		a.sinks = true
		c.gptOSSRope(a)
		c.want("swiglu_limit", 7, "the reference clamps there")
		c.alias("num_experts", "num_local_experts")
		f := &moe{
			act: plan.ActSwiGLUOAI, limit: 7, alpha: 1.702, router: router0(plan.GateTopKSoftmax),
			logitBias: true, bias: true, alternating: true,
		}
		c.want("hidden_act", "silu", "the experts' activation is fixed")
		f.experts, f.topK = c.expertCounts("num_experts")
		f.width = c.dim("intermediate_size", maxDim)
		if c.gguf {
			f.width = c.dimOr("moe_intermediate_size", f.width, maxDim)
		}
		window := c.windowKey(128)
		types := c.layerTypes(len(m.layers), "full_attention", "sliding_attention")
		for i := range m.layers {
			w := 0
			if types == nil && i%2 == 0 || types != nil && types[i] == "sliding_attention" {
				w = window
			}
			m.layers[i] = preNorm(a.withWindow(w), f)
		}
		return m
	},
}

// gptOSSRope reads the rotary table. The reference's YaRN does not round the range that it blends over, and GGUF files,
// which cannot say so, are read alike.
func (c *config) gptOSSRope(a *attention) {
	if !c.gguf && c.dict("rope_parameters") == nil && c.dict("rope_scaling") == nil {
		c.values["rope_parameters"] = map[string]any{
			"rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1, "truncate": false, "original_max_position_embeddings": 4096,
		}
	}
	a.rope = c.rope(ropeArgs{dim: a.dim, theta: 150000, ggufExact: true})
}
