package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// responseRequest is a request for a response.
type responseRequest struct {
	common
	caller        string
	items         []json.RawMessage // the input as items, each with an id
	messages      []chat.Message    // of items
	instructions  *string
	previous      string
	inputGiven    bool
	noStore       bool
	choice        fields.Value
	tools         fields.Value
	custom        map[string]bool   // names of custom tools
	spaces        map[string]spaced // tools of namespaces, by the name that the model sees
	encrypted     bool              // include reasoning.encrypted_content
	withLogs      bool
	metadata      json.RawMessage
	reasoning     json.RawMessage
	text          json.RawMessage
	parallelFalse bool
	resolve       func(id string) (json.RawMessage, bool) // finds an item of a kept response
	room          int                                     // bytes of what input may refer to
}

func responsePart(r *responseRequest) *common { return &r.common }

func responseObjects() []fields.ObjectTable {
	return append([]fields.ObjectTable{
		reasoningTable, textTable, anyResponseTool, responseToolTable, hostedTool, inputPartTable, streamOptionsTable,
		responseChoices, responseFunctionChoice, responseAllowedChoice, choiceName,
	}, itemObjects()...)
}

var responseTable = &fields.Table[responseRequest]{Name: "response request", Where: []map[string]any{
	streamOnly, choiceNeedsTools,
	{"anyOf": []any{ // something to answer
		map[string]any{
			"required":   []string{"input"},
			"properties": map[string]any{"input": map[string]any{"type": []string{"string", "array"}, "minItems": 1}},
		},
		map[string]any{
			"required":   []string{"previous_response_id"},
			"properties": map[string]any{"previous_response_id": map[string]any{"type": "string", "minLength": 1}},
		},
	}},
}, Fields: append(
	samplingFields(responsePart),
	field(
		responsePart,
		"model",
		fields.String(),
		"name of the model",
		func(c *common, v fields.Value) error { c.req.Model = v.String(); return nil },
	),
	fields.Field[responseRequest]{
		Name: "input", Type: fields.String().Or(fields.List(fields.Object("input item"))), Doc: "a text, or items: messages, calls, their outputs, reasoning, references to items of kept responses",
		Set: func(r *responseRequest, v fields.Value) error { return r.input(v) },
	},
	fields.Field[responseRequest]{
		Name: "instructions",
		Type: fields.String(),
		Doc:  "stands before the conversation; not carried over to later responses",
		Set: func(r *responseRequest, v fields.Value) error {
			s := v.String()
			r.instructions = &s
			return nil
		},
	},
	fields.Field[responseRequest]{
		Name: "previous_response_id",
		Type: fields.String(),
		Doc:  "a kept response that this one continues",
		Set: func(r *responseRequest, v fields.Value) error {
			r.previous = v.String()
			return nil
		},
	},
	fields.Field[responseRequest]{
		Name: "store",
		Type: fields.Bool(),
		Doc:  "false does not keep the response",
		Set:  func(r *responseRequest, v fields.Value) error { r.noStore = !v.Bool(); return nil },
	},
	field(
		responsePart,
		"stream",
		fields.Bool(),
		"send events as the answer is made",
		func(c *common, v fields.Value) error { c.stream = v.Bool(); return nil },
	),
	field(
		responsePart,
		"stream_options",
		fields.Object("stream_options"),
		"of a stream",
		func(c *common, v fields.Value) error {
			c.hasOptions = true
			return streamOptionsTable.DecodeValue(v, c)
		},
	),
	field(
		responsePart,
		"max_output_tokens",
		bounds,
		"most tokens to generate, reasoning included; until the context is full where it is left out or -1",
		setBound,
	),
	fields.Field[responseRequest]{
		Name: "tools", Type: fields.List(fields.Object("any response tool")).Len(0, 512), Doc: "functions and custom tools. Tools of other types, which OpenAI or its own clients run, are left out of the prompt and named in the header X-Baleen-Notice",
		Set: func(r *responseRequest, v fields.Value) error { r.tools = v; return r.setTools(v) },
	},
	fields.Field[responseRequest]{
		Name: "tool_choice", Type: choiceWords.Or(fields.Object("response tool choice")), Doc: "none, auto, required, a function, or allowed tools",
		Set: func(r *responseRequest, v fields.Value) error { r.choice = v; return nil },
	},
	concludeField(responsePart),
	timeField(responsePart),
	fields.Field[responseRequest]{
		Name: "parallel_tool_calls",
		Type: fields.Bool(),
		Doc:  "false allows at most one call in an answer",
		Set: func(r *responseRequest, v fields.Value) error {
			r.req.SingleCall, r.parallelFalse = !v.Bool(), !v.Bool()
			return nil
		},
	},
	fields.Field[responseRequest]{
		Name: "reasoning",
		Type: fields.Object("reasoning"),
		Doc:  "effort of reasoning",
		Set: func(r *responseRequest, v fields.Value) error {
			r.reasoning = v.Raw
			return reasoningTable.DecodeValue(v, &r.common)
		},
	},
	fields.Field[responseRequest]{
		Name: "text",
		Type: fields.Object("text"),
		Doc:  "shape of the text",
		Set: func(r *responseRequest, v fields.Value) error {
			r.text = v.Raw
			return textTable.DecodeValue(v, &r.common)
		},
	},
	fields.Field[responseRequest]{
		Name: "include",
		Type: fields.List(fields.String()),
		Doc: "reasoning.encrypted_content and message.output_text.logprobs; others belong to tools that OpenAI " +
			"runs itself and add nothing",
		Set: func(r *responseRequest, v fields.Value) error {
			r.encrypted = slices.Contains(v.Strings(), "reasoning.encrypted_content")
			r.withLogs = slices.Contains(v.Strings(), "message.output_text.logprobs")
			return nil
		},
	},
	fields.Field[responseRequest]{
		Name: "top_logprobs",
		Type: fields.Int(0, 20),
		Doc:  "alternatives beside each token",
		Set: func(r *responseRequest, v fields.Value) error {
			r.topLogs = v.Int()
			r.withLogs = r.withLogs || r.topLogs > 0
			return nil
		},
	},
	fields.Field[responseRequest]{
		Name: "metadata",
		Type: fields.Object("metadata"),
		Doc:  "kept with the response",
		Set:  func(r *responseRequest, v fields.Value) error { r.metadata = v.Raw; return nil },
	},
	fields.Field[responseRequest]{
		Name:  "truncation",
		Type:  fields.Enum("auto", "disabled"),
		Use:   fields.Refused,
		Allow: []string{`"disabled"`},
		Doc:   "nothing is dropped in silence: a prompt that does not fit is refused",
	},
	fields.Field[responseRequest]{
		Name:  "background",
		Type:  fields.Bool(),
		Use:   fields.Refused,
		Allow: []string{"false"},
		Doc:   "responses are made while the client waits",
	},
	fields.Field[responseRequest]{
		Name: "background_options",
		Type: fields.Object("background_options"),
		Use:  fields.Refused,
		Doc:  "responses are made while the client waits",
	},
	fields.Field[responseRequest]{
		Name: "conversation",
		Type: fields.Any(),
		Use:  fields.Refused,
		Doc:  "there are no conversation objects: use previous_response_id",
	},
	fields.Field[responseRequest]{
		Name: "prompt",
		Type: fields.Object("prompt"),
		Use:  fields.Refused,
		Doc:  "there are no stored prompts",
	},
	fields.Field[responseRequest]{
		Name:  "context_management",
		Type:  fields.List(fields.Object("context_management")),
		Use:   fields.Refused,
		Allow: []string{"[]"},
		Doc:   "the server does not compact conversations",
	},
	fields.Field[responseRequest]{
		Name: "moderation",
		Type: fields.Object("moderation"),
		Use:  fields.Refused,
		Doc:  "there is no moderation model",
	},
	fields.Field[responseRequest]{
		Name: "image",
		Type: fields.Object("image"),
		Use:  fields.Refused,
		Doc:  "the models take text",
	},
	fields.Field[responseRequest]{
		Name: "access_programs",
		Type: fields.Object("access_programs"),
		Use:  fields.Refused,
		Doc:  "belongs to OpenAI's own models",
	},
	fields.Field[responseRequest]{
		Name: "max_tool_calls",
		Type: fields.Int(1, anyHi),
		Use:  fields.Ignored,
		Doc:  "counts calls of tools that OpenAI runs itself; there are none",
	},
	fields.Field[responseRequest]{
		Name: "prompt_cache_key",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "the cache finds prefixes by itself",
	},
	fields.Field[responseRequest]{
		Name: "prompt_cache_options",
		Type: fields.Object("prompt_cache_options"),
		Use:  fields.Ignored,
		Doc:  "the cache finds prefixes by itself",
	},
	fields.Field[responseRequest]{
		Name: "prompt_cache_retention",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "the cache keeps what fits",
	},
	fields.Field[responseRequest]{
		Name: "safety_identifier",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "names an end user to OpenAI; there is nobody to tell",
	},
	fields.Field[responseRequest]{
		Name: "service_tier",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "there is one tier",
	},
	fields.Field[responseRequest]{
		Name: "user",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "names an end user to OpenAI; there is nobody to tell",
	},
	fields.Field[responseRequest]{
		Name: "client_metadata",
		Type: fields.Any(),
		Use:  fields.Ignored,
		Doc:  "not documented by OpenAI, sent by its own client: names the client's session",
	},
)}

