package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/sample"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// decodeResponse reads a request and joins it with the response that it continues.
func (d *dialect) decodeResponse(r *http.Request) (*responseRequest, error) {
	q := &responseRequest{caller: caller(r), room: d.env.Limits.Bytes()}
	q.resolve = func(id string) (json.RawMessage, bool) { return d.store.item(q.caller, id) }
	if err := server.Decode(r, responseTable, q); err != nil {
		return nil, err
	}
	if err := d.known(r, q.req.Model); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.withLogs {
		q.req.LogProbs, q.req.TopLogs = true, q.topLogs
	}
	if q.choice.Raw != nil {
		if err := setChoice(&q.req, q.choice); err != nil {
			return nil, err
		}
	}
	var conversation []chat.Message
	if q.previous != "" {
		k, ok := d.store.get(q.caller, q.previous)
		if !ok {
			return nil, chat.Invalidf("previous_response_id", "no kept response has the id %s", q.previous)
		}
		conversation = append(conversation, k.messages...)
	}
	q.messages = append(conversation, q.messages...)
	if q.instructions != nil && *q.instructions != "" {
		q.req.Messages = append(q.req.Messages, chat.Text(chat.System, *q.instructions))
	}
	q.req.Messages = append(q.req.Messages, q.messages...)
	if len(q.messages) == 0 {
		if q.inputGiven {
			return nil, chat.EmptyField("input")
		}
		return nil, chat.MissingField("input")
	}
	return q, nil
}

func (d *dialect) countResponse(w http.ResponseWriter, r *http.Request) error {
	q, err := d.decodeResponse(r)
	if err != nil {
		return err
	}
	n, err := d.env.Chat.Count(r.Context(), &q.req)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, countAnswer{"response.input_tokens", n})
}

type countAnswer struct {
	Object string `json:"object" schema:"response.input_tokens"`
	Tokens int    `json:"input_tokens"`
}

type contentOut struct {
	Type        string      `json:"type"`
	Text        string      `json:"text"`
	Annotations *[]any      `json:"annotations,omitempty"`
	LogProbs    *[]tokenOut `json:"logprobs,omitempty"`
}

