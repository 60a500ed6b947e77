package anthropic

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
)

// An answer is a message on its way.
type answer struct {
	id     string
	req    *request
	stream *chat.Stream
	edited *contextAnswer

	reason chat.Reason
	stop   string // the stop sequence that ended it
}

type messageBody struct {
	ID          string           `json:"id"`
	Type        string           `json:"type"`
	Role        string           `json:"role"`
	Model       string           `json:"model"`
	Content     []any            `json:"content"`
	StopReason  *string          `json:"stop_reason"`
	StopSeq     *string          `json:"stop_sequence"`
	Context     *contextAnswer   `json:"context_management,omitempty"`
	Diagnostics *diagnosisAnswer `json:"diagnostics,omitempty"`
	Usage       usageBody        `json:"usage"`
}

type diagnosisAnswer struct {
	Reason struct {
		Type string `json:"type"`
	} `json:"cache_miss_reason"`
}

type usageBody struct {
	Input         int           `json:"input_tokens"`
	CacheCreation int           `json:"cache_creation_input_tokens"`
	CacheRead     int           `json:"cache_read_input_tokens"`
	ByTTL         *ttlBody      `json:"cache_creation,omitempty"`
	Output        int           `json:"output_tokens"`
	Details       *outputDetail `json:"output_tokens_details,omitempty"`
	Tier          string        `json:"service_tier,omitempty"`
	Concluded     int           `json:"baleen_concluded,omitempty"`
}

type ttlBody struct {
	Short int `json:"ephemeral_5m_input_tokens"`
	Long  int `json:"ephemeral_1h_input_tokens"`
}

type outputDetail struct {
	Thinking int `json:"thinking_tokens"`
}

// textBody has no citations: the vendor leaves the key out where there are none, and clients refuse null.
type textBody struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBody struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type toolUseBody struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	Caller callerBody      `json:"caller"`
}

type callerBody struct {
	Type string `json:"type"`
}

func newToolUse(c *chat.Call, input string) toolUseBody {
	return toolUseBody{
		"tool_use",
		"toolu_" + strings.TrimPrefix(c.ID, "call_"),
		c.Name,
		json.RawMessage(input),
		callerBody{"direct"},
	}
}

// usage splits the prompt as the vendor does: input is what was neither read from the cache nor put there. All of a
// prompt but its last token, whose output is needed, stays in the cache; it is counted as put there where the client
// asked for it with cache_control.
func (a *answer) usage(u chat.Usage) usageBody {
	b := usageBody{Input: u.Prompt - u.Cached, CacheRead: u.Cached, Output: u.Generated, Concluded: u.Concluded}
	if a.req.marked && b.Input > 1 {
		b.CacheCreation, b.Input = b.Input-1, 1
	}
	b.Details = &outputDetail{u.Reasoning}
	return b
}

// startUsage is the usage of message_start: what usage will say of the prompt, and no output yet.
func (a *answer) startUsage(prompt chat.Usage) usageBody {
	b := a.usage(prompt)
	b.ByTTL, b.Details, b.Tier = &ttlBody{Short: b.CacheCreation}, nil, "standard"
	return b
}

// message is the body without content and end.
func (a *answer) message() messageBody {
	m := messageBody{ID: a.id, Type: "message", Role: "assistant", Model: a.stream.Model(), Content: []any{}}
	if d := a.req.diagnostics; d != nil && d.previous {
		m.Diagnostics = &diagnosisAnswer{}
		m.Diagnostics.Reason.Type = "unavailable"
	}
	return m
}

// finish notes how the answer ended.
func (a *answer) finish(d chat.Delta) { a.reason, a.stop = d.Reason, d.StopString }

// stopReason is the vendor's word for the end.
func (a *answer) stopReason(u chat.Usage) (reason string, sequence *string) {
	switch a.reason {
	case chat.StopSequence:
		return "stop_sequence", &a.stop
	case chat.ToolCalls:
		return "tool_use", nil
	case chat.Length:
		if limit := a.req.chat.MaxTokens; limit > 0 && u.Generated < limit &&
			u.Prompt+u.Generated >= a.stream.Context() {
			return "model_context_window_exceeded", nil
		}
		return "max_tokens", nil
	}
	return "end_turn", nil
}

// whole answers with one document.
func (a *answer) whole(w http.ResponseWriter) error {
	var p parts
	for {
		d, ok := a.stream.Next()
		if !ok {
			return &chat.Error{Kind: chat.Internal, Msg: "the stream ended without its last piece"}
		}
		switch d.Kind {
		case chat.Finish:
			a.finish(d)
		case chat.Done:
			if d.Err != nil {
				return d.Err
			}
			m := a.message()
			m.Content = p.bodies(a.req.thinking.omit)
			reason, sequence := a.stopReason(d.Usage)
			m.StopReason, m.StopSeq = &reason, sequence
			m.Context = a.edited
			m.Usage = a.usage(d.Usage)
			m.Usage.Tier = "standard"
			m.Usage.ByTTL = &ttlBody{Short: m.Usage.CacheCreation}
			return server.WriteJSON(w, http.StatusOK, m)
		default:
			p.add(d)
		}
	}
}

// parts collects deltas into blocks.
type parts struct{ list []piece }

type piece struct {
	kind chat.DeltaKind // TextDelta, ReasoningDelta or CallEnd
	text strings.Builder
	call *chat.Call
}

func (p *parts) add(d chat.Delta) {
	switch d.Kind {
	case chat.TextDelta, chat.ReasoningDelta:
		if d.Text == "" {
			return
		}
		if n := len(p.list); n == 0 || p.list[n-1].kind != d.Kind {
			p.list = append(p.list, piece{kind: d.Kind})
		}
		p.list[len(p.list)-1].text.WriteString(d.Text)
	case chat.CallEnd:
		if d.Call.Cut { // an answer that does not stream has no half of an input
			p.add(chat.Delta{Kind: chat.TextDelta, Text: d.Call.Written()})
			return
		}
		p.list = append(p.list, piece{kind: d.Kind, call: d.Call})
	}
}

// bodies are the blocks. Text of white space alone beside other blocks is how a model lays its answer out, and the
// vendor's API takes no such block back: it is left out, as in streams.
func (p *parts) bodies(omit bool) []any {
	out := []any{}
	for i := range p.list {
		x := &p.list[i]
		text := x.text.String()
		switch x.kind {
		case chat.TextDelta:
			if strings.TrimSpace(text) != "" || len(p.list) == 1 {
				out = append(out, textBody{Type: "text", Text: text})
			}
		case chat.ReasoningDelta:
			b := thinkingBody{"thinking", text, sign(text)}
			if omit {
				b.Thinking, b.Signature = "", seal(text)
			}
			out = append(out, b)
		default:
			out = append(out, newToolUse(x.call, x.call.Arguments))
		}
	}
	return out
}

// Signatures of reasoning begin so. The vendor's are seals against changes; here clients only expect that there is
// one. Where the text is omitted, the signature carries it, so that the next turn has it all the same.
const (
	signed = "baleen\x00"
	sealed = "baleen\x01"
)

func sign(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(append([]byte(signed), sum[:]...))
}

func seal(text string) string { return base64.StdEncoding.EncodeToString([]byte(sealed + text)) }

// unseal returns the reasoning in a signature, "" where there is none.
func unseal(signature string) string {
	b, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return ""
	}
	text, ok := strings.CutPrefix(string(b), sealed)
	if !ok {
		return ""
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
