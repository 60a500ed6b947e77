package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/perm"
)

// Send says something and works on it until the model has nothing more to do, a budget is used up, or ctx ends. It
// returns how that ended, which was emitted as well, and what the model said last. An error is of the model or of the
// log; what the session has stays.
func (a *Agent) Send(ctx context.Context, text string) (event.End, string, error) {
	return a.work(ctx, func() error {
		if !a.begun {
			a.begun = true
			if a.o.First != nil {
				if err := a.say(model.Message{Role: model.User, Text: a.o.First()}, true); err != nil {
					return err
				}
			}
			if a.o.Policy.Mode() == perm.ModePlan {
				a.notes = append(a.notes, modeNote(perm.ModePlan))
			}
		}
		for _, n := range a.takeNotes() {
			if err := a.say(model.Message{Role: model.User, Text: n}, true); err != nil {
				return err
			}
		}
		if err := a.checkpoint(ctx); err != nil {
			return err
		}
		return a.hear(ctx, text)
	})
}

// Continue goes on with work that was interrupted, by a crash for example, without a new message.
func (a *Agent) Continue(ctx context.Context) (event.End, string, error) {
	return a.work(ctx, func() error { return nil })
}

// hear makes what the user says part of the conversation. A small model is shown short files that are named: it would
// change them as it thinks that they are.
func (a *Agent) hear(ctx context.Context, text string) error {
	a.request = text
	if a.small() {
		for _, path := range a.named(text) {
			if a.read[path] {
				continue
			}
			if shown := a.show(ctx, path); shown != "" {
				if err := a.say(model.Message{Role: model.User, Text: path + " is:\n" + shown}, true); err != nil {
					return err
				}
			}
		}
	}
	return a.say(model.Message{Role: model.User, Text: text}, false)
}

func (a *Agent) takeNotes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.notes
	a.notes = nil
	return n
}

func (a *Agent) checkpoint(ctx context.Context) error {
	if a.o.Checkpoints == nil {
		return nil
	}
	id, err := a.o.Checkpoints.Take(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return a.emit(event.Note{Text: "what is changed now cannot be undone: " + err.Error()})
	}
	a.marks, a.undone = append(a.marks, Mark{id, len(a.session.Messages())}), nil
	return a.emit(event.Checkpoint{ID: id, N: a.turns + 1})
}

// work runs turns until there is nothing more to do.
func (a *Agent) work(ctx context.Context, begin func() error) (event.End, string, error) {
	began := a.o.Now()
	w := &working{a: a, began: began, before: a.sum, turns: a.turns}
	a.changed, a.unproven, a.urged = map[string]bool{}, false, false
	if t := a.o.Budget.Time; t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t, errTime)
		defer cancel()
	}
	err := begin()
	if err == nil {
		err = w.run(ctx)
	}
	end := event.End{Reason: event.Done}
	var over *overError
	switch {
	case err == nil:
	case errors.As(err, &over):
		end.Reason = over.reason
	case errors.Is(context.Cause(ctx), errTime):
		end.Reason = event.Time
	case ctx.Err() != nil && !errors.Is(err, ErrLog):
		end.Reason = event.Cancelled
	default:
		end.Reason = event.Failed
		_ = a.emit(event.Error{Text: err.Error()}) // where the log is the reason it cannot be told there
	}
	if end.Reason == event.Done && a.o.Titles && a.title == "" && a.depth == 0 {
		a.makeTitle(ctx)
	}
	end.Title, end.Turns, end.Sum = a.title, a.turns-w.turns, a.sum
	end.Changed = slices.Sorted(maps.Keys(a.changed))
	end.Millis = a.o.Now().Sub(began).Milliseconds()
	if a.depth == 0 {
		if a.o.Checkpoints != nil {
			if e := a.o.Checkpoints.End(context.WithoutCancel(ctx)); e != nil {
				_ = a.emit(event.Note{Text: "what was changed cannot be undone: " + e.Error()})
			}
		}
		if e := a.emit(end); e != nil && err == nil {
			err = e
		}
	}
	if end.Reason != event.Failed {
		err = nil
	}
	return end, w.last, err
}

