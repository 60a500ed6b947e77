package family

import (
	"strings"

	"github.com/baleenrun/baleen/internal/gguf"
)

// ggufKeys renames metadata keys, without the architecture's prefix, to the keys of Hugging Face configurations. Keys
// that are not listed keep their name and must be read by the family under it.
var ggufKeys = map[string]string{
	"context_length":                    "max_position_embeddings",
	"embedding_length":                  "hidden_size",
	"block_count":                       "num_hidden_layers",
	"feed_forward_length":               "intermediate_size",
	"attention.head_count":              "num_attention_heads",
	"attention.head_count_kv":           "num_key_value_heads",
	"attention.key_length":              "head_dim",
	"attention.layer_norm_rms_epsilon":  "rms_norm_eps",
	"attention.sliding_window":          "sliding_window",
	"attention.q_lora_rank":             "q_lora_rank",
	"attention.kv_lora_rank":            "kv_lora_rank",
	"attention.scale":                   "attention_multiplier",
	"attn_logit_softcapping":            "attn_logit_softcapping",
	"final_logit_softcapping":           "final_logit_softcapping",
	"logit_scale":                       "logits_scaling",
	"residual_scale":                    "residual_multiplier",
	"embedding_scale":                   "embedding_multiplier",
	"expert_count":                      "num_experts",
	"expert_used_count":                 "num_experts_per_tok",
	"expert_feed_forward_length":        "moe_intermediate_size",
	"expert_shared_feed_forward_length": "shared_expert_intermediate_size",
	"expert_shared_count":               "n_shared_experts",
	"expert_weights_scale":              "routed_scaling_factor",
	"expert_weights_norm":               "norm_topk_prob",
	"leading_dense_block_count":         "first_k_dense_replace",
	"expert_group_count":                "n_group",
	"expert_group_used_count":           "topk_group",
	"nextn_predict_layers":              "num_nextn_predict_layers",
	"ssm.conv_kernel":                   "linear_conv_kernel_dim",
	"shortconv.l_cache":                 "conv_L_cache",
}

// harmlessGGUF lists keys that repeat what the tensors or other keys say.
var harmlessGGUF = []string{
	"vocab_size", "rope.scaling.finetuned", "tensor_data_layout", "attention.value_length",
	"rope.freq_base", "rope.dimension_count", "rope.dimension_sections",
	"rope.scaling.type", "rope.scaling.original_context_length", "rope.scaling.factor", "rope.scale_linear",
	"rope.scaling.attn_factor", "rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_beta_fast",
	"rope.scaling.yarn_beta_slow", "rope.scaling.yarn_log_multiplier",
}

// ggufValues translates the metadata of an architecture.
func ggufValues(f *gguf.File, arch string, own map[string]string) map[string]any {
	values := map[string]any{}
	for _, key := range f.Keys() {
		name, ok := strings.CutPrefix(key, arch+".")
		if !ok {
			continue
		}
		if n, ok := own[name]; ok {
			name = n
		} else if n, ok := ggufKeys[name]; ok {
			name = n
		}
		v, _ := f.Get(key)
		values[name] = ggufValue(v)
	}
	return values
}

func ggufValue(v gguf.Value) any {
	if s, ok := v.Text(); ok {
		return s
	}
	if b, ok := v.Bool(); ok {
		return b
	}
	if i, ok := v.Int(); ok {
		return i
	}
	if f, ok := v.Float(); ok {
		return f
	}
	var list []any
	if l, ok := v.Strings(); ok {
		for _, x := range l {
			list = append(list, x)
		}
	} else if l, ok := v.Ints(); ok {
		for _, x := range l {
			list = append(list, x)
		}
		return oneOf(list)
	} else if l, ok := v.Floats(); ok {
		for _, x := range l {
			list = append(list, float64(x))
		}
	} else if l, ok := v.Bools(); ok {
		for _, x := range l {
			list = append(list, x)
		}
	}
	return list
}

// oneOf replaces a list of equal numbers, one per layer, by the number.
func oneOf(list []any) any {
	for _, x := range list {
		if x != list[0] {
			return list
		}
	}
	if len(list) == 0 {
		return list
	}
	return list[0]
}

// ggufRope reads the rotary parameters of a GGUF file. Llama 3's scaling and LongRoPE's factors are tensors there.
func (c *config) ggufRope(a ropeArgs) ropeParams {
	key := a.ggufTheta
	if key == "" {
		key = "rope.freq_base"
	}
	p := ropeParams{
		kind:     c.stringOr("rope.scaling.type", "linear"), // old files have a factor only
		theta:    c.floatOr(key, a.theta),
		partial:  a.partial,
		max:      c.floatOr("max_position_embeddings", 0),
		factor:   c.floatOr("rope.scaling.factor", c.floatOr("rope.scale_linear", 0)),
		betaFast: c.floatOr("rope.scaling.yarn_beta_fast", 32),
		betaSlow: c.floatOr("rope.scaling.yarn_beta_slow", 1),
		truncate: !a.ggufExact,
	}
	p.original = c.floatOr("rope.scaling.original_context_length", p.max)
	c.want("rope.scaling.yarn_ext_factor", 1, "the share of extrapolation is fixed")
	if mul := c.floatOr("rope.scaling.yarn_log_multiplier", 0); mul != 0 {
		if a.logMul {
			mul *= 10
		}
		p.mscaleAll, p.mscale = mul, 1
		if a.logMul && mul != 1 {
			p.mscale = mul // the files do not say; DeepSeek V2 has both alike
		}
	}
	attn, whole := c.floatOr("rope.scaling.attn_factor", 1), c.floatOr("rope.scaling.yarn_attn_factor", 1)
	if p.factor == 0 && p.kind == "linear" {
		p.kind = "none"
	}
	if a.unscaled {
		p.kind, attn = "none", 1
	}
	said := p.kind
	switch said {
	case "none", "longrope":
		p.kind = "default"
	case "yarn":
		switch {
		case whole != 1: // the configuration's own attention_factor, which replaces the usual one
			p.attentionFactor = whole
		case attn != 1 && p.mscaleAll == 0:
			p.attentionFactor = attn * mscaleOf(p.factor, 1)
		}
	case "linear":
		if p.factor <= 0 {
			c.fail("rope.scaling.factor is %v", p.factor)
		}
	default:
		c.fail("rope.scaling.type %q is not known", said)
	}
	if !a.unscaled {
		c.ggufFactors(&p)
	}
	switch {
	case p.kind == "longrope" && attn != 1:
		p.attentionFactor = attn
	case p.kind != "longrope" && said == "longrope":
		c.fail("rope.scaling.type is longrope but the tensors rope_factors_long and rope_factors_short are missing")
	case attn != 1 && p.attentionFactor == 0:
		c.fail("rope.scaling.attn_factor is %v, which belongs to YaRN and LongRoPE, not to %q", attn, said)
	}
	return p
}

// ggufFactors reads the tensors that divide frequencies.
func (c *config) ggufFactors(p *ropeParams) {
	read := func(name string) []float64 {
		t := c.source.get(name)
		if t.elements() > maxHead {
			c.fail("the tensor %s has %d numbers, a head has fewer", name, t.elements())
		}
		var out []float64
		for _, v := range t.floats() {
			out = append(out, float64(v))
		}
		return out
	}
	switch {
	case c.source.has("rope_freqs.weight"):
		p.divisors = read("rope_freqs.weight")
	case c.source.has("rope_factors_long.weight"), c.source.has("rope_factors_short.weight"):
		p.kind = "longrope"
		p.longFactor, p.shortFactor = read("rope_factors_long.weight"), read("rope_factors_short.weight")
	}
}
