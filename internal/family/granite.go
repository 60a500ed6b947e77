package family

// Granite 3 and 4 (dense): Llama with multipliers. Reference: transformers models/granite; llama.cpp
// models/granite.cpp.
var granite = &family{
	name: "granite",
	hf:   []string{"granite"},
	gguf: []string{"granite"},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		m.embedScale = c.floatOr("embedding_multiplier", 1)
		m.residual = c.floatOr("residual_multiplier", 1)
		m.logitScale = 1 / c.positive("logits_scaling", 1)
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("attention_bias", false)
		a.outBias = a.bias
		a.scale = 1
		if c.gguf {
			a.scale = 0 // its own default
		}
		a.scale = c.floatOr("attention_multiplier", a.scale)
		a.rope = c.rope(ropeArgs{dim: a.dim, interleaved: c.gguf})
		if c.gguf &&
			!c.boolOr("rope.scaling.finetuned", true) { // this architecture's way to say that nothing is rotated
			a.rope = nil
		}
		f := c.dense(c.biasKey("mlp_bias", false))
		for i := range m.layers {
			m.layers[i] = preNorm(a, f)
		}
		return m
	},
}
