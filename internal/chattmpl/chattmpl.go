// Package chattmpl renders chat templates: the Jinja that Hugging Face
// transformers runs (Jinja2's immutable sandbox with trim_blocks, lstrip_blocks,
// loop controls and the generation tag), with Python's semantics for values.
//
// It owns parsing, evaluation, budgets against hostile templates, and the
// provenance of every byte of the output. It knows nothing of tokens, models
// or HTTP, and reads no files.
package chattmpl

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Limits bounds one rendering. A zero field means its default.
type Limits struct {
	Steps       int // evaluated nodes, produced items and copied 64-byte units; default 20 million
	Depth       int // nested calls, blocks and expressions; default 200
	OutputBytes int // rendered text; default 64 MiB
	StringBytes int // one string value made while rendering; default 64 MiB
}

// KV is one named variable for a template.
type KV struct {
	Key   string
	Value Value
}

// Input is what a chat template is rendered with.
//
// All strings in Messages and Tools count as input text. Strings in Extra
// (bos_token, eos_token, enable_thinking, ...) count as template text, except
// those made by ParseJSON, which say themselves that they are input.
type Input struct {
	Messages            Value // a list of mappings; nil leaves the variable undefined
	Tools               Value // a list of mappings; nil renders as None
	AddGenerationPrompt bool
	Extra               []KV
	Now                 func() time.Time // clock of strftime_now; nil means time.Now
}

// Span is a stretch of the output. FromInput tells that its text came out of
// the input's strings and must not be read as control tokens.
type Span struct {
	Text      string
	FromInput bool
}

// Output is a rendered template.
type Output struct {
	text Str
}

// Text returns the whole rendered text.
func (o Output) Text() string { return o.text.s }

// Spans returns the text as maximal stretches of equal origin, in order.
func (o Output) Spans() []Span { return o.text.spans() }

// Error is a failure of parsing or rendering, with the place in the template.
type Error struct {
	Name      string // the template's name as given to Parse
	Line, Col int    // 1-based; Col counts characters; 0 when unknown
	Msg       string
	Err       error // the cause, when there is one
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("chattmpl: ")
	if e.Name != "" {
		b.WriteString(e.Name)
		b.WriteByte(':')
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Col)
	}
	if b.Len() > len("chattmpl: ") {
		b.WriteByte(' ')
	}
	b.WriteString(e.Msg)
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	name string
}

// Parse reads a template. The error is an *Error with line and column.
func Parse(name, source string) (*Template, error) {
	return nil, &Error{Name: name, Msg: "not available yet"}
}

// Render evaluates the template. The error is an *Error unless ctx ended.
func (t *Template) Render(ctx context.Context, in Input, lim Limits) (Output, error) {
	return Output{}, &Error{Name: t.name, Msg: "not available yet"}
}
