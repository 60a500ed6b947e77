package openai

import (
	"context"
	"math"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// completionRequest is a request for completions: one chat.Request for each prompt.
type completionRequest struct {
	common
	prompts  []chat.Request // only Prompt or PromptTokens are set
	echo     bool
	logprobs int // alternatives; -1: none asked for
	bestOf   int
	noTokens bool // max_tokens was 0
	hasMax   bool
}

func completionPart(r *completionRequest) *common { return &r.common }

// defaultMaxTokens is the documented default of this route.
const defaultMaxTokens = 16

var completionTable = &fields.Table[completionRequest]{Name: "completion request", Where: []map[string]any{
	streamOnly, oneOfOne, needs("max_tokens", map[string]any{"anyOf": []any{map[string]any{"type": "null"}, map[string]any{"type": "integer", "not": map[string]any{"const": 0}}}}, "echo", map[string]any{"const": true}),
}, Fields: append(
	classicFields(completionPart),
	field(
		completionPart,
		"model",
		fields.String(),
		"name of the model",
		func(c *common, v fields.Value) error { c.req.Model = v.String(); return nil },
	),
	fields.Field[completionRequest]{
		Name: "prompt", Required: true, Doc: "a text, a list of texts, token ids, or lists of token ids",
		Type: fields.String().
			Or(fields.List(fields.String()).Where(severalPrompts)).
			Or(fields.List(fields.Int(0, 1<<31-1)).Where(somePrompt)).
			Or(fields.List(fields.List(fields.Int(0, 1<<31-1)).Where(somePrompt)).Where(severalPrompts)),
		Set: setPrompts,
	},
	fields.Field[completionRequest]{
		Name: "suffix",
		Type: fields.String(),
		Doc:  "text behind a gap that is to be filled, for models trained for it",
		Set: func(r *completionRequest, v fields.Value) error {
			r.req.Suffix, r.req.SuffixField = v.String(), v.Path
			return nil
		},
	},
	fields.Field[completionRequest]{
		Name: "special_tokens",
		Type: fields.Bool(),
		Doc: "not OpenAI's: whether control tokens that are written out in the prompt, such as marks of gaps and " +
			"turns, are read as such; true where it is left out",
		Set: func(r *completionRequest, v fields.Value) error {
			r.req.PromptPlain = !v.Bool()
			return nil
		},
	},
	fields.Field[completionRequest]{
		Name: "token_healing",
		Type: fields.Bool(),
		Doc: "not OpenAI's: whether a prompt, or the text before a gap, that ends inside a token is taken back to " +
			"the token's begin, which the answer then spells out unseen",
		Set: func(r *completionRequest, v fields.Value) error {
			heal := v.Bool()
			r.req.Heal = &heal
			return nil
		},
	},
	fields.Field[completionRequest]{
		Name: "max_tokens",
		Type: fields.Int(-1, anyHi),
		Doc: "most tokens to generate; 16 where it is left out. 0 with echo scores the prompt. -1, which is not " +
			"OpenAI's: until the context is full",
		Set: func(r *completionRequest, v fields.Value) error {
			r.req.MaxTokens, r.noTokens, r.hasMax = max(0, v.Int()), v.Int() == 0, true
			return nil
		},
	},
	fields.Field[completionRequest]{
		Name: "echo",
		Type: fields.Bool(),
		Doc:  "the prompt stands before the answer",
		Set:  func(r *completionRequest, v fields.Value) error { r.echo = v.Bool(); return nil },
	},
	fields.Field[completionRequest]{
		Name: "logprobs",
		Type: fields.Int(0, 5),
		Doc:  "log probability of each token, and of so many alternatives; with echo, of the prompt's too",
		Set: func(r *completionRequest, v fields.Value) error {
			r.logprobs = v.Int()
			return nil
		},
	},
	fields.Field[completionRequest]{
		Name: "best_of",
		Type: fields.Int(1, 20).Only(1).Takes("the number of n"),
		Doc:  "answers are not made to be thrown away",
		Set:  func(r *completionRequest, v fields.Value) error { r.bestOf = v.Int(); return nil },
	},
)}

const maxPrompts = 64

var (
	somePrompt     = map[string]any{"minItems": 1}
	severalPrompts = map[string]any{"minItems": 1, "maxItems": maxPrompts}
)

// oneOfOne says that best_of is n. That both may be larger is left out: documents would need a branch for each number.
var oneOfOne = map[string]any{"anyOf": []any{
	map[string]any{"properties": map[string]any{"best_of": map[string]any{"type": "null"}}},
	map[string]any{"properties": map[string]any{"n": map[string]any{"enum": []any{nil, 1}}}},
}}

// setPrompts reads the four shapes of a prompt.
func setPrompts(r *completionRequest, v fields.Value) error {
	if v.Kind() == "array" {
		if first, ok := v.First(); ok && first.Kind() == "number" {
			r.prompts = []chat.Request{{PromptTokens: v.Int32s()}}
			return nil
		}
	}
	items := v.Items()
	switch {
	case v.Kind() == "string":
		r.prompts = []chat.Request{{Prompt: v.String()}}
	case len(items) == 0:
		return chat.Invalidf(v.Path, "there is no prompt in the list")
	default:
		if len(items) > maxPrompts {
			return chat.Invalidf(v.Path, "%d prompts, want at most %d", len(items), maxPrompts)
		}
		for _, it := range items {
			p := chat.Request{Prompt: it.String()}
			if it.Kind() == "array" {
				if p.PromptTokens = it.Int32s(); len(p.PromptTokens) == 0 {
					return chat.Invalidf(it.Path, "there are no tokens in the list")
				}
			}
			r.prompts = append(r.prompts, p)
		}
	}
	return nil
}

func (r *completionRequest) finish() error {
	if err := r.check(); err != nil {
		return err
	}
	n := max(r.req.N, 1)
	switch {
	case r.bestOf > 0 && r.bestOf != n:
		return chat.Unsupportedf("best_of", "only supported where it equals n")
	case n*len(r.prompts) > 128:
		return chat.Invalidf("n", "%d answers for %d prompts, want at most 128 together", n, len(r.prompts))
	case !r.hasMax:
		r.req.MaxTokens = defaultMaxTokens
	case r.noTokens && !r.echo:
		return chat.Invalidf("max_tokens", "0 needs echo: there would be nothing to answer")
	case r.noTokens:
		r.req.MaxTokens = -1
	}
	r.req.Raw = true
	if r.logprobs >= 0 {
		r.req.LogProbs, r.req.TopLogs = true, r.logprobs
		r.req.PromptLogProbs = r.echo
	}
	for i := range r.prompts {
		p := r.req
		p.Prompt, p.PromptTokens = r.prompts[i].Prompt, r.prompts[i].PromptTokens
		r.prompts[i] = p
	}
	return nil
}

type textLogprobs struct {
	Tokens  []string              `json:"tokens"`
	Logs    []*float32            `json:"token_logprobs"`
	Top     []*map[string]float32 `json:"top_logprobs"`
	Offsets []int                 `json:"text_offset"`
}

func (l *textLogprobs) add(ts []chat.TokenLog, offset int, top bool) {
	for _, t := range ts {
		l.Tokens = append(l.Tokens, spell(t.Text))
		l.Offsets = append(l.Offsets, t.Offset+offset)
		if math.IsNaN(float64(t.LogProb)) {
			l.Logs, l.Top = append(l.Logs, nil), append(l.Top, nil)
			continue
		}
		lp := t.LogProb
		l.Logs = append(l.Logs, &lp)
		var m *map[string]float32 // null where no alternatives were asked for
		if top {
			m = &map[string]float32{}
			for _, x := range t.Top {
				(*m)[spell(x.Text)] = x.LogProb
			}
		}
		l.Top = append(l.Top, m)
	}
}

// spell writes a token that is not whole characters as OpenAI does.
func spell(t string) string {
	if utf8.ValidString(t) {
		return t
	}
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteString("bytes:")
	for _, x := range []byte(t) {
		b.WriteString(`\x` + string(hex[x>>4]) + string(hex[x&15]))
	}
	return b.String()
}

type textChoice struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	LogProbs *textLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

type textChunk struct {
	completionHead
	Choices []textChoice `json:"choices"`
	Usage   *usage       `json:"usage,omitempty"`
	Print   string       `json:"system_fingerprint"`
}

// part is a piece of the answer to one of several prompts.
type part struct {
	prompt int
	delta  chat.Delta
}

// join reads several streams at once. Leaving the loop early calls cancel, which ends their context: otherwise each
// would go on until its next delta.
func join(cancel func(), streams []*chat.Stream) func(yield func(part) bool) {
	return func(yield func(part) bool) {
		if len(streams) == 1 {
			for d := range streams[0].All() {
				if !yield(part{0, d}) {
					return
				}
			}
			return
		}
		parts, stop := make(chan part), make(chan struct{})
		var wg sync.WaitGroup
		for i, s := range streams {
			wg.Go(func() {
				for d := range s.All() {
					select {
					case parts <- part{i, d}:
					case <-stop:
						return
					}
				}
			})
		}
		go func() { wg.Wait(); close(parts) }()
		defer func() {
			cancel()
			close(stop)
			for range parts { // until the goroutines have ended
			}
		}()
		for p := range parts {
			if !yield(p) {
				return
			}
		}
	}
}

func (d *dialect) completions(w http.ResponseWriter, r *http.Request) error {
	q := &completionRequest{logprobs: -1}
	if err := server.Decode(r, completionTable, q); err != nil {
		return err
	}
	if err := d.known(r, q.req.Model); err != nil {
		return err
	}
	if err := q.finish(); err != nil {
		return err
	}
	out := d.env.NewEvents(w)
	if q.stream {
		for i := range q.prompts {
			q.prompts[i].Progress = server.WantsProgress(r)
		}
		stop := keepAlive(out)
		defer stop()
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var streams []*chat.Stream
	for i := range q.prompts {
		s, err := d.env.Chat.Run(ctx, &q.prompts[i])
		if err != nil {
			cancel()
			for _, s := range streams {
				s.Close()
			}
			if !out.Withdraw() {
				return endStream(out, chat.AsError(err))
			}
			return err
		}
		streams = append(streams, s)
	}
	return (&completer{d: d, q: q, streams: streams, cancel: cancel, out: out, n: max(q.req.N, 1)}).run(w)
}

// completer writes the answer of one request.
type completer struct {
	d       *dialect
	q       *completionRequest
	streams []*chat.Stream
	cancel  func() // ends all of them
	out     *server.Writer
	n       int
	head    completionHead
	choices []textChoice
	echoed  []bool
	runes   []int // of the prompt, where it is echoed
	total   chat.Usage
	done    int
}

func (c *completer) run(w http.ResponseWriter) error {
	c.head = c.d.head("cmpl-", "text_completion", c.streams[0].Model())
	c.choices = make([]textChoice, c.n*len(c.streams))
	c.echoed, c.runes = make([]bool, len(c.choices)), make([]int, len(c.choices))
	for i := range c.choices {
		c.choices[i].Index = i
		if c.q.logprobs >= 0 {
			c.choices[i].LogProbs = &textLogprobs{
				Tokens:  []string{},
				Logs:    []*float32{},
				Top:     []*map[string]float32{},
				Offsets: []int{},
			}
		}
	}
	for p := range join(c.cancel, c.streams) {
		if p.delta.Kind == chat.Done {
			if err := p.delta.Err; err != nil {
				if !c.out.Withdraw() {
					return endStream(c.out, err)
				}
				return err
			}
			c.done++
			c.sum(p.delta.Usage)
			if c.done == len(c.streams) {
				return c.end(w)
			}
			continue
		}
		if p.delta.Kind == chat.PrefillDelta {
			report := server.ReportOf(p.delta)
			report.Prompt = p.prompt
			if err := c.out.Prefill(report); err != nil {
				return err
			}
			continue
		}
		if err := c.take(p); err != nil {
			return err
		}
	}
	return &chat.Error{Kind: chat.Internal}
}

func (c *completer) sum(u chat.Usage) {
	c.total.Prompt += u.Prompt
	c.total.Cached += u.Cached
	c.total.Generated += u.Generated
}

// take adds a delta to its answer, and sends it where the answer is streamed.
func (c *completer) take(p part) error {
	i := p.prompt*c.n + p.delta.Choice
	piece := textChoice{Index: i}
	if c.q.logprobs >= 0 {
		piece.LogProbs = &textLogprobs{
			Tokens:  []string{},
			Logs:    []*float32{},
			Top:     []*map[string]float32{},
			Offsets: []int{},
		}
	}
	if c.q.echo && !c.echoed[i] {
		c.echoed[i] = true
		c.echo(&piece, p.prompt)
		c.runes[i] = utf8.RuneCountInString(piece.Text)
	}
	switch p.delta.Kind {
	case chat.TextDelta:
		piece.Text += p.delta.Text
		if piece.LogProbs != nil {
			piece.LogProbs.add(p.delta.Tokens, c.runes[i], c.q.logprobs > 0)
		}
	case chat.Finish:
		f := finishReason(p.delta.Reason)
		piece.Finish = &f
		if p.delta.Reason == chat.Failed {
			return nil
		}
	}
	if c.q.stream {
		return c.out.Event(
			"",
			textChunk{completionHead: c.head, Choices: []textChoice{piece}, Print: c.d.fingerprint()},
		)
	}
	whole := &c.choices[i]
	whole.Text += piece.Text
	whole.Finish = piece.Finish
	if l := piece.LogProbs; l != nil {
		w := whole.LogProbs
		w.Tokens, w.Logs = append(w.Tokens, l.Tokens...), append(w.Logs, l.Logs...)
		w.Top, w.Offsets = append(w.Top, l.Top...), append(w.Offsets, l.Offsets...)
	}
	return nil
}

// echo puts the prompt before an answer.
func (c *completer) echo(piece *textChoice, prompt int) {
	q, s := &c.q.prompts[prompt], c.streams[prompt]
	piece.Text = q.Prompt
	if len(q.PromptTokens) > 0 {
		piece.Text = s.PromptText()
	}
	if piece.LogProbs == nil {
		return
	}
	logs := s.PromptTokens()
	chat.SetOffsets(logs, 0, nil)
	piece.LogProbs.add(logs, 0, c.q.logprobs > 0)
}

func (c *completer) end(w http.ResponseWriter) error {
	if !c.q.stream {
		return server.WriteJSON(
			w,
			http.StatusOK,
			textChunk{completionHead: c.head, Choices: c.choices, Usage: usageOf(c.total), Print: c.d.fingerprint()},
		)
	}
	if c.q.includeUsage {
		if err := c.out.Event("", textChunk{completionHead: c.head, Choices: []textChoice{}, Usage: usageOf(c.total), Print: c.d.fingerprint()}); err != nil {
			return err
		}
	}
	return c.out.Data(string(done))
}
