package chat_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

func ptr[T any](v T) *T { return &v }

// TestPenaltiesPauseInCalls asks a model whose calls repeat their characters so often that penalties would tear them.
func TestPenaltiesPauseInCalls(t *testing.T) {
	args := `{"lines": [` + strings.TrimSuffix(strings.Repeat(`"aaaa", `, 12), ", ") + `]}`
	call := servertest.ToolCall("add", args)
	penalties := chat.Sampling{
		FrequencyPenalty:  ptr(float32(2)),
		PresencePenalty:   ptr(float32(1)),
		RepetitionPenalty: ptr(float32(1.5)),
	}
	for _, c := range []struct {
		name, script string
		request      chat.Request
	}{
		{"one call", call, chat.Request{}},
		{"two calls behind text", "Wait.\n" + call + "\n" + strings.Replace(call, "aaaa", "bbbb", 1), chat.Request{}},
		{"a call without marks", `{"name": "add", "arguments": ` + args + `}`, chat.Request{}},
		{"a call that is forced", args + "}\n</tool_call>", chat.Request{Choice: chat.ToolChoice{Mode: chat.ToolNamed, Name: "add"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := servertest.New(t, servertest.Options{Script: func(string) string { return c.script }})
			c.request.Messages, c.request.Tools = user(
				"x",
			), []chat.Tool{
				{Name: "add", Parameters: []byte(`{"type":"object","properties":{"lines":{"type":"array"}}}`)},
			}
			plain, penalized := c.request, c.request
			penalized.Sampling = penalties
			text, _, calls, finish, _ := run(t, w, &plain)
			gotText, _, got, gotFinish, _ := run(t, w, &penalized)
			for _, list := range [][]chat.Call{calls, got} {
				for i := range list {
					list[i].ID = ""
				}
			}
			if len(calls) == 0 || !reflect.DeepEqual(got, calls) || gotText != text ||
				gotFinish[0].Reason != finish[0].Reason {
				t.Errorf(
					"got %q %v %v, want %q %v %v",
					gotText,
					got,
					gotFinish[0].Reason,
					text,
					calls,
					finish[0].Reason,
				)
			}
		})
	}
	w := servertest.New(t, servertest.Options{Script: func(string) string { return strings.Repeat("a", 40) }})
	r := &chat.Request{Messages: user("x"), Tools: []chat.Tool{{Name: "add"}}, Sampling: penalties, MaxTokens: 60}
	r.Sampling.Seed = ptr(uint64(1)) // others may draw what looks like a call
	if text, _, _, _, _ := run(t, w, r); strings.Contains(text, strings.Repeat("a", 20)) {
		t.Errorf("text is not penalized: %q", text)
	}
}

// TestPenaltiesFollowFromTheTokens wants the same answer alone, among others, as one of several, and behind reasoning
// that was ended.
func TestPenaltiesFollowFromTheTokens(t *testing.T) {
	args := `{"lines": [` + strings.TrimSuffix(strings.Repeat(`"aaaa", `, 12), ", ") + `]}`
	w := servertest.New(t, servertest.Options{Script: func(p string) string {
		answer := "abababab" + servertest.ToolCall("add", args)
		if strings.HasSuffix(p, "</think>\n\n") {
			return answer
		}
		return "<think>\n" + strings.Repeat("x", 300) + "</think>\n\n" + answer
	}})
	ask := func(n, budget int) (out []string) {
		s, err := w.Chat.Run(t.Context(), &chat.Request{
			Model: "scripted", Messages: user("x"), Tools: []chat.Tool{{Name: "add"}}, N: n, ThinkingBudget: budget, MaxTokens: 700,
			Sampling: chat.Sampling{
				Temperature:      ptr(float32(0)),
				FrequencyPenalty: ptr(float32(1.5)),
				Seed:             ptr(uint64(3)),
			},
		})
		if err != nil {
			t.Error(err)
			return nil
		}
		out = make([]string, max(n, 1))
		for d := range s.All() {
			switch d.Kind {
			case chat.TextDelta, chat.ReasoningDelta, chat.CallArgs:
				out[d.Choice] += d.Text
			case chat.Done:
				if d.Err != nil {
					t.Error(d.Err)
				}
			}
		}
		return out
	}
	for _, budget := range []int{0, 5} {
		want := ask(1, budget)[0]
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for k, got := range ask(1+i%3, budget) {
					if got != want { // greedy: the answers of one request are equal
						t.Errorf("budget %d, answer %d of request %d: %q, want %q", budget, k, i, got, want)
					}
				}
			})
		}
		wg.Wait()
		if budget > 0 && !strings.Contains(want, fmt.Sprintf("%.20s", args)) {
			t.Errorf("behind reasoning that was ended: %q", want)
		}
	}
}

// TestProgressOfPrompts wants reports that go up to the prompt's length, before everything else and only where asked
// for.
func TestProgressOfPrompts(t *testing.T) {
	w := servertest.New(t, servertest.Options{})
	long := user(strings.Repeat("word ", 600))
	for round, progress := range []bool{true, true, false} {
		s, err := w.Chat.Run(t.Context(), &chat.Request{Model: "scripted", Messages: long, Progress: progress, N: 2})
		if err != nil {
			t.Fatal(err)
		}
		var seen []chat.Delta
		other := 0
		for d := range s.All() {
			if d.Kind == chat.PrefillDelta {
				seen = append(seen, d)
			} else {
				other++
			}
		}
		switch n := len(seen); {
		case !progress && n > 0, progress && n == 0, other < 4:
			t.Errorf("round %d: %d reports, %d other deltas", round, n, other)
		case progress:
			last := seen[n-1].Prefill
			if last.Ready != s.PromptCount() || last.Total != s.PromptCount() || (round > 0) != (last.Cached > 0) {
				t.Errorf("round %d: %+v of %d tokens", round, last, s.PromptCount())
			}
		}
	}
}
