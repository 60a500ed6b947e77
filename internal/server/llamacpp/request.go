package llamacpp

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// A request is a request of /completion or /infill.
type request struct {
	chat    chat.Request   // what all prompts share
	prompts []chat.Request // only Prompt, PromptTokens are set; of /completion
	list    bool           // the answer is a list: there are several prompts, or a list of one
	stream  bool

	said   []string // names of samplers; nil: all
	indent int      // least indentation of lines; 0: any
	// RATIONALE: Why does llama.cpp's dialect end answers by the clock?
	most      time.Duration
	tokens    bool     // the answer has token ids
	progress  bool     // reports of the prompt come in the stream
	timings   bool     // each piece has them
	keep      []string // fields of the answer; nil: all
	gapPrompt string   // of /infill: begin of the text in the gap
}

const anyInt = 1<<53 - 1

// whole is a whole number; clients that compute one send fractions.
func whole(lo, hi float64) fields.Type { return fields.Number(lo, hi) }

func honoured(
	name string,
	t fields.Type,
	doc string,
	set func(q *request, v fields.Value) error,
) fields.Field[request] {
	return fields.Field[request]{Name: name, Type: t, Doc: doc, Set: set}
}

func sampling(
	name string,
	t fields.Type,
	doc string,
	set func(s *chat.Sampling, v fields.Value),
) fields.Field[request] {
	return honoured(name, t, doc, func(q *request, v fields.Value) error { set(&q.chat.Sampling, v); return nil })
}

func ignored(name, doc string) fields.Field[request] {
	return fields.Field[request]{Name: name, Type: fields.Any(), Use: fields.Ignored, Doc: doc}
}

func refused(name, doc string, allow ...string) fields.Field[request] {
	return fields.Field[request]{Name: name, Type: fields.Any(), Use: fields.Refused, Allow: allow, Doc: doc}
}

// samplers are the names of llama.cpp's steps of sampling that exist here.
var samplers = []string{"penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"}

