package chat

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/sample"
	"github.com/baleenrun/baleen/internal/tokenizer"
	"github.com/baleenrun/baleen/internal/toolfmt"
)

// A choice is one answer of a stream: it turns the engine's events into deltas. It is for one goroutine.
type choice struct {
	s      *Stream
	index  int
	params sample.Params

	engine  *engine.Stream
	decoder *tokenizer.Decoder
	parser  *toolfmt.Parser // nil: a text that is continued
	stop    *stopMatcher
	guard   repeatGuard

	constrained *constrained // nil: the answer is free
	heldCalls   *heldCalls   // nil: its calls are, or the answer is constrained
	calling

	tokens    []int32 // the prompt
	out       []int32 // generated tokens, those that were put in by the server included
	limit     int     // most tokens of out; negative: no bound
	stopped   []int32 // the token that ended the answer, where one did
	generated int     // tokens that the model generated, the one that ended it included
	reasoning int
	budget    int  // of reasoning; 0: none
	cut       bool // thinking was ended, so the budget holds no more
	cutAt     int  // tokens of out before that
	cutText   string
	queue     []Delta
	logs      []TokenLog // of tokens whose text is held back
	partial   []byte     // of a character that logged tokens have begun
	runes     int        // of text handed out
	finished  bool
	open      []byte // of the prompt's end, which the answer's text begins with and does not show
	unspelled int    // bytes of it that no token has spelled out yet
	spelled   int    // tokens that spelled out nothing else

	cached         int
	guarded        bool // the guard changed what comes of it
	again          bool // ... by asking the model again
	gap            bool // what it says then is to be set apart from what it has said
	extra          int  // tokens of a second prompt that were computed
	queueSet       bool
	queueWait      time.Duration
	started        time.Time
	firstAt, last  time.Time
	engineFinished bool
}

func newChoice(s *Stream, index int, params sample.Params) *choice {
	r, m := s.r, s.lease.Model
	c := &choice{
		s: s, index: index, params: params, decoder: s.prompt.decoder(m), limit: -1, open: s.prompt.open, unspelled: len(s.prompt.open),
		stop: newStopMatcher(slices.Concat(r.Stop, s.lease.Spec.Stop)), tokens: s.prompt.tokens,
	}
	c.ids = map[int]string{}
	c.guard = newRepeatGuard(s)
	switch {
	case r.MaxTokens > 0:
		c.limit = r.MaxTokens
	case r.MaxTokens < 0:
		c.limit = 0
	case s.lease.Spec.MaxTokens > 0:
		c.limit = s.lease.Spec.MaxTokens
	}
	if r.Context > 0 {
		room := max(0, min(r.Context, m.Engine.Capacity())-len(s.prompt.tokens))
		if c.limit < 0 || c.limit > room {
			c.limit = room
		}
	}
	if !s.prompt.raw {
		c.parser = s.newParser()
		c.budget = r.thinkingBudget(s.prompt.promptFormat.format)
		if s.prompt.fed != "" {
			c.take(c.parser.Feed(s.prompt.fed))
		}
	}
	return c
}

// newParser returns a parser for one answer.
func (s *Stream) newParser() *toolfmt.Parser {
	r := s.r
	return s.prompt.promptFormat.format.NewParser(s.prompt.tools, toolfmt.Options{
		SingleCall: r.SingleCall && len(s.prompt.tools) > 0, Required: r.Choice.Mode == ToolsRequired,
		CallsOnly: forces(r.Choice) && r.Format.Kind != "",
		Forced:    s.prompt.forced, Prefixed: s.prompt.forced != "" && s.prompt.fed != "", InReasoning: s.prompt.inReasoning,
	})
}

// start hands what is known so far to the engine.
func (c *choice) start() error {
	s := c.s
	r, m := s.r, s.lease.Model
	if r.Context > 0 && len(c.tokens) >= min(r.Context, m.Engine.Capacity()) {
		return &engine.PromptTooLong{Tokens: len(c.tokens), Context: min(r.Context, m.Engine.Capacity())}
	}
	req := &engine.Request{
		Tokens:     append(append([]int32(nil), c.tokens...), c.out...),
		Sampling:   c.params,
		Answered:   len(c.out),
		NoPenalty:  c.pauses(),
		Progress:   r.Progress && c.index == 0 && len(c.out) == 0,
		StopTokens: slices.Concat(s.prompt.promptFormat.stops, s.prompt.extraStops, r.StopTokens),
		CacheSalt:  s.trace.cacheSalt(r.CacheSalt),
		Caller:     s.trace.Caller,
	}
	switch {
	case c.limit == 0:
		req.MaxTokens = -1
	case c.limit > 0:
		req.MaxTokens = c.limit - len(c.out) + s.prompt.openTokens
	}
	if len(c.open) > 0 {
		req.Mask = newSpelling(m.Tokenizer, c.open)
	}
	if !c.started.IsZero() {
		req.Priority = 1 // before those whose answers have not begun
	}
	if r.LogProbs {
		req.LogProbs = r.TopLogs + 1
	}
	scores := r.PromptLogProbs && c.index == 0 && len(c.out) == 0
	if scores {
		req.PromptLogits = s.promptLogits()
	}
	if s.prompt.grammar != nil {
		k, err := s.newConstrained(c.out)
		if err != nil {
			return err
		}
		c.constrained, req.Mask = k, k
	} else if s.prompt.calls != nil {
		k, err := s.newHeldCalls(c.out, req.StopTokens)
		if err != nil {
			return err
		}
		c.heldCalls, req.Mask = k, k
	}
	es, err := m.Engine.Generate(s.ctx, req)
	if err != nil {
		return err
	}
	if scores {
		s.logsEnd = es.Ended()
	}
	if c.started.IsZero() {
		c.started = time.Now()
	}
	c.engine, c.engineFinished = es, false
	return nil
}

