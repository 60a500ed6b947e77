package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// talk is a conversation with a scripted model, and what was printed.
func talk(t *testing.T, o servertest.Options, tty bool, args ...string) (*conversation, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	w := servertest.New(t, o)
	var out, errs bytes.Buffer
	a := &app{io: IO{Out: &out, Err: &errs, OutTTY: tty, ErrTTY: tty, Environ: []string{"TERM=xterm"}}}
	f := &runFlags{}
	f.register(&cobra.Command{})
	if err := f.flags.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	to, err := newHere(t.Context(), w.Chat)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.close)
	return a.conversation(to, f), &out, &errs
}

// TestReasoningIsNoAnswer: neither channel names nor tags reach standard output; what a model thinks stands beside it,
// dim on a terminal, and in a field of its own.
func TestReasoningIsNoAnswer(t *testing.T) {
	for _, f := range servertest.Families() {
		if f.Name != "hermes" && f.Name != "harmony" { // <think> and channels
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			o := servertest.Options{Checkpoint: f.Checkpoint, Script: func(string) string { return f.Answer("Paris.") }}
			c, out, errs := talk(t, o, false)
			if err := c.a.answer(t.Context(), c, "capital?"); err != nil || out.String() != "Paris.\n" ||
				errs.String() != "So that is it.\n\n" {
				t.Errorf("%q, beside it %q, %v", out.String(), errs.String(), err)
			}
			c, out, errs = talk(t, o, true)
			if err := c.a.answer(t.Context(), c, "capital?"); err != nil || out.String() != "Paris.\n" ||
				!strings.HasPrefix(errs.String(), "\x1b[2m") ||
				!strings.Contains(errs.String(), "So that is it.") ||
				!strings.HasSuffix(errs.String(), "\x1b[0m\n\n") {
				t.Errorf("on a terminal %q, beside it %q, %v", out.String(), errs.String(), err)
			}
			c, out, _ = talk(t, o, false)
			var r runResult
			if err := c.a.answerJSON(t.Context(), c, "capital?"); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Text != "Paris." || strings.TrimSpace(r.Reasoning) != "So that is it." || r.Usage.Reasoning == 0 ||
				r.Usage.Reasoning >= r.Usage.Generated ||
				r.Finish != "stop" {
				t.Errorf("%+v", r)
			}
			var thought, said strings.Builder
			if _, err := c.Answer(t.Context(), "capital?", func(reasoning bool, text string) {
				if reasoning {
					thought.WriteString(text)
				} else {
					said.WriteString(text)
				}
			}); err != nil || said.String() != "Paris." || strings.TrimSpace(thought.String()) != "So that is it." || textOf(c.msgs[1]) != "Paris." {
				t.Errorf("in a chat %q, thought %q, kept %+v, %v", said.String(), thought.String(), c.msgs, err)
			}
		})
	}
}

// TestFlagsLeaveTheRestToTheModel: what is not given is not sent, so that every command has the same defaults; 0 is
// given.
func TestFlagsLeaveTheRestToTheModel(t *testing.T) {
	c, _, _ := talk(t, servertest.Options{}, false)
	if s := c.f.chosen(); s.Temperature != nil || s.TopK != nil || s.TopP != nil || s.MinP != nil || s.Seed != nil ||
		s.RepetitionPenalty != nil {
		t.Errorf("without flags %+v", s)
	}
	c, _, _ = talk(t, servertest.Options{}, false, "--temperature", "0", "--top-k", "3", "--seed", "0")
	if s := c.f.chosen(); s.Temperature == nil || *s.Temperature != 0 || s.TopK == nil || *s.TopK != 3 ||
		s.Seed == nil ||
		s.TopP != nil {
		t.Errorf("with flags %+v", s)
	}
}

// TestChatSendsTheModelsOwnTokens: the second prompt begins with the first and its answer as they were, so that all of
// it is in the cache.
func TestChatSendsTheModelsOwnTokens(t *testing.T) {
	c, _, _ := talk(t, servertest.Options{}, false)
	ask := func(text string) answered {
		t.Helper()
		got, err := c.to.answer(t.Context(), c.request(text), func(bool, string) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		c.said = got.said
		c.msgs = append(c.msgs, chat.Text(chat.User, text), chat.Text(chat.Assistant, got.text))
		return got
	}
	first := ask("one")
	second := ask("two")
	if want := first.usage.Prompt + first.usage.Generated - 1; second.usage.Cached < want {
		t.Errorf("%d tokens of %d were cached, want %d", second.usage.Cached, second.usage.Prompt, want)
	}
}
