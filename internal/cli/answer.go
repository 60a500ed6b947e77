package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
)

// openChat loads a model for this process, with the settings that it was made with: without them it would not be the
// model that it is behind a server. Its system prompt is left to the flags.
func (a *app) openChat(ctx context.Context, spec chat.Spec) (*chat.Service, error) {
	o := a.modelOptions()
	o.Seqs = 1
	spec.System = ""
	if o.Context > 0 { // who says how much context to take means it
		spec.Context = 0
	}
	if a.io.ErrTTY {
		l := &loading{a: a, began: time.Now()}
		o.Progress = l.set
		defer l.clear()
	}
	return chat.OpenSingle(ctx, spec, o)
}

// An answered is what came out of one request.
type answered struct {
	text, reasoning string
	tokens          []int32 // of the answer, reasoning included
	said            []int32 // prompt and answer, for the next request of the conversation
	end             chat.Reason
	usage           chat.Usage
	context         int  // tokens that prompt and answer can have together
	sampled         bool // tokens were drawn: the seed matters
}

// generate runs a request and hands its text to emit as it comes. What there is of an answer is returned with an
// error, too; one that was stopped ends with context.Canceled.
func generate(
	ctx context.Context, svc *chat.Service, r *chat.Request, emit func(reasoning bool, text string) error,
) (got answered, err error) {
	st, err := svc.Run(ctx, r)
	if err != nil {
		return got, err
	}
	defer st.Close()
	var text, reasoning strings.Builder
	for d := range st.All() {
		switch d.Kind {
		case chat.TextDelta, chat.ReasoningDelta:
			if d.Text == "" {
				continue
			}
			if d.Kind == chat.TextDelta {
				text.WriteString(d.Text)
			} else {
				reasoning.WriteString(d.Text)
			}
			if err = emit(d.Kind == chat.ReasoningDelta, d.Text); err != nil {
				return got, err
			}
		case chat.Finish:
			got.end = d.Reason
		case chat.Done:
			got.usage = d.Usage
			switch {
			case d.Err != nil && d.Err.Kind == chat.Cancelled: // whoever stopped it knows why
				err = context.Canceled
			case d.Err != nil:
				err = d.Err
			}
		}
	}
	got.text, got.reasoning = text.String(), reasoning.String()
	got.context, got.sampled = st.Context(), st.Sampling().Temperature > 0
	got.tokens, got.said = st.AnswerTokens(), st.Said()
	return got, err
}

// aside writes reasoning where it does not mix with the answer: on standard error, dim on a terminal.
type aside struct {
	a    *app
	open bool
	last string
}

func (s *aside) write(text string) {
	if !s.open {
		s.open = true
		if s.dim() {
			fmt.Fprint(s.a.io.Err, "\x1b[2m")
		}
	}
	s.last = text
	if s.a.io.ErrTTY {
		text = withoutControls(text)
	}
	io.WriteString(s.a.io.Err, text) //nolint:errcheck // as for all that is written there
}

// end ends it before the answer begins, and when there is none.
func (s *aside) end() {
	if !s.open {
		return
	}
	s.open = false
	if s.dim() {
		fmt.Fprint(s.a.io.Err, "\x1b[0m")
	}
	fmt.Fprint(s.a.io.Err, strings.Repeat("\n", 2-min(2, len(s.last)-len(strings.TrimRight(s.last, "\n")))))
}

func (s *aside) dim() bool {
	return s.a.io.ErrTTY && s.a.getenv("NO_COLOR") == "" && s.a.getenv("TERM") != "dumb"
}

// bounded reports whether an answer ended where it was bounded, and not with the context.
func (c *conversation) bounded(got answered) bool {
	n := c.f.maxTokens
	if n == 0 {
		n = c.about.Spec.MaxTokens
	}
	return n > 0 && got.usage.Generated >= n
}

// cutOff says what ended an answer that the model had not ended.
func (c *conversation) cutOff(got answered) string {
	if n := c.f.maxTokens; n > 0 && got.usage.Generated >= n {
		return fmt.Sprintf("the answer was cut off after %d tokens (--max-tokens)", got.usage.Generated)
	}
	if n := c.about.Spec.MaxTokens; c.f.maxTokens == 0 && n > 0 && got.usage.Generated >= n {
		return fmt.Sprintf(
			"the answer was cut off after %d tokens, as this model's settings say (--max-tokens changes it)",
			got.usage.Generated,
		)
	}
	return fmt.Sprintf(
		"the answer was cut off: the context of %d tokens is full (--context makes it larger)",
		got.context,
	)
}

// stats says what a request took.
func (a answered) stats(loaded time.Duration) string {
	var b strings.Builder
	u := a.usage
	fmt.Fprintf(&b, "prompt %s", counted(u.Prompt, "token"))
	if u.Cached > 0 {
		fmt.Fprintf(&b, " (%d from the cache)", u.Cached)
	}
	if computed := u.Prompt - u.Cached; computed > 0 && u.Prefill > 0 {
		fmt.Fprintf(&b, ", %.0f tokens/s", float64(computed)/u.Prefill.Seconds())
	}
	fmt.Fprintf(&b, "; answer %s", counted(u.Generated, "token"))
	if u.Reasoning > 0 {
		fmt.Fprintf(&b, " (%d of reasoning)", u.Reasoning)
	}
	if u.Generated > 1 && u.Decode > 0 {
		fmt.Fprintf(&b, ", %.1f tokens/s", float64(u.Generated-1)/u.Decode.Seconds())
	}
	fmt.Fprintf(&b, "; first token after %s", u.First.Round(time.Millisecond))
	if loaded > 0 {
		fmt.Fprintf(&b, ", loading took %s", loaded.Round(time.Millisecond))
	}
	if a.sampled {
		fmt.Fprintf(&b, "; seed %d", u.Seed)
	}
	return b.String()
}
