package toolfmt

import "strings"

// toolPrompt is what a model whose template knows no tools is told of them.
func (s *spec) toolPrompt(tools []Tool) (string, error) {
	var b strings.Builder
	if s.python {
		b.WriteString("You can call these functions, given as JSON:\n")
	} else {
		b.WriteString("# Tools\n\nYou may call one or more functions to help with the user's request. They are " +
			"given as JSON, one a line:\n<tools>\n")
	}
	for _, t := range tools {
		d, err := toolJSON(t)
		if err != nil {
			return "", err
		}
		b.Write(d)
		b.WriteByte('\n')
	}
	if s.python {
		b.WriteString(
			"To call functions, answer only with a block like this, one call a line, with named arguments:\n" +
				"```tool_code\nfunction_name(parameter=\"value\")\n```\nThe result then comes in a ```tool_output block. Otherwise answer in plain words.",
		)
		return b.String(), nil
	}
	b.WriteString(
		"</tools>\n\nFor each call, answer with one JSON object of the function's name and arguments inside these tags:\n" +
			"<tool_call>\n{\"name\": <function-name>, \"arguments\": <arguments-object>}\n</tool_call>",
	)
	return b.String(), nil
}

// callsText writes earlier calls for a template that knows none.
func (s *spec) callsText(calls []Call) string {
	var b strings.Builder
	for i, c := range calls {
		if i > 0 {
			b.WriteByte('\n')
		}
		args := c.Arguments
		switch {
		case s.python:
			b.WriteString("```tool_code\n" + pythonCall(c.Name, args) + "\n```")
			continue
		case s.callText != "":
			call := strings.ReplaceAll(s.callText, "NAME", quote(c.Name))
			call = strings.ReplaceAll(call, "PYTHON", pythonCall(c.Name, args))
			b.WriteString(strings.ReplaceAll(call, "ARGS", args))
			continue
		}
		b.WriteString("<tool_call>\n{\"name\": " + quote(c.Name) + ", \"arguments\": " + args + "}\n</tool_call>")
	}
	return b.String()
}

// resultText writes a result for a template without the role "tool".
func (s *spec) resultText(m Message) string {
	if s.python {
		return "```tool_output\n" + m.Content + "\n```"
	}
	return "<tool_response>\n" + m.Content + "\n</tool_response>"
}
