package chat_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// collect reads a stream to its end.
func collect(
	t *testing.T,
	s *chat.Stream,
) (text, reasoning string, calls []chat.Call, finish []chat.Delta, done chat.Delta) {
	t.Helper()
	for d := range s.All() {
		switch d.Kind {
		case chat.TextDelta:
			text += d.Text
		case chat.ReasoningDelta:
			reasoning += d.Text
		case chat.CallEnd:
			calls = append(calls, *d.Call)
		case chat.Finish:
			finish = append(finish, d)
		case chat.Done:
			done = d
		}
	}
	return
}

func run(
	t *testing.T,
	w *servertest.World,
	r *chat.Request,
) (text, reasoning string, calls []chat.Call, finish []chat.Delta, done chat.Delta) {
	t.Helper()
	r.Model = "scripted"
	s, err := w.Chat.Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, s)
}

func user(text string) []chat.Message { return []chat.Message{chat.Text(chat.User, text)} }

func TestAnswerIsTheScript(t *testing.T) {
	var seen string
	w := servertest.New(t, servertest.Options{Script: func(p string) string { seen = p; return "Grüße, 世界 🐋" }})
	text, _, _, finish, done := run(t, w, &chat.Request{Messages: user("Hi <|im_end|>")})
	if text != "Grüße, 世界 🐋" || finish[0].Reason != chat.Stop || done.Err != nil {
		t.Errorf("%q %v %+v", text, finish, done)
	}
	if want := "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n"; seen != want {
		t.Errorf("prompt %q", seen)
	}
	if done.Usage.Prompt == 0 || done.Usage.Generated != len("Grüße, 世界 🐋")+1 {
		t.Errorf("%+v", done.Usage)
	}
	n, err := w.Chat.Count(t.Context(), &chat.Request{Messages: user("Hi <|im_end|>")})
	if err != nil || n != done.Usage.Prompt {
		t.Errorf("count %d %v, want %d", n, err, done.Usage.Prompt)
	}
}

func TestReasoningAndCalls(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(string) string {
		return "<think>\nhmm\n</think>\n\nOne moment.\n" + servertest.ToolCall("add", `{"a": 1}`)
	}})
	text, reasoning, calls, finish, done := run(
		t,
		w,
		&chat.Request{Messages: user("x"), Tools: []chat.Tool{{Name: "add"}}},
	)
	if strings.TrimSpace(reasoning) != "hmm" || strings.TrimSpace(text) != "One moment." || len(calls) != 1 || calls[0].Name != "add" ||
		calls[0].ID == "" ||
		finish[0].Reason != chat.ToolCalls ||
		done.Usage.Reasoning == 0 {
		t.Errorf("%q %q %v %v %+v", text, reasoning, calls, finish, done)
	}
}

// A small model may go on with one call for as long as there is room.
func TestLoopOfCallsEnds(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(string) string {
		return servertest.ToolCall("add", `{"a": 1}`) + servertest.ToolCall("add", `{"a": 2}`) +
			strings.Repeat(servertest.ToolCall("add", `{"a": 1}`), 30)
	}})
	ask := &chat.Request{Messages: user("x"), Tools: []chat.Tool{{Name: "add"}}, Conclude: new(true)}
	_, _, calls, finish, done := run(t, w, ask)
	if len(calls) != 2 || finish[0].Reason != chat.ToolCalls || done.Err != nil || done.Usage.Concluded != 1 {
		t.Errorf("%d calls, %+v, %+v", len(calls), finish, done.Usage)
	}
	ask.Conclude = nil // what the model wrote, where nobody asked for anything else
	if _, _, calls, _, done = run(t, w, ask); len(calls) != 32 || done.Usage.Concluded != 0 {
		t.Errorf("%d calls, want all 32; %+v", len(calls), done.Usage)
	}
}

