package family

// Qwen 3: Qwen 2 without the biases, each query and key head normalized. Reference: transformers models/qwen3;
// llama.cpp models/qwen3.cpp.
var qwen3 = &family{
	name:     "qwen3",
	hf:       []string{"qwen3"},
	gguf:     []string{"qwen3"},
	defaults: map[string]any{"head_dim": 128},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.qwen3Attention(m.hidden)
		windows := c.qwenWindows(len(m.layers))
		f := c.dense(c.fixedBias(false))
		for i := range m.layers {
			m.layers[i] = preNorm(a.withWindow(windows[i]), f)
		}
		return m
	},
}

func (c *config) qwen3Attention(hidden int) *attention {
	a := c.attentionShape(hidden)
	a.bias = c.biasKey("attention_bias", false)
	a.outBias = a.bias
	a.qkNorm = headQKNorm
	a.rope = c.rope(ropeArgs{dim: a.dim})
	return a
}
