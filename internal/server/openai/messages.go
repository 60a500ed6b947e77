package openai

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

var negInf = float32(math.Inf(-1))

// partTable decodes an element of a message's content.
var partTable = &fields.Table[chat.Part]{Name: "content part", IgnoreUnknown: true, Fields: []fields.Field[chat.Part]{
	{
		Name:     "type",
		Type:     fields.Enum("text", "image_url", "input_audio", "file", "refusal").Only("text", "refusal"),
		Required: true,
		Doc:      "what the part is; images, audio and files are refused by models that take text only",
		Set: func(p *chat.Part, v fields.Value) error {
			switch v.String() {
			case "image_url":
				p.Media = chat.Image
			case "input_audio":
				p.Media = chat.Audio
			case "file":
				p.Media = chat.File
			}
			return nil
		},
	},
	{
		Name: "text",
		Type: fields.String(),
		Doc:  "the text",
		Set:  func(p *chat.Part, v fields.Value) error { p.Text = v.String(); return nil },
	},
	{
		Name: "refusal",
		Type: fields.String(),
		Doc:  "an earlier refusal; the model sees it as text",
		Set:  func(p *chat.Part, v fields.Value) error { p.Text = v.String(); return nil },
	},
	{
		Name: "image_url",
		Type: fields.Object("image_url").
			Where(map[string]any{"required": []string{"url"}, "properties": map[string]any{"url": map[string]any{"type": "string"}}}),
		Doc: "an image as a data URL; refused by models that take text only",
		Set: setImage,
	},
	{Name: "input_audio", Type: fields.Object("input_audio"), Doc: "refused by models that take text only"},
	{Name: "file", Type: fields.Object("file"), Doc: "refused by models that take text only"},
	{Name: "cache_control", Type: fields.Any(), Use: fields.Ignored, Doc: "the cache finds prefixes by itself"},
	{
		Name: "prompt_cache_breakpoint",
		Type: fields.Any(),
		Use:  fields.Ignored,
		Doc:  "the cache finds prefixes by itself",
	},
	{
		Name: "annotations",
		Type: fields.Any(),
		Use:  fields.Ignored,
		Doc:  "of an earlier answer; the model does not see them",
	},
	{Name: "role", Type: fields.Any(), Use: fields.Ignored, Doc: "of an earlier answer: that of the message counts"},
	{Name: "id", Type: fields.Any(), Use: fields.Ignored, Doc: "of an earlier answer"},
}}

func setImage(p *chat.Part, v fields.Value) error {
	u, ok := v.Get("url")
	if !ok || u.Kind() != "string" {
		return chat.Invalidf(v.Path, "the image has no url")
	}
	p.URL = u.String()
	meta, data, found := strings.Cut(strings.TrimPrefix(p.URL, "data:"), ",")
	if !strings.HasPrefix(p.URL, "data:") || !found {
		return nil // an address; nothing is fetched
	}
	p.MIME = strings.TrimSuffix(meta, ";base64")
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return chat.Invalidf(u.Path, "the data URL is not base64")
	}
	p.Data = b
	return nil
}

