package family

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A recommendation is how the makers of a base model say that its tokens are to be drawn: in their
// generation_config.json, or where that is silent on their model card. Converted files often lose both, and fine-tunes
// inherit them.
type recommendation struct {
	types []string // model_type or general.architecture
	names []string // one of them occurs in a name of the model; letters and digits only, lower case. Empty: any name
	who   string
	Sampling
}

// Rows are tried in order; the first that fits counts. Zero stands for what is not said.
var recommendations = []recommendation{
	say("DeepSeek R1", 0.6, 0.95, 0, 0, 0, "deepseekr1").of("qwen2", "llama", "qwen3"),
	say("Qwen2.5", 0.7, 0.8, 20, 0, 1.05, "qwen25", "qwen2").of("qwen2", "qwen2moe", "qwen2_moe"),
	say("Qwen3-Coder", 0.7, 0.8, 20, 0, 1.05, "qwen3coder").of("qwen3moe", "qwen3_moe", "qwen3next", "qwen3_next"),
	say(
		"Qwen3 Instruct",
		0.7,
		0.8,
		20,
		0,
		0,
		"instruct2507",
		"qwen3next80ba3binstruct",
	).of("qwen3", "qwen3moe", "qwen3_moe", "qwen3next", "qwen3_next"),
	say("Qwen3", 0.6, 0.95, 20, 0, 0).of("qwen3", "qwen3moe", "qwen3_moe", "qwen3next", "qwen3_next"),
	say("SmolLM2", 0.2, 0.9, 0, 0, 0, "smollm2").of("llama"),
	say("SmolLM3", 0.6, 0.95, 0, 0, 0).of("smollm3"),
	say("Llama 3", 0.6, 0.9, 0, 0, 0, "llama3", "llama31", "llama32", "llama33").of("llama"),
	say("Gemma 3", 1, 0.95, 64, 0, 0).of("gemma3", "gemma3_text", "gemma3n", "gemma3n_text"),
	say("gpt-oss", 1, 1, 0, 0, 0).of("gpt-oss", "gpt_oss"),
	say("LFM2", 0.3, 0, 0, 0.15, 1.05).of("lfm2", "lfm2moe", "lfm2_moe"),
	say("Magistral", 0.7, 0.95, 0, 0, 0, "magistral").of("llama", "mistral", "mistral3"),
	say(
		"Mistral Small",
		0.15,
		0,
		0,
		0,
		0,
		"mistralsmall3",
		"mistralsmall24b",
		"devstral",
		"ministral3",
	).of("llama", "mistral", "mistral3", "ministral3"),
	say("Mistral Nemo", 0.3, 0, 0, 0, 0, "mistralnemo").of("llama", "mistral"),
	say("OLMo 3", 0.6, 0.95, 0, 0, 0, "olmo3").of("olmo2", "olmo3"),
	say("DeepSeek V3", 0.6, 0.95, 0, 0, 0, "deepseekv3").of("deepseek2", "deepseek_v3"),
}

func say(who string, temperature, topP float32, topK int, minP, repetition float32, names ...string) recommendation {
	r := recommendation{who: who, names: names}
	some := func(v float32) *float32 {
		if v == 0 {
			return nil
		}
		return &v
	}
	r.Temperature, r.TopP, r.MinP, r.RepetitionPenalty = some(temperature), some(topP), some(minP), some(repetition)
	if topK > 0 {
		r.TopK = &topK
	}
	if r.RepetitionPenalty != nil {
		all := -1 // their transformers look at all tokens
		r.RepeatLastN = &all
	}
	return r
}

func (r recommendation) of(types ...string) recommendation {
	r.types = types
	return r
}

// fallback serves models of which nobody says how to draw. The whole vocabulary at temperature 1, which sampling
// without any setting would be, makes small models lose the thread: an improbable token in every few hundred is enough.
// RATIONALE: Why does a request without sampling not draw from the whole vocabulary?
var fallback = say("", 0.7, 0.95, 40, 0.05, 0).Sampling

// DefaultSampling returns how tokens are drawn where neither a request nor a setting under the model's name says so,
// and who says it: the checkpoint; what it leaves open and if it names no temperature, the makers of the base model,
// found by architecture and name; and if they name none either, Baleen.
func (c *Checkpoint) DefaultSampling() (s Sampling, source string) {
	var from []string
	add := func(more Sampling, who string) {
		if s.Temperature == nil && s.fill(more) {
			from = append(from, who)
		}
	}
	own := "generation_config.json"
	if c.gguf != nil {
		own = "the file's keys general.sampling"
	}
	add(c.Sampling(), own)
	if r, ok := recommended(c.kind, c.names()); ok {
		add(r.Sampling, "the makers of "+r.who)
	}
	add(fallback, "Baleen's default")
	return s, strings.Join(from, ", ")
}

func recommended(kind string, names []string) (recommendation, bool) {
	for _, r := range recommendations {
		if slices.Contains(r.types, kind) && (len(r.names) == 0 || anyContains(names, r.names)) {
			return r, true
		}
	}
	return recommendation{}, false
}

func anyContains(names, parts []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(n, p) })
	})
}

// fill takes over what s does not say; it reports whether that was anything.
func (s *Sampling) fill(more Sampling) bool {
	before := *s
	for _, f := range []struct{ to, from **float32 }{
		{&s.Temperature, &more.Temperature},
		{&s.TopP, &more.TopP},
		{&s.MinP, &more.MinP},
		{&s.TypicalP, &more.TypicalP},
		{&s.RepetitionPenalty, &more.RepetitionPenalty},
	} {
		if *f.to == nil {
			*f.to = *f.from
		}
	}
	for _, f := range []struct{ to, from **int }{{&s.TopK, &more.TopK}, {&s.RepeatLastN, &more.RepeatLastN}} {
		if *f.to == nil {
			*f.to = *f.from
		}
	}
	return *s != before
}

// names are what the checkpoint calls itself and its base model. Where it does not, its file and folders do: in a hub's
// cache the repository's name stands two folders above. Letters and digits only, lower case.
func (c *Checkpoint) names() []string {
	var raw []string
	if c.gguf != nil {
		for _, k := range []string{"name", "basename", "base_model.0.name"} {
			if s, ok := c.gguf.String("general." + k); ok {
				raw = append(raw, s)
			}
		}
	} else if s, ok := c.config["_name_or_path"].(string); ok {
		raw = append(raw, s)
	}
	said := len(raw) > 0
	path := c.path
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	for range 3 {
		if said {
			break
		}
		raw = append(raw, filepath.Base(path))
		path = filepath.Dir(path)
	}
	var names []string
	for _, s := range raw {
		names = append(names, strings.Map(func(r rune) rune {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				return -1
			}
			return unicode.ToLower(r)
		}, s))
	}
	return names
}
