package family

import "github.com/baleenrun/baleen/internal/plan"

// Mixtral: Mistral with eight experts. Reference: transformers models/mixtral. GGUF files call themselves llama.
var mixtral = &family{
	name: "mixtral",
	hf:   []string{"mixtral"},
	defaults: map[string]any{
		"num_key_value_heads":     8,
		"max_position_embeddings": 131072,
		"rms_norm_eps":            1e-5,
		"num_local_experts":       8,
		"num_experts_per_tok":     2,
	},
	hfNames: map[string]string{
		"ffn_gate_inp": "block_sparse_moe.gate",
		"expert.gate":  "block_sparse_moe.experts.%d.w1",
		"expert.up":    "block_sparse_moe.experts.%d.w3",
		"expert.down":  "block_sparse_moe.experts.%d.w2",
	},
	spec: func(c *config) *model {
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.attentionShape(m.hidden)
		a.rope = c.rope(ropeArgs{dim: a.dim, theta: 1e6})
		a.window = c.windowKey(0)
		f := c.mixtralExperts()
		for i := range m.layers {
			m.layers[i] = preNorm(a, f)
		}
		return m
	},
}

// mixtralExperts reads Mixtral's FFN: softmax over all experts, the best two, renormalized.
func (c *config) mixtralExperts() *moe {
	c.alias("num_experts", "num_local_experts")
	f := &moe{
		width:  c.dim("intermediate_size", maxDim),
		act:    c.activation("hidden_act", "silu"),
		router: router0(plan.GateSoftmax),
	}
	if c.gguf {
		f.width = c.dimOr("moe_intermediate_size", f.width, maxDim)
	}
	f.experts, f.topK = c.expertCounts("num_experts")
	f.router.Norm = true
	return f
}
