package family

import (
	"github.com/baleenrun/baleen/internal/plan"
)

// base reads what all decoders share.
func (c *config) base() *model {
	m := &model{hidden: c.dim("hidden_size", maxDim), eps: c.positive("rms_norm_eps", 1e-6)}
	n := c.dim("num_hidden_layers", maxLayers)
	m.extraLayers = c.intOr("num_nextn_predict_layers", 0, 0, 16)
	if c.gguf { // block_count counts them too
		if n -= m.extraLayers; n < 1 {
			c.fail("%d layers, all for multi-token prediction", m.extraLayers)
		}
	}
	m.layers = make([]layer, n)
	for _, k := range falseOnly {
		c.want(k, false, "this is a decoder")
	}
	if c.gguf {
		if !c.has("rms_norm_eps") { // the defaults are those of config.json
			c.fail("attention.layer_norm_rms_epsilon is missing")
		}
		c.want("attention.causal", true, "this is a decoder")
		m.context = c.dim("max_position_embeddings", 1<<30)
		return m
	}
	m.vocab = c.dim("vocab_size", maxDim)
	m.context = c.dimOr("max_position_embeddings", 2048, 1<<30)
	return m
}

// tieKey reads tie_word_embeddings.
func (c *config) tieKey(def bool) tie {
	switch {
	case c.gguf:
		return tiedIfAbsent
	case c.boolOr("tie_word_embeddings", def):
		return tied
	}
	return untied
}

// windowKey reads sliding_window; 0 or null is none, def is for a configuration that does not have the key.
func (c *config) windowKey(def int) int {
	if v, ok := c.values["sliding_window"]; ok && v == nil {
		def = 0
	}
	return c.intOr("sliding_window", def, 0, 1<<30)
}

// layerTypes reads layer_types, whose entries must be among kinds; nil where the key is absent.
func (c *config) layerTypes(n int, kinds ...string) []string {
	types := c.strings("layer_types", n)
	for i, t := range types {
		ok := false
		for _, k := range kinds {
			ok = ok || t == k
		}
		if !ok {
			c.fail("layer_types names %q for layer %d; this family has %v", t, i, kinds)
		}
	}
	return types
}

// preNorm is the usual layer: norms before the mixer and before the FFN.
func preNorm(mix mixer, f ffn) layer {
	return layer{mix: mix, ffn: f, preMix: "attn_norm", preFFN: "ffn_norm"}
}

// dense reads the usual gated FFN.
func (c *config) dense(b bias) *glu {
	return &glu{width: c.dim("intermediate_size", maxDim), act: c.activation("hidden_act", "silu"), bias: b}
}

// silu is the default activation, spelled for families whose configuration does not name one.
const silu = plan.ActSiLU
