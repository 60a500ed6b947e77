package family

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"
)

// Limits of what a configuration may say. Real models stay far below; every size is also checked against the tensors.
const (
	maxLayers = 1024
	maxDim    = 1 << 22
	maxHeads  = 1 << 14
	maxHead   = 1 << 14
	maxExpert = 1 << 14
)

// loadError carries an error to the recover of the package's entry points.
type loadError struct{ err error }

// catch turns the panic of fail into an error; other panics go on.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case loadError:
		*err = r.err
	default:
		panic(r)
	}
}

func fail(format string, args ...any) { panic(loadError{fmt.Errorf(format, args...)}) }

// config is a model's configuration in the language of Hugging Face's config.json, whatever container it comes from.
// Its accessors end loading where a value is not what it must be, and remember which keys were used.
type config struct {
	values  map[string]any
	used    map[string]bool
	gguf    bool
	source  source
	wrapped bool // the text part of a multimodal model
	limit   int  // positions to load for; 0: the model's maximum
}

func (c *config) fail(format string, args ...any) {
	fail("family: configuration: "+format, args...)
}

// get returns the value of a key and marks it as used; null counts as absent.
func (c *config) get(key string) (any, bool) {
	c.used[key] = true
	v, ok := c.values[key]
	return v, ok && v != nil
}

func (c *config) has(key string) bool { _, ok := c.get(key); return ok }

// alias copies the first present of other keys to key where key is absent.
func (c *config) alias(key string, others ...string) {
	for _, o := range others {
		v, ok := c.get(o)
		if _, present := c.values[key]; ok && !present {
			c.values[key] = v
		}
	}
}

// use marks keys as read, for those that change nothing here.
func (c *config) use(keys ...string) {
	for _, k := range keys {
		c.used[k] = true
	}
}

// want refuses a key whose value differs from the only one supported.
func (c *config) want(key string, only any, why string) {
	v, ok := c.get(key)
	if !ok {
		return
	}
	if n, isNumber := number(v); isNumber {
		if o, wantsNumber := number(only); wantsNumber && n == o {
			return
		}
	}
	if v != only {
		c.fail("%s is %v; only %v is supported: %s", key, v, only, why)
	}
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}

// integer returns a whole number between low and high.
func (c *config) integer(key string, v any, low, high int) int {
	f, ok := number(v)
	if !ok || f != math.Trunc(f) {
		c.fail("%s is %v, a whole number is needed", key, v)
	}
	if f < float64(low) || f > float64(high) {
		c.fail("%s is %v, from %d to %d are possible", key, v, low, high)
	}
	return int(f)
}

func (c *config) intOr(key string, def, low, high int) int {
	v, ok := c.get(key)
	if !ok {
		return def
	}
	return c.integer(key, v, low, high)
}

// dim returns a required size of at least 1.
func (c *config) dim(key string, high int) int {
	v, ok := c.get(key)
	if !ok {
		c.fail("%s is missing", key)
	}
	return c.integer(key, v, 1, high)
}

func (c *config) dimOr(key string, def, high int) int {
	if !c.has(key) {
		return def
	}
	return c.dim(key, high)
}

func (c *config) float(key string, v any) float64 {
	f, ok := number(v)
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		c.fail("%s is %v, a finite number is needed", key, v)
	}
	return f
}

func (c *config) floatOr(key string, def float64) float64 {
	v, ok := c.get(key)
	if !ok {
		return def
	}
	return c.float(key, v)
}

// positive returns a number above 0.
func (c *config) positive(key string, def float64) float64 {
	f := c.floatOr(key, def)
	if f <= 0 {
		c.fail("%s is %v, it must be above 0", key, f)
	}
	return f
}

func (c *config) boolOr(key string, def bool) bool {
	v, ok := c.get(key)
	if !ok {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		c.fail("%s is %v, true or false is needed", key, v)
	}
	return b
}

func (c *config) stringOr(key, def string) string {
	v, ok := c.get(key)
	if !ok {
		return def
	}
	s, ok := v.(string)
	if !ok {
		c.fail("%s is %v, a string is needed", key, v)
	}
	return s
}