func TestStopStringsCutTextAlone(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(string) string {
		return "<think>\nEND of thought\n</think>\n\nOne END two " + servertest.ToolCall("add", `{"a": "END"}`)
	}})
	tools := []chat.Tool{{Name: "add"}}
	text, reasoning, calls, finish, done := run(
		t,
		w,
		&chat.Request{Messages: user("x"), Tools: tools, Stop: []string{"END"}},
	)
	if strings.TrimSpace(text) != "One" || !strings.Contains(reasoning, "END of") || len(calls) != 0 ||
		finish[0].Reason != chat.StopSequence || finish[0].StopString != "END" || done.Err != nil {
		t.Errorf("%q %q %v %+v", text, reasoning, calls, finish)
	}
	w.Backend.SetScript(func(string) string { return servertest.ToolCall("add", `{"a": "END"}`) })
	_, _, calls, finish, _ = run(t, w, &chat.Request{Messages: user("y"), Tools: tools, Stop: []string{"END"}})
	if len(calls) != 1 || calls[0].Arguments != `{"a": "END"}` || finish[0].Reason != chat.ToolCalls {
		t.Errorf("%v %+v", calls, finish)
	}
}

func TestLengths(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(string) string { return "0123456789" }})
	for _, c := range []struct {
		max, context int // context counts beyond the prompt
		text         string
		reason       chat.Reason
		generated    int
	}{
		{0, 0, "0123456789", chat.Stop, 11},
		{4, 0, "0123", chat.Length, 4},
		{11, 0, "0123456789", chat.Stop, 11},
		{-1, 0, "", chat.Length, 0},
		{0, 3, "012", chat.Length, 3},
		{2, 3, "01", chat.Length, 2},
	} {
		r := &chat.Request{Messages: user("x"), MaxTokens: c.max}
		n, err := w.Chat.Count(t.Context(), &chat.Request{Model: "scripted", Messages: user("x")})
		if err != nil {
			t.Fatal(err)
		}
		if c.context > 0 {
			r.Context = n + c.context
		}
		text, _, _, finish, done := run(t, w, r)
		if text != c.text || finish[0].Reason != c.reason || done.Usage.Generated != c.generated ||
			done.Usage.Prompt != n {
			t.Errorf("%+v: %q %v %+v", c, text, finish, done.Usage)
		}
	}
	_, err := w.Chat.Run(t.Context(), &chat.Request{Model: "scripted", Messages: user("x"), Context: 5})
	if e := chat.AsError(err); e == nil || e.Kind != chat.PromptTooLong || e.Context != 5 || e.Tokens < 6 {
		t.Errorf("%v", err)
	}
	_, err = w.Chat.Run(t.Context(), &chat.Request{Model: "scripted", Messages: user(strings.Repeat("x", 40000))})
	if e := chat.AsError(err); e == nil || e.Kind != chat.PromptTooLong || e.Context != 32768 || e.Tokens < 40000 {
		t.Errorf("%v", err)
	}
}

func TestThinkingBudget(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(p string) string {
		if strings.HasSuffix(p, "</think>\n\n") {
			return "Done."
		}
		return "<think>\n" + strings.Repeat("ab", 500)
	}})
	text, reasoning, _, finish, done := run(t, w, &chat.Request{Messages: user("x"), ThinkingBudget: 20})
	if strings.TrimSpace(text) != "Done." || finish[0].Reason != chat.Stop || done.Usage.Reasoning != 20 ||
		len(strings.TrimSpace(reasoning)) > 20 {
		t.Errorf("%q %q %+v %+v", text, reasoning, finish, done.Usage)
	}
	text, _, _, finish, _ = run(t, w, &chat.Request{Messages: user("x"), ThinkingBudget: 20, MaxTokens: 10})
	if text != "" || finish[0].Reason != chat.Length {
		t.Errorf("%q %+v", text, finish)
	}
}

