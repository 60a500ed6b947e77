package toolfmt

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

// caps is what a template can do, found by rendering small conversations with it.
type caps struct {
	tools                bool   // it renders the tools that it is given
	toolsVar             string // under another name than "tools", as SmolLM3's
	calls                bool   // it renders an assistant's tool_calls
	stringArgs           bool   // it wants arguments as JSON text, not as an object
	manyCalls            bool   // it takes several calls in one message
	contentWithCalls     bool   // it renders content beside calls
	nullContent          bool   // it wants null, not "", where a message has only calls
	toolRole             bool   // it renders messages of role "tool"
	system               bool   // it renders messages of role "system"
	developer            bool   // it renders messages of role "developer"
	shortIDs             bool   // ids must be nine letters or digits
	oneOfContentThinking bool   // it refuses content and thinking beside calls
	thinkVar             string
	effort               bool
	reasoningKeys        []string
	listContent          map[string]bool // roles whose content must be a list of parts: text alone does not come out
}

// prober renders trial conversations. The words that it looks for in the output occur in no template.
type prober struct {
	t    *chattmpl.Template
	list map[string]bool // as caps.listContent
}

const (
	probeTool  = "zqtool"
	probeTool2 = "zqsecond"
	probeArg   = "zqvalue"
	probeText  = "zqtext"
)

// content writes a message's text as the template reads it.
func (c caps) content(role, text string) string {
	if c.listContent[role] {
		return `[{"type":"text","text":` + quote(text) + `}]`
	}
	return quote(text)
}

// message is a message of a trial.
func (p *prober) message(role, text string) string {
	return `{"role":"` + role + `","content":` + caps{listContent: p.list}.content(role, text) + `}`
}

func (p *prober) user() string { return p.message("user", "zquser") }

// reads finds out whether the template renders messages of a role, and notes where it wants their content as a list of
// parts: given text it writes nothing, or fails. around returns a conversation with such a message.
func (p *prober) reads(role string, around func() string, word string) bool {
	for _, list := range []bool{false, true} {
		p.list[role] = list
		out, ok := p.render(around(), "")
		if ok && strings.Contains(out, word) && !(list && strings.Contains(out, "{'")) {
			return true
		}
	}
	p.list[role] = false
	return false
}

// probeLimits bounds each trial: a hostile template costs little.
var probeLimits = chattmpl.Limits{Steps: 200_000, OutputBytes: 1 << 20, StringBytes: 1 << 20}

func (p *prober) render(messages, tools string, extra ...chattmpl.KV) (string, bool) {
	in := chattmpl.Input{AddGenerationPrompt: true, Now: func() time.Time { return time.Unix(0, 0).UTC() }}
	var err error
	if in.Messages, err = chattmpl.ParseJSON([]byte("[" + messages + "]")); err != nil {
		return "", false
	}
	if tools != "" {
		if in.Tools, err = chattmpl.ParseJSON([]byte("[" + tools + "]")); err != nil {
			return "", false
		}
	}
	in.Extra = append(
		[]chattmpl.KV{
			{Key: "bos_token", Value: chattmpl.Text("<s>")},
			{Key: "eos_token", Value: chattmpl.Text("</s>")},
		},
		extra...)
	out, err := p.t.Render(context.Background(), in, probeLimits)
	if err != nil {
		return "", false
	}
	return out.Text(), true
}

func probeDefinition(name string) string {
	return `{"type":"function","function":{"name":"` + name + `","description":"d","parameters":{"type":"object","properties":{"a":{"type":"string","description":"d"}},"required":["a"]}}}`
}

// trial is one way to write an assistant's message with calls.
type trial struct {
	content    string // JSON
	stringArgs bool
	id         string
	names      []string
	result     bool
}

func (p *prober) conversation(t trial) string {
	args := `{"a":"` + probeArg + `"}`
	if t.stringArgs {
		args = quote(args)
	}
	var calls, results []string
	for i, name := range t.names {
		id := t.id
		if i > 0 {
			id = id[:len(id)-1] + "x"
		}
		calls = append(calls, `{"id":"`+id+`","type":"function","function":{"name":"`+name+`","arguments":`+args+`}}`)
		results = append(
			results,
			`{"role":"tool","content":`+caps{
				listContent: p.list,
			}.content(
				"tool",
				"zqresult",
			)+`,"tool_call_id":"`+id+`","name":"`+name+`"}`,
		)
	}
	s := p.user() + `,{"role":"assistant","content":` + t.content + `,"tool_calls":[` + strings.Join(calls, ",") + `]}`
	if t.result {
		s += "," + strings.Join(results, ",")
	}
	return s
}

// try renders a trial and tells whether all of the calls are in it, with arguments that are not a Python
// dictionary's text nor escaped twice.
func (p *prober) try(t trial) bool {
	out, ok := p.render(p.conversation(t), probeDefinition(probeTool)+","+probeDefinition(probeTool2))
	if !ok {
		return false
	}
	bare, ok := p.render(p.user(), probeDefinition(probeTool)+","+probeDefinition(probeTool2))
	if !ok {
		bare = ""
	}
	for _, n := range t.names {
		if strings.Count(out, n) <= strings.Count(bare, n) {
			return false
		}
	}
	if strings.Contains(t.content, probeText) && !strings.Contains(out, probeText) {
		return false
	}
	return strings.Count(out, probeArg) >= len(t.names) && !strings.Contains(out, `{'a'`) &&
		!strings.Contains(out, `{\"a\"`)
}

