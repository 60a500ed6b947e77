package openai

import (
	"net/http"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// chatRequest is a request for chat completions.
type chatRequest struct {
	common
	choice fields.Value // tool_choice, read when the tools are known
}

func chatPart(r *chatRequest) *common { return &r.common }

func chatObjects() []fields.ObjectTable {
	return []fields.ObjectTable{
		messageTable,
		partTable,
		callTable,
		functionCallTable,
		toolTable,
		functionTable,
		templateTable,
		chatChoices,
		chatFunctionChoice,
		chatAllowedChoice,
		chatAllowed,
		chatAllowedTool,
		choiceName,
	}
}

var chatTable = &fields.Table[chatRequest]{Name: "chat completion request", Where: []map[string]any{
	streamOnly, choiceNeedsTools,
	needs("top_logprobs", map[string]any{"enum": []any{nil, 0}}, "logprobs", map[string]any{"const": true}),
}, Fields: append(
	classicFields(chatPart),
	field(
		chatPart,
		"model",
		fields.String(),
		"name of the model",
		func(c *common, v fields.Value) error { c.req.Model = v.String(); return nil },
	),
	fields.Field[chatRequest]{
		Name: "messages", Type: fields.List(fields.Object("message")).Len(1, 0), Required: true, Doc: "the conversation",
		Set: func(r *chatRequest, v fields.Value) (err error) { r.req.Messages, err = messages(v); return err },
	},
	field(
		chatPart,
		"max_completion_tokens",
		bounds,
		"most tokens to generate, reasoning included; until the context is full where it is left out or -1",
		setBound,
	),
	field(
		chatPart,
		"max_tokens",
		bounds,
		"older name of max_completion_tokens; the smaller of the two counts",
		setBound,
	),
	field(
		chatPart,
		"logprobs",
		fields.Bool(),
		"log probability of each token of the content",
		func(c *common, v fields.Value) error { c.req.LogProbs = v.Bool(); return nil },
	),
	field(
		chatPart,
		"top_logprobs",
		fields.Int(0, 20),
		"alternatives beside each token; needs logprobs",
		func(c *common, v fields.Value) error {
			c.topLogs = v.Int()
			return nil
		},
	),
	fields.Field[chatRequest]{
		Name: "tools", Type: fields.List(fields.Object("tool")).Len(0, 512), Doc: "functions that the model may call",
		Set: func(r *chatRequest, v fields.Value) (err error) { r.req.Tools, err = tools(v, toolTable); return err },
	},
	fields.Field[chatRequest]{
		Name: "tool_choice", Type: choiceWords.Or(fields.Object("tool choice")), Doc: "none, auto, required, a " +
			"function, or allowed tools",
		Set: func(r *chatRequest, v fields.Value) error { r.choice = v; return nil },
	},
	field(
		chatPart,
		"parallel_tool_calls",
		fields.Bool(),
		"false allows at most one call in an answer",
		func(c *common, v fields.Value) error { c.req.SingleCall = !v.Bool(); return nil },
	),
	concludeField(chatPart),
	timeField(chatPart),
	field(chatPart, "reasoning_effort", efforts, effortDoc, func(c *common, v fields.Value) error {
		c.req.Effort = v.String()
		return nil
	}),
	field(
		chatPart,
		"response_format",
		formatType("response format"),
		"what the answer is held to: json_object, or json_schema with a schema that can be enforced exactly; "+
			"reasoning and calls are free",
		func(c *common, v fields.Value) error {
			return setFormat(&c.req, v)
		},
	),
	field(
		chatPart,
		"chat_template_kwargs",
		fields.Object("chat_template_kwargs"),
		"not OpenAI's: variables of the template",
		func(c *common, v fields.Value) error {
			return templateTable.DecodeValue(v, c)
		},
	),
	field(
		chatPart,
		"enable_thinking",
		fields.Bool(),
		"not OpenAI's: reasoning on or off, for models that have both",
		setThinking,
	),
	field(
		chatPart,
		"thinking_budget",
		fields.Int(1, anyHi),
		"not OpenAI's: tokens of reasoning after which it is ended and the answer begins",
		func(c *common, v fields.Value) error {
			c.req.ThinkingBudget = v.Int()
			return nil
		},
	),
	fields.Field[chatRequest]{
		Name:  "store",
		Type:  fields.Bool(),
		Use:   fields.Refused,
		Allow: []string{"false"},
		Doc:   "chat completions are not kept; responses are",
	},
	fields.Field[chatRequest]{
		Name: "metadata",
		Type: fields.Object("metadata"),
		Use:  fields.Ignored,
		Doc:  "belongs to completions that are kept",
	},
	fields.Field[chatRequest]{
		Name:  "modalities",
		Type:  fields.List(fields.String()),
		Use:   fields.Refused,
		Allow: []string{`["text"]`},
		Doc:   "the models answer with text",
	},
	fields.Field[chatRequest]{
		Name: "audio",
		Type: fields.Object("audio"),
		Use:  fields.Refused,
		Doc:  "the models answer with text",
	},
	fields.Field[chatRequest]{
		Name: "moderation",
		Type: fields.Object("moderation"),
		Use:  fields.Refused,
		Doc:  "there is no moderation model",
	},
	fields.Field[chatRequest]{
		Name: "prediction",
		Type: fields.Object("prediction"),
		Use:  fields.Ignored,
		Doc:  "changes OpenAI's speed and never the answer",
	},
	fields.Field[chatRequest]{
		Name: "prompt_cache_key",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "the cache finds prefixes by itself",
	},
	fields.Field[chatRequest]{
		Name: "prompt_cache_options",
		Type: fields.Object("prompt_cache_options"),
		Use:  fields.Ignored,
		Doc:  "the cache finds prefixes by itself",
	},
	fields.Field[chatRequest]{
		Name: "prompt_cache_retention",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "the cache keeps what fits",
	},
	fields.Field[chatRequest]{
		Name: "safety_identifier",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "names an end user to OpenAI; there is nobody to tell",
	},
	fields.Field[chatRequest]{
		Name: "service_tier",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "there is one tier",
	},
	fields.Field[chatRequest]{
		Name:  "verbosity",
		Type:  fields.String(),
		Use:   fields.Refused,
		Allow: []string{`"medium"`},
		Doc:   "no model here was trained for it: ask in the prompt",
	},
	fields.Field[chatRequest]{
		Name: "web_search_options",
		Type: fields.Object("web_search_options"),
		Use:  fields.Refused,
		Doc:  "the server fetches nothing",
	},
	fields.Field[chatRequest]{Name: "functions", Type: fields.Any(), Use: fields.Refused, Doc: "deprecated: use tools"},
	fields.Field[chatRequest]{
		Name: "function_call",
		Type: fields.Any(),
		Use:  fields.Refused,
		Doc:  "deprecated: use tool_choice",
	},
)}

// bounds are those of generated tokens. -1 is not OpenAI's: clients of llama.cpp and LM Studio mean by it that there is
// none.
var bounds = fields.Int(-1, anyHi).Where(map[string]any{"not": map[string]any{"const": 0}})

func setBound(c *common, v fields.Value) error {
	switch n := v.Int(); {
	case n == 0:
		return chat.Invalidf(
			v.Path,
			"0 is less than 1: an answer has a token at least; leave it out, or send -1, to set no bound",
		)
	case n > 0 && (c.req.MaxTokens == 0 || n < c.req.MaxTokens):
		c.req.MaxTokens = n
	}
	return nil
}

var templateTable = &fields.Table[common]{Name: "chat_template_kwargs", Fields: []fields.Field[common]{
	{
		Name: "enable_thinking",
		Type: fields.Bool(),
		Doc:  "reasoning on or off, for models that have both",
		Set:  setThinking,
	},
	{Name: "thinking", Type: fields.Bool(), Doc: "reasoning on or off, for models that have both", Set: setThinking},
	{
		Name: "reasoning_effort",
		Type: efforts,
		Doc:  "as the field of that name",
		Set:  func(c *common, v fields.Value) error { c.req.Effort = v.String(); return nil },
	},
}}

func setThinking(c *common, v fields.Value) error {
	on := v.Bool()
	c.req.Thinking = &on
	return nil
}

func (d *dialect) decodeChat(r *http.Request) (*chatRequest, error) {
	var q chatRequest
	if err := server.Decode(r, chatTable, &q); err != nil {
		return nil, err
	}
	if err := d.known(r, q.req.Model); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.topLogs > 0 && !q.req.LogProbs {
		return nil, chat.Invalidf("top_logprobs", "needs logprobs to be true")
	}
	q.req.TopLogs = q.topLogs
	if q.choice.Raw != nil {
		if err := setChoice(&q.req, q.choice); err != nil {
			return nil, err
		}
	}
	return &q, nil
}

func (d *dialect) chat(w http.ResponseWriter, r *http.Request) error {
	q, err := d.decodeChat(r)
	if err != nil {
		return err
	}
	out := d.env.NewEvents(w)
	if q.stream {
		q.req.Progress = server.WantsProgress(r)
		stop := keepAlive(out)
		defer stop()
	}
	s, err := d.env.Chat.Run(r.Context(), &q.req)
	if err != nil {
		if !out.Withdraw() { // a comment was sent while the model was loaded
			return endStream(out, chat.AsError(err))
		}
		return err
	}
	defer s.Close()
	if q.stream {
		return d.streamChat(out, q, s)
	}
	return d.wholeChat(w, q, s)
}

// endStream sends an error and the end into a stream that was begun.
func endStream(out *server.Writer, e *chat.Error) error {
	if err := out.Event("", errorAnswer{errorOf(e)}); err != nil {
		return err
	}
	if err := out.Data(string(done)); err != nil {
		return err
	}
	return e
}

type completionHead struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

func (d *dialect) head(prefix, object, model string) completionHead {
	return completionHead{ID: chat.NewID(prefix), Object: object, Created: d.env.Now().Unix(), Model: model}
}

type functionOut struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type callOut struct {
	Index    *int        `json:"index,omitempty"`
	ID       string      `json:"id,omitempty"`
	Type     string      `json:"type,omitempty"`
	Function functionOut `json:"function"`
}

type messageOut struct {
	Role        string    `json:"role"`
	Content     *string   `json:"content"`
	Refusal     *string   `json:"refusal"`
	Annotations []any     `json:"annotations"`
	Reasoning   string    `json:"reasoning_content,omitempty"`
	Calls       []callOut `json:"tool_calls,omitempty"`
}

type logprobsOut struct {
	Content []tokenOut `json:"content"`
	Refusal *struct{}  `json:"refusal"` // there is none
}

type tokenOut struct {
	Token   string      `json:"token"`
	LogProb float32     `json:"logprob"`
	Bytes   []int       `json:"bytes"`
	Top     *[]tokenOut `json:"top_logprobs,omitempty"`
}

func tokenOf(t chat.TokenLog, withTop bool) tokenOut {
	o := tokenOut{Token: strings.ToValidUTF8(t.Text, "\uFFFD"), LogProb: t.LogProb, Bytes: []int{}}
	for _, b := range []byte(t.Text) {
		o.Bytes = append(o.Bytes, int(b))
	}
	if withTop {
		top := []tokenOut{}
		for _, x := range t.Top {
			top = append(top, tokenOf(x, false))
		}
		o.Top = &top
	}
	return o
}

func tokensOf(ts []chat.TokenLog) []tokenOut {
	out := []tokenOut{}
	for _, t := range ts {
		out = append(out, tokenOf(t, true))
	}
	return out
}

type choiceOut struct {
	Index    int          `json:"index"`
	Message  messageOut   `json:"message"`
	LogProbs *logprobsOut `json:"logprobs"`
	Finish   string       `json:"finish_reason"`
}

type chatAnswer struct {
	completionHead
	Choices []choiceOut `json:"choices"`
	Usage   *usage      `json:"usage"`
	Tier    string      `json:"service_tier"`
	Print   string      `json:"system_fingerprint"`
}

// wholeChat answers in one piece.
func (d *dialect) wholeChat(w http.ResponseWriter, q *chatRequest, s *chat.Stream) error {
	n := max(q.req.N, 1)
	choices := make([]choiceOut, n)
	text := make([]strings.Builder, n)
	for i := range choices {
		choices[i].Index = i
		if q.req.LogProbs {
			choices[i].LogProbs = &logprobsOut{Content: []tokenOut{}}
		}
	}
	for delta := range s.All() {
		c := &choices[delta.Choice]
		switch delta.Kind {
		case chat.TextDelta:
			text[delta.Choice].WriteString(delta.Text)
			if c.LogProbs != nil {
				c.LogProbs.Content = append(c.LogProbs.Content, tokensOf(delta.Tokens)...)
			}
		case chat.ReasoningDelta:
			c.Message.Reasoning += delta.Text
		case chat.CallEnd:
			c.Message.Calls = append(
				c.Message.Calls,
				callOut{
					ID:       delta.Call.ID,
					Type:     "function",
					Function: functionOut{delta.Call.Name, delta.Call.Arguments},
				},
			)
		case chat.Finish:
			c.Finish = finishReason(delta.Reason)
		case chat.Done:
			if delta.Err != nil {
				return delta.Err
			}
			for i := range choices {
				choices[i].Message.fill(text[i].String())
			}
			return server.WriteJSON(
				w,
				http.StatusOK,
				chatAnswer{
					d.head("chatcmpl-", "chat.completion", s.Model()),
					choices,
					usageOf(delta.Usage),
					"default",
					d.fingerprint(),
				},
			)
		}
	}
	return &chat.Error{Kind: chat.Internal}
}

// fingerprint changes with the program, which is all that changes answers beside the request.
func (d *dialect) fingerprint() string { return "fp_baleen_" + d.env.Version }

func (m *messageOut) fill(text string) {
	m.Role, m.Annotations = "assistant", []any{}
	if text != "" || len(m.Calls) == 0 {
		m.Content = &text
	}
}

type deltaOut struct {
	Role      string    `json:"role,omitempty"`
	Content   *string   `json:"content,omitempty"`
	Reasoning string    `json:"reasoning_content,omitempty"`
	Calls     []callOut `json:"tool_calls,omitempty"`
}

type chunkChoice struct {
	Index    int          `json:"index"`
	Delta    deltaOut     `json:"delta"`
	LogProbs *logprobsOut `json:"logprobs"`
	Finish   *string      `json:"finish_reason"`
}

type chunk struct {
	completionHead
	Choices []chunkChoice `json:"choices"`
	Usage   *usage        `json:"usage,omitempty"` // of the last chunk, where asked for: clients of llama.cpp take one with null for it
	Tier    string        `json:"service_tier"`
	Print   string        `json:"system_fingerprint"`
}

// streamChat sends chunks as they come.
func (d *dialect) streamChat(out *server.Writer, q *chatRequest, s *chat.Stream) error {
	c := chunk{
		completionHead: d.head("chatcmpl-", "chat.completion.chunk", s.Model()),
		Tier:           "default",
		Print:          d.fingerprint(),
	}
	var begun []int
	send := func(index int, delta deltaOut, finish *string, tokens []chat.TokenLog) error {
		if !slices.Contains(begun, index) {
			begun = append(begun, index)
			empty := ""
			c.Choices = []chunkChoice{{Index: index, Delta: deltaOut{Role: "assistant", Content: &empty}}}
			if err := out.Event("", c); err != nil {
				return err
			}
		}
		ch := chunkChoice{Index: index, Delta: delta, Finish: finish}
		if q.req.LogProbs && tokens != nil {
			ch.LogProbs = &logprobsOut{Content: tokensOf(tokens)}
		}
		c.Choices = []chunkChoice{ch}
		return out.Event("", c)
	}
	for delta := range s.All() {
		var err error
		i := delta.Index
		switch delta.Kind {
		case chat.PrefillDelta:
			err = out.Prefill(server.ReportOf(delta))
		case chat.TextDelta:
			err = send(delta.Choice, deltaOut{Content: &delta.Text}, nil, delta.Tokens)
		case chat.ReasoningDelta:
			err = send(delta.Choice, deltaOut{Reasoning: delta.Text}, nil, nil)
		case chat.CallStart:
			err = send(
				delta.Choice,
				deltaOut{
					Calls: []callOut{
						{Index: &i, ID: delta.Call.ID, Type: "function", Function: functionOut{Name: delta.Call.Name}},
					},
				},
				nil,
				nil,
			)
		case chat.CallArgs:
			err = send(
				delta.Choice,
				deltaOut{Calls: []callOut{{Index: &i, Function: functionOut{Arguments: delta.Text}}}},
				nil,
				nil,
			)
		case chat.Finish:
			if delta.Reason != chat.Failed {
				f := finishReason(delta.Reason)
				err = send(delta.Choice, deltaOut{}, &f, nil)
			}
		case chat.Done:
			return d.endChat(out, q, c, delta)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dialect) endChat(out *server.Writer, q *chatRequest, c chunk, delta chat.Delta) error {
	if delta.Err != nil {
		if out.Withdraw() {
			return delta.Err
		}
		return endStream(out, delta.Err)
	}
	if q.includeUsage {
		c.Choices, c.Usage = []chunkChoice{}, usageOf(delta.Usage)
		if err := out.Event("", c); err != nil {
			return err
		}
	}
	return out.Data(string(done))
}
