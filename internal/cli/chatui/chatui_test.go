package chatui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestComplete(t *testing.T) {
	for in, want := range map[string]struct {
		text string
		more bool
	}{
		"a":                  {"a", false},
		`a\`:                 {`a\`, true},
		"a\\\nb":             {"a\nb", false},
		`"""`:                {"", true},
		"\"\"\"a\nb":         {"a\nb", true},
		"\"\"\"a\nb\n\"\"\"": {"a\nb", false},
		`"""one line"""`:     {"one line", false},
		"":                   {"", false},
		`say """x`:           {`say """x`, false},
	} {
		if text, more := Complete(in); text != want.text || more != want.more {
			t.Errorf("%q: %q, %v", in, text, more)
		}
	}
}

const answer = "# Title\n\nA paragraph with `code`\nand **bold** words.\n\n- one\n\n- two\n  more of two\n\n```go\nfunc main() {\n\n\tprintln(1)\n}\n```\n" +
	"After it.\n\n1. first\n2. second\n\n   ```sh\n   ls\n   ```\n\nThe end, with 日本語 and é.\n"

// TestBlocksDoNotDependOnPieces cuts an answer at every byte boundary of UTF-8 and into single characters.
func TestBlocksDoNotDependOnPieces(t *testing.T) {
	render := func(pieces ...string) (string, []string) {
		s := newSplitter(newLook(true), 80, true)
		var out []string
		for _, p := range pieces {
			out = append(out, s.feed(false, p)...)
		}
		out = append(out, s.end()...)
		return strings.Join(out, "\n"), out
	}
	want, blocks := render(answer)
	if len(blocks) < 6 {
		t.Errorf("%d blocks: %q", len(blocks), blocks)
	}
	for i := range answer {
		if got, _ := render(answer[:i], answer[i:]); got != want {
			t.Fatalf("cut at %d:\n%s\nwant\n%s", i, ansi.Strip(got), ansi.Strip(want))
		}
	}
	if got, _ := render(strings.Split(answer, "")...); got != want {
		t.Errorf("character by character:\n%s", ansi.Strip(got))
	}
	plain := ansi.Strip(want)
	for _, text := range []string{"Title", "A paragraph with", "bold", "more of two", "println(1)", "After it.", "second", "ls", "日本語 and é."} {
		if !strings.Contains(plain, text) {
			t.Errorf("%q is lost in\n%s", text, plain)
		}
	}
	if strings.Contains(plain, "**") || strings.Contains(plain, "```") {
		t.Errorf("not rendered:\n%s", plain)
	}
}

func TestReasoningIsDimmed(t *testing.T) {
	for _, dark := range []bool{true, false} {
		l := newLook(dark)
		s := newSplitter(l, 80, true)
		out := s.feed(true, "thinking **hard**")
		out = append(out, s.feed(false, "The answer.")...)
		out = append(out, s.end()...)
		if len(out) != 2 || out[0] != l.dim.Render("thinking **hard**") || strings.TrimSpace(ansi.Strip(out[1])) != "The answer." {
			t.Errorf("dark %v: %q", dark, out)
		}
	}
}

func TestLiveShowsTheEnd(t *testing.T) {
	s := newSplitter(newLook(true), 20, true)
	for i := range 50 {
		s.feed(false, fmt.Sprintf("line %d of text\n", i))
	}
	got := strings.Split(s.live(5), "\n")
	if len(got) != 5 || got[4] != "line 49 of text" {
		t.Errorf("%q", got)
	}
	s.feed(false, strings.Repeat("x", 1<<20))
	for _, line := range strings.Split(s.live(5), "\n") {
		if ansi.StringWidth(line) > 20 {
			t.Errorf("a line of %d columns", ansi.StringWidth(line))
		}
	}
}

func TestAnswersCannotSteerTheTerminal(t *testing.T) {
	s := newSplitter(newLook(true), 80, true)
	out := append(s.feed(false, "a\x1b]0;title\x07b \x1b[2J c\n\n"), s.end()...)
	if text := strings.Join(out, ""); strings.Contains(text, "\x1b]") || strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\x07") {
		t.Errorf("%q", text)
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

func (e echo) Command(line string) (string, string, bool) {
	e.said <- line
	return "ran " + line, "", strings.TrimSpace(line) == "/exit"
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