// itemOut is an output item of any kind.
type itemOut struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	Status    string        `json:"status,omitempty"` // calls of custom tools have none
	Role      string        `json:"role,omitempty"`
	Content   *[]contentOut `json:"content,omitempty"`
	Summary   *[]contentOut `json:"summary,omitempty"`
	Encrypted *string       `json:"encrypted_content,omitempty"`
	CallID    string        `json:"call_id,omitempty"`
	Name      string        `json:"name,omitempty"`
	Namespace string        `json:"namespace,omitempty"`
	Arguments *string       `json:"arguments,omitempty"`
	Input     *string       `json:"input,omitempty"`
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
		Write  int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total     int `json:"total_tokens"`
	Concluded int `json:"baleen_concluded,omitempty"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type responseOut struct {
	ID           string             `json:"id"`
	Object       string             `json:"object"`
	Created      int64              `json:"created_at"`
	Completed    *int64             `json:"completed_at"`
	Status       string             `json:"status"`
	Background   bool               `json:"background"`
	Error        *responseError     `json:"error"`
	Incomplete   *map[string]string `json:"incomplete_details"`
	Instructions *string            `json:"instructions"`
	MaxOutput    *int               `json:"max_output_tokens"`
	Model        string             `json:"model"`
	Output       []itemOut          `json:"output"`
	Parallel     bool               `json:"parallel_tool_calls"`
	Previous     *string            `json:"previous_response_id"`
	Reasoning    json.RawMessage    `json:"reasoning"`
	Tier         string             `json:"service_tier"`
	Store        bool               `json:"store"`
	Temperature  *float32           `json:"temperature"`
	Text         json.RawMessage    `json:"text"`
	ToolChoice   json.RawMessage    `json:"tool_choice"`
	Tools        json.RawMessage    `json:"tools"`
	TopLogs      int                `json:"top_logprobs"`
	TopP         *float32           `json:"top_p"`
	Truncation   string             `json:"truncation"`
	Usage        *responseUsage     `json:"usage,omitempty"` // once it is known
	Metadata     json.RawMessage    `json:"metadata"`
}

func rawOr(raw json.RawMessage, def string) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(def)
	}
	return raw
}

// declaredTools are the tools of a request as responses show them: with all that the vendor's have.
func declaredTools(v fields.Value) json.RawMessage {
	list := []json.RawMessage{}
	for _, it := range v.Items() {
		var m map[string]json.RawMessage
		if json.Unmarshal(it.Raw, &m) != nil {
			continue
		}
		switch text(it, "type") {
		case "function":
			for key, def := range map[string]string{"parameters": "null", "strict": "false"} {
				if old, ok := m[key]; !ok || string(old) == "null" {
					m[key] = json.RawMessage(def)
				}
			}
		case "namespace":
			inner, _ := it.Get("tools")
			m["tools"] = declaredTools(inner)
		}
		if b, err := json.Marshal(m); err == nil {
			list = append(list, b)
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return json.RawMessage("[]")
	}
	return b
}

func floatOr(f, def *float32) *float32 {
	if f == nil {
		return def
	}
	return f
}

// newResponse is a response that nothing was generated for yet.
func (d *dialect) newResponse(q *responseRequest, model string) *responseOut {
	o := &responseOut{
		ID: chat.NewID("resp_"), Object: "response", Created: d.env.Now().Unix(), Status: "in_progress", Model: model,
		Instructions: q.instructions, Output: []itemOut{}, Parallel: !q.parallelFalse, Tier: "default", Store: !q.noStore,
		Reasoning: rawOr(
			q.reasoning,
			`{"effort":null,"summary":null}`,
		), Text: rawOr(q.text, `{"format":{"type":"text"}}`),
		ToolChoice: rawOr(
			q.choice.Raw,
			`"auto"`,
		), Tools: declaredTools(q.tools), TopLogs: q.topLogs, Truncation: "disabled",
		Temperature: floatOr(
			q.req.Sampling.Temperature,
			&one,
		), TopP: floatOr(q.req.Sampling.TopP, &one), Metadata: rawOr(q.metadata, "{}"),
	}
	if q.req.MaxTokens > 0 {
		o.MaxOutput = &q.req.MaxTokens
	}
	if q.previous != "" {
		o.Previous = &q.previous
	}
	return o
}

// drawn notes what the answer is drawn with.
func (o *responseOut) drawn(p sample.Params) {
	o.Temperature = &p.Temperature
	if p.TopP > 0 {
		o.TopP = &p.TopP
	}
}

func (d *dialect) responses(w http.ResponseWriter, r *http.Request) error {
	q, err := d.decodeResponse(r)
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
		if !out.Withdraw() {
			b := &builder{d: d, q: q, out: out, o: d.newResponse(q, q.req.Model)}
			return b.fail(chat.AsError(err))
		}
		return err
	}
	defer s.Close()
	b := &builder{d: d, q: q, o: d.newResponse(q, s.Model())}
	b.o.drawn(s.Sampling())
	if q.stream {
		b.out = out
	}
	return b.run(w, s)
}

// builder makes a response of a stream, and sends its events where it is streamed.
type builder struct {
	d   *dialect
	q   *responseRequest
	out *server.Writer // nil: not streamed
	o   *responseOut
	seq int

	cur     *itemOut // the item that grows; it is the last of o.Output
	text    strings.Builder
	logs    []tokenOut
	cut     bool
	started bool
}

// event sends one event with what all have.
func (b *builder) event(kind string, m map[string]any) error {
	if b.out == nil {
		return nil
	}
	m["type"], m["sequence_number"] = kind, b.seq
	b.seq++
	return b.out.Event(kind, m)
}

func (b *builder) begin() error {
	if b.started {
		return nil
	}
	b.started = true
	if err := b.event("response.created", map[string]any{"response": b.o}); err != nil {
		return err
	}
	return b.event("response.in_progress", map[string]any{"response": b.o})
}

func (b *builder) run(w http.ResponseWriter, s *chat.Stream) error {
	for delta := range s.All() {
		if delta.Kind == chat.Done {
			return b.done(w, delta)
		}
		if delta.Kind == chat.Finish && delta.Reason == chat.Failed {
			continue
		}
		if err := b.begin(); err != nil {
			return err
		}
		if err := b.take(delta); err != nil {
			return err
		}
	}
	return &chat.Error{Kind: chat.Internal}
}

func (b *builder) take(delta chat.Delta) error {
	switch delta.Kind {
	case chat.TextDelta:
		return b.grow("message", "response.output_text.delta", delta)
	case chat.PrefillDelta:
		return b.out.Prefill(server.ReportOf(delta))
	case chat.ReasoningDelta:
		if b.q.summary {
			return b.grow("reasoning", "response.reasoning_summary_text.delta", delta)
		}
		return b.grow("reasoning", "response.reasoning_text.delta", delta)
	case chat.CallStart:
		return b.startCall(delta.Call)
	case chat.CallArgs:
		if b.cur.Type == "custom_tool_call" {
			return nil // its input is a string inside the arguments, sent when it is whole
		}
		b.text.WriteString(delta.Text)
		return b.event("response.function_call_arguments.delta", b.at(map[string]any{"delta": delta.Text}))
	case chat.CallEnd:
		return b.endCall(delta.Call)
	case chat.Finish:
		b.cut = delta.Reason == chat.Length
		return b.closeItem()
	}
	return nil
}

// at adds where the item stands.
func (b *builder) at(m map[string]any) map[string]any {
	m["item_id"], m["output_index"] = b.cur.ID, len(b.o.Output)-1
	return m
}

func (b *builder) open(it itemOut) error {
	b.o.Output = append(b.o.Output, it)
	b.cur = &b.o.Output[len(b.o.Output)-1]
	b.text.Reset()
	b.logs = nil
	return b.event("response.output_item.added", map[string]any{"output_index": len(b.o.Output) - 1, "item": b.cur})
}

// grow adds text to an item of a kind, and begins one where the last is of another.
func (b *builder) grow(kind, event string, delta chat.Delta) error {
	if b.cur == nil || b.cur.Type != kind {
		if err := b.closeItem(); err != nil {
			return err
		}
		it := itemOut{
			ID:      chat.NewID("msg_"),
			Type:    kind,
			Status:  "in_progress",
			Role:    "assistant",
			Content: &[]contentOut{},
		}
		if kind == "reasoning" {
			it.ID, it.Role, it.Summary = chat.NewID("rs_"), "", &[]contentOut{}
			if b.q.summary {
				it.Content = nil
			}
		}
		if err := b.open(it); err != nil {
			return err
		}
		if err := b.event(b.partEvent("added"), b.inside(map[string]any{"part": b.part()})); err != nil {
			return err
		}
	}
	b.text.WriteString(delta.Text)
	m := b.inside(map[string]any{"delta": delta.Text})
	if kind == "message" {
		logs := tokensOf(delta.Tokens)
		b.logs = append(b.logs, logs...)
		m["logprobs"] = logsOf(logs)
	}
	return b.event(event, m)
}

// summarized reports whether the item that grows is reasoning that comes as a summary.
func (b *builder) summarized() bool { return b.cur.Type == "reasoning" && b.q.summary }

// partEvent is the name of what happens to the part that grows.
func (b *builder) partEvent(what string) string {
	if b.summarized() {
		return "response.reasoning_summary_part." + what
	}
	return "response.content_part." + what
}

// inside adds where the part stands that grows.
func (b *builder) inside(m map[string]any) map[string]any {
	key := "content_index"
	if b.summarized() {
		key = "summary_index"
	}
	m[key] = 0
	return b.at(m)
}

// A logOut is a token in events, where its bytes are not said.
type logOut struct {
	Token   string   `json:"token"`
	LogProb float32  `json:"logprob"`
	Top     []logOut `json:"top_logprobs,omitempty"`
}

func logsOf(ts []tokenOut) []logOut {
	out := []logOut{}
	for _, t := range ts {
		l := logOut{Token: t.Token, LogProb: t.LogProb}
		if t.Top != nil {
			l.Top = logsOf(*t.Top)
		}
		out = append(out, l)
	}
	return out
}

// part is the content of the item that grows.
func (b *builder) part() contentOut {
	if b.summarized() {
		return contentOut{Type: "summary_text", Text: b.text.String()}
	}
	if b.cur.Type == "reasoning" {
		return contentOut{Type: "reasoning_text", Text: b.text.String()}
	}
	logs := b.logs
	if logs == nil {
		logs = []tokenOut{}
	}
	return contentOut{Type: "output_text", Text: b.text.String(), Annotations: &[]any{}, LogProbs: &logs}
}

// closeItem ends the item that grows.
func (b *builder) closeItem() error {
	it := b.cur
	if it == nil {
		return nil
	}
	switch {
	case it.Type == "custom_tool_call":
	case b.cut:
		it.Status = "incomplete"
	default:
		it.Status = "completed"
	}
	if it.Type == "message" || it.Type == "reasoning" {
		p := b.part()
		m := b.inside(map[string]any{"text": p.Text})
		kind := "response.reasoning_text.done"
		if b.summarized() {
			kind, it.Summary = "response.reasoning_summary_text.done", &[]contentOut{p}
		} else {
			it.Content = &[]contentOut{p}
		}
		if it.Type == "message" {
			kind, m["logprobs"] = "response.output_text.done", logsOf(*p.LogProbs)
		} else if b.q.encrypted {
			sealed := seal(p.Text)
			it.Encrypted = &sealed
		}
		if err := b.event(kind, m); err != nil {
			return err
		}
		if err := b.event(b.partEvent("done"), b.inside(map[string]any{"part": p})); err != nil {
			return err
		}
	}
	err := b.event("response.output_item.done", map[string]any{"output_index": len(b.o.Output) - 1, "item": it})
	b.cur = nil
	return err
}

func (b *builder) startCall(c *chat.Call) error {
	if err := b.closeItem(); err != nil {
		return err
	}
	empty := ""
	it := itemOut{
		ID:        chat.NewID("fc_"),
		Type:      "function_call",
		Status:    "in_progress",
		CallID:    c.ID,
		Name:      c.Name,
		Arguments: &empty,
	}
	if b.q.custom[c.Name] {
		it.ID, it.Type, it.Status, it.Arguments, it.Input = chat.NewID("ctc_"), "custom_tool_call", "", nil, &empty
	}
	if in, ok := b.q.spaces[c.Name]; ok {
		it.Name, it.Namespace = in.name, in.namespace
	}
	return b.open(it)
}

// endCall ends a call. One that the answer's end cut is incomplete, with what the model wrote of its arguments.
func (b *builder) endCall(c *chat.Call) error {
	b.cut = c.Cut
	if b.cur.Type == "custom_tool_call" {
		var args struct{ Input string }
		input := c.Arguments // of another shape than was asked for: nothing is dropped
		whole := c.Arguments
		if c.Cut { // inside the string, most likely
			whole += `"}`
		}
		if json.Unmarshal([]byte(whole), &args) == nil && args.Input != "" {
			input = args.Input
		}
		b.cur.Input = &input
		if err := b.event("response.custom_tool_call_input.delta", b.at(map[string]any{"delta": input})); err != nil {
			return err
		}
		if err := b.event("response.custom_tool_call_input.done", b.at(map[string]any{"input": input})); err != nil {
			return err
		}
		return b.closeItem()
	}
	b.cur.Arguments = &c.Arguments
	if err := b.event("response.function_call_arguments.done", b.at(map[string]any{"arguments": c.Arguments, "name": b.cur.Name})); err != nil {
		return err
	}
	return b.closeItem()
}

