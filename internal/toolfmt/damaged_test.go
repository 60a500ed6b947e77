package toolfmt

import (
	"slices"
	"testing"
)

// damaged is an output as small models write it, and what it means.
type damaged struct {
	note, in  string
	calls     []string
	text      string
	reasoning string
	cut       bool
}

func checkDamaged(t *testing.T, family string, opt Options, cases []damaged) {
	t.Helper()
	f := formatNamed(t, family)
	for _, c := range cases {
		t.Run(c.note, func(t *testing.T) {
			got := parseSplit(t, f, everyday, opt, c.in)
			if !slices.Equal(got.calls, c.calls) || got.text != c.text || got.reasoning != c.reasoning || got.cut != c.cut {
				t.Errorf("%q:\n%s\nwant calls %q, text %q, reasoning %q, cut %v", c.in, got, c.calls, c.text, c.reasoning, c.cut)
			}
		})
	}
}

// TestDoubledBraces: Qwen2.5-Coder's template shows its calls in doubled braces, and the model writes what it saw.
func TestDoubledBraces(t *testing.T) {
	paris := []string{`get_weather{"location": "Paris"}`}
	checkDamaged(t, "hermes", Options{}, []damaged{
		{note: "outside", in: "<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}}\n</tool_call>", calls: paris},
		{note: "everywhere", in: "<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {{\"location\": \"Paris\"}}}}\n</tool_call>", calls: paris},
		{note: "inside, closed once", in: "<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {{\"location\": \"Paris\"}}}\n</tool_call>", calls: paris},
		{note: "opened only", in: "<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n</tool_call>", calls: paris},
		{note: "on lines", in: "<tool_call>\n{\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n}\n</tool_call>", calls: paris},
		{note: "without marks", in: `{{"name": "get_weather", "arguments": {"location": "Paris"}}}`, calls: paris},
		{note: "in a fence", in: "Now:\n```json\n{{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}}\n```", calls: paris, text: "Now:"},
		{note: "two", in: "<tool_call>\n{{\"name\": \"list_files\", \"arguments\": {}}}\n</tool_call>\n<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}}\n</tool_call>\nDone",
			calls: []string{`list_files{}`, paris[0]}, text: "\nDone"},
		{note: "no arguments", in: `<tool_call>{{"name": "list_files", "arguments": {{}}}}</tool_call>`, calls: []string{`list_files{}`}},
		{note: "a template's own", in: `Write {{ "name" }} or {{name}}, {{"name": "Ann"}}.`, text: `Write {{ "name" }} or {{name}}, {{"name": "Ann"}}.`},
		{note: "three", in: `{{{"name": "list_files"}}}`, text: `{{{"name": "list_files"}}}`},
	})
}
