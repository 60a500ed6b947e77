package fields

import (
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/server/chat"
)

type thing struct {
	name  string
	size  int
	ratio float64
	words []string
	inner int
}

var innerTable = &Table[thing]{Name: "inner", IgnoreUnknown: true, Fields: []Field[thing]{
	{Name: "n", Type: Int(0, 9), Doc: "a digit", Required: true, Set: func(t *thing, v Value) error { t.inner = v.Int(); return nil }},
}}

var thingTable = &Table[thing]{Name: "thing", Fields: []Field[thing]{
	{Name: "name", Type: Enum("whale", "seal"), Doc: "which | what", Required: true, Set: func(t *thing, v Value) error { t.name = v.String(); return nil }},
	{Name: "size", Type: Int(1, 10), Doc: "how large", Set: func(t *thing, v Value) error { t.size = v.Int(); return nil }},
	{Name: "ratio", Type: Number(0, 1), Doc: "how much", Set: func(t *thing, v Value) error { t.ratio = v.Float(); return nil }},
	{Name: "words", Type: String().Or(List(String()).Len(1, 2)), Doc: "said", Set: func(t *thing, v Value) error { t.words = v.Strings(); return nil }},
	{Name: "inner", Type: Object("inner"), Doc: "inside", Set: func(t *thing, v Value) error { return innerTable.DecodeValue(v, t) }},
	{Name: "off", Type: Bool(), Use: Refused, Allow: []string{"false", `["a", 1]`}, Doc: "cannot be"},
	{Name: "tag", Type: String(), Use: Ignored, Doc: "nothing"},
}}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		body, field, say string // of the error; "": none
		kind             chat.Kind
	}{
		{`{"name":"seal"}`, "", "", 0},
		{`{"name":"seal","size":3.0,"ratio":1,"words":"a","inner":{"n":1e0,"x":2},"off":false,"tag":7}`, "", "", 0},
		{`{"name":"seal","off":[ "a",1 ],"size":null,"tag":null}`, "", "", 0},
		{`{"name":"whale","name":"seal"}`, "", "", 0},
		{``, "", "empty", chat.Invalid},
		{`{"name":"seal"`, "", "not valid JSON", chat.Invalid},
		{`{"name":"seal"} x`, "", "not valid JSON", chat.Invalid},
		{`"x"`, "", "want a JSON object", chat.Invalid},
		{"{\"name\":\"\xff\"}", "", "UTF-8", chat.Invalid},
		{`{}`, "name", "missing", chat.Invalid},
		{`{"name":null}`, "name", "missing", chat.Invalid},
		{`{"name":"bear"}`, "name", "not one of whale, seal", chat.Invalid},
		{`{"name":1}`, "name", "got a number", chat.Invalid},
		{`{"name":"seal","size":11}`, "size", "outside 1 to 10", chat.Invalid},
		{`{"name":"seal","size":1.5}`, "size", "whole number", chat.Invalid},
		{`{"name":"seal","size":1e999}`, "size", "whole number", chat.Invalid},
		{`{"name":"seal","size":"3"}`, "size", "got a string", chat.Invalid},
		{`{"name":"seal","ratio":-0.1}`, "ratio", "outside", chat.Invalid},
		{`{"name":"seal","words":[]}`, "words", "at least 1", chat.Invalid},
		{`{"name":"seal","words":["a","b","c"]}`, "words", "at most 2", chat.Invalid},
		{`{"name":"seal","words":["a",2]}`, "words[1]", "got a number", chat.Invalid},
		{`{"name":"seal","words":{}}`, "words", "got an object", chat.Invalid},
		{`{"name":"seal","inner":{"n":10}}`, "inner.n", "outside", chat.Invalid},
		{`{"name":"seal","inner":{}}`, "inner.n", "missing", chat.Invalid},
		{`{"name":"seal","off":true}`, "off", "cannot be", chat.Unsupported},
		{`{"name":"seal","sise":1}`, "sise", "did you mean size", chat.Invalid},
		{`{"name":"seal","completely":1}`, "completely", "unknown", chat.Invalid},
	} {
		var got thing
		err := thingTable.Decode([]byte(c.body), &got)
		if c.say == "" {
			if err != nil || got.name != "seal" {
				t.Errorf("%s: %v %+v", c.body, err, got)
			}
			continue
		}
		e := chat.AsError(err)
		if e == nil || e.Kind != c.kind || e.Field != c.field || !strings.Contains(e.Message(), c.say) {
			t.Errorf("%s: %v, want field %q and %q", c.body, err, c.field, c.say)
		}
	}
}

func TestDocuments(t *testing.T) {
	page := Markdown(thingTable)
	for _, want := range []string{"| `name` | whale, seal | honoured, required | which \\| what |", "| `size` | integer 1 to 10 |", "string or list of string (at most 2)", "is refused"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	s := Schema(thingTable)
	if s["additionalProperties"] != false || len(s["properties"].(map[string]any)) != len(thingTable.Fields) {
		t.Errorf("%v", s)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"seal","words":["a"],"inner":{"n":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var got thing
		if err := thingTable.Decode(body, &got); err == nil && (got.name == "" || len(got.words) > 2 || got.size > 10) {
			t.Errorf("accepted %s as %+v", body, got)
		}
	})
}
