package chatui

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestComplete(t *testing.T) {
	for in, want := range map[string]struct {
		text string
		more bool
	}{
		"a":                            {"a", false},
		`a\`:                           {`a\`, true},
		"a\\\nb":                       {"a\nb", false},
		`"""`:                          {"", true},
		"\"\"\"a\nb":                   {"a\nb", true},
		"\"\"\"a\nb\n\"\"\"":           {"a\nb", false},
		`"""one line"""`:               {"one line", false},
		"":                             {"", false},
		`say """x`:                     {`say """x`, false},
		"/set system \"\"\"a\nb":       {"/set system \"\"\"a\nb", true}, // what is open is not yet anybody's
		"/set system \"\"\"a\nb\"\"\"": {"/set system a\nb", false},
	} {
		if text, more := Complete(in); more != want.more || !more && text != want.text {
			t.Errorf("%q: %q, %v", in, text, more)
		}
	}
}

func TestReasoningIsDimmed(t *testing.T) {
	for _, dark := range []bool{true, false} {
		u := newModel(t.Context(), echo{}, Options{}, &screen{w: io.Discard})
		u.dark = dark
		u.restyle()
		u.done, u.answer = nil, newMarkdown(u.look, 80, false)
		u.piece(true, "thinking **hard**")
		u.piece(false, "The **answer**.\n")
		want := []string{u.look.dim.Render("thinking **hard**"), "", "The " + u.look.paint("answer", bold) + "."}
		if !slices.Equal(u.done, want) {
			t.Errorf("dark %v: %q, want %q", dark, u.done, want)
		}
	}
}

func TestAnswersCannotSteerTheTerminal(t *testing.T) {
	u := newModel(t.Context(), echo{}, Options{}, &screen{w: io.Discard})
	u.done, u.answer = nil, newMarkdown(u.look, 80, false)
	u.piece(false, "a\x1b]0;title\x07b \x1b[2J c\n\n")
	if text := strings.Join(u.done, ""); strings.Contains(text, "\x1b]") || strings.Contains(text, "\x1b[2J") ||
		strings.Contains(text, "\x07") {
		t.Errorf("%q", text)
	}
}

// TestLongLinesAreQuick: a line that never ends costs no more to preview than a screen of text.
func TestLongLinesAreQuick(t *testing.T) {
	u := newModel(t.Context(), echo{}, Options{}, &screen{w: io.Discard})
	u.answering, u.answer = true, newMarkdown(u.look, 80, false)
	u.piece(false, strings.Repeat("x", 1<<20))
	for _, line := range u.live(5) {
		if ansi.StringWidth(line) > 80 {
			t.Errorf("a line of %d columns", ansi.StringWidth(line))
		}
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "history")
	h := openHistory(path)
	for _, l := range []string{"one", "two\nlines", "two\nlines", "three"} {
		h.add(l)
	}
	h = openHistory(path)
	want := func(got string, ok bool, text string) {
		t.Helper()
		if !ok || got != text {
			t.Errorf("%q, %v; want %q", got, ok, text)
		}
	}
	got, ok := h.older("draft")
	want(got, ok, "three")
	got, ok = h.older("three")
	want(got, ok, "two\nlines")
	got, ok = h.older("")
	want(got, ok, "one")
	if _, ok := h.older(""); ok {
		t.Error("older than the oldest")
	}
	h.newer()
	h.newer()
	got, ok = h.newer()
	want(got, ok, "draft")
	if _, ok := h.newer(); ok {
		t.Error("newer than the draft")
	}
	got, ok = h.search("o")
	want(got, ok, "two\nlines")
	got, ok = h.search("two\nlines")
	want(got, ok, "one")
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", fi, err)
	}
	for range 2*maxHistory + 1 {
		h.add("x")
		h.add("y")
	}
	if h := openHistory(path); len(h.lines) != maxHistory {
		t.Errorf("%d lines are kept", len(h.lines))
	}
}

// echo answers with what was said, and waits for the end of "wait".
type echo struct{ said chan string }

func (echo) Title() string      { return "Echo" }
func (echo) Markdown() bool     { return true }
func (echo) Commands() []string { return []string{"/help", "/exit", "/save", "/set"} }

func (e echo) Command(line string) Outcome {
	e.said <- line
	return Outcome{Reply: "ran " + line, Quit: strings.TrimSpace(line) == "/exit"}
}

func (e echo) Answer(ctx context.Context, text string, emit func(bool, string)) (string, error) {
	e.said <- text
	if text == "wait" {
		emit(false, "waiting")
		<-ctx.Done()
		return "", ctx.Err()
	}
	emit(true, "hm")
	emit(false, "you said **"+strings.ReplaceAll(text, "\n", "|")+"**")
	return "a note", nil
}

func TestBackgroundBeforeTheAnswer(t *testing.T) {
	for value, dark := range map[string]bool{
		"": true, "15;0": true, "0;15": false, "0;7": false, "12;8": true, "0;default;15": false, "default;default": true, "7": false, "x;": true,
	} {
		if got := darkSays([]string{"TERM=xterm", "COLORFGBG=" + value}); got != dark {
			t.Errorf("COLORFGBG=%q: dark %v, want %v", value, got, dark)
		}
	}
	if !darkSays(nil) {
		t.Error("a terminal that says nothing counts as light")
	}
}
