package baleen

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/baleenrun/baleen/internal/chat"
)

// A Role says whose turn a message is.
type Role string

// Roles.
const (
	RoleSystem    Role = "system"    // instructions that stand before a conversation
	RoleDeveloper Role = "developer" // the same, where a template knows both
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant" // the model's own
	RoleTool      Role = "tool"      // the result of a call
)

// A Message is one turn of a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content,omitempty"` // its text
	Parts   []Part `json:"parts,omitempty"`   // its content in pieces, instead of Content

	// Of an assistant's turn.
	Reasoning string `json:"reasoning,omitempty"` // before the answer; templates say what becomes of it
	Calls     []Call `json:"calls,omitempty"`

	// Of a tool's result.
	CallID string `json:"call_id,omitempty"` // of the call that it answers
	Tool   string `json:"tool,omitempty"`    // the tool's name; "": that of the call
	Failed bool   `json:"failed,omitempty"`  // Content says what went wrong
}

// SystemMessage makes a message of instructions.
func SystemMessage(text string) Message { return Message{Role: RoleSystem, Content: text} }

// UserMessage makes a message of the user's.
func UserMessage(text string) Message { return Message{Role: RoleUser, Content: text} }

// AssistantMessage makes an answer, as a model might have given it.
func AssistantMessage(text string) Message { return Message{Role: RoleAssistant, Content: text} }

// ToolMessage makes the result of a call.
func ToolMessage(call Call, result string) Message {
	return Message{Role: RoleTool, CallID: call.ID, Tool: call.Name, Content: result}
}

// Text is the message's text: Content, or the texts of Parts with a line break between them.
func (m Message) Text() string {
	text := m.Content
	for i, p := range m.Parts {
		if i > 0 {
			text += "\n"
		}
		text += p.Text
	}
	return text
}

// A PartType says what a part is.
type PartType string

// Types of parts. Models take text alone in this version: other parts are refused with a *ParamError.
const (
	PartText  PartType = "text"
	PartImage PartType = "image"
	PartAudio PartType = "audio"
)

// A Part is a piece of a message's content.
type Part struct {
	Type PartType `json:"type"`           // "": text
	Text string   `json:"text,omitempty"` // of a text
	MIME string   `json:"mime,omitempty"` // of Data
	Data []byte   `json:"data,omitempty"`
}

// A Tool is a function that the model may call.
type Tool struct {
	Name        string `json:"name"` // letters, digits, "_" and "-"
	Description string `json:"description,omitempty"`
	// Parameters is a JSON Schema of an object; nil: the function takes none.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Strict has the arguments fit Parameters, or there is no call. A schema that cannot be enforced exactly is
	// refused.
	Strict bool `json:"strict,omitempty"`

	// Func, where not nil, is called by a Session with the arguments, a JSON object as the model wrote it: unless the
	// tool is Strict, it may not fit the schema. It returns what the model is told. An error is told to the model as
	// well, which may try again; to end the answer, cancel the context.
	Func func(ctx context.Context, arguments json.RawMessage) (string, error) `json:"-"`
}

// A Call is a tool call that a model made.
type Call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a JSON object
}

// A CutCall is a tool call inside of which an answer ended, by FinishLength: not to be made.
type CutCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // what the model wrote of them: the begin of a JSON object
}

// String is the call as text.
func (c CutCall) String() string {
	return (&chat.Call{Name: c.Name, Arguments: c.Arguments, Cut: true}).Written()
}

// A ToolMode says whether tools may or must be called.
type ToolMode string

// Modes.
const (
	ToolsAuto     ToolMode = ""         // as the model likes
	ToolsNone     ToolMode = "none"     // none is called
	ToolsRequired ToolMode = "required" // one must be called
	ToolNamed     ToolMode = "named"    // that of ToolChoice.Name must be called
)

// A ToolChoice says which tools may or must be called.
type ToolChoice struct {
	Mode ToolMode `json:"mode,omitempty"`
	Name string   `json:"name,omitempty"` // with ToolNamed
}

var toolModes = map[ToolMode]chat.ToolMode{
	ToolsAuto: chat.ToolsAuto, ToolsNone: chat.ToolsNone, ToolsRequired: chat.ToolsRequired, ToolNamed: chat.ToolNamed,
}

func wrong(param, format string, args ...any) *ParamError {
	return &ParamError{Param: param, Problem: fmt.Sprintf(format, args...)}
}

// isText refuses what is no text: a model would be asked about something else.
func isText(param, s string) error {
	if !utf8.ValidString(s) {
		return wrong(param, "not UTF-8 text")
	}
	return nil
}

// conversation checks messages and puts them into the core's form.
func conversation(ms []Message) ([]chat.Message, error) {
	out := make([]chat.Message, 0, len(ms))
	for i, m := range ms {
		c, err := m.internal(fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (m Message) internal(at string) (chat.Message, error) {
	c := chat.Message{
		Role: string(m.Role), Reasoning: m.Reasoning, CallID: m.CallID, ToolName: m.Tool, IsError: m.Failed, Field: at,
	}
	switch m.Role {
	case RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool:
	default:
		return c, wrong(at+".role", "there is no role %q: want system, developer, user, assistant or tool", m.Role)
	}
	switch {
	case m.Content != "" && len(m.Parts) > 0:
		return c, wrong(at+".content", "there are parts beside it: want one of both")
	case m.Role != RoleAssistant && len(m.Calls) > 0:
		return c, wrong(at+".calls", "a message of role %s makes no calls", m.Role)
	case m.Role != RoleAssistant && m.Reasoning != "":
		return c, wrong(at+".reasoning", "a message of role %s has none", m.Role)
	case m.Role != RoleTool && (m.CallID != "" || m.Tool != "" || m.Failed):
		return c, wrong(at+".call_id", "a message of role %s is no result of a call", m.Role)
	}
	for _, f := range []struct{ name, text string }{
		{"content", m.Content}, {"reasoning", m.Reasoning}, {"tool", m.Tool}, {"call_id", m.CallID},
	} {
		if err := isText(at+"."+f.name, f.text); err != nil {
			return c, err
		}
	}
	if len(m.Parts) == 0 {
		c.Parts = []chat.Part{{Text: m.Content}}
	}
	for i, p := range m.Parts {
		field := fmt.Sprintf("%s.parts[%d]", at, i)
		part := chat.Part{Text: p.Text, MIME: p.MIME, Data: p.Data, Field: field}
		switch p.Type {
		case PartText, "":
			if err := isText(field+".text", p.Text); err != nil {
				return c, err
			}
		case PartImage:
			part.Media = chat.Image
		case PartAudio:
			part.Media = chat.Audio
		default:
			return c, wrong(field+".type", "there is no type %q: want text, image or audio", p.Type)
		}
		c.Parts = append(c.Parts, part)
	}
	for i, call := range m.Calls {
		field := fmt.Sprintf("%s.calls[%d]", at, i)
		var object map[string]json.RawMessage
		if len(call.Arguments) > 0 && (json.Unmarshal(call.Arguments, &object) != nil || object == nil) {
			return c, wrong(field+".arguments", "not a JSON object")
		}
		for _, text := range []string{call.ID, call.Name, string(call.Arguments)} {
			if err := isText(field, text); err != nil {
				return c, err
			}
		}
		args := string(call.Arguments)
		if args == "" {
			args = "{}"
		}
		c.Calls = append(c.Calls, chat.Call{ID: call.ID, Name: call.Name, Arguments: args})
	}
	return c, nil
}
