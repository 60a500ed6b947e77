package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// A Command is what is to run.
type Command struct {
	Args   []string // program and arguments; the program is found by the PATH of the command's environment
	Dir    string   // working folder, absolute
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// A Result says how a command ended.
type Result struct {
	Code     int      // its exit code; 128 and the signal's number where a signal ended it
	Limit    string   // what it took too much of, where that ended it
	Restored []string // protected paths that it had changed, and that are as before again
}

// A Process is a command that runs. All processes that it starts end with it.
type Process struct {
	cmd    *exec.Cmd
	life   io.Closer // while it is open, the helper lives
	status io.ReadCloser
	guard  *guard
	ended  func()      // called when all has ended; nil: nothing
	forget func() bool // takes back what the context's end would do; nil: nothing

	once   sync.Once
	result Result
	err    error
}

// helperName is the first argument by which the binary knows that it is to be the helper.
const helperName = "baleen-sandbox"

// spec is what the helper is told.
type spec struct {
	Policy Policy
	Level  Level
	Dir    string
	Args   []string
	Home   string // the user's, which is hidden
}

// Start runs a command under a policy. When ctx ends, all its processes are killed. It returns an *UnavailableError
// where commands cannot be held, or cannot be held well enough for the policy.
func Start(ctx context.Context, p Policy, c Command) (*Process, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if len(c.Args) == 0 || !filepath.IsAbs(c.Dir) {
		return nil, errors.New("sandbox: a command needs a program and an absolute working folder")
	}
	level, reason := Probe()
	if p.AtMost != None && level > p.AtMost {
		level = p.AtMost
	}
	if level == None {
		return nil, &UnavailableError{reason}
	}
	if p.Proxy != "" && level == Landlock {
		return nil, &UnavailableError{
			"hosts can be let through one by one only where the system has namespaces for users",
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	s := spec{Policy: p, Level: level, Dir: c.Dir, Args: c.Args, Home: home}
	if err := s.resolve(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(s.Policy.Scratch, "tmp"), 0o700); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	g, err := newGuard(s.Policy.Protect)
	if err != nil {
		return nil, err
	}
	proc, err := start(ctx, &s, c)
	if err != nil {
		return nil, err
	}
	proc.guard = g
	return proc, nil
}

// resolve follows the links in all paths, since the kernel's rules are about files, and fills in what has defaults.
func (s *spec) resolve() error {
	p := &s.Policy
	p.Limits = p.Limits.withDefaults()
	var err error
	if p.Scratch, err = filepath.EvalSymlinks(p.Scratch); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if s.Home != "" {
		if h, err := filepath.EvalSymlinks(s.Home); err == nil {
			s.Home = h
		}
	}
	real := func(list []string, must bool) ([]string, error) {
		var out []string
		for _, path := range list {
			r, err := filepath.EvalSymlinks(path)
			if err != nil {
				if must {
					return nil, fmt.Errorf("sandbox: %w", err)
				}
				continue
			}
			out = append(out, r)
		}
		return out, nil
	}
	if p.Write, err = real(p.Write, true); err != nil {
		return err
	}
	if p.Read, err = real(append(append([]string(nil), p.Read...), ToolPaths(s.Home)...), false); err != nil {
		return err
	}
	p.Env = append(Environment(os.Environ(), s.Home, p.Scratch), p.Env...)
	for _, kv := range p.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			p.Read = append(p.Read, programPaths(path, s.Home)...)
		}
	}
	return nil
}

// programPaths are the folders on a PATH, and what lies beside a folder bin that programs in it read. A user's home is
// never among them.
func programPaths(path, home string) []string {
	var out []string
	add := func(dir string) {
		r, err := filepath.EvalSymlinks(dir)
		if err != nil || !filepath.IsAbs(r) || r == "/" || within(home, r) {
			return
		}
		out = append(out, r)
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		add(dir)
		if filepath.Base(dir) == "bin" {
			for _, beside := range []string{"lib", "lib64", "libexec", "share", "pkg", "src", "include", "go.env", "VERSION"} {
				add(filepath.Join(filepath.Dir(dir), beside))
			}
		}
	}
	return out
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// Stop kills the command and all its processes. Wait returns soon after.
func (p *Process) Stop() { _ = p.life.Close() }

// Wait waits until the command and all its processes have ended, and puts back what it changed of the protected paths.
// The error is not nil where the command could not be run; a command that failed has a Code.
func (p *Process) Wait() (Result, error) {
	p.once.Do(func() {
		said, _ := io.ReadAll(io.LimitReader(p.status, 64<<10))
		_ = p.status.Close()
		err := p.cmd.Wait()
		_ = p.life.Close()
		if p.forget != nil { // a context may outlive thousands of commands
			p.forget()
		}
		if p.ended != nil {
			p.ended()
		}
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			p.result.Code = exit.ExitCode()
			if p.result.Code < 0 {
				p.result.Code = 128 + signalOf(exit)
			}
		case err != nil:
			p.err = fmt.Errorf("sandbox: %w", err)
		}
		kind, text, _ := strings.Cut(string(said), ":")
		switch kind {
		case "setup":
			p.err = errors.New("sandbox: nothing was run: " + text)
		case "limit":
			p.result.Limit = text
		}
		restored, err := p.guard.restore()
		p.result.Restored = restored
		if err != nil && p.err == nil {
			p.err = err
		}
	})
	return p.result, p.err
}
