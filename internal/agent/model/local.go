package model

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
)

// oneCall is the number of parameters up to which a model makes one call an answer: smaller ones write all that they
// mean to do at once, results made up between, before they have read anything.
// RATIONALE: Why does a small model make one call an answer?
const oneCall = 9_000_000_000

// varied is the temperature of answers that are to differ from what was said before.
const varied = 0.7

// A Local is a model of this process.
type Local struct {
	svc   *chat.Service
	lease *chat.Lease
	info  Info
	o     LocalOptions
}

// LocalOptions say how a model of this process is used.
type LocalOptions struct {
	Sampling chat.Sampling // what is nil: the most probable token, and of models that reason their own settings
	Effort   string        // how much to reason; "": the model's own
	Think    *bool
	Free     bool // calls are not held to the tools' schemas while they are written
	Many     bool // a small model, too, may make several calls in an answer
	// Close is called when the model is closed, behind giving back what was borrowed; nil: nothing more.
	Close func()
}

// NewLocal makes a model of a name that a service has; it is held until it is closed.
func NewLocal(ctx context.Context, svc *chat.Service, name string, o LocalOptions) (*Local, error) {
	l, err := svc.Hold(ctx, name)
	if err != nil {
		return nil, err
	}
	m := &Local{svc: svc, lease: l, o: o}
	i := l.Model.Info
	m.info = Info{
		Name: i.Name, Digest: l.Spec.Digest, Parameters: i.Parameters, Window: l.Model.Engine.Capacity(),
		Format: l.Model.Format().Name(),
	}
	if l.Spec.Name != "" {
		m.info.Name = l.Spec.Name
	}
	if c := l.Spec.Context; c > 0 {
		m.info.Window = min(m.info.Window, c)
	}
	s := &m.o.Sampling
	if s.Seed == nil {
		s.Seed = new(uint64(1)) // the same session again is the same session
	}
	if s.Temperature == nil && !l.Model.Thinks() {
		s.Temperature = new(float32(0))
	}
	return m, nil
}

// Info says what the model is.
func (m *Local) Info() Info { return m.info }

// Close gives the model back.
func (m *Local) Close() {
	m.lease.Release()
	if m.o.Close != nil {
		m.o.Close()
	}
}

// Open begins a session, or goes on with one.
func (m *Local) Open(spec Spec) Session {
	s := &localSession{m: m, spec: spec, msgs: slices.Clone(spec.History), at: map[int]int{}}
	if spec.Known > 0 && spec.Known <= len(s.msgs) && len(spec.Tokens) > 0 && s.msgs[spec.Known-1].Role == Assistant {
		s.tokens, s.known = slices.Clone(spec.Tokens), spec.Known
		s.at[s.known] = len(s.tokens)
	}
	s.spec.History, s.spec.Tokens = nil, nil
	return s
}

// A localSession has the exact tokens of all that was said. RATIONALE: How does an agent's prompt only grow?
type localSession struct {
	m      *Local
	spec   Spec
	msgs   []Message
	tokens []int32     // of the first known messages, without the token that ended the last
	known  int         // ends with an answer
	at     map[int]int // how many tokens the first so many messages have
}

func (s *localSession) Append(ms ...Message) { s.msgs = append(slices.Clip(s.msgs), ms...) }
func (s *localSession) Messages() []Message  { return slices.Clone(s.msgs) }

func (s *localSession) Fork() Session {
	f := *s
	f.msgs, f.tokens = slices.Clip(s.msgs), slices.Clip(s.tokens)
	f.at = map[int]int{}
	for n, t := range s.at {
		f.at[n] = t
	}
	return &f
}

func (s *localSession) Truncate(n int) {
	if n >= len(s.msgs) {
		return
	}
	s.msgs = slices.Clip(s.msgs[:n])
	best := 0
	for k := range s.at {
		if k > n {
			delete(s.at, k)
		} else {
			best = max(best, k)
		}
	}
	s.known, s.tokens = best, slices.Clip(s.tokens[:s.at[best]])
}