var reasoningTable = &fields.Table[common]{Name: "reasoning", Fields: []fields.Field[common]{
	{Name: "effort", Type: efforts, Doc: effortDoc, Set: func(c *common, v fields.Value) error {
		c.req.Effort = v.String()
		return nil
	}},
	{
		Name: "summary",
		Type: fields.Enum("auto", "concise", "detailed", "none"),
		Doc: "other than none: the reasoning comes as the summary of its item, whole, since nothing here shortens " +
			"it. Left out: as the item's content",
		Set: func(c *common, v fields.Value) error {
			c.summary = v.String() != "none"
			return nil
		},
	},
	{Name: "generate_summary", Type: fields.String(), Use: fields.Ignored, Doc: "older name of summary"},
	{
		Name: "context",
		Type: fields.String(),
		Use:  fields.Ignored,
		Doc:  "the template decides which earlier reasoning the model sees",
	},
	{
		Name:  "mode",
		Type:  fields.String(),
		Use:   fields.Refused,
		Allow: []string{`"standard"`},
		Doc:   "there is no pro mode",
	},
}}

var textTable = &fields.Table[common]{Name: "text", Fields: []fields.Field[common]{
	{
		Name: "format",
		Type: formatType("text format"),
		Doc: "what the answer is held to: json_object, or json_schema with a schema that can be enforced exactly; " +
			"reasoning and calls are free",
		Set: func(c *common, v fields.Value) error {
			return setFormat(&c.req, v)
		},
	},
	{
		Name:  "verbosity",
		Type:  fields.String(),
		Use:   fields.Refused,
		Allow: []string{`"medium"`},
		Doc:   "no model here was trained for it: ask in the prompt",
	},
}}