func runFields() []fields.Field[request] {
	const defaults = fields.DefaultSampling
	return []fields.Field[request]{
		honoured(
			"model",
			fields.String(),
			"name of the model; left out: the server's own choice",
			func(q *request, v fields.Value) error { q.chat.Model = v.String(); return nil },
		),
		honoured(
			"n_predict",
			whole(-2, anyInt),
			"most tokens to generate; negative, and left out: until the context is full; 0: none, the prompt is "+
				"only computed",
			func(q *request, v fields.Value) error {
				return q.bound(v)
			},
		),
		honoured(
			"max_tokens",
			whole(-2, anyInt),
			"another name of n_predict",
			func(q *request, v fields.Value) error { return q.bound(v) },
		),
		honoured(
			"stream",
			fields.Bool(),
			"send the answer as it is made",
			func(q *request, v fields.Value) error { q.stream = v.Bool(); return nil },
		),
		honoured(
			"stop",
			fields.List(fields.String()),
			"texts that end the answer; they are no part of it",
			func(q *request, v fields.Value) error {
				q.chat.Stop = slices.DeleteFunc(v.Strings(), func(s string) bool { return s == "" })
				return nil
			},
		),
		honoured(
			"n_cmpl",
			whole(1, 128),
			"answers to each prompt",
			func(q *request, v fields.Value) error { q.chat.N = v.Truncated(); return nil },
		),
		sampling(
			"temperature",
			fields.Number(-1, 1e4),
			"0 or less takes the most probable token. Left out: "+defaults,
			func(s *chat.Sampling, v fields.Value) {
				t := float32(max(0, v.Float()))
				s.Temperature = &t
			},
		),
		sampling(
			"top_k",
			whole(-math.MaxInt32, math.MaxInt32),
			"draw from the k most probable tokens; 0 or less: from all",
			func(s *chat.Sampling, v fields.Value) { k := max(0, v.Truncated()); s.TopK = &k },
		),
		sampling(
			"top_p",
			fields.Number(0, 1e4),
			"draw from the most probable tokens that have this probability together; 1 or more: from all",
			func(s *chat.Sampling, v fields.Value) {
				p := float32(min(1, v.Float()))
				s.TopP = &p
			},
		),
		sampling(
			"min_p",
			fields.Number(0, 1),
			"leave out tokens less probable than this share of the most probable one",
			func(s *chat.Sampling, v fields.Value) { s.MinP = v.Float32() },
		),
		sampling(
			"typical_p",
			fields.Number(0, 1e4),
			"locally typical sampling; 1 or more: off",
			func(s *chat.Sampling, v fields.Value) {
				p := float32(min(1, v.Float()))
				s.TypicalP = &p
			},
		),
		sampling(
			"repeat_penalty",
			fields.Number(0, 1e4),
			"divides the scores of tokens that came up lately; 1: off",
			func(s *chat.Sampling, v fields.Value) { s.RepetitionPenalty = v.Float32() },
		),
		sampling(
			"repeat_last_n",
			whole(-1, math.MaxInt32),
			"how many tokens back repeat_penalty looks; -1: all; 0: it is off",
			func(s *chat.Sampling, v fields.Value) {
				n := v.Truncated()
				s.RepeatLastN = &n
			},
		),
		sampling(
			"presence_penalty",
			fields.Number(-100, 100),
			"is taken once from the score of each token that the answer has",
			func(s *chat.Sampling, v fields.Value) { s.PresencePenalty = v.Float32() },
		),
		sampling(
			"frequency_penalty",
			fields.Number(-100, 100),
			"is taken from the score of a token for each time that the answer has it",
			func(s *chat.Sampling, v fields.Value) { s.FrequencyPenalty = v.Float32() },
		),
		sampling(
			"seed",
			whole(-(1<<63), 1<<64),
			"the same seed draws the same tokens; -1 and 4294967295: another one each time",
			func(s *chat.Sampling, v fields.Value) {
				if n := v.Truncated(); n != -1 && n != math.MaxUint32 {
					seed := uint64(n)
					s.Seed = &seed
				}
			},
		),
		honoured(
			"logit_bias",
			fields.List(fields.Any()).
				Where(map[string]any{"items": biasPair}).
				Or(fields.Object("").Where(map[string]any{
					"propertyNames": map[string]any{"pattern": `^[0-9]{1,9}$`}, "additionalProperties": biasValue,
				})),
			"pairs of a token id and what is added to its score, false forbids the token; or an object of ids. "+
				"Texts in place of ids are refused",
			setBias,
		),
		honoured(
			"samplers",
			fields.List(fields.String()).Or(fields.String()),
			"steps of sampling: those that are left out are off. Their order is always the same; names that do not "+
				"exist here, and llama.cpp's letters, have no effect and are named in the header X-Baleen-Notice",
			setSamplers,
		),
		honoured(
			"n_probs",
			whole(0, 20),
			"log probability of each token, and of so many alternatives",
			func(q *request, v fields.Value) error {
				q.chat.TopLogs = v.Truncated()
				q.chat.LogProbs = q.chat.LogProbs || q.chat.TopLogs > 0
				return nil
			},
		),
		honoured("return_tokens", fields.Bool(), "the answer has token ids", func(q *request, v fields.Value) error {
			q.tokens = v.Bool()
			q.chat.LogProbs = q.chat.LogProbs || q.tokens
			return nil
		}),
		honoured(
			"n_indent",
			whole(0, 1000),
			"the answer ends before a line that is indented less",
			func(q *request, v fields.Value) error { q.indent = v.Truncated(); return nil },
		),
		honoured(
			"t_max_predict_ms",
			whole(0, 1e9),
			"the answer ends after so many milliseconds of generating, once it has a line: how long it is depends "+
				"on this machine's speed; 0: it does not",
			func(q *request, v fields.Value) error {
				q.most = time.Duration(v.Truncated()) * time.Millisecond
				return nil
			},
		),
		honoured(
			"response_fields",
			fields.List(fields.String()),
			"fields of the answer: others are left out; a/b is the field b of a",
			func(q *request, v fields.Value) error { q.keep = v.Strings(); return nil },
		),
		honoured(
			"timings_per_token",
			fields.Bool(),
			"each piece of a stream has timings",
			func(q *request, v fields.Value) error { q.timings = v.Bool(); return nil },
		),
		honoured(
			"return_progress",
			fields.Bool(),
			"a stream has pieces with prompt_progress while the prompt is computed",
			func(q *request, v fields.Value) error { q.progress = v.Bool(); return nil },
		),
		ignored("cache_prompt", "cached prefixes change no token: they are always used"),
		ignored("id_slot", "a request is no slot's: the cache finds prefixes by itself"),
		ignored("t_max_prompt_ms", "llama.cpp's own server does not read it"),
		ignored("n_keep", "says what stays when a context is cut, and none is cut here"),
		ignored("n_discard", "says what goes when a context is cut, and none is cut here"),
		ignored("n_cache_reuse", "the cache finds prefixes by itself"),
		ignored("min_keep", "no step of sampling leaves less than one token"),
		ignored("sse_ping_interval", "a silent stream gets a comment every 15 seconds"),
		ignored("mirostat_tau", "belongs to mirostat"),
		ignored("mirostat_eta", "belongs to mirostat"),
		ignored("dynatemp_exponent", "belongs to dynatemp_range"),
		ignored("dry_base", "belongs to dry_multiplier"),
		ignored("dry_allowed_length", "belongs to dry_multiplier"),
		ignored("dry_penalty_last_n", "belongs to dry_multiplier"),
		ignored("dry_sequence_breakers", "belongs to dry_multiplier"),
		ignored("xtc_threshold", "belongs to xtc_probability"),
		ignored("speculative.n_max", "speculation changes no token"),
		ignored("speculative.n_min", "speculation changes no token"),
		ignored("speculative.p_min", "speculation changes no token"),
		refused("mirostat", "use top_p or min_p", "0"),
		refused("dynatemp_range", "there is one temperature", "0", "0.0"),
		refused("dry_multiplier", "use repeat_penalty", "0", "0.0"),
		refused("xtc_probability", "use min_p", "0", "0.0"),
		refused("top_n_sigma", "use min_p", "-1", "-1.0", "0", "0.0"),
		refused("ignore_eos", "answers end where the model ends them", "false"),
		refused("post_sampling_probs", "probabilities are the model's own", "false"),
		honoured(
			"grammar",
			fields.String(),
			"a grammar in GBNF that the answer is held to",
			func(q *request, v fields.Value) error {
				if v.String() == "" {
					return nil
				}
				return q.hold(chat.Format{Kind: chat.GrammarFormat, Text: v.String(), Field: v.Path})
			},
		),
		honoured(
			"json_schema",
			fields.Object("JSON Schema"),
			"what the answer is held to; one that cannot be enforced exactly is refused",
			func(q *request, v fields.Value) error {
				return q.hold(chat.Format{Kind: chat.SchemaFormat, Schema: v.Raw, Field: v.Path})
			},
		),
		refused("lora", "there are no adapters", "[]"),
	}
}

