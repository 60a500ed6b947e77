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
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits bounds one rendering. A zero field means its default.
type Limits struct {
	Steps       int // evaluated nodes, produced items and copied 64-byte units; default 10 million
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

// Sentinels that errors of this package wrap.
var (
	ErrSyntax = errors.New("template syntax error")      // Parse failed
	ErrLimit  = errors.New("template budget exceeded")   // a budget of Limits ran out
	ErrRaised = errors.New("template refused its input") // the template called raise_exception
)

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	src   *source
	body  []stmt
	fn    *funcInfo
	frame frameOps
}

// Parse reads a template. The error is an *Error with line and column.
func Parse(name, text string) (*Template, error) {
	if !utf8.ValidString(text) {
		return nil, &Error{Name: name, Line: 1, Col: 1, Msg: "template is not valid UTF-8", Err: ErrSyntax}
	}
	t := &Template{src: newSource(name, text)}
	var err error
	if t.body, err = parse(t.src); err != nil {
		return nil, err
	}
	if t.fn, t.frame, err = bind(t.src, t.body); err != nil {
		return nil, err
	}
	return t, nil
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.Steps, 10_000_000)
	def(&l.Depth, 200)
	def(&l.OutputBytes, 64<<20)
	def(&l.StringBytes, 64<<20)
	return l
}

// Render evaluates the template. The error is an *Error; where ctx ended, it
// wraps the cause.
func (t *Template) Render(ctx context.Context, in Input, lim Limits) (Output, error) {
	lim = lim.withDefaults()
	r := &interp{
		ctx: ctx, src: t.src, lim: lim, now: in.Now,
		exported: map[string]Value{},
		act:      newActivation(t.fn, nil),
		out:      &builder{max: lim.OutputBytes},
	}
	if err := r.setInput(in); err != nil {
		return Output{}, r.located(0, err)
	}
	r.enter(t.frame)
	if _, err := r.execAll(t.body); err != nil {
		return Output{}, r.located(0, err)
	}
	return Output{r.out.done()}, nil
}

// setInput makes the variables that the template sees.
func (r *interp) setInput(in Input) error {
	r.given = r.globals()
	r.given["tools"] = None{}
	r.given["documents"] = None{}
	r.given["add_generation_prompt"] = Bool(in.AddGenerationPrompt)
	for name, v := range map[string]Value{"messages": in.Messages, "tools": in.Tools} {
		if v == nil {
			continue
		}
		c, err := r.asInput(v, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.given[name] = c
	}
	if l, ok := r.given["messages"].(*List); ok {
		for _, m := range l.items {
			trustRole(m)
		}
	}
	for _, kv := range in.Extra {
		if kv.Value == nil {
			return fmt.Errorf("variable %q has no value", kv.Key)
		}
		r.given[kv.Key] = kv.Value
	}
	return nil
}

// maxInputDepth bounds the nesting of messages and tools.
const maxInputDepth = 600

// asInput copies a value with all of its strings marked as input.
func (r *interp) asInput(v Value, depth int) (Value, error) {
	if depth > maxInputDepth {
		return nil, fmt.Errorf("input nested more than %d levels deep", maxInputDepth)
	}
	switch x := v.(type) {
	case Str:
		if !utf8.ValidString(x.s) {
			return nil, errors.New("input text is not valid UTF-8")
		}
		return inputStr(x.s), nil
	case *List:
		c := &List{items: make([]Value, len(x.items))}
		for i, it := range x.items {
			var err error
			if c.items[i], err = r.asInput(it, depth+1); err != nil {
				return nil, err
			}
		}
		return c, nil
	case *Dict:
		c := &Dict{entries: make([]entry, len(x.entries)), index: x.index}
		for i, e := range x.entries {
			k, err := r.asInput(e.key, depth+1)
			if err != nil {
				return nil, err
			}
			val, err := r.asInput(e.val, depth+1)
			if err != nil {
				return nil, err
			}
			c.entries[i] = entry{k, val, e.hash}
		}
		return c, nil
	case nil:
		return nil, errors.New("input has a value that is nil")
	}
	return v, nil
}

// knownRoles are the roles that templates may build control tokens from, as in
// '<|' + role + '|>'. A role with one of these names is a choice, not text, so
// it counts as template text.
var knownRoles = map[string]bool{
	"system": true, "user": true, "assistant": true, "tool": true, "developer": true, "model": true,
	"function": true, "ipython": true, "observation": true, "human": true, "gpt": true, "context": true, "environment": true,
}

func trustRole(message Value) {
	d, ok := message.(*Dict)
	if !ok {
		return
	}
	i := d.find(hashKey{kind: 's', s: "role"})
	if i < 0 {
		return
	}
	if s, ok := d.entries[i].val.(Str); ok && knownRoles[s.s] {
		d.entries[i].val = lit(s.s)
	}
}
