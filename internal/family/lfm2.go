package family

import "github.com/baleenrun/baleen/internal/plan"

// lfm2Names are LFM2's names; the MoE models add theirs.
var lfm2Names = map[string]string{
	"attn_norm":          "operator_norm",
	"ffn_norm":           "ffn_norm",
	"attn_output":        "self_attn.out_proj",
	"attn_q_norm":        "self_attn.q_layernorm",
	"attn_k_norm":        "self_attn.k_layernorm",
	"ffn_gate":           "feed_forward.w1",
	"ffn_up":             "feed_forward.w3",
	"ffn_down":           "feed_forward.w2",
	"shortconv.in_proj":  "conv.in_proj",
	"shortconv.conv":     "conv.conv",
	"shortconv.out_proj": "conv.out_proj",
	"output_norm":        "embedding_norm",
}

// LFM2: short convolutions with attention in some layers. Reference: transformers models/lfm2; llama.cpp
// models/lfm2.cpp.
var lfm2 = &family{
	name:      "lfm2",
	hf:        []string{"lfm2"},
	gguf:      []string{"lfm2"},
	hfNames:   lfm2Names,
	ggufNames: map[string]string{"output_norm": "token_embd_norm"},
	defaults:  map[string]any{"num_key_value_heads": 8, "max_position_embeddings": 128000},
	harmless:  lfm2Harmless,
	spec: func(c *config) *model {
		m, mixers := c.lfm2Base()
		c.alias("intermediate_size", "block_ff_dim")
		width := c.dim("intermediate_size", maxDim)
		if !c.gguf && c.boolOr("block_auto_adjust_ff_dim", true) {
			width = c.lfm2Width(width)
		}
		f := &glu{width: width, act: silu}
		for i := range m.layers {
			m.layers[i] = preNorm(mixers[i], f)
		}
		return m
	},
}

var lfm2Harmless = []string{
	"conv_dim", "conv_dim_out", "block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
	"block_use_swiglu", "block_use_xavier_init", "conv_use_xavier_init", "use_pos_enc", "num_heads", "full_attn_idxs",
	"block_ff_dim", "block_multiple_of", "block_ffn_dim_multiplier", "block_auto_adjust_ff_dim", "theta",
}

// lfm2Width is the FFN's real width: two thirds, scaled, rounded up.
func (c *config) lfm2Width(width int) int {
	width = 2 * width / 3
	if c.has("block_ffn_dim_multiplier") {
		width = int(c.positive("block_ffn_dim_multiplier", 1) * float64(width))
		of := c.dimOr("block_multiple_of", 256, maxDim)
		width = (width + of - 1) / of * of
	}
	if width < 1 || width > maxDim {
		c.fail("an FFN of width %d", width)
	}
	return width
}

// lfm2Base reads what LFM2 models share and the mixer of every layer.
func (c *config) lfm2Base() (*model, []mixer) {
	if !c.gguf {
		c.values["rms_norm_eps"] = c.positive("norm_eps", 1e-5) // under its name here
	}
	kv := c.lfm2Heads()
	m := c.base()
	c.alias("tie_word_embeddings", "tie_embedding")
	m.tied = c.tieKey(true)
	a := c.attentionShape(m.hidden)
	a.qkNorm = headQKNorm
	a.rope = c.rope(ropeArgs{dim: a.dim, theta: 1e6})
	if c.gguf {
		a.window = c.windowKey(0)
	}
	conv := &shortConv{kernel: c.intOr("conv_L_cache", 3, 2, 64), bias: c.biasKey("conv_bias", false)}
	mixers := make([]mixer, len(m.layers))
	types := c.layerTypes(len(m.layers), "conv", "full_attention")
	attends := map[int]bool{}
	for _, i := range c.ints("full_attn_idxs", -1, 0, maxLayers) {
		attends[i] = true
	}
	for i := range mixers {
		mixers[i] = conv
		full := types != nil && types[i] == "full_attention" || types == nil && (attends[i] || !c.has("full_attn_idxs"))
		if c.gguf {
			full = kv == nil || i < len(kv) && kv[i] > 0
		}
		if full {
			mixers[i] = a
		}
	}
	return m, mixers
}

// lfm2Heads returns the key heads of each layer of a GGUF file, 0 for convolutions, and leaves the largest number as
// the model's.
func (c *config) lfm2Heads() []int {
	list, ok := c.values["num_key_value_heads"].([]any)
	if !ok || !c.gguf {
		return nil
	}
	var kv []int
	most := 0
	for _, v := range list {
		n := c.integer("num_key_value_heads", v, 0, maxHeads)
		kv, most = append(kv, n), max(most, n)
	}
	c.values["num_key_value_heads"] = most
	return kv
}

// LFM2 with experts: sigmoid scores with a bias for the choice. Reference: transformers models/lfm2_moe; llama.cpp
// models/lfm2moe.cpp.
var lfm2MoE = &family{
	name: "lfm2_moe",
	hf:   []string{"lfm2_moe"},
	gguf: []string{"lfm2moe"},
	hfNames: with(lfm2Names, map[string]string{
		"ffn_gate_inp":    "feed_forward.gate",
		"exp_probs_b":     "feed_forward.expert_bias",
		"expert.gate":     "feed_forward.experts.%d.w1",
		"expert.up":       "feed_forward.experts.%d.w3",
		"expert.down":     "feed_forward.experts.%d.w2",
		"experts.gate_up": "feed_forward.experts.gate_up_proj",
		"experts.down":    "feed_forward.experts.down_proj",
	}),
	ggufNames: map[string]string{"output_norm": "token_embd_norm"},
	keys:      map[string]string{"leading_dense_block_count": "num_dense_layers"},
	defaults: map[string]any{
		"num_key_value_heads":     8,
		"max_position_embeddings": 128000,
		"num_experts":             32,
		"num_experts_per_tok":     4,
		"moe_intermediate_size":   1792,
	},
	harmless: lfm2Harmless,
	spec: func(c *config) *model {
		m, mixers := c.lfm2Base()
		c.want("expert_gating_func", 2, "LFM2 scores by sigmoid")
		f := &moe{act: silu, router: router0(plan.GateSigmoid)}
		f.experts, f.topK = c.expertCounts("num_experts")
		f.width = c.dim("moe_intermediate_size", maxDim)
		f.routerBias = c.boolOr("use_expert_bias", !c.gguf)
		f.routerIfPresent = c.gguf
		f.router.Norm, f.router.NormEps = c.boolOr("norm_topk_prob", true), 1e-6
		f.router.Scale = float32(c.floatOr("routed_scaling_factor", 1))
		lead := c.intOr("num_dense_layers", 2, 0, maxLayers)
		dense := &glu{width: c.dim("intermediate_size", maxDim), act: silu}
		for i := range m.layers {
			m.layers[i] = preNorm(mixers[i], ffn(f))
			if i < lead {
				m.layers[i].ffn = dense
			}
		}
		return m
	},
}
