// Package loop is the agent: it lets a model work on what the user asked for, with tools, within permissions and
// budgets. What happens comes out as events; who shows them, and who answers questions, is others' business. It knows no
// screens and no protocols.
package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/prompt"
	"github.com/baleenrun/baleen/internal/agent/store"
	"github.com/baleenrun/baleen/internal/agent/tool"
)

// Options say what an agent works with. Model, Policy, Env and Log are required.
type Options struct {
	Model  model.Model
	Policy *perm.Policy
	Env    *tool.Env
	Core   []tool.Tool // offered from the start
	Others []tool.Tool // behind more_tools
	// More makes more_tools of the tools behind it; nil: tool.More.
	More func(...tool.Tool) tool.Tool
	Log  *store.Log

	// Emit is told of all that happens, in order, by one goroutine at a time; nil: nobody looks.
	Emit func(event.Event)
	// Approve answers whether a call may run; nil: there is nobody to ask, and such calls are denied. It should end when
	// ctx does, and is not waited for after that.
	Approve func(ctx context.Context, q Approval) Answer
	// Ask answers what the model asks the user; nil: there is nobody to ask.
	Ask func(ctx context.Context, q tool.Question) (string, error)
	// Checkpoints keep the workspace as it was; nil: there are none.
	Checkpoints Checkpoints

	// First returns what stands before the first message: the facts of the day, and instructions. nil: nothing.
	First func() string
	// Instructions finds what files say for agents, when work reaches their folders; nil: nothing.
	Instructions *prompt.Reader

	Budget Budget
	Titles bool // give the session a title, by a request of its own, when the first message is answered
	Now    func() time.Time
}

// A Budget bounds the work on one message. What is 0 is not bounded, but for Turns.
type Budget struct {
	Turns  int           // requests to the model; 0: 100
	Tokens int           // computed for prompts and answers
	Time   time.Duration // wall clock, questions to the user included
}

const defaultTurns = 100

// An Approval asks whether a call may run.
type Approval struct {
	Call    model.Call
	Effect  perm.Effect
	Reason  string // why it is asked
	Pattern string // what Always would allow from now on; "": nothing
	Loop    bool   // not for its effect: the model makes the same call again and again
}

// An Answer to an Approval.
type Answer struct {
	Allow  bool
	Always bool   // and everything else that the Pattern says
	Reason string // of a denial: what the model is told
}

// Checkpoints keep states of the workspace.
type Checkpoints interface {
	// Take keeps the workspace as it is now and returns an id for it.
	Take(ctx context.Context) (id string, err error)
	// End keeps what the work since Take has made of it: later changes are somebody else's.
	End(ctx context.Context) error
	// Restore makes the files that the agent has changed what they were at a checkpoint, and returns which. It refuses,
	// before it has changed anything, where one was changed by somebody else since.
	Restore(ctx context.Context, id string) (files []string, err error)
}

// An Agent works on one session. Its methods are for one goroutine at a time, but for Steer and SetMode.
type Agent struct {
	o       Options
	tools   []tool.Tool
	specs   []model.ToolSpec
	behind  []tool.Tool // more_tools, which can be called by their names, too
	hidden  []model.ToolSpec
	system  string
	session model.Session
	window  int

	id    string // of a subtask: the call that began it
	depth int

	begun   bool   // the first message was said
	request string // what the user said last
	title   string
	turns   int // of the whole session
	sum     event.Counts
	changed map[string]bool // files, of the work on the last message
	guard   guard
	// repeated is how often the last call came with its result; the next answer is drawn otherwise then.
	repeated int
	unproven bool            // files changed since a command went well
	urged    bool            // the model was told to try what it did, for this message
	conclude bool            // the next answer is to be in words
	instead  string          // what stands in the place of what is taken back
	rewind   int             // how many messages are to remain, where repetitions are taken back
	force    string          // the tool that the next answer is to call
	read     map[string]bool // files that the model has read, as paths of calls have them
	notes    []string        // for the model, with the next message
	marks    []Mark
	undone   []undone

	mu     sync.Mutex // guards queued and notes
	queued []string

	out *sync.Mutex // of all agents of a session: one event at a time is handed out
}

// New begins a session. The log has its Session event already; see Begin for what belongs into it.
func New(o Options) *Agent {
	a := newAgent(o)
	a.session = a.open(model.Spec{})
	return a
}

// Begin returns the event with which a session's log begins.
func Begin(o Options) event.Session {
	i := o.Model.Info()
	return event.Session{
		Model: i.Name, Digest: i.Digest, Root: o.Env.Root, Mode: o.Policy.Mode().String(), Context: i.Window,
		Prompt: prompt.System(i.Parameters),
	}
}

