package grammar

import (
	"errors"
	"testing"

	"github.com/baleenrun/baleen/internal/grammar/schema"
)

// TestCompose: texts and schemas become one automaton; a schema's references to itself keep their meaning, two schemas
// have their own, and what is behind a value goes on where it ends, also behind a number.
func TestCompose(t *testing.T) {
	a := Value(
		[]byte(
			`{"type":"object","properties":{"n":{"$ref":"#/$defs/x"}},"required":["n"],"additionalProperties":false,` +
				`"$defs":{"x":{"type":"integer"}}}`,
		),
	)
	b := Value(
		[]byte(
			`{"type":"object","properties":{"n":{"$ref":"#/$defs/x"}},"required":["n"],"additionalProperties":false,` +
				`"$defs":{"x":{"type":"boolean"}}}`,
		),
	)
	call := Either(
		InOrder(Literal("a:"), a),
		InOrder(Literal("b:"), b),
		InOrder(Literal("c:"), Value([]byte(`{"type":"integer"}`))),
	)
	g, err := Compose(InOrder(Literal("<"), call, Repeated(InOrder(Literal(";"), call), 1), Literal(">é")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`<a:{"n":12}>é`:               true,
		`<a:{"n": 12};b:{"n":true}>é`: true,
		`<c:7;c:-1>é`:                 true,
		`<a:{"n":true}>é`:             false,
		`<b:{"n":1}>é`:                false,
		`<a:{}>é`:                     false,
		`<c:7;c:1;c:2>é`:              false,
		`<c:7`:                        false,
		`<c:>é`:                       false,
	} {
		m, ok, err := g.Matcher().Accept([]byte(text))
		if err != nil || (ok && m.Accepting()) != want {
			t.Errorf("%s: %v %v, want %v", text, ok, err, want)
		}
	}
	var e *schema.Error
	if _, err := Compose(Value([]byte(`{"format":"regex"}`)), Options{}); !errors.As(err, &e) || e.Keyword != "format" {
		t.Errorf("%v", err)
	}
	if _, err := Compose(Value([]byte(`false`)), Options{}); err == nil {
		t.Error("a schema that allows nothing is accepted")
	}
}
