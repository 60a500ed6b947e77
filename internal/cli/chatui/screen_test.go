package chatui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/vt"
)

// terminal is a chat on a virtual terminal, driven step by step: no clock, no process.
type terminal struct {
	t    *testing.T
	vt   *vt.Emulator
	ui   *ui
	msgs chan tea.Msg
	raw  strings.Builder // everything that was written
}

func (s *terminal) Write(b []byte) (int, error) {
	s.raw.Write(b)
	return s.vt.Write(b)
}

func newTerminal(t *testing.T, talker Talker, width, height int, profile colorprofile.Profile) *terminal {
	t.Helper()
	s := &terminal{t: t, vt: vt.NewEmulator(width, height), msgs: make(chan tea.Msg)}
	t.Cleanup(func() { s.vt.Close() })
	s.ui = newModel(t.Context(), talker, Options{}, &screen{w: s, profile: profile})
	s.ui.send = func(m tea.Msg) { s.msgs <- m }
	s.ui.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

// enter types a text and Enter.
func (s *terminal) enter(text string) {
	s.ui.input.InsertString(text)
	s.ui.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
}

// finish takes the messages of an answer to its end, and draws after each, as if the clock ran.
func (s *terminal) finish() {
	for {
		m := <-s.msgs
		s.ui.Update(m)
		if _, ok := m.(doneMsg); ok {
			return
		}
		s.ui.Update(tickMsg{})
		s.bounded()
	}
}

// bounded wants the cursor on the screen and no line of the region as wide as it.
func (s *terminal) bounded() {
	s.t.Helper()
	if n := len(s.ui.screen.region); n >= s.ui.height {
		s.t.Fatalf("a region of %d lines on a screen of %d", n, s.ui.height)
	}
}

// lines is what scrolled away and what the screen shows.
func (s *terminal) lines() []string {
	var out []string
	for _, l := range s.vt.Scrollback().Lines() {
		out = append(out, strings.TrimRight(l.String(), " "))
	}
	for l := range strings.SplitSeq(s.vt.String(), "\n") {
		out = append(out, strings.TrimRight(l, " "))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// scripted answers with texts that are known.
type scripted struct {
	answers []string
	cut     func(string) []string // into pieces
	plain   bool
	note    string
	err     error
	heard   []string
	count   bool // the note says which answer ended
	given   int
}

func (*scripted) Title() string      { return "Scripted" }
func (s *scripted) Markdown() bool   { return !s.plain }
func (*scripted) Commands() []string { return []string{"/help"} }
func (s *scripted) Command(line string) Outcome {
	s.heard = append(s.heard, "command "+line)
	return Outcome{Reply: "did " + line, Quit: line == "/exit"}
}

func (s *scripted) Answer(ctx context.Context, text string, emit func(bool, string)) (string, error) {
	s.heard = append(s.heard, text)
	if s.err != nil {
		return "", s.err
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	pieces := []string{answer}
	if s.cut != nil {
		pieces = s.cut(answer)
	}
	for _, p := range pieces {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		emit(false, p)
	}
	if s.given++; s.count {
		return fmt.Sprintf("end of answer %d", s.given), nil
	}
	return s.note, nil
}

// words cuts a text into pieces as tokens do: some with a space before them, some in the middle of marks.
func words(s string) []string {
	var out []string
	for len(s) > 0 {
		n := min(4, len(s))
		for n < len(s) && s[n] >= 0x80 && s[n] < 0xc0 {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

type known struct{ name, answer, shows string }

// knownAnswers reads testdata/answers.txt.
func knownAnswers(t *testing.T) []known {
	t.Helper()
	b, err := os.ReadFile("testdata/answers.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := parseKnown(string(b))
	if len(out) < 20 {
		t.Fatalf("%d answers", len(out))
	}
	return out
}

func parseKnown(text string) (out []known) {
	for _, part := range strings.Split("\n"+text, "\n=== ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		answer, shows, two := strings.Cut(rest, "\n==>\n")
		if !two {
			shows = answer
		}
		out = append(out, known{name, answer, shows})
	}
	return out
}

// inked is the text without white space and without the lines that divide tables and paragraphs.
func inked(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("─│┼\u200b", r) {
			return -1
		}
		return r
	}, s)
}

// TestTranscripts holds what a terminal shows of answers of lists, tables, code and several scripts: all of their
// text, once and in order, and nothing else but the question and the prompt. So it is whatever the terminal's size
// is, and wherever the pieces of an answer end.
func TestTranscripts(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}, {40, 10}, {120, 5}} {
		for _, k := range knownAnswers(t) {
			for how, cut := range map[string]func(string) []string{"whole": nil, "pieces": words} {
				if cut != nil && size[0] > 80 {
					continue // it costs time and shows nothing new
				}
				s := newTerminal(
					t,
					&scripted{answers: []string{k.answer}, cut: cut},
					size[0],
					size[1],
					colorprofile.TrueColor,
				)
				s.enter("question?")
				s.finish()
				shown := strings.Join(s.lines(), "\n")
				want := inked(
					"Scripted./help for help, Ctrl-D leaves.>>> question?" + k.shows + ">>> Ask something; /help " +
						"for help",
				)
				if got := inked(shown); got != want {
					t.Errorf(
						"%s on %dx%d, %s: the screen has\n%s\n\nas\n%q\nwant\n%q",
						k.name,
						size[0],
						size[1],
						how,
						shown,
						got,
						want,
					)
				}
			}
		}
	}
}

// TestNoLineIsFull holds that no line fills the last column: terminals differ in what they do then.
func TestNoLineIsFull(t *testing.T) {
	for _, width := range []int{20, 80} {
		for _, k := range knownAnswers(t) {
			s := newTerminal(t, &scripted{answers: []string{k.answer}}, width, 24, colorprofile.TrueColor)
			s.enter("question?")
			s.finish()
			for _, l := range s.lines() {
				if n := s.vt.WidthMethod().StringWidth(l); n >= width {
					t.Errorf("%s: %q has %d columns of %d", k.name, l, n, width)
				}
			}
		}
	}
}

// TestNarrowTablesKeepTheirText looks for every word of a table that is wider than the terminal.
func TestNarrowTablesKeepTheirText(t *testing.T) {
	const table = "| Approach | Advantages | Disadvantages |\n|---|---|---|\n" +
		"| Continuous batching | keeps hardware busy | scheduling complexity |\n| Static batching | simplicity | " +
		"head-of-line blocking, pneumonoultramicroscopicsilicovolcanoconiosis |"
	for _, width := range []int{14, 20, 30, 40, 60, 80, 200} {
		s := newTerminal(t, &scripted{answers: []string{table}}, width, 24, colorprofile.ASCII)
		s.enter("q")
		s.finish()
		lines := s.lines()
		shown := inked(strings.Join(lines, ""))
		cells := 0
		for _, cell := range strings.FieldsFunc(table, func(r rune) bool { return strings.ContainsRune("|\n- ,", r) }) {
			if width >= 200 && !strings.Contains(shown, cell) {
				t.Errorf("%d columns: %q is lost in\n%s", width, cell, strings.Join(lines, "\n"))
			}
			cells += len(cell)
		}
		letters := strings.Count(shown, "") - 1
		if letters < cells {
			t.Errorf(
				"%d columns: %d characters of at least %d in\n%s",
				width,
				letters,
				cells,
				strings.Join(lines, "\n"),
			)
		}
	}
}

// TestNoColorIsKept: with NO_COLOR set there is no colour in anything that is written.
func TestNoColorIsKept(t *testing.T) {
	for _, value := range []string{"1", "yes"} {
		if p := profile(os.Stdout, []string{"TERM=xterm-256color", "TTY_FORCE=1", "NO_COLOR=" + value}); p > colorprofile.ASCII {
			t.Errorf("NO_COLOR=%s: %v", value, p)
		}
	}
	s := newTerminal(
		t,
		&scripted{
			answers: []string{"# Title\n\n`code` and\n\n```go\nfunc main() { return \"x\" } // y\n```"},
			note:    "a note",
		},
		80,
		24,
		colorprofile.ASCII,
	)
	s.enter("question?")
	s.finish()
	for _, part := range strings.Split(s.raw.String(), "\x1b[")[1:] {
		sgr, _, ok := strings.Cut(part, "m")
		if !ok || strings.Trim(sgr, "0123456789;") != "" {
			continue
		}
		for _, n := range strings.Split(sgr, ";") {
			if len(n) == 2 && (n[0] == '3' || n[0] == '4') || len(n) == 3 {
				t.Errorf("a colour: %q", sgr)
			}
		}
	}
}

// TestWhatIsTypedMeanwhileWaits: Enter during an answer asks next.
func TestWhatIsTypedMeanwhileWaits(t *testing.T) {
	talker := &scripted{answers: []string{"one", "two", "three"}}
	s := newTerminal(t, talker, 80, 24, colorprofile.ASCII)
	s.enter("first")
	s.enter("second")
	s.enter("/show")
	s.enter("third")
	if got := strings.Join(s.lines(), "\n"); !strings.Contains(got, "next: second\nnext: /show\nnext: third") {
		t.Errorf("the screen has\n%s", got)
	}
	for range 3 {
		s.finish()
	}
	if got := strings.Join(talker.heard, ", "); got != "first, second, command /show, third" {
		t.Errorf("heard %s", got)
	}
	want := []string{
		">>> first",
		"one",
		"",
		">>> second",
		"two",
		"",
		">>> /show",
		"did /show",
		">>> third",
		"three",
		"",
		">>> Ask something; /help for help",
	}
	if got := s.lines()[2:]; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the screen has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestErrorsFollowTheirQuestion: and what was asked comes back to the input, with what waited.
func TestErrorsFollowTheirQuestion(t *testing.T) {
	s := newTerminal(t, &scripted{err: errors.New("no room")}, 80, 24, colorprofile.ASCII)
	s.enter("first")
	s.enter("second")
	s.finish()
	want := []string{">>> first", "no room", "", ">>> first", "... second"}
	if got := s.lines()[2:]; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the screen has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestIsCommand(t *testing.T) {
	for typed, want := range map[string]bool{
		"/help": true, "/set temperature 1": true, "/?": true, "hello": false, "": false, "/": false, "/ x": false,
		"/etc/passwd is what?": false, "/usr/bin": false, " /help": false, `"""/help"""`: false, "\"\"\"\n/help": false, `/set system """a`: true,
		"/a.txt": false,
	} {
		if got := IsCommand(typed); got != want {
			t.Errorf("%q: %v", typed, got)
		}
	}
}

// TestSuspending clears the input away for the shell, and draws it again afterwards.
func TestSuspending(t *testing.T) {
	s := newTerminal(t, &scripted{}, 80, 24, colorprofile.ASCII)
	s.ui.input.InsertString("half a")
	s.ui.Update(tea.KeyPressMsg{Code: 'z', Mod: tea.ModCtrl})
	if got := strings.Join(s.lines(), "\n"); strings.Contains(got, "half a") ||
		!strings.HasSuffix(s.raw.String(), resetModes) {
		t.Errorf("the screen has\n%s", got)
	}
	s.ui.Update(tea.ResumeMsg{})
	if got := s.lines(); got[len(got)-1] != ">>> half a" || !strings.Contains(s.raw.String(), resetModes+wantModes) {
		t.Errorf("the screen has\n%s", strings.Join(got, "\n"))
	}
}

// TestNarrowerTerminals find the input again: no second one is left behind.
func TestNarrowerTerminals(t *testing.T) {
	s := newTerminal(t, &scripted{answers: []string{"text"}}, 80, 24, colorprofile.ASCII)
	s.ui.input.InsertString(strings.Repeat("word ", 20))
	s.ui.Update(tea.KeyPressMsg{Code: tea.KeyLeft})
	for _, width := range []int{60, 100} {
		s.vt.Resize(width, 24)
		s.ui.Update(tea.WindowSizeMsg{Width: width, Height: 24})
	}
	if n := strings.Count(strings.Join(s.lines(), "\n"), ">>> "); n != 1 {
		t.Errorf("%d prompts in\n%s", n, strings.Join(s.lines(), "\n"))
	}
}
