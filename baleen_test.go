package baleen_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/baleenrun/baleen"
)

func openTest(t *testing.T, o *baleen.Options) *baleen.Model {
	t.Helper()
	m, err := baleen.Open(t.Context(), tinyModel(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestOpenRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		arg  string
		o    *baleen.Options
		want string
	}{
		"unknown name":     {"gpt-9", nil, "neither a known name"},
		"missing file":     {"./missing.gguf", nil, "no file or folder"},
		"large context":    {tinyModel(), &baleen.Options{Context: 1 << 20}, "more than the model's 2048"},
		"instruction set":  {tinyModel(), &baleen.Options{CPU: "mmx"}, `"mmx"`},
		"folder of models": {filepath.Dir(t.TempDir()), nil, ""},
	} {
		m, err := baleen.Open(t.Context(), tc.arg, tc.o)
		if err == nil {
			m.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "baleen: ") {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

func TestLongPromptsAreRefusedWithTheCounts(t *testing.T) {
	m := openTest(t, &baleen.Options{Threads: 1, Context: 64})
	_, _, err := baleen.Text(m.Generate(t.Context(), strings.Repeat("word ", 200), nil))
	var long *baleen.PromptTooLong
	if !errors.As(err, &long) || long.Context != 64 || long.Tokens <= 200 {
		t.Errorf("error %v", err)
	}
	_, _, err = baleen.Text(m.Generate(t.Context(), "word", &baleen.Params{TopP: 3}))
	if err == nil || !strings.Contains(err.Error(), "top_p") {
		t.Errorf("wrong parameter: %v", err)
	}
}

func TestConversationOfNoMessages(t *testing.T) {
	m := openTest(t, &baleen.Options{Threads: 1})
	if n, err := m.CountChat(t.Context(), nil); err != nil || n == 0 {
		t.Errorf("%d tokens, %v", n, err)
	}
	_, u, err := baleen.Text(m.Chat(t.Context(), nil, &baleen.Params{MaxTokens: -1}))
	if err != nil || u.Prompt == 0 || u.Generated != 0 {
		t.Errorf("usage %+v, %v: want the prompt read and nothing generated", u, err)
	}
}

func TestCancelledContextEndsTheLoop(t *testing.T) {
	m := openTest(t, &baleen.Options{Threads: 1})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	var last error
	for _, err := range m.Generate(ctx, "hello", nil) {
		if n++; n == 3 {
			cancel()
		}
		last = err
	}
	if n < 3 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d chunks, the last error is %v", n, last)
	}
	cancel()
}

// TestSeedsDecide wants equal answers for equal seeds, whatever else runs, and others for others.
func TestSeedsDecide(t *testing.T) {
	m := openTest(t, &baleen.Options{Threads: 2})
	answers := make([]string, 12)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			seed := uint64(i % 3)
			text, usage, err := baleen.Text(m.Generate(t.Context(), "hello world", &baleen.Params{Temperature: 1, MaxTokens: 12, Seed: &seed}))
			if err != nil || usage.Seed != seed {
				t.Errorf("seed %d: %+v, %v", seed, usage, err)
			}
			answers[i] = text
		})
	}
	wg.Wait()
	for i, a := range answers {
		if a != answers[i%3] {
			t.Errorf("seed %d gave %q and %q", i%3, answers[i%3], a)
		}
	}
	if answers[0] == answers[1] && answers[1] == answers[2] {
		t.Error("seeds make no difference")
	}
}

func TestSessionKeepsWhatWasSaid(t *testing.T) {
	m := openTest(t, &baleen.Options{Threads: 1})
	s := m.NewSession("")
	for range s.Send(t.Context(), "one", &baleen.Params{MaxTokens: 8}) {
		break // leaving early keeps what came so far
	}
	if got := s.Messages(); len(got) != 2 || got[0].Content != "one" || got[1].Role != "assistant" {
		t.Errorf("after leaving the loop: %+v", got)
	}
	if _, _, err := baleen.Text(s.Send(t.Context(), strings.Repeat("word ", 3000), nil)); err == nil {
		t.Error("a message beyond the context was answered")
	}
	if got := s.Messages(); len(got) != 2 {
		t.Errorf("a message that failed is part of the conversation: %d messages", len(got))
	}
	text, _, err := baleen.Text(s.Send(t.Context(), "two", &baleen.Params{MaxTokens: 5}))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Messages()
	if len(got) != 4 || got[3].Content != text {
		t.Errorf("the conversation is %+v, the answer was %q", got, text)
	}
	if last, total := s.Usage(); last.Generated == 0 || total.Generated < last.Generated {
		t.Errorf("usage %+v, %+v", last, total)
	}
	if n, err := m.CountChat(t.Context(), got); err != nil || n < 10 {
		t.Errorf("%d tokens, %v", n, err)
	}
}

// TestSessionSendsTheModelsOwnTokens: a model of random weights writes in tokens that its tokenizer would not choose.
// The next message finds the answer in the cache nonetheless, as a template that ends turns with a control token allows.
func TestSessionSendsTheModelsOwnTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.gguf")
	template := `{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}assistant:`
	if err := writeTiny(path, template); err != nil {
		t.Fatal(err)
	}
	m, err := baleen.Open(t.Context(), path, &baleen.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := m.NewSession("")
	var first []int32
	var text string
	for c, err := range s.Send(t.Context(), "Tell me", &baleen.Params{MaxTokens: 40}) {
		if err != nil {
			t.Fatal(err)
		}
		if text += c.Text; c.Token >= 0 {
			first = append(first, c.Token)
		}
	}
	if ids, err := m.Tokenize(text); err != nil || slices.Equal(ids, first) {
		t.Fatalf("%q is written in the tokenizer's own tokens: this tests nothing", text)
	}
	last, _ := s.Usage()
	want := last.Prompt + last.Generated
	if _, _, err := baleen.Text(s.Send(t.Context(), "more", &baleen.Params{MaxTokens: 2})); err != nil {
		t.Fatal(err)
	}
	if again, _ := s.Usage(); again.Cached < want-1 {
		t.Errorf("%d tokens of %d were cached, want the %d of the first turn", again.Cached, again.Prompt, want)
	}
}
