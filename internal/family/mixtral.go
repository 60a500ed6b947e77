package family

import "github.com/baleenrun/baleen/internal/plan"

// mixtralNames are the experts' names in Mixtral checkpoints.
var mixtralNames = map[string]string{
	"ffn_gate_inp": "block_sparse_moe.gate",
	"expert.gate":  "block_sparse_moe.experts.%d.w1",
	"expert.up":    "block_sparse_moe.experts.%d.w3",
	"expert.down":  "block_sparse_moe.experts.%d.w2",
}

// mixtralExperts reads Mixtral's FFN: softmax over all experts, the best two, renormalized.
func (c *config) mixtralExperts() *moe {
	c.alias("num_experts", "num_local_experts")
	f := &moe{width: c.dim("intermediate_size", maxDim), act: c.activation("hidden_act", "silu"), router: router0(plan.GateSoftmax)}
	f.experts, f.topK = c.expertCounts("num_experts")
	f.router.Norm = true
	return f
}
