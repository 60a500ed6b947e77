package toolfmt

import (
	"strings"
	"testing"
)

// FuzzParser wants that no byte is lost and that cuts change nothing, for any family and text.
func FuzzParser(f *testing.F) {
	for _, cases := range readCorpus(f) {
		for i, c := range cases {
			f.Add(c.In, uint8(i), uint16(i*7), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, in string, family uint8, cut uint16, flags uint8) {
		if len(in) > 4096 {
			return
		}
		spec := &specs[int(family)%len(specs)]
		format := formatNamed(t, spec.name)
		opt := Options{InReasoning: flags&1 != 0, SingleCall: flags&2 != 0}
		if flags&4 != 0 {
			opt.Forced = "get_weather"
		}
		tools := everyday
		if flags&8 != 0 {
			tools = nil
		}
		whole := parse(t, format, tools, opt, in)
		k := int(cut) % (len(in) + 1)
		if got := parse(t, format, tools, opt, in[:k], in[k:]); got.String() != whole.String() {
			t.Fatalf("%s: %q cut at %d:\n%s\nwhole:\n%s", spec.name, in, k, got, whole)
		}
		var bytes []string
		for i := range len(in) {
			bytes = append(bytes, in[i:i+1])
		}
		if got := parse(t, format, tools, opt, bytes...); got.String() != whole.String() {
			t.Fatalf("%s: %q by bytes:\n%s\nwhole:\n%s", spec.name, in, got, whole)
		}
		if len(whole.calls) == 0 && whole.reasoning == "" && !opt.InReasoning && !strings.Contains(in, "<") && !strings.Contains(in, "[") && whole.text != in {
			t.Fatalf("%s: text %q came out as %q", spec.name, in, whole.text)
		}
		if tools == nil && format.think.open == "" && !spec.harmony && whole.text+whole.reasoning != strings.TrimLeft(in, " \n\t\r") && whole.text != in {
			if !opt.InReasoning {
				t.Fatalf("%s: without tools %q came out as %q", spec.name, in, whole.text)
			}
		}
	})
}

// FuzzRelax wants strict JSON or a refusal, and strict JSON unchanged in meaning.
func FuzzRelax(f *testing.F) {
	for _, s := range []string{`{"a": 1,}`, `{'a': True}`, `[1 2]`, `{a: "b"c"}`, `{"a": """x"""}`, "{\"a\": \"\\d\n\"}", `[{"a":1}{"b":2}]`, `{"a":"\u12"}`, `{"a" /* x */ : 1 // y`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out, ok := relax(s)
		if ok && !validJSON(out) {
			t.Fatalf("relax(%q) = %q, which is no JSON", s, out)
		}
		trimmed := strings.Trim(s, " \n\t\r")
		if validJSON(trimmed) && trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && strings.Count(s, "[")+strings.Count(s, "{") < maxDepth && out != trimmed {
			t.Fatalf("relax(%q) = %q %v, want it unchanged", s, out, ok)
		}
	})
}
