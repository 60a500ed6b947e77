package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/cli/chatui"
)

// conversation is a chat with a model: what was said, and how answers are made.
type conversation struct {
	a     *app
	to    answerer
	about about
	f     *runFlags

	thinking *bool         // nil: as the template has it
	effort   string        // how much to reason, "" for the template's own
	extra    chat.Sampling // what no flag sets
	stop     []string
	markdown bool

	msgs    []chat.Message // beside the system message: turns of a question and an answer
	said    []int32        // the last prompt and what the model wrote to it
	pending string         // a question that found no room
}

// conversation begins one.
func (a *app) conversation(to answerer, f *runFlags) *conversation {
	return &conversation{a: a, to: to, about: to.about(), f: f, markdown: true}
}

// request asks for the answer to a text, behind what was said.
func (c *conversation) request(text string) *chat.Request { return c.requestAfter(c.msgs, text) }

func (c *conversation) requestAfter(msgs []chat.Message, text string) *chat.Request {
	r := &chat.Request{
		Sampling:  c.f.chosen(),
		Stop:      c.stop,
		MaxTokens: c.f.maxTokens,
		Thinking:  c.thinking,
		Effort:    c.effort,
		Format:    c.f.held,
	}
	s := &r.Sampling
	s.TypicalP, s.PresencePenalty, s.FrequencyPenalty, s.RepeatLastN = c.extra.TypicalP, c.extra.PresencePenalty, c.extra.FrequencyPenalty, c.extra.RepeatLastN
	if c.f.keepAlive.set {
		r.KeepAlive = &c.f.keepAlive.d
	}
	if c.f.raw {
		r.Raw, r.Prompt = true, text
		return r
	}
	if c.f.system != "" {
		r.Messages = append(r.Messages, chat.Text(chat.System, c.f.system))
	}
	r.Messages = append(append(r.Messages, msgs...), chat.Text(chat.User, text))
	r.Said = c.said
	return r
}

// Title says what is talked to.
func (c *conversation) Title() string { return c.about.String() }

// Markdown reports whether answers are to be rendered.
func (c *conversation) Markdown() bool { return c.markdown && !c.f.raw }

// Answer says text and hands the answer out as it comes. The answer, or what there is of it when ctx ends, becomes
// part of the conversation; a message that cannot be answered does not. note is what is worth a line afterwards.
func (c *conversation) Answer(
	ctx context.Context,
	text string,
	emit func(reasoning bool, text string),
) (note string, err error) {
	c.pending = ""
	got, err := c.to.answer(ctx, c.request(text), func(reasoning bool, text string) error {
		if !reasoning || !c.f.hideThinking {
			emit(reasoning, text)
		}
		return nil
	})
	var notes []string
	if err == nil && got.end == chat.Length {
		notes = append(notes, c.cutOff(got))
		if len(c.msgs) > 0 && !c.bounded(got) {
			notes = append(
				notes,
				"/drop forgets the oldest turns, /summarise puts a summary in their place, /clear forgets all.",
			)
		}
	}
	if c.f.showStats && got.usage.Total > 0 {
		notes = append(notes, got.stats(c.f.loaded))
	}
	note = strings.Join(notes, "\n")
	if err != nil && !errors.Is(err, context.Canceled) {
		return note, c.noRoom(ctx, text, err)
	}
	c.f.loaded = 0
	if !c.f.raw &&
		(len(got.said) > 0 || got.text != "") { // the question that was stopped before it began is not part of it
		c.said = got.said
		c.msgs = append(c.msgs[:len(c.msgs):len(c.msgs)], chat.Text(chat.User, text),
			chat.Text(chat.Assistant, strings.TrimSpace(got.text)))
	}
	return note, err
}

// noRoom says of a question for which the context has no room how to make some, and keeps it until there is.
func (c *conversation) noRoom(ctx context.Context, text string, err error) error {
	var e *chat.Error
	if c.f.raw || !errors.As(err, &e) || e.Kind != chat.PromptTooLong {
		return plainly(err)
	}
	n := c.tooMany(ctx, text)
	if n == 0 || len(c.msgs) == 0 {
		return fmt.Errorf("%w; this message does not fit even alone", err)
	}
	c.pending = text
	return chatui.Kept{Err: fmt.Errorf(`the conversation has %d tokens with this message, and the context holds %d:
  /drop       forgets the oldest %s%s and then answers
  /summarise  puts a summary in their place and then answers
  /clear      forgets all of it; ask again then`, e.Tokens, e.Context, counted(n, "turn"), c.span(n))}
}

// leastAnswer is how many tokens there should be room for behind a prompt.
func (c *conversation) leastAnswer() int {
	if c.f.maxTokens > 0 {
		return min(c.f.maxTokens, c.about.Context/4)
	}
	return c.about.Context / 8
}

// tooMany is how many of the oldest turns have to go for text to find room, with an answer; 0 where none is enough.
func (c *conversation) tooMany(ctx context.Context, text string) int {
	turns := len(c.msgs) / 2
	fits := func(n int) bool {
		tokens, err := c.to.count(ctx, c.requestAfter(c.msgs[2*n:], text))
		return err == nil && tokens+c.leastAnswer() <= c.about.Context
	}
	if !fits(turns) {
		return 0
	}
	lo, hi := 0, turns // fewer than lo are too few, hi are enough
	for lo < hi {
		if mid := (lo + hi) / 2; fits(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return hi
}

// span names the first n turns: from "..." to "...".
func (c *conversation) span(n int) string {
	quote := func(i int) string {
		const most = 40
		text := strings.Join(strings.Fields(textOf(c.msgs[2*i])), " ")
		if r := []rune(text); len(r) > most {
			text = string(r[:most]) + "…"
		}
		return fmt.Sprintf("%q", text)
	}
	switch {
	case n <= 0 || 2*n > len(c.msgs):
		return ""
	case n == 1:
		return ", " + quote(0) + ","
	}
	return ", from " + quote(0) + " to " + quote(n-1) + ","
}

// textOf is the text of a message, which has one part here.
func textOf(m chat.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
