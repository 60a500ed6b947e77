package loop

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/prompt"
	"github.com/baleenrun/baleen/internal/agent/tool"
	"github.com/baleenrun/baleen/internal/chat"
	modelpkg "github.com/baleenrun/baleen/internal/model"
)

// TestRealTools: scripted models with the real tools and permissions.
func TestRealTools(t *testing.T) {
	deny := func(Approval) Answer { return Answer{Reason: "not that"} }
	for _, c := range []struct {
		name   string
		mode   perm.Mode
		files  map[string]string
		says   []string
		answer func(Approval) Answer
		nobody bool
		want   []string // in the results, in order
		file   string   // what a.txt is then; "": as before
	}{
		{
			name: "read, edit", mode: perm.ModeAcceptEdits, files: map[string]string{"a.txt": "package a\n\nvar x = 1\n"},
			says: []string{`call:read {"path": "a.txt"}`, `call:edit {"path": "a.txt", "old": "var x = 1", "new": "var x = 2"}`},
			want: []string{"var x = 1", "edited"}, file: "package a\n\nvar x = 2\n",
		},
		{
			name: "edit but for spaces", mode: perm.ModeAcceptEdits, files: map[string]string{"a.txt": "func f() {\n\treturn  \n}\n"},
			says: []string{`call:read {"path": "a.txt"}`, `call:edit {"path": "a.txt", "old": "\treturn\n}", "new": "\treturn // done\n}"}`},
			want: []string{"return", "edited"}, file: "func f() {\n\treturn // done\n}\n",
		},
		{
			name: "search", mode: perm.ModePlan, files: map[string]string{"a.txt": "needle\n", "b/c.txt": "hay\n"},
			says: []string{`call:list {}`, `call:grep {"pattern": "need.e"}`}, want: []string{"b", "needle"},
		},
		{
			name: "plan changes nothing", mode: perm.ModePlan, files: map[string]string{"a.txt": "old\n"},
			says: []string{`call:read {"path": "a.txt"}`, `call:write {"path": "a.txt", "content": "new\n"}`, `call:bash {"command": "touch b"}`},
			want: []string{"old", "Denied: ", "Denied: "},
		},
		{
			name: "outside", mode: perm.ModeAcceptEdits, files: map[string]string{"a.txt": "old\n"}, nobody: true,
			says: []string{`call:write {"path": "../out.txt", "content": "x"}`, `call:read {"path": "/etc/shadow"}`, `call:write {"path": ".git/config", "content": "x"}`},
			want: []string{"Denied: ", "Denied: ", "Denied: "},
		},
		{
			name: "asked and denied", mode: perm.ModeAsk, files: map[string]string{"a.txt": "old\n"}, answer: deny,
			says: []string{`call:read {"path": "a.txt"}`, `call:write {"path": "a.txt", "content": "new\n"}`}, want: []string{"old", "the user says: not that"},
		},
		{
			name: "asked and allowed", mode: perm.ModeAsk, files: map[string]string{"a.txt": "old\n"},
			says: []string{`call:read {"path": "a.txt"}`, `call:write {"path": "a.txt", "content": "new\n"}`}, want: []string{"old", "written"}, file: "new\n",
		},
		{
			name: "a command that only reads", mode: perm.ModeAsk, nobody: true, files: map[string]string{"a.txt": "old\n"},
			says: []string{`call:bash {"command": "cat a.txt && pwd"}`}, want: []string{"old"},
		},
		{
			name: "a command that hides another", mode: perm.ModeAsk, nobody: true, files: map[string]string{"a.txt": "old\n"},
			says: []string{`call:bash {"command": "cat a.txt; $(echo rm) a.txt"}`}, want: []string{"Denied: "},
		},
		{
			name: "behind more_tools", mode: perm.ModeAsk, files: map[string]string{"a.txt": "old\n"},
			says: []string{`call:more_tools {}`, `call:more_tools {"tool": "nothing", "args": {}}`}, want: []string{"task", "nothing"},
		},
		{
			name: "an edit without looking", mode: perm.ModeAcceptEdits, files: map[string]string{"a.txt": "var x = 1\n"},
			says: []string{`call:edit {"path": "a.txt", "old": "var y", "new": "var z"}`, `raw:"path": "a.txt", "content": "var x = 2\n"}}</tool_call>`},
			want: []string{"written"}, file: "var x = 2\n", // what was made up was taken out of the model's sight
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{mode: c.mode, files: c.files, core: tool.Core(), others: tool.Others(), nobody: c.nobody}, append(c.says, "Done.")...)
			if c.answer != nil {
				w.answer = c.answer
			}
			end, last := w.send("Go.")
			got := w.results()
			if end.Reason != event.Done || last != "Done." || len(got) != len(c.want) {
				t.Fatalf("%+v %q %q", end, last, got)
			}
			for i := range got {
				if !strings.Contains(got[i], c.want[i]) {
					t.Errorf("result %d is %q, want %q", i, got[i], c.want[i])
				}
			}
			if c.file == "" {
				c.file = c.files["a.txt"]
			}
			if w.read("a.txt") != c.file {
				t.Errorf("a.txt is %q, want %q", w.read("a.txt"), c.file)
			}
			if _, err := os.Stat(filepath.Join(w.root, "..", "out.txt")); err == nil {
				t.Error("a file was written outside of the workspace")
			}
		})
	}
}