var errTime = errors.New("the time for this message is over")

// An overError ends the work for a reason that is no failure.
type overError struct{ reason string }

func (e *overError) Error() string { return e.reason }

// working is the work on one message.
type working struct {
	a      *Agent
	began  time.Time
	before event.Counts
	turns  int // of the session before it
	last   string

	cut, malformed, empty int  // such answers in a row
	concluded             bool // the last answer was to be in words, and short
	full                  bool // the last prompt found no room
}

func (w *working) run(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.within(); err != nil {
			return err
		}
		again, err := w.turn(ctx)
		if err != nil || !again {
			return err
		}
	}
}

// within ends the work where a budget is used up.
func (w *working) within() error {
	b, a := w.a.o.Budget, w.a
	most := b.Turns
	if most == 0 {
		most = defaultTurns
	}
	if n := a.turns - w.turns; n >= most {
		if err := a.emit(event.Note{Text: fmt.Sprintf("stopped after %d turns, as many as are allowed for a message", n)}); err != nil {
			return err
		}
		return &overError{event.Turns}
	}
	took := a.sum.Prompt - a.sum.Cached + a.sum.Generated - (w.before.Prompt - w.before.Cached + w.before.Generated)
	if b.Tokens > 0 && took >= b.Tokens {
		text := fmt.Sprintf("stopped after %d computed tokens, of %d that are allowed for a message", took, b.Tokens)
		if err := a.emit(event.Note{Text: text}); err != nil {
			return err
		}
		return &overError{event.Tokens}
	}
	return nil
}

// turn asks the model once and runs what it calls. It reports whether there is more to do.
func (w *working) turn(ctx context.Context) (again bool, err error) {
	a := w.a
	for _, text := range a.steered() {
		if err := a.hear(ctx, text); err != nil {
			return false, err
		}
	}
	room, err := a.makeRoom(ctx)
	if err != nil {
		return false, err
	}
	a.turns++
	if err := a.emit(event.Turn{N: a.turns}); err != nil {
		return false, err
	}
	o := model.Options{MaxTokens: longest(room), Call: a.force, Vary: a.repeated > 1}
	if a.conclude { // begun for it, since it would call again
		o = model.Options{MaxTokens: concluding, NoTools: true, NoThink: true, Begin: "I have"}
	}
	ans, err := a.generate(ctx, a.session, o, false)
	w.concluded = a.conclude
	a.force, a.conclude = "", false
	if ans.Message.Role != "" {
		w.last = ans.Message.Text
		if e := a.keep(ans); e != nil {
			return false, e
		}
	}
	var full *model.WindowError
	if errors.As(err, &full) && !w.full { // of a model whose window was not known
		w.full = true
		return true, a.compact(ctx, full.Tokens)
	}
	w.full = false
	if err != nil {
		if e := a.refuseAll(ans.Message.Calls, "not run: stopped by the user"); e != nil {
			return false, e
		}
		return false, err
	}
	return w.follow(ctx, ans)
}

// maxAnswer bounds an answer in tokens, reasoning included: a model that has lost its way would fill the context.
const maxAnswer = 8192

// concluding bounds the answer of a model that is made to end, in tokens.
const concluding = 200

func longest(room int) int {
	if room == 0 || room > maxAnswer {
		return maxAnswer
	}
	return room
}

