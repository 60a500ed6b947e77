package chat_test

import (
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestEfforts wants an effort to switch reasoning and to bound it, and a budget to count more than an effort.
func TestEfforts(t *testing.T) {
	var seen string
	w := servertest.New(t, servertest.Options{Script: func(p string) string {
		seen = p
		if strings.HasSuffix(p, "</think>\n\n") {
			return "Answer."
		}
		return "<think>\n" + strings.Repeat("x", 30000) + "\n</think>\n\nAnswer."
	}})
	for _, c := range []struct {
		effort string
		budget int
		tokens int // of reasoning, at most
	}{
		{"none", 0, 0},
		{"minimal", 0, 0},
		{"low", 0, 1024},
		{"medium", 0, 8192},
		{"high", 0, 24576},
		{"low", 50, 50},
		{"high", 50, 50},
		{"", 50, 50},
	} {
		text, _, _, _, done := run(t, w, &chat.Request{Messages: user("x"), Effort: c.effort, ThinkingBudget: c.budget})
		if got := done.Usage.Reasoning; got > c.tokens || got < c.tokens-1 || strings.TrimSpace(text) != "Answer." ||
			done.Err != nil {
			t.Errorf(
				"effort %q, budget %d: %d tokens of reasoning, want %d; answer %q %v",
				c.effort,
				c.budget,
				got,
				c.tokens,
				text,
				done.Err,
			)
		}
		if off := strings.HasSuffix(seen, "<think>\n\n</think>\n\n"); off != (c.tokens == 0) {
			t.Errorf("effort %q: reasoning is off: %v", c.effort, off)
		}
	}
}
