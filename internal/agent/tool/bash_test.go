package tool

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/agent/sandbox"
	"github.com/baleenrun/baleen/internal/agent/web"
)

// eachShell runs a test with commands in the sandbox, and with commands that nothing holds.
func eachShell(t *testing.T, files map[string]string, f func(*room)) {
	t.Run("sandbox", func(t *testing.T) { f(newRoom(t, files).held()) })
	t.Run("free", func(t *testing.T) { f(newRoom(t, files)) })
}

func TestBash(t *testing.T) {
	eachShell(t, map[string]string{"a.txt": "hello\n", "d/x": ""}, func(r *room) {
		sh := func(command string) Result { return r.run(bash{}, "command", command) }
		r.want(sh("cat a.txt"), false, "hello")
		r.want(sh("true"), false, "(no output)")
		r.want(sh("echo out; echo err >&2; exit 3"), true, "out\nerr\n[exit code 3]")
		r.want(sh("kill -TERM $$"), true, "[exit code 143]")
		r.want(sh("if"), true, "syntax error")
		r.want(sh("cd d"), false, "[now in d]")
		r.want(sh("pwd; ls"), false, r.path("d")+"\nx")
		r.want(sh("cd /"), false, "[the folder is d again")
		r.want(sh("cd ..; exit 1"), true, "[exit code 1; now in "+r.env.Root+"]")
		r.want(sh("cat <<EOF\nhi $((1+1))\nEOF"), false, "hi 2")
		r.want(sh("printf '\\033[31mred\\033[0m\\r\\n50%%\\r100%%\\n'"), false, "red\n100%")
		r.want(sh("printf 'a\\377b'"), false, "a\uFFFDb")
		r.want(sh("cat"), false, "(no output)") // nothing to read
		r.want(sh("mkdir e && cd e && rmdir ../e"), false, "")
		r.want(sh("pwd"), false, r.env.Root)
		r.want(sh("  "), true, "empty")
		res := sh("for i in $(seq 20000); do echo line $i; done")
		r.want(res, false, "line 1\n")
		r.want(res, false, "left out; all of it is in "+r.env.Spill)
		if b, _ := os.ReadFile(res.Spill); len(res.Text) > 14<<10 || !strings.HasSuffix(res.Text, "line 20000") || strings.Count(string(b), "\n") != 20000 {
			r.t.Errorf("%d bytes, the file has %d lines", len(res.Text), strings.Count(string(b), "\n"))
		}
		if e, err := (read{}).Effect(r.env, json.RawMessage(`{"path":"`+res.Spill+`"}`)); err != nil || len(e.Reads) > 0 {
			r.t.Errorf("reading what was left out needs a permission: %+v %v", e, err)
		}
		r.want(r.run(grep{}, "pattern", "line 777$", "path", res.Spill), false, "777: line 777")
		began := time.Now()
		r.want(r.run(bash{}, "command", "echo begun; sleep 60", "timeout", 1), true, "begun\n[stopped after 1s")
		if d := time.Since(began); d > 20*time.Second {
			r.t.Errorf("it took %v", d)
		}
	})
}

// TestBashStops when the user says so, at once, and says what came until then.
func TestBashStops(t *testing.T) {
	eachShell(t, nil, func(r *room) {
		ctx, cancel := context.WithCancel(r.t.Context())
		res, err := bash{}.Run(ctx, r.env, json.RawMessage(`{"command":"echo one; sleep 600"}`), func(s string) {
			if strings.Contains(s, "one") {
				cancel()
			}
		})
		if err == nil || res.Text != "one\n[stopped by the user]" {
			r.t.Errorf("%+v %v", res, err)
		}
	})
}

func TestBackground(t *testing.T) {
	eachShell(t, nil, func(r *room) {
		r.want(r.run(jobs{}), false, "no command runs")
		r.want(r.run(bash{}, "command", "echo up; while [ ! -e stop ]; do sleep 0.05; done; echo down; exit 4", "background", true), false, "job 1 runs in the background; read its output in "+r.env.Spill)
		r.want(r.run(jobs{}, "job", 1), false, "job 1 runs, since")
		r.write("stop", "")
		r.want(r.run(jobs{}, "job", 1, "wait", 20), false, "down\n[job 1 ended with exit code 4]")
		r.want(r.run(bash{}, "command", "sleep 600", "background", true), false, "job 2 runs")
		r.want(r.run(jobs{}, "job", 2, "kill", true), false, "job 2 ended with exit code 137")
		r.want(r.run(jobs{}), false, "job 1, ended with exit code 4: echo up")
		r.want(r.run(jobs{}, "job", 9), true, "there is no job 9")
		r.want(r.run(bash{}, "command", "no-such-program-x", "background", true), true, "not found")
		r.run(bash{}, "command", "sleep 600", "background", true)
		r.env.Close()
		r.want(r.run(jobs{}), false, "job 4, ended")
	})
}