// input decodes the input.
func (r *responseRequest) input(v fields.Value) error {
	r.inputGiven = true
	if v.Kind() == "string" {
		item, err := json.Marshal(
			map[string]any{
				"type":    "message",
				"role":    "user",
				"content": []any{map[string]any{"type": "input_text", "text": v.String()}},
			},
		)
		if err != nil {
			return err
		}
		v = fields.Value{Raw: append(append(json.RawMessage("["), item...), ']'), Path: v.Path}
	}
	var ms itemReader
	left := r.room
	for _, it := range v.Items() {
		at := it.Path
		it, refers, err := r.dereference(it)
		if err != nil {
			return err
		}
		if left -= refers; left < 0 {
			return chat.Invalidf(
				at+".id",
				"the items that are referred to have more than %d bytes together: no context of this server has "+
					"room for them",
				r.room,
			)
		}
		if err := ms.item(it); err != nil {
			return err
		}
		r.items = append(r.items, itemOf(it.Raw))
	}
	r.messages = ms.out
	return nil
}

// dereference returns the kept item that an item refers to, or the item itself where it is none that refers. What a
// response keeps of its input are items only: a kept reference would have the id of what it refers to, and lead to
// itself.
//
// size is how many bytes it was led to: a short request may name the same long item many times.
func (r *responseRequest) dereference(v fields.Value) (item fields.Value, size int, err error) {
	if text(v, "type") != "item_reference" {
		return v, 0, nil
	}
	if err := referenceItem.DecodeValue(v, &struct{}{}); err != nil {
		return v, 0, err
	}
	id := text(v, "id")
	raw, ok := r.resolve(id)
	if !ok {
		return v, 0, &chat.Error{
			Kind:  chat.NotFound,
			Field: v.Path + ".id",
			Msg:   fmt.Sprintf("no kept response has an item %q", id),
		}
	}
	return fields.Value{Raw: raw, Path: v.Path}, len(raw), nil
}

