package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/prompt"
	"github.com/baleenrun/baleen/internal/agent/store"
	"github.com/baleenrun/baleen/internal/agent/tool"
	"github.com/baleenrun/baleen/internal/chat"
	modelpkg "github.com/baleenrun/baleen/internal/model"
)

type st struct {
	name, desc, params string
	run                func(a map[string]string) (string, string, error)
}

func (s st) Spec() tool.Spec {
	return tool.Spec{Name: s.name, Description: s.desc, Parameters: json.RawMessage(s.params)}
}
func (s st) Effect(*tool.Env, json.RawMessage) (perm.Effect, error) { return perm.Effect{}, nil }
func (s st) Run(_ context.Context, _ *tool.Env, args json.RawMessage, _ func(string)) (tool.Result, error) {
	var a map[string]string
	if err := json.Unmarshal(args, &a); err != nil {
		return tool.Result{Text: err.Error(), IsError: true}, nil
	}
	text, ch, err := s.run(a)
	if err != nil {
		return tool.Result{Text: text + "\n" + err.Error(), IsError: true}, nil
	}
	r := tool.Result{Text: text}
	if ch != "" {
		r.Changed = []string{ch}
	}
	return r, nil
}

func TestScratch(t *testing.T) {
	dir, path, task := os.Getenv("SCRATCH_DIR"), os.Getenv("SCRATCH_MODEL"), os.Getenv("SCRATCH_TASK")
	if dir == "" {
		t.Skip()
	}
	p := func(a map[string]string) string { return filepath.Join(dir, strings.TrimPrefix(a["path"], dir)) }
	sch := func(props ...string) string {
		var o []string
		for _, x := range props {
			o = append(o, fmt.Sprintf("%q:{\"type\":\"string\"}", x))
		}
		b, _ := json.Marshal(props)
		return `{"type":"object","properties":{` + strings.Join(o, ",") + `},"required":` + string(b) + `}`
	}
	core := []tool.Tool{
		st{"read", "Shows a file with line numbers.", sch("path"), func(a map[string]string) (string, string, error) {
			b, err := os.ReadFile(p(a))
			var o strings.Builder
			for i, l := range strings.Split(string(b), "\n") {
				fmt.Fprintf(&o, "%d\t%s\n", i+1, l)
			}
			return o.String(), "", err
		}},
		st{"edit", "Replaces old by new in a file. old must be copied exactly.", sch("path", "old", "new"), func(a map[string]string) (string, string, error) {
			b, err := os.ReadFile(p(a))
			if err != nil {
				return "", "", err
			}
			if strings.Count(string(b), a["old"]) != 1 {
				return "", "", errors.New("old was not found exactly once in the file; read it and copy the lines exactly")
			}
			return "edited", p(a), os.WriteFile(p(a), []byte(strings.Replace(string(b), a["old"], a["new"], 1)), 0o644)
		}},
		st{"write", "Writes a whole file.", sch("path", "content"), func(a map[string]string) (string, string, error) {
			return "written " + a["path"], p(a), os.WriteFile(p(a), []byte(a["content"]), 0o644)
		}},
		st{"bash", "Runs a shell command.", sch("command"), func(a map[string]string) (string, string, error) {
			c := exec.Command("bash", "-c", a["command"])
			c.Dir = dir
			b, err := c.CombinedOutput()
			return string(b), "", err
		}},
		st{"grep", "Searches files for a regular expression.", sch("pattern"), func(a map[string]string) (string, string, error) {
			c := exec.Command("grep", "-rnE", "--", a["pattern"], ".")
			c.Dir = dir
			b, err := c.CombinedOutput()
			return string(b), "", err
		}},
		st{"list", "Lists a folder.", sch("path"), func(a map[string]string) (string, string, error) {
			c := exec.Command("ls", p(a))
			b, err := c.CombinedOutput()
			return string(b), "", err
		}},
	}
	svc, err := chat.OpenSingle(t.Context(), chat.Spec{Path: path}, modelpkg.Options{Context: 16384, Seqs: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.NewLocal(t.Context(), svc, "", model.LocalOptions{Free: os.Getenv("SCRATCH_FREE") != ""})
	if err != nil {
		t.Fatal(err)
	}
	s := store.Open(t.TempDir())
	o := Options{
		Model: m, Env: &tool.Env{Root: dir}, Core: core, Policy: perm.New(perm.Options{}), More: func(...tool.Tool) tool.Tool { return nil },
		Budget: Budget{Turns: 25},
		First:  func() string { return prompt.First(prompt.Facts{Now: time.Now(), Root: dir}, nil) },
	}
	l, err := s.Create(Begin(o))
	if err != nil {
		t.Fatal(err)
	}
	o.Log = l
	o.Emit = func(e event.Event) {
		switch b := e.Body.(type) {
		case event.Message:
			fmt.Printf("--- %s %v\n%s\n", b.Role, b.Calls, b.Text)
		case event.Usage:
			fmt.Printf("    [%+v %.0f/s]\n", b.Turn, b.Speed)
		case event.Note, event.End, event.Error:
			fmt.Printf("=== %+v\n", b)
		}
	}
	a := New(o)
	if _, _, err := a.Send(t.Context(), task); err != nil {
		t.Fatal(err)
	}
}