var (
	biasValue = map[string]any{
		"anyOf": []any{
			map[string]any{"type": "number", "minimum": -1e4, "maximum": 1e4},
			map[string]any{"const": false},
		},
	}
	biasPair = map[string]any{
		"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": []any{map[string]any{"type": "integer", "minimum": 0, "maximum": math.MaxInt32}, biasValue},
	}
)

// hold sets what the answer is held to; there is room for one.
func (q *request) hold(f chat.Format) error {
	if q.chat.Format.Kind != "" {
		return chat.Invalidf(f.Field, "the answer is held to %s already: send one of them", q.chat.Format.Field)
	}
	q.chat.Format = f
	return nil
}

func (q *request) bound(v fields.Value) error {
	n := v.Truncated()
	switch {
	case n == 0:
		q.chat.MaxTokens = -1
	case n < 0:
		q.chat.MaxTokens = 0
	default:
		q.chat.MaxTokens = n
	}
	return nil
}

// setBias reads logit_bias in both of its forms.
func setBias(q *request, v fields.Value) error {
	bias := map[int32]float32{}
	add := func(id int64, x fields.Value) error {
		if id < 0 || id > math.MaxInt32 {
			return chat.Invalidf(x.Path, "%d is no token id", id)
		}
		switch {
		case x.Kind() == "boolean" && !x.Bool():
			bias[int32(id)] = float32(math.Inf(-1))
		case x.Kind() == "number" && math.Abs(x.Float()) <= 1e4:
			bias[int32(id)] = float32(x.Float())
		default:
			return chat.Invalidf(x.Path, "want a number from -10000 to 10000, or false")
		}
		return nil
	}
	q.chat.Sampling.LogitBias = bias
	if v.Kind() == "object" {
		return v.Members(func(name string, x fields.Value) error {
			id, err := strconv.ParseInt(name, 10, 32)
			if err != nil {
				return chat.Unsupportedf(
					x.Path,
					"texts in place of token ids are not supported: ask /tokenize for the ids",
				)
			}
			return add(id, x)
		})
	}
	for _, pair := range v.Items() {
		items := pair.Items()
		if len(items) != 2 {
			return chat.Invalidf(pair.Path, "want a pair of a token id and a number")
		}
		if items[0].Kind() != "number" || items[0].Float() != math.Trunc(items[0].Float()) {
			return chat.Unsupportedf(items[0].Path, "only token ids are supported: ask /tokenize for those of a text")
		}
		if err := add(int64(items[0].Truncated()), items[1]); err != nil {
			return err
		}
	}
	return nil
}

func setSamplers(q *request, v fields.Value) error {
	if v.Kind() == "string" {
		v.Ignore("letters of samplers")
		return nil
	}
	q.said = []string{}
	for _, it := range v.Items() {
		name := strings.ReplaceAll(it.String(), "-", "_")
		switch name {
		case "typical_p", "typical", "typ":
			name = "typ_p"
		case "temp":
			name = "temperature"
		}
		if !slices.Contains(samplers, name) {
			it.Ignore(it.String())
		}
		q.said = append(q.said, name)
	}
	return nil
}

