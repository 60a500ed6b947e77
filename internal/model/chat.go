package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/baleenrun/baleen/internal/chattmpl"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// A Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"` // "system", "user" or "assistant"
	Content string `json:"content"`
}

// ErrNoTemplate says that a model has no chat template: it continues text.
var ErrNoTemplate = errors.New("the model has no chat template; give it a text to continue")

// A Prompt is a rendered conversation.
type Prompt struct {
	Text   string
	Tokens []int32
}

// Chat returns the tokens of a conversation, up to where the assistant's answer begins. Control tokens come from
// the template only: no message can write one.
func (m *Model) Chat(ctx context.Context, messages []Message) ([]int32, error) {
	p, err := m.Prompt(ctx, messages, nil)
	return p.Tokens, err
}

// Prompt is Chat with the text beside the tokens. thinking, where it is not nil, is what templates that can switch
// reasoning on and off are told.
func (m *Model) Prompt(ctx context.Context, messages []Message, thinking *bool) (Prompt, error) {
	if !m.HasTemplate {
		return Prompt{}, ErrNoTemplate
	}
	if m.templateErr != nil {
		return Prompt{}, fmt.Errorf("the model's chat template cannot be read (--raw goes without): %w", m.templateErr)
	}
	b, err := json.Marshal(append([]Message{}, messages...)) // none are an empty list to templates, not null
	if err != nil {
		return Prompt{}, err
	}
	list, err := chattmpl.ParseJSON(b)
	if err != nil {
		return Prompt{}, err
	}
	extra := m.TemplateVariables()
	if thinking != nil {
		for _, key := range []string{"enable_thinking", "thinking"} { // families call it by two names
			extra = append(extra, chattmpl.KV{Key: key, Value: chattmpl.Bool(*thinking)})
		}
	}
	out, err := m.template.Render(ctx, chattmpl.Input{
		Messages:            list,
		AddGenerationPrompt: true,
		Extra:               extra,
	}, chattmpl.Limits{})
	if err != nil {
		return Prompt{}, fmt.Errorf("the model's chat template refused the conversation: %w", err)
	}
	var parts []tokenizer.Part
	for _, s := range out.Spans() {
		parts = append(parts, tokenizer.Part{Text: s.Text, Special: !s.FromInput})
	}
	ids, err := m.Tokenizer.EncodeParts(nil, parts, tokenizer.Options{})
	return Prompt{Text: out.Text(), Tokens: ids}, err
}

// TemplateVariables are those that transformers gives every template.
func (m *Model) TemplateVariables() []chattmpl.KV {
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

// Text returns the tokens of a text to be continued, with what the model wants before a text.
func (m *Model) Text(text string) ([]int32, error) {
	ids, err := m.Tokenizer.Encode(nil, text, tokenizer.Options{AddSpecial: true})
	if err != nil {
		return nil, err
	}
	for n := len(ids); n > 1 && m.isStop(ids[n-1]); n-- { // some tokenizers end every text
		ids = ids[:n-1]
	}
	if len(ids) == 0 {
		if bos, ok := m.Tokenizer.BOS(); ok {
			ids = append(ids, bos)
		}
	}
	return ids, nil
}

func (m *Model) isStop(id int32) bool {
	for _, s := range m.Tokenizer.EOS() {
		if s == id {
			return true
		}
	}
	return false
}
