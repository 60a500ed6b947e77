package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// openAI is the API of chat completions.
type openAI struct{}

func (openAI) header(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

type openAICall struct {
	Index    int    `json:"-"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openAIMessage struct {
	Role       string       `json:"role"`
	Content    *string      `json:"content"`
	ToolCalls  []openAICall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

func (openAI) message(m Message) openAIMessage {
	o := openAIMessage{Role: m.Role, Content: &m.Text, ToolCallID: m.CallID}
	for _, c := range m.Calls {
		k := openAICall{ID: c.ID, Type: "function"}
		k.Function.Name, k.Function.Arguments = c.Name, string(raw(c.Args))
		o.ToolCalls = append(o.ToolCalls, k)
	}
	if len(m.Calls) > 0 && m.Text == "" {
		o.Content = nil
	}
	return o
}

// request writes what is the same in all requests first. Forks offer the tools as well, although they want no call:
// without them the prompt would begin in another way.
func (d openAI) request(s *remoteSession, o Options) (path string, body []byte) {
	var b bytes.Buffer
	r := s.m.o
	b.WriteString(`{"model":`)
	b.Write(compact(r.Name))
	b.WriteString(`,"stream":true,"stream_options":{"include_usage":true}`)
	if t := r.Temperature; t != nil && !(o.Vary && *t < varied) {
		fmt.Fprintf(&b, `,"temperature":%s`, compact(*t))
	} else if o.Vary {
		fmt.Fprintf(&b, `,"temperature":%v`, varied)
	}
	if r.Seed != nil {
		fmt.Fprintf(&b, `,"seed":%d`, *r.Seed)
	}
	if len(s.spec.Tools) > 0 {
		b.WriteString(`,"tools":[`)
		for i, t := range s.spec.Tools {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"type":"function","function":{"name":`)
			b.Write(compact(t.Name))
			b.WriteString(`,"description":`)
			b.Write(compact(t.Description))
			b.WriteString(`,"parameters":`)
			b.Write(raw(string(t.Parameters)))
			if r.Own {
				b.WriteString(`,"strict":true`)
			}
			b.WriteString(`}}`)
		}
		b.WriteByte(']')
		if r.Parameters > 0 && r.Parameters <= oneCall {
			b.WriteString(`,"parallel_tool_calls":false`)
		}
	}
	b.WriteString(`,"messages":[`)
	if s.spec.System != "" {
		b.Write(compact(openAIMessage{Role: "system", Content: &s.spec.System}))
	}
	for i, m := range joined(s.msgs) {
		if i > 0 || s.spec.System != "" {
			b.WriteByte(',')
		}
		b.Write(compact(d.message(m)))
	}
	b.WriteByte(']')
	if o.MaxTokens > 0 {
		fmt.Fprintf(&b, `,"max_tokens":%d`, o.MaxTokens)
	}
	if o.Call == AnyTool {
		b.WriteString(`,"tool_choice":"required"`)
	} else if o.Call != "" {
		fmt.Fprintf(&b, `,"tool_choice":{"type":"function","function":{"name":%s}}`, compact(o.Call))
	}
	if o.Schema != nil {
		fmt.Fprintf(&b, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":%s}}`, raw(string(o.Schema)))
	}
	b.WriteByte('}')
	return "/chat/completions", b.Bytes()
}

func (openAI) read(data []byte, r *reading) (over bool, err error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	var e struct {
		Choices []struct {
			Delta struct {
				Content          string `json:"content"`
				ReasoningContent string `json:"reasoning_content"`
				Reasoning        string `json:"reasoning"`
				ToolCalls        []struct {
					Index    int    `json:"index"`
					ID       string `json:"id"`
					Function struct {
						Name      string `json:"name"`
						Arguments string `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			} `json:"delta"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage *struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Details    struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("the model's server sent what is no event: %w", err)
	}
	if e.Error != nil {
		return false, fmt.Errorf("the model's server says: %s", e.Error.Message)
	}
	for _, c := range e.Choices {
		r.reason(c.Delta.ReasoningContent + c.Delta.Reasoning)
		r.say(c.Delta.Content)
		for _, k := range c.Delta.ToolCalls {
			r.call(k.Index, k.ID, k.Function.Name, k.Function.Arguments)
		}
		if c.FinishReason == "length" {
			r.a.Reason = Length
		}
	}
	if u := e.Usage; u != nil {
		r.a.Usage.Prompt, r.a.Usage.Generated, r.a.Usage.Cached = u.Prompt, u.Completion, u.Details.Cached
	}
	return false, nil
}