// itemOf gives an item of the input what the vendor's lists of input items have and requests may leave out: an id, a
// type, a state, and content as a list.
func itemOf(raw json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	def := func(key string, v any) {
		if old, ok := m[key]; ok && string(old) != "null" {
			return
		}
		if b, err := json.Marshal(v); err == nil {
			m[key] = b
		}
	}
	def("id", chat.NewID("item_"))
	def("type", "message")
	switch string(m["type"]) {
	case `"message"`:
		kind := "input_text"
		if string(m["role"]) == `"assistant"` {
			kind = "output_text"
		}
		var text string
		if json.Unmarshal(m["content"], &text) == nil {
			part := map[string]any{"type": kind, "text": text}
			if kind == "output_text" {
				part["annotations"], part["logprobs"] = []any{}, []any{}
			}
			delete(m, "content")
			def("content", []any{part})
		}
		def("status", "completed")
	case `"function_call"`, `"function_call_output"`, `"custom_tool_call_output"`:
		def("status", "completed")
	}
	if b, err := json.Marshal(m); err == nil {
		return b
	}
	return raw
}

// itemReader turns items into messages: what the assistant thought, said and called in a row is one turn.
type itemReader struct {
	out  []chat.Message
	turn bool // the last message is the assistant's and may grow
}

func (ir *itemReader) assistant(path string) *chat.Message {
	if !ir.turn {
		ir.out = append(ir.out, chat.Message{Role: chat.Assistant, Field: path})
		ir.turn = true
	}
	return &ir.out[len(ir.out)-1]
}

func (ir *itemReader) other(m chat.Message) {
	ir.turn = false
	ir.out = append(ir.out, m)
}

func text(v fields.Value, name string) string {
	x, _ := v.Get(name)
	return x.String()
}

func (ir *itemReader) item(v fields.Value) error {
	if v.Kind() != "object" {
		return chat.Invalidf(v.Path, "want an object")
	}
	kind := text(v, "type")
	if kind == "" && text(v, "role") != "" {
		kind = "message"
	}
	if t := itemTables[kind]; t != nil {
		if err := t.DecodeValue(v, &struct{}{}); err != nil {
			return err
		}
	}
	switch kind {
	case "message":
		return ir.message(v)
	case "reasoning":
		text, err := reasoningOf(v)
		if err != nil {
			return err
		}
		ir.assistant(v.Path).Reasoning += text
		return nil
	case "function_call", "custom_tool_call":
		return ir.call(v, kind)
	case "function_call_output", "custom_tool_call_output":
		return ir.output(v)
	case "":
		return chat.MissingField(v.Path + ".type")
	}
	return chat.Unsupportedf(v.Path, "items of type %s are not supported", kind)
}

