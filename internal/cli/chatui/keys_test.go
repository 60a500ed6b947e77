//go:build linux || darwin

package chatui

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// session is a virtual terminal with a chat in it.
type session struct {
	t    *testing.T
	pty  *os.File
	tty  *os.File
	said chan string
	done chan error

	mu  sync.Mutex
	out strings.Builder
}

func open(t *testing.T, rows, cols uint16, background, history string) *session {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no virtual terminal: %v", err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: rows, Cols: cols}); err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, pty: master, tty: tty, said: make(chan string, 10), done: make(chan error, 1)}
	go s.read(background)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	go func() {
		s.done <- Run(ctx, echo{s.said}, Options{In: tty, Out: tty, Environ: []string{"TERM=xterm-256color"}, History: history})
	}()
	t.Cleanup(func() {
		cancel()
		master.Close()
		tty.Close()
	})
	s.shows("/help for help")
	return s
}

// read keeps what the chat writes and answers its question for the background as terminals do.
func (s *session) read(background string) {
	buf := make([]byte, 4096)
	for {
		n, err := s.pty.Read(buf)
		s.mu.Lock()
		s.out.Write(buf[:n])
		s.mu.Unlock()
		if strings.Contains(string(buf[:n]), "\x1b]11;?") {
			_, _ = io.WriteString(s.pty, "\x1b]11;"+background+"\x07")
		}
		if err != nil {
			return
		}
	}
}

func (s *session) raw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// keys types, each key when the chat has read the one before: what is read at once may be a paste.
func (s *session) keys(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		if _, err := io.WriteString(s.pty, k); err != nil {
			s.t.Fatal(err)
		}
		for end := time.Now().Add(60 * time.Second); s.unread() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				s.t.Fatalf("%q is not read; the screen has %q", k, ansi.Strip(s.raw()))
			}
		}
	}
}

// unread is how many bytes of what was typed nobody has read.
func (s *session) unread() int {
	s.t.Helper()
	fionread := uint(0x541b)
	if runtime.GOOS == "darwin" {
		fionread = 0x4004667f
	}
	n, err := unix.IoctlGetInt(int(s.tty.Fd()), fionread)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// shows waits until a text was written.
func (s *session) shows(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !strings.Contains(ansi.Strip(s.raw()), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("no %q in %q", text, ansi.Strip(s.raw()))
		}
	}
}

func (s *session) hears(text string) {
	s.t.Helper()
	select {
	case got := <-s.said:
		if got != text {
			s.t.Fatalf("heard %q, want %q", got, text)
		}
	case <-time.After(60 * time.Second):
		s.t.Fatalf("heard nothing, want %q; the screen has %q", text, ansi.Strip(s.raw()))
	}
}

const (
	enter    = "\r"
	altEnter = "\x1b\r"
	ctrlC    = "\x03"
	ctrlD    = "\x04"
	ctrlR    = "\x12"
	up       = "\x1b[A"
	down     = "\x1b[B"
	left     = "\x1b[D"
)

func TestKeys(t *testing.T) {
	for name, size := range map[string][2]uint16{"80x24": {24, 80}, "200x50": {50, 200}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, size[0], size[1], "rgb:0000/0000/0000", filepath.Join(t.TempDir(), "history"))
			s.keys("hello", enter)
			s.hears("hello")
			s.shows("you said hello")
			s.shows("a note")
			s.keys(
				"edtied",
				left,
				left,
				left,
				left,
				"\x7f",
				"it",
				"\x1b[3~",
				"\x1b[3~",
				enter,
			) // "ed|tied": backspace, insert, delete two
			s.hears("eited")
			s.keys("first", altEnter, "second\\", enter, "third", enter)
			s.hears("first\nsecond\nthird")
			s.shows("you said first|second|third")
			s.keys("\x1b[200~pasted\nlines\x1b[201~", enter)
			s.hears("pasted\nlines")
			s.keys("\"\"\"quoted", enter, "text\"\"\"", enter)
			s.hears("quoted\ntext")
			s.keys("draft", up, up, down, down, enter) // back from the history to what was typed
			s.hears("draft")
			s.keys("hel", ctrlR, enter)
			s.hears("hello")
			s.keys("/sav", "\t", "x", enter)
			s.hears("/save x")
			s.shows("ran /save x")
			s.keys("thrown away", ctrlC, "kept", enter)
			s.hears("kept")
			s.keys("wait", enter)
			s.hears("wait")
			s.shows("waiting")
			s.keys("typed meanwhile", ctrlC)
			s.shows("(stopped)")
			s.keys(enter)
			s.hears("typed meanwhile")
			s.keys(ctrlC)
			s.shows("Ctrl-D or /exit leaves")
			s.keys(ctrlD)
			select {
			case err := <-s.done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(60 * time.Second):
				t.Error("Ctrl-D does not leave")
			}
			if strings.Contains(s.raw(), "\x1b[?1049h") {
				t.Error("the screen was taken over: what scrolled away is lost")
			}
		})
	}
}

func TestExit(t *testing.T) {
	s := open(t, 24, 80, "rgb:0000/0000/0000", "")
	s.keys("/exit", enter)
	s.hears("/exit")
	if err := <-s.done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestLeavingWhileAnswering ends the answer too: Run returns when its goroutine has.
func TestLeavingWhileAnswering(t *testing.T) {
	s := open(t, 24, 80, "rgb:0000/0000/0000", "")
	s.keys("wait", enter)
	s.hears("wait")
	s.shows("waiting")
	s.keys(ctrlD)
	select {
	case err := <-s.done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(60 * time.Second):
		t.Error("Ctrl-D does not leave")
	}
}

// TestColoursFollowTheBackground looks for the prompt's colour.
func TestColoursFollowTheBackground(t *testing.T) {
	for background, colour := range map[string]string{"rgb:0000/0000/0000": "38;5;75m", "rgb:ffff/ffff/ffff": "38;5;25m"} {
		s := open(t, 24, 80, background, "")
		s.keys("hello", enter)
		s.hears("hello")
		s.shows("a note")
		if !strings.Contains(s.raw(), colour) {
			t.Errorf("%s: no %q in %q", background, colour, s.raw())
		}
	}
}
