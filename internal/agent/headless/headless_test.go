package headless

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/loop"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/tool"
)

// A worker does what a test says.
type worker struct {
	f     *Face
	seq   uint64
	asks  bool
	end   string
	err   error
	said  []string
	steer []string
}

func (w *worker) emit(b event.Body) {
	w.seq++
	w.f.Emit(event.Event{Seq: w.seq, Time: time.Unix(0, 0), Body: b})
}

func (w *worker) Send(ctx context.Context, text string) (event.End, string, error) {
	w.said = append(w.said, text)
	w.emit(event.Turn{N: len(w.said)})
	w.emit(event.ToolStart{Call: "c", Name: "write", Args: `{"path":"a.go"}`})
	if w.asks {
		a := w.f.Approve(ctx, loop.Approval{Call: model.Call{ID: "c"}})
		w.emit(event.Answered{Call: "c", Answer: map[bool]string{true: "allow", false: "deny"}[a.Allow], Reason: a.Reason})
	}
	w.emit(event.ToolFinish{Call: "c", Name: "write", Changed: []string{"a.go"}, Diff: "--- a\n+++ b\n-x\n+y\n+z\n"})
	w.emit(event.Usage{Turn: event.Counts{Prompt: 7 * len(w.said), Requests: 1}, Sum: event.Counts{Prompt: 10, Requests: len(w.said)}})
	w.emit(event.Message{Role: "assistant", Text: "ok " + text, Tokens: []int32{1}})
	end := event.End{Reason: w.end, Millis: 5}
	if end.Reason == "" {
		end.Reason = event.Done
	}
	if text == "wait" {
		<-ctx.Done()
		end.Reason = event.Cancelled
	}
	w.emit(end)
	return end, "ok " + text, w.err
}

func (w *worker) Continue(ctx context.Context) (event.End, string, error) {
	return w.Send(ctx, "(continued)")
}
func (w *worker) Steer(text string) { w.steer = append(w.steer, text) }

func run(t *testing.T, o Options, w *worker, prompt string) (out, errs string, err error) {
	t.Helper()
	var a, b bytes.Buffer
	o.Out, o.Err = &a, &b
	w.f = New(o)
	err = w.f.Run(t.Context(), w, prompt, false)
	return a.String(), b.String(), err
}

func TestFormats(t *testing.T) {
	out, errs, err := run(t, Options{Progress: true}, &worker{}, "hi")
	if out != "ok hi\n" || err != nil || errs != "• write a.go\n  a.go: 2 lines added, 1 removed\n" {
		t.Errorf("%q %q %v", out, errs, err)
	}
	out, _, err = run(t, Options{Format: JSON, Session: "s", Model: "m"}, &worker{}, "hi")
	var r Result
	if e := json.Unmarshal([]byte(out), &r); e != nil || err != nil || r.Result != "ok hi" || r.Usage.First.Prompt != 7 ||
		r.Usage.Sum.Prompt != 10 || r.Turns != 1 || len(r.Changed) != 1 || r.Session != "s" || r.Reason != "done" {
		t.Errorf("%s %v %v", out, e, err)
	}
	out, _, err = run(t, Options{Format: StreamJSON}, &worker{}, "hi")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 7 || !strings.Contains(lines[6], `"type":"result"`) || strings.Contains(out, "tokens\":[") {
		t.Errorf("%s %v", out, err)
	}
	for _, l := range lines[:6] {
		var e event.Event
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Errorf("%s: %v", l, err)
		}
	}
}

func TestEnds(t *testing.T) {
	if _, _, err := run(t, Options{}, &worker{end: event.Turns}, "hi"); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	if _, _, err := run(t, Options{}, &worker{end: event.Cancelled}, "hi"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	out, _, err := run(t, Options{Format: JSON}, &worker{end: event.Failed, err: errors.New("no model")}, "hi")
	if err == nil || !strings.Contains(out, `"error":"no model"`) {
		t.Errorf("%s %v", out, err)
	}
	f := New(Options{Out: broken{}})
	w := &worker{f: f}
	if err := f.Run(t.Context(), w, "hi", false); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("output that is lost: %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestInput: messages are worked on one after the other, answers are heard during the prompt, and a cancel ends the message alone.
func TestInput(t *testing.T) {
	in := `{"type":"approve","call":"other","answer":"deny"}
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"two"}]}}

{"type":"user","text":"three"}
`
	w := &worker{}
	out, _, err := run(t, Options{In: strings.NewReader(in)}, w, "one")
	if err != nil || strings.Join(w.said, ",") != "one,two,three" || out != "ok three\n" {
		t.Errorf("%q %v %v", out, w.said, err)
	}
	for _, bad := range []string{"nonsense\n", `{"type":"dance"}` + "\n"} {
		if _, _, err := run(t, Options{In: strings.NewReader(bad)}, &worker{}, ""); err == nil || !strings.Contains(err.Error(), "line 1 of the input") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	r, send := io.Pipe()
	w = &worker{asks: true}
	go func() {
		_, _ = io.WriteString(send, `{"type":"steer","text":"hurry"}`+"\n"+`{"type":"approve","call":"none","answer":"allow"}`+"\n")
		for {
			w.f.mu.Lock()
			n := len(w.f.waiting)
			w.f.mu.Unlock()
			if n > 0 {
				break
			}
		}
		_, _ = io.WriteString(send, `{"type":"approve","call":"c","answer":"allow"}`+"\n")
		send.Close()
	}()
	out, _, err = run(t, Options{Format: StreamJSON, In: r}, w, "one")
	if err != nil || !strings.Contains(out, `"answer":"allow"`) || len(w.steer) != 1 {
		t.Errorf("%s %v", out, err)
	}
	w = &worker{asks: true} // nobody is left who could answer
	out, _, err = run(t, Options{Format: StreamJSON, In: strings.NewReader("")}, w, "one")
	if err != nil || !strings.Contains(out, "nobody") {
		t.Errorf("%s %v", out, err)
	}
}

func TestCard(t *testing.T) {
	for args, want := range map[string]string{
		`{"command":"go  test\n./..."}`: "bash go test ./...", `{"x":1}`: "bash", `[`: "bash [",
		`{"command":"` + strings.Repeat("x", 300) + `"}`: "bash " + strings.Repeat("x", 99) + "…",
	} {
		if got := Card("bash", args); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
}

// TestAsk: a question of the model's is answered by a line, and by nobody when the input is over.
func TestAsk(t *testing.T) {
	r, send := io.Pipe()
	f := New(Options{Out: io.Discard, Err: io.Discard, In: r})
	l := f.listen(&worker{})
	got := make(chan string)
	ask := func() {
		text, err := f.Ask(t.Context(), tool.Question{Text: "Which?"})
		got <- fmt.Sprint(text, err)
	}
	waits := func() {
		for {
			f.mu.Lock()
			ready := f.question != nil
			f.mu.Unlock()
			if ready {
				return
			}
			runtime.Gosched()
		}
	}
	go ask()
	waits()
	_, _ = io.WriteString(send, `{"type":"answer","text":"the first"}`+"\n")
	if a := <-got; a != "the first<nil>" {
		t.Errorf("%q", a)
	}
	go ask()
	waits()
	send.Close()
	if a := <-got; a != errNobody.Error() {
		t.Errorf("%q", a)
	}
	for range l.texts {
		t.Error("a message")
	}
	if _, err := f.Ask(t.Context(), tool.Question{}); err == nil {
		t.Error("nobody is there")
	}
}