// probe finds out what a template can do. A template that cannot be read can do nothing.
func probe(source string) caps {
	var c caps
	t, err := chattmpl.Parse("chat template", source)
	if source == "" || err != nil {
		return c
	}
	p := &prober{t: t, list: map[string]bool{}}
	c.listContent = p.list
	p.reads("user", func() string { return p.message("user", probeText) }, probeText)
	p.reads(
		"assistant",
		func() string { return p.user() + "," + p.message("assistant", probeText) + "," + p.user() },
		probeText,
	)
	p.probeTools(&c, source)
	p.probeCalls(&c)
	for role, can := range map[string]*bool{"system": &c.system, "developer": &c.developer} {
		*can = p.reads(role, func() string { return p.message(role, probeText) + "," + p.user() }, probeText)
	}
	p.probeThinking(&c, source)
	return c
}

func (p *prober) probeTools(c *caps, source string) {
	out, ok := p.render(p.user(), probeDefinition(probeTool))
	c.tools = ok && strings.Contains(out, probeTool)
	const other = "xml_tools"
	if c.tools || !strings.Contains(source, other) {
		return
	}
	list, err := chattmpl.ParseJSON([]byte("[" + probeDefinition(probeTool) + "]"))
	if err != nil {
		return
	}
	if out, ok = p.render(p.user(), "", chattmpl.KV{Key: other, Value: list}); ok && strings.Contains(out, probeTool) {
		c.tools, c.toolsVar = true, other
	}
}

func (p *prober) probeCalls(c *caps) {
	const plainID, shortID = "call_zq0001", "callzq001"
	for n := range 16 {
		t := trial{content: `""`, id: plainID, names: []string{probeTool}, stringArgs: n&1 != 0, result: n&8 != 0}
		if n&2 != 0 {
			t.content = "null"
		}
		if n&4 != 0 {
			t.id = shortID
		}
		if p.try(t) {
			c.calls, c.stringArgs, c.nullContent, c.shortIDs = true, t.stringArgs, n&2 != 0, n&4 != 0
			p.probeAround(c, t)
			return
		}
	}
	c.toolRole = p.reads("tool", func() string {
		result := caps{listContent: p.list}.content("tool", "zqresult")
		return p.user() + "," + p.message(
			"assistant",
			"x",
		) + `,{"role":"tool","content":` + result + `,"name":"x","tool_call_id":"callzq001"}`
	}, "zqresult")
}

// probeAround finds out what may stand around the calls, given one way of writing them that works.
func (p *prober) probeAround(c *caps, t trial) {
	many := t
	many.names = []string{probeTool, probeTool2}
	many.result = true
	c.manyCalls = p.try(many)
	text := t
	text.content = caps{listContent: p.list}.content("assistant", probeText)
	c.contentWithCalls = p.try(text)
	res := t
	res.result = true
	for _, list := range []bool{false, true} {
		p.list["tool"] = list
		out, ok := p.render(p.conversation(res), probeDefinition(probeTool))
		if c.toolRole = ok && strings.Contains(out, "zqresult"); c.toolRole {
			return
		}
	}
	p.list["tool"] = false
}

var wordOf = map[string]*regexp.Regexp{
	"reasoning_content": regexp.MustCompile(`\breasoning_content\b`),
	"reasoning":         regexp.MustCompile(`message\.reasoning\b|message\[['"]reasoning['"]\]|\bm\.reasoning\b`),
	"thinking":          regexp.MustCompile(`message\.thinking\b|['"]thinking['"]`),
	"thought":           regexp.MustCompile(`message\.thought\b|message\[['"]thought['"]\]`),
}

func (p *prober) probeThinking(c *caps, source string) {
	for _, key := range []string{"reasoning_content", "reasoning", "thinking", "thought"} {
		if wordOf[key].MatchString(source) {
			c.reasoningKeys = append(c.reasoningKeys, key)
		}
	}
	c.oneOfContentThinking = strings.Contains(source, "Cannot pass both content and thinking")
	for _, name := range []string{"enable_thinking", "thinking", "think"} {
		if !strings.Contains(source, name) {
			continue
		}
		system := p.message("system", "s") + "," + p.user()
		on, ok1 := p.render(system, "", chattmpl.KV{Key: name, Value: chattmpl.Bool(true)})
		off, ok2 := p.render(system, "", chattmpl.KV{Key: name, Value: chattmpl.Bool(false)})
		if ok1 && ok2 && on != off {
			c.thinkVar = name
			break
		}
	}
	if strings.Contains(source, "reasoning_effort") {
		low, ok1 := p.render(p.user(), "", chattmpl.KV{Key: "reasoning_effort", Value: chattmpl.Text("low")})
		high, ok2 := p.render(p.user(), "", chattmpl.KV{Key: "reasoning_effort", Value: chattmpl.Text("high")})
		c.effort = ok1 && ok2 && low != high
	}
}
