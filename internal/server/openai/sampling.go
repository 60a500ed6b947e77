package openai

import (
	"strconv"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// common is what requests of several routes share.
type common struct {
	req          chat.Request
	stream       bool
	includeUsage bool
	hasOptions   bool
	topLogs      int
	summary      bool // of responses: reasoning comes as the summary
}

const (
	anyLo = -(1<<53 - 1) // beyond, numbers of JSON are not exact everywhere
	anyHi = 1<<53 - 1
)

// field makes a field whose setter works on the common part of a T.
func field[T any](
	part func(*T) *common,
	name string,
	t fields.Type,
	doc string,
	set func(c *common, v fields.Value) error,
) fields.Field[T] {
	return fields.Field[T]{
		Name: name,
		Type: t,
		Doc:  doc,
		Set:  func(dst *T, v fields.Value) error { return set(part(dst), v) },
	}
}

// timeField is that of routes that render templates.
func timeField[T any](part func(*T) *common) fields.Field[T] {
	return field(
		part,
		fields.Time,
		fields.String(),
		fields.TimeDoc,
		func(c *common, v fields.Value) error { return fields.SetTime(&c.req.Now, v) },
	)
}

// concludeField is that of routes whose answers make calls.
func concludeField[T any](part func(*T) *common) fields.Field[T] {
	return field(part, fields.Conclude, fields.Bool(), fields.ConcludeDoc, func(c *common, v fields.Value) error {
		c.req.Conclude = new(v.Bool())
		return nil
	})
}

// samplingFields are those of all routes that generate.
func samplingFields[T any](part func(*T) *common) []fields.Field[T] {
	set := func(f func(s *chat.Sampling, v fields.Value)) func(*common, fields.Value) error {
		return func(c *common, v fields.Value) error { f(&c.req.Sampling, v); return nil }
	}
	return []fields.Field[T]{
		field(
			part,
			"temperature",
			fields.Number(0, 2),
			"0 takes the most probable token, higher is more varied. Left out: "+fields.DefaultSampling,
			set(func(s *chat.Sampling, v fields.Value) { s.Temperature = v.Float32() }),
		),
		field(
			part,
			"top_p",
			fields.Number(0, 1),
			"choose among the most probable tokens that reach this probability together",
			set(func(s *chat.Sampling, v fields.Value) { s.TopP = v.Float32() }),
		),
		field(
			part,
			"keep_alive",
			fields.Duration().Or(fields.Number(anyLo, anyHi)),
			"not OpenAI's: how long the model stays loaded afterwards, in seconds or as 5m; negative is for good",
			func(c *common, v fields.Value) (err error) { c.req.KeepAlive, err = fields.KeepAlive(v); return err },
		),
		field(
			part,
			"cache_salt",
			fields.String().NotEmpty(),
			"not OpenAI's: prompts share cached prefixes only under the same salt. Prompts of different API keys "+
				"share none in any case, unless the server was started with --share-cache",
			func(c *common, v fields.Value) error {
				if c.req.CacheSalt = v.String(); c.req.CacheSalt == "" {
					return chat.Invalidf(v.Path, "an empty salt keeps nothing apart: leave it out")
				}
				return nil
			},
		),
		field(part, "top_k", fields.Int(-1, anyHi), "not OpenAI's: choose among the k most probable tokens",
			set(func(s *chat.Sampling, v fields.Value) { n := v.Int(); s.TopK = &n })),
		field(
			part,
			"min_p",
			fields.Number(0, 1),
			"not OpenAI's: drop tokens with less than p times the best one's probability",
			set(func(s *chat.Sampling, v fields.Value) { s.MinP = v.Float32() }),
		),
		field(part, "typical_p", fields.Number(0, 1), "not OpenAI's: locally typical sampling",
			set(func(s *chat.Sampling, v fields.Value) { s.TypicalP = v.Float32() })),
		field(
			part,
			"repetition_penalty",
			fields.Number(0.01, 100),
			"not OpenAI's: make recent tokens less probable; 1 is off",
			set(func(s *chat.Sampling, v fields.Value) { s.RepetitionPenalty = v.Float32() }),
		),
	}
}

// classicFields are those of the completion routes.
func classicFields[T any](part func(*T) *common) []fields.Field[T] {
	return append(
		append(samplingFields(part), formatFields(part)...),
		field(
			part,
			"frequency_penalty",
			fields.Number(-2, 2),
			"subtracted from a token's logit for each time that it was generated",
			func(c *common, v fields.Value) error { c.req.Sampling.FrequencyPenalty = v.Float32(); return nil },
		),
		field(
			part,
			"presence_penalty",
			fields.Number(-2, 2),
			"subtracted once from the logit of each token generated so far",
			func(c *common, v fields.Value) error { c.req.Sampling.PresencePenalty = v.Float32(); return nil },
		),
		field(part, "seed", fields.Int(-(1<<63), 1<<63), "the same seed gives the same answer",
			func(c *common, v fields.Value) error { n := uint64(v.Int()); c.req.Sampling.Seed = &n; return nil }),
		field(part, "logit_bias", biasType, "added to the logits of these tokens; -100 forbids one", setLogitBias),
		field(
			part,
			"stop",
			fields.String().NotEmpty().Or(fields.List(fields.String().NotEmpty()).Len(0, 4)),
			"texts that end the answer; they are no part of it. They do not cut reasoning or tool calls",
			func(c *common, v fields.Value) error {
				c.req.Stop = v.Strings()
				for _, s := range c.req.Stop {
					if s == "" {
						return chat.Invalidf(v.Path, "an empty stop string would end every answer at once")
					}
				}
				return nil
			},
		),
		field(part, "n", fields.Int(1, 128), "answers; each draws with a seed of its own",
			func(c *common, v fields.Value) error { c.req.N = v.Int(); return nil }),
		field(
			part,
			"stream",
			fields.Bool(),
			"send the answer as it is made",
			func(c *common, v fields.Value) error { c.stream = v.Bool(); return nil },
		),
		field(
			part,
			"stream_options",
			fields.Object("stream_options"),
			"of a stream",
			func(c *common, v fields.Value) error {
				c.hasOptions = true
				return streamOptionsTable.DecodeValue(v, c)
			},
		),
		fields.Field[T]{
			Name: "user",
			Type: fields.String(),
			Use:  fields.Ignored,
			Doc:  "names an end user to OpenAI; there is nobody to tell",
		},
	)
}

var biasType = fields.Object("map of token ids to numbers from -100 to 100").Where(map[string]any{
	"propertyNames":        map[string]any{"pattern": `^[0-9]{1,9}$`},
	"additionalProperties": map[string]any{"type": "number", "minimum": -100, "maximum": 100},
})

// streamOnly says that stream_options need stream.
var streamOnly = needs("stream_options", map[string]any{"type": "null"}, "stream", map[string]any{"const": true})

// needs says that a request must have another field as given, unless its field is as given. That both are said by one
// choice lets programs that make up requests choose instead of try.
func needs(field string, unless any, other string, must any) map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"properties": map[string]any{field: unless}},
		map[string]any{"required": []string{other}, "properties": map[string]any{other: must}},
	}}
}