// all are the tools that can be called, those that the prompt offers first.
func (s *localSession) all() []ToolSpec { return slices.Concat(s.spec.Tools, s.spec.Behind) }

// request asks for an answer to the conversation.
func (s *localSession) request(o Options) *chat.Request {
	r := &chat.Request{
		On: s.m.lease, Sampling: s.m.o.Sampling, MaxTokens: o.MaxTokens, Context: s.m.info.Window, Progress: true,
		Conclude: new(false), Thinking: s.m.o.Think, Effort: s.m.o.Effort,
	}
	if s.spec.System != "" {
		r.Messages = append(r.Messages, chat.Text(chat.System, s.spec.System))
	}
	system := len(r.Messages)
	for _, m := range joined(s.msgs) {
		r.Messages = append(r.Messages, chatMessage(m))
	}
	for i, t := range s.all() {
		r.Tools = append(r.Tools, chat.Tool{
			Name: t.Name, Description: t.Description, Parameters: t.Parameters, Strict: !s.m.o.Free,
			Told: i >= len(s.spec.Tools),
		})
	}
	r.SingleCall = !s.m.o.Many && s.m.info.Parameters > 0 && s.m.info.Parameters <= oneCall
	switch o.Call {
	case "":
	case AnyTool:
		r.Choice = chat.ToolChoice{Mode: chat.ToolsRequired}
	default:
		r.Choice = chat.ToolChoice{Mode: chat.ToolNamed, Name: o.Call}
	}
	if o.NoTools {
		r.Choice.Mode = chat.ToolsNone
	}
	if o.NoThink && s.m.lease.Model.Thinks() {
		r.Thinking, r.Effort = new(false), ""
	}
	if t := r.Sampling.Temperature; o.Vary && (t == nil || *t < varied) {
		r.Sampling.Temperature, r.Sampling.TopP = new(float32(varied)), new(float32(0.9))
		r.Sampling.Seed = new(*r.Sampling.Seed + uint64(len(s.msgs))) // else the same draw again
	}
	if o.Schema != nil {
		r.Format = chat.Format{Kind: chat.SchemaFormat, Schema: o.Schema}
	}
	if o.Begin != "" {
		r.Messages, r.Continue = append(r.Messages, chat.Text(chat.Assistant, o.Begin)), true
	}
	if s.known > 0 {
		r.Before, r.Known = s.tokens, system+len(joined(s.msgs[:s.known]))
	}
	return r
}

// whole is the same request for a template of which it is not known how it closes answers: it renders the conversation
// as a whole, and takes the exact tokens as far as their text is the same.
func whole(r *chat.Request) *chat.Request {
	w := *r
	w.Before, w.Known, w.Said = nil, 0, r.Before
	return &w
}

func unknownClose(err error) bool {
	var e *chat.Error
	return errors.As(err, &e) && e.Kind == chat.Unsupported && e.Field == "known"
}

func chatMessage(m Message) chat.Message {
	c := chat.Text(m.Role, m.Text)
	if m.Text == "" && len(m.Calls) > 0 {
		c.Parts = nil
	}
	c.Reasoning, c.CallID, c.ToolName, c.IsError = m.Reasoning, m.CallID, m.Name, m.Failed
	for _, k := range m.Calls {
		c.Calls = append(c.Calls, chat.Call{ID: k.ID, Name: k.Name, Arguments: k.Args})
	}
	return c
}

func (s *localSession) Count(ctx context.Context) (int, error) {
	r := s.request(Options{})
	n, err := s.m.svc.Count(ctx, r)
	if unknownClose(err) {
		n, err = s.m.svc.Count(ctx, whole(r))
	}
	var e *chat.Error
	if errors.As(err, &e) && e.Kind == chat.PromptTooLong {
		return e.Tokens, nil
	}
	return n, err
}