// TestBehindTheBack: a file that somebody changes between is not written over.
func TestBehindTheBack(t *testing.T) {
	w := newWorld(t, setup{mode: perm.ModeAcceptEdits, files: map[string]string{"a.txt": "one\n"}, core: tool.Core()},
		`call:read {"path": "a.txt"}`, `call:write {"path": "a.txt", "content": "two\n"}`, "It was changed.")
	w.on = func(e event.Event) {
		if m, ok := e.Body.(event.Message); ok && m.Role == model.Tool && strings.Contains(m.Text, "one") {
			w.write("a.txt", "by hand, and longer\n")
		}
	}
	w.send("Go.")
	if w.read("a.txt") != "by hand, and longer\n" {
		t.Errorf("a.txt is %q; %q", w.read("a.txt"), w.results())
	}
}

// TestSecondSession: a second session in the same workspace computes only what differs: system prompt and tools are cached.
func TestSecondSession(t *testing.T) {
	w := newWorld(t, setup{core: tool.Core(), others: tool.Others(), first: "Date: today"}, "One.", "Two.")
	w.send("First task.")
	w.begin()
	w.send("Second task.")
	u := bodies[event.Usage](w)
	if first, second := u[0].Turn, u[1].Turn; first.Cached > 0 || second.Prompt-second.Cached > 100 {
		t.Errorf("%d of %d tokens were computed, after %d", second.Prompt-second.Cached, second.Prompt, first.Prompt)
	}
}

// TestAskAndEscalate: a question of the model's, and a command that needs more than the sandbox gives, reach the user as events
// and by the callbacks.
func TestAskAndEscalate(t *testing.T) {
	w := newWorld(t, setup{alone: true})
	w.o.Ask = func(_ context.Context, q tool.Question) (string, error) { return "blue, not " + q.Choices[0], nil }
	w.answer = func(q Approval) Answer {
		return Answer{Allow: strings.Contains(q.Reason, "kept it from /x") && strings.Contains(q.Call.Args, "make")}
	}
	w.begin()
	if a, err := w.o.Env.Question(t.Context(), tool.Question{Text: "Which?", Choices: []string{"red"}}); a != "blue, not red" || err != nil {
		t.Errorf("%q %v", a, err)
	}
	if !w.o.Env.Escalate(t.Context(), tool.Escalation{Command: "make", Paths: []string{"/x"}}) {
		t.Error("it was allowed, and is not")
	}
	if got := w.kinds(); got != "question question approval_asked approval_answered" {
		t.Error(got)
	}
}

// TestPromptIsStable: what a model is told is the same bytes in every run, and short.
func TestPromptIsStable(t *testing.T) {
	text := func() string {
		w := newWorld(t, setup{core: tool.Core(), others: tool.Others()})
		system, specs := w.agent.Prompt()
		b, err := json.Marshal(specs)
		if err != nil {
			t.Fatal(err)
		}
		return system + string(b)
	}
	one := text()
	if two := text(); one != two {
		t.Errorf("%s\n%s", one, two)
	}
	if len(one) > 4*prompt.MaxTokens {
		t.Errorf("%d bytes", len(one))
	}
}

// TestPromptTokens counts the system prompt with all tools as a real model sees them.
func TestPromptTokens(t *testing.T) {
	home, err := os.UserHomeDir()
	path := filepath.Join(home, ".local", "share", "baleen", "models", "qwen2.5-coder-0.5b.gguf")
	if _, e := os.Stat(path); err != nil || e != nil || os.Getenv("BALEEN_TEST_MODELS") == "" {
		t.Skip("BALEEN_TEST_MODELS is not set, or the model is not here")
	}
	svc, err := chat.OpenSingle(t.Context(), chat.Spec{Path: path}, modelpkg.Options{Context: 2048, Seqs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Pool().Close(t.Context())
	for _, parameters := range []int64{0, 1_500_000_000, 8_000_000_000} {
		w := newWorld(t, setup{core: tool.Core(), others: tool.Others()})
		_, specs := w.agent.Prompt()
		r := &chat.Request{Messages: []chat.Message{chat.Text(chat.System, prompt.System(parameters)), chat.Text(chat.User, "x")}}
		without, err := svc.Count(t.Context(), &chat.Request{Messages: []chat.Message{chat.Text(chat.System, ""), chat.Text(chat.User, "x")}})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range specs {
			r.Tools = append(r.Tools, chat.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
		}
		n, err := svc.Count(t.Context(), r)
		if t.Logf("%d tokens", n-without); err != nil || n-without > prompt.MaxTokens {
			t.Errorf("%d tokens, %d are allowed: %v", n-without, prompt.MaxTokens, err)
		}
	}
}

// TestTriesWhatItChanged: a small model that has changed a program is made to run something before it is done, once; while that
// fails it is not told to conclude, and the guard still holds.
func TestTriesWhatItChanged(t *testing.T) {
	write := `call:write {"path": "a.py", "content": "x = 2"}`
	w := newWorld(t, setup{mode: perm.ModeAcceptEdits, files: map[string]string{"a.py": "x = 1"}},
		write, "Done.", `raw:"command": "fail"}}</tool_call>`, write, write, write, write, write)
	w.answer = func(q Approval) Answer { return Answer{Allow: !q.Loop} }
	end, _ := w.send("Make x two.")
	told := 0
	for _, m := range bodies[event.Message](w) {
		if strings.Contains(m.Text, tryIt) {
			told++
		}
		if strings.Contains(m.Text, "Answer the user now") {
			t.Errorf("told to conclude: %q", m.Text)
		}
	}
	if told != 1 || end.Reason != event.Looped {
		t.Errorf("told %d times; %+v %q", told, end, w.results())
	}
}
