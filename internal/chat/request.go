// Package chat owns the one request that every dialect decodes into, and the typed stream that every dialect writes
// back: messages, tools, sampling and limits in; text, reasoning, tool calls and counts out. It renders prompts with
// the model's own template, runs them on a leased model, and takes text apart again with the family's parser.
//
// It knows no HTTP, no JSON shapes of any vendor and no files: names come from a Catalog, models from a pool.
package chat

import (
	"encoding/json"
	"time"
)

// A Request is what a client wants, in no dialect's shape. Its zero value but for Model and Messages asks for the
// most probable answer. Paths of fields (Field) are those of the client's own request, for errors that name them.
type Request struct {
	Model string
	// On, where not nil, is the loaded model to run on instead of the one that Model means now: its caller has it, and
	// what was asked of it before (its limits, its token ids) holds, also if its file was replaced since.
	On *Lease

	// A conversation: Messages and Tools. Or a text to be continued: Raw with Prompt or PromptTokens.
	Messages []Message
	Tools    []Tool
	Choice   ToolChoice
	// SingleCall allows at most one call in the answer.
	SingleCall bool

	// Before are tokens of an earlier answer that stand before the rendered conversation; ids are checked.
	Before []int32
	// Known says how many of Messages stand in Before already, in the very tokens that were sent and drawn (Stream.Said):
	// the last of them is the answer that Before ends with. Only the messages behind it are rendered, with what closes the
	// answer, so that the prompt extends Before whatever the template makes of history. Where it cannot be told what the
	// template writes behind an answer, the request is refused (Unsupported, field "known"). 0: Before is as it was.
	Known int
	// Said are the tokens of an earlier stream of this conversation (Stream.Said), as the model wrote them. Where
	// the rendered conversation begins with their text, it is sent in these very tokens, whose keys and values a
	// cache still has; elsewhere they change nothing.
	Said []int32

	Raw          bool    // continue a text, without the chat template
	Prompt       string  // the text
	PromptTokens []int32 // the text as token ids, before Prompt; ids are checked
	// PromptPlain makes ordinary text of control tokens that are written out in Prompt. Without it they are control
	// tokens: clients render marks of gaps and turns themselves.
	PromptPlain bool
	Heal        *bool  // token healing of a text that ends inside a token, see Model.heal; nil: where it was measured better
	Suffix      string // text behind the gap: fill in the middle
	SuffixField string
	Fill        bool         // fill in the middle also where Suffix is empty
	Middle      string       // with a gap: begin of the text in it
	Files       []SourceFile // with a gap: other files, which stand before

	Format Format // what the answer's text is held to; reasoning is free

	Sampling Sampling
	Stop     []string // end the answer's text and are no part of it; reasoning and calls are not cut by them
	// StopTokens end the answer beside the model's own; ids are checked.
	StopTokens []int32

	MaxTokens int  // bound on generated tokens, reasoning included. 0: until the context is full; negative: none
	Context   int  // bound on prompt and answer together, at most the model's. 0: the model's
	N         int  // answers. 0: 1
	LogProbs  bool // log probability of each token of the text
	TopLogs   int  // alternatives beside it
	// PromptLogProbs asks for those of the prompt's tokens too: see Stream.PromptTokens.
	PromptLogProbs bool

	Thinking       *bool  // reasoning on or off; nil: as the model's template has it
	ThinkingField  string // for refusals
	Effort         string // one of Efforts: for templates that know efforts; others take it as on or off, with a budget
	ThinkingBudget int    // tokens of reasoning after which thinking is ended. 0: that of Effort, if it has one

	// Now is the time that the model's template prints, where it prints one; zero: when the request runs. The same
	// request has the same prompt only with it.
	Now time.Time

	KeepAlive *time.Duration // how long the model stays loaded afterwards; negative: for good; nil: the server's rule
	Deadline  time.Time      // zero: the server's limit alone
	Progress  bool           // report how far the prompt is: see PrefillDelta
	CacheSalt string         // prompts share cached prefixes only under the same salt, and that of the caller (Trace.Salt)
	Conclude  *bool          // ask again where the model only repeats a call, see repeatGuard; nil: as Options.Conclude says
	Continue  bool           // the last assistant message is the begin of the answer and is continued
}

// A SourceFile is a text with a name.
type SourceFile struct{ Name, Text string }

// Roles of messages.
const (
	System    = "system"
	Developer = "developer"
	User      = "user"
	Assistant = "assistant"
	ToolRole  = "tool"
)

// A Message is one turn.
type Message struct {
	Role      string
	Parts     []Part
	Reasoning string // of an assistant's turn
	Calls     []Call // of an assistant's turn

	// Of a tool's result.
	CallID   string
	ToolName string // "": found by CallID
	IsError  bool

	Field string // such as "messages[3]"
}

// Text makes a message of one text.
func Text(role, text string) Message { return Message{Role: role, Parts: []Part{{Text: text}}} }

// A Media is what a part is, other than text.
type Media uint8

// Media of parts. Models take text alone until encoders exist: parts of other media are refused by their field.
const (
	TextMedia Media = iota
	Image
	Audio
	File
)

// String names the medium in errors.
func (m Media) String() string { return [...]string{"text", "image", "audio", "file"}[m] }

// A Part is a piece of a message's content.
type Part struct {
	Media Media
	Text  string
	MIME  string
	Data  []byte
	URL   string
	Field string // such as "messages[3].content[1]"
}

// A Call is a tool call.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON object
	// Cut tells that the answer ended inside the call: Arguments is what the model wrote of them, the begin of an
	// object. It is no call to be made. Where a dialect has no place for half an object, it is Written as text.
	Cut bool
}

// Written is the call as text.
func (c *Call) Written() string {
	name, _ := json.Marshal(c.Name) // a string always encodes
	s := `{"name": ` + string(name) + `, "arguments": ` + c.Arguments
	if c.Cut {
		return s
	}
	return s + "}"
}

// A Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of an object; nil: no parameters
	Strict      bool            // its arguments are held to Parameters, which must be enforceable
	StrictField string          // for refusals
	Told        bool            // a message defines it, so that the prompt's begin stays as it was: the template does not
	Field       string          // such as "tools[0]"
}

// ToolMode says whether tools may or must be called.
type ToolMode uint8

// Modes of tool choice.
const (
	ToolsAuto ToolMode = iota
	ToolsNone
	ToolsRequired
	ToolNamed
)

// A ToolChoice says which tools may or must be called.
type ToolChoice struct {
	Mode  ToolMode
	Name  string // with ToolNamed
	Field string
}

// A Format asks for output of a certain shape. One that cannot be enforced exactly is refused before a token is made.
type Format struct {
	Kind    string          // "": none; see JSONFormat and the others
	Schema  json.RawMessage // with SchemaFormat
	Text    string          // with RegexFormat, GrammarFormat and LarkFormat
	Choices []string        // with ChoiceFormat
	Field   string
}
