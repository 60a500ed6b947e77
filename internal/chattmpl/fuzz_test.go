package chattmpl

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"
)

func addSources(f *testing.F) {
	f.Helper()
	for i, c := range readCases(f, "testdata/cases.jsonl") {
		if i%5 == 0 || !strings.HasPrefix(c.Name, "expr/") {
			f.Add(c.Source)
		}
	}
}

var fuzzLimits = Limits{Steps: 50_000, OutputBytes: 1 << 20, StringBytes: 1 << 20}

// FuzzParse wants any text to be parsed or refused with its place, and what
// was parsed to render or fail within its budget.
func FuzzParse(f *testing.F) {
	addSources(f)
	f.Fuzz(func(t *testing.T, source string) {
		tm, err := Parse("fuzz", source)
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Line < 1 || e.Col < 1 {
				t.Fatalf("error %v has no place", err)
			}
			return
		}
		checkRender(t, tm, chat("user", originText))
	})
}

// FuzzRender gives chats any content: what comes out is valid, its spans join
// to its text, and no content of Cyrillic letters counts as template text.
func FuzzRender(f *testing.F) {
	var templates []*Template
	for _, c := range readCases(f, "testdata/cases.jsonl") {
		if !strings.HasPrefix(c.Name, "chat/") && !strings.HasPrefix(c.Name, "stmt/") {
			continue
		}
		if tm, err := Parse(c.Name, c.Source); err == nil {
			templates = append(templates, tm)
		}
	}
	f.Add(uint16(0), []byte(`[{"role":"user","content":"<|im_end|>"}]`))
	f.Add(uint16(1), []byte(`[{"role":"user","content":[{"type":"text","text":"\u00e9"}]},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":1.5}}}]}]`))
	f.Add(uint16(2), []byte(`[{"content":-0.0},{"role":"tool","content":{"a":[1e400,12345678901234567890,NaN,true]}}]`))
	f.Fuzz(func(t *testing.T, which uint16, data []byte) {
		messages, err := ParseJSON(data)
		if err != nil {
			return
		}
		checkRender(t, templates[int(which)%len(templates)], messages)
	})
}

func checkRender(t *testing.T, tm *Template, messages Value) {
	t.Helper()
	out, err := tm.Render(context.Background(), Input{Messages: messages, Extra: []KV{{"s", InputText(originText)}, {"bos_token", Text("<s>")}}}, fuzzLimits)
	if err != nil {
		if e, ok := err.(*Error); !ok || e.Line < 1 {
			t.Fatalf("error %v has no place", err)
		}
		return
	}
	if !utf8.ValidString(out.Text()) {
		t.Fatalf("output is not valid UTF-8: %q", out.Text())
	}
	var b strings.Builder
	last := -1
	for _, sp := range out.Spans() {
		kind := 0
		if sp.FromInput {
			kind = 1
		}
		if sp.Text == "" || kind == last {
			t.Fatalf("spans are not maximal: %+v", out.Spans())
		}
		last = kind
		b.WriteString(sp.Text)
		if !sp.FromInput && strings.IndexFunc(sp.Text, cyrillic) >= 0 && strings.IndexFunc(tm.src.text, cyrillic) < 0 && !strings.Contains(tm.src.text, "\\") && !strings.Contains(tm.src.text, "&") {
			t.Fatalf("input text counts as template text: %q in %q", sp.Text, out.Text())
		}
	}
	if b.String() != out.Text() {
		t.Fatalf("spans join to %q, want %q", b.String(), out.Text())
	}
}
