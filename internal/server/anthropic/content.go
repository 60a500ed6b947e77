package anthropic

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// A turn is one of the messages before its content is read.
type turn struct {
	role    string
	content fields.Value
	has     bool // content
	clear   bool // clear_at is next_user_message
	effort  string
}

var messageTable = &fields.Table[turn]{Name: "message", Where: messageRules, Fields: []fields.Field[turn]{
	{
		Name:     "role",
		Type:     fields.Enum("user", "assistant", "system"),
		Required: true,
		Doc:      "system messages may stand anywhere",
		Set: func(m *turn, v fields.Value) error {
			m.role = v.String()
			return nil
		},
	},
	{
		Name: "content", Type: fields.String().Or(fields.List(fields.Object("content block"))),
		Doc: "a text, or blocks: text, image (where the model takes images) and tool_result from the user; text, " +
			"thinking, redacted_thinking and tool_use from the assistant; " +
			"text, tool_addition and tool_removal from the system. Blocks of other types are refused by name",
		Set: func(m *turn, v fields.Value) error { m.content, m.has = v, true; return nil },
	},
	{
		Name: "clear_at", Type: fields.Enum("next_user_message", "never"),
		Doc: "of system messages: with next_user_message it is shown to the model only until a later user message " +
			"is there",
		Set: func(m *turn, v fields.Value) error { m.clear = v.String() == "next_user_message"; return nil },
	},
	{
		Name: "output_config",
		Type: fields.Object("output config of a system message"),
		Doc:  "of system messages: effort from there on",
		Set: func(m *turn, v fields.Value) error {
			return systemOutputTable.DecodeValue(v, m)
		},
	},
}}

var systemOutputTable = &fields.Table[turn]{Name: "output config of a system message", Fields: []fields.Field[turn]{
	{
		Name: "effort",
		Type: efforts,
		Doc:  "as in output_config; the last one counts",
		Set: func(m *turn, v fields.Value) error {
			m.effort = v.String()
			return nil
		},
	},
}}

// messageRules say what may stand in whose messages.
var messageRules = []map[string]any{{"anyOf": []any{
	map[string]any{
		"required": []string{"content"}, "properties": map[string]any{
			"role": map[string]any{
				"const": "user",
			}, "content": contentOf("user content", 1), "clear_at": ofSystem, "output_config": noEffort,
		},
	},
	map[string]any{
		"required": []string{"content"}, "properties": map[string]any{
			"role": map[string]any{
				"const": "assistant",
			}, "content": contentOf("assistant content", 0), "clear_at": ofSystem, "output_config": noEffort,
		},
	},
	map[string]any{"properties": map[string]any{"role": map[string]any{"const": "system"}}, "anyOf": []any{
		map[string]any{
			"required":   []string{"content"},
			"properties": map[string]any{"content": contentOf("system content", 0)},
		},
		map[string]any{"required": []string{"output_config"}, "properties": map[string]any{
			"output_config": map[string]any{
				"type":       "object",
				"required":   []string{"effort"},
				"properties": map[string]any{"effort": map[string]any{"type": "string"}},
			},
			"content": map[string]any{"type": "null"},
		}},
	}},
}}}

var (
	ofSystem = map[string]any{"enum": []any{nil, "never"}}
	noEffort = map[string]any{"anyOf": []any{
		map[string]any{
			"type": "null",
		}, map[string]any{"type": "object", "properties": map[string]any{"effort": map[string]any{"type": "null"}}},
	}}
)

// contentOf is a text or a list of at least least blocks that the object of a name describes.
func contentOf(name string, least int) map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "string", "minLength": least},
		map[string]any{"type": "array", "minItems": least, "items": map[string]any{fields.ObjectKey: name}},
	}}
}

// A block is a piece of content.
type block struct {
	kind   string
	path   string
	marked bool

	text      string // of text and thinking
	signature string
	source    source
	id        string // of tool_use, or the one that tool_result belongs to
	name      string
	input     string
	content   fields.Value // of tool_result
	change    change       // of tool_addition and tool_removal
	isError   bool
}

// A source is where an image comes from.
type source struct {
	kind, mime, data, url string
}

func kindField(kind string) fields.Field[block] {
	return fields.Field[block]{Name: "type", Type: fields.Enum(kind), Required: true, Doc: kind}
}

func stringField(name, doc string, to func(b *block) *string) fields.Field[block] {
	return fields.Field[block]{
		Name:     name,
		Type:     fields.String(),
		Required: true,
		Doc:      doc,
		Set: func(b *block, v fields.Value) error {
			*to(b) = v.String()
			return nil
		},
	}
}