// generate asks for an answer and hands out what comes of it, unless it is quiet: a summary or a title is no answer.
func (a *Agent) generate(ctx context.Context, s model.Session, o model.Options, quiet bool) (model.Answer, error) {
	var lost error
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ans, err := s.Generate(ctx, o, func(d model.Delta) {
		if lost != nil || quiet {
			return
		}
		var b event.Body
		switch {
		case d.Prefill != nil:
			b = event.Prefill{Done: d.Prefill.Done, Total: d.Prefill.Total, Cached: d.Prefill.Cached}
		case d.Call != nil:
			b = event.Args{Call: d.Call.ID, Name: d.Call.Name, Text: d.Call.Args}
		case d.Reasoning != "":
			b = event.Reasoning{Text: d.Reasoning}
		default:
			b = event.Text{Text: d.Text}
		}
		if lost = a.emit(b); lost != nil {
			stop()
		}
	})
	if lost != nil {
		return ans, lost
	}
	u := event.Counts{Prompt: ans.Usage.Prompt, Cached: ans.Usage.Cached, Generated: ans.Usage.Generated}
	if u.Prompt > 0 {
		u.Requests = 1
	}
	a.sum.Add(u)
	if u.Prompt > 0 {
		e := event.Usage{Turn: u, Sum: a.sum, Used: u.Prompt + u.Generated, Window: a.window}
		if t := ans.Usage.Total - ans.Usage.First; t > 0 && u.Generated > 1 {
			e.Speed = float64(int(10*float64(u.Generated-1)/t.Seconds())) / 10
		}
		if lost := a.emit(e); lost != nil {
			return ans, lost
		}
	}
	return ans, err
}

// keep logs an answer, which the session has already.
func (a *Agent) keep(ans model.Answer) error {
	m := ans.Message
	e := event.Message{
		Role: m.Role, Text: m.Text, Reasoning: m.Reasoning, Cut: ans.Reason == model.Length,
		From: ans.From, Tokens: ans.Tokens,
	}
	for _, c := range m.Calls {
		e.Calls = append(e.Calls, event.Call{ID: c.ID, Name: c.Name, Args: c.Args})
	}
	return a.emit(e)
}

// follow does what an answer asks for.
func (w *working) follow(ctx context.Context, ans model.Answer) (again bool, err error) {
	a, m := w.a, ans.Message
	note := func(format string, args ...any) (bool, error) {
		return true, a.say(model.Message{Role: model.User, Text: fmt.Sprintf(format, args...)}, true)
	}
	switch {
	case ans.Reason == model.Length && w.concluded:
		return false, nil
	case ans.Reason == model.Length:
		if err := a.refuseAll(m.Calls, "not run: the answer was cut off"); err != nil {
			return false, err
		}
		if w.cut++; w.cut > 2 {
			return false, errors.New("the model's answers do not end within its context: three were cut off")
		}
		return note("Your answer was too long and was cut off. Take a smaller step: one short call.")
	case len(m.Calls) > 0:
		w.cut, w.malformed, w.empty = 0, 0, 0
		if err := a.runAll(ctx, m.Calls); err != nil {
			return false, err
		}
		return true, a.unwind()
	case ans.Malformed != "":
		if w.malformed++; w.malformed > 3 {
			if err := a.emit(event.Note{Text: "the model tries to call a tool and does not get the form right"}); err != nil {
				return false, err
			}
			return false, &overError{event.Looped}
		}
		if a.force = ans.Meant; a.force == "" && w.malformed > 1 {
			a.force = model.AnyTool
		}
		return note("That was no valid call: %s. The tools are %s. Call one with a JSON object of its arguments, "+
			"or answer in plain words.", ans.Malformed, strings.Join(a.toolNames(), ", "))
	case strings.TrimSpace(m.Text) == "":
		if w.empty++; w.empty > 2 {
			return false, a.emit(event.Note{Text: "the model answers nothing"})
		}
		return note("You said nothing. Call a tool, or answer the user.")
	}
	if !w.concluded && a.urge() {
		return note(tryIt)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queued) > 0, nil
}

// makeTitle asks a fork of the conversation what it is about. That it fails is no matter.
func (a *Agent) makeTitle(ctx context.Context) {
	f := a.session.Fork()
	f.Append(model.Message{Role: model.User, Text: "Name this session in at most six words. Write only the name."})
	ans, err := a.generate(ctx, f, model.Options{NoTools: true, NoThink: true, MaxTokens: 24}, true)
	if err != nil {
		return
	}
	line, _, _ := strings.Cut(strings.TrimSpace(ans.Message.Text), "\n")
	line = strings.Trim(strings.TrimSpace(line), "\"'`#*. ")
	if r := []rune(line); len(r) > 60 {
		line = string(r[:60])
	}
	if line != "" {
		a.title = line
		_ = a.emit(event.Title{Title: line})
	}
}