func TestThinkingSwitch(t *testing.T) {
	var seen string
	w := servertest.New(t, servertest.Options{Script: func(p string) string { seen = p; return "ok" }})
	on, off := true, false
	for _, c := range []struct {
		r    chat.Request
		shut bool
	}{
		{chat.Request{}, false},
		{chat.Request{Thinking: &on}, false},
		{chat.Request{Thinking: &off}, true},
		{chat.Request{Effort: "none"}, true},
		{chat.Request{Effort: "high"}, false},
		{chat.Request{Effort: "high", Thinking: &off}, true},
	} {
		c.r.Messages = user("x")
		if text, _, _, _, _ := run(t, w, &c.r); text != "ok" {
			t.Errorf("%q", text)
		}
		if got := strings.HasSuffix(seen, "<think>\n\n</think>\n\n"); got != c.shut {
			t.Errorf("effort %q, thinking %v: prompt %q", c.r.Effort, c.r.Thinking, seen)
		}
	}
}

func TestForcedCalls(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(p string) string {
		switch {
		case strings.HasSuffix(p, `{"name": "add", "arguments": {`):
			return "\"a\": 1}}\n</tool_call>"
		case strings.HasSuffix(p, `{"name": "`):
			return "mul\", \"arguments\": {\"b\": 2}}\n</tool_call>"
		}
		return "I would rather talk."
	}})
	tools := []chat.Tool{{Name: "add"}, {Name: "mul"}}
	for _, c := range []struct {
		choice chat.ToolChoice
		name   string
	}{
		{chat.ToolChoice{Mode: chat.ToolNamed, Name: "add"}, "add"},
		{chat.ToolChoice{Mode: chat.ToolsRequired}, "mul"},
		{chat.ToolChoice{}, ""},
		{chat.ToolChoice{Mode: chat.ToolsNone}, ""},
	} {
		text, _, calls, finish, _ := run(t, w, &chat.Request{Messages: user("x"), Tools: tools, Choice: c.choice})
		switch {
		case c.name == "" && (len(calls) != 0 || text != "I would rather talk." || finish[0].Reason != chat.Stop):
			t.Errorf("%+v: %q %v", c.choice, text, calls)
		case c.name != "" && (len(calls) != 1 || calls[0].Name != c.name || text != "" || finish[0].Reason != chat.ToolCalls):
			t.Errorf("%+v: %q %v %v", c.choice, text, calls, finish)
		}
	}
}