// draw switches off the steps of sampling that a request leaves out.
func (q *request) draw() {
	if q.said == nil {
		return
	}
	s := &q.chat.Sampling
	one, none, nothing := float32(1), 0, float32(0)
	for name, off := range map[string]func(){
		"penalties": func() {
			s.RepetitionPenalty, s.PresencePenalty, s.FrequencyPenalty = &one, &nothing, &nothing
		},
		"top_k":       func() { s.TopK = &none },
		"typ_p":       func() { s.TypicalP = &one },
		"top_p":       func() { s.TopP = &one },
		"min_p":       func() { s.MinP = &nothing },
		"temperature": func() { s.Temperature = &one },
	} {
		if !slices.Contains(q.said, name) {
			off()
		}
	}
}

const maxPrompts = 64

var (
	idType      = fields.Int(0, math.MaxInt32)
	somePrompt  = map[string]any{"minItems": 1}
	morePrompts = map[string]any{"minItems": 1, "maxItems": maxPrompts}
)

var completionTable = &fields.Table[request]{
	Name:          "completion request",
	IgnoreUnknown: true,
	Fields: append(runFields(), fields.Field[request]{
		Name: "prompt", Required: true, Doc: "a text, token ids, or a list of those, which gets a list of answers. " +
			"Texts and ids in one prompt, and media, are refused",
		Type: fields.String().
			Or(fields.List(fields.String()).Where(morePrompts)).
			Or(fields.List(idType).Where(somePrompt)).
			Or(fields.List(fields.List(idType).Where(somePrompt)).Where(morePrompts)),
		Set: setPrompts,
	}),
}

func setPrompts(q *request, v fields.Value) error {
	if v.Kind() == "string" {
		q.prompts = []chat.Request{{Prompt: v.String()}}
		return nil
	}
	first, ok := v.First()
	if !ok {
		return chat.Invalidf(v.Path, "there is no prompt in the list")
	}
	if first.Kind() == "number" {
		q.prompts = []chat.Request{{PromptTokens: v.Int32s()}}
		return nil
	}
	items := v.Items()
	if len(items) > maxPrompts {
		return chat.Invalidf(v.Path, "%d prompts, want at most %d", len(items), maxPrompts)
	}
	q.list = true
	for _, it := range items {
		p := chat.Request{Prompt: it.String()}
		if it.Kind() == "array" {
			if p.PromptTokens = it.Int32s(); len(p.PromptTokens) == 0 {
				return chat.Invalidf(it.Path, "there are no tokens in the list")
			}
		}
		q.prompts = append(q.prompts, p)
	}
	return nil
}

var infillTable = &fields.Table[request]{Name: "infill request", IgnoreUnknown: true, Fields: append(
	runFields(),
	honoured(
		"input_prefix",
		fields.String(),
		"text before the gap",
		func(q *request, v fields.Value) error { q.chat.Prompt = v.String(); return nil },
	),
	honoured(
		"input_suffix",
		fields.String(),
		"text behind the gap",
		func(q *request, v fields.Value) error { q.chat.Suffix = v.String(); return nil },
	),
	honoured(
		"input_extra",
		fields.List(fields.Object("input extra")),
		"other files of the project, which stand before",
		func(q *request, v fields.Value) error {
			for _, it := range v.Items() {
				var f chat.SourceFile
				if err := extraTable.DecodeValue(it, &f); err != nil {
					return err
				}
				q.chat.Files = append(q.chat.Files, f)
			}
			return nil
		},
	),
	honoured(
		"prompt",
		fields.String(),
		"begin of the text in the gap",
		func(q *request, v fields.Value) error { q.gapPrompt = v.String(); return nil },
	),
)}

var extraTable = &fields.Table[chat.SourceFile]{
	Name:          "input extra",
	IgnoreUnknown: true,
	Fields: []fields.Field[chat.SourceFile]{
		{
			Name: "filename",
			Type: fields.String(),
			Doc:  "its name",
			Set:  func(f *chat.SourceFile, v fields.Value) error { f.Name = v.String(); return nil },
		},
		{
			Name: "text",
			Type: fields.String(),
			Doc:  "its text, or a piece of it",
			Set:  func(f *chat.SourceFile, v fields.Value) error { f.Text = v.String(); return nil },
		},
		{Name: "time", Type: fields.Any(), Use: fields.Ignored, Doc: "when the client took it"},
	},
}
