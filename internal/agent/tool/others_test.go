package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestSchemas: each tool's parameters are an object's schema, and its description is short.
func TestSchemas(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range append(append(Core(), Others()...), More(Others()...)) {
		s := x.Spec()
		var p struct {
			Type       string
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(s.Parameters, &p); err != nil || p.Type != "object" || seen[s.Name] || len(s.Description) > 200 {
			t.Errorf("%s: %v %+v", s.Name, err, p)
		}
		for _, r := range p.Required {
			if p.Properties[r] == nil {
				t.Errorf("%s wants %s, which it does not have", s.Name, r)
			}
		}
		seen[s.Name] = true
		if _, err := x.Effect(&Env{Root: t.TempDir()}, json.RawMessage(`[]`)); err == nil {
			t.Errorf("%s takes a list as arguments", s.Name)
		}
	}
}

func TestTodoAndAsk(t *testing.T) {
	r := newRoom(t, nil)
	var kept []Todo
	r.env.Todos = func(ts []Todo) { kept = ts }
	items := func(pairs ...string) (out []map[string]string) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, map[string]string{"text": pairs[i], "state": pairs[i+1]})
		}
		return out
	}
	r.want(r.run(todo{}, "items", items("a", "done", "b", "active")), false, "kept: 1 of 2 to do")
	r.want(r.run(todo{}, "items", items("a", "later")), true, "want pending, active or done")
	r.want(r.run(todo{}, "items", items("", "done")), true, "item 1 has no text")
	if fmt.Sprint(kept) != "[{a done} {b active}]" {
		t.Errorf("%v", kept)
	}
	r.want(r.run(ask{}, "question", "Which?"), true, "there is nobody to ask")
	r.env.Question = func(_ context.Context, q Question) (string, error) {
		if q.Text == "Fail?" {
			return "", errors.New("gone")
		}
		return strings.Join(q.Choices, "+"), nil
	}
	r.want(r.run(ask{}, "question", "Which?", "choices", []string{"a", "b"}), false, "the user answers: a+b")
	r.want(r.run(ask{}, "question", "Which?"), false, "no answer: decide")
	r.want(r.run(ask{}, "question", "Fail?"), true, "no answer: gone")
	r.want(r.run(ask{}, "question", " "), true, "empty")
}

// TestMultiEdit makes all edits or none.
func TestMultiEdit(t *testing.T) {
	r := newRoom(t, map[string]string{"f": "a\nb\nc\n"})
	edits := func(pairs ...string) (out []map[string]string) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, map[string]string{"old": pairs[i], "new": pairs[i+1]})
		}
		return out
	}
	r.want(r.run(multiEdit{}, "path", "f", "edits", edits("a", "x", "nothing", "y")), true, "edit 2 of 2: old is not in f")
	if r.read("f") != "a\nb\nc\n" {
		t.Errorf("%q", r.read("f"))
	}
	r.want(r.run(multiEdit{}, "path", "f", "edits", edits("a", "x", "x\nb", "y")), false, "edited f: line 1; lines 1-2")
	if r.read("f") != "y\nc\n" {
		t.Errorf("%q", r.read("f"))
	}
	r.want(r.run(multiEdit{}, "path", "f", "edits", []any{}), true, "1 to 100 edits")
}

// TestWebTools reach nothing of the user's own network, and say which host is to be allowed.
func TestWebTools(t *testing.T) {
	r := newRoom(t, nil)
	e, err := webFetch{}.Effect(r.env, json.RawMessage(`{"url":"https://Example.org:8443/x"}`))
	if err != nil || fmt.Sprint(e.Hosts) != "[example.org]" {
		t.Errorf("%+v %v", e, err)
	}
	if e, err := (webSearch{}).Effect(r.env, json.RawMessage(`{"query":"x"}`)); err != nil || len(e.Hosts) != 1 {
		t.Errorf("%+v %v", e, err)
	}
	r.want(r.run(webFetch{}, "url", "http://127.0.0.1:1/"), true, "127.0.0.1 is not reached: it is of this machine")
	r.want(r.run(webFetch{}, "url", "file:///etc/passwd"), true, "must begin with http")
	res := r.env.long("page", "[head]\n", strings.Repeat("x", 40<<10))
	r.want(res, false, "KiB more; all of it is in "+r.env.Spill)
	if len(res.Text) > 17<<10 {
		t.Errorf("%d bytes", len(res.Text))
	}
}

func TestDiagnostics(t *testing.T) {
	r := newRoom(t, map[string]string{"go.mod": "module x\n\ngo 1.24\n", "a.go": "package x\n\nimport \"fmt\"\n\nfunc f() { fmt.Printf(\"%d\", \"x\") }\n", "b.txt": ""})
	r.want(r.run(diagnostics{}, "path", "b.txt"), true, "no project")
	r.want(r.run(diagnostics{}, "path", "none.go"), true, "there is no file none.go")
	r.want(r.run(diagnostics{}, "path", "/etc"), true, "outside")
	e, err := diagnostics{}.Effect(r.env, json.RawMessage(`{}`))
	if _, look := exec.LookPath("go"); look != nil {
		t.Skip(look)
	}
	if err != nil || len(e.Commands) != 1 || e.Commands[0].String() != "go vet ./..." || e.Commands[0].ReadOnly {
		t.Errorf("%+v %v", e, err)
	}
	r.want(r.run(diagnostics{}, "path", "a.go"), false, "a.go:5:")
	r.write("a.go", "package x\n")
	r.want(r.run(diagnostics{}), false, "go vet ./...: nothing wrong")
}
