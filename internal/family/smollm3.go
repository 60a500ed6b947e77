package family

// SmolLM 3: Llama with layers that know no positions. Reference: transformers models/smollm3; llama.cpp
// models/smollm3.cpp, where every fourth layer is one.
var smollm3 = &family{
	name:     "smollm3",
	hf:       []string{"smollm3"},
	gguf:     []string{"smollm3"},
	defaults: map[string]any{"num_key_value_heads": 4, "max_position_embeddings": 32768},
	harmless: []string{"max_window_layers"},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(true)
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("attention_bias", false)
		a.outBias = a.bias
		r := c.rope(ropeArgs{dim: a.dim, theta: 2e6, interleaved: c.gguf})
		n := len(m.layers)
		every := c.intOr("no_rope_layer_interval", 4, 1, maxLayers)
		uses := c.ints("no_rope_layers", n, 0, 1)
		types := c.layerTypes(n, "full_attention", "sliding_attention")
		use, window := c.boolOr("use_sliding_window", false), c.windowKey(0)
		f := c.dense(c.biasKey("mlp_bias", false))
		for i := range m.layers {
			l := *a
			rotates := (i+1)%every != 0
			if uses != nil {
				rotates = uses[i] == 1
			}
			if rotates {
				l.rope = r
			}
			if use && (types != nil && types[i] == "sliding_attention" || types == nil && !rotates) {
				l.window = window
			}
			m.layers[i] = preNorm(&l, f)
		}
		return m
	},
}
