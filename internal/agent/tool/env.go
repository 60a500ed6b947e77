package tool

import (
	"context"
	"time"

	"github.com/baleenrun/baleen/internal/agent/sandbox"
)

// An Env is what tools work in. It belongs to one session; its methods are safe for concurrent use, its fields are set
// before the first call.
type Env struct {
	Root string // the workspace: absolute, links followed
	Home string // the user's
	// Sandbox says what commands may do; nil: they are not held, since nothing here can, or the user wants it so.
	Sandbox *sandbox.Policy
	Spill   string // a folder for outputs that are too long for the model; outside of the workspace
	Now     func() time.Time

	// Question asks the user; nil: there is nobody to ask.
	Question func(context.Context, Question) (string, error)
	// Escalate asks whether a command may be run again with what the sandbox has denied; nil: no.
	Escalate func(context.Context, Escalation) bool
	// Todos is told of the list of what is to do whenever it changes; nil: nobody looks.
	Todos func([]Todo)
}

// A Question is asked by a model.
type Question struct {
	Text    string
	Choices []string // may be empty: a free answer
}

// An Escalation is what a command needs beyond the sandbox.
type Escalation struct {
	Command string
	Paths   []string // denied: to be read and written
	Reason  string   // what the command said
}

// A Todo is one thing to do.
type Todo struct {
	Text  string `json:"text"`
	State string `json:"state"` // pending, active, done
}

// Core returns the tools that are offered from the start, in the order of the prompt.
func Core() []Tool { return nil }

// Others returns the tools behind more_tools.
func Others() []Tool { return nil }

// More returns the tool more_tools: it lists the tools behind it, and calls them by name, so that what is offered in a
// prompt never changes. The list may be extended by the loop's own tools and those of other servers.
func More(behind ...Tool) Tool { return nil }
