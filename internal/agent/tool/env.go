package tool

import (
	"context"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/sandbox"
	"github.com/baleenrun/baleen/internal/agent/web"
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
	// Hidden tells whether a file, absolute, is left out of searches, since reading it would be asked for or denied; nil:
	// those that perm.Secret names.
	Hidden func(path string) bool
	// Most is how many bytes of a result the model is shown; 0: 48 KiB.
	Most int
	// Shell is the program that runs commands; "": bash where it is on the PATH, else sh.
	Shell string

	state state
}

// state is what an Env learns while it is worked in.
type state struct {
	mu     sync.Mutex
	seen   map[string]*seen  // files as the model knows them, by their real paths
	agreed map[string]string // the real path that a path had when it was decided about
	cwd    string            // of commands; "": the workspace
	jobs   []*job
	spills int
	web    web.Fetcher
}

// Close ends the commands that run in the background.
func (e *Env) Close() {
	e.state.mu.Lock()
	jobs := e.state.jobs
	e.state.mu.Unlock()
	for _, j := range jobs {
		j.stop()
	}
}

// hidden tells whether a file is left out of searches.
func (e *Env) hidden(path string) bool {
	if e.Hidden != nil {
		return e.Hidden(path)
	}
	return perm.Secret(path)
}

func (e *Env) now() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
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
