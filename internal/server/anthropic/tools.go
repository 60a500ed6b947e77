package anthropic

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// A tool is one of the tools before it is shown to the model.
type tool struct {
	t        chat.Tool
	examples []string
	deferred bool // not shown before a message says so
	told     bool // a message defines it
	removed  bool // a message takes it away
	marked   bool
}

const namePattern = `^[a-zA-Z0-9_-]{1,128}$`

var toolName = regexp.MustCompile(namePattern)

var toolTable = &fields.Table[tool]{Name: "tool", Fields: []fields.Field[tool]{
	{
		Name: "type",
		Type: fields.Enum("custom"),
		Doc:  "custom. Tools that the vendor's servers run, and those whose schemas it defines, are refused by name",
	},
	{
		Name:     "name",
		Type:     fields.String().Pattern(namePattern),
		Required: true,
		Doc:      "1 to 128 letters, digits, _ and -",
		Set: func(t *tool, v fields.Value) error {
			t.t.Name = v.String()
			if !toolName.MatchString(t.t.Name) {
				return chat.Invalidf(v.Path, "%q: want 1 to 128 letters, digits, _ and -", clip(t.t.Name))
			}
			return nil
		},
	},
	{
		Name: "description",
		Type: fields.String(),
		Doc:  "what it does",
		Set:  func(t *tool, v fields.Value) error { t.t.Description = v.String(); return nil },
	},
	{
		Name: "input_schema",
		Type: fields.Object("JSON Schema").
			Where(map[string]any{"required": []string{"type"}, "properties": map[string]any{"type": map[string]any{"const": "object"}}}),
		Required: true,
		Doc:      "JSON Schema of the input, of type object",
		Set: func(t *tool, v fields.Value) (err error) {
			if kind, ok := v.Get("type"); !ok || kind.String() != "object" {
				return chat.Invalidf(v.Path+".type", `want "object"`)
			}
			t.t.Parameters, err = v.Schema()
			return err
		},
	},
	{
		Name: "input_examples",
		Type: fields.List(fields.Object("input")),
		Doc:  "inputs that the model is shown behind the description",
		Set: func(t *tool, v fields.Value) error {
			for _, e := range v.Items() {
				t.examples = append(t.examples, compact(e.Raw))
			}
			return nil
		},
	},
	{
		Name: "defer_loading",
		Type: fields.Bool(),
		Doc: "the model is shown the tool only from a tool_reference or a tool_addition on, at that place: the " +
			"prompt before it stays as it was",
		Set: func(t *tool, v fields.Value) error {
			t.deferred = v.Bool()
			return nil
		},
	},
	cacheField(func(t *tool) { t.marked = true }),
	{Name: "eager_input_streaming", Type: fields.Bool(), Doc: "accepted: inputs are always streamed as they come"},
	{
		Name: "strict",
		Type: fields.Bool(),
		Doc:  "inputs fit the schema, or there is no call; a schema that cannot be enforced exactly is refused",
		Set: func(t *tool, v fields.Value) error {
			t.t.Strict, t.t.StrictField = v.Bool(), v.Path
			return nil
		},
	},
	{
		Name:  "allowed_callers",
		Use:   fields.Refused,
		Allow: []string{`["direct"]`, "[]"},
		Doc:   "tools are called by the model alone",
	},
}}

// A toolbox holds the tools of a request: those declared in tools, and those that messages define.
type toolbox struct {
	order  []string
	byName map[string]*tool
	marked bool
}

// declare adds a tool.
func (b *toolbox) declare(v fields.Value) error {
	if kind, ok := v.Get("type"); ok && kind.Kind() == "string" && kind.String() != "custom" {
		return chat.Unsupportedf(
			v.Path,
			"tools of type %q are not supported: this server runs no tools and knows the vendor's own by no schema; "+
				"declare it with a name and an input_schema",
			clip(kind.String()),
		)
	}
	var t tool
	if err := toolTable.DecodeValue(v, &t); err != nil {
		return err
	}
	t.t.Field = v.Path
	for i, e := range t.examples {
		if i == 0 {
			t.t.Description = strings.TrimSpace(t.t.Description+"\n\nExamples of input:") + "\n"
		}
		t.t.Description += e + "\n"
	}
	t.t.Description = strings.TrimRight(t.t.Description, "\n")
	b.marked = b.marked || t.marked
	switch old := b.byName[t.t.Name]; {
	case old == nil:
		b.order = append(b.order, t.t.Name)
	case !old.removed:
		return chat.Invalidf("tools", "tool names must be unique: there are two tools named %q", t.t.Name)
	}
	b.byName[t.t.Name] = &t
	return nil
}

