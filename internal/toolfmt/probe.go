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
}

// prober renders trial conversations. The words that it looks for in the output occur in no template.
type prober struct {
	t *chattmpl.Template
}

const (
	probeTool  = "zqtool"
	probeTool2 = "zqsecond"
	probeArg   = "zqvalue"
	probeText  = "zqtext"
	probeUser  = `{"role":"user","content":"zquser"}`
)

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
	in.Extra = append([]chattmpl.KV{{Key: "bos_token", Value: chattmpl.Text("<s>")}, {Key: "eos_token", Value: chattmpl.Text("</s>")}}, extra...)
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
		results = append(results, `{"role":"tool","content":"zqresult","tool_call_id":"`+id+`","name":"`+name+`"}`)
	}
	s := probeUser + `,{"role":"assistant","content":` + t.content + `,"tool_calls":[` + strings.Join(calls, ",") + `]}`
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
	bare, ok := p.render(probeUser, probeDefinition(probeTool)+","+probeDefinition(probeTool2))
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
	return strings.Count(out, probeArg) >= len(t.names) && !strings.Contains(out, `{'a'`) && !strings.Contains(out, `{\"a\"`)
}

// probe finds out what a template can do. A template that cannot be read can do nothing.
func probe(source string) caps {
	var c caps
	t, err := chattmpl.Parse("chat template", source)
	if source == "" || err != nil {
		return c
	}
	p := &prober{t: t}
	p.probeTools(&c, source)
	p.probeCalls(&c)
	for role, can := range map[string]*bool{"system": &c.system, "developer": &c.developer} {
		out, ok := p.render(`{"role":"`+role+`","content":"`+probeText+`"},`+probeUser, "")
		*can = ok && strings.Contains(out, probeText)
	}
	p.probeThinking(&c, source)
	return c
}

func (p *prober) probeTools(c *caps, source string) {
	out, ok := p.render(probeUser, probeDefinition(probeTool))
	c.tools = ok && strings.Contains(out, probeTool)
	const other = "xml_tools"
	if c.tools || !strings.Contains(source, other) {
		return
	}
	list, err := chattmpl.ParseJSON([]byte("[" + probeDefinition(probeTool) + "]"))
	if err != nil {
		return
	}
	if out, ok = p.render(probeUser, "", chattmpl.KV{Key: other, Value: list}); ok && strings.Contains(out, probeTool) {
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
	out, ok := p.render(probeUser+`,{"role":"assistant","content":"x"},{"role":"tool","content":"zqresult","name":"x","tool_call_id":"callzq001"}`, "")
	c.toolRole = ok && strings.Contains(out, "zqresult")
}

// probeAround finds out what may stand around the calls, given one way of writing them that works.
func (p *prober) probeAround(c *caps, t trial) {
	many := t
	many.names = []string{probeTool, probeTool2}
	many.result = true
	c.manyCalls = p.try(many)
	text := t
	text.content = `"` + probeText + `"`
	c.contentWithCalls = p.try(text)
	res := t
	res.result = true
	out, ok := p.render(p.conversation(res), probeDefinition(probeTool))
	c.toolRole = ok && strings.Contains(out, "zqresult")
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
		system := `{"role":"system","content":"s"},` + probeUser
		on, ok1 := p.render(system, "", chattmpl.KV{Key: name, Value: chattmpl.Bool(true)})
		off, ok2 := p.render(system, "", chattmpl.KV{Key: name, Value: chattmpl.Bool(false)})
		if ok1 && ok2 && on != off {
			c.thinkVar = name
			break
		}
	}
	if strings.Contains(source, "reasoning_effort") {
		low, ok1 := p.render(probeUser, "", chattmpl.KV{Key: "reasoning_effort", Value: chattmpl.Text("low")})
		high, ok2 := p.render(probeUser, "", chattmpl.KV{Key: "reasoning_effort", Value: chattmpl.Text("high")})
		c.effort = ok1 && ok2 && low != high
	}
}
