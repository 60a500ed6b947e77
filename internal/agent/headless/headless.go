// Package headless is the agent's face for scripts, CI and other programs: what happens as text, as one JSON object, or
// as a stream of JSON lines, and messages from standard input. It knows no models and no terminals.
package headless

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/loop"
	"github.com/baleenrun/baleen/internal/agent/tool"
)

// Formats of output.
const (
	Text       = "text"        // the last answer
	JSON       = "json"        // one object when all is done
	StreamJSON = "stream-json" // an object for each event, and the one of JSON at the end
)

// A Worker is an agent, as far as it is used here.
type Worker interface {
	Send(ctx context.Context, text string) (event.End, string, error)
	Continue(ctx context.Context) (event.End, string, error)
	Steer(text string)
}

// Options say where things come from and go to.
type Options struct {
	Out, Err io.Writer
	Format   string    // "": Text
	In       io.Reader // JSON lines of messages and answers; nil: only the prompt
	// Progress writes a line on Err for each call; with Text.
	Progress bool
	Model    string
	Session  string
}

// A Face shows what an agent does. Emit and Approve go into loop.Options.
type Face struct {
	o Options

	mu      sync.Mutex
	err     error // of writing
	first   *event.Counts
	sum     event.Counts
	turns   int
	changed map[string]bool
	order   []string
	denied  int
	failed  string
	waiting map[string]chan loop.Answer
	input   bool // somebody may answer
	// question waits for the answer to a question of the model's.
	question chan string
}

// New returns a face.
func New(o Options) *Face {
	if o.Format == "" {
		o.Format = Text
	}
	return &Face{o: o, changed: map[string]bool{}, waiting: map[string]chan loop.Answer{}, input: o.In != nil}
}

// Result is what the work came to.
type Result struct {
	Type    string `json:"type"` // "result"
	Session string `json:"session"`
	Model   string `json:"model"`
	Result  string `json:"result"` // the last answer
	Reason  string `json:"reason"` // done, turns, tokens, time, looped, cancelled, failed
	Error   string `json:"error,omitempty"`
	Turns   int    `json:"turns"`
	Denied  int    `json:"denied,omitempty"` // calls that were not allowed
	Usage   struct {
		First event.Counts `json:"first"` // of the first request
		Sum   event.Counts `json:"sum"`
	} `json:"usage"`
	Changed []string `json:"changed"` // files, as seen from the workspace
	Millis  int64    `json:"ms"`
}

// Emit shows an event.
func (f *Face) Emit(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch b := e.Body.(type) {
	case event.Usage:
		if f.first == nil {
			f.first = &b.Turn
		}
		if e.Agent == "" {
			f.sum = b.Sum
		}
	case event.Turn:
		f.turns++
	case event.ToolFinish:
		if b.Denied != "" {
			f.denied++
		}
		for _, path := range b.Changed {
			if !f.changed[path] {
				f.changed[path] = true
				f.order = append(f.order, path)
			}
		}
	case event.Error:
		f.failed = b.Text
	case event.Message: // tokens are for going on with a session
		b.Tokens, b.From = nil, 0
		e.Body = b
	}
	switch f.o.Format {
	case StreamJSON:
		f.line(e)
	case Text:
		f.progress(e)
	}
}

// line writes a value as one line of JSON.
func (f *Face) line(v any) {
	b, err := event.Line(v)
	if err == nil && f.err == nil {
		_, f.err = f.o.Out.Write(b)
	}
}

// progress writes what is worth a line on standard error.
func (f *Face) progress(e event.Event) {
	if !f.o.Progress {
		switch b := e.Body.(type) {
		case event.Note:
			fmt.Fprintln(f.o.Err, "baleen:", oneLine(b.Text, 200))
		}
		return
	}
	indent := ""
	if e.Agent != "" {
		indent = "  "
	}
	switch b := e.Body.(type) {
	case event.ToolStart:
		fmt.Fprintf(f.o.Err, "%s• %s\n", indent, Card(b.Name, b.Args))
	case event.ToolFinish:
		switch {
		case b.Denied != "":
			fmt.Fprintf(f.o.Err, "%s  not run: %s\n", indent, oneLine(b.Denied, 160))
		case b.Failed:
			fmt.Fprintf(f.o.Err, "%s  failed\n", indent)
		case b.Diff != "":
			added, removed := diffCount(b.Diff)
			fmt.Fprintf(f.o.Err, "%s  %s: %d lines added, %d removed\n", indent, strings.Join(b.Changed, ", "), added, removed)
		}
	case event.Compaction:
		fmt.Fprintf(f.o.Err, "the context was full: %d tokens are now a summary of %d\n", b.Before, b.After)
	case event.Note:
		fmt.Fprintln(f.o.Err, oneLine(b.Text, 200))
	}
}

