package fields

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/baleenrun/baleen/internal/chat"
)

// valuesOf takes JSON apart with the scanner.
func valuesOf(t *testing.T, v Value) any {
	switch v.Kind() {
	case "array":
		out := []any{}
		for _, it := range v.Items() {
			out = append(out, valuesOf(t, it))
		}
		return out
	case "object":
		out := map[string]any{}
		ms, err := v.members()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			out[m.name] = valuesOf(t, m.value)
		}
		return out
	}
	var x any
	if err := json.Unmarshal(v.Raw, &x); err != nil {
		t.Fatalf("%q: %v", v.Raw, err)
	}
	return x
}

var scanned = []string{
	`[]`, `{}`, ` [ ] `, "{\n}", `[1]`, ` [ 1 , -2.5e-3 , null , true ,false ] `, `{"a":1}`, `{ "a" : 1 , "b" : [ ] }`,
	`["]",",","\"","\\","\\\"]"]`, `{"\"}":"{","a,b":{"c":"\\"}}`, `[[[[]]],{"x":[{}]}]`, `{"":"","a\u0062":1}`,
	`{"a":1,"a":2}`, "[1,\t2,\r\n3]", `["é\ud83d\ude00"]`, `[{"type":"text","text":"a: {b} [c]"},{"n":1e5}]`,
}

// FuzzScan compares what the scanner finds with encoding/json.
func FuzzScan(f *testing.F) {
	for _, s := range scanned {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want any
		if !utf8.ValidString(s) || !json.Valid([]byte(s)) ||
			json.Unmarshal([]byte(s), &want) != nil { // a number beyond float64
			return
		}
		v := Value{Raw: json.RawMessage(strings.TrimSpace(s))}
		if got := valuesOf(t, v); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
		if m, ok := want.(map[string]any); ok {
			for name, x := range m {
				got, found := v.Get(name)
				if found != (x != nil) || found && !reflect.DeepEqual(valuesOf(t, got), x) {
					t.Errorf("%q: %q is %s", s, name, got.Raw)
				}
			}
		}
	})
}

type bounded struct {
	ids   []int32
	words []string
	bias  int
}

var boundedTable = &Table[bounded]{Name: "bounded", Fields: []Field[bounded]{
	{
		Name: "ids",
		Type: String().Or(List(String())).Or(List(Int(0, 9))),
		Set:  func(b *bounded, v Value) error { b.ids = v.Int32s(); return nil },
	},
	{
		Name: "words",
		Type: List(String()).Len(0, 3),
		Set:  func(b *bounded, v Value) error { b.words = v.Strings(); return nil },
	},
	{Name: "bias", Type: Object("bias"), Set: func(b *bounded, v Value) error {
		return v.Members(func(string, Value) error { b.bias++; return nil })
	}},
	{Name: "any", Type: Any()},
}}

// TestTooManySmallThings refuses bodies by the field that has too many things in it, before anything is built of them.
func TestTooManySmallThings(t *testing.T) {
	many := func(piece string, n int) string { return strings.TrimSuffix(strings.Repeat(piece+",", n), ",") }
	for _, c := range []struct{ body, field, say string }{
		{`{"ids":[` + many("1", 5000) + `]}`, "", ""},
		{`{"ids":[` + many("1", 5001) + `]}`, "ids", "5001 elements, want at most 5000"},
		{`{"ids":[` + many(`"a"`, 5001) + `]}`, "ids", "5001 elements"},
		{`{"ids":[1,10]}`, "ids[1]", "10 is outside 0 to 9"},
		{`{"words":["a","b","c"]}`, "", ""},
		{`{"words":[` + many(`"a"`, 4) + `]}`, "words", "4 elements, want at most 3"},
		{`{"words":[1]}`, "words[0]", "got a number"},
		{`{"bias":{` + many(`"1":1`, mapEntries) + `}}`, "", ""},
		{`{"bias":{` + many(`"1":1`, mapEntries+1) + `}}`, "bias", "more than 65536 members"},
		{`{"any":[[` + many(`[]`, 72*5000) + `]]}`, "any", "more than 360000 values"},
		{`{` + many(`"any":1`, mapEntries+1) + `}`, "", "more than 65536 members"},
	} {
		var b bounded
		err := boundedTable.DecodeWithin(Limits{Tokens: 5000}, []byte(c.body), &b, nil)
		if c.field == "" && c.say == "" {
			if err != nil {
				t.Errorf("%.30s: %v", c.body, err)
			}
			continue
		}
		e := chat.AsError(err)
		if e == nil || e.Kind != chat.Invalid || e.Field != c.field || !strings.Contains(e.Message(), c.say) {
			t.Errorf("%.30s: %v, want %s: %s", c.body, err, c.field, c.say)
		}
	}
}

// TestManySmallThingsCostLittle counts what is allocated for a body that is refused.
func TestManySmallThingsCostLittle(t *testing.T) {
	for _, field := range []string{"ids", "words", "any"} {
		body := fmt.Appendf(nil, `{%q:[1%s]}`, field, strings.Repeat(",1", 1<<20))
		if n := testing.AllocsPerRun(1, func() {
			if boundedTable.Decode(body, new(bounded)) == nil {
				t.Errorf("%s: accepted", field)
			}
		}); n > 100 {
			t.Errorf("%s: %v allocations for a body that is refused", field, n)
		}
	}
}

// TestHalvesOfCharacters: an escape that is half of a surrogate pair is refused by the field's path, wherever it stands;
// decoders put U+FFFD in its place.
func TestHalvesOfCharacters(t *testing.T) {
	for _, c := range []struct{ body, path string }{
		{`{"messages": [{"content": "a"}, {"content": "x\ud800"}]}`, "messages[1].content"},
		{`{"stop": ["a", "\udc00\ud800"]}`, "stop[1]"},
		{`{"a": {"b": {"c\uD83D": 1}}}`, "a.b"},
		{`{"a": "\ud83dx"}`, "a"},
		{`{"a": 1, "b": "\ud83d\u0041"}`, "b"},
		{`{"\udfff": 1}`, ""},
		{`{"a": "\ud83d\ude00 \\\\ud800 \\\" \\\\"}`, "-"},
	} {
		at, escape := chat.LoneSurrogate([]byte(c.body))
		path := "-"
		if at >= 0 {
			path = pathTo([]byte(c.body), at)
		}
		if path != c.path {
			t.Errorf("%s: %q at %d, path %q, want %q", c.body, escape, at, path, c.path)
		}
	}
	var dst struct{}
	var e *chat.Error
	err := (&Table[struct{}]{Name: "x", IgnoreUnknown: true}).Decode([]byte(`{"a": ["\ud800"]}`), &dst)
	if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Field != "a[0]" || !strings.Contains(e.Error(), `\ud800 is half`) {
		t.Errorf("%v", err)
	}
}