// content decodes a message's content.
func content(v fields.Value) ([]chat.Part, error) {
	if v.Kind() == "string" {
		return []chat.Part{{Text: v.String(), Field: v.Path}}, nil
	}
	var parts []chat.Part
	for _, it := range v.Items() {
		p := chat.Part{Field: it.Path}
		if err := partTable.DecodeValue(it, &p); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

var contentType = fields.String().Or(fields.List(fields.Object("content part")))

// messageRules are what messages checks.
var messageRules = []map[string]any{
	needs(
		"role",
		map[string]any{"enum": []any{"developer", "system", "user", "assistant"}},
		"tool_call_id",
		map[string]any{"type": "string", "minLength": 1},
	),
	{"anyOf": []any{
		map[string]any{"properties": map[string]any{"role": map[string]any{"const": "assistant"}}},
		map[string]any{
			"anyOf": []any{
				map[string]any{
					"required": []string{"content"},
					"properties": map[string]any{
						"content": map[string]any{"type": []string{"string", "array"}, "minItems": 1},
					},
				},
				map[string]any{
					"required":   []string{"refusal"},
					"properties": map[string]any{"refusal": map[string]any{"type": "string"}},
				},
			},
			"properties": map[string]any{
				"tool_calls": map[string]any{
					"anyOf": []any{map[string]any{"type": "null"}, map[string]any{"maxItems": 0}},
				},
			},
		},
	}},
}

// messageTable decodes a message.
var messageTable = &fields.Table[chat.Message]{
	Name:          "message",
	IgnoreUnknown: true,
	Where:         messageRules,
	Fields: []fields.Field[chat.Message]{
		{
			Name:     "role",
			Type:     fields.Enum("developer", "system", "user", "assistant", "tool"),
			Required: true,
			Doc:      "who speaks",
			Set: func(m *chat.Message, v fields.Value) error {
				m.Role = v.String()
				return nil
			},
		},
		{
			Name: "content",
			Type: contentType,
			Doc:  "what is said",
			Set: func(m *chat.Message, v fields.Value) (err error) {
				m.Parts, err = content(v)
				return err
			},
		},
		{
			Name: "name",
			Type: fields.String(),
			Doc:  "of a tool's result: the tool; of others it has no effect",
			Set: func(m *chat.Message, v fields.Value) error {
				m.ToolName = v.String()
				return nil
			},
		},
		{
			Name: "tool_calls",
			Type: fields.List(fields.Object("tool call")),
			Doc:  "calls that the assistant made",
			Set:  setCalls,
		},
		{
			Name: "tool_call_id",
			Type: fields.String(),
			Doc:  "of a tool's result: the call that it answers",
			Set: func(m *chat.Message, v fields.Value) error {
				m.CallID = v.String()
				return nil
			},
		},
		{
			Name: "reasoning_content",
			Type: fields.String(),
			Doc:  "not OpenAI's: the assistant's earlier reasoning, for templates that show it",
			Set:  setReasoning,
		},
		{
			Name: "reasoning",
			Type: fields.String(),
			Doc:  "not OpenAI's: another name of reasoning_content",
			Set:  setReasoning,
		},
		{
			Name: "refusal",
			Type: fields.String(),
			Doc:  "an earlier refusal; the model sees it as text",
			Set: func(m *chat.Message, v fields.Value) error {
				m.Parts = append(m.Parts, chat.Part{Text: v.String()})
				return nil
			},
		},
		{Name: "audio", Type: fields.Object("audio"), Use: fields.Refused, Doc: "the models answer with text"},
		{
			Name: "function_call",
			Type: fields.Object("function call"),
			Use:  fields.Refused,
			Doc:  "deprecated: use tool_calls",
		},
		{
			Name:  "prefix",
			Type:  fields.Bool(),
			Use:   fields.Refused,
			Allow: []string{"false"},
			Doc:   "not OpenAI's: an answer is not continued from a begun message; use /v1/completions",
		},
		{
			Name:  "partial",
			Type:  fields.Bool(),
			Use:   fields.Refused,
			Allow: []string{"false"},
			Doc:   "not OpenAI's: as prefix",
		},
		{Name: "id", Type: fields.Any(), Use: fields.Ignored, Doc: "of an earlier answer"},
		{
			Name: "annotations",
			Type: fields.Any(),
			Use:  fields.Ignored,
			Doc:  "of an earlier answer; the model does not see them",
		},
		{Name: "cache_control", Type: fields.Any(), Use: fields.Ignored, Doc: "the cache finds prefixes by itself"},
	},
}

func setReasoning(m *chat.Message, v fields.Value) error {
	m.Reasoning = v.String()
	return nil
}

// callTable decodes a call that was made.
var callTable = &fields.Table[chat.Call]{Name: "tool call", IgnoreUnknown: true, Fields: []fields.Field[chat.Call]{
	{
		Name: "id",
		Type: fields.String(),
		Doc:  "the call's id",
		Set:  func(c *chat.Call, v fields.Value) error { c.ID = v.String(); return nil },
	},
	{Name: "type", Type: fields.Enum("function"), Doc: "function"},
	{Name: "index", Type: fields.Any(), Use: fields.Ignored, Doc: "the order of the list counts"},
	{Name: "custom", Type: fields.Object("custom"), Use: fields.Refused, Doc: "custom tools need constrained output"},
	{
		Name:     "function",
		Type:     fields.Object("function call"),
		Required: true,
		Doc:      "name and arguments",
		Set: func(c *chat.Call, v fields.Value) error {
			return functionCallTable.DecodeValue(v, c)
		},
	},
}}

var functionCallTable = &fields.Table[chat.Call]{
	Name:          "function call",
	IgnoreUnknown: true,
	Fields: []fields.Field[chat.Call]{
		{
			Name:     "name",
			Type:     fields.String(),
			Required: true,
			Doc:      "of the function",
			Set:      func(c *chat.Call, v fields.Value) error { c.Name = v.String(); return nil },
		},
		{
			Name: "arguments",
			Type: fields.String().
				Where(map[string]any{"contentMediaType": "application/json"}).
				Or(fields.Object("object")),
			Doc: "JSON text of the arguments",
			Set: func(c *chat.Call, v fields.Value) error {
				c.Arguments = string(v.Raw)
				if v.Kind() == "string" {
					c.Arguments = v.String() // perhaps empty or cut, as a model wrote it: the prompt has it repaired
				}
				return nil
			},
		},
	},
}

func setCalls(m *chat.Message, v fields.Value) error {
	for _, it := range v.Items() {
		var c chat.Call
		if err := callTable.DecodeValue(it, &c); err != nil {
			return err
		}
		m.Calls = append(m.Calls, c)
	}
	return nil
}

// messages decodes a conversation.
func messages(v fields.Value) ([]chat.Message, error) {
	var out []chat.Message
	for _, it := range v.Items() {
		m := chat.Message{Field: it.Path}
		if err := messageTable.DecodeValue(it, &m); err != nil {
			return nil, err
		}
		switch {
		case m.Role == chat.ToolRole && m.CallID == "":
			return nil, chat.MissingField(it.Path + ".tool_call_id")
		case m.Role != chat.Assistant && len(m.Calls) > 0:
			return nil, chat.Invalidf(it.Path+".tool_calls", "only the assistant makes calls")
		case m.Role != chat.Assistant && m.Parts == nil:
			if c, ok := it.Get("content"); ok {
				return nil, chat.EmptyField(c.Path)
			}
			return nil, chat.MissingField(it.Path + ".content")
		}
		out = append(out, m)
	}
	return out, nil
}

// toolTable decodes a tool of chat completions.
var toolTable = &fields.Table[chat.Tool]{Name: "tool", IgnoreUnknown: true, Fields: []fields.Field[chat.Tool]{
	{
		Name:     "type",
		Type:     fields.Enum("function", "custom").Only("function"),
		Required: true,
		Doc:      "function; custom tools are refused",
		Set: func(_ *chat.Tool, v fields.Value) error {
			if v.String() != "function" {
				return chat.Unsupportedf(v.Path, "custom tools are not supported: declare a function")
			}
			return nil
		},
	},
	{
		Name:     "function",
		Type:     fields.Object("function"),
		Required: true,
		Doc:      "the function",
		Set: func(t *chat.Tool, v fields.Value) error {
			return functionTable.DecodeValue(v, t)
		},
	},
	{Name: "custom", Type: fields.Object("custom"), Use: fields.Refused, Doc: "custom tools need constrained output"},
	{Name: "cache_control", Type: fields.Any(), Use: fields.Ignored, Doc: "the cache finds prefixes by itself"},
}}

var functionTable = &fields.Table[chat.Tool]{Name: "function", IgnoreUnknown: true, Fields: functionFields()}

const maxName = 256

func functionFields() []fields.Field[chat.Tool] {
	return []fields.Field[chat.Tool]{
		{
			Name:     "name",
			Type:     fields.String().Where(map[string]any{"minLength": 1, "maxLength": maxName}),
			Required: true,
			Doc:      "name of the function",
			Set: func(t *chat.Tool, v fields.Value) error {
				t.Name = v.String()
				if n := utf8.RuneCountInString(t.Name); n == 0 || n > maxName {
					return chat.Invalidf(v.Path, "the name has %d characters, want 1 to %d", n, maxName)
				}
				return nil
			},
		},
		{
			Name: "description",
			Type: fields.String(),
			Doc:  "what it is for",
			Set:  func(t *chat.Tool, v fields.Value) error { t.Description = v.String(); return nil },
		},
		{
			Name: "parameters",
			Type: fields.Object("JSON Schema"),
			Doc:  "its parameters",
			Set:  func(t *chat.Tool, v fields.Value) (err error) { t.Parameters, err = v.Schema(); return err },
		},
		{
			Name: "strict",
			Type: fields.Bool(),
			Doc:  "arguments fit the schema, or there is no call; a schema that cannot be enforced exactly is refused",
			Set: func(t *chat.Tool, v fields.Value) error {
				t.Strict, t.StrictField = v.Bool(), v.Path
				return nil
			},
		},
	}
}

// tools decodes a list of tools by a table.
func tools(v fields.Value, table *fields.Table[chat.Tool]) ([]chat.Tool, error) {
	var out []chat.Tool
	for _, it := range v.Items() {
		t := chat.Tool{Field: it.Path}
		if err := table.DecodeValue(it, &t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// choiceWords are the words of tool_choice.
var choiceWords = fields.Enum("none", "auto", "required")

// choiceNeedsTools says that a call can be demanded only where there are tools.
var choiceNeedsTools = needs(
	"tool_choice",
	map[string]any{"enum": []any{nil, "none", "auto"}},
	"tools",
	map[string]any{"type": "array", "minItems": 1},
)

// A declared table says what stands in objects that are read where they are used.
type (
	declared      = fields.Table[struct{}]
	declaredField = fields.Field[struct{}]
)

func typeField(kind string) fields.Field[struct{}] {
	return fields.Field[struct{}]{Name: "type", Type: fields.Enum(kind), Required: true, Doc: kind}
}

func nameField(of string) fields.Field[struct{}] {
	return fields.Field[struct{}]{Name: "name", Type: fields.String(), Required: true, Doc: of}
}

func modeField() fields.Field[struct{}] {
	return fields.Field[struct{}]{Name: "mode", Type: choiceWords, Doc: "as the words of tool_choice"}
}

// The objects of tool_choice, in the shape of chat completions.
var (
	choiceName = &declared{
		Name:          "name of a function",
		IgnoreUnknown: true,
		Fields:        []fields.Field[struct{}]{nameField("of a function among the tools")},
	}
	chatFunctionChoice = &declared{Name: "function choice", IgnoreUnknown: true, Fields: []fields.Field[struct{}]{
		typeField(
			"function",
		), {Name: "function", Type: fields.Object("name of a function"), Required: true, Doc: "the function to call"},
	}}
	chatAllowedTool = &declared{Name: "allowed tool", IgnoreUnknown: true, Fields: []fields.Field[struct{}]{
		{
			Name: "type",
			Type: fields.Enum("function"),
			Doc:  "function",
		}, {Name: "function", Type: fields.Object("name of a function"), Required: true, Doc: "one that may be called"},
	}}
	chatAllowed = &declared{Name: "allowed tools", IgnoreUnknown: true, Fields: []fields.Field[struct{}]{
		modeField(), {Name: "tools", Type: fields.List(fields.Object("allowed tool")), Required: true, Doc: "those that may be called"},
	}}
	chatAllowedChoice = &declared{Name: "allowed tools choice", IgnoreUnknown: true, Fields: []fields.Field[struct{}]{
		typeField(
			"allowed_tools",
		), {Name: "allowed_tools", Type: fields.Object("allowed tools"), Required: true, Doc: "tools that may be " +
			"called"},
	}}
	chatChoices = &fields.OneOf{Name: "tool choice", Of: []fields.ObjectTable{chatFunctionChoice, chatAllowedChoice}}
)

// modeOf reads the words of tool_choice.
func modeOf(v fields.Value) (chat.ToolMode, error) {
	switch v.String() {
	case "auto":
		return chat.ToolsAuto, nil
	case "none":
		return chat.ToolsNone, nil
	case "required":
		return chat.ToolsRequired, nil
	}
	return 0, chat.Invalidf(v.Path, "%q is not one of none, auto, required", v.String())
}

// setChoice decodes tool_choice; nameOf finds the name in an object of the route's shape.
func setChoice(req *chat.Request, v fields.Value) error {
	req.Choice.Field = v.Path
	if v.Kind() == "string" {
		mode, err := modeOf(v)
		req.Choice.Mode = mode
		return err
	}
	kind, _ := v.Get("type")
	switch kind.String() {
	case "function":
		name, ok := nameOf(v)
		if !ok {
			return chat.MissingField(v.Path + ".function.name")
		}
		req.Choice.Mode, req.Choice.Name = chat.ToolNamed, name
		return nil
	case "allowed_tools":
		return allowedTools(req, v)
	}
	return chat.Unsupportedf(v.Path, "not supported: choices of type %q", kind.String())
}

// nameOf finds a function's name, in the shape of chat completions or of responses.
func nameOf(v fields.Value) (string, bool) {
	if f, ok := v.Get("function"); ok {
		v = f
	}
	n, ok := v.Get("name")
	return flat(text(v, "namespace"), n.String()), ok && n.Kind() == "string"
}

// allowedTools leaves the named tools.
func allowedTools(req *chat.Request, v fields.Value) error {
	if inner, ok := v.Get("allowed_tools"); ok {
		v = inner
	}
	if m, ok := v.Get("mode"); ok {
		mode, err := modeOf(m)
		if err != nil {
			return err
		}
		req.Choice.Mode = mode
	}
	list, ok := v.Get("tools")
	if !ok || list.Kind() != "array" {
		return chat.MissingField(v.Path + ".tools")
	}
	allowed := map[string]bool{}
	for _, it := range list.Items() {
		name, ok := nameOf(it)
		switch {
		case slices.Contains(hostedTools, text(it, "type")): // left out of the tools, too
			continue
		case !ok:
			return chat.Unsupportedf(it.Path, "only functions can be allowed")
		}
		allowed[name] = true
	}
	var kept []chat.Tool
	for _, t := range req.Tools {
		if allowed[t.Name] {
			kept = append(kept, t)
			delete(allowed, t.Name)
		}
	}
	for name := range allowed {
		return chat.Invalidf(list.Path, "there is no tool named %q", name)
	}
	req.Tools = kept
	return nil
}

// efforts are the words of reasoning efforts.
var efforts = fields.Enum(chat.Efforts...)

const effortDoc = "for models that know efforts. For others none and minimal switch reasoning off and the rest on; " +
	"low, medium and high end it after 1024, 8192 and 24576 tokens. Models that never reason answer as they are"
