package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// A request is the body of POST /v1/messages or count_tokens. The tables fill it in, finish makes chat its meaning.
type request struct {
	chat   chat.Request
	stream bool
	marked bool // some part has cache_control

	system   fields.Value // string or blocks; Raw is nil where there is none
	messages []fields.Value
	tools    []fields.Value
	thinking thinking
	choice   string // type of tool_choice

	edits       []edit
	defining    map[string]bool // ids of calls whose results define tools
	diagnostics *diagnostics
}

type diagnostics struct{ previous bool }

type thinking struct {
	kind   string
	budget int
	set    bool // budget
	omit   bool
	field  string
	// whole tells that the budget is that of all reasoning between the calls of a turn, as with the vendor's
	// interleaved thinking: it may be more than one answer's max_tokens.
	whole bool
}

// Limits of the vendor.
const (
	maxMessages = 100_000
	maxStops    = 8192
)

const unlimited = 1<<53 - 1 // beyond, numbers of JSON are not exact everywhere

const threadField = "thread"

// shared are the fields that both routes have.
func shared() []fields.Field[request] {
	return []fields.Field[request]{
		{
			Name:     "model",
			Type:     fields.String().NotEmpty(),
			Required: true,
			Doc:      "name of the model",
			Set: func(q *request, v fields.Value) error {
				q.chat.Model = v.String()
				if q.chat.Model == "" {
					return chat.Invalidf(v.Path, "the name is empty: list the models with GET /v1/models")
				}
				return nil
			},
		},
		{
			Name: "messages", Type: fields.List(fields.Object("message")).Where(map[string]any{"minItems": 1, "contains": spoken}), Required: true,
			Doc: "the conversation. Turns of one role that follow each other are one turn; a last turn of the " +
				"assistant is continued. At most 100,000",
			Set: func(q *request, v fields.Value) error {
				q.messages = v.Items()
				switch n := len(q.messages); {
				case n == 0:
					return chat.Invalidf(v.Path, "at least one message is required")
				case n > maxMessages:
					return chat.Invalidf(v.Path, "%d messages, want at most %d", n, maxMessages)
				}
				return nil
			},
		},
		{
			Name: "system", Type: fields.String().Or(fields.List(fields.Object("text block"))),
			Doc: "system prompt. A first block that begins with `x-anthropic-billing-header:` is metadata of the client and not shown to the model",
			Set: func(q *request, v fields.Value) error { q.system = v; return nil },
		},
		{
			Name: "tools", Type: fields.List(fields.Object("tool")), Doc: "tools that the client runs",
			Set: func(q *request, v fields.Value) error { q.tools = v.Items(); return nil },
		},
		{
			Name: "tool_choice",
			Type: fields.Object("tool choice"),
			Doc:  "whether and which tools are called",
			Set: func(q *request, v fields.Value) error {
				q.chat.Choice.Field = v.Path
				return choiceTable.DecodeValue(v, q)
			},
		},
		{Name: fields.Time, Type: fields.String(), Doc: fields.TimeDoc, Set: func(q *request, v fields.Value) error {
			return fields.SetTime(&q.chat.Now, v)
		}},
		{
			Name: fields.Conclude,
			Type: fields.Bool(),
			Doc:  fields.ConcludeDoc,
			Set: func(q *request, v fields.Value) error {
				q.chat.Conclude = new(v.Bool())
				return nil
			},
		},
		{
			Name: "thinking",
			Type: fields.Object("thinking"),
			Doc:  "reasoning before the answer. Not given: as the model's template has it",
			Set: func(q *request, v fields.Value) error {
				q.thinking.field = v.Path
				return thinkingTable.DecodeValue(v, &q.thinking)
			},
		},
		{
			Name: "output_config",
			Type: fields.Object("output config"),
			Doc:  "effort and format of the output",
			Set: func(q *request, v fields.Value) error {
				return outputTable.DecodeValue(v, q)
			},
		},
		{
			Name: "output_format",
			Type: fields.Object("format"),
			Doc:  "older spelling of output_config.format",
			Set:  setFormat,
		},
		{
			Name: "context_management",
			Type: fields.Object("context management"),
			Doc:  "what is left out of the conversation",
			Set: func(q *request, v fields.Value) error {
				return contextTable.DecodeValue(v, q)
			},
		},
		cacheField(func(q *request) { q.marked = true }),
		{
			Name:  "mcp_servers",
			Use:   fields.Refused,
			Allow: []string{"[]"},
			Doc:   "this server calls no other servers: connect the client to them",
		},
		{Name: "speed", Use: fields.Refused, Allow: []string{`"standard"`}, Doc: "there is one speed"},
		{Name: "compaction", Use: fields.Refused, Doc: "conversations are compacted by the client"},
		{Name: "billing_policy", Use: fields.Refused, Doc: "nothing is billed"},
	}
}

