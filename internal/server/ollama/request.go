package ollama

import (
	"encoding/base64"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// A run is a request of /api/generate or /api/chat.
type run struct {
	model  string
	stream bool
	keep   *time.Duration
	opts   options
	format chat.Format

	think    *bool
	effort   string
	conclude *bool
	now      time.Time

	logProbs bool
	topLogs  int
	debug    bool // only the prompt is wanted

	// Of generate.
	prompt, suffix, system string
	raw                    bool
	plain                  bool // the model has no template, so the prompt is a text to continue
	context                []int32
	images                 []chat.Part

	// Of chat.
	messages []chat.Message
	tools    []chat.Tool
}

func honoured[T any](name string, t fields.Type, doc string, set func(dst *T, v fields.Value) error) fields.Field[T] {
	return fields.Field[T]{Name: name, Type: t, Doc: doc, Set: set}
}

var (
	keepAliveType = fields.Number(-1e12, 1e12).Or(fields.Duration())
	thinkType     = fields.Bool().Or(fields.Enum("low", "medium", "high", "max"))
)

// commonFields are those of generate and chat.
func commonFields() []fields.Field[run] {
	return []fields.Field[run]{
		modelField(func(r *run, v fields.Value) error { r.model = v.String(); return nil }),
		honoured(
			"stream",
			fields.Bool(),
			"answer in JSON lines as the text comes, which is the default; false: one JSON object",
			func(r *run, v fields.Value) error { r.stream = v.Bool(); return nil },
		),
		honoured(
			"options",
			fields.Object("options"),
			"settings of this request",
			func(r *run, v fields.Value) (err error) { r.opts, err = decodeOptions(v); return err },
		),
		honoured(
			"keep_alive",
			keepAliveType,
			"how long the model stays loaded afterwards: seconds, or a text such as 10m; negative: for good; 0: not "+
				"at all; what an earlier request said where this one says nothing",
			func(r *run, v fields.Value) (err error) {
				r.keep, err = fields.KeepAlive(v)
				return err
			},
		),
		honoured(
			"format",
			fields.String().Or(fields.Object("")),
			`"json" or a JSON Schema that can be enforced exactly: what the answer is held to; thinking and calls are free`,
			setFormat,
		),
		honoured(
			"think",
			thinkType,
			"think before answering, which is the default of models that can; a level for models that know levels, "+
				"for others low, medium and high end the thinking after 1024, 8192 and 24576 tokens; refused for "+
				"models that do not think",
			setThink,
		),
		honoured(
			fields.Time,
			fields.String(),
			fields.TimeDoc,
			func(r *run, v fields.Value) error { return fields.SetTime(&r.now, v) },
		),
		honoured(fields.Conclude, fields.Bool(), fields.ConcludeDoc, func(r *run, v fields.Value) error {
			r.conclude = new(v.Bool())
			return nil
		}),
		honoured[run](
			"truncate",
			fields.Bool(),
			"false: refuse a prompt that does not fit. Prompts are never cut here, so true differs in nothing",
			nil,
		),
		honoured[run](
			"shift",
			fields.Bool(),
			"false: end the answer when the context is full. Contexts are never shifted here, so true differs in "+
				"nothing",
			nil,
		),
		honoured(
			"logprobs",
			fields.Bool(),
			"log probabilities of the answer's tokens",
			func(r *run, v fields.Value) error { r.logProbs = v.Bool(); return nil },
		),
		honoured(
			"top_logprobs",
			fields.Int(0, 20),
			"how many of the most probable tokens to report beside each",
			func(r *run, v fields.Value) error { r.topLogs = v.Int(); return nil },
		),
		honoured(
			"_debug_render_only",
			fields.Bool(),
			"answer with the prompt as the model would see it, and generate nothing",
			func(r *run, v fields.Value) error { r.debug = v.Bool(); return nil },
		),
	}
}

var generateTable = &fields.Table[run]{Name: "generate", IgnoreUnknown: true, Fields: append(
	commonFields(),
	honoured(
		"prompt",
		fields.String(),
		"what the user says; empty: only load the model, or unload it with keep_alive 0",
		func(r *run, v fields.Value) error { r.prompt = v.String(); return nil },
	),
	honoured(
		"suffix",
		fields.String(),
		"text behind a gap that the answer fills, for models trained for that",
		func(r *run, v fields.Value) error { r.suffix = v.String(); return nil },
	),
	honoured(
		"system",
		fields.String(),
		"system message instead of the model's own",
		func(r *run, v fields.Value) error { r.system = v.String(); return nil },
	),
	fields.Field[run]{
		Name:  "template",
		Type:  fields.String(),
		Use:   fields.Refused,
		Allow: []string{`""`},
		Doc:   "prompts are made with the model's own template; use raw to send a prompt as it is",
	},
	honoured(
		"context",
		fields.List(fields.Int(0, maxInt32)),
		"the context of an earlier answer, which this prompt goes on from",
		setContext,
	),
	honoured(
		"raw",
		fields.Bool(),
		"continue the prompt as it is, with the control tokens that are written in it",
		func(r *run, v fields.Value) error { r.raw = v.Bool(); return nil },
	),
	honoured(
		"images",
		fields.List(fields.Base64()),
		"images or sounds in base64, for models that take them",
		func(r *run, v fields.Value) (err error) { r.images, err = images(v); return err },
	),
	fields.Field[run]{
		Name:  "width",
		Type:  fields.Any(),
		Use:   fields.Refused,
		Allow: []string{"0"},
		Doc:   "this server makes no images",
	},
	fields.Field[run]{
		Name:  "height",
		Type:  fields.Any(),
		Use:   fields.Refused,
		Allow: []string{"0"},
		Doc:   "this server makes no images",
	},
	fields.Field[run]{
		Name:  "steps",
		Type:  fields.Any(),
		Use:   fields.Refused,
		Allow: []string{"0"},
		Doc:   "this server makes no images",
	},
)}

var chatTable = &fields.Table[run]{Name: "chat", IgnoreUnknown: true, Fields: append(
	commonFields(),
	honoured(
		"messages",
		fields.List(fields.Object("message")),
		"the conversation; empty: only load the model, or unload it with keep_alive 0. A last message of the "+
			"assistant is continued",
		func(r *run, v fields.Value) (err error) {
			r.messages, err = messages(v)
			return err
		},
	),
	honoured(
		"tools",
		fields.List(fields.Object("tool")),
		"functions that the model may call",
		func(r *run, v fields.Value) (err error) { r.tools, err = tools(v); return err },
	),
)}

func setFormat(r *run, v fields.Value) error {
	switch {
	case v.Kind() == "object":
		r.format = chat.Format{Kind: chat.SchemaFormat, Schema: v.Raw, Field: v.Path}
	case v.String() == "json":
		r.format = chat.Format{Kind: chat.JSONFormat, Field: v.Path}
	case v.String() != "":
		return chat.Invalidf(v.Path, `%q is no format: want "json" or a JSON Schema`, v.String())
	}
	return nil
}

func setThink(r *run, v fields.Value) error {
	on := v.Kind() == "string" || v.Bool()
	r.think = &on
	r.effort = v.String()
	return nil
}

func setContext(r *run, v fields.Value) error {
	r.context = v.Int32s()
	return nil
}

// images reads a list of images in base64.
func images(v fields.Value) ([]chat.Part, error) {
	var out []chat.Part
	for _, it := range v.Items() {
		data, err := base64.StdEncoding.DecodeString(it.String())
		if err != nil {
			return nil, chat.Invalidf(it.Path, "this is not base64")
		}
		out = append(out, chat.Part{Media: chat.Image, Data: data, Field: it.Path})
	}
	return out, nil
}

func (r *run) check() error {
	if r.raw && (r.system != "" || len(r.context) > 0) {
		field := "system"
		if r.system == "" {
			field = "context"
		}
		return chat.Invalidf(field, "raw mode does not support template, system, or context")
	}
	if r.suffix != "" && (r.system != "" || len(r.context) > 0) {
		return chat.Invalidf("suffix", "a gap is filled without system message and context: leave them out")
	}
	if r.suffix != "" && len(r.images) > 0 {
		return chat.Unsupportedf("images[0]", "a gap is filled without images: leave them out")
	}
	if r.raw && len(r.images) > 0 {
		return chat.Unsupportedf("images[0]", "a raw prompt has no place for images")
	}
	return nil
}

// request is the run as package chat has it.
func (r *run) request(spec chat.Spec) *chat.Request {
	q := &chat.Request{
		Model: spec.Name, Format: r.format, Sampling: r.opts.sampling, Stop: r.opts.stop, Context: r.opts.context,
		LogProbs: r.logProbs, Thinking: r.think, ThinkingField: "think", Effort: r.effort, KeepAlive: r.keep, Conclude: r.conclude, Now: r.now,
	}
	if r.logProbs {
		q.TopLogs = r.topLogs
	}
	if n, said := r.opts.maxTokens(); said {
		q.MaxTokens = n
		if n == 0 && spec.MaxTokens > 0 {
			q.MaxTokens = maxInt32 // the request overrules the model's own bound
		}
	}
	return q
}

// generate is the request of /api/generate.
func (r *run) generate(spec chat.Spec) *chat.Request {
	q := r.request(spec)
	if r.raw || r.suffix != "" {
		q.Raw, q.Prompt = true, r.prompt
		q.Suffix, q.SuffixField = r.suffix, "suffix"
		q.Thinking, q.Effort = nil, ""
		return q
	}
	if r.plain && len(r.context) == 0 {
		q.Raw, q.Prompt, q.PromptPlain = true, r.prompt, true
		q.Thinking, q.Effort = nil, ""
		return q
	}
	q.Before = r.context
	if r.system != "" {
		q.Messages = append(q.Messages, chat.Text(chat.System, r.system))
	}
	user := chat.Message{Role: chat.User}
	if r.prompt != "" || len(r.images) == 0 {
		user.Parts = append(user.Parts, chat.Part{Text: r.prompt})
	}
	user.Parts = append(user.Parts, r.images...)
	q.Messages = append(q.Messages, user)
	return q
}

// conversation is the request of /api/chat.
func (r *run) conversation(spec chat.Spec) *chat.Request {
	q := r.request(spec)
	q.Messages, q.Tools, q.Continue = r.messages, r.tools, true
	return q
}
