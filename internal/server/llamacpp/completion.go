package llamacpp

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
)

// pieceOut is a piece of a stream.
type pieceOut struct {
	Index     int         `json:"index"`
	Content   string      `json:"content"`
	Tokens    []int32     `json:"tokens"`
	Stop      bool        `json:"stop"`
	Slot      int         `json:"id_slot"`
	Predicted int         `json:"tokens_predicted"`
	Evaluated int         `json:"tokens_evaluated"`
	Probs     []tokenProb `json:"completion_probabilities,omitempty"`
	Timings   *timingsOut `json:"timings,omitempty"`
	Progress  *progress   `json:"prompt_progress,omitempty"`
}

type progress struct {
	Total     int     `json:"total"`
	Cache     int     `json:"cache"`
	Processed int     `json:"processed"`
	Time      float64 `json:"time_ms"`
}

// finalOut is the whole answer, and the last piece of a stream, whose content is empty.
type finalOut struct {
	Index     int         `json:"index"`
	Content   string      `json:"content"`
	Tokens    []int32     `json:"tokens"`
	Slot      int         `json:"id_slot"`
	Stop      bool        `json:"stop"`
	Model     string      `json:"model"`
	Predicted int         `json:"tokens_predicted"`
	Evaluated int         `json:"tokens_evaluated"`
	Settings  settingsOut `json:"generation_settings"`
	Prompt    string      `json:"prompt"`
	NewLine   bool        `json:"has_new_line"`
	Truncated bool        `json:"truncated"`
	StopType  string      `json:"stop_type" schema:"none,eos,limit,word"`
	StopWord  string      `json:"stopping_word"`
	Cached    int         `json:"tokens_cached"`
	Probs     []tokenProb `json:"completion_probabilities,omitempty"`
	Timings   timingsOut  `json:"timings"`
}

