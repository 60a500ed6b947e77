package baleen

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
)

// A Finish says why an answer ended.
type Finish string

// Reasons.
const (
	FinishStop       Finish = "stop"        // the model ended it, or one of Params.StopTokens did
	FinishStopString Finish = "stop_string" // one of Params.Stop; see Chunk.StopString
	FinishLength     Finish = "length"      // Params.MaxTokens are reached, or the context is full
	FinishToolCalls  Finish = "tool_calls"  // the model called tools whose results it waits for
	FinishError      Finish = "error"       // see the error beside the chunk
)

// A Chunk is a piece of an answer. Few of its fields are set in each.
type Chunk struct {
	Text      string `json:"text,omitempty"`      // of the answer
	Reasoning string `json:"reasoning,omitempty"` // before it
	// Tokens are those of Text, where Params.LogProbs asked for them. The text of a token may come a chunk later.
	Tokens []Token `json:"tokens,omitempty"`

	Call    *Call     `json:"call,omitempty"`     // a call that the model made, whole
	CutCall *CutCall  `json:"cut_call,omitempty"` // one inside of which the answer ended: not to be made
	Result  *Message  `json:"result,omitempty"`   // what a tool that a Session ran gave back
	Dropped []Message `json:"dropped,omitempty"`  // what a Session dropped to make room, see Params.DropOldest

	// Of the last chunk.
	Finish     Finish `json:"finish,omitempty"`      // "": more follows
	StopString string `json:"stop_string,omitempty"` // with FinishStopString: which one of Params.Stop
	Usage      Usage  `json:"usage,omitzero"`
	// IDs are the tokens that the model wrote, reasoning and calls included, without the one that ended the answer.
	IDs []int32 `json:"ids,omitempty"`
}

// A Token is a token with its log probability: that of the model, before temperature, penalties and bias.
type Token struct {
	ID      int32   `json:"id"`
	Text    string  `json:"text"` // may end inside a character
	LogProb float32 `json:"logprob"`
	Top     []Token `json:"top,omitempty"` // the most probable ones at this place, best first
}

// Usage counts what an answer took. One for which a Session ran tools sums all rounds.
type Usage struct {
	Prompt    int `json:"prompt"`              // tokens of the prompt
	Cached    int `json:"cached"`              // of these, not computed since a cache had them
	Generated int `json:"generated"`           // tokens that the model wrote, with the one that ended it
	Reasoning int `json:"reasoning"`           // of these, reasoning
	Concluded int `json:"concluded,omitempty"` // answers for which the model was asked again, see Params.Conclude

	Queue time.Duration `json:"queue_ns"` // until the request was admitted
	First time.Duration `json:"first_ns"` // until the first token
	Total time.Duration `json:"total_ns"`
	Seed  uint64        `json:"seed"`
}

func (u *Usage) add(v Usage) {
	u.Prompt += v.Prompt
	u.Cached += v.Cached
	u.Generated += v.Generated
	u.Reasoning += v.Reasoning
	u.Concluded += v.Concluded
	u.Total += v.Total
	if u.First == 0 {
		u.Queue, u.First, u.Seed = v.Queue, v.First, v.Seed
	}
}

// An Answer is a whole answer: its chunks, put together. Of one for which a Session ran tools, Text, Reasoning and
// Calls are those of all rounds; Session.Messages has them apart.
type Answer struct {
	Text       string    `json:"text"`                  // what was said
	Reasoning  string    `json:"reasoning,omitempty"`   // what was thought before
	Calls      []Call    `json:"calls,omitempty"`       // that the model made
	CutCall    *CutCall  `json:"cut_call,omitempty"`    // the one inside of which it ended, by FinishLength
	Tokens     []Token   `json:"tokens,omitempty"`      // of Text, where Params.LogProbs asked for them
	Dropped    []Message `json:"dropped,omitempty"`     // what a Session dropped to make room
	Finish     Finish    `json:"finish"`                // why it ended
	StopString string    `json:"stop_string,omitempty"` // with FinishStopString: which one of Params.Stop
	Usage      Usage     `json:"usage"`                 // what it took
	IDs        []int32   `json:"ids,omitempty"`         // the tokens that the model wrote, see Chunk.IDs
}

// Message is the answer as a turn of a conversation, to be followed by others. A call that was cut is text in it.
func (a Answer) Message() Message {
	text := a.Text
	if a.CutCall != nil {
		if text != "" {
			text += "\n"
		}
		text += a.CutCall.String()
	}
	return Message{Role: RoleAssistant, Content: text, Reasoning: a.Reasoning, Calls: a.Calls}
}

