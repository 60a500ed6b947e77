package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/perm"
)

// diagnostics lets the tools of a language say what is wrong with the code.
type diagnostics struct{}

type diagnosticsArgs struct {
	Path string `json:"path,omitempty"`
}

func (diagnostics) Spec() Spec {
	return Spec{
		Name:        "diagnostics",
		Description: "What go vet, tsc, ruff or cargo check find wrong, in a file's project or the workspace.",
		Parameters:  schema("path?:string"),
	}
}

// A checker checks projects that have a file of its name.
type checker struct {
	marks   []string // files by which a project is known
	program string
	args    []string
	ends    []string // of the files that it is about
}

var checkers = []checker{
	{[]string{"go.mod"}, "go", []string{"vet", "./..."}, []string{".go"}},
	{[]string{"tsconfig.json"}, "tsc", []string{"--noEmit", "--pretty", "false"}, []string{".ts", ".tsx", ".mts"}},
	{[]string{"pyproject.toml", "setup.py", "ruff.toml", "requirements.txt"}, "ruff", []string{"check", "--output-format=concise", "--no-cache", "."}, []string{".py"}},
	{[]string{"Cargo.toml"}, "cargo", []string{"check", "--quiet", "--message-format=short"}, []string{".rs"}},
}

// A check is what one checker would run.
type check struct {
	command string
	words   []string
	missing string // the program is not there
}

// checks finds what can be checked: the project of a path, or all those at the top of the workspace.
func (e *Env) checks(a diagnosticsArgs) ([]check, error) {
	at, err := e.find(cmp.Or(a.Path, "."))
	if err != nil {
		return nil, err
	}
	if at.rel == "" {
		return nil, fmt.Errorf("%s is outside of the workspace", at.shown)
	}
	st, err := e.stat(at)
	if err != nil {
		return nil, e.notThere(at, err)
	}
	var out []check
	for _, c := range checkers {
		dir := at.rel
		if !st.IsDir() {
			if !c.about(at.rel) {
				continue
			}
			dir = path.Dir(dir)
		}
		for {
			if c.marked(filepath.Join(e.Root, filepath.FromSlash(dir))) {
				out = append(out, c.in(e, dir))
				break
			}
			if dir == "." {
				break
			}
			dir = path.Dir(dir)
		}
	}
	return out, nil
}

func (c checker) about(name string) bool {
	for _, end := range c.ends {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

func (c checker) marked(dir string) bool {
	for _, m := range c.marks {
		if _, err := os.Stat(filepath.Join(dir, m)); err == nil {
			return true
		}
	}
	return false
}

func (c checker) in(e *Env, dir string) check {
	program := c.program
	if local := filepath.Join(e.Root, filepath.FromSlash(dir), "node_modules", ".bin", program); c.program == "tsc" {
		if _, err := os.Stat(local); err == nil {
			program = "./node_modules/.bin/tsc"
		}
	}
	k := check{words: append([]string{program}, c.args...)}
	if _, err := exec.LookPath(program); err != nil && !strings.Contains(program, "/") {
		k.missing = program
	}
	k.command = "cd " + quote(filepath.Join(e.Root, filepath.FromSlash(dir))) + " && " + strings.Join(k.words, " ")
	return k
}

func (diagnostics) Effect(env *Env, args json.RawMessage) (perm.Effect, error) {
	var a diagnosticsArgs
	if err := decode(args, &a); err != nil {
		return perm.Effect{}, err
	}
	if _, err := env.agree(cmp.Or(a.Path, ".")); err != nil {
		return perm.Effect{}, err
	}
	checks, err := env.checks(a)
	var e perm.Effect
	for _, c := range checks {
		if c.missing == "" {
			e.Commands = append(e.Commands, perm.Command{Words: c.words})
		}
	}
	return e, err
}

func (diagnostics) Run(ctx context.Context, env *Env, args json.RawMessage, out func(string)) (Result, error) {
	var a diagnosticsArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	checks, err := env.checks(a)
	if err != nil {
		return failed("%v", err), nil
	}
	if len(checks) == 0 {
		return failed("there is no project of Go, TypeScript, Python or Rust there"), nil
	}
	var all []string
	res := Result{}
	for _, c := range checks {
		name := strings.Join(c.words, " ")
		if c.missing != "" {
			all = append(all, fmt.Sprintf("%s: %s is not installed", name, c.missing))
			continue
		}
		// In a subshell, so that the folder of the next command stays.
		r, _, err := env.foreground(ctx, bashArgs{Command: "(" + c.command + ")", Timeout: 300}, env.Sandbox, out)
		if err != nil {
			return r, err
		}
		if r.Text == "(no output)" {
			r.Text = "nothing wrong"
		}
		all = append(all, name+": "+r.Text)
		res.Spill = cmp.Or(res.Spill, r.Spill)
	}
	res.Text = strings.Join(all, "\n")
	return res, nil
}
