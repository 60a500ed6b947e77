package baleen_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen"
)

type measured struct {
	Kind   bool      `json:"kind" jsonschema:"which kind"`
	Small  int8      `json:"small"`
	Large  int64     `json:"large"`
	Whole  uint      `json:"whole"`
	Ratio  float32   `json:"ratio"`
	Area   float64   `json:"area"`
	At     time.Time `json:"at"`
	Pair   [2]bool   `json:"pair"`
	Maybe  *bool     `json:"maybe"`
	hidden int
}

// TestIntoDecodes: an answer of random weights is a value of the type, at any temperature; what does not fit into the
// type's own numbers is never written.
func TestIntoDecodes(t *testing.T) {
	m := open()
	defer m.Close()
	for seed := range uint64(8) {
		v, err := baleen.Into[measured](t.Context(), m, []baleen.Message{baleen.UserMessage("measure")}, &baleen.Params{
			Temperature: new(1.0), Seed: &seed,
		})
		if err != nil || v.At.IsZero() || v.hidden != 0 {
			t.Errorf("seed %d: %+v, %v", seed, v, err)
		}
	}
}

// TestIntoRefuses: what cannot be a whole value is an error, and never a value.
func TestIntoRefuses(t *testing.T) {
	m := open()
	defer m.Close()
	ask := []baleen.Message{baleen.UserMessage("measure")}
	if _, err := baleen.Into[measured](t.Context(), m, ask, &baleen.Params{MaxTokens: 3}); !errors.Is(
		err,
		baleen.ErrIncomplete,
	) {
		t.Errorf("a cut answer: %v", err)
	}
	type endless struct{ Next *endless }
	var e *baleen.ParamError
	if _, err := baleen.Into[endless](t.Context(), m, ask, nil); !errors.As(err, &e) || e.Param != "schema" {
		t.Errorf("a type of itself: %v", err)
	}
	if _, err := baleen.Into[bool](t.Context(), m, ask, &baleen.Params{Tools: []baleen.Tool{{Name: "f"}}}); !errors.As(
		err,
		&e,
	) ||
		e.Param != "tools" {
		t.Errorf("with tools: %v", err)
	}
}

type (
	wholeNumber int64
	bareBytes   []byte
	area        float64
	colour      string
)

func (*colour) UnmarshalText([]byte) error { return errors.New("no such colour") }

// TestSchemasOfNamedTypes: a program's own types, and fields of them, have the bounds of those that they are made of;
// what encoding/json would not always read has no schema.
func TestSchemasOfNamedTypes(t *testing.T) {
	type own struct {
		Year wholeNumber              `json:"year"`
		Wait map[string]time.Duration `json:"wait"`
		Sum  bareBytes                `json:"sum"`
		Mass *json.Number             `json:"mass"`
		Area area                     `json:"area"`
	}
	s, err := baleen.SchemaFor[own]()
	var got struct {
		Properties struct {
			Year struct{ Maximum float64 }
			Wait struct {
				AdditionalProperties struct{ Minimum float64 }
			}
			Sum  struct{ Type, Pattern string }
			Mass struct{ Type []string }
			Area struct{ Maximum float64 }
		}
	}
	if err == nil {
		err = json.Unmarshal(s, &got)
	}
	if p := got.Properties; err != nil || p.Year.Maximum != 1<<63-1024 || p.Sum.Type != "string" ||
		p.Sum.Pattern == "" ||
		p.Area.Maximum != math.MaxFloat64 ||
		p.Wait.AdditionalProperties.Minimum != -(1<<63-1024) ||
		strings.Join(p.Mass.Type, " ") != "null number" {
		t.Errorf("%s, %v", s, err)
	}
	for name, of := range map[string]func() (json.RawMessage, error){
		"UnmarshalText": baleen.SchemaFor[[]colour],
		"of a key":      baleen.SchemaFor[map[colour]int],
		"UnmarshalJSON": baleen.SchemaFor[struct{ N *big.Int }],
		"an interface":  baleen.SchemaFor[struct{ E error }],
		"option string": baleen.SchemaFor[struct {
			N int `json:",string"`
		}],
	} {
		var e *baleen.ParamError
		if s, err := of(); !errors.As(err, &e) || e.Param != "schema" {
			t.Errorf("%s: %s, %v", name, s, err)
		}
	}
}

