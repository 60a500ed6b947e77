package toolfmt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

func joined(spans []chattmpl.Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

func TestConclude(t *testing.T) {
	in := func(s string) chattmpl.Span { return chattmpl.Span{Text: s, FromInput: true} }
	own := func(s string) chattmpl.Span { return chattmpl.Span{Text: s} }
	for _, c := range []struct {
		name, result, want string
		spans              []chattmpl.Span
	}{
		{"marks", "7 C", "<|user|><tool_response>\n7 C\n</tool_response>\n" + Conclusion + "<|end|><|assistant|>", []chattmpl.Span{own("<|user|><tool_response>\n"), in("7 C"), own("\n</tool_response><|end|><|assistant|>")}},
		{"marks around nothing", "", "{1}<|end|><tool_response>\n\n</tool_response>\n" + Conclusion + "<|assistant|>", []chattmpl.Span{in("{1}"), own("<|end|><tool_response>\n\n</tool_response><|assistant|>")}},
		{"no marks", "7 C", "<|tool|>7 C\n" + Conclusion + "<|end|><|assistant|>", []chattmpl.Span{own("<|tool|>"), in("7 C"), own("<|end|><|assistant|>")}},
		{"nothing behind", "7 C", "7 C\n" + Conclusion, []chattmpl.Span{in("7 C")}},
		{"no marks around nothing", " ", "", []chattmpl.Span{in("{1}"), own("<|end|><|assistant|>")}},
		{"nothing", "", "", nil},
	} {
		got, ok := Conclude(c.spans, c.result)
		if ok != (c.want != "") || joined(got) != c.want {
			t.Errorf("%s: %q %v, want %q", c.name, joined(got), ok, c.want)
		}
		for _, s := range got {
			if strings.Contains(s.Text, Conclusion) && !s.FromInput {
				t.Errorf("%s: the line may hold control tokens", c.name)
			}
		}
	}
}

func call(name, args string) Call { return Call{ID: name + args, Name: name, Arguments: args} }

// turns makes a conversation of calls, each with its result.
func turns(user string, callsAndResults ...string) []Message {
	ms := []Message{{Role: "user", Content: user}}
	for i := 0; i < len(callsAndResults); i += 3 {
		c := call(callsAndResults[i], callsAndResults[i+1])
		ms = append(
			ms,
			Message{Role: "assistant", Calls: []Call{c}},
			Message{Role: "tool", CallID: c.ID, Content: callsAndResults[i+2]},
		)
	}
	return ms
}

func TestAnswered(t *testing.T) {
	paris := `{"city": "Paris"}`
	test, edit := []string{"bash", `{"command": "make test"}`, "1 failed"}, []string{"edit", `{"path": "a.go"}`, "done"}
	fixed := append(append([]string(nil), test...), edit...)
	circle := append(append(append([]string(nil), fixed...), test...), edit...)
	for _, c := range []struct {
		name string
		ms   []Message
		call Call
		want bool
	}{
		{"again", turns("x", "get_weather", paris, "sun"), call("get_weather", `{ "city":"Paris" }`), true},
		{"other arguments", turns("x", "get_weather", paris, "sun"), call("get_weather", `{"city": "Rome"}`), false},
		{"other tool", turns("x", "get_weather", paris, "sun"), call("get_time", paris), false},
		{"order", turns("x", "f", `{"a": 1, "b": [1, 2]}`, "ok"), call("f", `{"b":[1,2],"a":1}`), true},
		{"no arguments", turns("x", "f", "", "ok"), call("f", "{}"), true},
		{"tests after an edit", turns("x", fixed...), call("bash", `{"command": "make test"}`), false},
		{"in a circle", turns("x", circle...), call("bash", `{"command": "make test"}`), true},
	} {
		a := AnsweredBy(c.ms)
		if a == nil || a.Repeats(c.call) != c.want {
			t.Errorf("%s: %+v", c.name, a)
		}
		if c.want && (!a.MayRepeat(c.call.Name, "") || !a.MayRepeat(c.call.Name, c.call.Arguments)) {
			t.Errorf("%s: it may not be a repetition", c.name)
		}
	}
	for name, ms := range map[string][]Message{
		"no messages":   nil,
		"user":          {{Role: "user"}},
		"no call":       {{Role: "user"}, {Role: "tool", Content: "x"}},
		"results alone": {{Role: "tool", Content: "x"}},
		"user spoke":    append(turns("x", "f", "{}", "ok"), Message{Role: "user"}),
	} {
		if a := AnsweredBy(ms); a != nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	noIDs := []Message{
		{Role: "user"},
		{Role: "assistant", Calls: []Call{{Name: "f", Arguments: "{}"}, {Name: "g", Arguments: "{}"}}},
		{Role: "tool", Content: "1"},
		{Role: "tool", Content: "2"},
	}
	if a := AnsweredBy(noIDs); a == nil || !a.Repeats(Call{Name: "g", Arguments: "{}"}) {
		t.Errorf("%+v", a)
	}
}

func TestStrays(t *testing.T) {
	tools := []Tool{
		{
			Name: "get_weather",
			Parameters: json.RawMessage(
				`{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["c","f"]}},"required":["city"]}`,
			),
		},
		{
			Name: "write",
			Parameters: json.RawMessage(
				`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`,
			),
		},
		{
			Name: "timer",
			Parameters: json.RawMessage(
				`{"type":"object","properties":{"minutes":{"type":"number"},"label":{"type":"string"}},"required":["minutes"]}`,
			),
		},
		{
			Name: "list",
			Parameters: json.RawMessage(
				`{"type":"object","properties":{"items":{"type":"array"}},"required":["items"]}`,
			),
		},
		{Name: "now"},
	}
	a := AnsweredBy(
		turns(
			"Weather in Paris and Rome, then read a/b.txt, a timer for 5 minutes, and list eggs and milk.",
			"get_weather",
			`{"city": "Paris", "unit": "c"}`,
			"sunny",
		),
	)
	for _, c := range []struct {
		call Call
		want bool
	}{
		{call("get_weather", `{"city": "Paris", "unit": "c"}`), true},
		{call("get_weather", `{"city": "Paris", "unit": "f"}`), true},
		{call("get_weather", `{"city": "Rome", "unit": "c"}`), false},
		{call("get_weather", `{"city": "sunny"}`), true},
		{call("write", `{"path": "a/b.txt", "content": "sunny"}`), true},
		{call("timer", `{"minutes": 5, "label": "Cooking"}`), false},
		{call("timer", `{"minutes": 25}`), true},
		{call("list", `{"items": ["eggs", "milk"]}`), false},
		{call("list", `{"items": ["eggs", "bread"]}`), true},
		{call("now", `{}`), false},
		{call("now", `[`), true},
		{call("unknown", `{}`), true},
	} {
		if got := a.Strays(c.call, tools); got != c.want {
			t.Errorf("%s %s: %v", c.call.Name, c.call.Arguments, got)
		}
	}
}

// TestMayBecome feeds calls byte by byte: a repetition may be one at each byte, another call is told from it in time.
func TestMayBecome(t *testing.T) {
	whole := Call{
		Name:      "f",
		Arguments: `{"path": "a \"b\" ü.txt", "limit": 10, "tags": ["x", {"y": null}], "deep": {"on": true}}`,
	}
	for _, same := range []string{
		whole.Arguments,
		`{"limit":10,"deep":{"on":true},"tags":["x",{"y":null}],"path":"a \"b\" \u00fc.txt"}`,
		"{\n \"tags\" : [ \"x\" , { \"y\" : null } ] , \"deep\": {\"on\": true}, \"limit\": 10, \"path\": \"a " +
			"\\\"b\\\" ü.txt\" }",
	} {
		for i := range len(same) + 1 {
			if !whole.MayBecome("f", same[:i]) {
				t.Errorf("%q may be the call", same[:i])
			}
		}
	}
	for _, other := range []string{`{"path": "b`, `{"limit": 2`, `{"limit": 10, "limit`, `{"limit": 10}`, `{"other"`, `{"tags": ["y`, `{"limit": 10 "`, whole.Arguments + "x", `x`} {
		if whole.MayBecome("f", other) {
			t.Errorf("%q is another call", other)
		}
	}
	if whole.MayBecome("g", "") {
		t.Error("another tool")
	}
}

// TestPlainCalls wants calls without the marks of their format told from those with them.
func TestPlainCalls(t *testing.T) {
	tools := []Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`)}}
	for _, c := range []struct {
		format, out string
		plain       bool
	}{
		{"hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", false},
		{"hermes", `{"name": "f", "arguments": {"a": 1}}`, true},
		{"hermes", "```json\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n```", true},
		{"hermes", "f(a=1)", true},
		{"llama3", `{"name": "f", "parameters": {"a": 1}}`, false},
		{"gemma3", "```tool_code\nf(a=1)\n```", false},
	} {
		p := formatNamed(t, c.format).NewParser(tools, Options{})
		found := 0
		for _, e := range append(p.Feed(c.out), p.End()...) {
			if e.Kind == CallStart || e.Kind == CallEnd {
				if found++; e.Plain != c.plain {
					t.Errorf("%s, %q: %v is plain: %v", c.format, c.out, e.Kind, e.Plain)
				}
			}
		}
		if found != 2 {
			t.Errorf("%s, %q: %d events", c.format, c.out, found)
		}
	}
}

func TestAttempts(t *testing.T) {
	tools := []Tool{{Name: "get_weather"}}
	for text, want := range map[string][2]bool{
		"":                                    {false, true},
		"``":                                  {false, true},
		"```json\n{\"na":                      {false, true},
		`{"name": "get_weather", "x"`:         {true, false},
		"```json\n{\"name\": \"GetWeather\"":  {true, false},
		`{"name": "Paul"`:                     {false, false},
		"It is 7 degrees.":                    {false, false},
		"```python\n":                         {false, false},
		`{` + strings.Repeat(" ", 300):        {false, false},
		`{"temperature": "get_weather", "a":`: {false, true},
	} {
		if yes, open := Attempts(text, tools); yes != want[0] || open != want[1] {
			t.Errorf("%q: %v %v", text, yes, open)
		}
	}
}