type timingsOut struct {
	Cached        int     `json:"cache_n"`
	Prompt        int     `json:"prompt_n"`
	PromptTime    float64 `json:"prompt_ms"`
	PromptPer     float64 `json:"prompt_per_token_ms"`
	PromptRate    float64 `json:"prompt_per_second"`
	Predicted     int     `json:"predicted_n"`
	PredictedTime float64 `json:"predicted_ms"`
	PredictedPer  float64 `json:"predicted_per_token_ms"`
	PredictedRate float64 `json:"predicted_per_second"`
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func timingsOf(u chat.Usage) timingsOut {
	t := timingsOut{
		Cached:        u.Cached,
		Prompt:        u.Prompt - u.Cached,
		PromptTime:    milliseconds(u.Prefill),
		Predicted:     u.Generated,
		PredictedTime: milliseconds(u.Decode),
	}
	t.PromptPer, t.PromptRate = over(t.PromptTime, float64(t.Prompt)), over(1000*float64(t.Prompt), t.PromptTime)
	t.PredictedPer, t.PredictedRate = over(
		t.PredictedTime,
		float64(t.Predicted),
	), over(
		1000*float64(t.Predicted),
		t.PredictedTime,
	)
	return t
}

type tokenProb struct {
	ID      int32        `json:"id"`
	Token   string       `json:"token"`
	Bytes   []int        `json:"bytes"`
	LogProb float32      `json:"logprob"`
	Top     *[]tokenProb `json:"top_logprobs,omitempty"`
}

func probOf(t chat.TokenLog, top bool) tokenProb {
	p := tokenProb{
		ID:      t.ID,
		Token:   strings.ToValidUTF8(t.Text, "\uFFFD"),
		Bytes:   []int{},
		LogProb: max(t.LogProb, -math.MaxFloat32),
	}
	for _, b := range []byte(t.Text) {
		p.Bytes = append(p.Bytes, int(b))
	}
	if top {
		list := []tokenProb{}
		for _, x := range t.Top {
			list = append(list, probOf(x, false))
		}
		p.Top = &list
	}
	return p
}

func (d *dialect) completion(w http.ResponseWriter, r *http.Request) error {
	q := &request{}
	if err := server.Decode(r, completionTable, q); err != nil {
		return err
	}
	for i := range q.prompts {
		p := q.chat
		p.Prompt, p.PromptTokens = q.prompts[i].Prompt, q.prompts[i].PromptTokens
		q.prompts[i] = p
	}
	return d.run(w, r, q)
}

func (d *dialect) infill(w http.ResponseWriter, r *http.Request) error {
	q := &request{}
	if err := server.Decode(r, infillTable, q); err != nil {
		return err
	}
	p := q.chat
	p.Fill, p.Middle, p.SuffixField = true, q.gapPrompt, "model"
	q.prompts = []chat.Request{p}
	return d.run(w, r, q)
}

// run answers all prompts of a request: their answers are made at once, and written in order.
func (d *dialect) run(w http.ResponseWriter, r *http.Request, q *request) error {
	if _, err := d.env.Chat.Resolve(r.Context(), q.chat.Model); err != nil {
		return err
	}
	q.draw()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := d.env.NewEvents(w)
	if q.stream {
		stop := out.Beat(15*time.Second, func() error { return out.Comment("working") })
		defer stop()
	}
	var streams []*chat.Stream
	defer func() {
		for _, s := range streams {
			s.Close()
		}
	}()
	for i := range q.prompts {
		p := &q.prompts[i]
		p.Raw = true
		p.Sampling, p.Progress = q.chat.Sampling, q.stream && (q.progress || server.WantsProgress(r))
		s, err := d.env.Chat.Run(ctx, p)
		if err != nil {
			return d.fail(out, err)
		}
		streams = append(streams, s)
	}
	var answers []any
	for i, s := range streams {
		a := &answer{d: d, q: q, s: s, out: out, reports: server.WantsProgress(r), began: d.env.Now()}
		list, err := a.read(i * max(q.chat.N, 1))
		if err != nil {
			return d.fail(out, err)
		}
		answers = append(answers, list...)
	}
	if q.stream {
		return nil
	}
	if !q.list && len(answers) == 1 {
		return server.WriteJSON(w, http.StatusOK, answers[0])
	}
	return server.WriteJSON(w, http.StatusOK, answers)
}

// fail puts an error into a stream that was begun, or hands it back to be answered.
func (d *dialect) fail(out *server.Writer, err error) error {
	e := chat.AsError(err)
	if !out.Withdraw() {
		if err := out.Event("", errorOf(e)); err != nil {
			return err
		}
	}
	return e
}

// An answer reads one stream, which may have several choices.
type answer struct {
	d       *dialect
	q       *request
	s       *chat.Stream
	out     *server.Writer
	reports bool // the client asked for comments
	began   time.Time

	choices []choice
}

type choice struct {
	content strings.Builder // of the whole answer, also where it is streamed
	tokens  []int32
	probs   []tokenProb
	first   time.Time // of the first text
	sent    int       // tokens so far
	ended   bool      // by n_indent or t_max_predict_ms
	reason  chat.Reason
	word    string
}

// read reads a stream to its end. The choices have indexes from first on.
func (a *answer) read(first int) ([]any, error) {
	a.choices = make([]choice, max(a.q.chat.N, 1))
	for delta := range a.s.All() {
		c := &a.choices[delta.Choice]
		switch delta.Kind {
		case chat.PrefillDelta:
			if err := a.prefill(first, delta); err != nil {
				return nil, err
			}
		case chat.TextDelta:
			if c.ended {
				continue
			}
			p := a.take(c, delta)
			p.Index = first + delta.Choice
			if a.q.stream && (p.Content != "" || len(p.Tokens) > 0) {
				if err := a.send(p); err != nil {
					return nil, err
				}
			}
		case chat.Finish:
			if !c.ended {
				c.reason, c.word = delta.Reason, delta.StopString
			}
		case chat.Done:
			if delta.Err != nil {
				return nil, delta.Err
			}
			return a.finish(first, delta.Usage)
		}
	}
	return nil, &chat.Error{Kind: chat.Internal, Msg: "the stream ended without its last piece"}
}

func (a *answer) prefill(first int, delta chat.Delta) error {
	if a.reports {
		if err := a.out.Prefill(server.ReportOf(delta)); err != nil {
			return err
		}
	}
	if !a.q.progress {
		return nil
	}
	p := delta.Prefill
	return a.send(pieceOut{Index: first, Tokens: []int32{}, Evaluated: a.s.PromptCount(), Progress: &progress{
		Total: p.Total, Cache: p.Cached, Processed: p.Ready, Time: milliseconds(a.d.env.Now().Sub(a.began)),
	}})
}

// take adds a delta to its choice, up to where the request ends it.
func (a *answer) take(c *choice, delta chat.Delta) pieceOut {
	text := delta.Text
	if c.first.IsZero() {
		c.first = a.d.env.Now()
	}
	before := c.content.Len()
	c.content.WriteString(text)
	if end, cut := a.end(c, before); cut {
		c.ended, c.reason = true, chat.Length
		whole := c.content.String()[:max(end, before)]
		text = whole[before:]
		whole = c.content.String()[:end] // what was sent stays sent
		c.content.Reset()
		c.content.WriteString(whole)
		a.s.Stop()
	}
	p := pieceOut{Content: text, Tokens: []int32{}, Evaluated: a.s.PromptCount()}
	for _, t := range delta.Tokens {
		if a.q.tokens {
			p.Tokens = append(p.Tokens, t.ID)
		}
		if a.q.chat.TopLogs > 0 {
			p.Probs = append(p.Probs, probOf(t, true))
		}
	}
	c.sent += max(1, len(delta.Tokens))
	p.Predicted = c.sent
	c.tokens, c.probs = append(c.tokens, p.Tokens...), append(c.probs, p.Probs...)
	if a.q.timings {
		t := timingsOf(
			chat.Usage{
				Prompt:    a.s.PromptCount(),
				Generated: c.sent,
				Prefill:   c.first.Sub(a.began),
				Decode:    a.d.env.Now().Sub(c.first),
			},
		)
		p.Timings = &t
	}
	return p
}

// end tells whether the text so far has reached an end that the request sets, and where that is. Up to seen it has been
// looked at, but for how the last line there goes on.
func (a *answer) end(c *choice, seen int) (at int, cut bool) {
	text := c.content.String()
	if n := a.q.indent; n > 0 {
		for i := max(strings.LastIndexByte(text[:seen], '\n'), 0); i < len(text); {
			nl := strings.IndexByte(text[i:], '\n')
			if nl < 0 {
				break
			}
			i += nl + 1
			line := text[i:]
			rest := strings.TrimLeft(line, " \t")
			if rest != "" && rest[0] != '\n' && rest[0] != '\r' && len(line)-len(rest) < n {
				return i - 1, true
			}
		}
	}
	if a.q.most > 0 && strings.Contains(text, "\n") && a.d.env.Now().Sub(c.first) >= a.q.most {
		return len(text), true
	}
	return 0, false
}

// send writes a piece of the stream.
func (a *answer) send(v any) error {
	if a.q.keep != nil {
		v = pick(v, append(a.q.keep, "stop")) // clients find the end by it
	}
	return a.out.Event("", v)
}

// finish makes the last words of each choice.
func (a *answer) finish(first int, u chat.Usage) ([]any, error) {
	var list []any
	for i := range a.choices {
		c := &a.choices[i]
		f := finalOut{
			Index: first + i, Content: c.content.String(), Tokens: c.tokens, Stop: true, Model: a.s.Model(), Predicted: u.Generated, Evaluated: u.Prompt,
			Settings: a.settings(), Prompt: a.s.PromptText(), NewLine: strings.Contains(c.content.String(), "\n"), StopType: stopType(c.reason), StopWord: c.word,
			Cached: u.Cached, Probs: c.probs, Timings: timingsOf(u),
		}
		f.Truncated = c.reason == chat.Length && u.Prompt+u.Generated >= a.s.Context()
		if f.Tokens == nil {
			f.Tokens = []int32{}
		}
		if !a.q.stream {
			var v any = f
			if a.q.keep != nil {
				v = pick(f, a.q.keep)
			}
			list = append(list, v)
			continue
		}
		f.Content, f.Tokens, f.Probs = "", []int32{}, nil
		if err := a.send(f); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func stopType(r chat.Reason) string {
	switch r {
	case chat.StopSequence:
		return "word"
	case chat.Length:
		return "limit"
	}
	return "eos"
}

// pick leaves the named fields of an answer; a/b takes b out of a, under the whole name.
func pick(v any, names []string) map[string]any {
	b, err := server.Marshal(v)
	if err != nil {
		return map[string]any{}
	}
	var all map[string]any
	if json.Unmarshal(b, &all) != nil {
		return map[string]any{}
	}
	out := map[string]any{}
	for _, name := range names {
		at := any(all)
		ok := true
		for part := range strings.SplitSeq(name, "/") {
			m, is := at.(map[string]any)
			if at, ok = m[part]; !is || !ok {
				ok = false
				break
			}
		}
		if ok {
			out[name] = at
		}
	}
	return out
}

// settingsOut are what an answer was drawn with, in llama.cpp's names.
type settingsOut struct {
	Context          int      `json:"n_ctx"`
	Predict          int      `json:"n_predict"`
	Seed             uint64   `json:"seed"`
	Temperature      float32  `json:"temperature"`
	TopK             int      `json:"top_k"`
	TopP             float32  `json:"top_p"`
	MinP             float32  `json:"min_p"`
	TypicalP         float32  `json:"typical_p"`
	RepeatLastN      int      `json:"repeat_last_n"`
	RepeatPenalty    float32  `json:"repeat_penalty"`
	PresencePenalty  float32  `json:"presence_penalty"`
	FrequencyPenalty float32  `json:"frequency_penalty"`
	Stop             []string `json:"stop"`
	MaxTokens        int      `json:"max_tokens"`
	Stream           bool     `json:"stream"`
	Probs            int      `json:"n_probs"`
	Samplers         []string `json:"samplers"`
}

func (a *answer) settings() settingsOut {
	p := a.s.Sampling()
	s := settingsFrom(p)
	s.Context, s.Seed, s.Stream, s.Probs = a.s.Context(), p.Seed, a.q.stream, a.q.chat.TopLogs
	if a.q.chat.Stop != nil {
		s.Stop = a.q.chat.Stop
	}
	switch n := a.q.chat.MaxTokens; {
	case n < 0:
		s.Predict = 0
	case n > 0:
		s.Predict = n
	}
	s.MaxTokens = s.Predict
	return s
}
