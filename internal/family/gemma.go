package family

import (
	"github.com/baleenrun/baleen/internal/family/exactmath"
	"github.com/baleenrun/baleen/internal/plan"
)

// Gemma: norm weights are stored less 1, the embedding is scaled by the root of its width and is the output too.
// Reference: transformers models/gemma; llama.cpp models/gemma.cpp.
var gemma = &family{
	name:     "gemma",
	hf:       []string{"gemma"},
	gguf:     []string{"gemma"},
	onePlus:  true,
	defaults: map[string]any{"num_key_value_heads": 16, "head_dim": 256, "max_position_embeddings": 8192},
	spec: func(c *config) *model {
		m := c.gemmaBase()
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("attention_bias", false)
		a.outBias = a.bias
		a.rope = c.rope(ropeArgs{dim: a.dim})
		// The first configurations said "gelu" and meant its approximation; hidden_activation corrects them.
		act := c.activation("hidden_act", "gelu_pytorch_tanh")
		if c.has("hidden_activation") || act == plan.ActGELU {
			act = c.activation("hidden_activation", "gelu_pytorch_tanh")
		}
		f := &glu{width: c.dim("intermediate_size", maxDim), act: act}
		for i := range m.layers {
			m.layers[i] = preNorm(a, f)
		}
		return m
	},
}

// gemmaBase reads what all Gemmas share.
func (c *config) gemmaBase() *model {
	m := c.base()
	m.embedScale = exactmath.Sqrt(float64(m.hidden))
	m.tied = c.tieKey(true)
	c.want("use_bidirectional_attention", false, "this is a decoder")
	return m
}

// gemmaNames are the norms around both parts of a layer.
var gemmaNames = map[string]string{"ffn_norm": "pre_feedforward_layernorm"}

// gemmaLayer is a layer with norms before and after the mixer and the FFN.
func gemmaLayer(mix mixer, f ffn) layer {
	return layer{
		mix:     mix,
		ffn:     f,
		preMix:  "attn_norm",
		postMix: "post_attention_norm",
		preFFN:  "ffn_norm",
		postFFN: "post_ffw_norm",
	}
}

// gemmaScale reads the scale of scores. GGUF files leave it to the model's size: only the 27B ones, of the given number
// of layers, divide by the width per head instead of the head's own.
func (c *config) gemmaScale(m *model, a *attention, bigLayers int) float64 {
	by := float64(a.dim)
	switch {
	case !c.gguf:
		by = c.positive("query_pre_attn_scalar", 256)
	case len(m.layers) == bigLayers:
		by = float64(m.hidden) / float64(a.heads)
	}
	return 1 / exactmath.Sqrt(by)
}

// Gemma 2: windows in every other layer, soft caps. Reference: transformers models/gemma2; llama.cpp models/gemma2.cpp.
var gemma2 = &family{
	name:    "gemma2",
	hf:      []string{"gemma2"},
	gguf:    []string{"gemma2"},
	onePlus: true,
	hfNames: gemmaNames,
	defaults: map[string]any{
		"num_key_value_heads":     4,
		"head_dim":                256,
		"max_position_embeddings": 8192,
		"final_logit_softcapping": 30.0,
		"attn_logit_softcapping":  50.0,
	},
	harmless: []string{"hidden_act"},
	spec: func(c *config) *model {
		m := c.gemmaBase()
		finalCap, scoreCap := 0.0, 0.0 // null is none
		if c.gguf {
			finalCap, scoreCap = 30, 50 // the first files do not say
		}
		m.logitCap = c.floatOr("final_logit_softcapping", finalCap)
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("attention_bias", false)
		a.outBias = a.bias
		a.cap = c.floatOr("attn_logit_softcapping", scoreCap)
		a.rope = c.rope(ropeArgs{dim: a.dim})
		a.scale = c.gemmaScale(m, a, 46)
		window := c.windowKey(4096)
		types := c.layerTypes(len(m.layers), "full_attention", "sliding_attention")
		f := &glu{
			width: c.dim("intermediate_size", maxDim),
			act:   c.activation("hidden_activation", "gelu_pytorch_tanh"),
		}
		for i := range m.layers {
			w := 0
			if types == nil && i%2 == 0 || types != nil && types[i] == "sliding_attention" {
				w = window
			}
			m.layers[i] = gemmaLayer(a.withWindow(w), f)
		}
		return m
	},
}