// next returns the next delta of this answer, false after its Finish.
func (c *choice) next() (Delta, bool) {
	for {
		if len(c.queue) > 0 {
			d := c.queue[0]
			c.queue = c.queue[1:]
			return d, true
		}
		if c.finished {
			return Delta{}, false
		}
		ev, ok := c.engine.Next()
		switch {
		case !ok:
			c.end(Failed, "", &Error{Kind: Internal, Msg: "the engine's stream ended without its last event"})
		case ev.Done:
			c.engineDone(ev)
			c.ended(ev)
		case ev.Prefill != nil:
			c.push(Delta{Kind: PrefillDelta, Prefill: *ev.Prefill})
		default:
			c.token(ev)
		}
	}
}

// engineDone notes what a run of the engine took.
func (c *choice) engineDone(ev engine.Event) {
	c.engineFinished = true
	if !c.queueSet {
		c.queueSet, c.queueWait, c.cached = true, ev.Usage.Queue, ev.Usage.Cached
	}
	if c.again && c.extra == 0 {
		c.extra = len(c.tokens) - ev.Usage.Cached
	}
}

// ended turns the engine's last event into the answer's.
func (c *choice) ended(ev engine.Event) {
	if ev.StopToken >= 0 {
		c.stopped = []int32{ev.StopToken}
		c.generated++
		c.clock()
	}
	switch ev.Reason {
	case engine.FinishCancelled, engine.FinishError:
		err := streamError(ev)
		if k := c.constrained; ev.Reason == engine.FinishError && k != nil && k.err != nil {
			err = &Error{
				Kind:  Unsupported,
				Field: c.s.r.Format.Field,
				Msg:   "the answer cannot be held to the format any further: " + k.err.Error(),
				Err:   k.err,
			}
		}
		if k := c.heldCalls; k != nil && k.err != nil {
			err = &Error{
				Kind:  Unsupported,
				Field: "tools",
				Msg:   "the call cannot be held to its schema any further: " + k.err.Error(),
				Err:   k.err,
			}
		}
		c.end(Failed, "", err)
		return
	}
	if c.text(c.decoder.Flush()) {
		return
	}
	if c.parser != nil {
		end := c.parser.End
		if ev.Reason == engine.FinishLength {
			end = c.parser.Cut
		}
		if c.take(end()) {
			return
		}
	}
	if c.sayRest() {
		return
	}
	c.flushStop()
	reason := Stop
	switch {
	case ev.Reason == engine.FinishLength || c.cutCall:
		reason = Length
	case c.calls > 0:
		reason = ToolCalls
	}
	c.end(reason, "", nil)
}

func streamError(ev engine.Event) *Error {
	if ev.Err == nil {
		return &Error{Kind: Cancelled}
	}
	return AsError(engineError(ev.Err))
}

// clock notes the time of a token.
func (c *choice) clock() {
	now := time.Now()
	h, name := c.s.svc.o.Hooks, c.s.lease.Spec.Name
	if c.firstAt.IsZero() {
		c.firstAt = now
		if h.FirstTok != nil {
			h.FirstTok(name, now.Sub(c.s.began))
		}
	} else if h.Gap != nil {
		h.Gap(name, now.Sub(c.last))
	}
	c.last = now
}

