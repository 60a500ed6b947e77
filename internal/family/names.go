package family

import (
	"fmt"
	"slices"
	"strings"
)

// Roles are named as GGUF names tensors: "attn_q" of a layer, "token_embd" of the model.

// commonHF maps roles to the names that most Hugging Face models use, below "model.layers.N." or, for the last three,
// below "model.".
var commonHF = map[string]string{
	"attn_norm":           "input_layernorm",
	"attn_q":              "self_attn.q_proj",
	"attn_k":              "self_attn.k_proj",
	"attn_v":              "self_attn.v_proj",
	"attn_qkv":            "self_attn.qkv_proj",
	"attn_output":         "self_attn.o_proj",
	"attn_q_norm":         "self_attn.q_norm",
	"attn_k_norm":         "self_attn.k_norm",
	"post_attention_norm": "post_attention_layernorm",
	"ffn_norm":            "post_attention_layernorm",
	"ffn_gate":            "mlp.gate_proj",
	"ffn_up":              "mlp.up_proj",
	"ffn_gate_up":         "mlp.gate_up_proj",
	"ffn_down":            "mlp.down_proj",
	"post_ffw_norm":       "post_feedforward_layernorm",
	"ffn_gate_inp":        "mlp.gate",
	"ffn_gate_inp_shexp":  "mlp.shared_expert_gate",
	"ffn_gate_shexp":      "mlp.shared_expert.gate_proj",
	"ffn_up_shexp":        "mlp.shared_expert.up_proj",
	"ffn_gate_up_shexp":   "mlp.shared_expert.gate_up_proj",
	"ffn_down_shexp":      "mlp.shared_expert.down_proj",
	"token_embd":          "embed_tokens",
	"output_norm":         "norm",
}

// commonGGUF maps the few roles whose tensors are not called "role.weight".
var commonGGUF = map[string]string{
	"ssm_a":       "ssm_a",
	"ssm_dt.bias": "ssm_dt.bias",
	"exp_probs_b": "exp_probs_b.bias",
	"attn_sinks":  "attn_sinks.weight",
}

// lookup finds a role's name in tables: a complete one under role+suffix, else the base under role.
func lookup(role, suffix string, tables ...map[string]string) (string, bool) {
	for _, t := range tables {
		if n, ok := t[role+suffix]; ok && suffix != "" {
			return n, true
		}
		if n, ok := t[role]; ok {
			return n + suffix, true
		}
	}
	return "", false
}

// tensorName returns the name of a role's tensor; layer -1 is the model itself. suffix is ".weight", ".bias" or "".
func (b *builder) tensorName(layer int, role, suffix string) string {
	if b.c.gguf {
		name, ok := lookup(role, suffix, b.fam.ggufNames, commonGGUF)
		if !ok {
			name = role + suffix
		}
		if layer < 0 {
			return name
		}
		return fmt.Sprintf("blk.%d.%s", layer, name)
	}
	if role == "output" {
		return b.head + suffix
	}
	name, ok := lookup(role, suffix, b.fam.hfNames, commonHF)
	if !ok {
		fail("family: %s has no Hugging Face name for the role %q", b.fam.name, role)
	}
	if layer < 0 {
		return b.root + name
	}
	return fmt.Sprintf("%slayers.%d.%s", b.root, layer, name)
}

// hasRole reports whether the layer's tensor exists; a role without a name does not.
func (b *builder) hasRole(role, suffix string) bool {
	if !b.c.gguf && role != "output" {
		if _, ok := lookup(role, suffix, b.fam.hfNames, commonHF); !ok {
			return false
		}
	}
	return b.src.has(b.tensorName(b.layer, role, suffix))
}

// findRoot finds the prefix of a safetensors checkpoint's text model, which multimodal wrappers push down.
func (b *builder) findRoot() {
	embed, _ := lookup("token_embd", ".weight", b.fam.hfNames, commonHF)
	for _, p := range [][2]string{
		{"model.", "lm_head"},
		{"model.language_model.", "lm_head"},
		{"language_model.model.", "language_model.lm_head"},
		{"", "lm_head"},
	} {
		if b.src.has(p[0] + embed) {
			b.root, b.head = p[0], p[1]
			return
		}
	}
	fail("family: tensor %q is missing from the checkpoint", "model."+embed)
}

// commonSkip lists tensors that say nothing new.
var commonSkip = []string{"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}

// harmlessEnds are endings of tensors that only a quantized execution would read, or that repeat the configuration.
var harmlessEnds = []string{".rotary_emb.inv_freq", ".input_scale", ".activation_scale", ".k_scale", ".v_scale"}

// checkUnused refuses a checkpoint with tensors that nothing read.
func (b *builder) checkUnused() {
	var left []string
	for _, n := range b.src.names() {
		if b.used[n] || b.skipped(n) {
			continue
		}
		left = append(left, n)
	}
	if len(left) == 0 {
		return
	}
	more := ""
	if len(left) > 5 {
		more = fmt.Sprintf(" and %d more", len(left)-5)
		left = left[:5]
	}
	fail(
		"family: the checkpoint holds tensors that family %s does not use: %s%s",
		b.fam.name,
		strings.Join(left, ", "),
		more,
	)
}

func (b *builder) skipped(name string) bool {
	if b.c.gguf {
		for _, n := range commonSkip {
			if name == n {
				return true
			}
		}
		return b.isExtra(name, "blk.")
	}
	for _, end := range harmlessEnds {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	lists := b.fam.skip
	if b.c.wrapped {
		lists = append(slices.Clone(lists), wrapperSkip...)
	}
	for _, p := range lists {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return b.isExtra(name, b.root+"layers.")
}

// isExtra reports whether a tensor belongs to a layer beyond the model's own: a head for multi-token prediction.
func (b *builder) isExtra(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	var n int
	if !ok {
		return false
	}
	_, err := fmt.Sscanf(rest, "%d.", &n)
	return err == nil && n >= len(b.m.layers) && n < len(b.m.layers)+b.m.extraLayers
}
