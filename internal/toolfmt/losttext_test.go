package toolfmt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

func tryRender(t *testing.T, source string, ms []Message, tools []Tool) (string, error) {
	t.Helper()
	tmpl, err := chattmpl.Parse("test", source)
	if err != nil {
		t.Fatal(err)
	}
	extra := []chattmpl.KV{
		{Key: "bos_token", Value: chattmpl.Text("<s>")},
		{Key: "eos_token", Value: chattmpl.Text("</s>")},
	}
	out, err := For(Hints{Template: source}).Render(context.Background(), tmpl, ms, tools, PromptOptions{}, extra)
	return out.Text(), err
}

// TestContentAsParts: some templates read content as a list of parts, and write nothing, or fail, when it is a text.
func TestContentAsParts(t *testing.T) {
	ms := []Message{
		{
			Role:    "system",
			Content: "Be kind.",
		}, {Role: "user", Content: "Hi <|im_end|>"}, {Role: "assistant", Content: "Hello."}, {Role: "user", Content: "Bye."},
	}
	const want = "<system>Be kind.<user>Hi <|im_end|><assistant>Hello.<user>Bye."
	for name, source := range map[string]string{
		"silent": `{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}`,
		"typed":  `{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{% if p.type == 'text' %}{{ p['text'] }}{% endif %}{% endfor %}{% endfor %}`,
		"fails":  `{% for m in messages %}<{{ m.role }}>{{ m.content[0].text + '' }}{% endfor %}`,
		"users": `{% for m in messages %}<{{ m.role }}>{% if m.role == 'user' %}{% for p in m.content %}{{ p.text }}{% endfor %}` +
			`{% else %}{{ m.content }}{% endif %}{% endfor %}`,
		"text":   `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`,
		"either": `{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text }}{% endif %}{% endfor %}`,
	} {
		if got, err := tryRender(t, source, ms, nil); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	// A part's text is a message's text: it can write no control token.
	tmpl, err := chattmpl.Parse(
		"test",
		`{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	out, err := For(
		Hints{
			Template: `{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}`,
		},
	).Render(context.Background(), tmpl, ms, nil, PromptOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range out.Spans() {
		if !s.FromInput && strings.Contains(s.Text, "im_end") {
			t.Errorf("the template is said to have written %q", s.Text)
		}
	}
	results := []Message{
		{Role: "user", Content: "Weather?"},
		{Role: "assistant", Calls: []Call{{ID: "a", Name: "get_weather", Arguments: `{"location": "Oslo"}`}}},
		{Role: "tool", CallID: "a", Content: "sunny"},
	}
	source := `{% for t in tools or [] %}{{ t|tojson }}{% endfor %}{% for m in messages %}<{{ m.role }}>{% for c in m.tool_calls or [] %}{{ c.function|tojson }}{% endfor %}` +
		`{% if m.content is string %}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}`
	if got, err := tryRender(t, source, results, everyday[:1]); err != nil || !strings.HasSuffix(got, "<tool>sunny") {
		t.Errorf("a result in parts: %q, %v", got, err)
	}
}

// TestNoTextIsLost: a conversation of which the template leaves something out is refused, by its text.
func TestNoTextIsLost(t *testing.T) {
	const all = `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`
	u := func(s string) Message { return Message{Role: "user", Content: s} }
	a := func(s string) Message { return Message{Role: "assistant", Content: s} }
	for _, c := range []struct {
		note, source string
		ms           []Message
		lost         string
	}{
		{"whole", all, []Message{u("one"), a("two"), u("three")}, ""},
		{"only the last", `<user>{{ messages[-1].content }}`, []Message{u("one"), a("two"), u("three")}, "one"},
		{"equal texts", `<user>{{ messages[-1].content }}`, []Message{u("yes"), a("yes"), u("yes")}, "yes"},
		{"a role", `{% for m in messages %}{% if m.role != 'assistant' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`, []Message{u("one"), a("two"), u("three")}, "two"},
		{
			"a later system message", `{{ messages[0].content }}{% for m in messages[1:] %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`,
			[]Message{{Role: "system", Content: "s1"}, u("one"), {Role: "system", Content: "s2"}, u("two")},
			"",
		}, // before "two"
		{"the system's text only before the last user's", `{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>{% if loop.last and m.role == 'user' and messages[0].role == 'system' %}` +
			`{{ messages[0].content }} {% endif %}{{ m.content }}{% endif %}{% endfor %}`, []Message{{Role: "system", Content: "Be kind."}, u("one"), a("two")}, ""},
		{"cut short", `{% for m in messages %}<{{ m.role }}>{{ m.content[:5] }}{% endfor %}`, []Message{u("a long text")}, "a long text"},
		{"trimmed", `{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{% endfor %}`, []Message{u("  one \n two\n")}, ""},
		{"as JSON", `{% for m in messages %}<{{ m.role }}>{{ m.content | tojson }}{% endfor %}`, []Message{u("one \"two\"\n<b> é")}, ""},
		{
			"reasoning of old answers", `{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] }}{% endfor %}`,
			[]Message{u("one"), a("<think>\nhm\n</think>\n\ntwo"), u("three")},
			"",
		},
		{"nothing but reasoning", `{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] }}{% endfor %}`, []Message{u("one"), a("<think>hm</think>"), u("three")}, ""},
		{"a switch", `{% for m in messages %}<{{ m.role }}>{{ m.content.replace('/no_think', '') }}{% endfor %}`, []Message{{Role: "system", Content: "Be kind. /no_think"}, u("one")}, ""},
		{"empty", all, []Message{u("one"), a(""), u("three")}, ""},
		{"moved", `{% for m in messages | reverse %}<{{ m.role }}>{{ m.content }}{% endfor %}`, []Message{u("one"), a("two"), u("three")}, ""},
		{"the template's own words", `<user>one{{ messages[-1].content }}`, []Message{u("on"), u("three")}, ""}, // stands there by chance: not told apart
	} {
		_, err := tryRender(t, c.source, c.ms, nil)
		var lost *LostText
		switch {
		case c.lost == "" && err != nil:
			t.Errorf("%s: %v", c.note, err)
		case c.lost != "" && (!errors.As(err, &lost) || lost.Text != c.lost || !strings.Contains(err.Error(), c.lost)):
			t.Errorf("%s: error %v, want one about %q", c.note, err, c.lost)
		}
	}
}

// TestHistoryWithDamagedArguments: what a model once wrote, and a client sends back, renders.
func TestHistoryWithDamagedArguments(t *testing.T) {
	for raw, want := range map[string]string{
		"": "{}", " \n": "{}", "null": "{}", "{": "{}", `{"location": "Paris"}`: `{"location": "Paris"}`, `{"b": 1,   "a": 2}`: `{"b": 1,   "a": 2}`,
		`{"location": "Par`: `{"location": "Par"}`, `{"location": "Paris", "da`: `{"location": "Paris", "da":null}`, `{"location": "Paris",`: `{"location": "Paris"}`,
		`{"location":`: `{"location":null}`, `{"items": ["a", "b`: `{"items": ["a", "b"]}`, `{"loud": tr`: `{"arguments": "{\"loud\": tr"}`, `{"a": 1, "loud": tr`: `{"a": 1}`,
		`{'location': 'Paris'}`: `{"location": "Paris"}`, `"{\"a\": 1}"`: `{"a": 1}`, `Paris`: `{"arguments": "Paris"}`, `[1]`: `{"arguments": "[1]"}`,
		`{{"location": "Paris"}}`: `{"location": "Paris"}`, `{"a": "\ud8`: `{"a": "\\ud8"}`,
	} {
		got := wholeArguments(raw)
		if got != want || !validJSON(got) {
			t.Errorf("%q became %s, want %s", raw, got, want)
		}
		for name, source := range map[string]string{"objects": tmplFull, "text": tmplText, "none": tmplPlain} {
			ms := []Message{
				{Role: "user", Content: "x"},
				{Role: "assistant", Calls: []Call{{ID: "a", Name: "get_weather", Arguments: raw}}},
				{Role: "tool", CallID: "a", Content: "sunny"},
			}
			out, err := tryRender(t, source, ms, everyday[:1])
			if err != nil || !strings.Contains(out, "get_weather") {
				t.Errorf("%q, template with %s: %q, %v", raw, name, out, err)
			}
			if ms[1].Calls[0].Arguments != raw {
				t.Errorf("%q: the caller's message was changed", raw)
			}
		}
	}
}

// TestTemplatesLoseNothing renders conversations with each template in the folder that BALEEN_TEST_TEMPLATES names. A
// template may refuse one; what it renders must hold everything.
func TestTemplatesLoseNothing(t *testing.T) {
	dir := os.Getenv("BALEEN_TEST_TEMPLATES")
	if dir == "" {
		t.Skip("BALEEN_TEST_TEMPLATES names no folder of chat templates")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in %s: %v", dir, err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := chattmpl.Parse("t", string(src)); err != nil {
			t.Logf("%s: %v", filepath.Base(file), err)
			continue
		}
		for name, ms := range map[string][]Message{
			"one":    {{Role: "user", Content: " What's  \"this\"?\n\n<b>é</b>\n"}},
			"turns":  {{Role: "system", Content: "Be kind.\n"}, {Role: "user", Content: "yes"}, {Role: "assistant", Content: "yes"}, {Role: "user", Content: "yes"}},
			"thinks": {{Role: "user", Content: "a"}, {Role: "assistant", Content: "<think>\nhm\n</think>\n\nWell."}, {Role: "user", Content: "b"}},
			"calls":  append(talk(), Message{Role: "assistant", Content: "It is sunny."}, Message{Role: "user", Content: "Good."}),
			"open":   talk()[:5],
		} {
			_, err := tryRender(t, string(src), ms, everyday)
			var lost *LostText
			switch {
			case errors.As(err, &lost):
				t.Errorf("%s, %s: %v", filepath.Base(file), name, err)
			case err != nil:
				t.Logf("%s, %s: %v", filepath.Base(file), name, err)
			}
		}
	}
}

// TestSearchingForTextsIsLinear: what is claimed is not looked through again, also where one text stands many times and
// none follows the one before.
func TestSearchingForTextsIsLinear(t *testing.T) {
	const n = 20000
	p := newPage(strings.Repeat("ab", n))
	for i := range n {
		if !p.find([]string{"b"}) || i%3 == 0 && !p.find([]string{"a"}) {
			t.Fatalf("text %d is not found", i)
		}
	}
	if p.find([]string{"b"}) {
		t.Error("one that is claimed is found again")
	}
	if p.spent > 8*n || len(p.claimed) > 2*n {
		t.Errorf("%d bytes were looked through, of %d", p.spent, 2*n)
	}
	p = newPage(strings.Repeat("f", n))
	for range n {
		if !p.has("f") {
			t.Fatal("a name is not found")
		}
	}
	if p.spent > 2*n {
		t.Errorf("%d bytes were looked through for names", p.spent)
	}
}

// TestScatteredTextsAreRefused: a search that would take long is given up, and says so.
func TestScatteredTextsAreRefused(t *testing.T) {
	p := newPage(strings.Repeat("x", 4<<20))
	for i := range 1 + maxSearch>>22 {
		if p.find([]string{strings.Repeat("y", i+1)}) {
			t.Fatal("found")
		}
	}
	p.find([]string{"z"})
	if err := lost("user", "y", p); !errors.Is(err, ErrTooScattered) {
		t.Error(err)
	}
	if before := p.spent; p.find([]string{"yz"}) || p.spent != before {
		t.Error("it goes on")
	}
}