// token takes one generated token.
func (c *choice) token(ev engine.Event) {
	c.generated++
	c.clock()
	c.out = append(c.out, ev.Token)
	m := c.s.lease.Model
	spelled, all := c.spells(ev.Token)
	if all {
		c.spelled++
		c.generated--
	}
	thinking := c.parser != nil && c.parser.InReasoning()
	if thinking {
		c.reasoning++
	}
	if c.s.r.LogProbs && !all {
		l := m.tokenLog(ev.Token, ev.LogProb, ev.Top)
		l.Text = l.Text[spelled:]
		c.logs = append(c.logs, l)
	}
	if m.Tokenizer.IsSpecial(ev.Token) && !c.s.prompt.promptFormat.visible[ev.Token] {
		return
	}
	if c.text(c.unspell(c.decoder.Next(ev.Token))) {
		return
	}
	if n := c.s.prompt.openTokens; n > 0 && c.limit > 0 && len(c.out)-c.spelled == c.limit && c.spelled < n {
		c.drain() // the engine would go on: it was told of those that spell out the prompt's end
		if !c.text(c.decoder.Flush()) {
			c.flushStop()
			c.end(Length, "", nil)
		}
		return
	}
	if !thinking || c.cut || !c.parser.InReasoning() {
		return
	}
	if c.budget > 0 && c.reasoning >= c.budget || c.s.endThinking.Load() {
		c.stopThinking()
	}
}

// stopThinking goes on behind the mark that ends reasoning: the engine gets a new request with what was generated,
// whose prefix its cache has.
func (c *choice) stopThinking() {
	c.cut = true
	_, shut := c.s.prompt.promptFormat.format.ThinkTags()
	if shut == "" {
		return
	}
	c.drain()
	text := c.decoder.Flush() + "\n" + shut + "\n\n"
	c.cutAt, c.cutText = len(c.out), text
	m := c.s.lease.Model
	out, err := m.Tokenizer.EncodeParts(
		c.out,
		[]tokenizer.Part{{Text: "\n" + shut + "\n\n", Special: true}},
		tokenizer.Options{},
	)
	if err != nil {
		c.end(Failed, "", AsError(err))
		return
	}
	c.out = out
	c.decoder = m.Tokenizer.NewDecoder(false)
	if c.text(text) {
		return
	}
	if c.limit >= 0 && len(c.out) >= c.limit {
		c.end(Length, "", nil)
		return
	}
	if err := c.start(); err != nil {
		c.end(Failed, "", AsError(engineError(err)))
	}
}

// text hands decoded text on; it reports whether that ended the answer.
func (c *choice) text(t string) bool {
	if t == "" {
		return false
	}
	if c.s.trace.Record != nil && c.index == 0 {
		c.s.rawMu.Lock()
		c.s.raw.WriteString(t)
		c.s.rawMu.Unlock()
	}
	if c.parser == nil {
		return c.answer(t)
	}
	return c.take(c.parser.Feed(t))
}

// take turns the parser's events into deltas; it reports whether one ended the answer.
func (c *choice) take(events []toolfmt.Event) bool {
	for _, ev := range events {
		switch ev.Kind {
		case toolfmt.Text:
			if c.answer(ev.Text) {
				return true
			}
		case toolfmt.Reasoning:
			c.logs = nil
			c.push(Delta{Kind: ReasoningDelta, Text: ev.Text})
		default:
			if c.callEvent(ev) {
				return true
			}
		}
	}
	if c.parser.Done() && c.calls > 0 {
		c.drain()
		reason := ToolCalls
		if c.cutCall {
			reason = Length
		}
		c.end(reason, "", nil)
		return true
	}
	return false
}

// answer hands out text of the answer, up to a stop string; it reports whether the answer ended or began anew.
func (c *choice) answer(t string) bool {
	out, v := c.guard.text(t)
	return out != "" && c.sayUntilStop(out) || c.obey(v)
}

func (c *choice) sayUntilStop(t string) bool {
	out, found := c.stop.push(t)
	c.say(out)
	if found {
		c.drain()
		c.end(StopSequence, c.stop.hit, nil)
	}
	return found
}

// flushStop hands out text that might have begun a stop string.
func (c *choice) flushStop() { c.say(c.stop.flush()) }

func (c *choice) say(text string) {
	if text == "" {
		return
	}
	if c.gap {
		c.gap = false
		c.runes += 2
		c.push(Delta{Kind: TextDelta, Text: "\n\n"})
	}
	d := Delta{Kind: TextDelta, Text: text}
	if len(c.logs) > 0 {
		c.partial = SetOffsets(c.logs, c.runes, c.partial)
		d.Tokens, c.logs = c.logs, nil
	}
	c.runes += utf8.RuneCountInString(text)
	c.push(d)
}

func (c *choice) push(d Delta) {
	d.Choice = c.index
	c.queue = append(c.queue, d)
}

// end puts the answer's Finish into the queue.
func (c *choice) end(r Reason, stop string, err *Error) {
	if c.finished {
		return
	}
	c.finished = true
	c.push(Delta{Kind: Finish, Reason: r, StopString: stop, Err: err})
}

// drain cancels the engine's stream and waits for its end.
func (c *choice) drain() {
	if c.engine == nil || c.engineFinished {
		return
	}
	c.engine.Close()
	for {
		ev, ok := c.engine.Next()
		if !ok {
			c.engineFinished = true
			return
		}
		if ev.Done {
			c.engineDone(ev)
			return
		}
	}
}
