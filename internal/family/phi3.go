package family

// Phi 3, 3.5 and 4: fused projections, a rotated part of the head, LongRoPE. Reference: transformers models/phi3;
// llama.cpp models/phi3.cpp.
var phi3 = &family{
	name:      "phi3",
	hf:        []string{"phi3"},
	gguf:      []string{"phi3"},
	ggufNames: map[string]string{"ffn_gate_up": "ffn_up"},
	defaults:  map[string]any{"rms_norm_eps": 1e-5, "max_position_embeddings": 4096},
	harmless: []string{
		"original_max_position_embeddings",
		"attention_bias",
		"mlp_bias",
		"interpolate_factor",
		"lm_head_bias",
		"full_attn_mod",
	},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		c.want("attention_bias", false, "Phi 3 has no biases")
		c.want("mlp_bias", false, "Phi 3 has no biases")
		c.want("lm_head_bias", false, "Phi 3 has no biases")
		a := c.attentionShape(m.hidden)
		a.rope = c.rope(ropeArgs{dim: a.dim, partial: 1, suIsLongRope: true})
		a.window = c.windowKey(0)
		f := c.dense(c.fixedBias(false))
		for i := range m.layers {
			m.layers[i] = preNorm(a, f)
		}
		return m
	},
}
