package family

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/family/exactmath"
	"github.com/baleenrun/baleen/internal/plan"
)

// deepseekNames are DeepSeek's names.
var deepseekNames = with(expertNames, map[string]string{
	"attn_q_a":       "self_attn.q_a_proj",
	"attn_q_a_norm":  "self_attn.q_a_layernorm",
	"attn_q_b":       "self_attn.q_b_proj",
	"attn_kv_a_mqa":  "self_attn.kv_a_proj_with_mqa",
	"attn_kv_a_norm": "self_attn.kv_a_layernorm",
	"attn_kv_b":      "self_attn.kv_b_proj",
	"exp_probs_b":    "mlp.gate.e_score_correction_bias",
	"ffn_gate_shexp": "mlp.shared_experts.gate_proj",
	"ffn_up_shexp":   "mlp.shared_experts.up_proj",
	"ffn_down_shexp": "mlp.shared_experts.down_proj",
})

// DeepSeek V2 and V2-Lite. Reference: transformers models/deepseek_v2; llama.cpp models/deepseek2.cpp. GGUF files of
// this architecture may also hold V3 and Kimi K2: these name the sigmoid as gating function.
var deepseekV2 = &family{
	name:    "deepseek_v2",
	hf:      []string{"deepseek_v2"},
	gguf:    []string{"deepseek2"},
	hfNames: deepseekNames,
	defaults: map[string]any{
		"q_lora_rank":           1536,
		"kv_lora_rank":          512,
		"qk_nope_head_dim":      128,
		"qk_rope_head_dim":      64,
		"v_head_dim":            128,
		"n_routed_experts":      64,
		"n_shared_experts":      2,
		"moe_intermediate_size": 1407,
	},
	harmless: deepseekHarmless,
	spec: func(c *config) *model {
		if c.gguf {
			return deepseekGGUF(c)
		}
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.latentShape(c.rope(ropeArgs{dim: c.dim("qk_rope_head_dim", maxHead), interleaved: true}))
		f := c.deepseekExperts(plan.GateSoftmax)
		switch method := c.stringOr("topk_method", "greedy"); method {
		case "greedy":
			f.router.Groups, f.router.GroupTopK = 0, 0
		case "group_limited_greedy":
		default:
			c.fail("topk_method %q is not known", method)
		}
		c.use("norm_topk_prob") // the reference reads it but does not renormalize
		c.deepseekLayers(m, a, f, c.biasKey("mlp_bias", false), 0)
		return m
	},
}

// DeepSeek V3, R1 and Kimi K2. Reference: transformers models/deepseek_v3.
var deepseekV3 = &family{
	name:    "deepseek_v3",
	hf:      []string{"deepseek_v3", "kimi_k2"},
	hfNames: deepseekNames,
	defaults: map[string]any{
		"q_lora_rank":           1536,
		"kv_lora_rank":          512,
		"qk_nope_head_dim":      128,
		"qk_rope_head_dim":      64,
		"v_head_dim":            128,
		"n_routed_experts":      256,
		"n_shared_experts":      1,
		"moe_intermediate_size": 2048,
		"n_group":               8,
		"topk_group":            4,
		"num_experts_per_tok":   8,
		"routed_scaling_factor": 2.5,
		"first_k_dense_replace": 3,
	},
	harmless: append([]string{"num_mtp_layers"}, deepseekHarmless...),
	spec: func(c *config) *model {
		c.alias("num_nextn_predict_layers", "num_mtp_layers")
		m := c.base()
		m.tied = c.tieKey(false)
		a := c.latentShape(
			c.rope(ropeArgs{dim: c.dim("qk_rope_head_dim", maxHead), interleaved: c.boolOr("rope_interleave", true)}),
		)
		f := c.deepseekExperts(plan.GateSigmoid)
		f.routerBias, f.router.GroupSum2 = true, true
		f.router.Norm, f.router.NormEps = c.boolOr("norm_topk_prob", true), 1e-20
		c.want("topk_method", "noaux_tc", "V3 chooses with a bias")
		c.want("scoring_func", "sigmoid", "V3 scores by sigmoid")
		c.deepseekLayers(m, a, f, c.fixedBias(false), 3)
		return m
	},
}

var deepseekHarmless = []string{
	"head_dim", "qk_head_dim", "num_key_value_heads", "aux_loss_alpha", "seq_aux", "ep_size", "scoring_func", "topk_method",
	"num_experts", "num_local_experts", "n_group", "topk_group",
}

