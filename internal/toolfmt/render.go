package toolfmt

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

// Input puts a conversation and the offered tools into what the model's template expects, ready for
// Template.Render but for the tokens' spellings. The error names the tool that is wrong.
func (f *Format) Input(ms []Message, tools []Tool, o PromptOptions) (chattmpl.Input, error) {
	in, _, err := f.input(ms, tools, o)
	return in, err
}

// input returns also the messages that the template is to render.
func (f *Format) input(ms []Message, tools []Tool, o PromptOptions) (in chattmpl.Input, shown []Message, err error) {
	in.AddGenerationPrompt, in.Now = true, o.Now
	r := renderer{f: f, names: map[string]string{}}
	if ms = withWholeArguments(ms); len(tools) > 0 && !f.caps.tools {
		text, err := f.spec.toolPrompt(tools)
		if err != nil {
			return in, nil, err
		}
		ms = withSystem(ms, text)
	}
	shown = ms
	if !f.caps.system {
		ms = systemToUser(ms)
	}
	if in.Messages, err = chattmpl.ParseJSON(r.messages(ms)); err != nil {
		return in, nil, err
	}
	if len(tools) > 0 && f.caps.tools {
		b, err := toolsJSON(tools)
		if err != nil {
			return in, nil, err
		}
		list, err := chattmpl.ParseJSON(b)
		if err != nil {
			return in, nil, fmt.Errorf("the tools: %w", err)
		}
		if f.caps.toolsVar == "" {
			in.Tools = list
		} else {
			in.Extra = append(in.Extra, chattmpl.KV{Key: f.caps.toolsVar, Value: list})
		}
	}
	if o.Thinking != nil && f.caps.thinkVar != "" {
		in.Extra = append(in.Extra, chattmpl.KV{Key: f.caps.thinkVar, Value: chattmpl.Bool(*o.Thinking)})
	}
	if o.Effort != "" && f.caps.effort {
		in.Extra = append(in.Extra, chattmpl.KV{Key: "reasoning_effort", Value: chattmpl.Text(o.Effort)})
	}
	return in, shown, nil
}

// withSystem puts text behind the system message, or makes one.
func withSystem(ms []Message, text string) []Message {
	out := append([]Message(nil), ms...)
	if len(out) > 0 && (out[0].Role == "system" || out[0].Role == "developer") {
		out[0].Content = joinParagraphs(out[0].Content, text)
		return out
	}
	return append([]Message{{Role: "system", Content: text}}, out...)
}

// systemToUser puts system messages before the text of the user's message that follows, for templates that
// know no such role.
func systemToUser(ms []Message) []Message {
	var out []Message
	text := ""
	for _, m := range ms {
		if m.Role == "system" || m.Role == "developer" {
			text = joinParagraphs(text, m.Content)
			continue
		}
		if m.Role == "user" && text != "" {
			m.Content, text = joinParagraphs(text, m.Content), ""
		}
		out = append(out, m)
	}
	if text != "" {
		out = append(out, Message{Role: "user", Content: text})
	}
	return out
}