func idField(name, doc string) fields.Field[block] {
	return fields.Field[block]{
		Name:     name,
		Type:     fields.String().Pattern(callPattern),
		Required: true,
		Doc:      doc,
		Set: func(b *block, v fields.Value) error {
			b.id = v.String()
			if !callID.MatchString(b.id) {
				return chat.Invalidf(v.Path, "%q: want letters, digits, _ and -", clip(b.id))
			}
			return nil
		},
	}
}

const callPattern = `^[a-zA-Z0-9_-]{1,256}$`

var callID = regexp.MustCompile(callPattern)

func changeBlock(kind, doc string) *fields.Table[block] {
	return &fields.Table[block]{Name: strings.ReplaceAll(kind, "_", " ") + " block", Fields: []fields.Field[block]{
		kindField(kind), blockCache,
		{
			Name:     "tool",
			Type:     fields.Object("tool change"),
			Required: true,
			Doc:      doc,
			Set: func(b *block, v fields.Value) error {
				return changeTable.DecodeValue(v, &b.change)
			},
		},
	}}
}

var blockCache = cacheField(func(b *block) { b.marked = true })

var toolsetField = fields.Field[block]{Name: "toolset_name", Use: fields.Refused, Doc: "there are no toolsets"}

var (
	textTable = &fields.Table[block]{Name: "text block", Fields: []fields.Field[block]{
		kindField("text"),
		{
			Name:     "text",
			Type:     fields.String().NotEmpty(),
			Required: true,
			Doc:      "the text",
			Set: func(b *block, v fields.Value) error {
				if b.text = v.String(); b.text == "" {
					return chat.Invalidf(v.Path, "text content blocks must be non-empty")
				}
				return nil
			},
		},
		blockCache,
		{
			Name: "citations",
			Use:  fields.Ignored,
			Type: fields.List(fields.Any()),
			Doc:  "of earlier answers: accepted, the model reads the text",
		},
	}}
	imageTable = &fields.Table[block]{Name: "image block", Fields: []fields.Field[block]{
		kindField("image"),
		{
			Name:     "source",
			Type:     fields.Object("image source"),
			Required: true,
			Doc:      "where it comes from",
			Set: func(b *block, v fields.Value) error {
				return sourceTable.DecodeValue(v, &b.source)
			},
		},
		blockCache,
		{Name: "transformations", Use: fields.Refused, Doc: "images are taken as they are"},
	}}
	thinkingBlockTable = &fields.Table[block]{Name: "thinking block", Fields: []fields.Field[block]{
		kindField("thinking"),
		stringField(
			"thinking",
			"reasoning of an earlier turn; the model's template says which turns' it sees",
			func(b *block) *string { return &b.text },
		),
		stringField(
			"signature",
			"carries the reasoning whose text was omitted; otherwise not looked at",
			func(b *block) *string { return &b.signature },
		),
	}}
	redactedTable = &fields.Table[block]{Name: "redacted thinking block", Fields: []fields.Field[block]{
		kindField("redacted_thinking"),
		stringField(
			"data",
			"sealed by another server and readable there alone: not shown to the model",
			func(b *block) *string { return &b.signature },
		),
	}}
	toolUseTable = &fields.Table[block]{Name: "tool use block", Fields: []fields.Field[block]{
		kindField("tool_use"), idField("id", "of the call"),
		stringField("name", "of the tool", func(b *block) *string { return &b.name }),
		{
			Name:     "input",
			Type:     fields.Object("input"),
			Required: true,
			Doc:      "arguments",
			Set:      func(b *block, v fields.Value) error { b.input = compact(v.Raw); return nil },
		},
		blockCache,
		{Name: "caller", Type: fields.Object("caller"), Doc: "who called", Set: func(_ *block, v fields.Value) error {
			return callerTable.DecodeValue(v, &struct{}{})
		}},
		toolsetField,
	}}
	toolResultTable = &fields.Table[block]{Name: "tool result block", Fields: []fields.Field[block]{
		kindField("tool_result"), idField("tool_use_id", "of the call, which is in the turn before"),
		{
			Name: "content", Type: fields.String().Or(fields.List(fields.Object("result content"))), Doc: "a text, or blocks: text, image, tool_reference",
			Set: func(b *block, v fields.Value) error { b.content = v; return nil },
		},
		{
			Name: "is_error",
			Type: fields.Bool(),
			Doc:  "the call failed: the model is told so",
			Set:  func(b *block, v fields.Value) error { b.isError = v.Bool(); return nil },
		},
		blockCache, toolsetField,
	}}
	referenceTable = &fields.Table[block]{Name: "tool reference block", Fields: []fields.Field[block]{
		kindField("tool_reference"),
		stringField(
			"tool_name",
			"of a tool with defer_loading, whose definition the model is shown here",
			func(b *block) *string { return &b.name },
		),
		blockCache,
	}}
	additionTable = changeBlock("tool_addition", "the tool that is there from here on")
	removalTable  = changeBlock("tool_removal", "the tool that is not there any more")
	callerTable   = &fields.Table[struct{}]{Name: "caller", Fields: []fields.Field[struct{}]{
		{Name: "type", Type: fields.Enum("direct"), Required: true, Doc: "direct: the model; no other can be"},
	}}
	sourceTable = &fields.Table[source]{Name: "image source", Where: []map[string]any{{"anyOf": []any{
		map[string]any{"required": []string{"media_type", "data"}, "properties": map[string]any{
			"type": map[string]any{
				"const": "base64",
			}, "media_type": map[string]any{"type": "string"}, "data": map[string]any{"type": "string", "minLength": 1},
		}},
		map[string]any{
			"required": []string{"url"},
			"properties": map[string]any{
				"type": map[string]any{"const": "url"},
				"url":  map[string]any{"type": "string", "minLength": 1},
			},
		},
	}}}, Fields: []fields.Field[source]{
		{
			Name:     "type",
			Type:     fields.Enum("base64", "url", "file").Only("base64", "url"),
			Required: true,
			Doc:      "base64 or url; file is refused",
			Set: func(s *source, v fields.Value) error {
				if s.kind = v.String(); s.kind == "file" {
					return chat.Unsupportedf(v.Path, "files are not kept here: send the image as base64")
				}
				return nil
			},
		},
		{
			Name: "media_type",
			Type: fields.Enum("image/jpeg", "image/png", "image/gif", "image/webp"),
			Doc:  "with base64",
			Set: func(s *source, v fields.Value) error {
				s.mime = v.String()
				return nil
			},
		},
		{
			Name: "data",
			Type: fields.Base64(),
			Doc:  "with base64",
			Set:  func(s *source, v fields.Value) error { s.data = v.String(); return nil },
		},
		{
			Name: "url",
			Type: fields.String(),
			Doc:  "with url",
			Set:  func(s *source, v fields.Value) error { s.url = v.String(); return nil },
		},
		{Name: "file_id", Use: fields.Refused, Doc: "files are not kept here"},
	}}
)