// reveal makes a tool known from a message on. It returns what the message says to the model.
func (b *toolbox) reveal(name, path string) (string, error) {
	t := b.byName[name]
	if t == nil {
		return "", chat.Invalidf(path, "there is no tool named %q: declare it in tools", clip(name))
	}
	t.removed = false
	if !t.deferred && !t.told {
		return "The tool " + name + " is there.", nil
	}
	t.told = true
	d, err := server.Marshal(struct {
		Description string          `json:"description"`
		Name        string          `json:"name"`
		Parameters  json.RawMessage `json:"parameters"`
	}{t.t.Description, name, json.RawMessage(compact(t.t.Parameters))})
	if err != nil {
		return "", chat.Invalidf(path, "the definition of the tool %q cannot be written: %v", clip(name), err)
	}
	return "<functions>\n<function>" + string(d) + "</function>\n</functions>", nil
}

// define adds a tool that a message brings.
func (b *toolbox) define(v fields.Value) (string, error) {
	if err := b.declare(v); err != nil {
		return "", err
	}
	name, _ := v.Get("name")
	b.byName[name.String()].told = true
	return b.reveal(name.String(), v.Path)
}

// remove takes a tool away.
func (b *toolbox) remove(name, path string) (string, error) {
	t := b.byName[name]
	if t == nil {
		return "", chat.Invalidf(path, "there is no tool named %q", clip(name))
	}
	t.removed = true
	return "The tool " + name + " is not there any more.", nil
}

// offered lists the tools that the model may call. chosen is the one that it must, if there is one.
func (b *toolbox) offered(chosen string) []chat.Tool {
	var out []chat.Tool
	for _, name := range b.order {
		t := b.byName[name]
		if t.removed || t.deferred && !t.told && name != chosen {
			continue
		}
		t.t.Told = t.told
		out = append(out, t.t)
	}
	return out
}

// A change is the tool of a tool_addition or a tool_removal.
type change struct {
	kind, name string
	definition fields.Value
}

var changeTable = &fields.Table[change]{Name: "tool change", Where: []map[string]any{{"anyOf": []any{
	map[string]any{
		"required": []string{"name"},
		"properties": map[string]any{
			"type": map[string]any{"const": "tool_reference"},
			"name": map[string]any{"type": "string", "minLength": 1},
		},
	},
	map[string]any{
		"required": []string{"definition"},
		"properties": map[string]any{
			"type":       map[string]any{"const": "tool_definition"},
			"definition": map[string]any{"type": "object"},
		},
	},
}}}, Fields: []fields.Field[change]{
	{
		Name: "type",
		Type: fields.Enum("tool_reference", "tool_definition", "mcp_tool_reference", "mcp_toolset_reference").
			Only("tool_reference", "tool_definition"),
		Required: true,
		Doc:      "tool_reference, or of an addition tool_definition; the others are refused",
		Set: func(c *change, v fields.Value) error {
			if c.kind = v.String(); strings.HasPrefix(c.kind, "mcp_") {
				return chat.Unsupportedf(v.Path, "this server calls no other servers")
			}
			return nil
		},
	},
	{
		Name: "name",
		Type: fields.String(),
		Doc:  "of the tool that a tool_reference means",
		Set:  func(c *change, v fields.Value) error { c.name = v.String(); return nil },
	},
	{
		Name: "definition",
		Type: fields.Object("tool"),
		Doc:  "of a tool_definition: as in tools",
		Set:  func(c *change, v fields.Value) error { c.definition = v; return nil },
	},
	{Name: "server_name", Use: fields.Refused, Doc: "this server calls no other servers"},
}}

// apply makes the change of a block and gives the block the text that tells the model.
func (b *toolbox) apply(x *block) (err error) {
	at := x.path + ".tool"
	switch c := &x.change; {
	case c.kind == "tool_definition" && x.kind == "tool_removal":
		return chat.Invalidf(at+".type", "a tool is taken away by a tool_reference")
	case c.kind == "tool_definition" && c.definition.Raw == nil:
		return chat.MissingField(at + ".definition")
	case c.kind == "tool_definition":
		x.text, err = b.define(c.definition)
	case x.kind == "tool_removal":
		x.text, err = b.remove(c.name, at+".name")
	default:
		x.text, err = b.reveal(c.name, at+".name")
	}
	return err
}