// TestForcedCallCannotBeTalkedAway: a tool that must be called is called, whatever the model writes where its arguments
// should stand. A model of half a billion parameters wrote "Anna is 30".
func TestForcedCallCannotBeTalkedAway(t *testing.T) {
	tools := []chat.Tool{
		{
			Name:       "extract",
			Parameters: []byte(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
		},
	}
	for _, c := range []struct {
		script, args string
		reason       chat.Reason
	}{
		{"\"name\": \"Anna\"}}\n</tool_call>", `{"name": "Anna"}`, chat.ToolCalls},
		{"\"age\": 30}}\n</tool_call>", `{"age": 30}`, chat.ToolCalls}, // not what the schema asks for, but a call
		{"Anna is 30", `{`, chat.Length},
		{"", `{`, chat.Length},
	} {
		w := servertest.New(t, servertest.Options{Script: func(p string) string {
			if strings.HasSuffix(p, `{"name": "extract", "arguments": {`) {
				return c.script
			}
			return "Anna is 30"
		}})
		for _, choice := range []chat.ToolChoice{{Mode: chat.ToolNamed, Name: "extract"}, {Mode: chat.ToolsRequired}} {
			_, _, calls, finish, _ := run(
				t,
				w,
				&chat.Request{Messages: user("Anna is 30"), Tools: tools, Choice: choice},
			)
			if len(calls) != 1 || calls[0].Name != "extract" || calls[0].Arguments != c.args ||
				finish[0].Reason != c.reason {
				t.Errorf("%+v, %q: calls %v, ended by %v", choice, c.script, calls, finish[0].Reason)
			}
		}
	}
}

// TestTemplateThatLosesText: a message that the model would not see is an error of the client's request.
func TestTemplateThatLosesText(t *testing.T) {
	talk := []chat.Message{chat.Text(chat.User, "one"), chat.Text(chat.Assistant, "two"), chat.Text(chat.User, "three")}
	for _, c := range []struct{ template, prompt, message string }{
		{`<user>{{ messages[-1].content }}`, "", `it leaves out "one" of the message with role user`},
		{`{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}`, "<user>one<assistant>two<user>three", ""},
	} {
		prompt := ""
		w := servertest.New(
			t,
			servertest.Options{
				Checkpoint: servertest.Checkpoint{Template: c.template},
				Script:     func(p string) string { prompt = p; return "ok" },
			},
		)
		if c.message == "" {
			if run(t, w, &chat.Request{Messages: talk}); prompt != c.prompt {
				t.Errorf("prompt %q, want %q", prompt, c.prompt)
			}
			continue
		}
		_, err := w.Chat.Run(t.Context(), &chat.Request{Model: "scripted", Messages: talk})
		var e *chat.Error
		if !errors.As(err, &e) || e.Kind != chat.Invalid || !strings.Contains(e.Message(), c.message) {
			t.Errorf("error %v, want one that says %q", err, c.message)
		}
	}
}

// TestTemplateTimeIsPinned: a template that prints the time prints that of the request, and the record says which it
// was.
func TestTemplateTimeIsPinned(t *testing.T) {
	const template = `{{ strftime_now('%d %b %Y %H') }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.FixedZone("", 3600))
	for _, c := range []struct {
		template string
		now      time.Time
		prompt   string
		recorded string
	}{
		{template, now, "02 Jan 2026 15<user>x", "2026-01-02T15:04:05+01:00\n"},
		{template, time.Time{}, "<user>x", ""},
		{`{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`, now, "<user>x", "none"},
	} {
		prompt, recorded := "", "none"
		w := servertest.New(
			t,
			servertest.Options{
				Checkpoint: servertest.Checkpoint{Template: c.template},
				Script:     func(p string) string { prompt = p; return "ok" },
			},
		)
		ctx := chat.WithTrace(t.Context(), &chat.Trace{Record: func(name string, b []byte) {
			if name == "time.txt" {
				recorded = string(b)
			}
		}})
		s, err := w.Chat.Run(ctx, &chat.Request{Model: "scripted", Messages: user("x"), Now: c.now})
		if err != nil {
			t.Fatal(err)
		}
		collect(t, s)
		if !strings.HasSuffix(prompt, c.prompt) || c.recorded != "" && recorded != c.recorded {
			t.Errorf("prompt %q, recorded %q; want %q, %q", prompt, recorded, c.prompt, c.recorded)
		}
		if at, err := time.Parse(time.RFC3339+"\n", recorded); c.recorded == "" &&
			(err != nil || time.Since(at) > time.Hour) {
			t.Errorf("recorded %q", recorded)
		}
	}
}

// TestDamagedHistoryIsAnswered: calls that a client sends back as a model wrote them, empty or cut, are no reason to
// refuse.
func TestDamagedHistoryIsAnswered(t *testing.T) {
	for _, args := range []string{"", "{", `{"a": "b`, "a=b", "null"} {
		w := servertest.New(t, servertest.Options{Script: func(string) string { return "ok" }})
		text, _, _, _, done := run(t, w, &chat.Request{Tools: []chat.Tool{{Name: "add"}}, Messages: []chat.Message{
			chat.Text(
				chat.User,
				"x",
			), {Role: chat.Assistant, Calls: []chat.Call{{ID: "1", Name: "add", Arguments: args}}}, {Role: chat.ToolRole, CallID: "1", Parts: []chat.Part{{Text: "2"}}},
		}})
		if text != "ok" || done.Err != nil {
			t.Errorf("arguments %q: %q, %v", args, text, done.Err)
		}
	}
}

func TestSingleCall(t *testing.T) {
	two := servertest.ToolCall("add", `{"a": 1}`) + "\n" + servertest.ToolCall("add", `{"a": 2}`)
	w := servertest.New(t, servertest.Options{Script: func(string) string { return two }})
	for single, want := range map[bool]int{true: 1, false: 2} {
		_, _, calls, finish, _ := run(
			t,
			w,
			&chat.Request{Messages: user("x"), Tools: []chat.Tool{{Name: "add"}}, SingleCall: single},
		)
		if len(calls) != want || finish[0].Reason != chat.ToolCalls {
			t.Errorf("single %v: %v %v", single, calls, finish)
		}
	}
}

func TestCallCutByLength(t *testing.T) {
	w := servertest.New(
		t,
		servertest.Options{Script: func(string) string { return servertest.ToolCall("add", `{"a": "a long text"}`) }},
	)
	for _, single := range []bool{false, true} {
		_, _, calls, finish, _ := run(t, w, &chat.Request{
			Messages: user("x"), MaxTokens: 46, SingleCall: single, Tools: []chat.Tool{
				{Name: "add", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)},
			},
		})
		if finish[0].Reason != chat.Length || len(calls) != 1 || !calls[0].Cut || calls[0].Arguments != `{"a": "a long t` {
			t.Errorf("single %v: %+v %v", single, calls, finish)
		}
	}
}

func TestConversationsShareTheirPrefix(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(p string) string {
		if strings.Contains(p, "<tool_response>") {
			return "It is 3."
		}
		return "Let me see.\n" + servertest.ToolCall("add", `{"a": 1, "b": 2}`)
	}})
	r := &chat.Request{
		Messages: user("What is 1 + 2? " + strings.Repeat("Think well. ", 20)),
		Tools:    []chat.Tool{{Name: "add"}},
	}
	text, _, calls, _, first := run(t, w, r)
	r.Messages = append(r.Messages,
		chat.Message{Role: chat.Assistant, Parts: []chat.Part{{Text: text}}, Calls: calls},
		chat.Message{Role: chat.ToolRole, CallID: calls[0].ID, Parts: []chat.Part{{Text: "3"}}})
	text, _, calls, finish, second := run(t, w, r)
	if text != "It is 3." || len(calls) != 0 || finish[0].Reason != chat.Stop {
		t.Errorf("%q %v", text, calls)
	}
	if second.Usage.Cached < first.Usage.Prompt*9/10 {
		t.Errorf("%d of %d prompt tokens came from the cache", second.Usage.Cached, first.Usage.Prompt)
	}
}

