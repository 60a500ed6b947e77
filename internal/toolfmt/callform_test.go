package toolfmt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/grammar"
)

// TestCallsAreWhatTheParserReads: a text of each family's grammar is read as the call that it writes, the forced prefix
// begins one, and names or arguments that were not offered are none.
func TestCallsAreWhatTheParserReads(t *testing.T) {
	tools := []Tool{{Name: "weather", Parameters: json.RawMessage(
		`{"type":"object","properties":{"city":{"enum":["Rome","Oslo"]}},"required":["city"],"additionalProperties":false}`,
	)}, {Name: "clock", Parameters: json.RawMessage(`{"type":"object","additionalProperties":false}`)}}
	for name, form := range forms {
		f := For(Hints{HasToken: func(string) bool { return false }})
		for i := range specs {
			if specs[i].name == name {
				f.spec, f.blocks = &specs[i], specs[i].blocks
			}
		}
		if p, ok := f.CallPrefix("NAME"); !ok || p != form.open+form.lead+strings.Replace(form.item, "ARGS}", "{", 1) {
			t.Errorf("%s: the prefix is %q", name, p)
		}
		calls, ok := f.Calls(tools, func(i int) json.RawMessage { return tools[i].Parameters })
		if !ok {
			t.Fatal(name)
		}
		g, err := grammar.Compose(calls.Body, grammar.Options{})
		if err != nil {
			t.Fatal(err)
		}
		fits := func(text string) bool {
			m, ok, err := g.Matcher().Accept([]byte(text))
			return err == nil && ok && m.Accepting()
		}
		body := form.lead + `{"name": "weather", "arguments": {"city": "Oslo"}}` + form.end
		for _, wrong := range []string{
			form.lead + `{"name": "whether", "arguments": {"city": "Oslo"}}` + form.end,
			form.lead + `{"name": "weather", "arguments": {"city": "Paris"}}` + form.end,
			form.lead + `{"name": "clock", "arguments": {"city": "Oslo"}}` + form.end,
			form.lead + `{"name": "weather", "arguments": {"city": "Oslo"}`,
		} {
			if fits(wrong) {
				t.Errorf("%s: %s is allowed", name, wrong)
			}
		}
		if two := form.lead + `{"name": "clock", "arguments": {}}` + form.sep + `{"name": "clock", "arguments": {}}` + form.end; fits(
			two,
		) != (form.sep != "") {
			t.Errorf("%s: %s: %v", name, two, fits(two))
		}
		if !fits(body) {
			t.Errorf("%s: %s is not allowed", name, body)
		}
		p := f.NewParser(tools, Options{})
		events := append(p.Feed("I call it.\n"+form.open+body+form.close), p.End()...)
		var got []string
		for _, ev := range events {
			if ev.Kind == CallEnd {
				got = append(got, ev.Call.Name+ev.Call.Arguments)
			}
		}
		if len(got) != 1 || got[0] != `weather{"city": "Oslo"}` {
			t.Errorf("%s: %q", name, got)
		}
	}
}
