package chat

import (
	"slices"

	"github.com/baleenrun/baleen/internal/toolfmt"
)

// A repeatGuard reads an answer before it is handed out and looks for calls that add nothing: small models, when
// they get a result, make the same call again, and some go on with one call until the context is full. It says what
// may be handed out now and what is to become of the answer. It is used where a request or the server asks for it
// (Request.Conclude) and belongs to one answer.
// RATIONALE: Why can a model be asked again when it repeats a call, and why is it not unless somebody says so?
type repeatGuard interface {
	// text takes a piece of the answer's text.
	text(t string) (out string, v verdict)
	// call takes a piece of a call.
	call(ev toolfmt.Event) (out []toolfmt.Event, v verdict)
	// rest gives back text that is still held when a call begins or the answer ends.
	rest() string
	// asked is told that the model was asked again: what comes next is another answer.
	asked()
}

// A verdict says what is to become of an answer.
type verdict uint8

const (
	goOn            verdict = iota
	endHere                 // it repeats itself: nothing more comes of it
	askAgain                // ask the model once more, with the line that says to answer now (prompt.again)
	askWithoutToken         // the same, without the token with which the model began
)

// newRepeatGuard returns the guard of an answer. Unless it was asked for, that is one that lets everything pass.
func newRepeatGuard(s *Stream) repeatGuard {
	wanted := s.svc.o.Conclude
	if s.r.Conclude != nil {
		wanted = *s.r.Conclude
	}
	if !wanted || s.prompt.raw || s.prompt.grammar != nil {
		return noGuard{}
	}
	n := s.lease.Model.Info.Parameters
	g := &callGuard{p: s.prompt, answered: s.prompt.again != nil}
	g.small = g.answered && n > 0 && n < SmallModel
	g.reads = g.small
	return g
}

// noGuard hands everything out.
type noGuard struct{}

func (noGuard) text(t string) (string, verdict) { return t, goOn }
func (noGuard) call(ev toolfmt.Event) (out []toolfmt.Event, v verdict) {
	return []toolfmt.Event{ev}, goOn
}
func (noGuard) rest() string { return "" }
func (noGuard) asked()       {}

// SmallModel is the number of parameters under which a model that does not keep to its format is not trusted to go on
// with calls of its own. Of 54 results that Qwen2.5-Coder 0.5B and 1.5B got, none was followed by a call that was
// asked for.
const SmallModel = 2_000_000_000

// A callGuard asks a model once more where the first call of its answer repeats one that a result of the
// conversation answers, and, of a small model, where it is a call that nobody asked for (see
// toolfmt.Answered.Strays) or text that is meant as a call and fits no tool. Where the second answer begins with
// such a call, too, it asks a last time without the token that began it. A call that stands twice in one answer
// ends it.
type callGuard struct {
	p        *prompt
	answered bool // the conversation ends with results, so that the model can be asked to conclude
	small    bool // it is a small model's, and the conversation does so

	made  []toolfmt.Call // handed out
	again bool           // the model was asked again
	spoke bool           // the second answer has text
	last  bool           // ... or was asked for the last time

	held  []toolfmt.Event // of a call that may be one that is not handed out
	args  string          // its arguments so far
	whole bool            // it is held to its end

	reads bool   // the answer has only begun: its text may be meant as a call
	begun string // that text
}

func (g *callGuard) text(t string) (string, verdict) {
	if !g.reads {
		g.spoke = g.spoke || t != ""
		return t, goOn
	}
	g.begun += t
	yes, open := toolfmt.Attempts(g.begun, g.p.tools)
	switch {
	case open:
		return "", goOn
	case yes && g.first():
		return "", askAgain
	}
	return g.rest(), goOn
}

func (g *callGuard) rest() string {
	t := g.begun
	g.reads, g.begun = false, ""
	g.spoke = g.spoke || t != ""
	return t
}

func (g *callGuard) asked() {
	g.last, g.again, g.spoke = g.again, true, false
	g.held, g.reads, g.begun = nil, false, ""
}

// first tells that the next call decides whether the model is asked again.
func (g *callGuard) first() bool { return g.answered && !g.again && len(g.made) == 0 }

// second tells that the model, asked again, has said nothing else before the call that comes.
func (g *callGuard) second() bool { return g.again && !g.last && len(g.made) == 0 && !g.spoke }

// mayRepeat tells whether the call that is held may still be one that is not handed out.
func (g *callGuard) mayRepeat(name string) bool {
	return (g.first() || g.second()) && g.p.answered.MayRepeat(name, g.args) ||
		slices.ContainsFunc(g.made, func(m toolfmt.Call) bool { return m.MayBecome(name, g.args) })
}

func (g *callGuard) call(ev toolfmt.Event) (out []toolfmt.Event, v verdict) {
	if ev.Kind == toolfmt.CallStart {
		g.args, g.held = "", nil
		g.whole = g.small && ev.Plain && g.first()
	} else if g.held == nil { // it is being handed out
		if ev.Kind == toolfmt.CallEnd {
			g.made = append(g.made, *ev.Call)
		}
		return []toolfmt.Event{ev}, goOn
	}
	g.held = append(g.held, ev)
	switch ev.Kind {
	case toolfmt.CallArgs:
		g.args += ev.Text
	case toolfmt.CallEnd:
		if v := g.judge(ev); v != goOn {
			g.held = nil
			return nil, v
		}
		g.made = append(g.made, *ev.Call)
		return g.release(), goOn
	}
	if g.whole || g.mayRepeat(g.held[0].Call.Name) {
		return nil, goOn
	}
	return g.release(), goOn
}

// judge says what becomes of the answer whose held call has ended.
func (g *callGuard) judge(ev toolfmt.Event) verdict {
	switch repeats := !ev.Cut && g.p.answered != nil && g.p.answered.Repeats(*ev.Call); {
	case slices.ContainsFunc(g.made, ev.Call.Same): // it would go on with it until the context is full
		return endHere
	case g.first() && (repeats || !ev.Cut && g.whole && g.p.answered.Strays(*ev.Call, g.p.tools)):
		return askAgain
	case g.second() && repeats:
		return askWithoutToken
	}
	return goOn
}

func (g *callGuard) release() []toolfmt.Event {
	held := g.held
	g.held = nil
	return held
}