var streamOptionsTable = &fields.Table[common]{Name: "stream_options", Fields: []fields.Field[common]{
	{
		Name: "include_usage",
		Type: fields.Bool(),
		Doc:  "the last chunk before [DONE] has the counts",
		Set: func(c *common, v fields.Value) error {
			c.includeUsage = v.Bool()
			return nil
		},
	},
	{
		Name: "include_obfuscation",
		Type: fields.Bool(),
		Use:  fields.Ignored,
		Doc:  "padding against eavesdroppers; never sent",
	},
}}

func setLogitBias(c *common, v fields.Value) error {
	bias := map[int32]float32{}
	err := v.Members(func(name string, x fields.Value) error {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || id < 0 {
			return chat.Invalidf(x.Path, "%q is no token id", name)
		}
		if x.Kind() != "number" || x.Float() < -100 || x.Float() > 100 {
			return chat.Invalidf(x.Path, "want a number from -100 to 100")
		}
		bias[int32(id)] = float32(x.Float())
		if x.Float() == -100 {
			bias[int32(id)] = negInf
		}
		return nil
	})
	c.req.Sampling.LogitBias = bias
	return err
}

// check looks at fields that depend on each other.
func (c *common) check() error {
	if c.hasOptions && !c.stream {
		return chat.Invalidf("stream_options", "only allowed where stream is true")
	}
	return nil
}
