package chat

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/baleenrun/baleen/internal/sample"
)

// A Stream is the output of one request. Its methods are for one goroutine; to cancel it from another one, end the
// context. Close may be called more than once.
type Stream struct {
	svc    *Service
	r      *Request
	lease  *Lease
	prompt *prompt
	trace  *Trace
	ctx    context.Context
	cancel context.CancelCauseFunc
	began  time.Time

	choices     []*choice
	merged      chan Delta // of several answers
	open        int        // answers without their Finish
	endThinking atomic.Bool
	failed      *Error
	end         string
	done        bool // Done was handed out
	closeOnce   sync.Once

	logs      []TokenLog // of the prompt, where asked for
	logsReady chan struct{}
	logsEnd   <-chan struct{} // closed when nobody adds to them any more

	raw   bytes.Buffer // what the model wrote, where the trace records
	rawMu sync.Mutex
}

func newStream(
	ctx context.Context,
	cancel context.CancelCauseFunc,
	svc *Service,
	r *Request,
	l *Lease,
	p *prompt,
	began time.Time,
) (*Stream, error) {
	own, _ := l.Model.Sampling()
	params, err := r.sampling(&l.Spec, own)
	if err != nil {
		return nil, err
	}
	s := &Stream{
		svc:       svc,
		r:         r,
		lease:     l,
		prompt:    p,
		trace:     TraceOf(ctx),
		ctx:       ctx,
		cancel:    cancel,
		began:     began,
		logsReady: make(chan struct{}),
	}
	s.trace.record("prompt.txt", []byte(p.text))
	if !p.time.IsZero() { // pins the prompt: see Request.Now
		s.trace.record("time.txt", []byte(p.time.Format(time.RFC3339)+"\n"))
	}
	n := max(r.N, 1)
	for i := range n {
		c := newChoice(s, i, params)
		c.params.Seed += uint64(i) // answers differ, and the first is that of N = 1
		s.choices = append(s.choices, c)
	}
	for _, c := range s.choices {
		if err := c.start(); err != nil {
			cancel(err)
			for _, c := range s.choices {
				c.drain()
			}
			return nil, engineError(err)
		}
	}
	s.open = n
	if n > 1 {
		s.merged = make(chan Delta, 64)
		var wg sync.WaitGroup
		for _, c := range s.choices {
			wg.Go(func() { s.forward(c) })
		}
		go func() { wg.Wait(); close(s.merged) }()
	}
	return s, nil
}

// forward hands out what one of several answers says. A panic ends that answer, and with it the request: there is
// nobody else on this goroutine to recover from it.
func (s *Stream) forward(c *choice) {
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("an answer panicked: %v\n%s", p, debug.Stack())
			s.merged <- Delta{Kind: Finish, Choice: c.index, Reason: Failed, Err: &Error{Kind: Internal, Err: err}}
		}
	}()
	for {
		d, ok := c.next()
		if !ok {
			return
		}
		s.merged <- d
	}
}

// Model returns the model's name in the catalog.
func (s *Stream) Model() string { return s.lease.Spec.Name }

// Context returns how many tokens prompt and answer can have together.
func (s *Stream) Context() int {
	if n := s.lease.Model.Engine.Capacity(); s.r.Context <= 0 || n < s.r.Context {
		return n
	}
	return s.r.Context
}

// Sampling returns what the first answer is drawn with.
func (s *Stream) Sampling() sample.Params { return s.choices[0].params }

// PromptCount returns the number of prompt tokens, with those that the answer spells out again.
func (s *Stream) PromptCount() int { return s.prompt.count() }

// PromptText returns the prompt as the model sees it.
func (s *Stream) PromptText() string { return s.prompt.text }

// Tokens returns prompt and answer as token ids, of the first answer, the token that ended it included: a prompt
// that goes on behind them must see the turn closed. It is complete after Done.
func (s *Stream) Tokens() []int32 {
	return slices.Concat(s.choices[0].tokens, s.choices[0].out, s.choices[0].stopped)
}

// Said returns prompt and first answer as token ids, without the token that ended it, for Request.Said. It is
// complete after Done.
func (s *Stream) Said() []int32 { return slices.Concat(s.choices[0].tokens, s.choices[0].out) }

// AnswerTokens returns the ids that the model wrote as the first answer, without the one that ended it. It is
// complete after Done.
func (s *Stream) AnswerTokens() []int32 { return slices.Clone(s.choices[0].out) }

// Load returns how long the request waited for its model to be loaded.
func (s *Stream) Load() time.Duration { return s.lease.Load }

// PromptTokens returns the prompt's tokens with their log probabilities where Request.PromptLogProbs asked for
// them. It waits until the prompt is computed. The first token has none: its LogProb is NaN. nil: the answer that
// computes them ended before, and Done says why.
func (s *Stream) PromptTokens() []TokenLog {
	if !s.r.PromptLogProbs {
		return nil
	}
	select {
	case <-s.logsReady:
		return s.logs
	case <-s.logsEnd: // its Finish may wait behind the caller
	case <-s.ctx.Done():
	}
	select {
	case <-s.logsReady: // both at once
		return s.logs
	default:
		return nil
	}
}

