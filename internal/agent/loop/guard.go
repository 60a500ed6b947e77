package loop

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/prompt"
	"github.com/baleenrun/baleen/internal/agent/tool"
)

// A guard notices a model that makes the same call and gets the same result again and again. The same call with another
// result, such as tests that are run after each change, is work.
type guard struct {
	recent []seen // calls and their results, the latest last
}

// A seen call is one with its result, and the number of times that both came before among the recent ones.
type seen struct {
	sum   [sha256.Size]byte
	times int
	at    int // messages before the answer that made it
}

const (
	guardMemory = 16 // calls that it looks back over
	nudgeAt     = 3
	askAt       = 5
)

// durations differ from run to run in results that are the same.
var durations = regexp.MustCompile(`\d+(?:\.\d+)?\s*(?:ns|µs|us|ms|s|sec|seconds)\b`)

// count notes a call with its result and returns how many times both came.
func (g *guard) count(c model.Call, result string, at int) int {
	sum := sha256.Sum256([]byte(c.Name + "\x00" + canonical(c.Args) + "\x00" + durations.ReplaceAllString(result, "")))
	n := 1
	for i := len(g.recent) - 1; i >= 0; i-- {
		if g.recent[i].sum == sum {
			n = g.recent[i].times + 1
			break
		}
	}
	if g.recent = append(g.recent, seen{sum, n, at}); len(g.recent) > guardMemory {
		g.recent = g.recent[1:]
	}
	return n
}

// asItIs tells whether a call writes what a file has already.
func (a *Agent) asItIs(c model.Call) bool {
	var args struct{ Path, Content string }
	if c.Name != "write" || json.Unmarshal([]byte(c.Args), &args) != nil {
		return false
	}
	b, err := os.ReadFile(joinRoot(a.o.Env.Root, args.Path))
	return err == nil && strings.TrimRight(string(b), "\n") == strings.TrimRight(args.Content, "\n")
}

const tryIt = "Run the test or the program now, with bash, to see whether it works."

// urge makes a small model try what it changed, once for each message, before it is done.
func (a *Agent) urge() bool {
	if !a.unproven || a.urged || !a.small() || a.find("bash") == nil {
		return false
	}
	a.urged, a.force = true, "bash"
	return true
}

// prove notes what a call did for that.
func (a *Agent) prove(c model.Call, r tool.Result) {
	for _, path := range r.Changed {
		switch filepath.Ext(path) {
		case ".md", ".txt", ".rst", "":
		default:
			a.unproven = true
		}
	}
	if c.Name == "bash" && !r.IsError {
		a.unproven = false
	}
}

// second returns how many messages stand before the second of the same calls that the memory ends with; 0: they do not
// stand one behind the other.
func (g *guard) second() int {
	n := len(g.recent) - 1
	for i := n; i >= 0; i-- {
		if g.recent[i].sum != g.recent[n].sum {
			return 0
		}
		if g.recent[i].times == 2 {
			return g.recent[i].at
		}
	}
	return 0
}

// answerAt is the place of the last answer.
func (a *Agent) answerAt() int {
	msgs := a.session.Messages()
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == model.Assistant {
			return i
		}
	}
	return 0
}

// unwind takes repetitions out of what a small model sees, but for the first: it copies what it sees, whatever it is told.
// RATIONALE: Why are a small model's repetitions taken back?
func (a *Agent) unwind() error {
	n := a.rewind
	if a.rewind = 0; n == 0 || n >= len(a.session.Messages()) {
		return nil
	}
	if err := a.emit(event.Undone{Messages: &n}); err != nil {
		return err
	}
	a.session.Truncate(n)
	return a.say(model.Message{Role: model.User, Text: a.instead}, true)
}

// guarded looks at the result of a call: at the third time the model is told, at the fifth somebody is asked.
func (a *Agent) guarded(ctx context.Context, c model.Call, r tool.Result, err error) (tool.Result, error) {
	if err != nil {
		return r, err
	}
	n := a.guard.count(c, r.Text, a.answerAt())
	a.repeated = n
	if a.small() && len(a.changed) > 0 {
		done := len(r.Changed) == 0 && a.asItIs(c)
		switch {
		case a.unproven && a.urged && done && n == 1:
			r.Text += "\n[The command failed with just this text. The fault is in another place, perhaps in another file.]"
			return r, nil
		case a.unproven && a.urged:
		case n == 2 && (done || !r.IsError): // what it has done already, again: it is done, and does not know
			if a.urge() {
				r.Text += "\n[This is done already. " + tryIt + "]"
				return r, nil
			}
			a.conclude = true
			r.Text += "\n[This is done already.]\nAnswer the user now, in plain words."
			return r, nil
		case n == 1 && done:
			r.Text += "\n[The file is as you want it. If the task is done, answer the user now, in plain words.]"
			return r, nil
		case n == 1 && c.Name == "bash" && !r.IsError:
			r.Text += "\n[That went well. If the task is done, answer the user now, in plain words.]"
			return r, nil
		}
	}
	switch {
	case n == 1 || n < nudgeAt && !a.small():
		return r, nil
	case n < nudgeAt && r.IsError:
		r.Text += "\n[The same call failed in this way before. Do not make it again. Do something else.]"
		return r, nil
	case n < nudgeAt: // small models often go on with what they have done already
		r.Text += "\n[This is the same as before. If the task is done, answer the user now, in plain words.]"
		return r, nil
	case n < askAt || n%askAt != 0:
		if n == nudgeAt && a.small() && a.o.Log != nil {
			if a.rewind = a.guard.second(); a.rewind > 0 {
				a.instead = "You made this last call three times, always with the same result. It will not change. Do " +
					"something else now, with another tool, or tell the user what is missing."
			}
		}
		r.Text += fmt.Sprintf("\n[You made this same call %d times, with the same result. It will not change. "+
			"Do something else, or tell the user what is missing.]", n)
		return r, nil
	}
	why := fmt.Sprintf("the model made the same call %d times, with the same result", n)
	if e := a.emit(event.Note{Text: why}); e != nil {
		return r, e
	}
	if a.o.Approve == nil {
		return r, &overError{event.Looped}
	}
	ans, err := a.ask(ctx, Approval{Call: c, Reason: why + "; let it go on?", Loop: true})
	switch {
	case err != nil:
		return r, err
	case !ans.Allow:
		return r, &overError{event.Looped}
	case ans.Reason != "":
		r.Text += "\n[The user says: " + ans.Reason + "]"
	}
	return r, nil
}

// small tells whether the model is one of those that need more guidance.
func (a *Agent) small() bool {
	n := a.o.Model.Info().Parameters
	return n > 0 && n <= prompt.SmallModel
}

// patience is how long a tool may take to end when it was told to.
func (a *Agent) patience() <-chan time.Time { return time.After(2 * time.Second) }
