package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// POST /baleen/run and /baleen/count are what the terminal asks a server that has the model loaded. They take package
// chat's request nearly as it is, so that an answer is the same in tokens, words and counts as that of the terminal's
// own process.

// A RunBody is the body of POST /baleen/run.
type RunBody struct {
	Model    string       `json:"model"`
	Messages []RunMessage `json:"messages,omitempty"`
	Prompt   string       `json:"prompt,omitempty"` // with Raw
	Raw      bool         `json:"raw,omitempty"`
	Said     []int32      `json:"said,omitempty"`

	Temperature       *float32 `json:"temperature,omitempty"`
	TopP              *float32 `json:"top_p,omitempty"`
	MinP              *float32 `json:"min_p,omitempty"`
	TypicalP          *float32 `json:"typical_p,omitempty"`
	RepetitionPenalty *float32 `json:"repetition_penalty,omitempty"`
	PresencePenalty   *float32 `json:"presence_penalty,omitempty"`
	FrequencyPenalty  *float32 `json:"frequency_penalty,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	RepeatLastN       *int     `json:"repeat_last_n,omitempty"`
	Seed              *uint64  `json:"seed,omitempty"`
	Stop              []string `json:"stop,omitempty"`

	MaxTokens int      `json:"max_tokens,omitempty"`
	Thinking  *bool    `json:"thinking,omitempty"`
	Effort    string   `json:"effort,omitempty"`
	KeepAlive *float64 `json:"keep_alive,omitempty"` // seconds, negative for good

	Format  string          `json:"format,omitempty"` // a kind of chat's formats
	Schema  json.RawMessage `json:"schema,omitempty"` // with format schema
	Grammar string          `json:"grammar,omitempty"`
}

// A RunMessage is a turn of a conversation.
type RunMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A RunLine is a line of the answer. The last one has Done.
type RunLine struct {
	Text      string  `json:"text,omitempty"`
	Reasoning string  `json:"reasoning,omitempty"`
	Done      *RunEnd `json:"done,omitempty"`
}

// A RunEnd is what an answer took. Times are in nanoseconds.
type RunEnd struct {
	Finish  string        `json:"finish"`           // "stop", "stop sequence", "length" or "error"
	Tokens  []int32       `json:"tokens"`           // of the answer, reasoning included
	Said    []int32       `json:"said"`             // prompt and answer, for the next request of the conversation
	Context int           `json:"context"`          // tokens that prompt and answer can have together
	Sampled bool          `json:"sampled"`          // tokens were drawn: the seed matters
	Seed    uint64        `json:"seed"`             // below 2^53 where it was not given
	Error   *ownErrorBody `json:"error,omitempty"`  // the answer ended with it
	Prompt  int           `json:"prompt_tokens"`    // of these are
	Cached  int           `json:"cached_tokens"`    // in the cache
	Answer  int           `json:"generated_tokens"` // of these are
	Thought int           `json:"reasoning_tokens"` // of reasoning
	Queue   time.Duration `json:"queue_ns"`
	Prefill time.Duration `json:"prefill_ns"`
	First   time.Duration `json:"first_ns"`
	Decode  time.Duration `json:"decode_ns"`
	Total   time.Duration `json:"total_ns"`
}

// A RunCount is the answer of POST /baleen/count.
type RunCount struct {
	Tokens int `json:"tokens"`
}

func runField[T any](
	name string,
	t fields.Type,
	doc string,
	dst func(*RunBody) *T,
	get func(fields.Value) T,
) fields.Field[RunBody] {
	return fields.Field[RunBody]{Name: name, Type: t, Doc: doc, Set: func(b *RunBody, v fields.Value) error {
		*dst(b) = get(v)
		return nil
	}}
}

var runMessageTable = &fields.Table[RunMessage]{Name: "message", Fields: []fields.Field[RunMessage]{
	{
		Name:     "role",
		Type:     fields.Enum(chat.System, chat.User, chat.Assistant),
		Required: true,
		Doc:      "system, user or assistant",
		Set:      func(m *RunMessage, v fields.Value) error { m.Role = v.String(); return nil },
	},
	{
		Name:     "content",
		Type:     fields.String(),
		Required: true,
		Doc:      "its text",
		Set:      func(m *RunMessage, v fields.Value) error { m.Content = v.String(); return nil },
	},
}}

var runTable = &fields.Table[RunBody]{Name: "run", Where: []map[string]any{{"anyOf": []any{
	map[string]any{
		"required":   []string{"raw"},
		"properties": map[string]any{"raw": map[string]any{"const": true}, "messages": map[string]any{"maxItems": 0}},
	},
	map[string]any{
		"required": []string{"messages"},
		"properties": map[string]any{
			"raw": map[string]any{
				"const": false,
			}, "messages": map[string]any{"minItems": 1}, "prompt": map[string]any{"maxLength": 0},
		},
	},
}}}, Fields: []fields.Field[RunBody]{
	{
		Name:     "model",
		Type:     fields.String(),
		Required: true,
		Doc:      "name of the model; empty: the server's own choice",
		Set:      func(b *RunBody, v fields.Value) error { b.Model = v.String(); return nil },
	},
	{
		Name: "messages",
		Type: fields.List(fields.Object("message")),
		Doc:  "the conversation; the last message is the user's",
		Set: func(b *RunBody, v fields.Value) error {
			for _, it := range v.Items() {
				var m RunMessage
				if err := runMessageTable.DecodeValue(it, &m); err != nil {
					return err
				}
				b.Messages = append(b.Messages, m)
			}
			return nil
		},
	},
	runField(
		"prompt",
		fields.String(),
		"with raw: the text to be continued",
		func(b *RunBody) *string { return &b.Prompt },
		fields.Value.String,
	),
	runField(
		"raw",
		fields.Bool(),
		"continue prompt as plain text, without the chat template",
		func(b *RunBody) *bool { return &b.Raw },
		fields.Value.Bool,
	),
	runField(
		"said",
		fields.List(fields.Int(0, maxID)),
		"what an earlier answer of this conversation gave as said: where its text stands in the prompt, it is sent "+
			"in these tokens",
		func(b *RunBody) *[]int32 { return &b.Said },
		fields.Value.Int32s,
	),
	runField(
		"temperature",
		fields.Number(0, 10000),
		"0 takes the most probable token. Left out: "+fields.DefaultSampling,
		func(b *RunBody) **float32 { return &b.Temperature },
		fields.Value.Float32,
	),
	runField(
		"top_k",
		fields.Int(0, maxID),
		"draw from the k most probable tokens; 0: from all",
		func(b *RunBody) **int { return &b.TopK },
		intOf,
	),
	runField(
		"top_p",
		fields.Number(0, 1),
		"draw from the most probable tokens that have this probability together",
		func(b *RunBody) **float32 { return &b.TopP },
		fields.Value.Float32,
	),
	runField(
		"min_p",
		fields.Number(0, 1),
		"leave out tokens less probable than this share of the most probable one",
		func(b *RunBody) **float32 { return &b.MinP },
		fields.Value.Float32,
	),
	runField(
		"typical_p",
		fields.Number(0, 1),
		"locally typical sampling",
		func(b *RunBody) **float32 { return &b.TypicalP },
		fields.Value.Float32,
	),
	runField(
		"repetition_penalty",
		fields.Number(0, 10000),
		"divides the scores of tokens that came up lately; 1: off",
		func(b *RunBody) **float32 { return &b.RepetitionPenalty },
		fields.Value.Float32,
	),
	runField(
		"presence_penalty",
		fields.Number(-100, 100),
		"is taken once from the score of each token that the answer has",
		func(b *RunBody) **float32 { return &b.PresencePenalty },
		fields.Value.Float32,
	),
	runField(
		"frequency_penalty",
		fields.Number(-100, 100),
		"is taken from the score of a token for each time that the answer has it",
		func(b *RunBody) **float32 { return &b.FrequencyPenalty },
		fields.Value.Float32,
	),
	runField(
		"repeat_last_n",
		fields.Int(-1, maxID),
		"how many tokens back repetition_penalty looks; -1: all",
		func(b *RunBody) **int { return &b.RepeatLastN },
		intOf,
	),
	runField(
		"seed",
		fields.Number(0, 1<<64),
		"a whole number of 64 bits; the same seed draws the same tokens",
		func(b *RunBody) **uint64 { return &b.Seed },
		func(v fields.Value) *uint64 { return new(uint64(v.Truncated())) },
	),
	runField(
		"stop",
		fields.List(fields.String().NotEmpty()),
		"texts that end the answer and are no part of it",
		func(b *RunBody) *[]string { return &b.Stop },
		fields.Value.Strings,
	),
	runField(
		"max_tokens",
		fields.Int(0, maxID),
		"most tokens of the answer; 0: until the context is full",
		func(b *RunBody) *int { return &b.MaxTokens },
		fields.Value.Int,
	),
	runField(
		"thinking",
		fields.Bool(),
		"reasoning on or off; left out: as the template has it",
		func(b *RunBody) **bool { return &b.Thinking },
		func(v fields.Value) *bool { return new(v.Bool()) },
	),
	runField(
		"effort",
		fields.Enum(chat.Efforts...),
		"how much to reason",
		func(b *RunBody) *string { return &b.Effort },
		fields.Value.String,
	),
	runField(
		"keep_alive",
		fields.Number(-1, 1e9),
		"seconds that the model stays loaded afterwards; negative: for good",
		func(b *RunBody) **float64 { return &b.KeepAlive },
		func(v fields.Value) *float64 { return new(v.Float()) },
	), runField(
		"format",
		fields.Enum(chat.JSONFormat, chat.SchemaFormat, chat.GrammarFormat, chat.LarkFormat),
		"what the answer is held to: any JSON object, schema, or grammar in GBNF or Lark's notation",
		func(b *RunBody) *string { return &b.Format },
		fields.Value.String,
	),
	runField(
		"schema",
		fields.Object(""),
		"with format schema: a JSON Schema",
		func(b *RunBody) *json.RawMessage { return &b.Schema },
		func(v fields.Value) json.RawMessage { return v.Raw },
	),
	runField(
		"grammar",
		fields.String(),
		"with format grammar or lark: its text",
		func(b *RunBody) *string { return &b.Grammar },
		fields.Value.String,
	),
}}

const maxID = 1<<31 - 1

func intOf(v fields.Value) *int { return new(v.Int()) }

// request is the body as package chat has it.
func (b *RunBody) request() *chat.Request {
	q := &chat.Request{
		Model: b.Model, Raw: b.Raw, Prompt: b.Prompt, Said: b.Said, Stop: b.Stop, MaxTokens: b.MaxTokens, Thinking: b.Thinking,
		ThinkingField: "thinking", Effort: b.Effort,
		Sampling: chat.Sampling{
			Temperature: b.Temperature, TopP: b.TopP, MinP: b.MinP, TypicalP: b.TypicalP, RepetitionPenalty: b.RepetitionPenalty,
			PresencePenalty: b.PresencePenalty, FrequencyPenalty: b.FrequencyPenalty, TopK: b.TopK, RepeatLastN: b.RepeatLastN, Seed: b.Seed,
		},
	}
	if b.Format != "" {
		q.Format = chat.Format{Kind: b.Format, Schema: b.Schema, Text: b.Grammar, Field: "format"}
	}
	for _, m := range b.Messages {
		q.Messages = append(q.Messages, chat.Text(m.Role, m.Content))
	}
	if b.KeepAlive != nil {
		d := time.Duration(-1)
		if *b.KeepAlive >= 0 {
			d = time.Duration(*b.KeepAlive * float64(time.Second))
		}
		q.KeepAlive = &d
	}
	return q
}

// ask reads the body of a run.
func (o *own) ask(r *http.Request) (*chat.Request, error) {
	var b RunBody
	if err := Decode(r, runTable, &b); err != nil {
		return nil, err
	}
	switch {
	case b.Raw && len(b.Messages) > 0:
		return nil, chat.Invalidf("messages", "a text that is continued has no messages")
	case !b.Raw && len(b.Messages) == 0:
		return nil, chat.MissingField("messages")
	case len(b.Schema) > 0 != (b.Format == chat.SchemaFormat):
		return nil, chat.Invalidf("schema", "it stands with format schema, and only there")
	case b.Grammar != "" != (b.Format == chat.GrammarFormat || b.Format == chat.LarkFormat):
		return nil, chat.Invalidf("grammar", "it stands with format grammar or lark, and only there")
	case !b.Raw && b.Prompt != "":
		return nil, chat.Invalidf("prompt", "it has an effect with raw alone")
	}
	return b.request(), nil
}

func (o *own) run(w http.ResponseWriter, r *http.Request) error {
	q, err := o.ask(r)
	if err != nil {
		return err
	}
	st, err := o.s.o.Chat.Run(r.Context(), q)
	if err != nil {
		return err
	}
	defer st.Close()
	out := o.s.env.NewLines(w)
	var end RunEnd
	for d := range st.All() {
		switch d.Kind {
		case chat.TextDelta, chat.ReasoningDelta:
			if d.Text == "" {
				continue
			}
			line := RunLine{Text: d.Text}
			if d.Kind == chat.ReasoningDelta {
				line = RunLine{Reasoning: d.Text}
			}
			if err := out.Line(line); err != nil {
				return nil //nolint:nilerr // the client is gone
			}
		case chat.Finish:
			end.Finish = d.Reason.String()
		case chat.Done:
			u := d.Usage
			end.Prompt, end.Cached, end.Answer, end.Thought, end.Seed = u.Prompt, u.Cached, u.Generated, u.Reasoning, u.Seed
			end.Queue, end.Prefill, end.First, end.Decode, end.Total = u.Queue, u.Prefill, u.First, u.Decode, u.Total
			if d.Err != nil {
				end.Finish, end.Error = "error", bodyOf(d.Err)
			}
		}
	}
	end.Tokens, end.Said, end.Context, end.Sampled = st.AnswerTokens(), st.Tokens(), st.Context(), st.Sampling().Temperature > 0
	_ = out.Line(RunLine{Done: &end}) // a client that is gone needs no end
	return nil
}

func (o *own) count(w http.ResponseWriter, r *http.Request) error {
	q, err := o.ask(r)
	if err != nil {
		return err
	}
	n, err := o.s.o.Chat.Count(r.Context(), q)
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, RunCount{n})
}