// inputPartTable decodes an element of an item's content.
var inputPartTable = &fields.Table[chat.Part]{
	Name:          "input content",
	IgnoreUnknown: true,
	Fields: []fields.Field[chat.Part]{
		{
			Name: "type",
			Type: fields.Enum("input_text", "output_text", "text", "refusal", "reasoning_text", "summary_text", "input_image", "input_file", "input_audio").
				Only("input_text", "output_text", "text", "refusal", "reasoning_text", "summary_text"),
			Required: true,
			Doc:      "what the part is; images, files and audio are refused by models that take text only",
			Set: func(p *chat.Part, v fields.Value) error {
				switch v.String() {
				case "input_image":
					p.Media = chat.Image
				case "input_file":
					p.Media = chat.File
				case "input_audio":
					p.Media = chat.Audio
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
			Doc:  "an earlier refusal",
			Set:  func(p *chat.Part, v fields.Value) error { p.Text = v.String(); return nil },
		},
		{Name: "image_url", Type: fields.String(), Doc: "refused with its part by models that take text only"},
		{Name: "file_id", Type: fields.String(), Doc: "refused with its part by models that take text only"},
		{Name: "file_url", Type: fields.String(), Doc: "refused with its part by models that take text only"},
		{Name: "file_data", Type: fields.String(), Doc: "refused with its part by models that take text only"},
		{Name: "filename", Type: fields.String(), Doc: "refused with its part by models that take text only"},
		{Name: "detail", Type: fields.String(), Doc: "refused with its part by models that take text only"},
		{
			Name: "prompt_cache_breakpoint",
			Type: fields.Any(),
			Use:  fields.Ignored,
			Doc:  "the cache finds prefixes by itself",
		},
		{Name: "annotations", Type: fields.Any(), Use: fields.Ignored, Doc: "of an earlier answer"},
		{Name: "logprobs", Type: fields.Any(), Use: fields.Ignored, Doc: "of an earlier answer"},
	},
}

func inputParts(v fields.Value) ([]chat.Part, error) {
	switch v.Kind() {
	case "string":
		return []chat.Part{{Text: v.String(), Field: v.Path}}, nil
	case "array":
	default:
		return nil, chat.Invalidf(v.Path, "want a string or a list")
	}
	var parts []chat.Part
	for _, it := range v.Items() {
		p := chat.Part{Field: it.Path}
		if err := inputPartTable.DecodeValue(it, &p); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func (ir *itemReader) message(v fields.Value) error {
	c, ok := v.Get("content")
	if !ok {
		return chat.MissingField(v.Path + ".content")
	}
	parts, err := inputParts(c)
	if err != nil {
		return err
	}
	switch role := text(v, "role"); role {
	case chat.Assistant:
		m := ir.assistant(v.Path)
		m.Parts = append(m.Parts, parts...)
	case chat.System, chat.Developer, chat.User:
		ir.other(chat.Message{Role: role, Parts: parts, Field: v.Path})
	default:
		return chat.Invalidf(v.Path+".role", "%q is not one of user, assistant, system, developer", role)
	}
	return nil
}

func (ir *itemReader) call(v fields.Value, kind string) error {
	c := chat.Call{ID: text(v, "call_id"), Name: flat(text(v, "namespace"), text(v, "name"))}
	switch {
	case c.ID == "":
		return chat.MissingField(v.Path + ".call_id")
	case text(v, "name") == "":
		return chat.MissingField(v.Path + ".name")
	}
	if kind == "custom_tool_call" {
		b, err := json.Marshal(map[string]string{"input": text(v, "input")})
		if err != nil {
			return err
		}
		c.Arguments = string(b)
	} else {
		c.Arguments = text(v, "arguments")
	}
	m := ir.assistant(v.Path)
	m.Calls = append(m.Calls, c)
	return nil
}

func (ir *itemReader) output(v fields.Value) error {
	m := chat.Message{Role: chat.ToolRole, CallID: text(v, "call_id"), Field: v.Path}
	if m.CallID == "" {
		return chat.MissingField(v.Path + ".call_id")
	}
	out, ok := v.Get("output")
	if !ok {
		return chat.MissingField(v.Path + ".output")
	}
	var err error
	if m.Parts, err = inputParts(out); err != nil {
		return err
	}
	ir.other(m)
	return nil
}

const sealPrefix = "baleen1:"

// seal packs reasoning for clients that keep the conversation themselves.
func seal(reasoning string) string {
	return base64.StdEncoding.EncodeToString([]byte(sealPrefix + reasoning))
}

// reasoningOf reads a reasoning item: the first of its fields that says something.
func reasoningOf(v fields.Value) (string, error) {
	said := ""
	for _, name := range []string{"content", "summary"} {
		list, ok := v.Get(name)
		if !ok {
			continue
		}
		var b strings.Builder
		for _, it := range list.Items() {
			if err := reasoningText.DecodeValue(it, &struct{}{}); err != nil {
				return "", err
			}
			b.WriteString(text(it, "text"))
		}
		if said == "" {
			said = b.String()
		}
	}
	if said != "" {
		return said, nil
	}
	raw, err := base64.StdEncoding.DecodeString(text(v, "encrypted_content"))
	if rest, ok := strings.CutPrefix(string(raw), sealPrefix); err == nil && ok {
		return rest, nil
	}
	return "", nil
}