// TestSandboxed: what the sandbox denies is said, and a wider one is asked for by the denied folder, never for a secret or home.
func TestSandboxed(t *testing.T) {
	r := newRoom(t, nil).held()
	outside, err := os.MkdirTemp("/var/tmp", "baleen-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(outside)
	touch := "touch " + outside + "/x || echo " + outside + "/x: Permission denied; test -e " + outside + "/x"
	r.want(r.run(bash{}, "command", touch), true, "the sandbox denied "+outside+"/x")
	var asked []Escalation
	r.env.Escalate = func(_ context.Context, e Escalation) bool {
		asked = append(asked, e)
		return true
	}
	r.want(r.run(bash{}, "command", touch), false, "(no output)")
	if len(asked) != 1 || len(asked[0].Paths) != 1 || asked[0].Paths[0] != outside {
		t.Errorf("%+v", asked)
	}
	for _, path := range []string{r.env.Home + "/x", r.env.Home + "/.ssh/x", "/x", "/root/.aws/credentials"} {
		asked = nil
		if r.run(bash{}, "command", "echo "+path+": Permission denied; false"); len(asked) > 0 {
			t.Errorf("%s was asked for as %+v", path, asked)
		}
	}
	r.want(r.run(bash{}, "command", "mkdir -p .git/hooks; echo x > .git/hooks/y; true"), false, "")
	if _, err := os.Stat(r.path(".git/hooks/y")); err == nil {
		t.Error("a hook was made")
	}
}

// TestCoreIsShort: the tools that are always offered take at most 450 tokens, told as in the Hermes form; a token has
// more than three bytes of such text, with every vocabulary in use.
func TestCoreIsShort(t *testing.T) {
	all, names := 0, ""
	for _, c := range Core() {
		s := c.Spec()
		b, err := json.Marshal(map[string]any{"type": "function", "function": map[string]any{"name": s.Name, "description": s.Description, "parameters": s.Parameters}})
		if err != nil {
			t.Fatal(err)
		}
		all += len(b) + 1
		names += s.Name + " "
	}
	if all > 450*35/10 || names != "bash edit grep list read write " {
		t.Errorf("%d bytes, %s", all, names)
	}
}

func TestMore(t *testing.T) {
	m := More(jobs{})
	r := newRoom(t, nil)
	r.want(r.run(m), false, "jobs: Show commands")
	r.want(r.run(m, "tool", "jobs"), false, `args: {"type":"object"`)
	r.want(r.run(m, "tool", "jobs", "args", map[string]any{}), false, "no command runs")
	r.want(r.run(m, "tool", "jobs", "args", `{"job": 3}`), true, "there is no job 3")
	r.want(r.run(m, "tool", "fly", "args", map[string]any{}), true, `there is no tool "fly" behind more_tools; there are jobs`)
	r.want(r.run(m, "tool", "jobs", "args", map[string]any{"x": 1}), true, `jobs: there is no argument "x"`)
}

// TestEgress: a command reaches the proxy of its sandbox, which refuses what no rule allows, and nothing beside it.
func TestEgress(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip(err)
	}
	r := newRoom(t, nil).held()
	if level, _ := sandbox.Probe(); level != sandbox.Namespaces {
		t.Skip(level)
	}
	p, err := web.NewProxy(func(host string) bool { return host == "localhost" })
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r.env.Sandbox.Proxy = p.Socket
	r.want(r.run(bash{}, "command", curl+" -sS -m 10 http://example.org/"), false, `the rule "reach example.org"`)
	r.want(r.run(bash{}, "command", curl+" -sS -m 10 --noproxy '' http://localhost/"), false, "is not reached: it is of this machine")
	r.want(r.run(bash{}, "command", curl+" -sS -m 10 --noproxy '*' http://1.1.1.1/"), true, "")
}
