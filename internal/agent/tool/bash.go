package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/sandbox"
)

// bash runs commands, in the sandbox where there is one.
type bash struct{}

type bashArgs struct {
	Command    string `json:"command"`
	Timeout    int    `json:"timeout,omitempty"`
	Background bool   `json:"background,omitempty"`
}

// How long a command may take, in seconds, where the model does not say, and at most.
const (
	bashTimeout = 120
	bashLongest = 3600
)

func (bash) Spec() Spec {
	return Spec{
		Name: "bash", Core: true,
		Description: "Run a shell command. cd is kept. timeout: seconds. background: for servers.",
		Parameters:  schema("command:string", "timeout?:integer", "background?:boolean"),
	}
}

func (bash) Effect(env *Env, args json.RawMessage) (perm.Effect, error) {
	var a bashArgs
	if err := decode(args, &a); err != nil {
		return perm.Effect{}, err
	}
	if strings.TrimSpace(a.Command) == "" {
		return perm.Effect{}, errors.New("the command is empty")
	}
	if strings.IndexByte(a.Command, 0) >= 0 {
		return perm.Effect{}, errors.New("the command has a zero byte")
	}
	return perm.Shell(a.Command, perm.ShellOptions{Dir: env.dir(), Home: env.shellHome()}), nil
}

// shellHome is what ~ stands for in commands.
func (e *Env) shellHome() string {
	if e.Sandbox != nil {
		return e.Sandbox.Scratch
	}
	return e.Home
}

// dir is the folder in which the next command runs.
func (e *Env) dir() string {
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	if e.state.cwd != "" {
		if st, err := os.Stat(e.state.cwd); err == nil && st.IsDir() {
			return e.state.cwd
		}
		e.state.cwd = "" // it was removed
	}
	return e.Root
}

func (bash) Run(ctx context.Context, env *Env, args json.RawMessage, out func(string)) (Result, error) {
	var a bashArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	if a.Timeout < 0 || a.Timeout > bashLongest {
		return failed("timeout is in seconds, at most %d", bashLongest), nil
	}
	if a.Background {
		return env.background(a.Command), nil
	}
	res, paths, err := env.foreground(ctx, a, env.Sandbox, out)
	if err != nil || len(paths) == 0 || env.Escalate == nil {
		return res, err
	}
	wider, dirs := env.wider(paths)
	if len(dirs) == 0 || !env.Escalate(ctx, Escalation{Command: a.Command, Paths: dirs, Reason: tailOf(res.Text)}) {
		return res, context.Cause(ctx)
	}
	res, _, err = env.foreground(ctx, a, wider, out)
	return res, err
}

func tailOf(s string) string { return s[max(0, len(s)-500):] }

// wider is the policy with the folders of denied paths, as far as they can be allowed: none that has the workspace or the
// user's home in it, and nothing secret.
func (e *Env) wider(paths []string) (*sandbox.Policy, []string) {
	p := *e.Sandbox
	p.Write = slices.Clone(p.Write)
	var dirs []string
	for _, path := range paths {
		dir, err := resolve(path)
		if err != nil || e.hidden(dir) {
			continue
		}
		for {
			if st, err := os.Stat(dir); err == nil && st.IsDir() {
				break
			}
			dir = filepath.Dir(dir)
		}
		if perm.Within(e.Root, dir) || perm.Within(e.Home, dir) || e.hidden(dir) || slices.Contains(dirs, dir) {
			continue
		}
		dirs = append(dirs, dir)
		p.Write = append(p.Write, dir)
	}
	return &p, dirs
}

// A running is a command that was started.
type running interface {
	// wait returns the exit code, and what is to be said beside it.
	wait() (code int, note string, err error)
	stop()
}

type held struct{ p *sandbox.Process }

func (h held) stop() { h.p.Stop() }

func (h held) wait() (int, string, error) {
	res, err := h.p.Wait()
	var notes []string
	if res.Limit != "" {
		notes = append(notes, "ended: it took "+res.Limit)
	}
	if len(res.Restored) > 0 {
		notes = append(notes, "put back, since commands may not change it: "+list(res.Restored))
	}
	return res.Code, strings.Join(notes, "; "), err
}

type free struct{ cmd *exec.Cmd }

func (f free) stop() { killGroup(f.cmd) }

func (f free) wait() (int, string, error) {
	err := f.cmd.Wait()
	killGroup(f.cmd) // what it left behind, as in the sandbox
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) {
		return exitCode(f.cmd.ProcessState), "", nil
	}
	return 0, "", err
}

// secretNames are parts of the names of variables that hold what commands need not know.
var secretNames = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"}

// openEnvironment is that of commands which no sandbox holds.
func openEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(kv), "=")
		return slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(name, s) })
	})
}

func (e *Env) shell() string {
	if e.Shell != "" {
		return e.Shell
	}
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return "/bin/sh"
}