// spoken is a message that something can be said to.
var spoken = map[string]any{"type": "object", "required": []string{"role", "content"}, "anyOf": []any{
	map[string]any{"properties": map[string]any{"role": map[string]any{"const": "user"}}},
	map[string]any{
		"properties": map[string]any{
			"role":    map[string]any{"const": "assistant"},
			"content": map[string]any{"minLength": 1, "minItems": 1},
		},
	},
}}

// forcedNeedsTools says that a call can be demanded only where there are tools.
var forcedNeedsTools = map[string]any{"anyOf": []any{
	map[string]any{"properties": map[string]any{"tool_choice": map[string]any{"anyOf": []any{
		map[string]any{
			"type": "null",
		}, map[string]any{"type": "object", "properties": map[string]any{"type": map[string]any{"enum": []any{"auto", "none"}}}},
	}}}},
	map[string]any{
		"required":   []string{"tools"},
		"properties": map[string]any{"tools": map[string]any{"type": "array", "minItems": 1}},
	},
}}

var countTable = &fields.Table[request]{
	Name:   "POST /v1/messages/count_tokens",
	Where:  []map[string]any{forcedNeedsTools},
	Fields: shared(),
}

var createTable = &fields.Table[request]{
	Name:  "POST /v1/messages",
	Where: []map[string]any{forcedNeedsTools},
	Fields: append(shared(), []fields.Field[request]{
		{
			Name: "max_tokens", Type: fields.Int(0, unlimited), Required: true, Doc: "bound on generated tokens, " +
				"reasoning included. 0 computes and caches the prompt alone",
			Set: func(q *request, v fields.Value) error {
				if q.chat.MaxTokens = v.Int(); q.chat.MaxTokens == 0 {
					q.chat.MaxTokens = -1
				}
				return nil
			},
		},
		{
			Name: "stream",
			Type: fields.Bool(),
			Doc:  "answer with server-sent events",
			Set:  func(q *request, v fields.Value) error { q.stream = v.Bool(); return nil },
		},
		{
			Name: "stop_sequences",
			Type: fields.List(fields.String().Pattern(`\S`)).Len(0, maxStops),
			Doc:  "texts that end the answer",
			Set:  setStops,
		},
		{
			Name: "temperature",
			Type: fields.Number(0, 1),
			Doc:  "0 takes the most probable token. Left out: " + fields.DefaultSampling,
			Set: func(q *request, v fields.Value) error {
				q.chat.Sampling.Temperature = v.Float32()
				return nil
			},
		},
		{
			Name: "top_p",
			Type: fields.Number(0, 1),
			Doc:  "sample among the most probable tokens that have this probability together",
			Set: func(q *request, v fields.Value) error {
				q.chat.Sampling.TopP = v.Float32()
				return nil
			},
		},
		{
			Name: "top_k",
			Type: fields.Int(0, unlimited),
			Doc:  "sample among so many tokens; 0: no bound",
			Set: func(q *request, v fields.Value) error {
				k := v.Int()
				q.chat.Sampling.TopK = &k
				return nil
			},
		},
		{
			Name: "metadata",
			Type: fields.Object("metadata"),
			Doc:  "checked and without effect: this server keeps no users",
			Set: func(_ *request, v fields.Value) error {
				return metadataTable.DecodeValue(v, &struct{}{})
			},
		},
		{
			Name: "service_tier",
			Type: fields.Enum("auto", "standard_only"),
			Doc:  "accepted and without effect: there is one tier",
		},
		{
			Name: "diagnostics",
			Type: fields.Object("diagnostics"),
			Doc:  "the answer gets the field diagnostics; prompts are not kept, so a cache miss has no known reason",
			Set: func(q *request, v fields.Value) error {
				q.diagnostics = &diagnostics{}
				return diagnosticsTable.DecodeValue(v, q.diagnostics)
			},
		},
		{Name: "inference_geo", Use: fields.Refused, Allow: []string{`"global"`}, Doc: "models run on this machine"},
		{Name: "container", Use: fields.Refused, Doc: "this server runs no code"},
		{
			Name:  "fallbacks",
			Use:   fields.Refused,
			Allow: []string{"[]"},
			Doc:   "another model never answers in place of the one asked for",
		},
		{Name: "fallback_credit_token", Use: fields.Refused, Doc: "nothing is billed"},
		{Name: threadField, Use: fields.Refused, Doc: "conversations are not kept: send all messages"},
	}...),
}

