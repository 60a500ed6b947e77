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
			if !slices.Equal(got.calls, c.calls) || got.text != c.text || got.reasoning != c.reasoning ||
				got.cut != c.cut {
				t.Errorf(
					"%q:\n%s\nwant calls %q, text %q, reasoning %q, cut %v",
					c.in,
					got,
					c.calls,
					c.text,
					c.reasoning,
					c.cut,
				)
			}
		})
	}
}

// TestDoubledBraces: Qwen2.5-Coder's template shows its calls in doubled braces, and the model writes what it saw.
func TestDoubledBraces(t *testing.T) {
	paris := []string{`get_weather{"location": "Paris"}`}
	checkDamaged(t, "hermes", Options{}, []damaged{
		{
			note:  "outside",
			in:    "<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}}\n</tool_call>",
			calls: paris,
		},
		{
			note: "everywhere",
			in: "<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {{\"location\": " +
				"\"Paris\"}}}}\n</tool_call>",
			calls: paris,
		},
		{
			note: "inside, closed once",
			in: "<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {{\"location\": " +
				"\"Paris\"}}}\n</tool_call>",
			calls: paris,
		},
		{
			note:  "opened only",
			in:    "<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n</tool_call>",
			calls: paris,
		},
		{
			note: "on lines",
			in: "<tool_call>\n{\n{\"name\": \"get_weather\", \"arguments\": {\"location\": " +
				"\"Paris\"}}\n}\n</tool_call>",
			calls: paris,
		},
		{note: "without marks", in: `{{"name": "get_weather", "arguments": {"location": "Paris"}}}`, calls: paris},
		{
			note:  "in a fence",
			in:    "Now:\n```json\n{{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}}\n```",
			calls: paris,
			text:  "Now:",
		},
		{
			note: "two", in: "<tool_call>\n{{\"name\": \"list_files\", \"arguments\": " +
				"{}}}\n</tool_call>\n<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {\"location\": " +
				"\"Paris\"}}}\n</tool_call>\nDone",
			calls: []string{`list_files{}`, paris[0]}, text: "\nDone",
		},
		{
			note:  "no arguments",
			in:    `<tool_call>{{"name": "list_files", "arguments": {{}}}}</tool_call>`,
			calls: []string{`list_files{}`},
		},
		{
			note: "a template's own",
			in:   `Write {{ "name" }} or {{name}}, {{"name": "Ann"}}.`,
			text: `Write {{ "name" }} or {{name}}, {{"name": "Ann"}}.`,
		},
		{note: "three", in: `{{{"name": "list_files"}}}`, text: `{{{"name": "list_files"}}}`},
	})
}

