package ollama

import (
	"encoding/json"
	"math"
	"net/http"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
)

// A chunk is a line of a stream, or the whole answer; generate and chat put the same things in different places.
type chunk struct {
	Model     string       `json:"model"`
	CreatedAt time.Time    `json:"created_at"`
	Message   *messageBody `json:"message,omitempty"`  // of chat
	Response  *string      `json:"response,omitempty"` // of generate
	Thinking  string       `json:"thinking,omitempty"` // of generate
	Done      bool         `json:"done"`
	Reason    string       `json:"done_reason,omitempty"`
	Context   []int32      `json:"context,omitempty"` // of generate
	*metrics
	LogProbs []logProb  `json:"logprobs,omitempty"`
	Debug    *debugInfo `json:"_debug_info,omitempty"`

	Prefill *server.PrefillReport `json:"prefill,omitempty"` // where the client asked for reports
}

type messageBody struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Thinking  string     `json:"thinking,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Function callFunction `json:"function"`
}

type callFunction struct {
	Index     int             `json:"index"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// metrics are in nanoseconds and tokens. prompt_eval_count is the whole prompt, what came from the cache included.
type metrics struct {
	TotalDuration  int64 `json:"total_duration"`
	LoadDuration   int64 `json:"load_duration"`
	PromptCount    int   `json:"prompt_eval_count"`
	CachedCount    int   `json:"prompt_eval_cached_count"`
	PromptDuration int64 `json:"prompt_eval_duration"`
	EvalCount      int   `json:"eval_count"`
	EvalDuration   int64 `json:"eval_duration"`
	Concluded      int   `json:"baleen_concluded,omitempty"`
}

type tokenLogProb struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

type logProb struct {
	tokenLogProb
	Top []tokenLogProb `json:"top_logprobs,omitempty"`
}

type debugInfo struct {
	Prompt string `json:"rendered_template"`
}

// A piece is what one chunk says, in no route's shape.
type piece struct {
	text, thinking string
	calls          []toolCall
	logs           []logProb
}

// An answer writes the stream of one request.
type answer struct {
	d     *dialect
	r     *run
	chat  bool // the shape of /api/chat
	began time.Time
	load  time.Duration
}

// chunk puts a piece into the route's shape.
func (a *answer) chunk(p piece) chunk {
	c := chunk{Model: a.r.model, CreatedAt: a.d.env.Now().UTC(), LogProbs: p.logs}
	if a.chat {
		c.Message = &messageBody{Role: chat.Assistant, Content: p.text, Thinking: p.thinking, ToolCalls: p.calls}
	} else {
		c.Response, c.Thinking = &p.text, p.thinking
	}
	return c
}

// take adds a delta; send reports whether there is something to send.
func (p *piece) take(d chat.Delta) (send bool) {
	switch d.Kind {
	case chat.TextDelta:
		p.text += d.Text
		for _, t := range d.Tokens {
			l := logProb{tokenLogProb: logged(t)}
			for _, x := range t.Top {
				l.Top = append(l.Top, logged(x))
			}
			p.logs = append(p.logs, l)
		}
		return d.Text != "" || len(d.Tokens) > 0
	case chat.ReasoningDelta:
		p.thinking += d.Text
		return d.Text != ""
	case chat.CallEnd:
		if d.Call.Cut { // no object that a client could call with
			p.text += d.Call.Written()
			return true
		}
		p.calls = append(
			p.calls,
			toolCall{d.Call.ID, callFunction{d.Index, d.Call.Name, json.RawMessage(d.Call.Arguments)}},
		)
		return true
	}
	return false
}

func logged(t chat.TokenLog) tokenLogProb {
	l := tokenLogProb{
		Token:   t.Text,
		LogProb: max(float64(t.LogProb), -math.MaxFloat32),
		Bytes:   make([]int, len(t.Text)),
	}
	for i := range len(t.Text) {
		l.Bytes[i] = int(t.Text[i])
	}
	return l
}

// last is the chunk that ends an answer.
func (a *answer) last(p piece, s *chat.Stream, reason chat.Reason, u chat.Usage) chunk {
	c := a.chunk(p)
	c.Done, c.Reason = true, "stop"
	if reason == chat.Length {
		c.Reason = "length"
	}
	c.metrics = &metrics{
		TotalDuration: int64(time.Since(a.began)), LoadDuration: int64(a.load),
		PromptCount: u.Prompt, CachedCount: u.Cached, PromptDuration: int64(u.Prefill),
		EvalCount: u.Generated, EvalDuration: int64(u.Decode), Concluded: u.Concluded,
	}
	if !a.chat && !a.r.raw && a.r.suffix == "" {
		c.Context = s.Tokens()
	}
	return c
}

// write writes the whole stream.
func (a *answer) write(w http.ResponseWriter, s *chat.Stream) error {
	if !a.r.stream {
		return a.whole(w, s)
	}
	lines := a.d.env.NewLines(w)
	var reason chat.Reason
	for d := range s.All() {
		var err error
		switch d.Kind {
		case chat.Finish:
			reason = d.Reason
		case chat.Done:
			if d.Err != nil && lines.Withdraw() {
				return d.Err
			}
			if d.Err != nil {
				return endLines(lines, d.Err)
			}
			err = lines.Line(a.last(piece{}, s, reason, d.Usage))
		case chat.PrefillDelta:
			c, report := a.chunk(piece{}), server.ReportOf(d)
			c.Prefill = &report
			err = lines.Line(c)
		default:
			var p piece
			if p.take(d) {
				err = lines.Line(a.chunk(p))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endLines sends an error into a stream that was begun, and returns it for the log.
func endLines(lines *server.Writer, e *chat.Error) error {
	if err := lines.Line(errorBody{message(e)}); err != nil {
		return err
	}
	return e
}

// whole answers with one object.
func (a *answer) whole(w http.ResponseWriter, s *chat.Stream) error {
	var p piece
	var reason chat.Reason
	for d := range s.All() {
		switch d.Kind {
		case chat.Finish:
			reason = d.Reason
		case chat.Done:
			if d.Err != nil {
				return d.Err
			}
			return server.WriteJSON(w, http.StatusOK, a.last(p, s, reason, d.Usage))
		default:
			p.take(d)
		}
	}
	return nil
}