func setStops(q *request, v fields.Value) error {
	q.chat.Stop = v.Strings()
	for i, s := range q.chat.Stop {
		if strings.TrimSpace(s) == "" {
			return chat.Invalidf(v.Items()[i].Path, "each stop sequence must contain something other than white space")
		}
	}
	return nil
}

var metadataTable = &fields.Table[struct{}]{Name: "metadata", Fields: []fields.Field[struct{}]{
	{Name: "user_id", Type: fields.String(), Doc: "accepted and without effect"},
}}

var diagnosticsTable = &fields.Table[diagnostics]{Name: "diagnostics", Fields: []fields.Field[diagnostics]{
	{
		Name: "previous_message_id",
		Type: fields.String(),
		Doc:  "id of an earlier answer",
		Set: func(d *diagnostics, _ fields.Value) error {
			d.previous = true
			return nil
		},
	},
}}

var cacheTable = &fields.Table[struct{}]{Name: "cache control", Fields: []fields.Field[struct{}]{
	{Name: "type", Type: fields.Enum("ephemeral"), Required: true, Doc: "ephemeral"},
	{
		Name: "ttl",
		Type: fields.Enum("5m", "1h"),
		Doc:  "accepted and without effect: prefixes stay as long as there is room",
	},
	{
		Name: "scope",
		Type: fields.String(),
		Doc:  "sent by agents with a beta: accepted and without effect, as there is one cache",
	},
}}

// cacheField is cache_control, which may stand almost everywhere.
func cacheField[T any](mark func(*T)) fields.Field[T] {
	return fields.Field[T]{
		Name: "cache_control", Type: fields.Object("cache control"),
		Doc: "prefixes are cached without it; with it, usage tells what was put into the cache",
		Set: func(t *T, v fields.Value) error {
			mark(t)
			return cacheTable.DecodeValue(v, &struct{}{})
		},
	}
}

var thinkingTable = &fields.Table[thinking]{Name: "thinking", Where: []map[string]any{{"anyOf": []any{
	map[string]any{
		"properties": map[string]any{
			"type":          map[string]any{"const": "enabled"},
			"budget_tokens": map[string]any{"type": "integer"},
		},
		"required": []string{"budget_tokens"},
	},
	map[string]any{
		"properties": map[string]any{
			"type":          map[string]any{"not": map[string]any{"const": "enabled"}},
			"budget_tokens": map[string]any{"type": "null"},
		},
	},
}}}, Fields: []fields.Field[thinking]{
	{
		Name: "type", Type: fields.Enum("enabled", "disabled", "adaptive", "between_tools").Only("enabled", "disabled", "adaptive"), Required: true,
		Doc: "enabled: the model must be one that thinks; adaptive: it thinks if it can, as long as it likes; " +
			"disabled: it answers at once; between_tools is refused",
		Set: func(t *thinking, v fields.Value) error {
			if t.kind = v.String(); t.kind == "between_tools" {
				return chat.Unsupportedf(v.Path, "between_tools is not supported: use enabled, adaptive or disabled")
			}
			return nil
		},
	},
	{
		Name: "budget_tokens", Type: fields.Int(1, unlimited),
		Doc: "with enabled, where it is required: tokens of reasoning after which it is ended and the answer " +
			"begins; less than max_tokens, unless anthropic-beta has interleaved-thinking-2025-05-14. The vendor's " +
			"least budget, 1024, is not asked for",
		Set: func(t *thinking, v fields.Value) error { t.budget, t.set = v.Int(), true; return nil },
	},
	{
		Name: "display", Type: fields.Enum("summarized", "omitted", "updates").Only("summarized", "omitted"),
		Doc: "summarized: the reasoning as it is; omitted: its text is left out and travels in the signature; " +
			"updates is refused",
		Set: func(t *thinking, v fields.Value) error {
			if v.String() == "updates" {
				return chat.Unsupportedf(v.Path, "updates are not supported: use summarized or omitted")
			}
			t.omit = v.String() == "omitted"
			return nil
		},
	},
	{
		Name: "block_binding",
		Use:  fields.Ignored,
		Type: fields.Object(""),
		Doc:  "reasoning is not bound to the conversation that it was made in",
	},
}}