func TestRawTexts(t *testing.T) {
	var seen string
	w := servertest.New(t, servertest.Options{Script: func(p string) string { seen = p; return "x" }})
	for _, c := range []struct {
		r    chat.Request
		want string
	}{
		{chat.Request{Prompt: "Once <|im_end|>"}, "Once <|im_end|>"},
		{chat.Request{PromptTokens: []int32{72, 105}}, "Hi"},
		{chat.Request{Prompt: "a", Suffix: "b <|fim_middle|>"}, "<|fim_prefix|>a<|fim_suffix|>b " +
			"<|fim_middle|><|fim_middle|>"},
	} {
		c.r.Raw = true
		run(t, w, &c.r)
		if seen != c.want {
			t.Errorf("%q, want %q", seen, c.want)
		}
	}
	plain, _ := w.Chat.Count(
		t.Context(),
		&chat.Request{Model: "scripted", Raw: true, Prompt: "<|im_end|>", PromptPlain: true},
	)
	control, _ := w.Chat.Count(t.Context(), &chat.Request{Model: "scripted", Raw: true, Prompt: "<|im_end|>"})
	if plain != len("<|im_end|>") || control != 1 {
		t.Errorf("%d %d", plain, control)
	}
}

func TestPromptLogProbs(t *testing.T) {
	w := servertest.New(t, servertest.Options{})
	s, err := w.Chat.Run(
		t.Context(),
		&chat.Request{
			Model:          "scripted",
			Raw:            true,
			Prompt:         "Hel",
			PromptLogProbs: true,
			LogProbs:       true,
			TopLogs:        2,
			MaxTokens:      2,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	logs := s.PromptTokens()
	var answer []chat.TokenLog
	for d := range s.All() {
		answer = append(answer, d.Tokens...)
	}
	if len(logs) != 3 || logs[0].LogProb == logs[0].LogProb || logs[2].Text != "l" || logs[2].LogProb >= 0 ||
		len(logs[1].Top) != 2 {
		t.Errorf("%+v", logs)
	}
	if len(answer) != 2 || answer[0].Text != "H" || answer[1].Offset != 1 {
		t.Errorf("%+v", answer)
	}
}

func TestSpecsBringDefaults(t *testing.T) {
	var seen string
	hot := float32(0)
	w := servertest.New(t, servertest.Options{
		Script: func(p string) string { seen = p; return "one STOP two" },
		Names: func(path string) servertest.Names {
			return servertest.Names{{
				Name: "scripted", Path: path, System: "Be kind.", Stop: []string{"STOP"}, Sampling: chat.Sampling{Temperature: &hot},
				Messages: []chat.Message{chat.Text(chat.User, "ping"), chat.Text(chat.Assistant, "pong")},
			}}
		},
	})
	text, _, _, _, _ := run(t, w, &chat.Request{Messages: user("x")})
	if text != "one " ||
		!strings.HasPrefix(
			seen,
			"<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nping<|im_end|>\n<|im_start|>assistant\npong",
		) {
		t.Errorf("%q %q", text, seen)
	}
	run(t, w, &chat.Request{Messages: append([]chat.Message{chat.Text(chat.System, "Mine.")}, user("x")...)})
	if !strings.HasPrefix(seen, "<|im_start|>system\nMine.<|im_end|>\n<|im_start|>user\nping") {
		t.Errorf("%q", seen)
	}
}

func TestContinuedAnswers(t *testing.T) {
	var seen string
	w := servertest.New(t, servertest.Options{Script: func(p string) string { seen = p; return " world" }})
	text, _, _, _, _ := run(
		t,
		w,
		&chat.Request{Messages: append(user("x"), chat.Text(chat.Assistant, "Hello")), Continue: true},
	)
	if text != " world" || !strings.HasSuffix(seen, "<|im_start|>assistant\nHello") {
		t.Errorf("%q %q", text, seen)
	}
}

func TestToolErrorsAreSaid(t *testing.T) {
	var seen string
	w := servertest.New(t, servertest.Options{Script: func(p string) string { seen = p; return "x" }})
	run(t, w, &chat.Request{Messages: append(user("x"),
		chat.Message{Role: chat.Assistant, Calls: []chat.Call{{ID: "1", Name: "add", Arguments: "{}"}}},
		chat.Message{Role: chat.ToolRole, CallID: "1", IsError: true, Parts: []chat.Part{{Text: "overflow"}}})})
	if !strings.Contains(seen, "Error: overflow") {
		t.Errorf("%q", seen)
	}
}

func TestBaseModels(t *testing.T) {
	w := servertest.New(t, servertest.Options{Checkpoint: servertest.Checkpoint{Template: "none"}})
	_, err := w.Chat.Run(t.Context(), &chat.Request{Model: "scripted", Messages: user("x")})
	if e := chat.AsError(err); e == nil || e.Kind != chat.Unsupported || e.Field != "model" {
		t.Errorf("%v", err)
	}
	if text, _, _, _, _ := run(t, w, &chat.Request{Raw: true, Prompt: "x"}); text != "Hello!" {
		t.Errorf("%q", text)
	}
}

// TestSameAnswersAlone compares answers alone with answers among others, of one and of several choices.
func TestSameAnswersAlone(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: servertest.Demo})
	hot, seed := float32(2), uint64(7)
	request := func(n int) *chat.Request {
		return &chat.Request{
			Model: "scripted", Messages: user("COUNT"), MaxTokens: 60, N: n,
			Sampling: chat.Sampling{
				Temperature: &hot,
				Seed:        &seed,
				LogitBias:   map[int32]float32{49: -25, 50: -25, 32: -25},
			},
		}
	}
	text, _, _, _, _ := run(t, w, request(1))
	done := make(chan string)
	for range 8 {
		go func() {
			s, err := w.Chat.Run(t.Context(), request(3))
			if err != nil {
				done <- err.Error()
				return
			}
			first := ""
			for d := range s.All() {
				if d.Kind == chat.TextDelta && d.Choice == 0 {
					first += d.Text
				}
			}
			done <- first
		}()
	}
	for range 8 {
		if got := <-done; got != text {
			t.Errorf("%q alone, %q among others", text, got)
		}
	}
}