// The blocks of each place, for the documents.
var (
	userContent = &fields.OneOf{
		Name: "user content",
		Of:   []fields.ObjectTable{textTable, imageTable, toolResultTable},
	}
	assistantContent = &fields.OneOf{
		Name: "assistant content",
		Of:   []fields.ObjectTable{textTable, thinkingBlockTable, redactedTable, toolUseTable},
	}
	systemContent = &fields.OneOf{
		Name: "system content",
		Of:   []fields.ObjectTable{textTable, additionTable, removalTable},
	}
	resultContent = &fields.OneOf{
		Name: "result content",
		Of:   []fields.ObjectTable{textTable, imageTable, referenceTable},
	}
	anyContent = &fields.OneOf{
		Name: "content block",
		Of:   []fields.ObjectTable{userContent, assistantContent, systemContent},
	}
)

// A place is where blocks stand: which types may be there.
type place map[string]*fields.Table[block]

var (
	inUser      = place{"text": textTable, "image": imageTable, "tool_result": toolResultTable}
	inAssistant = place{
		"text":              textTable,
		"thinking":          thinkingBlockTable,
		"redacted_thinking": redactedTable,
		"tool_use":          toolUseTable,
	}
	inSystem  = place{"text": textTable}
	inMessage = place{
		"text":          textTable,
		"tool_addition": additionTable,
		"tool_removal":  removalTable,
	} // of the system
	inResult = place{"text": textTable, "image": imageTable, "tool_reference": referenceTable}
)

func placeOf(role string) place {
	return map[string]place{"user": inUser, "assistant": inAssistant, "system": inMessage}[role]
}