// start starts a command. cwd is a file that gets the folder in which it ends; "": nobody wants to know.
func (e *Env) start(ctx context.Context, command, cwd string, policy *sandbox.Policy, out *output) (running, error) {
	script := command
	if cwd != "" { // on the same line, so that the shell's numbers of lines are the command's
		script = "trap " + quote("pwd -P 2>/dev/null >"+quote(cwd)) + " EXIT; " + command
	}
	args := []string{e.shell(), "-c", script}
	if policy != nil {
		p, err := sandbox.Start(ctx, *policy, sandbox.Command{Args: args, Dir: e.dir(), Stdout: out, Stderr: out})
		if err != nil {
			return nil, err
		}
		return held{p}, nil
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = e.dir(), openEnvironment(), out, out, 2*time.Second
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return free{cmd}, nil
}

// quote makes a word of a text, for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// foreground runs a command to its end. paths are what the sandbox has denied it.
func (e *Env) foreground(ctx context.Context, a bashArgs, policy *sandbox.Policy, show func(string)) (Result, []string, error) {
	limit := time.Duration(a.Timeout) * time.Second
	if a.Timeout == 0 {
		limit = bashTimeout * time.Second
	}
	scratch := os.TempDir()
	if policy != nil {
		scratch = policy.Scratch
	}
	dir, err := os.MkdirTemp(scratch, "run-")
	if err != nil {
		return failed("nothing was run: %v", err), nil, nil
	}
	defer os.RemoveAll(dir)
	out := &output{file: e.spillFile("output"), show: show}
	defer out.close()
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, err := e.start(timed, a.Command, filepath.Join(dir, "cwd"), policy, out)
	if err != nil {
		return failed("nothing was run: %v", err), nil, nil
	}
	forget := context.AfterFunc(timed, p.stop)
	code, note, err := p.wait()
	forget()
	text, spill := out.text(e.most())
	text = strings.TrimRight(text, "\n")
	res := Result{Spill: spill, IsError: code != 0}
	var notes []string
	var denied []string
	switch {
	case ctx.Err() != nil:
		res.Text, res.IsError = join(text, "stopped by the user"), true
		return res, nil, context.Cause(ctx)
	case err != nil:
		return failed("%s", join(text, err.Error())), nil, nil
	case timed.Err() != nil:
		notes = append(notes, fmt.Sprintf("stopped after %v; give a longer timeout, or background for what does not end", limit))
		res.IsError = true
	case code != 0:
		notes = append(notes, fmt.Sprintf("exit code %d", code))
	}
	if note != "" {
		notes = append(notes, note)
	}
	if policy != nil && code != 0 {
		var why string
		denied, why = e.denials(text)
		if why != "" {
			notes = append(notes, why)
		}
	}
	if moved := e.moved(dir); moved != "" {
		notes = append(notes, moved)
	}
	if text == "" && len(notes) == 0 {
		text = "(no output)"
	}
	res.Text = join(text, notes...)
	return res, denied, nil
}

func join(text string, notes ...string) string {
	if len(notes) == 0 {
		return text
	}
	if text != "" {
		text += "\n"
	}
	return text + "[" + strings.Join(notes, "; ") + "]"
}

// moved keeps the folder in which a command ended, and says where it is when that is another one.
func (e *Env) moved(dir string) string {
	root, err := os.OpenRoot(dir) // a command could have made a link of the file
	if err != nil {
		return ""
	}
	defer root.Close()
	f, err := root.Open("cwd")
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 4097)
	n, _ := f.Read(buf)
	to := strings.TrimSuffix(string(buf[:n]), "\n")
	was := e.dir()
	if n == len(buf) || to == was || !filepath.IsAbs(to) {
		return ""
	}
	real, err := filepath.EvalSymlinks(to)
	if st, serr := os.Stat(to); err != nil || serr != nil || !st.IsDir() {
		return ""
	}
	if !perm.Within(real, e.Root) {
		return "the folder is " + e.show(was) + " again: cd is kept only inside " + e.Root
	}
	e.state.mu.Lock()
	e.state.cwd = real
	e.state.mu.Unlock()
	return "now in " + e.show(real)
}

func (e *Env) show(dir string) string {
	if dir == e.Root {
		return e.Root
	}
	return e.short(dir)
}

var (
	deniedPath = regexp.MustCompile(`(/[^\s:'"‘’` + "`" + `]+)['"’]?: (?:Permission denied|Read-only file system|Operation not permitted)`)
	noNetwork  = regexp.MustCompile(`(?i)could not resolve|name resolution|network is unreachable|no such host|dial (tcp|udp)|getaddrinfo`)
)

// denials finds what the sandbox has denied in what a command has said.
func (e *Env) denials(text string) (paths []string, why string) {
	for _, m := range deniedPath.FindAllStringSubmatch(text, 20) {
		path := filepath.Clean(m[1])
		if !perm.Within(path, e.Root) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	switch {
	case len(paths) > 0:
		return paths, "the sandbox denied " + list(paths) + ": commands may write in the workspace and in $TMPDIR"
	case noNetwork.MatchString(text):
		return nil, "commands in the sandbox have no network"
	}
	return nil, ""
}
