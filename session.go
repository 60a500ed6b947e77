package baleen

import (
	"context"
	"iter"
	"strings"
)

// A Session is a conversation that goes on. Each message is sent with all that was said before, whose keys and values
// are still cached: only what is new is computed, and Usage says how much was not. Answers are sent in the very tokens
// that the model wrote, unless its template changes them. A Session is for one goroutine.
type Session struct {
	model    *Model
	messages []Message
	said     []int32 // the last prompt and the answer to it
	last     Usage
	total    Usage
}

// NewSession begins a conversation. system stands before it; it may be empty.
func (m *Model) NewSession(system string) *Session {
	s := &Session{model: m}
	if system != "" {
		s.messages = append(s.messages, Message{Role: "system", Content: system})
	}
	return s
}

// Send says something and gives the answer. Both become part of the conversation when the answer ends, or when the
// caller leaves the loop; a message that fails does not.
func (s *Session) Send(ctx context.Context, text string, params *Params) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		messages := append(s.messages[:len(s.messages):len(s.messages)], Message{Role: "user", Content: text})
		var answer strings.Builder
		var tokens []int32
		for c, err := range s.model.stream(ctx, params, func() (ids []int32, err error) {
			ids, err = s.model.m.Chat(ctx, messages)
			ids = s.model.m.Tokenizer.Continue(s.said, ids)
			tokens = append([]int32(nil), ids...)
			return ids, err
		}) {
			if err != nil {
				yield(c, err)
				return
			}
			answer.WriteString(c.Text)
			if c.Token >= 0 {
				tokens = append(tokens, c.Token)
			}
			if c.Finish != "" {
				s.count(c.Usage)
			}
			if c.Finish != "" || !yield(c, nil) {
				s.messages = append(messages, Message{Role: "assistant", Content: answer.String()})
				s.said = tokens
				if c.Finish != "" {
					yield(c, nil)
				}
				return
			}
		}
	}
}

func (s *Session) count(u Usage) {
	s.last = u
	s.total.Prompt += u.Prompt
	s.total.Cached += u.Cached
	s.total.Generated += u.Generated
	s.total.Total += u.Total
}

// Messages returns the conversation so far.
func (s *Session) Messages() []Message { return append([]Message(nil), s.messages...) }

// Usage returns what the last complete answer took, and the sum over all of them.
func (s *Session) Usage() (last, total Usage) { return s.last, s.total }