// diffCount counts the lines of a unified diff.
func diffCount(diff string) (added, removed int) {
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return added, removed
}

// Card is a call in one line.
func Card(name, args string) string {
	var m map[string]any
	if json.Unmarshal([]byte(args), &m) != nil {
		return name + " " + oneLine(args, 100)
	}
	for _, key := range []string{"command", "path", "file", "pattern", "url", "query", "name", "prompt"} {
		if v, ok := m[key].(string); ok && v != "" {
			return name + " " + oneLine(v, 100)
		}
	}
	return name
}

func oneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return s
}

// Approve waits for an answer on standard input, where there is one that can answer; it goes into loop.Options only then.
func (f *Face) Approve(ctx context.Context, q loop.Approval) loop.Answer {
	f.mu.Lock()
	if !f.input {
		f.mu.Unlock()
		return loop.Answer{Reason: "there is nobody to ask"}
	}
	c := make(chan loop.Answer, 1)
	f.waiting[q.Call.ID] = c
	f.mu.Unlock()
	select {
	case a := <-c:
		return a
	case <-ctx.Done():
		return loop.Answer{}
	}
}

// Ask waits for an answer to a question of the model's; it goes into loop.Options where Approve does.
func (f *Face) Ask(ctx context.Context, _ tool.Question) (string, error) {
	f.mu.Lock()
	if !f.input {
		f.mu.Unlock()
		return "", errNobody
	}
	c := make(chan string, 1)
	f.question = c
	f.mu.Unlock()
	select {
	case text, ok := <-c:
		if !ok {
			return "", errNobody
		}
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

var errNobody = errors.New("there is nobody to ask")

// ErrStopped is returned by Run when the work ended before it was done, for a reason that is no failure.
var ErrStopped = errors.New("stopped before it was done")

// Run works on a prompt and on the messages of standard input, and writes the result. An empty prompt goes on with what a
// session was at where continued says so.
func (f *Face) Run(ctx context.Context, w Worker, prompt string, continued bool) error {
	res := Result{Type: "result", Session: f.o.Session, Model: f.o.Model, Reason: event.Done}
	var last error
	work := func(do func() (event.End, string, error)) bool {
		end, text, err := do()
		if text != "" || res.Result == "" {
			res.Result = text
		}
		res.Reason, last = end.Reason, err
		res.Millis += end.Millis
		return err == nil && end.Reason == event.Done
	}
	in := f.listen(w)
	good := true
	switch {
	case prompt != "":
		good = in.during(ctx, func(ctx context.Context) bool {
			return work(func() (event.End, string, error) { return w.Send(ctx, prompt) })
		})
	case continued:
		good = in.during(ctx, func(ctx context.Context) bool {
			return work(func() (event.End, string, error) { return w.Continue(ctx) })
		})
	}
	if f.o.In != nil && (good || res.Reason == event.Cancelled && ctx.Err() == nil) {
		err := in.each(ctx, func(ctx context.Context, text string) bool {
			return work(func() (event.End, string, error) { return w.Send(ctx, text) })
		})
		last = errors.Join(last, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	res.Turns, res.Denied, res.Usage.Sum, res.Error = f.turns, f.denied, f.sum, f.failed
	if f.first != nil {
		res.Usage.First = *f.first
	}
	res.Changed = append([]string{}, f.order...)
	if last != nil {
		res.Error = last.Error()
	}
	switch f.o.Format {
	case Text:
		if res.Result != "" && f.err == nil {
			_, f.err = fmt.Fprintln(f.o.Out, res.Result)
		}
	default:
		f.line(res)
	}
	switch {
	case f.err != nil:
		return f.err
	case last != nil:
		return last
	case res.Reason == event.Cancelled:
		return context.Canceled
	case res.Reason != event.Done:
		return fmt.Errorf("%w: %s", ErrStopped, res.Reason)
	}
	return nil
}

// An input is a line of standard input.
type input struct {
	Type string `json:"type"` // user, steer, approve, answer, cancel
	Text string `json:"text"`
	// Message is the text as Claude Code's input has it.
	Message struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	Call   string `json:"call"`
	Answer string `json:"answer"` // allow, always, deny
	Reason string `json:"reason"`
}

func (i *input) text() string {
	if i.Text != "" {
		return i.Text
	}
	var s string
	if json.Unmarshal(i.Message.Content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(i.Message.Content, &parts)
	var out []string
	for _, p := range parts {
		out = append(out, p.Text)
	}
	return strings.Join(out, "\n")
}

const maxInput = 16 << 20

// listening is what comes on standard input.
type listening struct {
	texts  chan string
	failed chan error

	mu     sync.Mutex
	cancel context.CancelFunc // of the message in work
}

// listen reads standard input, where there is one that brings messages: answers and cancels are heard at once.
func (f *Face) listen(w Worker) *listening {
	l := &listening{texts: make(chan string, 1024), failed: make(chan error, 1), cancel: func() {}}
	if f.o.In == nil {
		close(l.texts)
		return l
	}
	go func() {
		defer close(l.texts)
		defer f.hangUp()
		lines := bufio.NewScanner(f.o.In)
		lines.Buffer(nil, maxInput)
		for n := 1; lines.Scan(); n++ {
			if len(strings.TrimSpace(lines.Text())) == 0 {
				continue
			}
			if err := f.hear(w, l, lines.Bytes()); err != nil {
				l.failed <- fmt.Errorf("line %d of the input %w", n, err)
				return
			}
		}
		if err := lines.Err(); err != nil {
			l.failed <- fmt.Errorf("reading standard input: %w", err)
		}
	}()
	return l
}

// hear takes a line of the input.
func (f *Face) hear(w Worker, l *listening, line []byte) error {
	var i input
	if err := json.Unmarshal(line, &i); err != nil {
		return fmt.Errorf("is no JSON object: %w", err)
	}
	switch i.Type {
	case "user":
		if t := strings.TrimSpace(i.text()); t != "" {
			l.texts <- t
		}
	case "steer":
		w.Steer(i.text())
	case "approve":
		f.answer(i.Call, loop.Answer{
			Allow: i.Answer == "allow" || i.Answer == "always", Always: i.Answer == "always", Reason: i.Reason,
		})
	case "answer":
		f.mu.Lock()
		if f.question != nil {
			f.question <- i.text()
			f.question = nil
		}
		f.mu.Unlock()
	case "cancel":
		l.mu.Lock()
		l.cancel()
		l.mu.Unlock()
	default:
		return fmt.Errorf("has the type %q, want user, steer, approve, answer or cancel", i.Type)
	}
	return nil
}

// during does something that a line can cancel.
func (l *listening) during(ctx context.Context, do func(context.Context) bool) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.mu.Lock()
	l.cancel = stop
	l.mu.Unlock()
	return do(ctx)
}

// each works on the messages one after the other, to the input's end.
func (l *listening) each(ctx context.Context, do func(context.Context, string) bool) error {
	for {
		select {
		case text, ok := <-l.texts:
			if !ok {
				select {
				case err := <-l.failed:
					return err
				default:
					return nil
				}
			}
			l.during(ctx, func(ctx context.Context) bool { return do(ctx, text) })
			if ctx.Err() != nil {
				return ctx.Err()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *Face) answer(call string, a loop.Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.waiting[call]; c != nil {
		c <- a
		delete(f.waiting, call)
	}
}

// hangUp denies what nobody can answer any more.
func (f *Face) hangUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.input = false
	if f.question != nil {
		close(f.question)
		f.question = nil
	}
	for call, c := range f.waiting {
		c <- loop.Answer{Reason: "there is nobody left to ask"}
		delete(f.waiting, call)
	}
}
