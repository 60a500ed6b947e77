package ollama

import (
	"fmt"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// messageTable is a turn of a conversation.
var messageTable = &fields.Table[chat.Message]{
	Name:          "message",
	IgnoreUnknown: true,
	Fields: []fields.Field[chat.Message]{
		{
			Name:     "role",
			Type:     fields.String().Pattern(rolePattern),
			Required: true,
			Doc:      "system, user, assistant or tool",
			Set:      setRole,
		},
		honoured("content", fields.String(), "the text", func(m *chat.Message, v fields.Value) error {
			if s := v.String(); s != "" {
				m.Parts = append(m.Parts, chat.Part{Text: s, Field: v.Path})
			}
			return nil
		}),
		honoured(
			"thinking",
			fields.String(),
			"what the assistant thought in this turn",
			func(m *chat.Message, v fields.Value) error { m.Reasoning = v.String(); return nil },
		),
		honoured(
			"images",
			fields.List(fields.Base64()),
			"images or sounds in base64, for models that take them",
			func(m *chat.Message, v fields.Value) error {
				parts, err := images(v)
				m.Parts = append(m.Parts, parts...)
				return err
			},
		),
		honoured(
			"tool_calls",
			fields.List(fields.Object("tool call")),
			"the assistant's calls",
			func(m *chat.Message, v fields.Value) error {
				for _, it := range v.Items() {
					c := chat.Call{Arguments: "{}"}
					if err := toolCallTable.DecodeValue(it, &c); err != nil {
						return err
					}
					m.Calls = append(m.Calls, c)
				}
				return nil
			},
		),
		honoured(
			"tool_name",
			fields.String(),
			"the tool whose result this is",
			func(m *chat.Message, v fields.Value) error { m.ToolName = v.String(); return nil },
		),
		honoured(
			"tool_call_id",
			fields.String(),
			"the call whose result this is; without it and tool_name, results belong to the calls in their order",
			func(m *chat.Message, v fields.Value) error {
				m.CallID = v.String()
				return nil
			},
		),
	},
}

const rolePattern = `^([Ss][Yy][Ss][Tt][Ee][Mm]|[Dd][Ee][Vv][Ee][Ll][Oo][Pp][Ee][Rr]|[Uu][Ss][Ee][Rr]|[Aa][Ss][Ss][Ii][Ss][Tt][Aa][Nn][Tt]|[Tt][Oo][Oo][Ll])$`

func setRole(m *chat.Message, v fields.Value) error {
	switch role := strings.ToLower(v.String()); role {
	case chat.System, chat.Developer, chat.User, chat.Assistant, chat.ToolRole:
		m.Role = role
		return nil
	}
	return chat.Invalidf(v.Path, "there is no role %q: want system, user, assistant or tool", v.String())
}

// toolCallTable is a call in an assistant's turn.
var toolCallTable = &fields.Table[chat.Call]{Name: "tool call", IgnoreUnknown: true, Fields: []fields.Field[chat.Call]{
	honoured(
		"id",
		fields.String(),
		"what tool_call_id refers to",
		func(c *chat.Call, v fields.Value) error { c.ID = v.String(); return nil },
	),
	{
		Name:     "function",
		Type:     fields.Object("call's function"),
		Required: true,
		Doc:      "what is called",
		Set: func(c *chat.Call, v fields.Value) error {
			return callFunctionTable.DecodeValue(v, c)
		},
	},
}}

var callFunctionTable = &fields.Table[chat.Call]{
	Name:          "call's function",
	IgnoreUnknown: true,
	Fields: []fields.Field[chat.Call]{
		{
			Name:     "name",
			Type:     fields.String(),
			Required: true,
			Doc:      "name of the tool",
			Set:      func(c *chat.Call, v fields.Value) error { c.Name = v.String(); return nil },
		},
		honoured(
			"arguments",
			fields.Object(""),
			"arguments by name",
			func(c *chat.Call, v fields.Value) error { c.Arguments = string(v.Raw); return nil },
		),
		{Name: "index", Type: fields.Any(), Use: fields.Ignored, Doc: "calls count in the order in which they stand"},
	},
}

// toolTable is a function that the model may call.
var toolTable = &fields.Table[chat.Tool]{Name: "tool", IgnoreUnknown: true, Fields: []fields.Field[chat.Tool]{
	honoured[chat.Tool]("type", fields.Enum("function"), "function", nil),
	{
		Name:     "function",
		Type:     fields.Object("tool's function"),
		Required: true,
		Doc:      "the function",
		Set: func(t *chat.Tool, v fields.Value) error {
			return toolFunctionTable.DecodeValue(v, t)
		},
	},
}}

var toolFunctionTable = &fields.Table[chat.Tool]{
	Name:          "tool's function",
	IgnoreUnknown: true,
	Fields: []fields.Field[chat.Tool]{
		{
			Name:     "name",
			Type:     fields.String(),
			Required: true,
			Doc:      "its name",
			Set:      func(t *chat.Tool, v fields.Value) error { t.Name = v.String(); return nil },
		},
		honoured(
			"description",
			fields.String(),
			"what it does",
			func(t *chat.Tool, v fields.Value) error { t.Description = v.String(); return nil },
		),
		honoured(
			"parameters",
			fields.Object(""),
			"JSON Schema of its arguments",
			func(t *chat.Tool, v fields.Value) (err error) { t.Parameters, err = v.Schema(); return err },
		),
	},
}

// messages reads a conversation and joins results with their calls where clients leave that open.
func messages(v fields.Value) ([]chat.Message, error) {
	items := v.Items()
	out := make([]chat.Message, len(items))
	for i, it := range items {
		out[i].Field = it.Path
		if err := messageTable.DecodeValue(it, &out[i]); err != nil {
			return nil, err
		}
		if len(out[i].Parts) == 0 {
			out[i].Parts = []chat.Part{{}}
		}
	}
	pair(out)
	return out, nil
}

// pair gives calls without an id one, and results without one that of the first call that has no result yet and,
// where the result names its tool, that tool's name.
func pair(ms []chat.Message) {
	type open struct{ id, name string }
	var waiting []open
	n := 0
	for i := range ms {
		m := &ms[i]
		switch m.Role {
		case chat.Assistant:
			waiting = waiting[:0]
			for j := range m.Calls {
				c := &m.Calls[j]
				if c.ID == "" {
					c.ID = fmt.Sprintf("call_%d", n)
				}
				n++
				waiting = append(waiting, open{c.ID, c.Name})
			}
		case chat.ToolRole:
			for j, w := range waiting {
				if m.CallID != "" && m.CallID != w.id || m.CallID == "" && m.ToolName != "" && m.ToolName != w.name {
					continue
				}
				m.CallID = w.id
				if m.ToolName == "" {
					m.ToolName = w.name
				}
				waiting = append(waiting[:j], waiting[j+1:]...)
				break
			}
		}
	}
}

func tools(v fields.Value) ([]chat.Tool, error) {
	items := v.Items()
	out := make([]chat.Tool, len(items))
	for i, it := range items {
		out[i].Field = it.Path
		if err := toolTable.DecodeValue(it, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
