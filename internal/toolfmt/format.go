package toolfmt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

// Hints are what is known of a model before its format is chosen. The template decides where it is
// characteristic; then the vocabulary; then the names.
type Hints struct {
	Template     string                  // source of the chat template; empty when the model has none
	Architecture string                  // as in a checkpoint, such as "qwen2" or "gpt-oss"
	Name         string                  // the model's name, such as "Qwen2.5-Coder-0.5B-Instruct"
	HasToken     func(token string) bool // tells whether the vocabulary has a token spelled so; may be nil
}

// Format is how one model is told of tools and how it writes calls and reasoning. It is immutable and
// safe for concurrent use.
type Format struct {
	spec   *spec
	think  think // the reasoning marks; empty when the model has none
	caps   caps
	blocks []block  // the marks of its calls
	names  []string // control tokens that the vocabulary has, see VisibleTokens
}

// Message is one turn of a conversation, in no dialect's shape.
type Message struct {
	Role      string // "system", "developer", "user", "assistant" or "tool"
	Content   string
	Reasoning string // of an assistant's turn
	Calls     []Call // of an assistant's turn
	CallID    string // of a tool's result: the Call.ID that it answers
	ToolName  string // of a tool's result; found by CallID when empty
}

// PromptOptions are what a request asks of the prompt.
type PromptOptions struct {
	Thinking *bool            // reasoning on or off; nil leaves it to the template
	Now      func() time.Time // what templates print as the time; nil: the machine's
	Effort   string           // "low", "medium", "high", ... for templates that read it; empty leaves it to them
}

// For chooses the format of a model. It always returns one: a model that nothing is known of gets the
// Hermes format, which most small models have seen.
func For(h Hints) *Format {
	if h.HasToken == nil {
		h.HasToken = func(string) bool { return false }
	}
	f := &Format{spec: choose(h)}
	f.caps = probe(h.Template)
	f.blocks = append(f.blocks, f.spec.blocks...)
	for _, b := range extras {
		if strings.Contains(h.Template, b.open) {
			f.blocks = append(f.blocks, b)
		}
	}
	f.think = thinkingOf(h, f.spec)
	for _, t := range f.controlTokens() {
		if h.HasToken(t) {
			f.names = append(f.names, t)
		}
	}
	return f
}

// Name returns the family's name, for logs: "hermes", "qwen3-coder", "harmony", ...
func (f *Format) Name() string { return f.spec.name }

// VisibleTokens returns the control tokens of the vocabulary that a decoder must write out as their text,
// although it may leave out other control tokens: the parser reads them.
func (f *Format) VisibleTokens() []string { return append([]string(nil), f.names...) }

// StopTokens returns the spellings of tokens that end the model's turn beside the end-of-sequence tokens
// that a checkpoint names. The parser does not need to see them.
func (f *Format) StopTokens() []string { return append([]string(nil), f.spec.stops...) }

// ThinkTags returns the marks around reasoning, empty when the model has none. The closing mark, fed to the
// model, ends its thinking.
func (f *Format) ThinkTags() (open, close string) { return f.think.open, f.think.close }

// SupportsThinkingSwitch tells whether PromptOptions.Thinking changes what the template renders.
func (f *Format) SupportsThinkingSwitch() bool { return f.caps.thinkVar != "" }

// SupportsEffort tells whether the template reads PromptOptions.Effort.
func (f *Format) SupportsEffort() bool { return f.caps.effort }

// TemplateRendersTools tells whether the template itself tells the model of tools. Where it does not, Input
// puts them into the system message.
func (f *Format) TemplateRendersTools() bool { return f.caps.tools }

// OpensReasoning tells whether a rendered prompt ends inside reasoning, for Options.InReasoning.
func (f *Format) OpensReasoning(prompt string) bool {
	open := strings.TrimRight(f.think.open, " \n")
	if open == "" {
		return false
	}
	return strings.HasSuffix(strings.TrimRight(prompt, " \n"), open)
}

// CallPrefix returns text that, put behind the prompt and fed to the parser first, makes the model go on with
// the arguments of a call of the named tool, behind the bracket that opens them: a way to force a call, see
// Options.Prefixed. With an empty name it stops before the name. ok is false where the format has no such text.
func (f *Format) CallPrefix(name string) (text string, ok bool) { return f.spec.callPrefix(name) }

// CallMarks returns the control tokens of the vocabulary that open a call: where one of them comes, a call follows and
// nothing else. There are none where calls are written in ordinary text.
func (f *Format) CallMarks() []string {
	var out []string
	for _, b := range f.blocks {
		if slices.Contains(f.names, b.open) {
			out = append(out, b.open)
		}
	}
	if f.spec.harmony {
		out = append(out, "<|channel|>commentary")
	}
	return out
}

// Render renders a conversation with the model's template: Input and then Template.Render. The error is a *LostText
// where the template leaves out what a message says.
func (f *Format) Render(
	ctx context.Context,
	t *chattmpl.Template,
	ms []Message,
	tools []Tool,
	o PromptOptions,
	extra []chattmpl.KV,
) (chattmpl.Output, error) {
	render := func(ms []Message) (out chattmpl.Output, err error) {
		in, shown, err := f.input(ms, tools, o)
		if err != nil {
			return out, err
		}
		in.Extra = append(in.Extra, extra...)
		if out, err = t.Render(ctx, in, chattmpl.Limits{}); err == nil {
			err = checkLost(out, shown)
		}
		return out, err
	}
	out, err := render(ms)
	var lost *LostText
	if errors.As(err, &lost) && lost.Role != "assistant" && f.caps.system {
		// Mistral Nemo's shows the system's text only where the user speaks last: let users say it.
		if again, err := render(systemToUser(ms)); err == nil {
			return again, nil
		}
	}
	return out, err
}
