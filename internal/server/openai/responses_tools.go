package openai

import (
	"encoding/json"
	"slices"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// responseToolTable decodes a tool of responses.
var responseToolTable = &fields.Table[chat.Tool]{Name: "response tool", IgnoreUnknown: true, Where: []map[string]any{
	{"anyOf": []any{
		map[string]any{"required": []string{"tools"}, "properties": map[string]any{
			"type": map[string]any{"const": "namespace"},
			"tools": map[string]any{
				"type": "array",
				"items": map[string]any{
					"properties": map[string]any{"type": map[string]any{"enum": []any{"function", "custom"}}},
				},
			},
		}},
		map[string]any{
			"properties": map[string]any{
				"type":  map[string]any{"enum": []any{"function", "custom"}},
				"tools": map[string]any{"type": "null"},
			},
		},
	}},
}, Fields: append([]fields.Field[chat.Tool]{
	{
		Name:     "type",
		Type:     fields.Enum("function", "custom", "namespace"),
		Required: true,
		Doc:      "function, custom or namespace",
	},
	{
		Name: "format",
		Type: fields.Object("format"),
		Doc:  "of a custom tool: text; a grammar is told to the model and not enforced",
		Set: func(t *chat.Tool, v fields.Value) error {
			if def, ok := v.Get("definition"); ok {
				t.Description += "\n\nIts input follows this grammar:\n" + def.String()
			}
			return nil
		},
	},
	{
		Name: "tools",
		Type: fields.List(fields.Object("response tool")),
		Doc:  "of a namespace: its functions and custom tools; the model sees them as NAMESPACE__NAME",
	},
	{Name: "defer_loading", Type: fields.Bool(), Use: fields.Ignored, Doc: "all tools are loaded"},
	{
		Name: "output_schema",
		Type: fields.Object("JSON Schema"),
		Use:  fields.Ignored,
		Doc:  "describes results, which the model sees as they are",
	},
	{
		Name:  "allowed_callers",
		Type:  fields.List(fields.String()),
		Use:   fields.Refused,
		Allow: []string{`["direct"]`},
		Doc:   "there are no programs that call tools",
	},
	{
		Name:  "async",
		Type:  fields.Bool(),
		Use:   fields.Refused,
		Allow: []string{"false"},
		Doc:   "calls are answered before the model goes on",
	},
}, functionFields()...)}

// hostedTools are the types of tools that OpenAI runs itself, or whose schema its own clients and models know without
// being told. A model here knows none of them, and clients go on without.
var hostedTools = []string{
	"web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11", "file_search",
	"code_interpreter", "image_generation", "computer", "computer_use_preview", "local_shell", "shell", "apply_patch", "mcp",
	"tool_search", "programmatic_tool_calling",
}

var (
	hostedTool = &declared{Name: "hosted tool", IgnoreUnknown: true, Fields: []fields.Field[struct{}]{
		{
			Name:     "type",
			Type:     fields.Enum(hostedTools...),
			Required: true,
			Doc:      "a type of OpenAI's: the tool is left out of the prompt and named in the header X-Baleen-Notice",
		},
	}}
	anyResponseTool = &fields.OneOf{Name: "any response tool", Of: []fields.ObjectTable{responseToolTable, hostedTool}}
)

// customParameters are those of a custom tool, which the model calls like a function of one text.
var customParameters = json.RawMessage(
	`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`,
)

// spaced is a tool inside a namespace.
type spaced struct{ namespace, name string }

// flat is the name of a namespace's tool as the model sees it.
func flat(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

func (r *responseRequest) setTools(v fields.Value) error {
	r.custom, r.spaces = map[string]bool{}, map[string]spaced{}
	return r.addTools(v, "")
}

// addTools adds the tools of a list, which may be a namespace's.
func (r *responseRequest) addTools(v fields.Value, namespace string) error {
	for _, it := range v.Items() {
		if kind := text(it, "type"); slices.Contains(hostedTools, kind) && namespace == "" {
			it.Ignore(kind)
			continue
		}
		t := chat.Tool{Field: it.Path}
		if err := responseToolTable.DecodeValue(it, &t); err != nil {
			return err
		}
		inner, has := it.Get("tools")
		switch kind := text(it, "type"); {
		case has && kind != "namespace":
			return chat.Invalidf(it.Path+".tools", "only a namespace has tools")
		case kind == "namespace" && namespace != "":
			return chat.Invalidf(it.Path+".type", "a namespace stands inside a namespace")
		case kind == "namespace":
			if !has {
				return chat.MissingField(it.Path + ".tools")
			}
			if err := r.addTools(inner, t.Name); err != nil {
				return err
			}
			continue
		case kind == "custom":
			t.Parameters = customParameters
			r.custom[flat(namespace, t.Name)] = true
		}
		if namespace != "" {
			r.spaces[flat(namespace, t.Name)] = spaced{namespace, t.Name}
			t.Name = flat(namespace, t.Name)
		}
		r.req.Tools = append(r.req.Tools, t)
	}
	return nil
}
