package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/baleenrun/baleen/internal/chattmpl"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/tokenizer"
	"github.com/baleenrun/baleen/internal/toolfmt"
)

// A Model is a loaded model with what belongs to conversations: its formats of prompts, calls and reasoning.
type Model struct {
	*model.Model
	floor *tokenizer.Floor // how many tokens texts have at least; nil: not known
	vars  []chattmpl.KV

	own         promptFormat // of the model's own template
	constraints constraints

	mu    sync.Mutex              // guards other
	other map[string]promptFormat // of templates that Specs bring, by source
}

// A promptFormat is a template with the format that belongs to it.
type promptFormat struct {
	template *chattmpl.Template
	err      error // of reading it
	format   *toolfmt.Format
	stops    []int32
	visible  map[int32]bool // control tokens that the parser reads
}

// Open opens the model at path for a pool.
func Open(ctx context.Context, path string, o model.Options) (*Model, error) {
	m, err := model.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	c := &Model{Model: m, other: map[string]promptFormat{}}
	c.floor = c.Tokenizer.Floor()
	c.vars = c.templateVariables()
	c.own = c.newPromptFormat(m.Info.ChatTemplate)
	return c, nil
}

// Format is how the model writes calls and reasoning with its own template.
func (m *Model) Format() *toolfmt.Format { return m.own.format }

// promptFormatFor returns the template of a source, "" being the model's own.
func (m *Model) promptFormatFor(source string) promptFormat {
	if source == "" || source == m.Info.ChatTemplate {
		return m.own
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.other[source]
	if !ok {
		if len(m.other) >= 64 { // sources come from stored models; a bound all the same
			clear(m.other)
		}
		d = m.newPromptFormat(source)
		m.other[source] = d
	}
	return d
}

func (m *Model) newPromptFormat(source string) promptFormat {
	var d promptFormat
	if source != "" {
		d.template, d.err = chattmpl.Parse("chat template", source)
	}
	d.format = toolfmt.For(toolfmt.Hints{
		Template: source, Architecture: m.Info.Type, Name: m.Info.Name,
		HasToken: func(t string) bool { _, ok := m.Tokenizer.ID(t); return ok },
	})
	d.visible = map[int32]bool{}
	for _, t := range d.format.VisibleTokens() {
		if id, ok := m.Tokenizer.ID(t); ok {
			d.visible[id] = true
		}
	}
	d.stops = m.StopTokens()
	for _, t := range d.format.StopTokens() {
		if id, ok := m.Tokenizer.ID(t); ok && !slices.Contains(d.stops, id) {
			d.stops = append(d.stops, id)
		}
	}
	return d
}

// Thinks reports whether the model can reason before it answers.
func (m *Model) Thinks() bool {
	open, _ := m.own.format.ThinkTags()
	return open != "" || m.own.format.SupportsThinkingSwitch()
}

// usable refuses conversations with a model, of that name, that has no usable template.
func (d promptFormat) usable(name string) error {
	switch {
	case d.err != nil:
		return &Error{
			Kind: Unavailable,
			Msg:  fmt.Sprintf("the chat template of model %s cannot be read", name),
			Err:  d.err,
		}
	case d.template == nil:
		return &Error{
			Kind:  Unsupported,
			Field: "model",
			Msg:   fmt.Sprintf("%s is a base model without a chat template: it continues texts only", name),
		}
	}
	return nil
}

// templateError words a template's refusal.
func templateError(err error) error {
	var lost *toolfmt.LostText
	said := strings.TrimPrefix(err.Error(), "chattmpl: ")
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &lost):
		said += ": put it into a message of another role or place"
	case errors.Is(err, chattmpl.ErrRaised), errors.Is(err, chattmpl.ErrLimit):
		return &Error{
			Kind:  Invalid,
			Field: "messages",
			Msg:   "the model's chat template refused the conversation: " + said,
			Err:   err,
		}
	}
	return &Error{
		Kind:  Invalid,
		Field: "messages",
		Msg:   "the model's chat template cannot render this conversation: " + said,
		Err:   err,
	}
}

// templateVariables are those that transformers gives every template.
func (m *Model) templateVariables() []chattmpl.KV {
	spelling := func(id int32, ok bool) chattmpl.Value {
		if ok {
			if text, ok := m.Tokenizer.Token(id); ok {
				return chattmpl.Text(text)
			}
		}
		return chattmpl.Text("")
	}
	bos, hasBOS := m.Tokenizer.BOS()
	eos := append(append([]int32(nil), m.Tokenizer.EOS()...), -1)
	return []chattmpl.KV{
		{Key: "bos_token", Value: spelling(bos, hasBOS)},
		{Key: "eos_token", Value: spelling(eos[0], eos[0] >= 0)},
	}
}
