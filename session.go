package baleen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync/atomic"
)

// A Session is a conversation that goes on. Each message is sent with all that was said before, whose keys and
// values are still cached: only what is new is computed, and Usage says how much was not. Answers are sent in the
// very tokens that the model wrote, unless its template changes them. A Session is for one goroutine; a second
// message while the first is answered is refused with ErrBusy.
// RATIONALE: Why does a session run tools, and a model not?
type Session struct {
	model    *Model
	messages []Message
	said     []int32 // the last prompt and the answer to it
	last     Usage
	total    Usage
	busy     atomic.Bool
}

// NewSession begins a conversation. system stands before it; it may be empty.
func (m *Model) NewSession(system string) *Session {
	s := &Session{model: m}
	if system != "" {
		s.messages = append(s.messages, SystemMessage(system))
	}
	return s
}

// NewSessionFrom goes on with a conversation that there was. Its messages are checked, and copied.
func (m *Model) NewSessionFrom(messages []Message) (*Session, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	if _, err := conversation(messages); err != nil {
		return nil, err
	}
	return &Session{model: m, messages: slices.Clone(messages)}, nil
}

// Send says something and gives the answer. Both become part of the conversation when the answer ends, or when the
// caller leaves the loop, with what came so far; a message that fails does not.
//
// Where the model calls tools and all of them have a Func, these are run, one after the other; chunks with Result
// set say what they gave back, and the model goes on, up to Params.MaxToolRounds times. What was called and what
// came back is part of the conversation from then on, whatever comes after it. Where a tool has no Func, or the
// rounds are used up, the answer ends with FinishToolCalls: go on with SendMessages and the results.
func (s *Session) Send(ctx context.Context, text string, params *Params) iter.Seq2[Chunk, error] {
	return s.SendMessages(ctx, []Message{UserMessage(text)}, params)
}

// SendMessages is Send with any messages: of parts, results of calls, or none, which answers the conversation as it
// is.
func (s *Session) SendMessages(ctx context.Context, messages []Message, params *Params) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if err := errors.Join(s.usable(), checkContext(ctx)); err != nil {
			yield(Chunk{Finish: FinishError}, public(err))
			return
		}
		if !s.busy.CompareAndSwap(false, true) {
			yield(Chunk{Finish: FinishError}, ErrBusy)
			return
		}
		defer s.busy.Store(false)
		if params == nil {
			params = &Params{}
		}
		t := &turn{s: s, params: params, next: append(slices.Clone(s.messages), messages...), yield: yield}
		t.run(ctx)
	}
}

// maxToolRounds is Params.MaxToolRounds where it is 0.
const maxToolRounds = 10

// A turn is the work on one message.
type turn struct {
	s      *Session
	params *Params
	next   []Message // the conversation with what is being answered
	sum    Usage
	yield  func(Chunk, error) bool
	left   bool // the caller left the loop
}

func (t *turn) run(ctx context.Context) {
	rounds := t.params.MaxToolRounds
	if rounds == 0 {
		rounds = maxToolRounds
	}
	for ; ; rounds-- {
		if t.params.DropOldest && !t.makeRoom(ctx) {
			return
		}
		last, err := t.round(ctx)
		if t.left {
			return
		}
		if err != nil {
			last.Usage = t.sum
			t.yield(last, err)
			return
		}
		calls := t.s.messages[len(t.s.messages)-1].Calls
		if last.Finish != FinishToolCalls || rounds <= 0 || !t.runnable(calls) {
			t.s.last = t.sum
			t.s.total.add(t.sum)
			last.Usage = t.sum
			t.yield(last, nil)
			return
		}
		for _, call := range calls {
			result, err := t.call(ctx, call)
			if err != nil {
				t.yield(Chunk{Finish: FinishError, Usage: t.sum}, err)
				return
			}
			t.next = append(t.next, result)
			t.s.messages = slices.Clone(t.next)
			if !t.yield(Chunk{Result: &result}, nil) {
				return
			}
		}
	}
}

