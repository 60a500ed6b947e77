package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/tool"
)

var allFamilies = []string{"hermes", "qwen3-coder", "llama3", "mistral", "harmony", "bare JSON"}

// TestWork: in each family's form, a model reads, writes and runs, and says what it did; the log and the events have it all.
func TestWork(t *testing.T) {
	for _, f := range allFamilies {
		t.Run(f, func(t *testing.T) {
			w := newWorld(t, setup{family: f, files: map[string]string{"a.txt": "old"}, first: "Date: today"},
				`call:read {"path": "a.txt"}`,
				`call:write {"path": "a.txt", "content": "new <|x|>\n"}`,
				`call:bash {"command": "go test"}`,
				"I changed a.txt.",
				"You are welcome.",
			)
			end, last := w.send("Change it.")
			if end.Reason != event.Done || last != "I changed a.txt." || w.read("a.txt") != "new <|x|>\n" && f != "qwen3-coder" {
				t.Fatalf("%+v %q %q", end, last, w.read("a.txt"))
			}
			if fmt.Sprint(end.Changed) != "[a.txt]" || end.Turns != 4 || end.Sum.Requests != 4 {
				t.Errorf("%+v", end)
			}
			if got := w.results(); !strings.HasPrefix(strings.Join(got, "|"), "old|written|ran go test") {
				t.Errorf("%q", got)
			}
			w.send("Thanks.")
			w.checkGrowth()
			if n := len(w.prompts); n != 5 || strings.Count(w.prompts[4], "Date: today") != 1 {
				t.Errorf("%d prompts", n)
			}
			u := bodies[event.Usage](w)
			for i := 1; i < len(u); i++ {
				if before := u[i-1]; u[i].Turn.Cached+64 < before.Used {
					t.Errorf("request %d: %d of %d tokens were cached", i, u[i].Turn.Cached, before.Used)
				}
			}
			if events, note, err := w.store.Read(w.log.ID); err != nil || note != "" || len(Fold(events).Messages) != len(w.agent.Messages()) {
				t.Errorf("the log: %v %q", err, note)
			}
		})
	}
}

// TestHeld: with calls held to the tools' schemas, one an answer, the same work is done, and a call that is no tool's cannot be
// written; what is asked again is forced.
func TestHeld(t *testing.T) {
	w := newWorld(t, setup{held: true, files: map[string]string{"a.txt": "old"}},
		`call:read {"path":"a.txt"}`+"\n"+`call:write {"path":"a.txt","content":"not seen"}`,
		`raw:{"name": "read", "arguments": {"path": 5, "more": "x"`,
		`raw:"path":"a.txt"}}`+"\n</tool_call>",
		"It is old.")
	end, last := w.send("What is in a.txt?")
	if r := w.results(); end.Reason != event.Done || last != "It is old." || len(r) != 2 || r[0] != "old" ||
		!strings.HasPrefix(r[1], "old\n[This is the same as before.") {
		t.Errorf("%+v %q %q", end, last, r)
	}
	if !strings.HasSuffix(w.prompts[2], `<tool_call>`+"\n"+`{"name": "read", "arguments": {`) {
		t.Errorf("the call was not forced: %q", w.prompts[2][len(w.prompts[2])-80:])
	}
	w.checkGrowth()
}

