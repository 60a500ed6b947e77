package toolfmt

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	index := func(names ...string) *toolIndex {
		var tools []Tool
		for _, n := range names {
			tools = append(tools, Tool{Name: n})
		}
		return indexTools(tools)
	}
	for _, c := range []struct {
		offered []string
		written string
		want    string
	}{
		{[]string{"get_weather"}, "get_weather", "get_weather"},
		{[]string{"get_weather", "Get_Weather"}, "Get_Weather", "Get_Weather"},
		{[]string{"get_weather", "Get_Weather"}, "GET_WEATHER", ""}, // two fit
		{[]string{"get_weather"}, "GET_WEATHER", "get_weather"},
		{[]string{"get_weather"}, "functions.get_weather", "get_weather"},
		{[]string{"get_weather"}, "tools__get_weather", "get_weather"},
		{[]string{"get_weather"}, "default_api.get_weather", "get_weather"},
		{[]string{"get_weather"}, "getWeather", "get_weather"},
		{[]string{"get_weather"}, "get-weather", "get_weather"},
		{[]string{"get_weather", "getweather"}, "get-weather", ""}, // two fit
		{[]string{"get_weather"}, "weather__get_weather__v2", "get_weather"},
		{[]string{"read_file"}, "Read", "read_file"},
		{[]string{"Read"}, "read_file", "Read"},
		{[]string{"bash"}, "run_command", "bash"},
		{[]string{"bash", "shell"}, "terminal", ""}, // two synonyms are offered
		{[]string{"get_weather"}, "get_time", ""},
		{[]string{"get_weather"}, "get_weather_forecast", ""},
		{[]string{"get_weather"}, "", ""},
	} {
		got := ""
		if x := index(c.offered...).resolve(c.written); x != nil {
			got = x.name
		}
		if got != c.want {
			t.Errorf("%q of %q: got %q, want %q", c.written, c.offered, got, c.want)
		}
	}
}

func TestFits(t *testing.T) {
	tool := readTool(Tool{Name: "t", Parameters: json.RawMessage(`{"type":"object","properties":{
		"s":{"type":"string"},"n":{"type":"number"},"i":{"type":"integer"},"b":{"type":"boolean"},
		"l":{"type":"array","items":{"type":"integer"}},"o":{"type":"object"},"u":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"e":{"enum":["red","green"]},"any":{}},"required":["s"]}`)})
	for _, c := range []struct {
		args, want string
		fits       bool
	}{
		{`{"s":"x"}`, `{"s": "x"}`, true},
		{`{}`, `{}`, false},
		{`{"s":"x","z":1}`, `{"s": "x", "z": 1}`, false},
		{`{"s":7}`, `{"s": "7"}`, true},
		{`{"s":["x"]}`, `{"s": ["x"]}`, false},
		{`{"s":"x","i":"12"}`, `{"s": "x", "i": 12}`, true},
		{`{"s":"x","i":12.0}`, `{"s": "x", "i": 12}`, true},
		{`{"s":"x","i":"twelve"}`, `{"s": "x", "i": "twelve"}`, false},
		{`{"s":"x","i":1.5}`, `{"s": "x", "i": 1.5}`, false},
		{`{"s":"x","n":"1.5"}`, `{"s": "x", "n": 1.5}`, true},
		{`{"s":"x","b":"True"}`, `{"s": "x", "b": true}`, true},
		{`{"s":"x","l":"[1,2]"}`, `{"s": "x", "l": [1,2]}`, true},
		{`{"s":"x","l":["1"]}`, `{"s": "x", "l": [1]}`, true},
		{`{"s":"x","o":"{'a': 1}"}`, `{"s": "x", "o": {"a": 1}}`, true},
		{`{"s":"x","u":null}`, `{"s": "x", "u": null}`, true},
		{`{"s":"x","i":null}`, `{"s": "x", "i": null}`, true}, // left out, in other words
		{`{"s":null}`, `{"s": null}`, false},
		{`{"s":"x","e":"Red"}`, `{"s": "x", "e": "red"}`, true},
		{`{"S":"x"}`, `{"s": "x"}`, true},
		{`{"s":"x","S":"y"}`, `{"s": "x", "S": "y"}`, false},
		{`{"s":"x","any":[{}]}`, `{"s": "x", "any": [{}]}`, true},
		{`"{\"s\":\"x\"}"`, `{"s": "x"}`, true},
		{`{"s":"007"}`, `{"s": "007"}`, true}, // what is a string stays one
	} {
		ms, ok := tool.arguments(c.args)
		if !ok {
			t.Errorf("%s cannot be read", c.args)
			continue
		}
		if got := object(ms); got != c.want || tool.fits(ms) != c.fits {
			t.Errorf("%s: got %s, fits %v; want %s, %v", c.args, got, tool.fits(ms), c.want, c.fits)
		}
	}
}