// TestXMLCallsAsSmallModelsWriteThem: no key is made of markup, no value holds the next argument, and what is no number
// is not handed out as one.
func TestXMLCallsAsSmallModelsWriteThem(t *testing.T) {
	call := func(body string) string {
		return "<tool_call>\n<function=get_weather>\n" + body + "\n</function>\n</tool_call>"
	}
	paris, days := []string{`get_weather{"location": "Paris"}`}, []string{`get_weather{"location": "Paris", "days": 3}`}
	const tail = "\n<parameter=days>\n3\n</parameter>"
	cases := []damaged{
		{note: "as it should be", in: call("<parameter=location>\nParis\n</parameter>" + tail), calls: days},
		{note: "no >", in: call("<parameter=location\nParis\n</parameter>" + tail), calls: days},
		{note: "no >, on one line", in: call("<parameter=location Paris</parameter>" + tail), calls: days},
		{
			note:  "no >, > in the value",
			in:    call("<parameter=location\nA > B\n</parameter>"),
			calls: []string{`get_weather{"location": "A > B"}`},
		},
		{
			note:  "no > of the second",
			in:    call("<parameter=location>\nParis\n</parameter>\n<parameter=days\n3\n</parameter>"),
			calls: days,
		},
		{
			note:  "no > of the function",
			in:    "<tool_call>\n<function=get_weather\n<parameter=location>\nParis\n</parameter>\n</function>\n</tool_call>",
			calls: paris,
		},
		{note: "no name", in: call("<parameter=>\nParis\n</parameter>"), calls: paris},
		{
			note: "no name of the second", in: call("<parameter=location>\nParis\n</parameter>\n<parameter=>\n3\n</parameter>"), cut: true,
			calls: []string{`get_weather{"location": "Paris"`},
			text:  "\n3\n</parameter>\n</function>\n</tool_call>",
		},
		{note: "spaces", in: call("<parameter = location >\nParis\n</parameter>" + tail), calls: days},
		{
			note: "spaces in the function",
			in: "<tool_call>\n<function = get_weather " +
				">\n<parameter=location>\nParis\n</parameter>\n</function>\n</tool_call>",
			calls: paris,
		},
		{
			note:  "a line break around the name",
			in:    call("<parameter=\nlocation\n>\nParis\n</parameter>" + tail),
			calls: days,
		},
		{note: "a line break in the name", in: call("<parameter=loca\ntion>\nParis\n</parameter>" + tail), calls: days},
		{
			note: "attributes",
			in: call(
				"<parameter name=\"location\">\nParis\n</parameter>\n<parameter name='days' " +
					"type=\"integer\">3</parameter>",
			),
			calls: days,
		},
		{note: "quotes", in: call("<parameter=\"location\">\nParis\n</parameter>" + tail), calls: days},
		{
			note:  "other attributes",
			in:    call("<parameter=location type=string>\nParis\n</parameter>" + tail),
			calls: days,
		},
		{note: "not closed", in: call("<parameter=location>\nParis" + tail), calls: days},
		{
			note:  "not closed, on one line",
			in:    call("<parameter=location>Paris<parameter=days>3</parameter>"),
			calls: days,
		},
		{
			note:  "a number not closed",
			in:    call("<parameter=days>\n3\n<parameter=location>\nParis\n</parameter>"),
			calls: []string{`get_weather{"days": 3, "location": "Paris"}`},
		},
		{
			note: "not closed, the next call is", in: call("<parameter=location>\nParis") + "\n" + call("<parameter=location>\nOslo\n</parameter>"),
			calls: []string{paris[0], `get_weather{"location": "Oslo"}`},
		},
		{
			note:  "a mention of the next",
			in:    call("<parameter=location>\nWrite <parameter=days> behind it.\n</parameter>"),
			calls: []string{`get_weather{"location": "Write <parameter=days> behind it."}`},
		},
		{
			note: "an example of calls", in: "<tool_call>\n<function=write_file>\n<parameter=path>\na.md\n</parameter>\n<parameter=content>\n<function=f>\n<parameter=path>\nx\n</parameter>\n</function>\nas above\n</parameter>\n</function>\n</tool_call>",
			calls: []string{
				`write_file{"path": "a.md", "content": "<function=f>\n<parameter=path>\nx\n</parameter>\n</function>\nas above"}`,
			},
		},
		{
			note:  "an empty number",
			in:    call("<parameter=location>\nParis\n</parameter>\n<parameter=days>\n</parameter>"),
			calls: paris,
		},
		{
			note:  "None for a number",
			in:    call("<parameter=location>\nParis\n</parameter>\n<parameter=days>\nNone\n</parameter>"),
			calls: paris,
		},
		{
			note:  "null for a number",
			in:    call("<parameter=location>\nParis\n</parameter>\n<parameter=days>null</parameter>"),
			calls: paris,
		},
		{
			note:  "null for a number that must be",
			in:    "<function=set_timer>\n<parameter=minutes>\nnull\n</parameter>\n</function>",
			calls: []string{`set_timer{"minutes": null}`},
		},
		{
			note:  "words for a number",
			in:    call("<parameter=location>\nParis\n</parameter>\n<parameter=days>\nthree\n</parameter>"),
			calls: []string{`get_weather{"location": "Paris", "days": "three"}`},
		},
		{
			note:  "None for a string",
			in:    call("<parameter=location>\nNone\n</parameter>"),
			calls: []string{`get_weather{"location": "None"}`},
		},
		{
			note:  "half of the closing tag",
			in:    "<tool_call>\n<function=get_weather>\n<parameter=location>\nParis\n</para",
			calls: []string{`get_weather{"location": "Paris`},
			cut:   true,
		},
		{
			note:  "half of the last mark",
			in:    "<function=get_weather>\n<parameter=location>\nParis\n</parameter>\n</function>\n</tool_ca",
			calls: paris,
		},
	}
	checkDamaged(t, "qwen3-coder", Options{}, cases)
	checkDamaged(t, "minimax", Options{}, []damaged{
		{
			note: "invoke",
			in: "<minimax:tool_call>\n<invoke name=\"get_weather\"\n<parameter " +
				"name=\"location\"\nParis</parameter>\n<parameter=days>3</parameter>\n</invoke>\n</minimax:tool_call>",
			calls: days,
		},
	})
}

// TestHalfMarksAreNoContent: an output that ends inside a mark, as at max_tokens, ends before it.
func TestHalfMarksAreNoContent(t *testing.T) {
	paris := []string{`get_weather{"location": "Paris"}`}
	checkDamaged(t, "glm", Options{}, []damaged{
		{note: "open", in: "<thin"},
		{note: "close", in: "<think>\nwell\n</thi", reasoning: "well"},
		{note: "call", in: "Now.\n<tool_ca", text: "Now."},
		{
			note:  "behind a call",
			in:    "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n</tool",
			calls: paris,
		},
		{
			note:  "one byte behind a call",
			in:    "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n<",
			calls: paris,
		},
		{note: "a sign of its own", in: "a <", text: "a <"},
		{note: "inside a line", in: "see <tool_ca", text: "see <tool_ca"},
		{note: "another tag", in: "x\n<title", text: "x\n<title"},
	})
	checkDamaged(t, "harmony", Options{}, []damaged{
		{note: "channel", in: "<|channel|>final<|message|>Hello<|en", text: "Hello"},
	})
}