// TestOrder: what happens comes in this order.
func TestOrder(t *testing.T) {
	w := newWorld(t, setup{}, `call:write {"path": "a", "content": "x"}`, "Done.")
	w.send("Go.")
	want := "message turn message approval_asked approval_answered tool_start tool_finish message turn message end"
	if got := w.kinds(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i := 1; i < len(w.events); i++ {
		if w.events[i].Seq <= w.events[i-1].Seq {
			t.Errorf("event %d has number %d behind %d", i, w.events[i].Seq, w.events[i-1].Seq)
		}
	}
}

// TestDriftAndDamage: names that have drifted are put right, what cannot be read is asked again with a hint, and what no
// tool is is told from those there are.
func TestDriftAndDamage(t *testing.T) {
	for _, c := range []struct {
		name, says string
		result     string // what the call's result has; "": the model is asked again
		hint       string
	}{
		{"another case", `raw:<tool_call>{"name": "Read", "arguments": {"path": "a.txt"}}</tool_call>`, "text of a", ""},
		{"a prefix", `raw:<tool_call>{"name": "functions.read", "arguments": {"path": "a.txt"}}</tool_call>`, "text of a", ""},
		{"parameters", `raw:<tool_call>{"name": "read", "parameters": {"path": "a.txt"}}</tool_call>`, "text of a", ""},
		{"without marks", `raw:{"name": "read", "arguments": {"path": "a.txt"}}`, "text of a", ""},
		{"in a fence", "raw:```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.txt\"}}\n```", "text of a", ""},
		{"a comma too much", `raw:<tool_call>{"name": "read", "arguments": {"path": "a.txt",}}</tool_call>`, "text of a", ""},
		{"not closed", `raw:<tool_call>{"name": "read", "arguments": {"path": "a.txt"}}`, "text of a", ""},
		{"single quotes", `raw:<tool_call>{'name': 'read', 'arguments': {'path': 'a.txt'}}</tool_call>`, "text of a", ""},
		{"no such tool", `raw:<tool_call>{"name": "fly", "arguments": {"to": "Rome"}}</tool_call>`, "", "That was no valid call"},
		{"no such tool, without marks", `raw:{"name": "fly", "arguments": {"to": "Rome"}}`, "", "there is no tool named fly"},
		{"no arguments", `raw:<tool_call>{"name": "bash", "arguments": {}}</tool_call>`, "bash needs a command", ""},
		{"nothing", "raw:", "", "You said nothing"},
		{"only reasoning", "raw:<think>\nHm.\n</think>\n\n", "", "You said nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{files: map[string]string{"a.txt": "text of a"}}, c.says, "Well.")
			end, last := w.send("Read a.txt.")
			if end.Reason != event.Done || last != "Well." || end.Turns != 2 {
				t.Errorf("%+v %q", end, last)
			}
			got := strings.Join(w.results(), "|")
			if c.result != "" && !strings.Contains(got, c.result) || c.result == "" && got != "" {
				t.Errorf("results %q, want %q", got, c.result)
			}
			if !strings.Contains(w.prompts[1], c.hint) {
				t.Errorf("%q is not in %q", c.hint, w.prompts[1])
			}
			w.checkGrowth()
		})
	}
}

// TestGivesUp: a model that never gets it right is not asked for ever.
func TestGivesUp(t *testing.T) {
	bad := `raw:{"name": "fly", "arguments": {}}`
	w := newWorld(t, setup{}, bad, bad, bad, bad, bad, bad, bad)
	end, _ := w.send("Fly.")
	if end.Reason != event.Looped || end.Turns < 3 || len(bodies[event.Note](w)) != 1 {
		t.Errorf("%+v", end)
	}
	w = newWorld(t, setup{}, "raw:", "raw:", "raw:", "raw:", "raw:")
	if end, _ = w.send("Say nothing."); end.Turns != 3 {
		t.Errorf("%+v", end)
	}
}

