package family

import (
	"slices"

	"github.com/baleenrun/baleen/internal/plan"
)

// deltaNames are the delta net's names.
var deltaNames = map[string]string{
	"ssm_in":      "linear_attn.in_proj_qkvz",
	"ssm_ba":      "linear_attn.in_proj_ba",
	"attn_qkv":    "linear_attn.in_proj_qkv",
	"attn_gate":   "linear_attn.in_proj_z",
	"ssm_beta":    "linear_attn.in_proj_b",
	"ssm_alpha":   "linear_attn.in_proj_a",
	"ssm_conv1d":  "linear_attn.conv1d",
	"ssm_a":       "linear_attn.A_log",
	"ssm_dt.bias": "linear_attn.dt_bias",
	"ssm_norm":    "linear_attn.norm",
	"ssm_out":     "linear_attn.out_proj",
}

var deltaGGUF = map[string]string{"ffn_norm": "post_attention_norm"}

// Qwen 3-Next: three layers of delta nets for each of gated attention, experts in all. Reference: transformers
// models/qwen3_next; llama.cpp models/qwen3next.cpp.
var qwen3Next = &family{
	name:      "qwen3_next",
	hf:        []string{"qwen3_next"},
	gguf:      []string{"qwen3next"},
	hfNames:   with(expertNames, deltaNames),
	ggufNames: deltaGGUF,
	onePlus:   true,
	skip:      []string{"mtp."},
	defaults: map[string]any{
		"num_key_value_heads": 2, "head_dim": 256, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
		"shared_expert_intermediate_size": 512,
	},
	harmless: qwen35Harmless,
	spec:     func(c *config) *model { return qwen35Spec(c, false) },
}

// Qwen 3.5 and later: the same with projections apart; GGUF files have the value heads in another order. Reference:
// transformers models/qwen3_5; llama.cpp models/qwen35.cpp.
var qwen35 = &family{
	name:      "qwen3_5",
	hf:        []string{"qwen3_5_text", "qwen3_5"},
	gguf:      []string{"qwen35"},
	hfNames:   deltaNames,
	ggufNames: deltaGGUF,
	onePlus:   true,
	skip:      []string{"mtp."},
	defaults:  map[string]any{"num_key_value_heads": 4, "head_dim": 256},
	harmless:  qwen35Harmless,
	spec:      func(c *config) *model { return qwen35Spec(c, c.gguf) },
}

// Qwen 3.5 with experts. Reference: transformers models/qwen3_5_moe; llama.cpp models/qwen35moe.cpp.
var qwen35MoE = &family{
	name:      "qwen3_5_moe",
	hf:        []string{"qwen3_5_moe_text", "qwen3_5_moe"},
	gguf:      []string{"qwen35moe"},
	hfNames:   with(expertNames, deltaNames),
	ggufNames: deltaGGUF,
	onePlus:   true,
	skip:      []string{"mtp."},
	defaults: map[string]any{
		"num_key_value_heads": 2, "head_dim": 256, "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
		"shared_expert_intermediate_size": 512,
	},
	harmless: qwen35Harmless,
	spec:     func(c *config) *model { return qwen35Spec(c, c.gguf) },
}

var qwen35Harmless = []string{
	"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "num_mtp_layers", "mamba_ssm_dtype", "full_attention_interval", "attn_output_gate",
	"max_window_layers", "use_sliding_window", "sliding_window",
}

func qwen35Spec(c *config, tiled bool) *model {
	m := c.base()
	m.tied = c.tieKey(false)
	c.want("attn_output_gate", true, "attention is gated")
	c.want("use_sliding_window", false, "there are no windows")
	c.noGGUFWindow()
	a := c.attentionShape(m.hidden)
	a.bias = c.biasKey("attention_bias", false)
	a.outBias = a.bias
	a.qkNorm, a.gated = headQKNorm, true
	a.rope = c.rope(ropeArgs{dim: a.dim, partial: 0.25})
	d := c.deltaShape()
	d.tiled = tiled
	if c.activation("hidden_act", "silu") != plan.ActSiLU {
		c.fail("hidden_act of a gated delta net must be silu")
	}
	linear := c.linearLayers(len(m.layers))
	var ffns []ffn
	if c.gguf || c.has("num_experts") {
		ffns = c.qwenFFNs(len(m.layers), true)
	}
	for i := range m.layers {
		var mix mixer = a
		if linear[i] {
			mix = d
		}
		if ffns != nil {
			m.layers[i] = preNorm(mix, ffns[i])
		} else {
			m.layers[i] = preNorm(mix, c.dense(c.fixedBias(false)))
		}
	}
	return m
}

// linearLayers says which layers are delta nets.
func (c *config) linearLayers(n int) []bool {
	linear := make([]bool, n)
	every := c.intOr("full_attention_interval", 4, 1, maxLayers)
	types := c.layerTypes(n, "linear_attention", "full_attention")
	var recurrent []int                                                        // of GGUF files; layers for multi-token prediction may follow
	if v, ok := c.values["attention.recurrent_layers"].(int64); ok && c.gguf { // a list of equal numbers
		recurrent = slices.Repeat([]int{c.integer("attention.recurrent_layers", v, 0, 1)}, n)
		c.use("attention.recurrent_layers")
	} else if c.gguf {
		recurrent = c.ints("attention.recurrent_layers", -1, 0, 1)
	}
	if recurrent != nil && len(recurrent) < n {
		c.fail("attention.recurrent_layers has %d entries for %d layers", len(recurrent), n)
	}
	for i := range linear {
		switch {
		case types != nil:
			linear[i] = types[i] == "linear_attention"
		case recurrent != nil:
			linear[i] = recurrent[i] == 1
		default:
			linear[i] = (i+1)%every != 0
		}
	}
	return linear
}