func joinParagraphs(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// toolsJSON writes the definitions in the shape that Hugging Face templates expect, keeping the schema's order.
func toolsJSON(tools []Tool) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, t := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		d, err := toolJSON(t)
		if err != nil {
			return nil, err
		}
		b.WriteString(`{"type":"function","function":`)
		b.Write(d)
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

func toolJSON(t Tool) ([]byte, error) {
	params := bytes.TrimSpace(t.Parameters)
	if len(params) == 0 || string(params) == "null" {
		params = []byte(`{"type":"object","properties":{}}`)
	}
	if params[0] != '{' || !json.Valid(params) {
		return nil, fmt.Errorf("the parameters of tool %q are not a JSON object", t.Name)
	}
	return []byte(
		`{"name":` + quote(t.Name) + `,"description":` + quote(t.Description) + `,"parameters":` + string(params) + `}`,
	), nil
}

// quote writes a JSON string, without the escapes for HTML.
func quote(s string) string { return encode(strings.ToValidUTF8(s, "\uFFFD")) }

// encode is quote with an escape for each byte that is not UTF-8.
func encode(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// renderer reshapes the messages of one conversation.
type renderer struct {
	f     *Format
	names map[string]string // call id → tool name
	b     bytes.Buffer
	n     int
}

func (r *renderer) messages(ms []Message) []byte {
	r.b.WriteByte('[')
	for i := 0; i < len(ms); i++ {
		m := ms[i]
		for _, c := range m.Calls {
			r.names[c.ID] = c.Name
		}
		if m.Role == "tool" && m.ToolName == "" {
			m.ToolName = r.names[m.CallID]
		}
		switch {
		case m.Role == "assistant" && len(m.Calls) > 0:
			i += r.assistant(m, ms[i+1:])
		case m.Role == "tool" && !r.f.caps.toolRole:
			text := r.f.spec.resultText(m)
			for ; i+1 < len(ms) && (ms[i+1].Role == "tool" || ms[i+1].Role == "user"); i++ { // roles must take turns
				next := ms[i+1].Content
				if ms[i+1].Role == "tool" {
					next = r.f.spec.resultText(ms[i+1])
				}
				text = joinText(text, next)
			}
			r.plain(Message{Role: "user", Content: text})
		case m.Role == "tool":
			r.result(m)
		default:
			r.plain(m)
		}
	}
	r.b.WriteByte(']')
	return r.b.Bytes()
}

func (r *renderer) begin(role string) {
	if r.n > 0 {
		r.b.WriteByte(',')
	}
	r.n++
	r.b.WriteString(`{"role":` + quote(role))
}

func (r *renderer) field(key, value string) { r.b.WriteString("," + quote(key) + ":" + quote(value)) }

func (r *renderer) content(role, text string) {
	r.b.WriteString(`,"content":` + r.f.caps.content(role, text))
}

func (r *renderer) plain(m Message) {
	role := m.Role
	if role == "developer" && !r.f.caps.developer {
		role = "system"
	}
	r.begin(role)
	r.content(role, m.Content)
	r.reasoning(m)
	r.b.WriteByte('}')
}

func (r *renderer) reasoning(m Message) {
	if m.Role != "assistant" || m.Reasoning == "" {
		return
	}
	for _, key := range r.f.caps.reasoningKeys {
		r.field(key, m.Reasoning)
	}
}

// assistant writes a turn with calls, in the pieces that the template can take. It returns how many of the
// results that follow it has written as well: templates that know one call a message get each result
// right behind its call.
func (r *renderer) assistant(m Message, rest []Message) (skip int) {
	c := r.f.caps
	if !c.calls {
		m.Content = joinText(m.Content, r.f.spec.callsText(m.Calls))
		m.Calls = nil
		r.plain(m)
		return 0
	}
	if c.calls && !c.contentWithCalls && m.Content != "" {
		r.plain(Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning})
		m.Content, m.Reasoning = "", ""
	}
	if c.manyCalls || len(m.Calls) == 1 || !c.toolRole {
		r.callMessage(m, m.Calls)
		return 0
	}
	results := map[string]Message{}
	for skip < len(rest) && rest[skip].Role == "tool" {
		results[rest[skip].CallID] = rest[skip]
		skip++
	}
	if len(results) != skip { // ids repeat or are missing: keep the given order
		skip, results = 0, nil
	}
	for _, call := range m.Calls {
		r.callMessage(m, []Call{call})
		m.Content, m.Reasoning = "", ""
		if res, ok := results[call.ID]; ok {
			if res.ToolName == "" {
				res.ToolName = call.Name
			}
			r.result(res)
			delete(results, call.ID)
		}
	}
	for _, res := range rest[:skip] { // results of calls made earlier
		if _, left := results[res.CallID]; left {
			if res.ToolName == "" {
				res.ToolName = r.names[res.CallID]
			}
			r.result(res)
		}
	}
	return skip
}

func (r *renderer) callMessage(m Message, calls []Call) {
	c := r.f.caps
	r.begin(m.Role)
	if m.Content != "" && m.Reasoning != "" && c.oneOfContentThinking {
		m.Reasoning, m.Content = joinText(m.Reasoning, m.Content), ""
	}
	switch {
	case m.Content != "" || !c.nullContent:
		if m.Content != "" || !c.oneOfContentThinking {
			r.content(m.Role, m.Content)
		}
	default:
		r.b.WriteString(`,"content":null`)
	}
	r.reasoning(m)
	r.b.WriteString(`,"tool_calls":[`)
	for i, call := range calls {
		if i > 0 {
			r.b.WriteByte(',')
		}
		args := call.Arguments
		if c.stringArgs {
			args = quote(args)
		}
		r.b.WriteString(
			`{"id":` + quote(
				r.id(call.ID),
			) + `,"type":"function","function":{"name":` + quote(
				call.Name,
			) + `,"arguments":` + args + `}}`,
		)
	}
	r.b.WriteString(`]}`)
}

func (r *renderer) result(m Message) {
	r.begin("tool")
	r.content("tool", m.Content)
	r.field("tool_call_id", r.id(m.CallID))
	if m.ToolName != "" {
		r.field("name", m.ToolName)
	}
	r.b.WriteByte('}')
}

// id returns a call's id as the template accepts it: Mistral's demand nine letters or digits.
func (r *renderer) id(id string) string {
	if !r.f.caps.shortIDs || len(id) == 9 && strings.Trim(id, alnum) == "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	short := make([]byte, 9)
	for i := range short {
		short[i] = alnum[int(sum[i])%len(alnum)]
	}
	return string(short)
}

const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func joinText(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
