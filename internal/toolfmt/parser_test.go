package toolfmt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// everyday are the tools of most tests.
var everyday = []Tool{
	{
		"get_weather",
		"weather",
		json.RawMessage(
			`{"type":"object","properties":{"location":{"type":"string"},"unit":{"type":"string","enum":["celsius","fahrenheit"]},"days":{"type":"integer"}},"required":["location"]}`,
		),
	},
	{
		"read_file",
		"read",
		json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["path"]}`,
		),
	},
	{
		"write_file",
		"write",
		json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`,
		),
	},
	{
		"bash",
		"shell",
		json.RawMessage(
			`{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"number"}},"required":["command"]}`,
		),
	},
	{
		"set_timer",
		"timer",
		json.RawMessage(
			`{"type":"object","properties":{"minutes":{"type":"integer"},"label":{"type":"string"},"loud":{"type":"boolean"}},"required":["minutes"]}`,
		),
	},
	{
		"add_todo",
		"todo",
		json.RawMessage(
			`{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}}},"required":["items"]}`,
		),
	},
	{"list_files", "list", json.RawMessage(`{"type":"object","properties":{}}`)},
}

// outcome is what a turn came to, with deltas joined.
type outcome struct {
	text, reasoning string
	calls           []string // name + arguments
	order           string   // t, r and c for what came, in order
	cut             bool
}

func (o outcome) String() string {
	return fmt.Sprintf(
		"order %q\ntext %q\nreasoning %q\ncalls %q\ncut %v",
		o.order,
		o.text,
		o.reasoning,
		o.calls,
		o.cut,
	)
}

// fold joins events and checks that they keep their rules.
func fold(t testing.TB, events []Event) outcome {
	t.Helper()
	var o outcome
	var args, text, reasoning strings.Builder
	open, n := "", 0
	add := func(c byte) {
		if o.order == "" || o.order[len(o.order)-1] != c || c == 'c' {
			o.order += string(c)
		}
	}
	for _, e := range events {
		if open != "" && e.Kind != CallArgs && e.Kind != CallEnd {
			t.Fatalf("%v inside a call", e.Kind)
		}
		switch e.Kind {
		case Text:
			text.WriteString(e.Text)
			add('t')
		case Reasoning:
			reasoning.WriteString(e.Text)
			add('r')
		case CallStart:
			if e.Index != n || e.Call == nil || e.Call.Name == "" {
				t.Fatalf("call start %+v, want index %d and a name", e, n)
			}
			open, n = e.Call.Name, n+1
			args.Reset()
			add('c')
		case CallArgs:
			if open == "" || e.Index != n-1 {
				t.Fatalf("arguments outside their call")
			}
			args.WriteString(e.Text)
		case CallEnd:
			if e.Call.Name != open || e.Call.Arguments != args.String() || e.Index != n-1 {
				t.Fatalf("call end %+v, but %s%s was streamed", e.Call, open, args.String())
			}
			if json.Valid([]byte(e.Call.Arguments)) == e.Cut || !strings.HasPrefix(e.Call.Arguments, "{") {
				t.Fatalf("arguments of a call, cut %v: %s", e.Cut, e.Call.Arguments)
			}
			o.calls = append(o.calls, open+e.Call.Arguments)
			o.cut = o.cut || e.Cut
			open = ""
		}
	}
	if open != "" {
		t.Fatalf("call of %s has no end", open)
	}
	o.text, o.reasoning = text.String(), reasoning.String()
	return o
}

// parse feeds pieces and checks that every byte went somewhere.
func parse(t testing.TB, f *Format, tools []Tool, opt Options, pieces ...string) outcome {
	t.Helper()
	p := f.NewParser(tools, opt)
	var raw, text strings.Builder
	p.trace = func(what, s string) {
		raw.WriteString(s)
		if what == "text" {
			text.WriteString(s)
		}
	}
	var events []Event
	for _, s := range pieces {
		events = append(events, p.Feed(s)...)
	}
	events = append(events, p.End()...)
	if in := strings.Join(pieces, ""); raw.String() != in {
		t.Fatalf("bytes were lost:\n in %q\nout %q", in, raw.String())
	}
	o := fold(t, events)
	sent := ""
	for _, e := range events {
		if e.Kind == Text || e.Kind == Reasoning {
			sent += e.Text
		}
	}
	if sent != text.String() {
		t.Fatalf("text %q was decided, %q was sent", text.String(), sent)
	}
	return o
}

// parseSplit parses whole, by bytes and cut in two at every place, and wants the same each time.
func parseSplit(t testing.TB, f *Format, tools []Tool, opt Options, in string) outcome {
	t.Helper()
	want := parse(t, f, tools, opt, in)
	var bytes []string
	for i := range len(in) {
		bytes = append(bytes, in[i:i+1])
	}
	if got := parse(t, f, tools, opt, bytes...); got.String() != want.String() {
		t.Fatalf("%q by bytes:\n%s\nwhole:\n%s", in, got, want)
	}
	for i := 1; i < len(in); i++ {
		if got := parse(t, f, tools, opt, in[:i], in[i:]); got.String() != want.String() {
			t.Fatalf("%q cut at %d:\n%s\nwhole:\n%s", in, i, got, want)
		}
	}
	return want
}

// formatNamed returns a family's format without a template.
func formatNamed(t testing.TB, name string) *Format {
	t.Helper()
	for i := range specs {
		if specs[i].name == name {
			f := &Format{spec: &specs[i], blocks: specs[i].blocks}
			f.think = thinkingOf(Hints{HasToken: func(string) bool { return false }}, f.spec)
			return f
		}
	}
	t.Fatalf("no format %q", name)
	return nil
}

// corpusCase is one line of testdata/*.jsonl.
type corpusCase struct {
	Note      string   `json:"note"`
	In        string   `json:"in"`
	Text      string   `json:"text"`
	Reasoning string   `json:"reasoning"`
	Calls     []string `json:"calls"`
	Cut       bool     `json:"cut"`
	Think     bool     `json:"think"` // the prompt opened reasoning
	Single    bool     `json:"single"`
	Forced    string   `json:"forced"`
}