// TestPromptLogProbsOfAFailedAnswer has the model fail while the first of two answers still scores the prompt and the
// second one is written already: who waits for the scores must not wait for good.
func TestPromptLogProbsOfAFailedAnswer(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(string) string { return strings.Repeat("text ", 500) }})
	prompt := strings.Repeat("prompt ", 2000)
	run(t, w, &chat.Request{Raw: true, Prompt: prompt, MaxTokens: 1}) // the second answer takes it from the cache
	w.Backend.SetDelay(time.Millisecond)
	s, err := w.Chat.Run(
		t.Context(),
		&chat.Request{Model: "scripted", Raw: true, Prompt: prompt, N: 2, PromptLogProbs: true, LogProbs: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		d, ok := s.Next()
		if !ok {
			t.Fatal("no text came")
		}
		if d.Kind == chat.TextDelta {
			if d.Choice == 0 {
				t.Fatal("the answer that scores the prompt came first")
			}
			break
		}
	}
	w.Backend.SetFail(func(string, int) error { return servertest.ErrScripted })
	got := make(chan []chat.TokenLog, 1)
	go func() { got <- s.PromptTokens() }()
	select {
	case logs := <-got:
		if logs != nil {
			t.Errorf("%d scores of a prompt that was not computed", len(logs))
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting for the scores")
	}
	if _, _, _, _, done := collect(t, s); done.Err == nil {
		t.Error("no error")
	}
}

// TestErrorsSayThingsOnce is about log rows, and about advice that is a command line.
func TestErrorsSayThingsOnce(t *testing.T) {
	long := &chat.Error{
		Kind:    chat.PromptTooLong,
		Tokens:  9120,
		Context: 8192,
		Err:     &engine.PromptTooLong{Tokens: 9120, Context: 8192},
	}
	if got := long.Error(); strings.Count(got, "9,120") != 1 {
		t.Errorf("%q", got)
	}
	for name, advised := range map[string]bool{"qwen3:4b": true, "a b": false, "a\nrm -r": false, "\x1b[31m": false} {
		if got := (&chat.Error{Kind: chat.UnknownModel, Model: name}).Advice(); strings.Contains(
			got,
			"baleen pull",
		) != advised {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// TestToolsAndCallsMustFit: tools and calls that no context holds are refused before a prompt is made of them, which
// would take minutes and gigabytes for a body of 32 MiB. What a template may leave out of JSON does not count.
func TestToolsAndCallsMustFit(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(string) string { return "ok" }})
	const n = 4 << 20
	text := strings.Repeat("x", n)
	with := func(c chat.Call) []chat.Message {
		return []chat.Message{
			chat.Text(chat.User, "x"),
			{Role: chat.Assistant, Calls: []chat.Call{c}},
			{Role: chat.ToolRole, CallID: "1", Parts: []chat.Part{{Text: "3"}}},
		}
	}
	for name, r := range map[string]*chat.Request{
		"description": {Messages: user("x"), Tools: []chat.Tool{{Name: "add", Description: text}}},
		"parameters": {
			Messages: user("x"),
			Tools:    []chat.Tool{{Name: "add", Parameters: []byte(`{"type":"object","description":"` + text + `"}`)}},
		},
		"arguments": {Messages: with(chat.Call{ID: "1", Name: "add", Arguments: `{"a":"` + text + `"}`}), Tools: []chat.Tool{{Name: "add"}}},
	} {
		var e *chat.Error
		if _, err := w.Chat.Run(t.Context(), r); !errors.As(err, &e) || e.Kind != chat.PromptTooLong || !e.AtLeast {
			t.Errorf("%s: %v", name, err)
		}
	}
	blank := []byte(`{"type":"object",` + strings.Repeat(" ", n) + `"description":"` + strings.Repeat(`\u0061`, 100) + `"}`)
	if _, _, _, _, done := run(t, w, &chat.Request{Messages: user("x"), Tools: []chat.Tool{{Name: "add", Parameters: blank}}}); done.Err != nil {
		t.Error(done.Err)
	}
}