// think puts the thinking configuration into the request.
func (q *request) think() error {
	t := &q.thinking
	on, off := true, false
	switch t.kind {
	case "":
		return nil
	case "enabled":
		switch {
		case !t.set:
			return chat.MissingField(t.field + ".enabled.budget_tokens")
		case !t.whole && q.chat.MaxTokens > 0 && t.budget >= q.chat.MaxTokens:
			return chat.Invalidf(
				"max_tokens",
				"%d must be greater than thinking.budget_tokens, %d",
				q.chat.MaxTokens,
				t.budget,
			)
		case q.choice == "any" || q.choice == "tool":
			return chat.Invalidf(
				"thinking",
				"thinking may not be enabled when tool_choice forces a call: use tool_choice auto",
			)
		}
		q.chat.Thinking, q.chat.ThinkingField, q.chat.ThinkingBudget = &on, t.field, t.budget
	case "adaptive":
		q.chat.Thinking = &on // without a field: models that cannot think answer at once
	case "disabled":
		q.chat.Thinking, q.chat.ThinkingField = &off, t.field
	}
	if t.kind != "enabled" && t.set {
		return chat.Invalidf(t.field+"."+t.kind+".budget_tokens", "a budget belongs to the type enabled")
	}
	return nil
}

var outputTable = &fields.Table[request]{Name: "output config", Fields: []fields.Field[request]{
	{
		Name: "effort", Type: efforts,
		Doc: "for models that know efforts, of which xhigh and max are high. Others think with any effort if " +
			"thinking is not configured and they can; where no budget is given, " +
			"low, medium and high end reasoning after 1024, 8192 and 24576 tokens",
		Set: func(q *request, v fields.Value) error { q.chat.Effort = v.String(); return nil },
	},
	{
		Name: "format",
		Type: fields.Object("format").
			Where(map[string]any{"required": []string{"type", "schema"}, "properties": map[string]any{"type": map[string]any{"const": "json_schema"}, "schema": map[string]any{"type": "object"}}}),
		Doc: "json_schema with a schema that can be enforced exactly, which the answer is held to; thinking and " +
			"calls are free",
		Set: setFormat,
	},
	{Name: "task_budget", Use: fields.Refused, Doc: "models that run here know no budgets of tasks"},
}}

var efforts = fields.Enum("low", "medium", "high", "xhigh", "max")

// setFormat takes the schema that the answer is held to.
func setFormat(q *request, v fields.Value) error {
	if kind, _ := v.Get("type"); kind.String() != "json_schema" {
		return chat.Invalidf(v.Path+".type", "%q is not json_schema", kind.String())
	}
	s, ok := v.Get("schema")
	if !ok {
		return chat.MissingField(v.Path + ".schema")
	}
	q.chat.Format = chat.Format{Kind: chat.SchemaFormat, Schema: s.Raw, Field: s.Path}
	return nil
}