// TestSilentSchemas wants calls of tools whose schemas allow anything, and not all that looks like one.
func TestSilentSchemas(t *testing.T) {
	f := formatNamed(t, "hermes")
	for _, c := range []struct {
		schema, out string
		call        string // its arguments; "": text
	}{
		{`{}`, `{"name": "look", "arguments": {"x": 1}}`, `{"x": 1}`},
		{``, `{"name": "look", "arguments": {"x": 1}}`, `{"x": 1}`},
		{`null`, `{"name": "look", "arguments": {"x": 1}}`, `{"x": 1}`},
		{`{"type":"object"}`, `{"name": "look", "arguments": {"x": [1]}}`, `{"x": [1]}`},
		{`{"type":"thing"}`, `{"name": "look", "arguments": {"x": 1}}`, `{"x": 1}`},
		{`{"type":"dict","properties":{"x":{"type":"int"}}}`, `{"name": "look", "arguments": {"x": 1, "y": 2}}`, `{"x": 1, "y": 2}`},
		{`{"type":"object","properties":{"x":{"type":"whatever"}}}`, `{"name": "look", "arguments": {"x": {"y": 2}}}`, `{"x": {"y": 2}}`},
		{`{}`, `{"name": "look", "arguments": {}}`, `{}`},
		{`{}`, `{"name": "look"}`, `{}`},
		{`{"required":["x"]}`, `{"name": "look", "arguments": {"y": 1}}`, ""},
		{`{}`, `{"name": "look", "arguments": 5}`, ""},
		{`{}`, `{"name": "look", "price": 5}`, ""},
		{`{}`, `{"look": {"price": 5}}`, ""},
		{`{"type":"object","properties":{}}`, `{"name": "look", "arguments": {"x": 1}}`, ""},
		{`{"type":"object","additionalProperties":false}`, `{"name": "look", "arguments": {"x": 1}}`, ""},
		{`{"type":"array"}`, `{"name": "look", "arguments": {"x": 1}}`, ""},
	} {
		o := parseSplit(t, f, []Tool{{Name: "look", Parameters: json.RawMessage(c.schema)}}, Options{}, c.out)
		switch {
		case c.call == "" && (len(o.calls) != 0 || o.text != c.out):
			t.Errorf("%s, %s: %v, want text", c.schema, c.out, o)
		case c.call != "" && (len(o.calls) != 1 || !sameCall(t, o.calls[0], "look"+c.call) || o.text != ""):
			t.Errorf("%s, %s: %v, want a call with %s", c.schema, c.out, o, c.call)
		}
	}
}

func TestRelax(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": 1}`:                   `{"a": 1}`,
		`{"a": [1, 2,], }`:           `{"a": [1, 2] }`,
		`{'a': 'it''s'}`:             `{"a": "it''s"}`,
		`{'a': 'say "x"'}`:           `{"a": "say \"x\""}`,
		`{a: True, b: None, c: +1}`:  `{"a": true, "b": null, "c": 1}`,
		`{"a": "\d\'\/"}`:            `{"a": "\\d'\/"}`,
		`{"a": "\u00e9\u12"}`:        `{"a": "\u00e9\\u12"}`,
		"{\"a\": \"x\ny\"}":          `{"a": "x\ny"}`,
		`{"a": "b"c"}`:               `{"a": "b\"c"}`,
		`{"a": """x "y" z"""}`:       `{"a": "x \"y\" z"}`,
		"{\"a\": `x`}":               `{"a": "x"}`,
		"{\"a\": \"x\"\n\"b\": 1}":   "{\"a\": \"x\"\n,\"b\": 1}",
		`{"a": 1 /* one */, "b": 2}`: `{"a": 1 , "b": 2}`,
		`{"a": [{"b": 1`:             `{"a": [{"b": 1}]}`,
		`{"a": {"b": "x"`:            `{"a": {"b": "x"}}`,
		`{"a": "x`:                   "",
		`{"a":`:                      "",
		`{"a": 01}`:                  "",
		`{"a": nope}`:                "",
		`{"a": 1]`:                   "",
		`{"a": 1} x`:                 "",
		`7`:                          "",
		``:                           "",
	} {
		got, ok := relax(in)
		if got != want || ok != (want != "") {
			t.Errorf("relax(%s) = %s %v, want %s", in, got, ok, want)
		}
	}
}

