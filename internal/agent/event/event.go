// Package event is what happens in a session of the agent, as one versioned union: faces (terminal, headless output,
// web page, editors) are folds over it, and a session's log on disk is the part of it that lasts. It knows no models,
// tools, files or screens.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// Version is the version of the union. Readers refuse logs of a later one; what an earlier one lacks is zero.
const Version = 1

// An Event is one thing that happened. As JSON it is one flat object: seq, time, type, agent, and the fields of its Body.
type Event struct {
	Seq   uint64    // grows by one from event to event of a session; those that do not last leave gaps in its log
	Time  time.Time // UTC, in milliseconds
	Agent string    // which agent: "" the session's own, else the id of the call that began a subtask
	Body  Body
}

// A Body is what happened: one of the types of this package.
type Body interface{ kind() string }

// Kind returns the word for what happened, "type" in JSON.
func (e Event) Kind() string {
	if e.Body == nil {
		return ""
	}
	return e.Body.kind()
}

// Lasts tells whether an event belongs into a session's log. Deltas do not: the whole message follows them.
func (e Event) Lasts() bool {
	switch e.Body.(type) {
	case Prefill, Text, Reasoning, Args, ToolOutput, Unknown, nil:
		return false
	}
	return true
}

// A Session is the first event of each log.
type Session struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Parent  string `json:"parent,omitempty"` // the session that it was forked from
	Model   string `json:"model"`
	Digest  string `json:"digest,omitempty"` // of the weights: exact tokens mean something to these alone
	Root    string `json:"root"`             // the workspace
	Mode    string `json:"mode"`             // of permissions
	Context int    `json:"context,omitempty"`
	Prompt  string `json:"prompt,omitempty"` // the system prompt, with which the session goes on
}

// A Turn begins with each request to the model.
type Turn struct {
	N int `json:"n"` // from 1, counted over the whole session
}

// Prefill says how much of a prompt is ready.
type Prefill struct {
	Done   int `json:"done"`   // tokens, those from the cache included
	Total  int `json:"total"`  // of the prompt
	Cached int `json:"cached"` // of Done, from the cache
}

// Text is a piece of the answer's text.
type Text struct {
	Text string `json:"text"`
}

// Reasoning is a piece of what the model reasons before it answers.
type Reasoning struct {
	Text string `json:"text"`
}

// Args is a piece of a call's arguments while the model writes them. The first piece of a call may be empty.
type Args struct {
	Call string `json:"call"` // its id
	Name string `json:"name"`
	Text string `json:"text"`
}

// A Call is a call of a tool.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"` // JSON
}

// A Message became part of the conversation. Of a model's answer it is the whole of what the deltas before it had.
type Message struct {
	Role      string `json:"role"` // user, assistant, tool
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Calls     []Call `json:"calls,omitempty"`
	Call      string `json:"call,omitempty"` // the id of the call that a tool's message answers
	Name      string `json:"name,omitempty"` // of that tool
	Failed    bool   `json:"failed,omitempty"`
	Cut       bool   `json:"cut,omitempty"`  // the answer ended before the model ended it
	Note      bool   `json:"note,omitempty"` // a user's message that the program wrote, not a person
	// From and Tokens, of an answer, are the exact tokens of prompt and answer from number From on: what stands before
	// is as the last answer had it. Of a model elsewhere there are none.
	From   int     `json:"from,omitempty"`
	Tokens []int32 `json:"tokens,omitempty"`
}

