package toolfmt

import "strings"

// spec is one family's way of writing calls, as data.
type spec struct {
	name   string
	marks  []string // what in a template tells the family, any of them
	vocab  []string // tokens that tell it where the template does not, all of them
	archs  []string // architectures or parts of names that tell it where nothing else does
	blocks []block  // the marks of its calls, beside the universal ones
	stops  []string // control tokens that end a turn
	prefix string   // a forced call up to its first argument, the bracket before it included; NAME stands for the name
	think  think    // reasoning marks, where the template has none that are known
	// callText is how an earlier call is written where the template writes none: NAME stands for the quoted
	// name, ARGS for the arguments, PYTHON for the whole as Python. Empty means Hermes' tags.
	callText string
	// python tells that the fallback prompt asks for Python calls instead of Hermes' tags.
	python bool
	// bare tells that its calls have no marks, or need none.
	bare bool
	// harmony tells that the whole output is a sequence of channel messages.
	harmony bool
}

// block is a pair of marks around calls. How the calls are written is told by the text itself: models mix
// the forms. The closing mark may be missing in the output, and empty where the family has none.
type block struct{ open, close string }

// think is the pair of marks around reasoning.
type think struct{ open, close string }

var (
	toolCallTag = block{"<tool_call>", "</tool_call>"}
	functionTag = block{"<function=", ""}
	pythonTag   = block{"<|python_tag|>", ""}
)

const hermesPrefix = "<tool_call>\n{\"name\": \"NAME\", \"arguments\": {"