// fail ends a stream with an error.
func (b *builder) fail(e *chat.Error) error {
	if err := b.begin(); err != nil {
		return err
	}
	b.cut = true
	if err := b.closeItem(); err != nil {
		return err
	}
	b.o.Status = "failed"
	code := "server_error"
	if e.Kind == chat.Invalid || e.Kind == chat.PromptTooLong || e.Kind == chat.Unsupported {
		code = "invalid_prompt"
	}
	if e.Kind == chat.PromptTooLong {
		code = "context_length_exceeded" // for which Codex looks
	}
	b.o.Error = &responseError{code, message(e)}
	if err := b.event("response.failed", map[string]any{"response": b.o}); err != nil {
		return err
	}
	return e
}

func (b *builder) done(w http.ResponseWriter, delta chat.Delta) error {
	if delta.Err != nil {
		if b.out != nil && !b.out.Withdraw() {
			return b.fail(delta.Err)
		}
		return delta.Err
	}
	if err := b.begin(); err != nil {
		return err
	}
	u := delta.Usage
	b.o.Usage = &responseUsage{
		Input:     u.Prompt,
		Output:    u.Generated,
		Total:     u.Prompt + u.Generated,
		Concluded: u.Concluded,
	}
	b.o.Usage.InputDetails.Cached, b.o.Usage.OutputDetails.Reasoning = u.Cached, u.Reasoning
	now := b.d.env.Now().Unix()
	b.o.Status, b.o.Completed = "completed", &now
	kind := "response.completed"
	if b.cut {
		b.o.Status, b.o.Completed, b.o.Incomplete = "incomplete", nil, &map[string]string{"reason": "max_output_tokens"}
		kind = "response.incomplete"
	}
	body, err := server.Marshal(b.o)
	if err != nil {
		return err
	}
	if !b.q.noStore {
		if err := b.keep(body); err != nil {
			return err
		}
	}
	if b.out == nil {
		return server.WriteJSON(w, http.StatusOK, json.RawMessage(body))
	}
	return b.event(kind, map[string]any{"response": json.RawMessage(body)})
}