// Collect runs a request to its end. With an error it returns what came before it.
func Collect(chunks iter.Seq2[Chunk, error]) (Answer, error) {
	var a Answer
	if chunks == nil {
		return a, wrong("chunks", "there is nothing to collect: want what Chat, Generate or Send gave")
	}
	for c, err := range chunks {
		a.take(c)
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

func (a *Answer) take(c Chunk) {
	a.Text += c.Text
	a.Reasoning += c.Reasoning
	a.Tokens = append(a.Tokens, c.Tokens...)
	a.Dropped = append(a.Dropped, c.Dropped...)
	if c.Call != nil {
		a.Calls = append(a.Calls, *c.Call)
	}
	if c.CutCall != nil {
		a.CutCall = c.CutCall
	}
	if c.Finish != "" {
		a.Finish, a.StopString, a.Usage, a.IDs = c.Finish, c.StopString, c.Usage, c.IDs
	}
}

// Text is Collect for those who want the text alone.
func Text(chunks iter.Seq2[Chunk, error]) (string, error) {
	a, err := Collect(chunks)
	return a.Text, err
}

// run runs a request of the core. said, where not nil, gets prompt and answer as token ids when the answer has
// ended or was left.
func (m *Model) run(ctx context.Context, r *chat.Request, said *[]int32, yield func(Chunk, error) bool) {
	fail := func(err error) { yield(Chunk{Finish: FinishError}, public(err)) }
	if err := errors.Join(m.usable(), checkContext(ctx)); err != nil {
		fail(err)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	leave, err := m.uses.enter(cancel)
	if err != nil {
		fail(err)
		return
	}
	defer leave()
	r.Model, r.On = m.spec.Name, m.lease
	st, err := m.runtime.service.Run(ctx, r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
			err = cause
		}
		fail(err)
		return
	}
	defer st.Close()
	if said != nil {
		defer func() {
			st.Close() // the answer is complete then
			*said = st.Said()
		}()
	}
	body := func(c Chunk, err error) bool {
		m.uses.body(1)
		defer m.uses.body(-1)
		return yield(c, err)
	}
	var last Chunk
	for {
		d, ok := st.Next()
		if !ok {
			return
		}
		var c Chunk
		switch d.Kind {
		case chat.TextDelta:
			c.Text, c.Tokens = d.Text, tokens(d.Tokens)
		case chat.ReasoningDelta:
			c.Reasoning = d.Text
		case chat.CallEnd:
			if d.Call.Cut {
				c.CutCall = &CutCall{d.Call.Name, d.Call.Arguments}
				break
			}
			c.Call = &Call{ID: d.Call.ID, Name: d.Call.Name, Arguments: json.RawMessage(d.Call.Arguments)}
		case chat.Finish:
			last.Finish, last.StopString = finish(d.Reason), d.StopString
			continue
		case chat.Done:
			last.Usage, last.IDs = usage(d.Usage), st.AnswerTokens()
			if d.Err != nil {
				last.Finish = FinishError
				body(last, ended(ctx, d.Err))
				return
			}
			body(last, nil)
			return
		default:
			continue
		}
		if !body(c, nil) {
			return
		}
	}
}

// ended is the error of a stream that did not end well: the context's own words where that was it.
func ended(ctx context.Context, e *chat.Error) error {
	if (e.Kind == chat.Cancelled || e.Kind == chat.Timeout) && ctx.Err() != nil {
		return public(context.Cause(ctx))
	}
	return public(e)
}

func finish(r chat.Reason) Finish {
	switch r {
	case chat.StopSequence:
		return FinishStopString
	case chat.Length:
		return FinishLength
	case chat.ToolCalls:
		return FinishToolCalls
	case chat.Failed:
		return FinishError
	}
	return FinishStop
}

func usage(u chat.Usage) Usage {
	return Usage{
		Prompt: u.Prompt, Cached: u.Cached, Generated: u.Generated, Reasoning: u.Reasoning, Concluded: u.Concluded,
		Queue: u.Queue, First: u.First, Total: u.Total, Seed: u.Seed,
	}
}

func tokens(list []chat.TokenLog) []Token {
	if len(list) == 0 {
		return nil
	}
	out := make([]Token, len(list))
	for i, t := range list {
		out[i] = Token{ID: t.ID, Text: t.Text, LogProb: t.LogProb, Top: tokens(t.Top)}
	}
	return slices.Clip(out)
}