func (p place) types() string {
	var list []string
	for t := range p {
		list = append(list, t)
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// refusedBlocks are types that the vendor documents and that cannot be honoured here, with what to do instead.
var refusedBlocks = map[string]string{
	"document":         "send the document's text as a text block",
	"search_result":    "send the result's text as a text block",
	"container_upload": "this server runs no code",
	"compaction":       "conversations are compacted by the client",
	"fallback":         "another model never answers in place of the one asked for",
	"connector_text":   "there are no connectors",
	"browser_state":    "there is no browser",
}

// read decodes one block.
func (p place) read(v fields.Value) (block, error) {
	b := block{path: v.Path}
	if v.Kind() != "object" {
		return b, chat.Invalidf(v.Path, "got the type %s, want an object", v.Kind())
	}
	kind, ok := v.Get("type")
	if !ok {
		return b, chat.MissingField(v.Path + ".type")
	}
	if kind.Kind() != "string" {
		return b, chat.Invalidf(kind.Path, "got the type %s, want a string", kind.Kind())
	}
	b.kind = kind.String()
	table := p[b.kind]
	if table != nil {
		return b, table.DecodeValue(v, &b)
	}
	hint, refused := refusedBlocks[b.kind]
	switch {
	case refused:
		return b, chat.Unsupportedf(v.Path, "%s blocks are not supported: %s", b.kind, hint)
	case strings.HasPrefix(b.kind, "server_tool_use"),
		strings.HasPrefix(b.kind, "mcp_"),
		strings.HasSuffix(b.kind, "_tool_result"):
		return b, chat.Unsupportedf(v.Path, "%s blocks are not supported: this server runs no tools", b.kind)
	case inMessage[b.kind] != nil:
		return b, chat.Invalidf(v.Path, "`%s` blocks can only be in `system` messages", b.kind)
	case inAssistant[b.kind] != nil:
		return b, chat.Invalidf(v.Path, "`%s` blocks can only be in `assistant` messages", b.kind)
	case b.kind == "tool_result":
		return b, chat.Invalidf(v.Path, "`tool_result` blocks can only be in `user` messages")
	}
	return b, chat.Invalidf(kind.Path, "%q is not one of %s", clip(b.kind), p.types())
}

// blocks decodes a content: a text is one block of text.
func (p place) blocks(v fields.Value) ([]block, error) {
	if v.Kind() == "string" {
		if v.String() == "" {
			return nil, nil
		}
		return []block{{kind: "text", text: v.String(), path: v.Path}}, nil
	}
	var out []block
	for _, item := range v.Items() {
		b, err := p.read(item)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// part makes text or an image of a block.
func (b *block) part() (chat.Part, error) {
	p := chat.Part{Text: b.text, Field: b.path}
	if b.kind != "image" {
		return p, nil
	}
	p.Media, p.MIME, p.URL = chat.Image, b.source.mime, b.source.url
	at := b.path + ".source"
	switch {
	case b.source.kind == "url" && b.source.url == "":
		return p, chat.Invalidf(at+".url", "this field belongs to the type url, and it is missing or empty")
	case b.source.kind == "base64" && (b.source.mime == "" || b.source.data == ""):
		return p, chat.Invalidf(at, "media_type and data belong to the type base64")
	}
	data, err := base64.StdEncoding.DecodeString(b.source.data)
	if err != nil {
		return p, chat.Invalidf(at+".data", "this is not base64")
	}
	p.Data = data
	return p, nil
}

// A conversation turns the messages of a request into package chat's.
type conversation struct {
	req    *request
	tools  *toolbox
	calls  map[string]bool // ids of all calls so far
	open   []string        // ids of the assistant's last turn that have no result yet
	openAt string          // that turn
}

// billing begins a block that a client puts before the system prompt for the vendor's books: it differs from request to
// request, and the vendor's models are not shown it.
const billing = "x-anthropic-billing-header:"

func (c *conversation) system() error {
	if c.req.system.Raw == nil {
		return nil
	}
	blocks, err := inSystem.blocks(c.req.system)
	if err != nil {
		return err
	}
	if len(blocks) > 0 && strings.HasPrefix(blocks[0].text, billing) {
		blocks = blocks[1:]
	}
	return c.texts(chat.System, "system", blocks)
}

// texts adds blocks of text and images to a turn.
func (c *conversation) texts(role, field string, blocks []block) error {
	for i := range blocks {
		p, err := blocks[i].part()
		if err != nil {
			return err
		}
		c.req.marked = c.req.marked || blocks[i].marked
		m := c.req.turn(role, field)
		m.Parts = append(m.Parts, p)
	}
	return nil
}

func (c *conversation) messages() error {
	ms := make([]turn, len(c.req.messages))
	lastUser := -1
	for i, v := range c.req.messages {
		if err := messageTable.DecodeValue(v, &ms[i]); err != nil {
			return err
		}
		if ms[i].role == "user" {
			lastUser = i
		}
	}
	for i := range ms {
		if err := c.message(&ms[i], i, lastUser); err != nil {
			return err
		}
	}
	if err := c.answered(); err != nil {
		return err
	}
	c.req.dropEmpty()
	if !slices.ContainsFunc(c.req.chat.Messages, func(m chat.Message) bool { return m.Role != chat.System }) {
		return chat.Invalidf("messages", "at least one message of the user is required")
	}
	return nil
}

func (c *conversation) message(m *turn, i, lastUser int) error {
	field := fmt.Sprintf("messages[%d]", i)
	if m.role != "system" && (m.clear || m.effort != "") {
		return chat.Invalidf(field, "clear_at and output_config are only permitted on system messages")
	}
	if !m.has && m.effort == "" {
		return chat.MissingField(field + ".content")
	}
	if m.effort != "" {
		c.req.chat.Effort = m.effort
	}
	var blocks []block
	if m.has {
		var err error
		if blocks, err = placeOf(m.role).blocks(m.content); err != nil {
			return err
		}
	}
	switch m.role {
	case "user":
		if len(blocks) == 0 {
			return chat.Invalidf(
				field,
				"all messages must have non-empty content except for the optional final assistant message",
			)
		}
		return c.user(field, blocks)
	case "assistant":
		return c.assistant(field, blocks)
	}
	for j := range blocks {
		if blocks[j].kind != "text" {
			if err := c.tools.apply(&blocks[j]); err != nil {
				return err
			}
		}
	}
	if m.clear && lastUser > i { // changes of tools stay
		blocks = slices.DeleteFunc(blocks, func(b block) bool { return b.kind == "text" })
	}
	return c.texts(chat.System, field, blocks)
}

// user takes a turn of the user: first the results of the calls in the turn before, then the rest.
func (c *conversation) user(field string, blocks []block) error {
	for i := range blocks {
		b := &blocks[i]
		if b.kind == "tool_result" {
			if err := c.result(field, b); err != nil {
				return err
			}
			continue
		}
		if err := c.answered(); err != nil {
			return err
		}
		if err := c.texts(chat.User, field, blocks[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (c *conversation) result(field string, b *block) error {
	i := slices.Index(c.open, b.id)
	if i < 0 {
		return chat.Invalidf(
			b.path,
			"unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message, and comes before other content",
			b.id,
		)
	}
	c.open = slices.Delete(c.open, i, i+1)
	m := chat.Message{Role: chat.ToolRole, CallID: b.id, IsError: b.isError, Field: b.path}
	c.req.marked = c.req.marked || b.marked
	if b.content.Raw != nil {
		blocks, err := inResult.blocks(b.content)
		if err != nil {
			return err
		}
		for j := range blocks {
			if n := &blocks[j]; n.kind == "tool_reference" {
				if n.text, err = c.tools.reveal(n.name, n.path+".tool_name"); err != nil {
					return err
				}
				c.req.defining[b.id] = true
			}
			c.req.marked = c.req.marked || blocks[j].marked
			p, err := blocks[j].part()
			if err != nil {
				return err
			}
			m.Parts = append(m.Parts, p)
		}
	}
	c.req.chat.Messages = append(c.req.chat.Messages, m)
	return nil
}

// answered refuses calls without results.
func (c *conversation) answered() error {
	if len(c.open) == 0 {
		return nil
	}
	return chat.Invalidf(
		c.openAt,
		"`tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message",
		strings.Join(c.open, ", "),
	)
}

func (c *conversation) assistant(field string, blocks []block) error {
	ms := c.req.chat.Messages
	merged := len(ms) > 0 && ms[len(ms)-1].Role == chat.Assistant
	if !merged {
		if err := c.answered(); err != nil {
			return err
		}
	}
	for i := range blocks {
		b := &blocks[i]
		c.req.marked = c.req.marked || b.marked
		m := c.req.turn(chat.Assistant, field)
		switch b.kind {
		case "text":
			m.Parts = append(m.Parts, chat.Part{Text: b.text, Field: b.path})
		case "thinking":
			text := b.text
			if text == "" {
				text = unseal(b.signature)
			}
			if m.Reasoning != "" && text != "" {
				m.Reasoning += "\n"
			}
			m.Reasoning += text
		case "tool_use":
			if c.calls[b.id] {
				return chat.Invalidf(b.path+".id", "`tool_use` ids must be unique: %s is there twice", b.id)
			}
			c.calls[b.id] = true
			c.open, c.openAt = append(c.open, b.id), field
			m.Calls = append(m.Calls, chat.Call{ID: b.id, Name: b.name, Arguments: b.input})
		}
	}
	return nil
}