// promptLogits makes the function that collects the prompt's log probabilities on the engine's goroutine.
func (s *Stream) promptLogits() func(pos int, logits []float32) {
	m, ids := s.lease.Model, s.prompt.tokens
	scratch := sample.NewScratch(m.Plan.Vocab)
	var once sync.Once
	s.logs = append(s.logs, TokenLog{ID: ids[0], Text: m.tokenText(ids[0]), LogProb: float32(math.NaN())})
	return func(pos int, logits []float32) {
		if pos+1 >= len(ids) {
			if pos+1 == len(ids) {
				once.Do(func() { close(s.logsReady) })
			}
			return
		}
		lp, top := sample.LogProbs(scratch, nil, logits, ids[pos+1], s.r.TopLogs)
		s.logs = append(s.logs, m.tokenLog(ids[pos+1], lp, top))
	}
}

func (m *Model) tokenText(id int32) string {
	if m.Tokenizer.IsSpecial(id) {
		t, _ := m.Tokenizer.Token(id)
		return t
	}
	return string(m.Tokenizer.Bytes(id))
}

func (m *Model) tokenLog(id int32, lp float32, top []sample.LogProb) TokenLog {
	t := TokenLog{ID: id, Text: m.tokenText(id), LogProb: lp}
	for _, x := range top {
		t.Top = append(t.Top, TokenLog{ID: x.Token, Text: m.tokenText(x.Token), LogProb: x.LogProb})
	}
	return t
}

// Next waits for the next delta. It returns false after Done.
func (s *Stream) Next() (Delta, bool) {
	if s.done {
		return Delta{}, false
	}
	if d, ok := s.pull(); ok {
		if d.Kind != Finish {
			return d, true
		}
		s.open--
		s.end = d.Reason.String()
		if d.Err != nil && s.failed == nil {
			s.failed, s.end = d.Err, d.Err.Kind.String()
			s.cancel(d.Err) // the other answers end, too
		}
		d.Err = nil
		return d, true
	}
	s.done = true
	u := s.usage()
	s.finish(u)
	return Delta{Kind: Done, Usage: u, Err: s.failed}, true
}

// pull waits for the next delta of any answer; false when all have ended.
func (s *Stream) pull() (d Delta, ok bool) {
	switch {
	case s.open == 0:
		return d, false
	case s.merged != nil:
		d, ok = <-s.merged
		return d, ok
	}
	return s.choices[0].next()
}

// All yields the deltas up to and including Done. Leaving the loop early closes the stream.
func (s *Stream) All() func(yield func(Delta) bool) {
	return func(yield func(Delta) bool) {
		defer s.Close()
		for {
			d, ok := s.Next()
			if !ok || !yield(d) {
				return
			}
		}
	}
}

// Stop ends the answer where it is: what was generated of it and not read is dropped, and Next goes on with its
// Finish, for the reason Length. Several answers go on.
func (s *Stream) Stop() {
	if s.merged != nil || s.open == 0 {
		return
	}
	c := s.choices[0]
	c.drain()
	if !c.finished {
		c.queue = nil
		c.end(Length, "", nil)
		return
	}
	c.queue = c.queue[len(c.queue)-1:] // the Finish
}

// Close cancels what still runs and gives the model back.
func (s *Stream) Close() { s.finish(Usage{}) }

// finish ends the request once.
func (s *Stream) finish(u Usage) {
	s.closeOnce.Do(func() {
		s.svc.forget(s)
		s.cancel(context.Canceled)
		if s.merged != nil {
			for range s.merged { // the goroutines of the answers end
			}
		}
		for _, c := range s.choices {
			c.drain()
		}
		if !s.done {
			u = s.usage()
			s.end, s.failed = Cancelled.String(), &Error{Kind: Cancelled}
		}
		s.lease.Release()
		s.recordRaw()
		s.trace.ended(u, s.end, s.failed)
		if h := s.svc.o.Hooks.Ended; h != nil {
			h(s.lease.Spec.Name, u, s.end)
		}
	})
}

// recordRaw keeps what the model wrote so far.
func (s *Stream) recordRaw() {
	s.rawMu.Lock()
	defer s.rawMu.Unlock()
	s.trace.record("output.txt", s.raw.Bytes())
	s.raw.Reset()
}

// usage sums up the answers, which have ended.
func (s *Stream) usage() Usage {
	first := s.choices[0]
	u := Usage{
		Prompt: s.prompt.count(),
		Cached: first.cached,
		Load:   s.lease.Load,
		Seed:   first.params.Seed,
		Total:  time.Since(s.began),
	}
	for _, c := range s.choices {
		u.Generated += c.generated
		u.Reasoning += c.reasoning
		u.Prompt += c.extra
		if c.guarded {
			u.Concluded++
		}
		if d := c.last.Sub(c.firstAt); c.generated > 1 && d > u.Decode {
			u.Decode = d
		}
	}
	u.Queue = first.queueWait
	if !first.firstAt.IsZero() {
		u.First = first.firstAt.Sub(s.began)
		u.Prefill = max(0, first.firstAt.Sub(first.started)-first.queueWait)
	}
	return u
}
