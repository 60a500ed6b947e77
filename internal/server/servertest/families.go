package servertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Family is a way of writing prompts, calls and answers, as models of one family were trained to.
type Family struct {
	Name       string
	Checkpoint Checkpoint
	Offer      func(name string) string            // what a prompt has that offers a tool
	Call       func(name, arguments string) string // what the model writes to call a tool
	Answer     func(text string) string            // what it writes to say something
}

// Families are the families that scripted models can imitate.
func Families() []Family {
	plain := func(text string) string { return text }
	asJSON := func(name string) string { return fmt.Sprintf(`"name": %q`, name) }
	return []Family{
		{
			Name:   "hermes",
			Offer:  asJSON,
			Call:   ToolCall,
			Answer: func(text string) string { return "<think>\nSo that is it.\n</think>\n\n" + text },
		},
		{
			Name: "qwen3-coder", Checkpoint: Checkpoint{Template: qwenCoder}, Offer: asJSON, Answer: plain,
			Call: func(name, arguments string) string {
				return fmt.Sprintf(
					"I will look.\n<tool_call>\n<function=%s>%s\n</function>\n</tool_call>",
					name,
					xmlParameters(arguments),
				)
			},
		},
		{
			Name: "llama3", Offer: asJSON, Answer: plain,
			Checkpoint: Checkpoint{
				Template: llama3, Control: []string{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"},
				Visible: []string{}, End: "<|eot_id|>",
			},
			Call: func(name, arguments string) string {
				return fmt.Sprintf(`{"name": %q, "parameters": %s}`, name, arguments)
			},
		},
		{
			Name: "mistral", Offer: asJSON, Answer: plain,
			Checkpoint: Checkpoint{
				Template: mistral, Control: []string{
					"<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
					"[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
				},
				Visible: []string{}, End: "</s>",
			},
			Call: func(name, arguments string) string {
				return fmt.Sprintf(`[TOOL_CALLS][{"name": %q, "arguments": %s}]`, name, arguments)
			},
		},
		{
			Name: "harmony",
			Checkpoint: Checkpoint{
				Template: harmony, Control: []string{"<|startoftext|>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"},
				Visible: []string{}, End: "<|return|>",
			},
			Offer: func(name string) string { return "type " + name + " = (" },
			Call: func(name, arguments string) string {
				return fmt.Sprintf(
					"<|channel|>analysis<|message|>A tool can tell.<|end|><|start|>assistant<|channel|>commentary "+
						"to=functions.%s <|constrain|>json<|message|>%s<|call|>",
					name,
					arguments,
				)
			},
			Answer: func(text string) string {
				return "<|channel|>analysis<|message|>So that is " +
					"it.<|end|><|start|>assistant<|channel|>final<|message|>" + text
			},
		},
	}
}

// The templates below write what their families read, and no more than a conversation with tools needs.
const (
	qwenCoder = `{%- set begin = '<|im_start|>' %}
{%- set rest = messages %}
{%- if messages[0].role == 'system' or tools %}
{{- begin + 'system\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content }}{%- set rest = messages[1:] %}{%- endif %}
{%- if tools %}
{{- '\n\nYou have these functions:\n<tools>' }}
{%- for tool in tools %}{{- '\n' + (tool.function | tojson) }}{%- endfor %}
{{- '\n</tools>\nA call is written so:\n<tool_call>\n<function=example_function_name>\n<parameter=example_parameter>\nvalue\n</parameter>\n</function>\n</tool_call>' }}
{%- endif %}
{{- '<|im_end|>\n' }}
{%- endif %}
{%- for m in rest %}
{%- if m.role == 'tool' %}
{{- begin + 'user\n<tool_response>\n' + m.content + '\n</tool_response>' }}
{%- else %}
{{- begin + m.role + '\n' }}
{%- if m.content %}{{- m.content }}{%- endif %}
{%- for call in m.tool_calls or [] %}
{{- '\n<tool_call>\n<function=' + call.function.name + '>' }}
{%- for key, value in call.function.arguments | items %}
{{- '\n<parameter=' + key + '>\n' }}{{- value if value is string else value | tojson }}{{- '\n</parameter>' }}
{%- endfor %}
{{- '\n</function>\n</tool_call>' }}
{%- endfor %}
{%- endif %}
{{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- begin + 'assistant\n' }}{%- endif %}`

	llama3 = `{{- '<|begin_of_text|>' }}
{%- macro head(role) %}{{- '<|start_header_id|>' + role + '<|end_header_id|>\n\n' }}{%- endmacro %}
{%- if tools %}
{{- head('system') + 'Environment: ipython\nTools, called by {"name": ..., "parameters": ...}:\n' }}
{%- for tool in tools %}{{- (tool | tojson) + '\n' }}{%- endfor %}
{{- '<|eot_id|>' }}
{%- endif %}
{%- for m in messages %}
{%- if m.role == 'tool' %}
{{- head('ipython') + m.content }}
{%- elif m.tool_calls %}
{{- head('assistant') }}
{%- for call in m.tool_calls %}
{{- '{"name": "' + call.function.name + '", "parameters": ' + (call.function.arguments | tojson) + '}' }}
{%- endfor %}
{%- else %}
{{- head(m.role) + m.content }}
{%- endif %}
{{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- head('assistant') }}{%- endif %}`

	mistral = `{{- '<s>' }}
{%- if tools %}{{- '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{%- endif %}
{%- for m in messages %}
{%- if m.role == 'system' %}
{{- '[SYSTEM_PROMPT]' + m.content + '[/SYSTEM_PROMPT]' }}
{%- elif m.role == 'user' %}
{{- '[INST]' + m.content + '[/INST]' }}
{%- elif m.role == 'tool' %}
{{- '[TOOL_RESULTS]' + ({'content': m.content} | tojson) + '[/TOOL_RESULTS]' }}
{%- elif m.tool_calls %}
{{- '[TOOL_CALLS][' }}
{%- for call in m.tool_calls %}
{{- '{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}' }}{{- ', ' if not loop.last else '' }}
{%- endfor %}
{{- ']</s>' }}
{%- else %}
{{- m.content + '</s>' }}
{%- endif %}
{%- endfor %}`

	harmony = `{%- macro part(role, text) %}{{- '<|start|>' + role + '<|message|>' + text + '<|end|>' }}{%- endmacro %}
{{- part('system', 'Valid channels: analysis, commentary, final.') }}
{%- set ns = namespace(tool='') %}
{%- if tools %}
{{- '<|start|>developer<|message|># Tools\n\nnamespace functions {\n' }}
{%- for tool in tools %}
{{- '// ' + (tool.function.description or '') + '\ntype ' + tool.function.name + ' = (_: ' + (tool.function.parameters | tojson) + ') => any;\n' }}
{%- endfor %}
{{- '}<|end|>' }}
{%- endif %}
{%- for m in messages %}
{%- if m.role == 'tool' %}
{{- '<|start|>functions.' + ns.tool + ' to=assistant<|channel|>commentary<|message|>' + (m.content | tojson) + '<|end|>' }}
{%- elif m.role == 'assistant' %}
{%- if m.thinking and m.tool_calls %}{{- '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{%- endif %}
{%- if m.content %}{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}{%- endif %}
{%- for call in m.tool_calls or [] %}
{%- set ns.tool = call.function.name %}
{{- '<|start|>assistant<|channel|>commentary to=functions.' + ns.tool + ' <|constrain|>json<|message|>' + (call.function.arguments | tojson) + '<|call|>' }}
{%- endfor %}
{%- else %}
{{- part('developer' if m.role == 'system' else m.role, m.content) }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}`
)

// xmlParameters writes a JSON object as the parameters of an XML call, ordered by name.
func xmlParameters(arguments string) string {
	var args map[string]any
	if err := json.Unmarshal([]byte(arguments), &args); err != nil {
		panic(fmt.Sprintf("servertest: a script calls with arguments that are no object: %v", err))
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(args)) {
		value, ok := args[key].(string)
		if !ok {
			j, _ := json.Marshal(args[key]) // it was JSON
			value = string(j)
		}
		fmt.Fprintf(&b, "\n<parameter=%s>\n%s\n</parameter>", key, value)
	}
	return b.String()
}
