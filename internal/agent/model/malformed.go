package model

import (
	"regexp"
	"strings"

	"github.com/baleenrun/baleen/internal/toolfmt"
)

// attempt is the begin of a call, as the families in use write it, that the parser did not take for one: the name is of
// no tool, or what stands in it cannot be read.
var attempt = regexp.MustCompile(`(?s)<tool_call>|<function=|\[TOOL_CALLS\]|<\|tool_call|<\|python_tag\|>|` +
	"```tool_c(?:ode|all)" + `|^\s*(?:` + "```(?:json)?\\s*" + `)?` +
	`\{\s*"(?:name|function|tool)"\s*:\s*"([^"]*)"\s*,\s*"(?:arguments|parameters|args|input)"\s*:`)

// malformed tells what is wrong with a text that is meant as a call and is none; "": it is plain text.
func malformed(text string, tools []ToolSpec) string {
	if yes, _ := toolfmt.Attempts(text, toolList(tools)); yes {
		return "its arguments do not fit the tool's parameters"
	}
	m := attempt.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	if name := m[1]; name != "" {
		known := false
		for _, t := range tools {
			known = known || strings.EqualFold(t.Name, name)
		}
		if !known {
			return "there is no tool named " + name
		}
	}
	return "it could not be read as JSON of the form that was asked for"
}
