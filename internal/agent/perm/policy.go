package perm

import "sync"

// Options say what a Policy is for.
type Options struct {
	Root string // the workspace, absolute
	Home string // the user's home
	Mode Mode
	// Sandboxed: commands are held to the workspace by the kernel.
	Sandboxed bool
	// UserFile and ProjectFile are the files of rules; they need not exist.
	UserFile, ProjectFile string
	// Private are files and folders that hold secrets of this program's own: they are denied.
	Private []string
}

// A Policy decides about effects: by rules of the user and of the project, and by a mode. It is safe for concurrent use.
type Policy struct {
	o Options

	mu   sync.Mutex
	mode Mode
}

// New reads the files of rules. It always returns a policy that can be used: where rules cannot be read, one that only
// lets files be read, and Problem says why.
func New(o Options) *Policy { return &Policy{o: o, mode: o.Mode} }

// Problem says what was wrong with the rules; "": nothing.
func (p *Policy) Problem() string { return "" }

// Mode returns the mode in force.
func (p *Policy) Mode() Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// SetMode changes the mode. Only people do that.
func (p *Policy) SetMode(m Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
}

// Decide says whether the effect is allowed.
func (p *Policy) Decide(e Effect) Verdict {
	if len(e.Reads)+len(e.Writes)+len(e.Commands)+len(e.Hosts) == 0 && e.Unknown == "" {
		return Verdict{}
	}
	return Verdict{Decision: Ask, Reason: "the user is asked"}
}

// Allowed tells the policy that the user has allowed the effect of a verdict, this once.
func (p *Policy) Allowed(Verdict) {}

// Always tells the policy that the user has allowed what the verdict's Pattern says, from now on. It is written to the
// user's file of rules, for this workspace.
func (p *Policy) Always(Verdict) error { return nil }
