package toolfmt

import (
	"context"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

// Small templates with the habits of real ones.
const (
	// as Qwen's: everything is rendered, arguments are objects
	tmplFull = `{% if tools %}<tools>{% for t in tools %}{{ t|tojson }}{% endfor %}</tools>{% endif %}` +
		`{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}` +
		`{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }}{{ c.function.arguments|tojson }}</tool_call>{% endfor %}{% endfor %}` +
		`{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}`
	// as Llama 3's: one call a message, no text beside it
	tmplSingle = `{% for t in tools or [] %}{{ t|tojson }}{% endfor %}{% for m in messages %}{% if m.tool_calls %}` +
		`{% if m.tool_calls|length != 1 %}{{ raise_exception("one call at once") }}{% endif %}` +
		`<call>{{ m.tool_calls[0].function.name }}{{ m.tool_calls[0].function.arguments|tojson }}{% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`
	// as DeepSeek's: arguments are text, and content must be null beside calls
	tmplText = `{% for t in tools or [] %}{{ t|tojson }}{% endfor %}{% for m in messages %}{% if m.role == 'assistant' and m.content is none %}` +
		`{% for c in m.tool_calls %}<call>{{ c.function.name + c.function.arguments }}{% endfor %}{% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`
	// as Mistral's: ids of nine letters and digits
	tmplIDs = `{% for t in tools or [] %}{{ t|tojson }}{% endfor %}{% for m in messages %}<{{ m.role }}>{{ m.content }}` +
		`{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ raise_exception("ids") }}{% endif %}{{ c.function.name }}{{ c.function.arguments|tojson }}{{ c.id }}{% endfor %}` +
		`{% if m.role == 'tool' %}={{ m.tool_call_id }}{% endif %}{% endfor %}`
	// as Gemma 2's: no tools, no system, roles take turns
	tmplPlain = `{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) or m.role not in ['user', 'assistant'] %}` +
		`{{ raise_exception("roles") }}{% endif %}<start_of_turn>{{ m.role }}
{{ m.content }}{% endfor %}`
)

func talk() []Message {
	return []Message{
		{Role: "system", Content: "Be kind."},
		{Role: "user", Content: "Paris and Rome?"},
		{Role: "assistant", Content: "Looking.", Reasoning: "two calls", Calls: []Call{
			{
				ID:        "call_a",
				Name:      "get_weather",
				Arguments: `{"location": "Paris"}`,
			}, {ID: "call_b", Name: "list_files", Arguments: ""},
		}},
		{Role: "tool", CallID: "call_a", Content: "sunny"},
		{Role: "tool", CallID: "call_b", Content: "a.go"},
		{Role: "user", Content: "Thanks."},
	}
}

func renderWith(t *testing.T, source string, ms []Message, o PromptOptions) string {
	t.Helper()
	tmpl, err := chattmpl.Parse("test", source)
	if err != nil {
		t.Fatal(err)
	}
	out, err := For(Hints{Template: source}).Render(context.Background(), tmpl, ms, everyday[:1], o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out.Text()
}

func TestRender(t *testing.T) {
	def := `{"type": "function", "function": {"name": "get_weather", "description": "weather", "parameters": {"type": "object", "properties": {"location": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}, "days": {"type": "integer"}}, "required": ["location"]}}}`
	for name, c := range map[string]struct{ source, want string }{
		"full": {tmplFull, "<tools>" + def + `</tools><system>Be kind.<user>Paris and Rome?<assistant>Looking.<think>two calls</think>` +
			`<tool_call>get_weather{"location": "Paris"}</tool_call><tool_call>list_files{}</tool_call><tool>sunny<tool>a.go<user>Thanks.`},
		"single": {tmplSingle, def + `<system>Be kind.<user>Paris and Rome?<assistant>Looking.<call>get_weather{"location": "Paris"}<tool>sunny<call>list_files{}<tool>a.go<user>Thanks.`},
		"text":   {tmplText, def + `<system>Be kind.<user>Paris and Rome?<assistant>Looking.<call>get_weather{"location": "Paris"}<call>list_files{}<tool>sunny<tool>a.go<user>Thanks.`},
	} {
		if got := renderWith(t, c.source, talk(), PromptOptions{}); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestRenderShortIDs(t *testing.T) {
	got := renderWith(t, tmplIDs, talk(), PromptOptions{})
	_, after, _ := strings.Cut(got, `{"location": "Paris"}`)
	id := after[:9]
	if strings.Trim(id, alnum) != "" || !strings.Contains(got, "<tool>sunny="+id) {
		t.Errorf("the result's id is not the call's: %s", got)
	}
}

// TestRenderPlain wants nothing lost by a template that knows neither tools nor the system.
func TestRenderPlain(t *testing.T) {
	got := renderWith(t, tmplPlain, talk(), PromptOptions{})
	for _, s := range []string{"Be kind.", `"name":"get_weather"`, "Paris and Rome?", "Looking.", "get_weather(location=\"Paris\")", "list_files()", "sunny", "a.go", "Thanks."} {
		if strings.Count(got, s) != 1 {
			t.Errorf("%q stands %d times in %s", s, strings.Count(got, s), got)
		}
	}
	f := For(Hints{Template: tmplPlain})
	o := parse(t, f, everyday, Options{}, "```tool_code\nget_weather(location=\"Paris\")\n```")
	if len(o.calls) != 1 || f.TemplateRendersTools() {
		t.Errorf("what the prompt asks for is not read: %s", o)
	}
}

func TestRenderThinking(t *testing.T) {
	f := For(Hints{Template: tmplFull})
	if !f.SupportsThinkingSwitch() || f.SupportsEffort() {
		t.Error("the switch was not found, or effort was")
	}
	off := false
	if got := renderWith(t, tmplFull, talk()[1:2], PromptOptions{Thinking: &off}); !strings.HasSuffix(
		got,
		"<think></think>",
	) {
		t.Errorf("thinking was not switched off: %s", got)
	}
}

func TestRenderRefuses(t *testing.T) {
	f := For(Hints{Template: tmplFull})
	if _, err := f.Input(nil, []Tool{{Name: "y", Parameters: []byte(`[1]`)}}, PromptOptions{}); err == nil ||
		!strings.Contains(err.Error(), `"y"`) {
		t.Errorf("parameters that are no object: %v", err)
	}
}

// TestProbeHostile wants templates that loop or fail to end, with the caps of a template that can do nothing.
func TestProbeHostile(t *testing.T) {
	for _, src := range []string{
		"{% for i in range(100000000) %}{{ tools }}{% endfor %}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{{ 'x' * 1000000000 }}", "{% if %}", "{{ raise_exception('no') }}",
	} {
		f := For(Hints{Template: src})
		if f.TemplateRendersTools() || f.caps.calls || f.caps.toolRole {
			t.Errorf("%q: caps %+v", src, f.caps)
		}
	}
}
