package ollama

import (
	"math"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// options are the settings of one request, or the parameters of a stored model.
type options struct {
	sampling chat.Sampling
	stop     []string
	context  int  // num_ctx; 0: not said
	predict  *int // num_predict
	noReach  bool // repeat_last_n is 0: no penalties
	greedy   bool // top_p is 0: only the most probable token is left
}

const (
	elsewhere = "how a model runs is set when the server starts, and answers do not depend on it"
	gone      = "Ollama's own server does not read it any more"
)

func option(name string, t fields.Type, doc string, set func(o *options, v fields.Value)) fields.Field[options] {
	return fields.Field[options]{Name: name, Type: t, Doc: doc, Set: func(o *options, v fields.Value) error {
		set(o, v)
		return nil
	}}
}

func ignored(name string, t fields.Type, doc string) fields.Field[options] {
	return fields.Field[options]{Name: name, Type: t, Use: fields.Ignored, Doc: doc}
}

const maxInt32 = math.MaxInt32

// whole is a whole number. Ollama cuts fractions off where clients compute one.
func whole(lo, hi float64) fields.Type { return fields.Number(lo, hi) }

// optionsTable is the object "options". Ollama's server notes unknown names in its log only, so they are ignored.
var optionsTable = &fields.Table[options]{Name: "options", IgnoreUnknown: true, Fields: []fields.Field[options]{
	option(
		"num_ctx",
		whole(0, maxInt32),
		"bound on prompt and answer together, in tokens; more than the model was trained for means all of it, as "+
			"with Ollama; more than the server gives the model is refused",
		func(o *options, v fields.Value) { o.context = v.Truncated() },
	),
	option(
		"num_predict",
		whole(-2, maxInt32),
		"most tokens of the answer; negative: until the context is full; 0: none",
		func(o *options, v fields.Value) { n := v.Truncated(); o.predict = &n },
	),
	option(
		"temperature",
		fields.Number(0, 10000),
		"0 takes the most probable token. Left out: "+fields.DefaultSampling,
		func(o *options, v fields.Value) { o.sampling.Temperature = v.Float32() },
	),
	option(
		"top_k",
		whole(-maxInt32, maxInt32),
		"draw from the k most probable tokens; 0 or less: from all; 40 where nothing is said",
		func(o *options, v fields.Value) { n := v.Truncated(); o.sampling.TopK = &n },
	),
	option(
		"top_p",
		fields.Number(0, 1e9),
		"draw from the most probable tokens that have this probability together; 1 or more: from all; 0: the most "+
			"probable one; 0.9 where nothing is said",
		func(o *options, v fields.Value) {
			o.greedy = v.Float() == 0
			o.sampling.TopP = atMostOne(v)
		},
	),
	option(
		"min_p",
		fields.Number(0, 1),
		"leave out tokens less probable than this share of the most probable one; 0: none",
		func(o *options, v fields.Value) { o.sampling.MinP = v.Float32() },
	),
	option(
		"typical_p",
		fields.Number(0, 1e9),
		"locally typical sampling; 0, and 1 or more: off",
		func(o *options, v fields.Value) { o.sampling.TypicalP = atMostOne(v) },
	),
	option(
		"seed",
		whole(-(1<<63), 1<<64),
		"any number of 64 bits; the same seed draws the same tokens; -1, or none: another one each time",
		func(o *options, v fields.Value) {
			if n := v.Truncated(); n != -1 {
				seed := uint64(n)
				o.sampling.Seed = &seed
			}
		},
	),
	{
		Name: "stop",
		Type: fields.List(fields.String().NotEmpty()),
		Doc:  "texts that end the answer and are no part of it",
		Set:  setStop,
	},
	option(
		"repeat_penalty",
		fields.Number(0, 10000),
		"divides the scores of tokens that came up lately; 1: off",
		func(o *options, v fields.Value) { o.sampling.RepetitionPenalty = v.Float32() },
	),
	option(
		"repeat_last_n",
		whole(-1, maxInt32),
		"how many tokens back repeat_penalty looks; -1: all; 0: no penalties at all; 64 where nothing is said",
		func(o *options, v fields.Value) {
			n := v.Truncated()
			o.noReach = n == 0
			o.sampling.RepeatLastN = &n
		},
	),
	option(
		"presence_penalty",
		fields.Number(-100, 100),
		"is taken once from the score of each token that the answer has",
		func(o *options, v fields.Value) { o.sampling.PresencePenalty = v.Float32() },
	),
	option(
		"frequency_penalty",
		fields.Number(-100, 100),
		"is taken from the score of a token for each time that the answer has it",
		func(o *options, v fields.Value) { o.sampling.FrequencyPenalty = v.Float32() },
	),
	{
		Name:  "mirostat",
		Type:  fields.Int(0, 2),
		Use:   fields.Refused,
		Allow: []string{"0"},
		Doc:   "Ollama dropped it; use top_p or min_p",
	},
	{
		Name:  "tfs_z",
		Type:  fields.Number(0, 1e9),
		Use:   fields.Refused,
		Allow: []string{"1", "1.0", "0", "0.0"},
		Doc:   "Ollama dropped it; use top_p or min_p",
	},
	ignored("mirostat_tau", fields.Any(), "belongs to mirostat"),
	ignored("mirostat_eta", fields.Any(), "belongs to mirostat"),
	ignored("num_keep", fields.Any(), "says what stays when a context is cut, and none is cut here"),
	ignored("num_batch", fields.Any(), elsewhere),
	ignored("num_gpu", fields.Any(), elsewhere),
	ignored("main_gpu", fields.Any(), elsewhere),
	ignored("use_mmap", fields.Any(), elsewhere),
	ignored("num_thread", fields.Any(), elsewhere),
	ignored("draft_num_predict", fields.Any(), "speculation changes no token"),
	ignored("numa", fields.Any(), gone),
	ignored("low_vram", fields.Any(), gone),
	ignored("f16_kv", fields.Any(), gone),
	ignored("logits_all", fields.Any(), gone),
	ignored("vocab_only", fields.Any(), gone),
	ignored("use_mlock", fields.Any(), gone),
	ignored("embedding_only", fields.Any(), gone),
	ignored("penalize_newline", fields.Any(), gone),
}}

func setStop(o *options, v fields.Value) error {
	for _, s := range v.Items() {
		if s.String() == "" {
			return chat.Invalidf(s.Path, "an empty stop text would end every answer at once")
		}
	}
	o.stop = v.Strings()
	return nil
}

func atMostOne(v fields.Value) *float32 {
	f := float32(min(v.Float(), 1))
	return &f
}

// decodeOptions reads an object of options, which stands at v in a request.
func decodeOptions(v fields.Value) (options, error) {
	var o options
	if err := optionsTable.DecodeValue(v, &o); err != nil {
		return o, err
	}
	o.settle()
	return o, nil
}

// settle expresses Ollama's special values in package sample's terms, where 0 means off.
func (o *options) settle() {
	if o.greedy {
		one := 1
		o.sampling.TopK = &one
	}
	if o.noReach {
		var off float32
		none := 1
		o.sampling.RepetitionPenalty, o.sampling.PresencePenalty, o.sampling.FrequencyPenalty = &off, &off, &off
		o.sampling.RepeatLastN = &none
	}
}

// maxTokens is num_predict as chat.Request has it.
func (o *options) maxTokens() (n int, said bool) {
	switch {
	case o.predict == nil:
		return 0, false
	case *o.predict == 0:
		return -1, true
	case *o.predict < 0:
		return 0, true
	}
	return *o.predict, true
}
