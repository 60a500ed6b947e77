package model

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/baleenrun/baleen/internal/toolfmt"
)

// attempt is the begin of a call, as the families in use write it, that the parser did not take for one: the name is of
// no tool, or what stands in it cannot be read.
var attempt = regexp.MustCompile(`(?s)<tool_call>|<function=|\[TOOL_CALLS\]|<\|tool_call|<\|python_tag\|>|` +
	"```tool_c(?:ode|all)" + `|^\s*(?:` + "```(?:json)?\\s*" + `)?` +
	`\{\s*"(?:name|function|tool)"\s*:\s*"([^"]*)"\s*,\s*"(?:arguments|parameters|args|input)"\s*:`)

// meant looks at an answer without calls. wrong says what is wrong with a text that is meant as a call and is none; "": it
// is plain text. name is the tool that was meant, where there is one of that name.
func meant(text string, tools []ToolSpec) (name, wrong string) {
	m := attempt.FindStringSubmatch(text)
	said := ""
	if m != nil {
		said = m[1]
	}
	if said == "" {
		if k := nameMember.FindStringSubmatch(text); m != nil && k != nil {
			said = k[1]
		}
	}
	for _, t := range tools {
		if strings.EqualFold(t.Name, said) {
			name = t.Name
		}
	}
	if yes, _ := toolfmt.Attempts(text, toolList(tools)); yes {
		return name, "its arguments do not fit the tool's parameters"
	}
	switch {
	case m == nil:
		return "", ""
	case said != "" && name == "":
		return "", "there is no tool named " + said
	}
	return name, "it could not be read as JSON of the form that was asked for"
}

var nameMember = regexp.MustCompile(`"name"\s*:\s*"([^"]*)"|<function=([\w.-]+)`)

// salvage makes a call of an answer that is nothing but one, without the marks of the model's format, and has members beside
// the tool's parameters, for which the parser takes it for text: small models repeat parts of the schema in their calls.
func salvage(text string, tools []ToolSpec) (c Call, ok bool) {
	text = strings.TrimSpace(text)
	if inner, found := strings.CutPrefix(text, "```"); found {
		inner = strings.TrimPrefix(strings.TrimPrefix(inner, "json"), "\n")
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner), "```"))
	}
	var said struct {
		Name       string                     `json:"name"`
		Arguments  map[string]json.RawMessage `json:"arguments"`
		Parameters map[string]json.RawMessage `json:"parameters"`
	}
	if json.Unmarshal([]byte(text), &said) != nil {
		return c, false
	}
	args := said.Arguments
	if args == nil {
		args = said.Parameters
	}
	for _, t := range tools {
		if !strings.EqualFold(t.Name, said.Name) {
			continue
		}
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		if json.Unmarshal(t.Parameters, &schema) != nil {
			return c, false
		}
		kept := map[string]json.RawMessage{}
		for name, v := range args {
			if schema.Properties[name] != nil {
				kept[name] = v
			}
		}
		for _, name := range schema.Required {
			if kept[name] == nil {
				return c, false
			}
		}
		return Call{Name: t.Name, Args: string(compact(kept))}, true
	}
	return c, false
}

// settle looks at an answer without calls and makes one of what is meant as one.
func (a *Answer) settle(tools []ToolSpec, newID func() string) {
	if c, ok := salvage(a.Message.Text, tools); ok && a.Reason == Stop {
		c.ID = newID()
		a.Message.Calls, a.Message.Text, a.Reason = []Call{c}, "", Calls
		return
	}
	a.Meant, a.Malformed = meant(a.Message.Text, tools)
}
