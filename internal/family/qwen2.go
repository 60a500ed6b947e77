package family

// Qwen 2 and 2.5. Reference: transformers models/qwen2; llama.cpp models/qwen2.cpp. Queries, keys and values have
// biases; windows are for the layers from max_window_layers on.
var qwen2 = &family{
	name: "qwen2",
	hf:   []string{"qwen2"},
	gguf: []string{"qwen2"},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.attentionShape(m.hidden)
		a.bias = c.fixedBias(true)
		a.rope = c.rope(ropeArgs{dim: a.dim})
		windows := c.qwenWindows(len(m.layers))
		f := c.dense(c.fixedBias(false))
		for i := range m.layers {
			m.layers[i] = preNorm(a.withWindow(windows[i]), f)
		}
		return m
	},
}

// qwenWindows returns the window of each layer of Qwen 2 and 3, 0 for full attention.
func (c *config) qwenWindows(n int) []int {
	c.noGGUFWindow()
	windows := make([]int, n)
	from := c.intOr("max_window_layers", 28, 0, 1<<30)
	window := c.windowKey(4096)
	use := c.boolOr("use_sliding_window", false)
	types := c.layerTypes(n, "full_attention", "sliding_attention")
	if c.gguf || !use {
		for i, t := range types {
			if t == "sliding_attention" {
				c.fail("layer_types asks for a window in layer %d but use_sliding_window is not set", i)
			}
		}
		return windows
	}
	for i := range windows {
		if types != nil && types[i] == "sliding_attention" || types == nil && i >= from {
			windows[i] = window
		}
	}
	return windows
}

// noGGUFWindow refuses a window in a GGUF file: which layers would have it, such files of Qwen cannot say.
func (c *config) noGGUFWindow() {
	if c.gguf {
		c.want("sliding_window", 0, "GGUF files of this family have no windows")
	}
}

// withWindow returns a copy with another window.
func (a *attention) withWindow(window int) *attention {
	b := *a
	b.window = window
	return &b
}
