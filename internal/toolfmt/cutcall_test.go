package toolfmt

import (
	"slices"
	"testing"
)

// TestCutCallsAreNeverWhole cuts each output of the corpora, and those behind the prefix of a forced call, at every
// byte of what is not long. What comes out as a whole call is one that the whole output has; all else is marked as cut.
func TestCutCallsAreNeverWhole(t *testing.T) {
	for family, cases := range readCorpus(t) {
		f := formatNamed(t, family)
		check := func(opt Options, in string) {
			whole := parse(t, f, everyday, opt, in)
			for k := 0; k < len(in); k += 1 + len(in)/100 {
				p := f.NewParser(everyday, opt)
				events := p.Feed(in[:k])
				n := 0
				events = append(events, p.Cut()...)
				fold(t, events)
				for _, e := range events {
					if e.Kind != CallEnd {
						continue
					}
					if got := e.Call.Name + e.Call.Arguments; !e.Cut && (n == len(whole.calls) || whole.calls[n] != got) {
						t.Errorf("%s: %q cut at %d gave %s as whole; it is one of %q", family, in, k, got, whole.calls)
					}
					n++
				}
				if opt.Prefixed && k >= len(p.prefix) && n != 1 {
					t.Errorf("%s: %q cut at %d gave %d calls", family, in, k, n)
				}
			}
		}
		for _, c := range cases {
			check(Options{InReasoning: c.Think, SingleCall: c.Single, Forced: c.Forced}, c.In)
			if prefix, _ := f.CallPrefix("get_weather"); len(c.In) > len(prefix) && c.In[:len(prefix)] == prefix {
				check(Options{Forced: "get_weather", Prefixed: true, SingleCall: true}, c.In)
			}
		}
	}
}

// TestCutCallsKeepWhatWasWritten: nothing closes a call that was cut, and what the model wrote of it is in its
// arguments, not in the text behind it.
func TestCutCallsKeepWhatWasWritten(t *testing.T) {
	for _, c := range []struct{ note, family, rest, call string }{
		{"in a string", "hermes", `"location": "New Yo`, `get_weather{"location": "New Yo`},
		{"in an escape", "hermes", `"location": "a\u00`, `get_weather{"location": "a\u00`},
		{"behind a string", "hermes", `"location": "Oslo"`, `get_weather{"location": "Oslo"`},
		{"in a number", "hermes", `"location": "Oslo", "days": 1`, `get_weather{"location": "Oslo", "days": 1`},
		{"in a key", "hermes", `"location": "Oslo", "da`, `get_weather{"location": "Oslo", "da`},
		{"behind a comma", "hermes", `"location": "Oslo", `, `get_weather{"location": "Oslo", `},
		{"of a name that is not declared", "hermes", "\"type\": \"string\",\n  \"text\": \"", "get_weather{\"type\": \"string\", \"text\": \""},
		{"in a list", "hermes", `"x": [1, 2`, `get_weather{"x": [1, 2`},
		{"at once", "hermes", ``, `get_weather{`},
		{"of Python", "lfm2", `location="Oslo", days=1`, `get_weather{"location": "Oslo", days=1`},
		{"of Gemma", "gemma4", `location:<|"|>Oslo<|"|>,days:1`, `get_weather{"location": "Oslo", days:1`},
		{"of GLM", "glm", "<arg_key>location</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>1", "get_weather{\"location\": \"Oslo\", <arg_key>days</arg_key>\n<arg_value>1"},
		{"of XML, in a string", "qwen3-coder", "<parameter=location>\nNew Yo", `get_weather{"location": "New Yo`},
		{"of XML, in a number", "qwen3-coder", "<parameter=location>\nOslo\n</parameter>\n<parameter=days>\n1", `get_weather{"location": "Oslo", "days": 1`},
		{"of XML, in a choice", "qwen3-coder", "<parameter=unit>\ncels", `get_weather{"unit": "cels`},
		{"of XML, in a mark", "qwen3-coder", "<parameter=location>\nOslo\n</para", `get_weather{"location": "Oslo`},
		{"of XML, between", "qwen3-coder", "<parameter=location>\nOslo\n</parameter>\n", `get_weather{"location": "Oslo"`},
	} {
		f := formatNamed(t, c.family)
		prefix, _ := f.CallPrefix("get_weather")
		p := f.NewParser(everyday, Options{Forced: "get_weather", Prefixed: true})
		o := fold(t, append(p.Feed(prefix+c.rest), p.Cut()...))
		if !slices.Equal(o.calls, []string{c.call}) || o.text != "" || !o.cut {
			t.Errorf("%s: %s\nwant %s, cut", c.note, o, c.call)
		}
	}
}

// TestBracketsAroundWholeCallsMayBeMissing: a call whose arguments are whole is whole, also where the output was cut
// before the brackets around it.
func TestBracketsAroundWholeCallsMayBeMissing(t *testing.T) {
	for _, c := range []struct{ family, in, call string }{
		{"hermes", `<tool_call>{"name": "get_weather", "arguments": {"location": "Oslo"}`, `get_weather{"location": "Oslo"}`},
		{"hermes", `<tool_call>{"name": "get_weather", "arguments": {"location": "Oslo"`, ""},
		{"mistral", `[TOOL_CALLS] [{"name": "get_weather", "arguments": {"location": "Oslo"}}`, `get_weather{"location": "Oslo"}`},
		{"hermes", `<tool_call>{"name": "list_files"`, ""},
	} {
		p := formatNamed(t, c.family).NewParser(everyday, Options{})
		var got string
		for _, e := range append(p.Feed(c.in), p.Cut()...) {
			if e.Kind == CallEnd && !e.Cut {
				got = e.Call.Name + e.Call.Arguments
			}
		}
		if got != c.call {
			t.Errorf("%s gave %q, want %q", c.in, got, c.call)
		}
	}
}