var choiceTable = &fields.Table[request]{Name: "tool choice", Where: []map[string]any{{"anyOf": []any{
	map[string]any{
		"properties": map[string]any{
			"type": map[string]any{"const": "tool"},
			"name": map[string]any{"type": "string", "minLength": 1},
		},
		"required": []string{"name"},
	},
	map[string]any{
		"properties": map[string]any{
			"type": map[string]any{"enum": []any{"auto", "any"}},
			"name": map[string]any{"enum": []any{nil, ""}},
		},
	},
	map[string]any{
		"properties": map[string]any{
			"type":                      map[string]any{"const": "none"},
			"name":                      map[string]any{"enum": []any{nil, ""}},
			"disable_parallel_tool_use": map[string]any{"enum": []any{nil, false}},
		},
	},
}}}, Fields: []fields.Field[request]{
	{
		Name:     "type",
		Type:     fields.Enum("auto", "any", "tool", "none"),
		Required: true,
		Doc:      "any: some tool must be called; tool: the one with this name",
		Set: func(q *request, v fields.Value) error {
			q.choice = v.String()
			q.chat.Choice.Mode = map[string]chat.ToolMode{"auto": chat.ToolsAuto, "any": chat.ToolsRequired, "tool": chat.ToolNamed, "none": chat.ToolsNone}[q.choice]
			return nil
		},
	},
	{
		Name: "name",
		Type: fields.String(),
		Doc:  "of the tool, with the type tool, where it is required",
		Set: func(q *request, v fields.Value) error {
			q.chat.Choice.Name = v.String()
			return nil
		},
	},
	{
		Name: "disable_parallel_tool_use",
		Type: fields.Bool(),
		Doc:  "at most one call in the answer",
		Set: func(q *request, v fields.Value) error {
			q.chat.SingleCall = v.Bool()
			return nil
		},
	},
}}

// choose checks what the table of tool choices cannot.
func (q *request) choose() error {
	c := q.chat.Choice
	switch {
	case q.choice == "tool" && c.Name == "":
		return chat.MissingField(c.Field + ".tool.name")
	case q.choice != "tool" && c.Name != "":
		return chat.Invalidf(c.Field+".name", "a name belongs to the type tool")
	case q.choice == "none" && q.chat.SingleCall:
		return chat.Invalidf(c.Field+".disable_parallel_tool_use", "there are no calls with the type none")
	case (q.choice == "any" || q.choice == "tool") && len(q.chat.Tools) == 0:
		return chat.Invalidf(c.Field, "tool_choice may only be specified while providing tools")
	}
	return nil
}

// compact takes the white space between the tokens of valid JSON out, so that the prompt does not depend on it.
func compact(raw []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// clip shortens a client's text for an error.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}

// finish makes package chat's request of what the tables have read.
func (q *request) finish() error {
	q.defining = map[string]bool{}
	box := toolbox{byName: map[string]*tool{}}
	for _, v := range q.tools {
		if err := box.declare(v); err != nil {
			return err
		}
	}
	c := conversation{req: q, tools: &box, calls: map[string]bool{}}
	if err := c.system(); err != nil {
		return err
	}
	if err := c.messages(); err != nil {
		return err
	}
	q.chat.Tools = box.offered(q.chat.Choice.Name)
	q.marked = q.marked || box.marked
	if err := q.choose(); err != nil {
		return err
	}
	if err := q.think(); err != nil {
		return err
	}
	last := q.chat.Messages[len(q.chat.Messages)-1]
	q.chat.Continue = last.Role == chat.Assistant
	if q.chat.Continue {
		return prefill(last)
	}
	return nil
}

// prefill refuses begun answers that would not be continued as they are.
func prefill(last chat.Message) error {
	field := last.Field
	if last.Reasoning != "" {
		return chat.Unsupportedf(
			field,
			"a last turn of the assistant is continued, and reasoning in it cannot be: leave its thinking blocks out",
		)
	}
	text := ""
	if n := len(last.Parts); n > 0 {
		text = last.Parts[n-1].Text
	}
	if text != strings.TrimRight(text, " \t\r\n") {
		return chat.Invalidf(field, "final assistant content cannot end with trailing white space")
	}
	return nil
}

// turn returns the conversation's last message if it can take more of a role's content, else a new one.
func (q *request) turn(role, field string) *chat.Message {
	ms := q.chat.Messages
	if n := len(ms); n > 0 && ms[n-1].Role == role && role != chat.ToolRole {
		return &ms[n-1]
	}
	q.chat.Messages = append(ms, chat.Message{Role: role, Field: field})
	return &q.chat.Messages[len(ms)]
}

// dropEmpty takes turns without content out: an answer may have had none.
func (q *request) dropEmpty() {
	q.chat.Messages = slices.DeleteFunc(q.chat.Messages, func(m chat.Message) bool {
		return m.Role != chat.ToolRole && len(m.Parts) == 0 && len(m.Calls) == 0 && m.Reasoning == ""
	})
}