// specs are in order of precedence: what is more particular stands first. The last is for models that
// nothing is known of.
var specs = []spec{
	{
		name:    "harmony",
		marks:   []string{"<|channel|>"},
		vocab:   []string{"<|channel|>", "<|constrain|>"},
		archs:   []string{"gpt-oss", "gptoss", "gpt_oss"},
		stops:   []string{"<|call|>", "<|return|>"},
		prefix:  "<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{",
		harmony: true,
		think:   think{"<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"},
	},
	{
		name:   "gemma4",
		marks:  []string{"<|tool_call>"},
		vocab:  []string{"<|tool_call>", "<tool_call|>"},
		archs:  []string{"gemma4"},
		blocks: []block{{"<|tool_call>", "<tool_call|>"}},
		think:  think{"<|channel>thought\n", "<channel|>"},
		stops:  []string{"<|tool_response>"},
		prefix: "<|tool_call>call:NAME{",
	},
	{
		name:   "functiongemma",
		marks:  []string{"<start_function_call>"},
		vocab:  []string{"<start_function_call>"},
		blocks: []block{{"<start_function_call>", "<end_function_call>"}},
		stops:  []string{"<start_function_response>"},
		prefix: "<start_function_call>call:NAME{",
	},
	{
		name:  "deepseek-dsml",
		marks: []string{"｜DSML｜"},
		vocab: []string{"｜DSML｜"},
		blocks: []block{
			{"<｜DSML｜function_calls>", "</｜DSML｜function_calls>"},
			{"<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"},
		},
		think:  think{"<think>", "</think>"},
		prefix: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"NAME\">\n",
	},
	{
		name:   "deepseek",
		marks:  []string{"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"},
		vocab:  []string{"<｜tool▁calls▁begin｜>"},
		archs:  []string{"deepseek2"},
		blocks: []block{{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}, {"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"}},
		think:  think{"<think>", "</think>"},
		prefix: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\n{",
	},
	{
		name:  "kimi",
		marks: []string{"<|tool_calls_section_begin|>"},
		vocab: []string{"<|tool_calls_section_begin|>"},
		archs: []string{"kimi"},
		blocks: []block{
			{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
			{"<|tool_call_begin|>", "<|tool_call_end|>"},
		},
		think:  think{"<think>", "</think>"},
		prefix: "<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{",
	},
	{
		name:   "minimax",
		marks:  []string{"<minimax:tool_call>"},
		vocab:  []string{"<minimax:tool_call>"},
		blocks: []block{{"<minimax:tool_call>", "</minimax:tool_call>"}},
		think:  think{"<think>", "</think>"},
		prefix: "<minimax:tool_call>\n<invoke name=\"NAME\">\n",
	},
	{
		name:     "lfm2",
		marks:    []string{"<|tool_call_start|>", "<|tool_list_start|>"},
		vocab:    []string{"<|tool_call_start|>", "<|tool_call_end|>"},
		archs:    []string{"lfm2"},
		blocks:   []block{{"<|tool_call_start|>", "<|tool_call_end|>"}},
		prefix:   "<|tool_call_start|>[NAME(",
		callText: "<|tool_call_start|>[PYTHON]<|tool_call_end|>",
	},
	{
		name:   "mistral",
		marks:  []string{"[TOOL_CALLS]"},
		vocab:  []string{"[TOOL_CALLS]"},
		blocks: []block{{"[TOOL_CALLS]", ""}},
		prefix: "[TOOL_CALLS] [{\"name\": \"NAME\", \"arguments\": {",
	},
	{
		name:     "phi",
		marks:    []string{"<|tool_call|>", "<|tool|>"},
		vocab:    []string{"<|tool_call|>", "<|/tool_call|>"},
		archs:    []string{"phi"},
		blocks:   []block{{"<|tool_call|>", "<|/tool_call|>"}, {"functools", ""}},
		prefix:   "<|tool_call|>[{\"name\": \"NAME\", \"arguments\": {",
		callText: "<|tool_call|>[{\"name\": NAME, \"arguments\": ARGS}]<|/tool_call|>",
	},
	{
		name:   "glm",
		marks:  []string{"<arg_key>"},
		vocab:  []string{"<arg_key>"},
		archs:  []string{"glm4moe"},
		blocks: []block{toolCallTag},
		think:  think{"<think>", "</think>"},
		stops:  []string{"<|observation|>"},
		prefix: "<tool_call>NAME\n",
	},
	{
		name:   "qwen3-coder",
		marks:  []string{"<function=example_function_name>", "<parameter=", "<function="},
		archs:  []string{"qwen3-coder", "qwen3.5", "qwen35"},
		blocks: []block{toolCallTag, functionTag},
		prefix: "<tool_call>\n<function=NAME>\n",
	},
	{
		name:   "llama3",
		marks:  []string{"<|python_tag|>", "Environment: ipython", "<|start_header_id|>ipython"},
		vocab:  []string{"<|python_tag|>", "<|eom_id|>"},
		archs:  []string{"llama-3", "llama3", "llama 3"},
		blocks: []block{pythonTag, functionTag, toolCallTag},
		stops:  []string{"<|eom_id|>"},
		prefix: "{\"name\": \"NAME\", \"parameters\": {",
		bare:   true,
	},
	{
		name:   "smollm",
		marks:  []string{"<tool_call>\" in", "xml_tools", "smollm"},
		archs:  []string{"smollm"},
		blocks: []block{toolCallTag},
		prefix: hermesPrefix,
	},
	{
		name:   "granite",
		marks:  []string{"<|tool_call|>", "granite", "Granite"},
		archs:  []string{"granite"},
		blocks: []block{{"<|tool_call|>", ""}, toolCallTag},
		prefix: hermesPrefix,
	},
	{
		name:   "hermes",
		marks:  []string{"<tool_call>"},
		vocab:  []string{"<tool_call>", "</tool_call>"},
		archs:  []string{"qwen", "hermes"},
		blocks: []block{toolCallTag},
		prefix: hermesPrefix,
	},
	{
		name:   "gemma3",
		marks:  []string{"<start_of_turn>", "tool_code"},
		vocab:  []string{"<start_of_turn>"},
		archs:  []string{"gemma"},
		python: true,
		bare:   true,
		prefix: "```tool_code\nNAME(",
	},
	{
		name:   "pythonic",
		marks:  []string{"[func_name1(params_name1=params_value1", "<|header_start|>"},
		archs:  []string{"llama4", "llama-4", "olmo3", "olmo-3"},
		blocks: []block{{"<function_calls>", "</function_calls>"}, {"<|python_start|>", "<|python_end|>"}, pythonTag},
		python: true,
		bare:   true,
		prefix: "[NAME(",
	},
	{
		name:   "json",
		blocks: []block{toolCallTag},
		prefix: hermesPrefix,
	},
}

// choose picks the first spec that the template tells, else the vocabulary, else the names.
func choose(h Hints) *spec {
	if h.Template != "" {
		for i := range specs {
			for _, m := range specs[i].marks {
				if strings.Contains(h.Template, m) {
					return &specs[i]
				}
			}
		}
	}
	for i := range specs {
		if hasAll(specs[i].vocab, h.HasToken) {
			return &specs[i]
		}
	}
	for _, name := range []string{strings.ToLower(h.Name), strings.ToLower(h.Architecture)} {
		for i := range specs {
			for _, a := range specs[i].archs {
				if name != "" && strings.Contains(name, a) {
					return &specs[i]
				}
			}
		}
	}
	return &specs[len(specs)-1]
}

func hasAll(tokens []string, has func(string) bool) bool {
	for _, t := range tokens {
		if !has(t) {
			return false
		}
	}
	return len(tokens) > 0
}

// thinkPairs are the reasoning marks in use, the more particular first.
var thinkPairs = []think{
	{"<|channel>thought\n", "<channel|>"},
	{"[THINK]", "[/THINK]"},
	{"<seed:think>", "</seed:think>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<|think|>", "<|/think|>"},
}

// thinkingOf finds the model's reasoning marks: those that its template closes, else its spec's, else those
// that its vocabulary has.
func thinkingOf(h Hints, s *spec) think {
	for _, p := range thinkPairs {
		if strings.Contains(h.Template, p.close) || strings.Contains(h.Template, strings.TrimSpace(p.open)) {
			return p
		}
	}
	if s.think.open != "" {
		return s.think
	}
	for _, p := range thinkPairs {
		if h.HasToken(p.open) && h.HasToken(p.close) {
			return p
		}
	}
	return think{}
}

// extras are marks of single models, read where the template has the opening one.
var extras = []block{
	{"<tool_calls>", "</tool_calls>"},
	{"<TOOLCALL>", "</TOOLCALL>"},
	{"<seed:tool_call>", "</seed:tool_call>"},
	{"<|START_ACTION|>", "<|END_ACTION|>"},
	{"<|function_call|>", ""},
}

var harmonyTokens = []string{
	"<|start|>",
	"<|end|>",
	"<|message|>",
	"<|channel|>",
	"<|constrain|>",
	"<|call|>",
	"<|return|>",
}

// innerTokens stand inside calls.
var innerTokens = []string{
	"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "｜DSML｜", "<|tool_call_begin|>", "<|tool_call_end|>",
	"<|tool_call_argument_begin|>{", "[ARGS]", "[CALL_ID]", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<|\"|>", "<escape>",
	"<|channel>", "<channel|>",
}

// controlTokens lists the tokens whose text the parser reads.
func (f *Format) controlTokens() []string {
	var list []string
	seen := map[string]bool{"": true}
	add := func(ts ...string) {
		for _, t := range ts {
			if t = strings.TrimSpace(t); !seen[t] {
				seen[t] = true
				list = append(list, t)
			}
		}
	}
	if f.spec.harmony {
		add(harmonyTokens...)
	}
	for _, b := range f.blocks {
		add(b.open, b.close)
	}
	for _, b := range universal {
		add(b.open, b.close)
	}
	add(f.think.open, f.think.close)
	add(innerTokens...)
	return list
}

func (s *spec) callPrefix(name string) (string, bool) {
	before, after, _ := strings.Cut(s.prefix, "NAME")
	if name == "" {
		return before, true
	}
	return before + name + after, true
}

// universal are the forms read from every model that was offered tools.
var universal = []block{
	toolCallTag,
	{"<tools>", "</tools>"},
	{"<function_call>", "</function_call>"},
	{"<functioncall>", "</functioncall>"},
	functionTag,
	{"<function name=", ""},
}