// TestDenied: the reason of a denial reaches the model, and nothing was done; without anybody to ask it is denied.
func TestDenied(t *testing.T) {
	call := `call:write {"path": "a.txt", "content": "new"}`
	for _, c := range []struct {
		name   string
		s      setup
		answer Answer
		want   string
	}{
		{"no", setup{}, Answer{}, "Denied: the user does not want this"},
		{"no, because", setup{}, Answer{Reason: "leave the file alone"}, "Denied: the user says: leave the file alone"},
		{"nobody", setup{nobody: true}, Answer{}, "there is nobody to ask"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.files = map[string]string{"a.txt": "old"}
			w := newWorld(t, c.s, call, "I cannot.")
			w.answer = func(Approval) Answer { return c.answer }
			end, _ := w.send("Change it.")
			if got := w.results(); len(got) != 1 || !strings.Contains(got[0], c.want) || w.read("a.txt") != "old" || len(end.Changed) > 0 {
				t.Errorf("%q, a.txt is %q, %+v", got, w.read("a.txt"), end)
			}
			if f := bodies[event.ToolFinish](w); len(f) != 1 || f[0].Denied == "" || len(bodies[event.ToolStart](w)) != 0 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestLoop: the same call with the same result is told to the model at the third time and asked about at the fifth; the same
// call with other results is work, whatever times they print.
func TestLoop(t *testing.T) {
	call := `call:bash {"command": "fail"}`
	many := []string{call, call, call, call, call, call, call, call, call, call, call}
	w := newWorld(t, setup{}, many...)
	w.answer = func(q Approval) Answer { return Answer{Allow: !q.Loop} }
	end, _ := w.send("Go.")
	var told []string // by the log, which has also what was taken out of a small model's sight
	for _, m := range bodies[event.Message](w) {
		if m.Role == model.Tool {
			told = append(told, m.Text)
		}
	}
	if end.Reason != event.Looped || len(told) != 5 || strings.Contains(told[1], "3 times") || !strings.Contains(told[2], "same call 3 times") {
		t.Errorf("%+v %q", end, told)
	}
	if r := w.results(); len(r) != 3 || r[0] != "exit 1" { // the second and third were taken back
		t.Errorf("%q", r)
	}
	if events, _, err := w.store.Read(w.log.ID); err != nil || len(Fold(events).Messages) != len(w.agent.Messages()) {
		t.Errorf("the log has another conversation than the session: %v", err)
	}
	w = newWorld(t, setup{}, many...) // allowed to go on: asked again at the tenth
	loops := 0
	w.answer = func(q Approval) Answer {
		if q.Loop {
			loops++
		}
		return Answer{Allow: !q.Loop || loops < 2}
	}
	if end, _ = w.send("Go."); end.Reason != event.Looped || end.Turns != 10 {
		t.Errorf("%+v", end)
	}
	w = newWorld(t, setup{budget: Budget{Turns: 30}}, many...)
	n := 0
	w.on = func(e event.Event) {
		if _, ok := e.Body.(event.ToolStart); ok {
			n++
			w.write("a.txt", fmt.Sprint(n))
		}
	}
	w.says = nil
	for range 8 {
		w.says = append(w.says, `call:read {"path": "a.txt"}`)
	}
	if end, _ = w.send("Go."); end.Reason != event.Done || len(w.results()) != 8 || strings.Contains(w.results()[7], "times") {
		t.Errorf("%+v %q", end, w.results())
	}
	var g guard
	c := model.Call{Name: "bash", Args: `{"command": "go test"}`}
	if g.count(c, "ok 0.012s", 0); g.count(model.Call{Name: "bash", Args: `{"command":"go test"}`}, "ok 1.2s", 0) != 2 {
		t.Error("times make equal results different")
	}
}

// TestBudgets end the work and say which one it was.
func TestBudgets(t *testing.T) {
	call := func(i int) string { return fmt.Sprintf(`call:bash {"command": "run %d"}`, i) }
	var many []string
	for i := range 20 {
		many = append(many, call(i))
	}
	for _, c := range []struct {
		b      Budget
		reason string
		turns  int
	}{{Budget{Turns: 3}, event.Turns, 3}, {Budget{Tokens: 1}, event.Tokens, 1}} {
		w := newWorld(t, setup{budget: c.b}, many...)
		if end, _ := w.send("Go."); end.Reason != c.reason || end.Turns != c.turns {
			t.Errorf("%+v: %+v", c.b, end)
		}
		if end, _ := w.send("Go on."); end.Turns != c.turns { // each message has its own
			t.Errorf("%+v: then %+v", c.b, end)
		}
		w.checkGrowth()
	}
	w := newWorld(t, setup{budget: Budget{Time: 1}}, many...)
	if end, _ := w.send("Go."); end.Reason != event.Time {
		t.Errorf("%+v", end)
	}
}

// TestCancel stops at once, wherever the work is, leaves no call without a result, and the session goes on afterwards.
func TestCancel(t *testing.T) {
	for _, c := range []struct {
		name string
		says string
		when func(event.Event) bool
		want string // the last result
	}{
		{"in a tool", `call:bash {"command": "sleep 100"}`, func(e event.Event) bool { _, ok := e.Body.(event.ToolOutput); return ok }, "killed"},
		{
			"in a tool, others wait", "call:bash {\"command\": \"sleep 100\"}\n" + `call:write {"path": "a", "content": "x"}`,
			func(e event.Event) bool { _, ok := e.Body.(event.ToolOutput); return ok }, "not run: stopped by the user",
		},
		{"in a tool that hangs", `call:bash {"command": "hang"}`, func(e event.Event) bool { _, ok := e.Body.(event.ToolOutput); return ok }, "stopped by the user before it ended"},
		{"in an answer", "I will now " + strings.Repeat("tell ", 100), func(e event.Event) bool { _, ok := e.Body.(event.Text); return ok }, ""},
		{"in a call", `call:write {"path": "a", "content": "` + strings.Repeat("x", 500) + `"}`, func(e event.Event) bool { _, ok := e.Body.(event.Args); return ok }, ""},
		{"in a question", `call:write {"path": "a", "content": "x"}`, func(e event.Event) bool { _, ok := e.Body.(event.Asked); return ok }, "stopped by the user before"},
		{"before anything", "Hello.", func(e event.Event) bool { _, ok := e.Body.(event.Turn); return ok }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{}, c.says)
			ctx, cancel := context.WithCancel(t.Context())
			if c.name == "in a question" {
				w.answer = func(Approval) Answer { <-t.Context().Done(); return Answer{} }
			}
			w.on = func(e event.Event) {
				if c.when(e) {
					cancel()
				}
			}
			end, _, err := w.agent.Send(ctx, "Go.")
			if err != nil || end.Reason != event.Cancelled || w.read("a") != "" {
				t.Fatalf("%+v %v", end, err)
			}
			r := w.results()
			if c.want != "" && (len(r) == 0 || !strings.Contains(r[len(r)-1], c.want)) || c.want == "" && len(r) > 0 {
				t.Errorf("%q, want %q", r, c.want)
			}
			w.on, w.says = nil, []string{"Yes."}
			if end, last := w.send("Are you there?"); end.Reason != event.Done || last != "Yes." {
				t.Errorf("then %+v %q", end, last)
			}
			w.checkGrowth()
		})
	}
}

// TestOverflow: when the context is full, a fork of the conversation, cached as far as it goes, writes a summary, the
// work goes on with it and with the user's words, and it is said.
func TestOverflow(t *testing.T) {
	big := strings.Repeat("0123456789abcdef\n", 80)
	w := newWorld(t, setup{window: 4096, files: map[string]string{"big": big}, first: "Date: today"},
		`call:read {"path": "big"}`, `call:bash {"command": "one"}`, `call:read {"path": "big"}`,
		"The user wants a haiku. big has been read.", "Here is the haiku.")
	end, last := w.send("Write a haiku about big.")
	c := bodies[event.Compaction](w)
	if end.Reason != event.Done || last != "Here is the haiku." || len(c) != 1 || c[0].Before <= c[0].After || c[0].Summary == "" {
		t.Fatalf("%+v %q %+v", end, last, c)
	}
	w.checkGrowth()
	n := len(w.prompts)
	sum, anew := w.prompts[n-2], w.prompts[n-1]
	if !strings.Contains(sum, "Write a summary") || !strings.HasPrefix(sum, w.prompts[n-3]) {
		t.Error("the summary was not asked for behind the conversation")
	}
	for _, want := range []string{"Date: today", "big has been read.", "Write a haiku about big.", "The last result of read:"} {
		if strings.Count(anew, want) != 1 {
			t.Errorf("%q stands %d times in %q", want, strings.Count(anew, want), anew)
		}
	}
	for _, e := range w.events {
		if m, ok := e.Body.(event.Text); ok && strings.Contains(m.Text, "haiku. big") {
			t.Error("the summary was shown as an answer")
		}
	}
	events, _, err := w.store.Read(w.log.ID)
	if s := Fold(events); err != nil || len(s.Messages) != len(w.agent.Messages()) || s.Known != len(s.Messages) {
		t.Errorf("the log has %d messages, the session %d", len(s.Messages), len(w.agent.Messages()))
	}
	// what does not fit even alone is refused with the numbers
	w = newWorld(t, setup{window: 4096})
	_, _, err = w.agent.Send(t.Context(), strings.Repeat("word ", 2000))
	var full *model.WindowError
	if !errors.As(err, &full) || full.Window != 4096 {
		t.Errorf("%v", err)
	}
}

// TestCutOff: an answer without an end is told to be shorter, twice.
func TestCutOff(t *testing.T) {
	long := "raw:" + strings.Repeat("on and on ", 500)
	w := newWorld(t, setup{window: 4096}, long, "They talk on and on.", "Short.")
	if end, last := w.send("Talk."); end.Reason != event.Done || last != "Short." {
		t.Errorf("%+v %q", end, last)
	}
}

// TestTitle: the title is asked for behind the conversation, which it does not change.
func TestTitle(t *testing.T) {
	w := newWorld(t, setup{titles: true}, "Hello.", "raw:\"Greeting\"", "Bye.")
	end, _ := w.send("Hi.")
	if end.Title != "Greeting" || len(w.agent.Messages()) != 2 {
		t.Errorf("%+v", end)
	}
	w.send("Bye.")
	w.checkGrowth()
	if strings.Contains(w.prompts[2], "Name this session") || len(w.prompts) != 3 {
		t.Error("the question for a title stands in the conversation")
	}
}

// TestTask: a subtask goes on from the conversation, does its work with its own turns, and only its report comes back.
func TestTask(t *testing.T) {
	w := newWorld(t, setup{files: map[string]string{"a.txt": "forty-two"}},
		`call:more {"name": "task", "arguments": {"prompt": "find the number"}}`,
		`call:read {"path": "a.txt"}`,
		`call:write {"path": "b.txt", "content": "42"}`,
		"The number is 42.",
		"It is 42.")
	w.o.More = moreFake
	w.begin()
	end, last := w.send("What number?")
	if end.Reason != event.Done || last != "It is 42." || fmt.Sprint(end.Changed) != "[b.txt]" || end.Sum.Requests != 5 {
		t.Fatalf("%+v %q %q", end, last, w.results())
	}
	if r := w.results(); len(r) != 1 || r[0] != "The number is 42." {
		t.Errorf("%q", r)
	}
	w.checkGrowth()
	if !strings.Contains(w.prompts[1], "You are now the subtask") || strings.Contains(w.prompts[4], "forty-two") {
		t.Error("the subtask's work is not apart")
	}
	sub := 0
	for _, e := range w.events {
		if e.Agent != "" {
			sub++
		}
	}
	if sub == 0 {
		t.Error("the subtask's events do not say whose they are")
	}
}

// TestSteer: what the user says meanwhile reaches the model with its next turn, and keeps it working.
func TestSteer(t *testing.T) {
	w := newWorld(t, setup{}, `call:bash {"command": "one"}`, "First done.", "Second done.")
	said := false
	w.on = func(e event.Event) {
		if m, ok := e.Body.(event.Message); ok && m.Text == "First done." && !said {
			said = true
			w.agent.Steer("And the second?")
		}
	}
	end, last := w.send("Go.")
	if end.Reason != event.Done || last != "Second done." || !strings.Contains(w.prompts[2], "And the second?") {
		t.Errorf("%+v %q", end, last)
	}
}

// TestPanic: a tool that is out of order is a failed call.
func TestPanic(t *testing.T) {
	w := newWorld(t, setup{}, `call:bash {"command": "panic"}`, "It is broken.")
	if end, _ := w.send("Go."); end.Reason != event.Done || !strings.Contains(w.results()[0], "the tool failed: out of order") {
		t.Errorf("%+v %q", end, w.results())
	}
}

// TestLostLog: nothing goes on that would not be kept.
func TestLostLog(t *testing.T) {
	w := newWorld(t, setup{}, `call:write {"path": "a", "content": "x"}`, "Done.")
	w.answer = func(Approval) Answer { w.log.Close(); return Answer{Allow: true} }
	end, _, err := w.agent.Send(t.Context(), "Go.")
	if !errors.Is(err, ErrLog) || end.Reason != event.Failed || w.read("a") != "" {
		t.Errorf("%+v %v, a is %q", end, err, w.read("a"))
	}
}

// TestBound: a long result leaves room for others, and says what was left out.
func TestBound(t *testing.T) {
	a := &Agent{window: 300}
	got := a.bound(strings.Repeat("a", 500)+strings.Repeat("z", 500), "/spill/1")
	if len(got) > 400 || !strings.HasPrefix(got, "aaa") || !strings.HasSuffix(got, "zzz") || !strings.Contains(got, "all of it is in /spill/1") {
		t.Errorf("%q", got)
	}
}

var _ tool.Tool = (*task)(nil)
