package family

import "github.com/baleenrun/baleen/internal/plan"

// expertNames are the experts' names in most Hugging Face checkpoints: one by one, stacked by transformers, stacked by
// MLX.
var expertNames = map[string]string{
	"expert.gate":     "mlp.experts.%d.gate_proj",
	"expert.up":       "mlp.experts.%d.up_proj",
	"expert.down":     "mlp.experts.%d.down_proj",
	"experts.gate_up": "mlp.experts.gate_up_proj",
	"experts.down":    "mlp.experts.down_proj",
	"ffn_gate_exps":   "mlp.switch_mlp.gate_proj",
	"ffn_up_exps":     "mlp.switch_mlp.up_proj",
	"ffn_down_exps":   "mlp.switch_mlp.down_proj",
}

// with adds names to a copy of a table.
func with(table, more map[string]string) map[string]string {
	out := map[string]string{}
	for _, t := range []map[string]string{table, more} {
		for k, v := range t {
			out[k] = v
		}
	}
	return out
}

// Qwen 1.5 and 2 with experts, and one more that all tokens share behind a gate. Reference: transformers
// models/qwen2_moe; llama.cpp models/qwen2moe.cpp.
var qwen2MoE = &family{
	name:    "qwen2_moe",
	hf:      []string{"qwen2_moe"},
	gguf:    []string{"qwen2moe"},
	hfNames: expertNames,
	defaults: map[string]any{
		"num_experts":                     60,
		"num_experts_per_tok":             4,
		"moe_intermediate_size":           1408,
		"shared_expert_intermediate_size": 5632,
	},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.attentionShape(m.hidden)
		a.bias = c.biasKey("qkv_bias", true)
		a.rope = c.rope(ropeArgs{dim: a.dim})
		windows := c.qwen2MoEWindows(len(m.layers))
		ffns := c.qwenFFNs(len(m.layers), false)
		for i := range m.layers {
			m.layers[i] = preNorm(a.withWindow(windows[i]), ffns[i])
		}
		return m
	},
}

// qwen2MoEWindows returns the windows: without layer_types every second layer has one.
func (c *config) qwen2MoEWindows(n int) []int {
	c.noGGUFWindow()
	windows := make([]int, n)
	below := c.intOr("max_window_layers", 28, 0, 1<<30)
	window := c.windowKey(4096)
	use := c.boolOr("use_sliding_window", false)
	types := c.layerTypes(n, "full_attention", "sliding_attention")
	for i := range windows {
		asked := types != nil && types[i] == "sliding_attention" || types == nil && use && i%2 == 0 && i < below
		if asked && !use {
			c.fail("layer_types asks for a window in layer %d but use_sliding_window is not set", i)
		}
		if asked {
			windows[i] = window
		}
	}
	return windows
}

// Qwen 3 with experts. Reference: transformers models/qwen3_moe; llama.cpp models/qwen3moe.cpp.
var qwen3MoE = &family{
	name:     "qwen3_moe",
	hf:       []string{"qwen3_moe"},
	gguf:     []string{"qwen3moe"},
	hfNames:  expertNames,
	defaults: map[string]any{"num_key_value_heads": 4, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
	harmless: []string{"max_window_layers"},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.qwen3Attention(m.hidden)
		c.noGGUFWindow()
		window := c.windowKey(4096)
		if c.boolOr("use_sliding_window", false) {
			a.window = window
		}
		ffns := c.qwenFFNs(len(m.layers), c.gguf) // the published models renormalize; GGUF files do not say so
		for i := range m.layers {
			m.layers[i] = preNorm(a, ffns[i])
		}
		return m
	},
}

// qwenFFNs reads the FFN of every layer: experts in every decoder_sparse_step-th but those of mlp_only_layers.
func (c *config) qwenFFNs(n int, renormalize bool) []ffn {
	c.alias("num_experts", "num_local_experts")
	sparse := c.qwenExperts(renormalize)
	step := c.intOr("decoder_sparse_step", 1, 1, maxLayers)
	only := map[int]bool{}
	for _, i := range c.ints("mlp_only_layers", -1, 0, maxLayers) {
		only[i] = true
	}
	ffns := make([]ffn, n)
	for i := range ffns {
		if sparse != nil && !only[i] && (i+1)%step == 0 {
			ffns[i] = sparse
		} else {
			ffns[i] = c.dense(c.fixedBias(false))
		}
	}
	c.use("intermediate_size")
	return ffns
}

// qwenExperts reads the experts; nil if there are none.
func (c *config) qwenExperts(renormalize bool) *moe {
	act := c.activation("hidden_act", "silu")
	shared := c.intOr("shared_expert_intermediate_size", 0, 0, maxDim)
	if name := "blk.0.ffn_gate_shexp.weight"; c.gguf && shared == 0 && c.source.has(name) {
		shared = c.source.get(name).rows() // older files do not say
	}
	if c.intOr("num_experts", 0, 0, maxExpert) == 0 {
		c.use("num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob")
		return nil
	}
	f := &moe{act: act, router: router0(plan.GateSoftmax)}
	f.experts, f.topK = c.expertCounts("num_experts")
	if c.gguf && !c.has("moe_intermediate_size") {
		f.width = c.dim("intermediate_size", maxDim) / f.topK // older files
	} else {
		f.width = c.dim("moe_intermediate_size", maxDim)
	}
	c.want("expert_gating_func", 1, "Qwen routes by softmax")
	c.use("n_shared_experts") // the shared expert's width says it
	f.router.Norm = c.boolOr("norm_topk_prob", renormalize)
	f.router.Scale = float32(c.floatOr("routed_scaling_factor", 1))
	if shared > 0 {
		f.shared, f.sharedGate = &glu{width: shared, act: act}, true
	}
	return f
}
