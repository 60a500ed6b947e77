package toolfmt

import (
	"encoding/json"
	"strings"

	"github.com/baleenrun/baleen/internal/grammar"
)

// callForm is how a family writes calls as JSON, piece by piece: open, lead, item, further items behind sep, end,
// close. With the brace of the arguments behind it, open, lead and item are the family's prefix. In an item NAME stands
// for the name and ARGS for the arguments.
type callForm struct{ open, lead, item, sep, end, close string }

const jsonItem = `{"name": "NAME", "arguments": ARGS}`

var (
	hermesForm  = callForm{open: "<tool_call>", lead: "\n", item: jsonItem, end: "\n", close: "</tool_call>"}
	mistralForm = callForm{open: "[TOOL_CALLS]", lead: " [", item: jsonItem, sep: ", ", end: "]"}
	phiForm     = callForm{
		open:  "<|tool_call|>",
		lead:  "[",
		item:  jsonItem,
		sep:   ", ",
		end:   "]",
		close: "<|/tool_call|>",
	}
)

// forms are the families whose calls can be held to a grammar.
var forms = map[string]callForm{
	"hermes": hermesForm, "smollm": hermesForm, "json": hermesForm, "mistral": mistralForm, "phi": phiForm,
}

// Calls is how the calls of a format are written: behind the text Open a text of Body, and the text Close, if any.
type Calls struct {
	Open, Close string
	Body        grammar.Piece
}

// Calls returns how calls of some tools are written, and those only: their names, and arguments that args allows, a
// JSON Schema for each tool. ok is false for formats whose calls are not held to a grammar.
func (f *Format) Calls(tools []Tool, args func(i int) json.RawMessage) (c Calls, ok bool) {
	form, ok := forms[f.spec.name]
	if !ok || len(tools) == 0 {
		return Calls{}, false
	}
	items := make([]grammar.Piece, len(tools))
	for i, t := range tools {
		before, behind, _ := strings.Cut(form.item, "ARGS")
		name := quote(t.Name)
		before = strings.ReplaceAll(before, "NAME", name[1:len(name)-1])
		items[i] = grammar.InOrder(grammar.Literal(before), grammar.Value(args(i)), grammar.Literal(behind))
	}
	body := grammar.Either(items...)
	if form.sep != "" {
		body = grammar.InOrder(body, grammar.Repeated(grammar.InOrder(grammar.Literal(form.sep), body), -1))
	}
	return Calls{
		Open:  form.open,
		Close: form.close,
		Body:  grammar.InOrder(grammar.Literal(form.lead), body, grammar.Literal(form.end)),
	}, true
}
