package anthropic

import (
	"context"
	"slices"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// An edit is one entry of context_management.edits: what is left out of a conversation before the model sees it.
type edit struct {
	kind string
	keep amount // turns with reasoning, or uses of tools; n negative: all

	trigger amount
	atLeast amount
	exclude []string
	inputs  bool     // clear the inputs of calls, too
	only    []string // with inputs: of these tools alone; nil: all
}

// An amount is a number of tokens, of uses of tools or of turns.
type amount struct {
	kind string
	n    int
}

var contextTable = &fields.Table[request]{Name: "context management", Fields: []fields.Field[request]{
	{
		Name: "edits", Type: fields.List(fields.Object("edit")), Doc: "applied in this order; compact_20260112 is " +
			"refused, since conversations are compacted by the client",
		Set: func(q *request, v fields.Value) error {
			for _, item := range v.Items() {
				e, err := readEdit(item)
				if err != nil {
					return err
				}
				q.edits = append(q.edits, e)
			}
			return nil
		},
	},
}}

const (
	clearThinking = "clear_thinking_20251015"
	clearTools    = "clear_tool_uses_20250919"
)

func readEdit(v fields.Value) (edit, error) {
	kind, _ := v.Get("type")
	switch k := kind.String(); k {
	case clearThinking:
		e := edit{kind: k, keep: amount{"thinking_turns", 1}}
		return e, clearThinkingTable.DecodeValue(v, &e)
	case clearTools:
		e := edit{kind: k, keep: amount{"tool_uses", 3}, trigger: amount{"input_tokens", 100_000}}
		return e, clearToolsTable.DecodeValue(v, &e)
	case "compact_20260112":
		return edit{}, chat.Unsupportedf(
			v.Path,
			"compact_20260112 is not supported: compact the conversation in the client",
		)
	case "":
		return edit{}, chat.MissingField(v.Path + ".type")
	default:
		return edit{}, chat.Invalidf(v.Path+".type", "%q is not one of %s, %s", clip(k), clearThinking, clearTools)
	}
}

var amountTable = &fields.Table[amount]{Name: "amount", Fields: []fields.Field[amount]{
	{
		Name:     "type",
		Type:     fields.Enum("input_tokens", "tool_uses", "thinking_turns", "all"),
		Required: true,
		Doc:      "of what",
		Set: func(a *amount, v fields.Value) error {
			a.kind = v.String()
			return nil
		},
	},
	{
		Name: "value",
		Type: fields.Int(0, unlimited),
		Doc:  "how many; not with the type all",
		Set:  func(a *amount, v fields.Value) error { a.n = v.Int(); return nil },
	},
}}

func readAmount(v fields.Value, to *amount, kinds ...string) error {
	a := amount{n: -1}
	if err := amountTable.DecodeValue(v, &a); err != nil {
		return err
	}
	if !slices.Contains(kinds, a.kind) {
		return chat.Invalidf(v.Path+".type", "%q is not one of %v", a.kind, kinds)
	}
	if (a.kind == "all") != (a.n < 0) {
		return chat.Invalidf(v.Path+".value", "a value belongs to every type but all")
	}
	*to = a
	return nil
}

var editKinds = &fields.OneOf{Name: "edit", Of: []fields.ObjectTable{clearThinkingTable, clearToolsTable}}

// amountOf is an amount of one of some kinds.
func amountOf(kinds ...string) fields.Type {
	var list []any
	for _, k := range kinds {
		form := map[string]any{
			"required": []string{"value"},
			"properties": map[string]any{
				"type":  map[string]any{"const": k},
				"value": map[string]any{"type": "integer"},
			},
		}
		if k == "all" {
			form = map[string]any{
				"properties": map[string]any{
					"type":  map[string]any{"const": k},
					"value": map[string]any{"type": "null"},
				},
			}
		}
		list = append(list, form)
	}
	return fields.Object("amount").Where(map[string]any{"anyOf": list})
}

var clearThinkingTable = &fields.Table[edit]{Name: clearThinking, Fields: []fields.Field[edit]{
	{Name: "type", Type: fields.Enum(clearThinking), Required: true, Doc: "leaves out the reasoning of earlier turns"},
	{
		Name: "keep",
		Type: fields.Enum("all").Or(amountOf("thinking_turns", "all")),
		Doc:  "turns whose reasoning stays, counted from the end: `all`, or a number of thinking_turns. Not given: 1",
		Set: func(e *edit, v fields.Value) error {
			if v.Kind() == "string" {
				e.keep = amount{"all", -1}
				return nil
			}
			return readAmount(v, &e.keep, "thinking_turns", "all")
		},
	},
}}

var clearToolsTable = &fields.Table[edit]{Name: clearTools, Fields: []fields.Field[edit]{
	{Name: "type", Type: fields.Enum(clearTools), Required: true, Doc: "leaves out old results of tools"},
	{
		Name: "trigger",
		Type: amountOf("input_tokens", "tool_uses"),
		Doc:  "from how many input_tokens or tool_uses on. Not given: 100000 input_tokens",
		Set: func(e *edit, v fields.Value) error {
			return readAmount(v, &e.trigger, "input_tokens", "tool_uses")
		},
	},
	{
		Name: "keep",
		Type: amountOf("tool_uses"),
		Doc:  "tool_uses whose results stay, counted from the end. Not given: 3",
		Set: func(e *edit, v fields.Value) error {
			return readAmount(v, &e.keep, "tool_uses")
		},
	},
	{
		Name: "clear_at_least",
		Type: amountOf("input_tokens"),
		Doc:  "input_tokens that must become free, else nothing is left out",
		Set: func(e *edit, v fields.Value) error {
			return readAmount(v, &e.atLeast, "input_tokens")
		},
	},
	{
		Name: "exclude_tools",
		Type: fields.List(fields.String()),
		Doc:  "tools whose results stay",
		Set: func(e *edit, v fields.Value) error {
			e.exclude = v.Strings()
			return nil
		},
	},
	{
		Name: "clear_tool_inputs",
		Type: fields.Bool().Or(fields.List(fields.String())),
		Doc:  "leave out the inputs of these calls, too: of all tools or of those named",
		Set: func(e *edit, v fields.Value) error {
			if v.Kind() == "boolean" {
				e.inputs = v.Bool()
				return nil
			}
			e.only = v.Strings()
			e.inputs = len(e.only) > 0
			return nil
		},
	},
}}

// contextAnswer tells what was left out.
type contextAnswer struct {
	Applied []appliedEdit `json:"applied_edits"`
}

type appliedEdit struct {
	Type   string `json:"type"`
	Turns  *int   `json:"cleared_thinking_turns,omitempty"`
	Uses   *int   `json:"cleared_tool_uses,omitempty"`
	Tokens int    `json:"cleared_input_tokens"`
}

// edit applies the edits of a request and tells what they did; nil where none were asked for.
func (d *dialect) edit(ctx context.Context, q *request) (*contextAnswer, error) {
	if len(q.edits) == 0 {
		return nil, nil
	}
	out := &contextAnswer{Applied: []appliedEdit{}}
	for i := range q.edits {
		e := &q.edits[i]
		before := -1
		count := func() (int, error) {
			if before >= 0 {
				return before, nil
			}
			var err error
			before, err = d.env.Chat.Count(ctx, &q.chat)
			return before, err
		}
		edited, n, err := e.apply(q, count)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			continue
		}
		old := q.chat.Messages
		if _, err := count(); err != nil {
			return nil, err
		}
		q.chat.Messages = edited
		after, err := d.env.Chat.Count(ctx, &q.chat)
		if err != nil {
			return nil, err
		}
		if freed := before - after; freed < e.atLeast.n {
			q.chat.Messages = old
			continue
		}
		a := appliedEdit{Type: e.kind, Tokens: before - after}
		if e.kind == clearThinking {
			a.Turns = &n
		} else {
			a.Uses = &n
		}
		out.Applied = append(out.Applied, a)
	}
	return out, nil
}

