package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
)

// reserve is how many tokens an answer should have room for.
func reserve(window int) int { return min(max(window/5, 256), 4096) }

// summaryTokens bounds a summary.
func summaryTokens(window int) int { return min(max(window/8, 128), 1024) }

// makeRoom puts the conversation into a summary where the next answer would not find room. It returns how long the
// answer may be, so that a summary finds room behind it; 0: it is not known.
func (a *Agent) makeRoom(ctx context.Context) (room int, err error) {
	if a.window == 0 {
		return 0, nil
	}
	n, err := a.session.Count(ctx)
	if err != nil {
		return 0, err
	}
	if n+reserve(a.window) > a.window {
		if err := a.compact(ctx, n); err != nil {
			return 0, err
		}
		if n, err = a.session.Count(ctx); err != nil {
			return 0, err
		}
	}
	return max(a.window-n-summaryNeed(a.window), reserve(a.window)/2), nil
}

// summaryNeed is what a summary takes behind a conversation, with the question for it.
func summaryNeed(window int) int { return summaryTokens(window) + 128 }

// Compact puts the conversation into a summary, now.
func (a *Agent) Compact(ctx context.Context) error {
	n, err := a.session.Count(ctx)
	if err != nil {
		return err
	}
	return a.compact(ctx, n)
}

const summarise = `The context is nearly full. Write a summary with which you can go on alone. Call no tools.
Say: what the user wants, in their words; what you found out (files, functions, errors); what you changed; what is left to
do next. At most 200 words.`

// compact asks a fork of the conversation, whose prompt is all cached, for a summary, and begins anew with it.
func (a *Agent) compact(ctx context.Context, before int) error {
	msgs := a.session.Messages()
	answered := false
	for _, m := range msgs {
		answered = answered || m.Role == model.Assistant
	}
	if !answered {
		return &model.WindowError{Tokens: before + reserve(a.window), Window: a.window}
	}
	f := a.session.Fork()
	if a.window > 0 && before+summaryNeed(a.window) > a.window {
		shorten(f, msgs, a.window)
	}
	f.Append(model.Message{Role: model.User, Text: summarise})
	ans, err := a.generate(ctx, f, model.Options{NoTools: true, NoThink: true, MaxTokens: summaryTokens(a.window)}, true)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("the conversation is too long, and a summary of it failed: %w", err)
	}
	summary := strings.TrimSpace(ans.Message.Text)
	if summary == "" {
		return errors.New("the conversation is too long, and the model wrote no summary of it")
	}
	text := carried(msgs, a.request, summary, a.window)
	if a.o.First != nil {
		text = a.o.First() + "\n" + text
	}
	s := a.open(model.Spec{})
	s.Append(model.Message{Role: model.User, Text: text})
	after, err := s.Count(ctx)
	if err != nil {
		return err
	}
	if a.window > 0 && after+reserve(a.window) > a.window {
		return fmt.Errorf("the conversation is too long, and its summary has %d tokens, of a context of %d", after, a.window)
	}
	if err := a.emit(event.Compaction{Before: before, After: after, Summary: summary}); err != nil {
		return err
	}
	for i := range a.marks { // files can still be taken back
		a.marks[i].Messages = -1
	}
	a.session = a.open(model.Spec{})
	return a.say(model.Message{Role: model.User, Text: text}, true)
}

// shorten cuts the results behind the last answer, for which there is no room beside a summary.
func shorten(s model.Session, msgs []model.Message, window int) {
	n := len(msgs)
	for n > 0 && msgs[n-1].Role != model.Assistant {
		n--
	}
	s.Truncate(n)
	for _, m := range msgs[n:] {
		m.Text = clip(m.Text, window/16)
		s.Append(m)
	}
}

// carried is what the new conversation begins with: the summary, the user's last words, and the last results.
func carried(msgs []model.Message, request, summary string, window int) string {
	var b strings.Builder
	b.WriteString("<summary of the work so far>\n" + summary + "\n</summary>")
	if request != "" {
		b.WriteString("\nThe user's last message:\n" + clip(request, max(window/2, 1000)))
	}
	n := len(msgs)
	for n > 0 && msgs[n-1].Role == model.Tool {
		n--
	}
	for _, m := range msgs[n:] {
		fmt.Fprintf(&b, "\nThe last result of %s:\n%s", m.Name, clip(m.Text, max(window/4, 400)))
	}
	b.WriteString("\nGo on with the work.")
	return b.String()
}

// clip cuts a text to so many bytes, in the middle.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + "\n[…]\n" + strings.ToValidUTF8(text[len(text)-most/2:], "")
}