// TestParamsHoldTheAnswer: each of the formats is what the whole answer fits, raw or in a conversation, and wrong ones
// are refused by their name before a token is made.
func TestParamsHoldTheAnswer(t *testing.T) {
	m := open()
	defer m.Close()
	for name, c := range map[string]struct {
		p    baleen.Params
		fits func(text string) bool
	}{
		"schema":  {baleen.Params{Schema: json.RawMessage(`{"enum":[17,"x"]}`)}, func(s string) bool { return s == "17" || s == `"x"` }},
		"regex":   {baleen.Params{Regex: "ab{2}c?"}, func(s string) bool { return s == "abb" || s == "abbc" }},
		"grammar": {baleen.Params{Grammar: `root ::= "a" [0-9] "b"`}, func(s string) bool { return len(s) == 3 && s[2] == 'b' }},
		"choices": {baleen.Params{Choices: []string{"left", "right"}}, func(s string) bool { return s == "left" || s == "right" }},
		"json":    {baleen.Params{JSON: true, MaxTokens: 5}, func(s string) bool { return strings.HasPrefix(s, "{") }},
	} {
		chat, err := baleen.Text(m.Chat(t.Context(), []baleen.Message{baleen.UserMessage("say")}, &c.p))
		if err != nil || !c.fits(chat) {
			t.Errorf("%s: %q, %v", name, chat, err)
		}
		raw, err := baleen.Text(m.Generate(t.Context(), "say", &c.p))
		if err != nil || !c.fits(raw) {
			t.Errorf("%s, raw: %q, %v", name, raw, err)
		}
	}
	for param, p := range map[string]baleen.Params{
		"schema":  {Schema: json.RawMessage(`{"format":"regex"}`)},
		"regex":   {Regex: "("},
		"grammar": {Grammar: "root ::= missing"},
		"choices": {JSON: true, Choices: []string{"x"}},
	} {
		var e *baleen.ParamError
		if _, err := baleen.Text(m.Generate(t.Context(), "say", &p)); !errors.As(err, &e) || e.Param != param {
			t.Errorf("%s: %v", param, err)
		}
	}
}

// TestSchemaFor: the schema has the type's fields in their order, and says what their numbers can hold.
func TestSchemaFor(t *testing.T) {
	s, err := baleen.SchemaFor[struct {
		B []byte `json:"b"`
		A int8   `json:"a,omitempty"`
	}]()
	if err != nil || !strings.Contains(string(s), `"additionalProperties":false`) ||
		strings.Index(
			string(s),
			`"b"`,
		) > strings.Index(
			string(s),
			`"a"`,
		) || !strings.Contains(string(s), `"maximum":127`) {
		t.Errorf("%s, %v", s, err)
	}
}

// TestStrictTool: whatever the weights are, the demanded call of a strict tool has arguments of its schema.
func TestStrictTool(t *testing.T) {
	m := open()
	defer m.Close()
	type place struct {
		North bool `json:"north"`
		Level int8 `json:"level"`
	}
	schema, err := baleen.SchemaFor[place]()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := baleen.Collect(m.Chat(t.Context(), []baleen.Message{baleen.UserMessage("go")}, &baleen.Params{
		Tools: []baleen.Tool{{Name: "move", Parameters: schema, Strict: true}}, SingleCall: true,
		ToolChoice: baleen.ToolChoice{
			Mode: baleen.ToolNamed,
			Name: "move",
		}, Temperature: new(1.0), Seed: new(uint64(3)),
	}))
	var to place
	if err != nil || len(answer.Calls) != 1 || json.Unmarshal(answer.Calls[0].Arguments, &to) != nil {
		t.Errorf("%+v, %v", answer, err)
	}
}