// TestStreams wants text out at once and calls' strings as they come.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		family string
		pieces []string
		want   []string // what is out after each piece
	}{
		{"hermes", []string{"Hel", "lo ", "wor", "ld", " <b> "}, []string{"Hel", "lo", " wor", "ld", " <b>"}},
		{"hermes", []string{"a <tool", "box>"}, []string{"a", " <toolbox>"}},
		{"hermes", []string{"x {", "\"na", "ge\": 1}"}, []string{"x", "", " {\"nage\": 1}"}},
		{"hermes", []string{"{\"name\": ", "\"Ann", "\", ", "\"age\": 3}"}, []string{"", "", "{\"name\": \"Ann\",", " \"age\": 3}"}},
		{
			"hermes",
			[]string{"<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a", ".go\", \"content\": " +
				"\"one", " two", "\"}}"},
			[]string{`[write_file]{"path": "a`, `.go", "content": "one`, ` two`, `"}`},
		},
		{"hermes", []string{"<tool_call>\n{\"name\": \"set_timer\", \"arguments\": {\"minutes\": \"1", "2\",", " \"label\": \"t"}, []string{"[set_timer]", `{"minutes": 12`, `, "label": "t`}},
		{"harmony", []string{"<|channel|>analysis<|message|>th", "ink<|en", "d|>"}, []string{"th", "ink", ""}},
		{"pythonic", []string{"get", "ting", " on"}, []string{"", "getting", " on"}},
	} {
		p := formatNamed(t, c.family).NewParser(everyday, Options{})
		for i, piece := range c.pieces {
			got := ""
			for _, e := range p.Feed(piece) {
				switch e.Kind {
				case CallStart:
					got += "[" + e.Call.Name + "]"
				case CallEnd:
				default:
					got += e.Text
				}
			}
			if got != c.want[i] {
				t.Errorf("%s %q: after %q got %q, want %q", c.family, c.pieces, piece, got, c.want[i])
				break
			}
		}
	}
}

// TestNothingToParse is the law of concatenation: without tools and marks of reasoning, text passes.
func TestNothingToParse(t *testing.T) {
	for _, in := range []string{"<tool_call>\n{\"name\": \"x\", \"arguments\": {}}\n</tool_call>", "```json\n{\"name\": \"get_weather\"}\n```\n\n", "  \n", "<think>a</think>b"} {
		p := formatNamed(t, "llama3").NewParser(nil, Options{})
		var out strings.Builder
		for i := range len(in) {
			ev := p.Feed(in[i : i+1])
			if len(ev) != 1 || ev[0].Kind != Text {
				t.Fatalf("%q: byte %d gave %v", in, i, ev)
			}
			out.WriteString(ev[0].Text)
		}
		if ev := p.End(); len(ev) != 0 || out.String() != in {
			t.Errorf("%q came out as %q and %v", in, out.String(), ev)
		}
	}
}

func TestDone(t *testing.T) {
	p := formatNamed(t, "hermes").NewParser(everyday, Options{SingleCall: true})
	p.Feed(`<tool_call>{"name": "bash", "arguments": {"command": "ls"`)
	if p.Done() || !p.InCall() {
		t.Error("done inside the call")
	}
	p.Feed("}}")
	if !p.Done() || p.Calls() != 1 {
		t.Error("not done behind the call")
	}
}

// TestInCall wants to know where calls are: from their marks to what follows them.
func TestInCall(t *testing.T) {
	for _, c := range []struct {
		text string
		in   bool
	}{
		{"", false},
		{"Let me look.", false},
		{"Let me look.\n<tool_call>", true},
		{"<tool_call>\n{\"name\": \"bash\", \"argum", true},
		{"<tool_call>\n{\"name\": \"bash\", \"arguments\": {}}", true},
		{"<tool_call>\n{\"name\": \"bash\", \"arguments\": {}}\n</tool_call>\n", true},
		{"<tool_call>\n{\"name\": \"bash\", \"arguments\": {}}\n</tool_call>\nThat is done.", false},
		{"{\"name\": \"ba", true},
		{"{\"colour\": \"red\"} is JSON.", false},
	} {
		p := formatNamed(t, "hermes").NewParser(everyday, Options{})
		for i := range len(c.text) {
			p.Feed(c.text[i : i+1])
		}
		if p.InCall() != c.in {
			t.Errorf("%q: in a call: %v", c.text, p.InCall())
		}
	}
}

