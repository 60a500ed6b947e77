package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// anthropic is the API of messages.
type anthropic struct{}

func (anthropic) header(h http.Header, key string) {
	h.Set("anthropic-version", "2023-06-01")
	if key != "" {
		h.Set("x-api-key", key)
	}
}

// An anthropicBlock is a piece of a message. Its fields stand in this order in each request.
type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Cache     json.RawMessage `json:"cache_control,omitempty"`
}

var ephemeral = json.RawMessage(`{"type":"ephemeral"}`)

// blocks puts messages into turns of user and assistant. Results and what the user says behind them are one turn.
func (anthropic) blocks(ms []Message) (roles []string, turns [][]anthropicBlock) {
	for _, m := range ms {
		role := "user"
		if m.Role == Assistant {
			role = "assistant"
		}
		if n := len(roles); n == 0 || roles[n-1] != role {
			roles, turns = append(roles, role), append(turns, nil)
		}
		at := &turns[len(turns)-1]
		if m.Role == Tool {
			*at = append(*at, anthropicBlock{Type: "tool_result", ToolUseID: m.CallID, Content: m.Text, IsError: m.Failed})
			continue
		}
		if m.Text != "" {
			*at = append(*at, anthropicBlock{Type: "text", Text: m.Text})
		}
		for _, c := range m.Calls {
			*at = append(*at, anthropicBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: raw(c.Args)})
		}
		if len(*at) == 0 {
			*at = append(*at, anthropicBlock{Type: "text", Text: "(nothing)"})
		}
	}
	return roles, turns
}

// request marks the end of what is to be cached: the system prompt with the tools, and the conversation so far. But for
// the second mark, which moves, requests of a session begin alike.
func (d anthropic) request(s *remoteSession, o Options) (path string, body []byte) {
	var b bytes.Buffer
	r := s.m.o
	most := r.MaxTokens
	if o.MaxTokens > 0 {
		most = min(most, o.MaxTokens)
	}
	b.WriteString(`{"model":`)
	b.Write(compact(r.Name))
	b.WriteString(`,"stream":true`)
	if r.Temperature != nil {
		fmt.Fprintf(&b, `,"temperature":%s`, compact(*r.Temperature))
	}
	if len(s.spec.Tools) > 0 {
		b.WriteString(`,"tools":[`)
		for i, t := range s.spec.Tools {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"name":%s,"description":%s,"input_schema":%s}`,
				compact(t.Name), compact(t.Description), raw(string(t.Parameters)))
		}
		b.WriteByte(']')
	}
	if s.spec.System != "" {
		b.WriteString(`,"system":[`)
		b.Write(compact(anthropicBlock{Type: "text", Text: s.spec.System, Cache: ephemeral}))
		b.WriteByte(']')
	}
	b.WriteString(`,"messages":[`)
	roles, turns := d.blocks(s.msgs)
	for i, role := range roles {
		if i > 0 {
			b.WriteByte(',')
		}
		if i == len(roles)-1 {
			turns[i][len(turns[i])-1].Cache = ephemeral
		}
		fmt.Fprintf(&b, `{"role":%q,"content":%s}`, role, compact(turns[i]))
	}
	fmt.Fprintf(&b, `],"max_tokens":%d`, most)
	if o.Call == AnyTool {
		b.WriteString(`,"tool_choice":{"type":"any"}`)
	} else if o.Call != "" {
		fmt.Fprintf(&b, `,"tool_choice":{"type":"tool","name":%s}`, compact(o.Call))
	}
	b.WriteByte('}')
	return "/v1/messages", b.Bytes()
}

func (anthropic) read(data []byte, r *reading) (over bool, err error) {
	type usage struct {
		Input   int `json:"input_tokens"`
		Created int `json:"cache_creation_input_tokens"`
		Read    int `json:"cache_read_input_tokens"`
		Output  int `json:"output_tokens"`
	}
	var e struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			Usage usage `json:"usage"`
		} `json:"message"`
		Block struct {
			Type, ID, Name, Text, Thinking string
		} `json:"content_block"`
		Delta struct {
			Type       string `json:"type"`
			Text       string `json:"text"`
			Thinking   string `json:"thinking"`
			JSON       string `json:"partial_json"`
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage usage `json:"usage"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("the model's server sent what is no event: %w", err)
	}
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		r.a.Usage.Prompt, r.a.Usage.Cached = u.Input+u.Created+u.Read, u.Read
		r.a.Usage.Generated = u.Output
	case "content_block_start":
		r.say(e.Block.Text)
		r.reason(e.Block.Thinking)
		if e.Block.Type == "tool_use" {
			r.call(e.Index, e.Block.ID, e.Block.Name, "")
		}
	case "content_block_delta":
		r.say(e.Delta.Text)
		r.reason(e.Delta.Thinking)
		if e.Delta.Type == "input_json_delta" {
			r.call(e.Index, "", "", e.Delta.JSON)
		}
	case "message_delta":
		if e.Usage.Output > 0 {
			r.a.Usage.Generated = e.Usage.Output
		}
		if e.Delta.StopReason == "max_tokens" || e.Delta.StopReason == "model_context_window_exceeded" {
			r.a.Reason = Length
		}
	case "message_stop":
		return true, nil
	case "error":
		return false, fmt.Errorf("the model's server says: %s", e.Error.Message)
	}
	return false, nil
}
