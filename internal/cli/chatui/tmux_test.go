//go:build linux || darwin

package chatui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asChat makes this program a chat with the scripted answers: what runs inside of tmux.
const asChat = "CHATUI_TEST_CHAT"

func TestMain(m *testing.M) {
	if os.Getenv(asChat) == "" {
		os.Exit(m.Run())
	}
	b, err := os.ReadFile("testdata/answers.txt")
	if err == nil {
		err = Run(
			context.Background(),
			&scripted{answers: answersOf(string(b)), cut: words, count: true},
			Options{In: os.Stdin, Out: os.Stdout, Environ: os.Environ()},
		)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func answersOf(text string) (out []string) {
	for _, k := range parseKnown(text) {
		out = append(out, k.answer)
	}
	return out
}

// TestTmux shows all answers of the list in a real terminal program, one after the other, and compares all that
// scrolled away and stands on the screen with their text.
func TestTmux(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux")
	}
	all := knownAnswers(t)
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			socket := fmt.Sprintf("chatui-%d-%d", os.Getpid(), size[0])
			tmux := func(args ...string) string {
				t.Helper()
				out, err := exec.Command("tmux", append([]string{"-u", "-f", "/dev/null", "-L", socket}, args...)...).
					CombinedOutput()
				if err != nil {
					t.Fatalf("tmux %q: %v %s", args, err, out)
				}
				return string(out)
			}
			tmux(
				"set-option",
				"-g",
				"history-limit",
				"20000",
				";",
				"new-session",
				"-d",
				"-x",
				fmt.Sprint(size[0]),
				"-y",
				fmt.Sprint(size[1]),
				"-e",
				asChat+"=1",
				"-e",
				"LC_ALL=C.UTF-8",
				os.Args[0],
			)
			defer exec.Command("tmux", "-L", socket, "kill-server").Run() //nolint:errcheck // it ends with the chat
			shows := func(text string) string {
				t.Helper()
				for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
					if got := tmux("capture-pane", "-p", "-J", "-S", "-"); strings.Contains(got, text) {
						return got
					} else if time.Now().After(end) {
						t.Fatalf("no %q in\n%s", text, got)
					}
				}
			}
			shows("/help for help, Ctrl-D leaves.")
			want := "Scripted./help for help, Ctrl-D leaves."
			last := ""
			for i, k := range all {
				question := fmt.Sprintf("question %d?", i+1)
				tmux("send-keys", question, "Enter")
				last = shows(fmt.Sprintf("end of answer %d", i+1))
				want += fmt.Sprintf(">>> %s%send of answer %d", question, k.shows, i+1)
			}
			want = inked(want + ">>> Ask something; /help for help")
			for end := time.Now().Add(5 * time.Second); inked(last) != want && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				last = tmux("capture-pane", "-p", "-J", "-S", "-") // the prompt comes a moment after the answer's end
			}
			if got := inked(last); got != want {
				t.Errorf("the terminal has\n%s\nas\n%q\nwant\n%q", last, got, want)
			}
		})
	}
}