// round gets one answer and makes it part of the conversation. It returns the answer's last chunk, which it does
// not hand out.
func (t *turn) round(ctx context.Context) (last Chunk, err error) {
	s := t.s
	r, err := s.model.conversation(t.next, t.params)
	if err != nil {
		return Chunk{Finish: FinishError}, err
	}
	r.Said = s.said
	var a Answer
	var said []int32
	s.model.run(ctx, r, &said, func(c Chunk, e error) bool {
		if c.Finish != "" || e != nil {
			last, err = c, e
			t.sum.add(c.Usage)
			return false
		}
		a.take(c)
		t.left = !t.yield(c, nil)
		return !t.left
	})
	if err != nil {
		return last, err
	}
	s.said = said
	t.next = append(t.next, a.Message())
	s.messages = slices.Clone(t.next)
	return last, nil
}

// runnable tells whether all called tools can be run here.
func (t *turn) runnable(calls []Call) bool {
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(c Call) bool { return t.tool(c.Name) == nil })
}

func (t *turn) tool(name string) func(context.Context, json.RawMessage) (string, error) {
	for _, tool := range t.params.Tools {
		if tool.Name == name {
			return tool.Func
		}
	}
	return nil
}

// call runs a tool. An error of its own is a result; a panic, or the end of the context, is an error.
func (t *turn) call(ctx context.Context, c Call) (Message, error) {
	text, err := func() (text string, err error) {
		defer recovered("Tool.Func of "+c.Name, &err)
		return t.tool(c.Name)(ctx, c.Arguments)
	}()
	var panicked *PanicError
	if errors.As(err, &panicked) {
		return Message{}, err
	}
	if ctx.Err() != nil {
		return Message{}, context.Cause(ctx)
	}
	m := ToolMessage(c, text)
	if err != nil {
		m.Content, m.Failed = err.Error(), true
	}
	if isText("result", m.Content) != nil {
		m.Content, m.Failed = "the tool's result is no text", true
	}
	return m, nil
}

// makeRoom drops the oldest turns where the message would not fit, and says which. It reports false where the turn
// is over.
func (t *turn) makeRoom(ctx context.Context) bool {
	free := t.params.MaxTokens
	if free <= 0 {
		free = t.s.model.info.Context / 8
	}
	context := t.s.model.info.Context
	kept, dropped, err := t.s.model.trim(ctx, t.next, free, t.params)
	var long *PromptTooLongError
	if usual := context / 8; errors.As(err, &long) && free > usual { // MaxTokens is a bound and no demand
		kept, dropped, err = t.s.model.trim(ctx, t.next, usual, t.params)
	}
	if errors.As(err, &long) { // the message leaves less than that: it may still fit alone
		if long.Tokens < context {
			kept, dropped, err = t.s.model.trim(ctx, t.next, context-long.Tokens, t.params)
		} else {
			err = &PromptTooLongError{Tokens: long.Tokens, Context: context}
		}
	}
	if err != nil {
		t.yield(Chunk{Finish: FinishError}, err)
		return false
	}
	t.next = kept
	return len(dropped) == 0 || t.yield(Chunk{Dropped: dropped}, nil)
}

// Trim drops the oldest turns until free tokens of the context are left for what comes next, and returns what it
// dropped: none where there is room. Instructions, and the last turn, are never dropped; where these alone are too
// many the error is a *PromptTooLongError, whose Context is then what free leaves, and nothing is dropped. A turn is a
// message of the user's with all that follows up to the next. params, which may be nil, should be those of Send, since
// tools take room too. free is from 0 to less than the context, else the error is a *ParamError.
func (s *Session) Trim(ctx context.Context, free int, params *Params) (dropped []Message, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	if !s.busy.CompareAndSwap(false, true) {
		return nil, ErrBusy
	}
	defer s.busy.Store(false)
	if context := s.model.info.Context; free < 0 || free >= context {
		return nil, wrong("free", "%d tokens: want 0 to less than the %d of the context", free, context)
	}
	kept, dropped, err := s.model.trim(ctx, s.messages, free, params)
	if err == nil {
		s.messages = kept
	}
	return dropped, err
}

