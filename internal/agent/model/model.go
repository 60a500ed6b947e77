// Package model is what the agent's loop needs of a model: a session of which the prompt only grows. One implementation
// runs on a model of this process and keeps the exact tokens that were drawn; others speak to servers, with requests of
// which each begins as the one before. It knows no tools, permissions or screens.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/baleenrun/baleen/internal/toolfmt"
)

// Roles of messages.
const (
	User      = "user"
	Assistant = "assistant"
	Tool      = "tool"
)

// A Message is one turn of a conversation.
type Message struct {
	Role      string
	Text      string
	Reasoning string // of an answer
	Calls     []Call // of an answer
	CallID    string // of a result: the call that it answers
	Name      string // of a result: the tool
	Failed    bool   // of a result
}

// A Call is a call of a tool.
type Call struct {
	ID   string
	Name string
	Args string // a JSON object
}

// A ToolSpec is a tool as the model is told of it.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema
}

// A Spec begins a session.
type Spec struct {
	System string
	Tools  []ToolSpec
	// Behind are tools that can be called as well, though the prompt does not offer them: another tool tells of them.
	Behind  []ToolSpec
	History []Message // of a session that is gone on with
	// Tokens are the exact ones of its first Known messages, where there are any: see Answer.
	Tokens []int32
	Known  int
}

// Info is what is known of a model.
type Info struct {
	Name       string
	Digest     string // of the weights; "": not known
	Parameters int64  // 0: not known
	Window     int    // tokens of prompt and answer together; 0: not known
	Format     string // how it writes calls; "": elsewhere
}

// A Model opens sessions. It is safe for concurrent use.
type Model interface {
	Info() Info
	Open(Spec) Session
	Close()
}

// A Session is a conversation that grows. It is for one goroutine at a time; to stop an answer, end its context.
type Session interface {
	// Append adds messages.
	Append(...Message)
	// Generate answers. What comes is handed to emit. What there is of an answer when the context ends becomes part of
	// the conversation, and is returned with the error; otherwise the conversation is as before after an error.
	Generate(ctx context.Context, o Options, emit func(Delta)) (Answer, error)
	// Count returns how many tokens the next prompt has, exactly or (of models elsewhere) roughly.
	Count(ctx context.Context) (int, error)
	// Fork returns a session with the same conversation, which goes its own way from here on. What both have in common
	// is computed once.
	Fork() Session
	// Messages returns the conversation, without the system's message.
	Messages() []Message
	// Truncate forgets all messages behind the first n.
	Truncate(n int)
}

// Options are for one answer.
type Options struct {
	MaxTokens int             // of the answer; 0: what the window leaves
	NoTools   bool            // no calls: a summary, a title
	Schema    json.RawMessage // what the answer's text is held to; nil: nothing
	NoThink   bool            // no reasoning, where the model can do without
	// Begin is what the answer begins with, where the model can be made to go on from it; elsewhere it is not heeded.
	Begin string
	// Vary draws the answer with some randomness, where the most probable one would be what was said before.
	Vary bool
	Call string // the tool that must be called, where the model can be held to it
}

// AnyTool as Options.Call demands a call of whatever tool.
const AnyTool = "*"

// A Delta is a piece of an answer, in the order in which it comes. One of its fields is set.
type Delta struct {
	Text      string
	Reasoning string
	Call      *Call // Args is the next piece
	Prefill   *Prefill
}

// Prefill says how much of a prompt is ready, in tokens.
type Prefill struct{ Done, Total, Cached int }

// Reasons for which an answer ends.
const (
	Stop   = "stop"
	Length = "length" // MaxTokens, or the window is full
	Calls  = "calls"
)

// An Answer is what the model said.
type Answer struct {
	Message Message
	Reason  string
	Usage   Usage
	// Tokens are those of prompt and answer from number From on: what stands before is as after the answer before.
	// The last one that ended the turn is not among them. Of models elsewhere there are none.
	From   int
	Tokens []int32
	// Exact tells that the prompt began with all the tokens of the answer before.
	Exact bool
	// Malformed says that the text is meant as a call and is none that can be run; "": it is not.
	Malformed string
	Meant     string // the tool that was meant then, where it can be told
}

// Usage is what an answer took.
type Usage struct {
	Prompt, Cached, Generated int
	First, Total              time.Duration // to the first token, to the end
}

// A WindowError is returned for a prompt that the window does not hold.
type WindowError struct{ Tokens, Window int }

func (e *WindowError) Error() string {
	return fmt.Sprintf("the conversation has %d tokens, and the model takes %d", e.Tokens, e.Window)
}

// toolList is what the parser and its checks are told of tools.
func toolList(tools []ToolSpec) []toolfmt.Tool {
	out := make([]toolfmt.Tool, 0, len(tools))
	for _, t := range tools {
		out = append(out, toolfmt.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return out
}

// joined puts messages of the user's behind each other into one, as they are sent: most templates want roles to take
// turns. What an answer follows stays as it is when more comes.
func joined(ms []Message) []Message {
	out := make([]Message, 0, len(ms))
	for _, m := range ms {
		if n := len(out); m.Role == User && n > 0 && out[n-1].Role == User {
			out[n-1].Text += "\n\n" + m.Text
			continue
		}
		out = append(out, m)
	}
	return out
}
