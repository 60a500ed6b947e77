package family

// Llama 2 and 3, SmolLM2 and everything built like them. Reference: transformers models/llama; llama.cpp
// models/llama.cpp. GGUF files of the architecture "llama" may also hold Mistral (a window) and Mixtral (experts);
// their query and key rows are permuted so that rotary pairs lie side by side.
var llama = &family{
	name: "llama",
	hf:   []string{"llama"},
	gguf: []string{"llama"},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("attention_bias", false)
		a.outBias = a.bias
		a.rope = c.rope(ropeArgs{dim: a.dim, interleaved: c.gguf})
		if c.gguf {
			a.window = c.windowKey(0)
			a.scale = c.floatOr("attention_multiplier", 0)
			c.want("expert_gating_func", 1, "Mixtral routes by softmax")
			c.want("routed_scaling_factor", 1, "Mixtral does not scale its experts")
		}
		f := ffn(nil)
		if c.gguf && c.intOr("num_experts", 0, 0, maxExpert) > 0 {
			f = c.mixtralExperts()
		} else {
			c.want("num_experts_per_tok", 0, "there are no experts")
			f = c.dense(c.biasKey("mlp_bias", false))
		}
		for i := range m.layers {
			m.layers[i] = preNorm(a, f)
		}
		return m
	},
}