// ToolStart: a call is allowed and runs from now on.
type ToolStart struct {
	Call string `json:"call"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// ToolOutput is a piece of what a running tool puts out.
type ToolOutput struct {
	Call string `json:"call"`
	Text string `json:"text"`
}

// ToolFinish: a call has ended, or was not run. The Message with the result follows.
type ToolFinish struct {
	Call    string   `json:"call"`
	Name    string   `json:"name"`
	Failed  bool     `json:"failed,omitempty"`
	Denied  string   `json:"denied,omitempty"` // why it was not run
	Diff    string   `json:"diff,omitempty"`   // unified
	Changed []string `json:"changed,omitempty"`
	Spill   string   `json:"spill,omitempty"` // the file with the whole output
	Millis  int64    `json:"ms,omitempty"`
}

// Asked: somebody is asked whether a call may run.
type Asked struct {
	Call    string `json:"call"`
	Name    string `json:"name"`
	Args    string `json:"args"`
	Reason  string `json:"reason,omitempty"`
	Pattern string `json:"pattern,omitempty"` // what "always" would allow
}

// Answered says what the answer was.
type Answered struct {
	Call   string `json:"call"`
	Answer string `json:"answer"` // allow, always, deny
	Reason string `json:"reason,omitempty"`
}

// A Question of the model's.
type Question struct {
	Text    string   `json:"text"`
	Choices []string `json:"choices,omitempty"`
	Answer  string   `json:"answer,omitempty"` // in a second event, when there is one
}

// Todo is the list of what is to do.
type Todo struct {
	Items []TodoItem `json:"items"`
}

// A TodoItem is one thing to do.
type TodoItem struct {
	Text  string `json:"text"`
	State string `json:"state"` // pending, active, done
}

// Usage is what the model has done: Turn for one request, Sum for all of the session so far.
type Usage struct {
	Turn Counts `json:"turn"`
	Sum  Counts `json:"sum"`
	// Used and Window are tokens of the conversation and those that the model can take.
	Used   int `json:"used"`
	Window int `json:"window,omitempty"`
	// Speed is tokens per second while the answer was written.
	Speed float64 `json:"tokens_per_second,omitempty"`
}

// Counts are numbers of tokens.
type Counts struct {
	Prompt    int `json:"prompt"`
	Cached    int `json:"cached"`
	Generated int `json:"generated"`
	Requests  int `json:"requests"`
}

// Add adds counts.
func (c *Counts) Add(d Counts) {
	c.Prompt += d.Prompt
	c.Cached += d.Cached
	c.Generated += d.Generated
	c.Requests += d.Requests
}

// Compaction: the conversation was put into a summary, since it would not have fitted any more.
type Compaction struct {
	Before  int    `json:"before"` // tokens
	After   int    `json:"after"`  // about as many
	Summary string `json:"summary"`
}

// A Checkpoint of the workspace was made.
type Checkpoint struct {
	ID string `json:"id"`
	N  int    `json:"n"` // the turn that follows it
}

// Undone: files, the conversation or both were taken back to a checkpoint, or (Redo) forward again, behind which the
// messages follow anew.
type Undone struct {
	ID       string   `json:"id"`
	Redo     bool     `json:"redo,omitempty"`
	Files    []string `json:"files,omitempty"`
	Messages *int     `json:"messages,omitempty"` // that remain of the conversation; none: it was left as it is
}

// Title is what the session is about, in a few words.
type Title struct {
	Title string `json:"title"`
}

// Note is something the user should know: a guard that stepped in, a limit, a sandbox that is not there.
type Note struct {
	Text string `json:"text"`
}

// Error is what went wrong. The session can go on unless an End says otherwise.
type Error struct {
	Text string `json:"text"`
}

// Reasons for an End.
const (
	Done      = "done"      // the model has nothing more to do
	Cancelled = "cancelled" // by the user
	Turns     = "turns"     // a budget is used up: turns, tokens, time
	Tokens    = "tokens"
	Time      = "time"
	Looped    = "looped" // the model repeated itself, and nobody let it go on
	Failed    = "failed" // an Error says why
)

// End: the work on a user's message is over. It repeats what lists of sessions show.
type End struct {
	Reason  string   `json:"reason"`
	Title   string   `json:"title,omitempty"`
	Turns   int      `json:"turns"` // of this message
	Changed []string `json:"changed,omitempty"`
	Sum     Counts   `json:"sum"`
	Millis  int64    `json:"ms"`
}

// Unknown is a body of a later program's, as it stands in the log.
type Unknown struct {
	Type string
	JSON json.RawMessage
}

func (Session) kind() string    { return "session" }
func (Turn) kind() string       { return "turn" }
func (Prefill) kind() string    { return "prefill" }
func (Text) kind() string       { return "text" }
func (Reasoning) kind() string  { return "reasoning" }
func (Args) kind() string       { return "args" }
func (Message) kind() string    { return "message" }
func (ToolStart) kind() string  { return "tool_start" }
func (ToolOutput) kind() string { return "tool_output" }
func (ToolFinish) kind() string { return "tool_finish" }
func (Asked) kind() string      { return "approval_asked" }
func (Answered) kind() string   { return "approval_answered" }
func (Question) kind() string   { return "question" }
func (Todo) kind() string       { return "todo" }
func (Usage) kind() string      { return "usage" }
func (Compaction) kind() string { return "compaction" }
func (Checkpoint) kind() string { return "checkpoint" }
func (Undone) kind() string     { return "undone" }
func (Title) kind() string      { return "title" }
func (Note) kind() string       { return "note" }
func (Error) kind() string      { return "error" }
func (End) kind() string        { return "end" }
func (u Unknown) kind() string  { return u.Type }

// Kinds are all bodies, for readers and for documentation.
var Kinds = []Body{
	Session{},
	Turn{},
	Prefill{},
	Text{},
	Reasoning{},
	Args{},
	Message{},
	ToolStart{},
	ToolOutput{},
	ToolFinish{},
	Asked{},
	Answered{},
	Question{},
	Todo{},
	Usage{},
	Compaction{},
	Checkpoint{},
	Undone{},
	Title{},
	Note{},
	Error{},
	End{},
}

var types = func() map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for _, b := range Kinds {
		m[b.kind()] = reflect.TypeOf(b)
	}
	return m
}()

type head struct {
	Seq   uint64    `json:"seq"`
	Time  time.Time `json:"time"`
	Type  string    `json:"type"`
	Agent string    `json:"agent,omitempty"`
}

// MarshalJSON writes one flat object.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Body == nil {
		return nil, fmt.Errorf("event %d has no body", e.Seq)
	}
	if u, ok := e.Body.(Unknown); ok {
		return u.JSON, nil
	}
	h, err := encode(head{e.Seq, e.Time.UTC().Truncate(time.Millisecond), e.Kind(), e.Agent})
	if err != nil {
		return nil, err
	}
	b, err := encode(e.Body)
	if err != nil {
		return nil, err
	}
	if len(b) > 2 {
		h = append(append(h[:len(h)-1], ','), b[1:]...)
	}
	return h, nil
}

// Line writes an event, or another value, as one line of JSON with its end, without escapes for HTML.
func Line(v any) ([]byte, error) {
	b, err := encode(v)
	return append(b, '\n'), err
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// UnmarshalJSON reads one. What a later version has in addition is left out, or becomes an Unknown body.
func (e *Event) UnmarshalJSON(b []byte) error {
	var h head
	if err := json.Unmarshal(b, &h); err != nil {
		return err
	}
	if h.Seq == 0 || h.Type == "" {
		return errors.New("an event needs seq and type")
	}
	*e = Event{Seq: h.Seq, Time: h.Time, Agent: h.Agent}
	t, ok := types[h.Type]
	if !ok {
		e.Body = Unknown{h.Type, bytes.Clone(b)}
		return nil
	}
	p := reflect.New(t)
	if err := json.Unmarshal(b, p.Interface()); err != nil {
		return fmt.Errorf("event %d (%s): %w", h.Seq, h.Type, err)
	}
	e.Body = p.Elem().Interface().(Body)
	return nil
}