func (s *localSession) Generate(ctx context.Context, o Options, emit func(Delta)) (a Answer, err error) {
	r := s.request(o)
	st, err := s.m.svc.Run(ctx, r)
	if unknownClose(err) {
		r = whole(r)
		st, err = s.m.svc.Run(ctx, r)
	}
	if err != nil {
		return a, s.failure(err)
	}
	defer st.Close()
	var text, reasoning strings.Builder
	if o.Begin != "" {
		text.WriteString(o.Begin)
		emit(Delta{Text: o.Begin})
	}
	for d := range st.All() {
		switch d.Kind {
		case chat.PrefillDelta:
			emit(Delta{Prefill: &Prefill{Done: d.Prefill.Ready, Total: d.Prefill.Total, Cached: d.Prefill.Cached}})
		case chat.TextDelta:
			text.WriteString(d.Text)
			if d.Text != "" {
				emit(Delta{Text: d.Text})
			}
		case chat.ReasoningDelta:
			reasoning.WriteString(d.Text)
			emit(Delta{Reasoning: d.Text})
		case chat.CallStart:
			emit(Delta{Call: &Call{ID: d.Call.ID, Name: d.Call.Name}})
			a.Message.Calls = append(a.Message.Calls, Call{ID: d.Call.ID, Name: d.Call.Name})
		case chat.CallArgs:
			c := a.Message.Calls[len(a.Message.Calls)-1]
			emit(Delta{Call: &Call{ID: c.ID, Name: c.Name, Args: d.Text}})
		case chat.CallEnd:
			a.Message.Calls[len(a.Message.Calls)-1].Args = d.Call.Arguments
		case chat.Finish:
			switch d.Reason {
			case chat.Length:
				a.Reason = Length
			case chat.ToolCalls:
				a.Reason = Calls
			default:
				a.Reason = Stop
			}
		case chat.Done:
			u := d.Usage
			a.Usage = Usage{u.Prompt, u.Cached, u.Generated, u.First, u.Total}
			if d.Err != nil {
				err = d.Err
			}
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		a.Reason = Length
		if ctx.Err() == nil || text.Len()+reasoning.Len()+len(a.Message.Calls) == 0 {
			return Answer{Usage: a.Usage}, s.failure(err)
		}
		err = context.Cause(ctx)
	}
	if a.Reason != Calls {
		a.Message.Calls = slices.DeleteFunc(a.Message.Calls, func(c Call) bool { return c.Args == "" })
	}
	a.Message.Role, a.Message.Text, a.Message.Reasoning = Assistant, strings.TrimSpace(text.String()), reasoning.String()
	if len(a.Message.Calls) == 0 && !o.NoTools && o.Schema == nil {
		a.settle(s.all(), func() string { return chat.NewID("call_") })
	}
	s.take(&a, st.Said(), r.Known > 0 || s.known == 0)
	return a, err
}

// take makes an answer part of the conversation, with the tokens of prompt and answer.
func (s *localSession) take(a *Answer, said []int32, exact bool) {
	common := 0
	for common < min(len(said), len(s.tokens)) && said[common] == s.tokens[common] {
		common++
	}
	a.Exact = exact && common == len(s.tokens)
	a.From, a.Tokens = common, slices.Clone(said[common:])
	if !a.Exact {
		clear(s.at) // an earlier length may be another conversation's
	}
	s.msgs = append(slices.Clip(s.msgs), a.Message)
	s.tokens, s.known = said, len(s.msgs)
	s.at[s.known] = len(said)
}

// failure words what kept the model from answering.
func (s *localSession) failure(err error) error {
	var e *chat.Error
	if errors.As(err, &e) {
		switch e.Kind {
		case chat.PromptTooLong:
			return &WindowError{e.Tokens, s.m.info.Window}
		case chat.Cancelled:
			return context.Canceled
		}
	}
	return err
}