// apply returns the conversation after an edit, and how many turns or calls it changed.
func (e *edit) apply(q *request, count func() (int, error)) ([]chat.Message, int, error) {
	ms := q.chat.Messages
	if e.kind == clearThinking {
		out, n := e.clearThinking(ms)
		return out, n, nil
	}
	uses := 0
	for _, m := range ms {
		if m.Role == chat.ToolRole {
			uses++
		}
	}
	size := uses
	if e.trigger.kind == "input_tokens" && uses > e.keep.n { // else nothing can be cleared, whatever the count
		var err error
		if size, err = count(); err != nil {
			return nil, 0, err
		}
	}
	if size <= e.trigger.n {
		return ms, 0, nil
	}
	out, n := e.clearTools(ms, uses-e.keep.n, q.defining)
	return out, n, nil
}

func (e *edit) clearThinking(ms []chat.Message) ([]chat.Message, int) {
	out := slices.Clone(ms)
	kept, cleared := 0, 0
	for i := len(out) - 1; i >= 0; i-- {
		if out[i].Reasoning == "" {
			continue
		}
		if kept++; e.keep.n >= 0 && kept > e.keep.n {
			out[i].Reasoning = ""
			cleared++
		}
	}
	return out, cleared
}

// clearedText stands where a result was.
const clearedText = "[The result of this call was left out to make room.]"

// clearTools clears the results of the first n calls but of those that are excluded, and those that must stay.
func (e *edit) clearTools(ms []chat.Message, n int, stay map[string]bool) ([]chat.Message, int) {
	out := slices.Clone(ms)
	names := map[string]string{}
	cleared := map[string]bool{}
	for i := range out {
		m := &out[i]
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		if m.Role != chat.ToolRole {
			continue
		}
		if n--; n < 0 {
			break
		}
		if !stay[m.CallID] && !slices.Contains(e.exclude, names[m.CallID]) {
			m.Parts, m.IsError = []chat.Part{{Text: clearedText, Field: m.Field}}, false
			cleared[m.CallID] = true
		}
	}
	if e.inputs {
		for i := range out {
			out[i].Calls = slices.Clone(out[i].Calls)
			for j := range out[i].Calls {
				if c := &out[i].Calls[j]; cleared[c.ID] && (e.only == nil || slices.Contains(e.only, c.Name)) {
					c.Arguments = "{}"
				}
			}
		}
	}
	return out, len(cleared)
}
