package baleen_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// scripted opens a model that writes what a script says.
func scripted(t *testing.T, c servertest.Checkpoint, script servertest.Script) *baleen.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scripted.gguf")
	if err := c.Write(path); err != nil {
		t.Fatal(err)
	}
	b, err := servertest.NewBackend(path, script)
	if err != nil {
		t.Fatal(err)
	}
	m, err := baleen.Open(model.WithBackend(t.Context(), b), path, &baleen.Options{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestReasoningIsNoAnswer: channels and tags are taken apart as the server does it.
func TestReasoningIsNoAnswer(t *testing.T) {
	for _, f := range servertest.Families() {
		if f.Name != "hermes" && f.Name != "harmony" {
			continue
		}
		m := scripted(t, f.Checkpoint, func(string) string { return f.Answer("Paris.") })
		s := m.NewSession("")
		a, err := baleen.Collect(s.Send(t.Context(), "capital?", nil))
		if err != nil || a.Text != "Paris." || strings.TrimSpace(a.Reasoning) != "So that is it." ||
			a.Usage.Reasoning == 0 ||
			a.Finish != baleen.FinishStop {
			t.Errorf("%s: %+v, %v", f.Name, a, err)
		}
		if got := s.Messages(); got[1].Content != "Paris." || got[1].Role != baleen.RoleAssistant {
			t.Errorf("%s: %+v", f.Name, got)
		}
	}
}

func TestSessionKeepsWhatWasSaid(t *testing.T) {
	m := openTest(t, &baleen.Options{Threads: 1})
	s := m.NewSession("")
	for range s.Send(t.Context(), "one", greedy(8)) {
		break // leaving early keeps what came so far
	}
	if got := s.Messages(); len(got) != 2 || got[0].Content != "one" || got[1].Role != baleen.RoleAssistant {
		t.Errorf("after leaving the loop: %+v", got)
	}
	if _, err := baleen.Text(s.Send(t.Context(), strings.Repeat("word ", 3000), nil)); err == nil {
		t.Error("a message beyond the context was answered")
	}
	if got := s.Messages(); len(got) != 2 {
		t.Errorf("a message that failed is part of the conversation: %d messages", len(got))
	}
	text, err := baleen.Text(s.Send(t.Context(), "two", greedy(5)))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Messages()
	if len(got) != 4 || got[3].Content != text {
		t.Errorf("the conversation is %+v, the answer was %q", got, text)
	}
	if last, total := s.Usage(); last.Generated == 0 || total.Generated < last.Generated {
		t.Errorf("usage %+v, %+v", last, total)
	}
	if n, err := s.Count(t.Context(), nil); err != nil || n < 10 {
		t.Errorf("%d tokens, %v", n, err)
	}
	for range s.Send(t.Context(), "three", greedy(5)) {
		if _, err := baleen.Text(s.Send(t.Context(), "meanwhile", nil)); !errors.Is(err, baleen.ErrBusy) {
			t.Errorf("two messages at once: %v", err)
		}
		break
	}
}

// TestSessionSendsTheModelsOwnTokens: a model of random weights writes in tokens that its tokenizer would not
// choose. The next message finds the answer in the cache nonetheless, as a template that ends turns with a control
// token allows; so does a session that was saved and loaded.
func TestSessionSendsTheModelsOwnTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.gguf")
	template := `{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}assistant:`
	if err := writeTiny(path, template); err != nil {
		t.Fatal(err)
	}
	m, err := baleen.Open(t.Context(), path, &baleen.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := m.NewSession("")
	first, err := baleen.Collect(s.Send(t.Context(), "Tell me", greedy(40)))
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := m.Tokenize(first.Text); err != nil || slices.Equal(ids, first.IDs) {
		t.Fatalf("%q is written in the tokenizer's own tokens: this tests nothing (%v)", first.Text, err)
	}
	var file bytes.Buffer
	if err := s.Save(&file); err != nil {
		t.Fatal(err)
	}
	loaded, err := m.LoadSession(&file)
	if err != nil {
		t.Fatal(err)
	}
	if _, total := loaded.Usage(); total != first.Usage {
		t.Errorf("usage %+v, want %+v", total, first.Usage)
	}
	want := first.Usage.Prompt + first.Usage.Generated
	for name, s := range map[string]*baleen.Session{"the session": s, "the loaded session": loaded} {
		again, err := baleen.Collect(s.Send(t.Context(), "more", greedy(2)))
		if err != nil {
			t.Fatal(err)
		}
		if again.Usage.Cached < want-1 {
			t.Errorf(
				"%s: %d tokens of %d were cached, want the %d of the first turn",
				name,
				again.Usage.Cached,
				again.Usage.Prompt,
				want,
			)
		}
		if got := s.Messages(); len(got) != 4 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestLoadedSessionsAreChecked(t *testing.T) {
	m := openTest(t, &baleen.Options{Threads: 1})
	for _, text := range []string{
		"", "{}", "[]", `{"version":2}`, `{"version":1,"messages":[{"role":"robot"}]}`, `{"version":1,"messages":7}`,
		`{"version":1}x`, `{"version":1}{"version":1}`,
	} {
		if _, err := m.LoadSession(strings.NewReader(text)); err == nil {
			t.Errorf("%s was loaded", text)
		}
	}
	s, err := m.LoadSession(
		strings.NewReader(`{"version":1,"messages":[{"role":"user","content":"x"}],"tokens":[1,99999999]}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := baleen.Text(s.SendMessages(t.Context(), nil, greedy(2))); err != nil {
		t.Errorf("tokens of another model: %v", err)
	}
	if _, err := m.NewSessionFrom([]baleen.Message{{Role: "robot"}}); err == nil {
		t.Error("a session of a role that there is not")
	}
}

// TestOldestTurnsAreDropped, and which; instructions and the last turn stay.
func TestOldestTurnsAreDropped(t *testing.T) {
	m := openTest(t, &baleen.Options{Threads: 1, Context: 256})
	talk := []baleen.Message{baleen.SystemMessage("Count.")}
	for _, w := range []string{"one", "two", "three", "four"} {
		talk = append(talk, baleen.UserMessage(strings.Repeat(w+" ", 20)), baleen.AssistantMessage("yes "+w))
	}
	s, err := m.NewSessionFrom(talk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := baleen.Text(s.Send(t.Context(), "five", greedy(8))); err == nil {
		t.Fatal("the conversation fits: this tests nothing")
	}
	p := greedy(8)
	p.DropOldest = true
	a, err := baleen.Collect(s.Send(t.Context(), "five", p))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Messages()
	if len(a.Dropped) == 0 || a.Dropped[0].Content != talk[1].Content || len(a.Dropped)%2 != 0 ||
		got[0].Content != "Count." ||
		got[1].Role != baleen.RoleUser ||
		len(got)+len(a.Dropped) != len(talk)+2 {
		t.Errorf("dropped %d, kept %d messages: %+v", len(a.Dropped), len(got), got)
	}
	dropped, err := s.Trim(t.Context(), 256-60, nil)
	if n, cerr := s.Count(t.Context(), nil); err != nil || cerr != nil || n > 60 || len(dropped) == 0 {
		t.Errorf("trimmed by %d to %d tokens, %v, %v", len(dropped), n, err, cerr)
	}
	before := len(s.Messages())
	var long *baleen.PromptTooLongError
	if dropped, err := s.Trim(t.Context(), 255, nil); !errors.As(err, &long) || len(dropped) != 0 ||
		len(s.Messages()) != before {
		t.Errorf("no room at all: dropped %v, %v", dropped, err)
	}
	// MaxTokens of more than the context, or a message that leaves less than is wanted, drop turns and are answered.
	for name, text := range map[string]string{"many tokens": "six", "a long message": strings.Repeat("six ", 80)} {
		s, err := m.NewSessionFrom(talk)
		if err != nil {
			t.Fatal(err)
		}
		p := greedy(1000)
		p.DropOldest = true
		for c, err := range s.Send(t.Context(), text, p) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if c.Text != "" {
				break
			}
		}
	}
	p.MaxTokens = 1000
	_, err = baleen.Text(s.Send(t.Context(), strings.Repeat("seven ", 300), p))
	if !errors.As(err, &long) || long.Context != 256 || long.Tokens <= 256 {
		t.Errorf("a message that does not fit alone: %v", err)
	}
	for _, free := range []int{-1, 256, math.MaxInt} {
		var e *baleen.ParamError
		if _, err := s.Trim(t.Context(), free, nil); !errors.As(err, &e) || e.Param != "free" {
			t.Errorf("%d tokens of 256 are to be free: %v", free, err)
		}
	}
	if dropped, err := s.Trim(t.Context(), 1, nil); err != nil || len(dropped) != 0 {
		t.Errorf("with room enough: dropped %v, %v", dropped, err)
	}
	if s, err = m.NewSessionFrom(talk); err != nil {
		t.Fatal(err)
	}
	bound := greedy(256) // more than there can be room for: it is a bound of the answer
	bound.DropOldest = true
	if _, err := baleen.Text(s.Send(t.Context(), "five", bound)); err != nil {
		t.Errorf("with a bound as large as the context: %v", err)
	}
}

// weather is a model that calls a tool for what it is asked and says what came back.
func weather(prompt string) string {
	_, result, ok := strings.Cut(prompt[strings.LastIndex(prompt, "<|im_start|>user"):], "<tool_response>\n")
	if ok {
		result, _, _ = strings.Cut(result, "\n</tool_response>")
		return "It is " + result + "."
	}
	return servertest.ToolCall("weather", `{"city": "Bergen"}`)
}

func TestSessionRunsTools(t *testing.T) {
	m := scripted(t, servertest.Checkpoint{}, weather)
	var asked []string
	tool := baleen.Tool{
		Name:       "weather",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`),
	}
	run := func(f func(context.Context, json.RawMessage) (string, error), rounds int) (baleen.Answer, []baleen.Message, []baleen.Message, error) {
		s := m.NewSession("")
		tool.Func = f
		var results []baleen.Message
		var a baleen.Answer
		var last error
		for c, err := range s.Send(t.Context(), "weather?", &baleen.Params{Tools: []baleen.Tool{tool}, MaxToolRounds: rounds}) {
			if c.Result != nil {
				results = append(results, *c.Result)
			}
			a.Text += c.Text
			if c.Call != nil {
				a.Calls = append(a.Calls, *c.Call)
			}
			if c.Finish != "" {
				a.Finish, a.Usage = c.Finish, c.Usage
			}
			last = err
		}
		return a, results, s.Messages(), last
	}
	rain := func(_ context.Context, args json.RawMessage) (string, error) {
		asked = append(asked, string(args))
		return "raining", nil
	}
	a, results, said, err := run(rain, 0)
	if err != nil || a.Text != "It is raining." || a.Finish != baleen.FinishStop || len(asked) != 1 ||
		asked[0] != `{"city": "Bergen"}` {
		t.Errorf("%+v asked %q, %v", a, asked, err)
	}
	if len(results) != 1 || results[0].CallID != a.Calls[0].ID || results[0].Content != "raining" || len(said) != 4 ||
		said[3].Content != "It is raining." {
		t.Errorf("results %+v, conversation %+v", results, said)
	}
	a, results, _, err = run(
		func(context.Context, json.RawMessage) (string, error) { return "", errors.New("the station is down") },
		0,
	)
	if err != nil || a.Text != "It is Error: the station is down." || !results[0].Failed {
		t.Errorf("a tool that fails: %+v, %+v, %v", a, results, err)
	}
	var p *baleen.PanicError
	if _, _, said, err := run(func(context.Context, json.RawMessage) (string, error) { panic("no") }, 0); !errors.As(
		err,
		&p,
	) ||
		p.Where != "Tool.Func of weather" ||
		len(said) != 2 {
		t.Errorf("a tool that panics: %v, %+v", err, said)
	}
	if a, results, said, err := run(rain, -1); err != nil || a.Finish != baleen.FinishToolCalls || len(results) != 0 ||
		len(said) != 2 {
		t.Errorf("no rounds: %+v, %+v, %v", a, said, err)
	}
	a, _, said, err = run(nil, 0)
	if err != nil || a.Finish != baleen.FinishToolCalls || len(a.Calls) != 1 {
		t.Fatalf("a tool that is not run here: %+v, %v", a, err)
	}
	s, err := m.NewSessionFrom(said)
	if err != nil {
		t.Fatal(err)
	}
	text, err := baleen.Text(
		s.SendMessages(
			t.Context(),
			[]baleen.Message{baleen.ToolMessage(a.Calls[0], "dry")},
			&baleen.Params{Tools: []baleen.Tool{tool}},
		),
	)
	if err != nil || text != "It is dry." {
		t.Errorf("with a result from outside: %q, %v", text, err)
	}
}

// TestJSONGoesRound: what is written is read again.
func TestJSONGoesRound(t *testing.T) {
	in := []baleen.Message{
		baleen.SystemMessage("s"),
		{Role: baleen.RoleUser, Parts: []baleen.Part{{Type: baleen.PartText, Text: "p"}}},
		{
			Role:      baleen.RoleAssistant,
			Reasoning: "r",
			Calls:     []baleen.Call{{ID: "1", Name: "f", Arguments: json.RawMessage(`{"a":1}`)}},
		},
		{Role: baleen.RoleTool, CallID: "1", Tool: "f", Content: "x", Failed: true},
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out []baleen.Message
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(out); err != nil || !bytes.Equal(again, b) || in[1].Text() != "p" {
		t.Errorf("%s became %s, %v", b, again, err)
	}
	p := baleen.Params{Temperature: new(0.0), TopK: new(3), Seed: new(uint64(9)), Tools: []baleen.Tool{{Name: "f"}}}
	if b, err = json.Marshal(p); err != nil || !strings.Contains(string(b), `"temperature":0`) ||
		strings.Contains(string(b), "tool_choice") {
		t.Errorf("%s, %v", b, err)
	}
}

// TestCutCallIsNoCall: a call inside of which MaxTokens ended the answer is not among the calls, no tool runs with it,
// and what the model wrote of it is kept, in the conversation too.
func TestCutCallIsNoCall(t *testing.T) {
	m := scripted(t, servertest.Checkpoint{}, weather)
	ran := false
	s := m.NewSession("")
	a, err := baleen.Collect(s.Send(t.Context(), "weather?", &baleen.Params{MaxTokens: 50, Tools: []baleen.Tool{{
		Name:       "weather",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`),
		Func:       func(context.Context, json.RawMessage) (string, error) { ran = true; return "", nil },
	}}}))
	if err != nil || a.Finish != baleen.FinishLength || len(a.Calls) != 0 || ran || a.CutCall == nil ||
		*a.CutCall != (baleen.CutCall{Name: "weather", Arguments: `{"city": "Berge`}) {
		t.Fatalf("%+v %+v, ran %v, %v", a, a.CutCall, ran, err)
	}
	if said := s.Messages(); said[len(said)-1].Content != `{"name": "weather", "arguments": {"city": "Berge` {
		t.Errorf("%+v", said)
	}
	if _, err := json.Marshal(a); err != nil {
		t.Error(err)
	}
}