// list returns an array of n values, or nil where the key is absent.
func (c *config) list(key string, n int) []any {
	v, ok := c.get(key)
	if !ok {
		return nil
	}
	l, ok := v.([]any)
	if !ok {
		c.fail("%s is %v, an array is needed", key, v)
	}
	if n >= 0 && len(l) != n {
		c.fail("%s has %d entries, %d are needed", key, len(l), n)
	}
	return l
}

func (c *config) ints(key string, n, low, high int) []int {
	var out []int
	for _, v := range c.list(key, n) {
		if b, ok := v.(bool); ok {
			v = int64(0)
			if b {
				v = int64(1)
			}
		}
		out = append(out, c.integer(key, v, low, high))
	}
	return out
}

func (c *config) strings(key string, n int) []string {
	var out []string
	for _, v := range c.list(key, n) {
		s, ok := v.(string)
		if !ok {
			c.fail("%s holds %v, strings are needed", key, v)
		}
		out = append(out, s)
	}
	return out
}

// dict returns an object, or nil where the key is absent.
func (c *config) dict(key string) map[string]any {
	v, ok := c.get(key)
	if !ok {
		return nil
	}
	d, ok := v.(map[string]any)
	if !ok {
		c.fail("%s is %v, an object is needed", key, v)
	}
	return d
}

// sub returns an object's content as a configuration of its own; the caller finishes it.
func (c *config) sub(values map[string]any) *config {
	return &config{values: values, used: map[string]bool{}, gguf: c.gguf, source: c.source, limit: c.limit}
}

// finish refuses keys that nothing used.
func (c *config) finish(where string, harmless ...[]string) {
	known := map[string]bool{}
	for _, list := range harmless {
		for _, k := range list {
			known[k] = true
		}
	}
	var left []string
	for k, v := range c.values {
		if !c.used[k] && !known[k] && v != nil {
			left = append(left, fmt.Sprintf("%s = %s", k, brief(v)))
		}
	}
	if len(left) > 0 {
		sort.Strings(left)
		more := ""
		if len(left) > 8 {
			more = fmt.Sprintf(" and %d more", len(left)-8)
			left = left[:8]
		}
		fail("family: %s: unknown keys might change the result: %s%s", where, strings.Join(left, ", "), more)
	}
}

func brief(v any) string {
	s := fmt.Sprint(v)
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return s
}

// harmlessHF lists keys of config.json that say nothing about the mathematics of inference.
var harmlessHF = []string{
	"architectures", "attention_dropout", "auto_map", "bos_token_id", "cls_token_id", "dtype", "embd_pdrop", "eos_token_id",
	"hidden_dropout", "hidden_dropout_prob", "initializer_range", "initializer_factor", "mask_token_id", "model_type", "output_attentions",
	"output_hidden_states", "output_router_logits", "pad_token_id", "pretraining_tp", "resid_pdrop", "return_dict",
	"router_aux_loss_coef", "router_z_loss_coef", "router_jitter_noise", "sep_token_id", "torch_dtype",
	"transformers_version", "unk_token_id", "use_cache", "_name_or_path", "_attn_implementation",
	"_attn_implementation_autoset", "cache_implementation", "chunk_size_feed_forward", "id2label", "label2id",
	"problem_type", "finetuning_task", "task_specific_params", "tokenizer_class", "prefix", "torchscript", "use_bfloat16",
	"tf_legacy_loss", "pruned_heads", "decoder_start_token_id", "max_length", "min_length", "do_sample", "early_stopping",
	"num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty",
	"length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences",
	"output_scores", "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
	"exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens", "unsloth_version", "unsloth_fixed",
	"quantization", "quantization_config", "rope_parameters", "rope_scaling", "rope_theta", "full_attn_idxs",
	"default_theta", "base_model_tp_plan", "ep_plan", "mlx_lm_version", "save_format", "license",
	"is_llama_config", "transformers.js_config",
}

// falseOnly are switches of transformers' base configuration that no decoder here supports when true.
var falseOnly = []string{
	"is_encoder_decoder",
	"add_cross_attention",
	"cross_attention_hidden_size",
	"tie_encoder_decoder",
	"use_mrope",
	"rope_interleaved",
}
