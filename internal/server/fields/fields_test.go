package fields

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
)

type thing struct {
	name  string
	size  int
	ratio float64
	words []string
	inner int
}

var innerTable = &Table[thing]{Name: "inner", IgnoreUnknown: true, Fields: []Field[thing]{
	{
		Name:     "n",
		Type:     Int(0, 9),
		Doc:      "a digit",
		Required: true,
		Set:      func(t *thing, v Value) error { t.inner = v.Int(); return nil },
	},
}}

var thingTable = &Table[thing]{Name: "thing", Fields: []Field[thing]{
	{
		Name:     "name",
		Type:     Enum("whale", "seal"),
		Doc:      "which | what",
		Required: true,
		Set:      func(t *thing, v Value) error { t.name = v.String(); return nil },
	},
	{
		Name: "size",
		Type: Int(1, 10),
		Doc:  "how large",
		Set:  func(t *thing, v Value) error { t.size = v.Int(); return nil },
	},
	{Name: "seed", Type: Int(-(1 << 63), 1<<63), Doc: "any integer"},
	{Name: "exact", Type: Int(-(1 << 53), 1<<53), Doc: "any that a float holds"},
	{
		Name: "ratio",
		Type: Number(0, 1),
		Doc:  "how much",
		Set:  func(t *thing, v Value) error { t.ratio = v.Float(); return nil },
	},
	{
		Name: "words",
		Type: String().Or(List(String()).Len(1, 2)),
		Doc:  "said",
		Set:  func(t *thing, v Value) error { t.words = v.Strings(); return nil },
	},
	{
		Name: "inner",
		Type: Object("inner"),
		Doc:  "inside",
		Set:  func(t *thing, v Value) error { return innerTable.DecodeValue(v, t) },
	},
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
		{`{"name":"seal","nobody knows":null}`, "", "", 0},
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
		{`{"name":"seal","size":18446744073709551615}`, "size", "18446744073709551615 is out of range: want a whole number from 1 to 10", chat.Invalid},
		{`{"name":"seal","size":-1e30}`, "size", "out of range", chat.Invalid},
		{`{"name":"seal","seed":9223372036854775807}`, "", "", 0},
		{`{"name":"seal","seed":18446744073709551615}`, "seed", "18446744073709551615 is out of range: want a whole number from -9223372036854775808 to 9223372036854775807", chat.Invalid},
		{`{"name":"seal","seed":1e999}`, "seed", "out of range", chat.Invalid},
		{`{"name":"seal","seed":1e18}`, "seed", "write all of its digits", chat.Invalid},
		{`{"name":"seal","seed":0.5}`, "seed", "0.5 is not a whole number", chat.Invalid},
		{`{"name":"seal","exact":18446744073709551615}`, "exact", "out of range: want a whole number from -9007199254740992 to 9007199254740992", chat.Invalid},
		{`{"name":"seal","exact":9007199254740994}`, "exact", "outside -9007199254740992 to 9007199254740992", chat.Invalid},
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

// TestNotes wants what has no effect to be named, what is alike once, and what asks for nothing not at all.
func TestNotes(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"name":"seal","inner":{"n":1,"x":2,"y":null}}`, "inner.x"},
		{`{"name":"seal","tag":1}`, ""},
		{`{"name":"seal","inner":{"n":1,"\n\u00e9":2}}`, `inner.\n\u00e9`},
	} {
		var n Notes
		if err := thingTable.DecodeNoting([]byte(c.body), &thing{}, &n); err != nil || n.String() != c.want {
			t.Errorf("%s: %q %v, want %q", c.body, n.String(), err, c.want)
		}
	}
	var n Notes
	for i := range 40 {
		list := Value{Raw: []byte(`[1,2,3]`), Path: strings.Repeat("x", i), notes: &n}
		for _, v := range list.Items() {
			v.Ignore("why")
		}
	}
	if s := n.String(); !strings.HasPrefix(s, "[0] (why) and 2 alike, x[0] (why) and 2 alike, ") ||
		!strings.HasSuffix(s, ", 72 more") {
		t.Errorf("%q", s)
	}
}

func TestKeepAlive(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want time.Duration
		bad  bool
	}{
		{`5`, 5 * time.Second, false},
		{`"5"`, 5 * time.Second, false},
		{`"0"`, 0, false},
		{`"1.5"`, 1500 * time.Millisecond, false},
		{`"10m"`, 10 * time.Minute, false},
		{`-1`, -1, false},
		{`"-1"`, -1, false},
		{`"-1m"`, -1, false},
		{`"soon"`, 0, true},
		{`"NaN"`, 0, true},
	} {
		d, err := KeepAlive(Value{Raw: []byte(c.raw)})
		if (err != nil) != c.bad || err == nil && *d != c.want {
			t.Errorf("%s: %v %v", c.raw, d, err)
		}
	}
}

func TestTruncated(t *testing.T) {
	for raw, want := range map[string]uint64{
		"1.9": 1, "-1.9": 1<<64 - 1, "7": 7, "1e3": 1000, "9223372036854775807": 1<<63 - 1, "18446744073709551615": 1<<64 - 1,
		"-9223372036854775808": 1 << 63, "1e300": 1<<63 - 1, "-1e300": 1 << 63,
	} {
		if got := uint64((Value{Raw: []byte(raw)}).Truncated()); got != want {
			t.Errorf("%s: %d, want %d", raw, got, want)
		}
	}
}

// TestRefusedInPart wants the page to say refused where a value is.
func TestRefusedInPart(t *testing.T) {
	page := Markdown(&Table[thing]{Name: "parts", Fields: []Field[thing]{
		{Name: "one", Type: Int(1, 5).Only(1), Doc: "d"},
		{Name: "none", Type: String().Only(""), Doc: "d", Required: true},
		{Name: "words", Type: Object("x").Takes("text"), Doc: "d"},
		{Name: "all", Type: Bool(), Doc: "d"},
	}})
	for _, want := range []string{
		"| `one` | integer 1 to 5 | honoured: 1; else refused | d |", "| `none` | string | refused, required | d |",
		"| `words` | x | honoured: text; else refused | d |", "| `all` | boolean | honoured | d |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
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
	if !reflect.DeepEqual(s["additionalProperties"], map[string]any{"type": "null"}) ||
		len(s["properties"].(map[string]any)) != len(thingTable.Fields) {
		t.Errorf("%v", s)
	}
}

// TestTypesOfDocuments compares what types say in documents, and that saying more changes nothing of what is checked.
func TestTypesOfDocuments(t *testing.T) {
	for _, c := range []struct {
		t               Type
		want, good, bad string
	}{
		{Int(1, 5).Only(1), `{"enum":[1]}`, "5", "6"},
		{Enum("a", "b").Only("a"), `{"enum":["a"]}`, `"b"`, `"c"`},
		{String().NotEmpty(), `{"minLength":1,"type":"string"}`, `""`, "1"},
		{String().Or(List(String().Pattern("^a$")).Len(1, 2)), `{"anyOf":[{"type":"string"},{"items":{"pattern":"^a$","type":"string"},"maxItems":2,"minItems":1,"type":"array"}]}`, `["b"]`, `[]`},
		{Int(-1<<63, 1<<63), `{"maximum":9223372036854775807,"minimum":-9223372036854775808,"type":"integer"}`, "9223372036854775807", "9223372036854775808"},
		{Number(-1<<63, 1<<64), `{"maximum":18446744073709551615,"minimum":-9223372036854775808,"type":"number"}`, "18446744073709551615", "18446744073709551616"},
		{Number(-1<<63, 1), `{"maximum":1,"minimum":-9223372036854775808,"type":"number"}`, "-9223372036854775808", "-9223372036854775809"},
		{Int(0, 1<<53-1), `{"maximum":9007199254740991,"minimum":0,"type":"integer"}`, "9007199254740991", "9007199254740992"},
		{Object("thing").Where(map[string]any{"minProperties": 1}), `{"minProperties":1,"type":"object","x-object":"thing"}`, `{}`, `[]`},
	} {
		b, err := json.Marshal(c.t.Schema())
		if err != nil || string(b) != c.want {
			t.Errorf("%s, %v, want %s", b, err, c.want)
		}
		if err := c.t.check(Value{Raw: []byte(c.good)}); err != nil {
			t.Errorf("%s: %s: %v", c.want, c.good, err)
		}
		if c.t.check(Value{Raw: []byte(c.bad)}) == nil {
			t.Errorf("%s: %s is accepted", c.want, c.bad)
		}
	}
}

func TestCheckText(t *testing.T) {
	for _, c := range []struct {
		text string
		t    Type
		good bool
	}{
		{"5", Int(1, 9), true},
		{"50", Int(1, 9), false},
		{"five", Int(1, 9), false},
		{"", Int(1, 9), false},
		{"true", Bool(), true},
		{"1", Bool(), false},
		{"null", Bool(), false},
		{"asc", Enum("asc", "desc"), true},
		{"up", Enum("asc", "desc"), false},
		{"\xff\"", String(), true},
	} {
		if err := CheckText("p", c.text, c.t); (err == nil) != c.good {
			t.Errorf("%q as %s: %v", c.text, c.t.Text(), err)
		}
	}
}

// TestAnswerSchema compares the schema of types with what encoding/json does with them.
func TestAnswerSchema(t *testing.T) {
	type inner struct {
		N int `json:"n"`
	}
	type tree struct {
		inner
		Name   string           `json:"name" schema:"a,b"`
		List   []tree           `json:"list"`
		Maybe  *inner           `json:"maybe"`
		Absent *bool            `json:"absent,omitempty"`
		Map    map[string]int64 `json:"map,omitempty"`
		Raw    json.RawMessage  `json:"raw"`
		Hidden int              `json:"-"`
	}
	const want = `{"additionalProperties":false,"properties":{"absent":{"type":"boolean"},"list":{"items":{"type":"object"},"type":"array"},` +
		`"map":{"additionalProperties":{"type":"integer"},"type":"object"},"maybe":{"anyOf":[{"additionalProperties":false,"properties":{"n":{"type":"integer"}},` +
		`"required":["n"],"type":"object"},{"type":"null"}]},"n":{"type":"integer"},"name":{"enum":["a","b"],"type":"string"},"raw":{}},` +
		`"required":["n","name","list","maybe","raw"],"type":"object"}`
	b, err := json.Marshal(AnswerSchema(tree{}))
	if err != nil || string(b) != want {
		t.Errorf("%s, %v\nwant %s", b, err, want)
	}
	events, err := json.Marshal(EventSchema(Either{inner{}, Literal("[DONE]")}))
	if err != nil || !strings.Contains(string(events), `{"const":"[DONE]"}`) ||
		!strings.Contains(string(events), `"contentMediaType":"application/json"`) {
		t.Errorf("%s, %v", events, err)
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
