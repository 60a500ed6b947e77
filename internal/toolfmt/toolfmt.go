// Package toolfmt owns what model families do with tools and reasoning: how
// tools, calls and results are put into the shape that a family's own chat
// template renders, and how generated text is separated again into text,
// reasoning and tool calls.
//
// It knows texts, JSON and templates. It knows nothing of tokens' ids, models,
// sampling or HTTP. It never discards text: what is not a call comes out as
// text.
package toolfmt

import "encoding/json"

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of the arguments object; nil means no parameters
}

// Call is one call of a tool.
type Call struct {
	ID        string // left to the dialects; the parser leaves it empty
	Name      string // the offered tool's exact name
	Arguments string // a valid JSON object, but where Event.Cut says that it is only the begin of one
}

// Kind says what an Event carries.
type Kind uint8

// Kinds of events. A call is a CallStart, any number of CallArgs and a CallEnd,
// with nothing in between.
const (
	Text      Kind = iota // Event.Text is answer text
	Reasoning             // Event.Text is reasoning text
	CallStart             // Event.Call has the name
	CallArgs              // Event.Text is the next piece of the arguments' JSON text
	CallEnd               // Event.Call is the whole call
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case Text:
		return "text"
	case Reasoning:
		return "reasoning"
	case CallStart:
		return "call start"
	case CallArgs:
		return "call arguments"
	case CallEnd:
		return "call end"
	}
	return "unknown"
}

// Event is one piece of parsed output.
type Event struct {
	Kind  Kind
	Text  string
	Call  *Call // of CallStart (name only) and CallEnd (whole)
	Index int   // of the call within the turn, from 0
	// Plain tells, on CallStart and CallEnd, that the call stood without the marks of the model's format, and only its
	// content told that it is one.
	Plain bool
	// Cut tells, on CallEnd, that the output ended inside the call's arguments, or that they could not be read any
	// further. Call.Arguments is then what the model wrote of them, the begin of a JSON object which nothing closes:
	// what was not written is not made up. A dialect reports the turn as ended by length.
	Cut bool
}

// Options are what a parser needs to know of one request.
type Options struct {
	SingleCall bool   // at most one call; what follows it is text, see Parser.Done
	Forced     string // name of the tool that must be called, if one must: its arguments alone are a call
	Required   bool   // some tool must be called: with one tool, its arguments alone are a call
	// Prefixed tells that the output begins with Format.CallPrefix of the forced tool. Then it is a call whatever the
	// model makes of it: one that cannot be read is Cut, with the arguments that could be, and the rest is text.
	Prefixed bool
	// CallsOnly tells that text behind a call is no part of the turn: it ends there, see Parser.Done.
	CallsOnly   bool
	InReasoning bool // the prompt ended inside reasoning, see Format.OpensReasoning
}
