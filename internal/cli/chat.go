package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/term"

	"github.com/baleenrun/baleen/internal/model"
)

const chatHelp = `  /clear   forget the conversation
  /help    this text
  /exit    leave (or Ctrl-D)
  Ctrl-C stops an answer. A line that ends in \ goes on in the next one.`

// chat talks until the input ends. The whole conversation is sent every time: what was said before is found in the
// cache and not computed again.
func (a *app) chat(ctx context.Context, m *model.Model, f *runFlags) error {
	lines := a.lineReader()
	fmt.Fprintf(a.io.Err, "%s, context of %d tokens. /help for help, Ctrl-D leaves.\n", m.Info.Name, m.Context)
	var msgs []model.Message
	for {
		line, err := readPrompt(lines)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.io.Err)
			return nil
		}
		if err != nil {
			return err
		}
		switch strings.TrimSpace(line) {
		case "":
			continue
		case "/exit", "/quit", "/bye":
			return nil
		case "/clear":
			msgs = nil
			fmt.Fprintln(a.io.Err, "The conversation is forgotten.")
			continue
		case "/help":
			fmt.Fprintln(a.io.Err, chatHelp)
			continue
		}
		if msgs, err = a.turn(ctx, m, f, msgs, line); err != nil {
			return err
		}
	}
}

// turn answers one message. A message that cannot be answered is reported and left out of the conversation.
func (a *app) turn(ctx context.Context, m *model.Model, f *runFlags, msgs []model.Message, line string) ([]model.Message, error) {
	next := append(msgs[:len(msgs):len(msgs)], model.Message{Role: "user", Content: line})
	if len(msgs) == 0 {
		next = f.opening(line)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	tokens, err := f.tokens(ctx, m, next)
	if err != nil {
		a.note("%s", oneLine(err))
		return msgs, nil
	}
	text, err := a.answer(ctx, m, tokens, f)
	f.loaded = 0
	if err != nil && !errors.Is(err, context.Canceled) {
		a.note("%s", oneLine(err))
		return msgs, nil
	}
	if f.raw {
		return nil, nil // every text stands for itself
	}
	return append(next, model.Message{Role: "assistant", Content: text}), nil
}

// interruptible gives a context that Ctrl-C ends, once, without ending the program.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	done := make(chan struct{})
	go func() {
		select {
		case <-c:
			cancel()
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		close(done)
		cancel()
	}
}

// A lineReader reads one line; more is the prompt of a continued one.
type lineReader interface {
	read(more bool) (string, error)
}

const (
	firstPrompt = ">>> "
	morePrompt  = "... "
)

// readPrompt reads lines until one does not end in a backslash.
func readPrompt(r lineReader) (string, error) {
	var b strings.Builder
	for {
		line, err := r.read(b.Len() > 0)
		if err != nil {
			return "", err
		}
		rest, more := strings.CutSuffix(line, `\`)
		b.WriteString(rest)
		if !more {
			return b.String(), nil
		}
		b.WriteByte('\n')
	}
}

func (a *app) lineReader() lineReader {
	in, ok := a.io.In.(*os.File)
	if ok && a.io.OutTTY && a.getenv("TERM") != "dumb" {
		rw := struct {
			io.Reader
			io.Writer
		}{a.io.In, a.io.Out}
		t := term.NewTerminal(rw, firstPrompt)
		t.SetBracketedPasteMode(false)
		return &editor{fd: int(in.Fd()), term: t, paste: a.io.Out}
	}
	return &plainLines{in: bufio.NewReader(a.io.In), out: a.io.Err}
}

// editor reads lines with editing and history. The terminal is in raw mode only while a line is read.
type editor struct {
	fd    int
	term  *term.Terminal
	paste io.Writer
}

func (e *editor) read(more bool) (string, error) {
	old, err := term.MakeRaw(e.fd)
	if err != nil {
		return "", err
	}
	defer term.Restore(e.fd, old)
	if w, h, err := term.GetSize(e.fd); err == nil && w > 0 {
		_ = e.term.SetSize(w, h)
	}
	prompt := firstPrompt
	if more {
		prompt = morePrompt
	}
	e.term.SetPrompt(prompt)
	e.term.SetBracketedPasteMode(true)
	defer e.term.SetBracketedPasteMode(false)
	var pasted strings.Builder
	for {
		line, err := e.term.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) { // lines of a paste belong together
			pasted.WriteString(line + "\n")
			e.term.SetPrompt(morePrompt)
			continue
		}
		return pasted.String() + line, err
	}
}

// plainLines reads lines as they are.
type plainLines struct {
	in  *bufio.Reader
	out io.Writer
}

func (p *plainLines) read(more bool) (string, error) {
	prompt := firstPrompt
	if more {
		prompt = morePrompt
	}
	fmt.Fprint(p.out, prompt)
	line, err := p.in.ReadString('\n')
	if err != nil && line == "" {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}