// keep stores the response for later ones.
func (b *builder) keep(body []byte) error {
	k := &kept{id: b.o.ID, caller: b.q.caller, body: body, input: b.q.items}
	m := chat.Message{Role: chat.Assistant}
	for i := range b.o.Output {
		it := &b.o.Output[i]
		raw, err := server.Marshal(it)
		if err != nil {
			return err
		}
		k.output = append(k.output, raw)
		switch it.Type {
		case "reasoning":
			said := it.Content
			if said == nil {
				said = it.Summary
			}
			m.Reasoning += (*said)[0].Text
		case "message":
			m.Parts = append(m.Parts, chat.Part{Text: (*it.Content)[0].Text})
		case "function_call":
			m.Calls = append(
				m.Calls,
				chat.Call{ID: it.CallID, Name: flat(it.Namespace, it.Name), Arguments: *it.Arguments},
			)
		case "custom_tool_call":
			args, err := json.Marshal(map[string]string{"input": *it.Input})
			if err != nil {
				return err
			}
			m.Calls = append(
				m.Calls,
				chat.Call{ID: it.CallID, Name: flat(it.Namespace, it.Name), Arguments: string(args)},
			)
		}
	}
	k.messages = append(append(k.messages, b.q.messages...), m)
	b.d.store.add(k)
	return nil
}