// latentShape reads the attention's shape.
func (c *config) latentShape(r *rope) *latentAttention {
	a := &latentAttention{
		heads: c.dim(
			"num_attention_heads",
			maxHeads,
		), rank: c.dim("kv_lora_rank", maxDim), queryRank: c.intOr("q_lora_rank", 0, 0, maxDim),
		plain: c.dim(
			"qk_nope_head_dim",
			maxHead,
		), rotated: c.dim("qk_rope_head_dim", maxHead), v: c.dim("v_head_dim", maxHead),
		bias: c.biasKey("attention_bias", false), rope: r,
	}
	a.outBias = a.bias
	if kv := c.dimOr("num_key_value_heads", a.heads, maxHeads); kv != a.heads {
		c.fail("latent attention of %d heads with %d key heads", a.heads, kv)
	}
	a.scale = 1 / exactmath.Sqrt(float64(a.plain+a.rotated))
	if p := r.params; p.kind != "default" && p.mscaleAll != 0 {
		s := mscaleOf(p.factor, p.mscaleAll)
		a.scale *= s * s
	}
	return a
}

// deepseekExperts reads the experts: groups first, then experts of the best groups.
func (c *config) deepseekExperts(kind plan.GateKind) *moe {
	act := c.activation("hidden_act", "silu")
	f := &moe{act: act, router: router0(kind), width: c.dim("moe_intermediate_size", maxDim)}
	f.experts, f.topK = c.expertCounts("n_routed_experts")
	f.router.Scale = float32(c.floatOr("routed_scaling_factor", 1))
	f.router.Groups, f.router.GroupTopK = c.intOr("n_group", 0, 0, maxExpert), c.intOr("topk_group", 0, 0, maxExpert)
	if shared := c.intOr("n_shared_experts", 0, 0, maxExpert); shared > 0 {
		f.shared = &glu{width: shared * f.width, act: act}
	}
	return f
}

// checkGroups ends loading where groups do not divide the experts or leave too few.
func (c *config) checkGroups(f *moe) {
	g, k := f.router.Groups, f.router.GroupTopK
	if g <= 1 {
		f.router.Groups, f.router.GroupTopK, f.router.GroupSum2 = 0, 0, false
		return
	}
	if f.experts%g != 0 || k < 1 || k > g || k*(f.experts/g) < f.topK || f.router.GroupSum2 && f.experts/g < 2 {
		c.fail("%d experts in %d groups, of which %d are used for %d experts", f.experts, g, k, f.topK)
	}
}

// deepseekLayers fills the layers: dense ones first.
func (c *config) deepseekLayers(m *model, mix mixer, f *moe, mlpBias bias, lead int) {
	c.checkGroups(f)
	c.want("moe_layer_freq", 1, "all later layers have experts")
	lead = c.intOr("first_k_dense_replace", lead, 0, maxLayers)
	dense := &glu{width: c.dim("intermediate_size", maxDim), act: f.act, bias: mlpBias}
	if f.shared != nil {
		f.shared.bias = mlpBias
	}
	for i := range m.layers {
		m.layers[i] = preNorm(mix, ffn(f))
		if i < lead {
			m.layers[i].ffn = dense
		}
	}
}

// deepseekGGUF reads either generation from the metadata of a GGUF file. Newer files hold k_b and v_b apart and the
// heads' own sizes under keys of their own.
func deepseekGGUF(c *config) *model {
	m := c.base()
	m.tied = tiedIfAbsent
	rotated := c.dim("rope.dimension_count", maxHead)
	head := c.dim("head_dim", maxHead)
	v := c.dimOr("attention.value_length", head, maxHead)
	if c.has("attention.key_length_mla") {
		head, v = c.dim("attention.key_length_mla", maxHead), c.dim("attention.value_length_mla", maxHead)
	}
	if head <= rotated {
		c.fail("heads of %d of which %d are rotated", head, rotated)
	}
	c.values["qk_nope_head_dim"], c.values["qk_rope_head_dim"], c.values["v_head_dim"] = head-rotated, rotated, v
	c.use("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "num_key_value_heads", "num_experts")
	delete(c.values, "num_key_value_heads") // 1: the latent
	c.alias("n_routed_experts", "num_experts")
	r := c.rope(ropeArgs{dim: rotated, interleaved: true, logMul: true})
	a := c.latentShape(r)
	kind := c.ggufGate(len(m.layers))
	f := c.deepseekExperts(kind)
	f.router.Norm = c.boolOr("norm_topk_prob", false)
	f.routerIfPresent, f.router.GroupSum2 = true, kind == plan.GateSigmoid
	if f.router.Norm {
		f.router.NormEps = 1e-20
	}
	c.deepseekLayers(m, a, f, noBias, 0)
	return m
}

// ggufGate reads the gating function. Files that do not name it have the sigmoid's bias or, in V2, not.
func (c *config) ggufGate(layers int) plan.GateKind {
	switch gate := c.intOr("expert_gating_func", 0, 0, 4); gate {
	case 0:
		for i := range layers {
			if c.source.has(fmt.Sprintf("blk.%d.exp_probs_b.bias", i)) {
				return plan.GateSigmoid
			}
		}
	case 1:
	case 2:
		return plan.GateSigmoid
	default:
		c.fail("expert_gating_func %d is not supported", gate)
	}
	return plan.GateSoftmax
}