func newAgent(o Options) *Agent {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.More == nil {
		o.More = tool.More
	}
	i := o.Model.Info()
	a := &Agent{o: o, system: prompt.System(i.Parameters), window: i.Window, out: &sync.Mutex{}, changed: map[string]bool{}, read: map[string]bool{}}
	a.tools = slices.Clone(o.Core)
	slices.SortStableFunc(a.tools, func(x, y tool.Tool) int { return rank(x) - rank(y) })
	if n := i.Parameters; n > 0 && n <= tinyModel {
		for k, t := range a.tools {
			if t.Spec().Name == "edit" {
				a.tools = slices.Delete(a.tools, k, k+1)
				o.Others = append(slices.Clone(o.Others), t)
				break
			}
		}
	}
	a.behind = append(slices.Clone(o.Others), &task{a})
	if more := o.More(a.behind...); more != nil {
		a.tools = append(a.tools, more)
	}
	a.specs, a.hidden = specsOf(a.tools), specsOf(a.behind)
	if o.Env.Question == nil && o.Ask != nil {
		o.Env.Question = a.question
	}
	if o.Env.Escalate == nil && o.Approve != nil {
		o.Env.Escalate = a.escalate
	}
	if o.Env.Todos == nil {
		o.Env.Todos = func(ts []tool.Todo) {
			var t event.Todo
			for _, x := range ts {
				t.Items = append(t.Items, event.TodoItem{Text: x.Text, State: x.State})
			}
			_ = a.emit(t)
		}
	}
	return a
}

// tinyModel is the number of parameters up to which a model is not offered edit from the start: it stands behind
// more_tools.
// RATIONALE: Why do small models write files whole?
const tinyModel = 3_500_000_000

// order is that of the prompt: small models take what stands first, so looking stands before changing.
var order = []string{"read", "list", "grep", "write", "edit", "bash"}

func rank(t tool.Tool) int {
	if i := slices.Index(order, t.Spec().Name); i >= 0 {
		return i
	}
	return len(order)
}

// Prompt returns the system prompt and the tools, as the model is told of them.
func (a *Agent) Prompt() (system string, tools []model.ToolSpec) { return a.system, a.specs }

// Title returns what the session is about; "": nobody has said.
func (a *Agent) Title() string { return a.title }

// Sum returns what the session has taken so far.
func (a *Agent) Sum() event.Counts { return a.sum }

// Messages returns the conversation.
func (a *Agent) Messages() []model.Message { return a.session.Messages() }

// Steer says something while the agent works: the model sees it with its next turn.
func (a *Agent) Steer(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queued = append(a.queued, text)
}

func (a *Agent) steered() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.queued
	a.queued = nil
	return q
}

// SetMode changes what is done without asking. The model is told of it with the next message.
func (a *Agent) SetMode(m perm.Mode) {
	a.o.Policy.SetMode(m)
	a.note(modeNote(m))
}

// modeNote tells the model of a mode.
func modeNote(m perm.Mode) string {
	if m == perm.ModePlan {
		return "Mode: plan. Change nothing and run nothing that changes anything: read, and answer with a plan."
	}
	return "Mode: " + m.String() + ". You may change files again."
}

// ErrLog is returned, wrapped, when the session's log cannot be written: nothing goes on that would not be kept.
var ErrLog = errors.New("the session's log")

// emit logs what happened and hands it out.
func (a *Agent) emit(b event.Body) error {
	a.out.Lock()
	defer a.out.Unlock()
	e, err := a.o.Log.Append(a.id, b)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	if a.o.Emit != nil {
		a.o.Emit(e)
	}
	return nil
}

// say makes a message part of the conversation, when it is on disk.
func (a *Agent) say(m model.Message, note bool) error {
	err := a.emit(event.Message{
		Role: m.Role, Text: m.Text, Call: m.CallID, Name: m.Name, Failed: m.Failed, Note: note,
	})
	if err == nil {
		a.session.Append(m)
	}
	return err
}

func specsOf(ts []tool.Tool) (out []model.ToolSpec) {
	for _, t := range ts {
		s := t.Spec()
		out = append(out, model.ToolSpec{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return out
}

// open begins a conversation.
func (a *Agent) open(spec model.Spec) model.Session {
	spec.System, spec.Tools, spec.Behind = a.system, a.specs, a.hidden
	return a.o.Model.Open(spec)
}

// find returns the tool of a name.
func (a *Agent) find(name string) tool.Tool {
	for _, t := range slices.Concat(a.tools, a.behind) {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

func (a *Agent) toolNames() []string {
	var out []string
	for _, t := range a.tools {
		out = append(out, t.Spec().Name)
	}
	return out
}

// canonical writes JSON without spaces and with the members of objects in order, so that equal arguments are equal texts.
func canonical(args string) string {
	var v any
	if json.Unmarshal([]byte(args), &v) != nil {
		return args
	}
	b, err := json.Marshal(v)
	if err != nil {
		return args
	}
	return string(b)
}