// trim finds by halves how many turns must go.
func (m *Model) trim(
	ctx context.Context, messages []Message, free int, params *Params,
) (kept, dropped []Message, err error) {
	begin := 0
	for begin < len(messages) && (messages[begin].Role == RoleSystem || messages[begin].Role == RoleDeveloper) {
		begin++
	}
	cuts := []int{begin} // where what is kept may begin
	for i := begin + 1; i < len(messages); i++ {
		if messages[i].Role == RoleUser {
			cuts = append(cuts, i)
		}
	}
	without := func(n int) []Message { return append(slices.Clone(messages[:begin]), messages[cuts[n]:]...) }
	size := 0
	fits := func(n int) bool {
		if err != nil {
			return false
		}
		size, err = m.CountChat(ctx, without(n), params)
		var long *PromptTooLongError
		if errors.As(err, &long) { // it is refused before it is counted
			size, err = long.Tokens, nil
			return false
		}
		return err == nil && size+free <= m.info.Context
	}
	if fits(0) || err != nil {
		return messages, nil, err
	}
	low, high := 0, len(cuts)-1 // low does not fit
	if !fits(high) {
		if err == nil {
			err = &PromptTooLongError{Tokens: size, Context: m.info.Context - free}
		}
		return messages, nil, err
	}
	for high-low > 1 {
		if mid := (low + high) / 2; fits(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	if err != nil {
		return messages, nil, err
	}
	return without(high), slices.Clone(messages[begin:cuts[high]]), nil
}

// Messages returns the conversation so far.
func (s *Session) Messages() []Message {
	if s == nil {
		return nil
	}
	return slices.Clone(s.messages)
}

// Usage returns what the last complete answer took, and the sum over all of them.
func (s *Session) Usage() (last, total Usage) {
	if s == nil {
		return Usage{}, Usage{}
	}
	return s.last, s.total
}

// Count returns the number of tokens that the conversation takes now; params as for Trim.
func (s *Session) Count(ctx context.Context, params *Params) (int, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	return s.model.CountChat(ctx, s.messages, params)
}

// savedSession is a session in a file.
type savedSession struct {
	Version  int       `json:"version"` // 1
	Model    string    `json:"model"`   // as it calls itself
	Messages []Message `json:"messages"`
	Said     []int32   `json:"tokens,omitempty"` // of the last prompt and answer
	Last     Usage     `json:"last"`
	Total    Usage     `json:"total"`
}

// maxSession bounds what LoadSession reads, in bytes.
const maxSession = 1 << 30

// Save writes the conversation as one JSON object.
func (s *Session) Save(w io.Writer) error {
	if err := s.usable(); err != nil {
		return err
	}
	if w == nil {
		return wrong("w", "it is nil: there is nothing to write to")
	}
	return json.NewEncoder(w).Encode(savedSession{1, s.model.info.Name, s.messages, s.said, s.last, s.total})
}

// LoadSession reads what Save wrote, to the end of r. Another model than the one that it was saved with may go on
// with it.
func (m *Model) LoadSession(r io.Reader) (*Session, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, wrong("r", "it is nil: there is nothing to read")
	}
	var saved savedSession
	limited := &io.LimitedReader{R: r, N: maxSession}
	d := json.NewDecoder(limited)
	err := d.Decode(&saved)
	if err == nil { // what follows would be lost: r may have been read past the session
		if _, more := d.Token(); more == nil {
			err = errors.New("more follows behind it")
		} else if more != io.EOF {
			err = more
		}
	}
	if err != nil {
		if limited.N <= 0 {
			return nil, fmt.Errorf("baleen: a session of more than %d bytes", maxSession)
		}
		return nil, fmt.Errorf("baleen: reading a session: %w", err)
	}
	if saved.Version != 1 {
		return nil, fmt.Errorf("baleen: a session of version %d: want 1", saved.Version)
	}
	s, err := m.NewSessionFrom(saved.Messages)
	if err != nil {
		return nil, err
	}
	s.last, s.total = saved.Last, saved.Total
	known := func(id int32) bool { return id >= 0 && int(id) < m.info.Vocabulary }
	if saved.Model == m.info.Name && !slices.ContainsFunc(saved.Said, func(id int32) bool { return !known(id) }) {
		s.said = saved.Said
	}
	return s, nil
}