// Gemma 3: five layers with windows and a rotary base of their own for each without. Reference: transformers
// models/gemma3; llama.cpp models/gemma3.cpp.
var gemma3 = &family{
	name:    "gemma3",
	hf:      []string{"gemma3_text"},
	gguf:    []string{"gemma3"},
	onePlus: true,
	hfNames: gemmaNames,
	defaults: map[string]any{
		"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072,
	},
	harmless: []string{
		"hidden_act",
		"attn_logit_softcapping",
		"_sliding_window_pattern",
		"cache_implementation",
		"mm_tokens_per_image",
	},
	keys: map[string]string{"attention.sliding_window_pattern": "sliding_window_pattern"},
	spec: func(c *config) *model {
		m := c.gemmaBase()
		m.logitCap = c.floatOr("final_logit_softcapping", 0)
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("attention_bias", false)
		a.outBias = a.bias
		a.qkNorm = headQKNorm
		a.scale = c.gemmaScale(m, a, 62)
		window := c.windowKey(4096)
		if c.gguf {
			window = c.windowKey(0)
		}
		global, local := c.gemma3Ropes(a.dim)
		pattern := c.intOr("sliding_window_pattern", 6, 1, maxLayers)
		if c.gguf && window == 0 { // no layer has a window, and the local rotary table goes with it
			pattern = 1
		}
		types := c.layerTypes(len(m.layers), "full_attention", "sliding_attention")
		f := &glu{
			width: c.dim("intermediate_size", maxDim),
			act:   c.activation("hidden_activation", "gelu_pytorch_tanh"),
		}
		for i := range m.layers {
			b := *a
			b.rope = global
			if types == nil && (i+1)%pattern != 0 || types != nil && types[i] == "sliding_attention" {
				b.rope, b.window = local, window
			}
			m.layers[i] = gemmaLayer(&b, f)
		}
		return m
	},
}

// gemma3Ropes reads the tables of layers without and with windows. Older configurations have rope_theta and
// rope_scaling for the former and rope_local_base_freq for the latter.
func (c *config) gemma3Ropes(dim int) (global, local *rope) {
	if c.gguf {
		global = c.rope(ropeArgs{dim: dim, theta: 1e6})
		return global, c.rope(ropeArgs{dim: dim, theta: 10000, ggufTheta: "rope.freq_base_swa", unscaled: true})
	}
	d := c.dict("rope_parameters")
	full, _ := d["full_attention"].(map[string]any)
	sliding, _ := d["sliding_attention"].(map[string]any)
	merged := map[string]any{"rope_theta": c.floatOr("rope_theta", 1e6)}
	for _, from := range []map[string]any{full, c.dict("rope_scaling")} {
		for k, v := range from {
			merged[k] = v
		}
	}
	inner := map[string]any{"rope_theta": c.floatOr("rope_local_base_freq", 10000)}
	for k, v := range sliding {
		inner[k] = v
	}
	for k := range d {
		if k != "full_attention" && k != "sliding_attention" {
			c.fail("rope_parameters has %q beside its layer types", k)
		}
	}
	delete(c.values, "rope_scaling")
	c.values["rope_parameters"] = map[string]any{"full_attention": merged, "sliding_attention": inner}
	return c.rope(
			ropeArgs{dim: dim, layerType: "full_attention"},
		), c.rope(
			ropeArgs{dim: dim, layerType: "sliding_attention"},
		)
}