// TestCallPrefix wants that what forces a call is read as its beginning.
func TestCallPrefix(t *testing.T) {
	args := map[string]string{
		"gemma4": `location:<|"|>Oslo<|"|>}`, "functiongemma": `location:<escape>Oslo<escape>}`, "lfm2": `location="Oslo")]`, "pythonic": `location="Oslo")]`,
		"gemma3": "location=\"Oslo\")\n```", "qwen3-coder": "<parameter=location>\nOslo\n</parameter>\n</function>\n</tool_call>",
		"minimax": `<parameter name="location">Oslo</parameter></invoke>`, "deepseek-dsml": `<｜DSML｜parameter name="location" string="true">Oslo</｜DSML｜parameter></｜DSML｜invoke>`,
		"glm": "<arg_key>location</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", "harmony": `{"location": "Oslo"}<|call|>`,
		"deepseek": "{\"location\": \"Oslo\"}\n```<｜tool▁call▁end｜>", "kimi": `{"location": "Oslo"}<|tool_call_end|>`,
	}
	for i := range specs {
		name := specs[i].name
		f := formatNamed(t, name)
		prefix, ok := f.CallPrefix("get_weather")
		if !ok {
			t.Errorf("%s: no prefix", name)
			continue
		}
		rest := args[name]
		if rest == "" {
			rest = `{"location": "Oslo"}}`
		}
		rest = strings.TrimPrefix(rest, "{") // it stands in the prefix
		o := parse(t, f, everyday, Options{Forced: "get_weather"}, prefix, rest)
		if len(o.calls) != 1 || !sameCall(t, o.calls[0], `get_weather{"location": "Oslo"}`) || o.text != "" {
			t.Errorf("%s: %q gave %s", name, prefix+rest, o)
		}
		for _, rest := range []string{"", "Anna is 30", rest[:len(rest)/2]} { // it is a call whatever the model writes
			o := parse(t, f, everyday, Options{Forced: "get_weather", Prefixed: true}, prefix, rest)
			if len(o.calls) != 1 ||
				rest == "Anna is 30" && (o.calls[0] != "get_weather{" || !o.cut || o.text != rest) ||
				rest == "" && o.text != "" {
				t.Errorf("%s: %q gave %s, want one call", name, prefix+rest, o)
			}
		}
		if _, ok := f.CallPrefix(""); !ok {
			t.Errorf("%s: no prefix without a name", name)
		}
	}
}

// TestPrefixedCallKeepsWhatCouldBeRead: a call that the prompt began has the arguments that are whole; a tool's schema
// does not decide whether it is a call.
func TestPrefixedCallKeepsWhatCouldBeRead(t *testing.T) {
	for _, c := range []struct{ family, rest, call, text string }{
		{"hermes", `"location": "Oslo", "days": 3, "unit" celsius}}`, `get_weather{"location": "Oslo", "days": 3, "unit\" celsius}}`, ""},
		{"llama3", `"location": "Oslo", "unit" celsius}}`, `get_weather{"location": "Oslo", "unit\" celsius}}`, ""},
		{"qwen3-coder", "<parameter=days>\n3\n</parameter>\nAnna", `get_weather{"days": 3`, "Anna"},
		{"llama3", `"days": "3"}}`, `get_weather{"days": 3}`, ""}, // the location is missing
		{"gemma3", "days=3)\n```", `get_weather{"days": 3}`, ""},
	} {
		f := formatNamed(t, c.family)
		prefix, _ := f.CallPrefix("get_weather")
		o := parseSplit(t, f, everyday, Options{Forced: "get_weather", Prefixed: true}, prefix+c.rest)
		if len(o.calls) != 1 || o.calls[0] != c.call || o.text != c.text {
			t.Errorf("%s: %q gave %s, want %s and text %q", c.family, c.rest, o, c.call, c.text)
		}
	}
}

func TestChoose(t *testing.T) {
	has := func(tokens ...string) func(string) bool {
		return func(s string) bool { return oneOf(s, tokens) }
	}
	for _, c := range []struct {
		h    Hints
		want string
	}{
		{Hints{Template: "{{ '<tool_call>' }}"}, "hermes"},
		{Hints{Template: "<|channel|>", Architecture: "llama"}, "harmony"},
		{Hints{Template: "[TOOL_CALLS]"}, "mistral"},
		{Hints{HasToken: has("[TOOL_CALLS]")}, "mistral"},
		{Hints{Template: "plain", HasToken: has("<tool_call>", "</tool_call>"), Architecture: "qwen2"}, "hermes"},
		{Hints{Architecture: "gpt-oss"}, "harmony"},
		{Hints{Architecture: "gemma3"}, "gemma3"},
		{Hints{Architecture: "llama", Name: "SmolLM2-135M-Instruct"}, "smollm"},
		{Hints{Architecture: "llama", Name: "Llama-3.2-1B"}, "llama3"},
		{Hints{Architecture: "llama"}, "json"},
		{Hints{}, "json"},
	} {
		if got := For(c.h).Name(); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.h, got, c.want)
		}
	}
	f := For(
		Hints{
			Template: "<tool_call> <think> </think>",
			HasToken: has("<tool_call>", "</tool_call>", "<think>", "</think>", "<unused>"),
		},
	)
	if got := strings.Join(f.VisibleTokens(), " "); got != "<tool_call> </tool_call> <think> </think>" {
		t.Errorf("visible: %s", got)
	}
	if !f.OpensReasoning("x<think>\n") || f.OpensReasoning("<think>\n\n</think>\n\n") {
		t.Error("OpensReasoning is wrong")
	}
}
