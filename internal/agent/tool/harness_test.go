package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/agent/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Helper()
	os.Exit(m.Run())
}

// A room is a workspace with tools.
type room struct {
	t   *testing.T
	env *Env
}

func newRoom(t *testing.T, files map[string]string) *room {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &room{t, &Env{Root: filepath.Join(dir, "ws"), Home: filepath.Join(dir, "home"), Spill: filepath.Join(dir, "spill")}}
	for _, d := range []string{r.env.Root, r.env.Home, r.env.Spill} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		r.write(name, text)
	}
	t.Cleanup(r.env.Close)
	return r
}

// held lets commands run in the sandbox, where this system has one.
func (r *room) held() *room {
	r.t.Helper()
	if level, why := sandbox.Probe(); level == sandbox.None {
		r.t.Skip(why)
	}
	scratch := filepath.Join(filepath.Dir(r.env.Root), "scratch")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.env.Sandbox = &sandbox.Policy{Write: []string{r.env.Root}, Scratch: scratch, Protect: []string{filepath.Join(r.env.Root, ".git/hooks")}}
	return r
}

func (r *room) path(name string) string { return filepath.Join(r.env.Root, name) }

func (r *room) write(name, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *room) read(name string) string {
	b, _ := os.ReadFile(r.path(name))
	return string(b)
}

// run makes a call: pairs are names of arguments and their values.
func (r *room) run(t Tool, pairs ...any) Result {
	r.t.Helper()
	args := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		args[pairs[i].(string)] = pairs[i+1]
	}
	b, _ := json.Marshal(args)
	if _, err := t.Effect(r.env, b); err != nil {
		return failed("%v", err)
	}
	res, err := t.Run(r.t.Context(), r.env, b, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// want checks a result: it fails or not, and has a text in it.
func (r *room) want(res Result, fails bool, text string) {
	r.t.Helper()
	if res.IsError != fails || !strings.Contains(res.Text, text) {
		r.t.Errorf("%v %q, want %v %q", res.IsError, res.Text, fails, text)
	}
}
