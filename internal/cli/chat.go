package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/cli/chatui"
)

// chat talks until the input ends: in a terminal with editing and rendering, elsewhere line by line. The whole
// conversation is sent every time: what was said before is found in the cache and not computed again.
func (a *app) chat(ctx context.Context, c *conversation) error {
	in, isFile := a.io.In.(*os.File)
	out, outFile := a.outFile()
	if isFile && outFile && a.io.OutTTY && a.getenv("TERM") != "dumb" {
		o := chatui.Options{In: in, Out: out, Environ: a.io.Environ}
		if st, err := a.store(); err == nil && st.Dir() != "" {
			o.History = filepath.Join(st.Dir(), "chat_history")
		}
		return chatui.Run(ctx, c, o)
	}
	return a.plainChat(ctx, c)
}

// plainChat is the chat where there is no terminal to draw on.
func (a *app) plainChat(ctx context.Context, c *conversation) error {
	lines := &plainLines{in: bufio.NewReader(a.io.In), out: a.io.Err}
	fmt.Fprintf(a.io.Err, "%s. /help for help, Ctrl-D leaves.\n", c.Title())
	for {
		line, isCommand, err := readPrompt(lines)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.io.Err)
			return nil
		}
		if err != nil {
			return err
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if isCommand {
			did := c.Command(line)
			if did.Quit {
				return nil
			}
			if did.Reply != "" {
				fmt.Fprintln(a.io.Err, a.printable(did.Reply))
			}
			if did.Do != nil {
				a.plainTurn(ctx, did.Do)
			}
			continue
		}
		a.plainTurn(ctx, c.say(line))
	}
}

func (a *app) plainTurn(ctx context.Context, do func(context.Context, func(bool, string)) (string, error)) {
	ctx, stop := interruptible(ctx)
	defer stop()
	ends := "\n"
	reasoning := &aside{a: a}
	note, err := do(ctx, func(isReasoning bool, text string) {
		if isReasoning {
			reasoning.write(text)
			return
		}
		reasoning.end()
		fmt.Fprint(a.io.Out, a.printable(text))
		ends = text
	})
	reasoning.end()
	if !strings.HasSuffix(ends, "\n") {
		fmt.Fprintln(a.io.Out)
	}
	for line := range strings.Lines(note) {
		a.note("%s", strings.TrimRight(line, "\n"))
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		for line := range strings.Lines(err.Error()) {
			a.note("%s", oneLine(errors.New(strings.TrimRight(line, "\n"))))
		}
	}
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

const (
	firstPrompt = ">>> "
	morePrompt  = "... "
)

// readPrompt reads lines until one does not end in a backslash, or a text in three quotes ends.
func readPrompt(r *plainLines) (text string, isCommand bool, err error) {
	var b strings.Builder
	for {
		line, err := r.read(b.Len() > 0)
		if err != nil {
			return "", false, err
		}
		b.WriteString(line)
		text, more := chatui.Complete(b.String())
		if !more {
			return text, chatui.IsCommand(b.String()), nil
		}
		b.WriteByte('\n')
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
