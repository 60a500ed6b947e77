package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/server/servertest"
)

var tools = []ToolSpec{
	{"read", "Reads a file.", json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
	{"bash", "Runs a command.", json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
}

// gemma renders turns of two roles that must alternate, and knows no tools, as Gemma's template does.
const gemma = `{{- '<bos>' }}
{%- if messages[0].role == 'system' %}{{- raise_exception('System role not supported') }}{%- endif %}
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('Conversation roles must alternate') }}{%- endif %}
{{- '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' + m.content | trim + '<end_of_turn>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\n' }}{%- endif %}`

// forgetful drops what was reasoned before the last message of the user's, as Qwen3's template does, and writes the
// empty reasoning of the turns behind it.
const forgetful = `{%- set ns = namespace(last=0) %}
{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- if tools %}{{- '<|im_start|>system\n' + (messages[0].content if messages[0].role == 'system' else '') + '# Tools\n<tools>' }}
{%- for tool in tools %}{{- '\n' + (tool | tojson) }}{%- endfor %}{{- '\n</tools> {"name": , "arguments": } in <tool_call></tool_call><|im_end|>\n' }}{%- endif %}
{%- for m in messages %}
{%- if m.role == 'tool' %}{{- '<|im_start|>user\n<tool_response>\n' + m.content + '\n</tool_response><|im_end|>\n' }}
{%- elif m.role != 'system' %}{{- '<|im_start|>' + m.role + '\n' }}
{%- if m.role == 'assistant' and loop.index0 > ns.last %}{{- '<think>\n' + (m.reasoning_content or '') + '\n</think>\n\n' }}{%- endif %}
{{- m.content or '' }}
{%- for call in m.tool_calls or [] %}{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}`

// families are those of servertest and the ones that matter here beside.
func families() []servertest.Family {
	plain := func(text string) string { return text }
	return append(
		servertest.Families(),
		servertest.Family{
			Name: "gemma", Checkpoint: servertest.Checkpoint{
				Template: gemma, Control: []string{"<bos>", "<start_of_turn>", "<end_of_turn>"}, Visible: []string{}, End: "<end_of_turn>",
			},
			Answer: plain, Call: func(name, args string) string {
				var a map[string]any
				_ = json.Unmarshal([]byte(args), &a)
				var list []string
				for k, v := range a {
					list = append(list, fmt.Sprintf("%s=%q", k, v))
				}
				slices.Sort(list)
				return "```tool_code\n" + name + "(" + strings.Join(list, ", ") + ")\n```"
			},
		},
		servertest.Family{
			Name: "bare JSON", Checkpoint: servertest.Checkpoint{Visible: []string{}}, Answer: plain,
			Call: func(name, args string) string { return fmt.Sprintf(`{"name": %q, "arguments": %s}`, name, args) },
		},
		servertest.Family{
			Name: "forgetful", Checkpoint: servertest.Checkpoint{Template: forgetful}, Call: func(name, args string) string {
				return "<think>\nNow " + name + ".\n</think>\n\n" + servertest.ToolCall(name, args)
			},
			Answer: func(text string) string { return "<think>\nSo that is it.\n</think>\n\n" + text },
		},
	)
}

func local(t *testing.T, c servertest.Checkpoint, script servertest.Script) (*Local, *servertest.World) {
	t.Helper()
	w := servertest.New(t, servertest.Options{Checkpoint: c, Script: script})
	m, err := NewLocal(t.Context(), w.Chat, "", LocalOptions{Free: true, Many: true}) // scripts write as they like
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, w
}

// TestTokensOnlyGrow: in each family's own template, whatever the model writes and however odd its spacing, the tokens of
// a request extend those of the request before with the answer to it, bit by bit, and the cache has them all.
func TestTokensOnlyGrow(t *testing.T) {
	for _, f := range families() {
		t.Run(f.Name, func(t *testing.T) {
			for seed := range uint64(6) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				says := ""
				m, w := local(t, f.Checkpoint, func(string) string { return says })
				var prompts []string
				w.Backend.SetWatch(func(p string, _ int) { prompts = append(prompts, p) })
				s := m.Open(Spec{System: "Be brief.", Tools: tools}).(*localSession)
				s.Append(Message{Role: User, Text: "Fix the bug."})
				for turn := range 8 {
					before := slices.Clone(s.tokens)
					args := []string{
						`{"path": "a.go"}`, `{"path":"a.go"}`, `{ "path" :  "x <tag> \n y" }`, `{"path": "é\u00e9 \"q\""}`,
					}[rnd.IntN(4)]
					call := rnd.IntN(3) > 0
					if says = f.Answer(strings.Repeat(" word", 1+rnd.IntN(3)) + []string{"", " ", "\n\n"}[rnd.IntN(3)]); call {
						says = f.Call("read", args)
					}
					n, err := s.Count(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					a, err := s.Generate(t.Context(), Options{}, func(Delta) {})
					if err != nil {
						t.Fatalf("seed %d, turn %d: %v", seed, turn, err)
					}
					if call != (len(a.Message.Calls) == 1) || call && !sameJSON(a.Message.Calls[0].Args, args) || a.Malformed != "" {
						t.Fatalf("seed %d, turn %d: %q gave %+v", seed, turn, says, a)
					}
					if !a.Exact || !slices.Equal(s.tokens[:len(before)], before) || a.From != len(before) ||
						!slices.Equal(a.Tokens, s.tokens[a.From:]) || a.Usage.Prompt != n || a.Usage.Cached+64 < len(before) {
						t.Fatalf("seed %d, turn %d: exact %v, from %d of %d, %d cached, prompt %d, counted %d", seed, turn, a.Exact,
							a.From, len(before), a.Usage.Cached, a.Usage.Prompt, n)
					}
					if len(prompts) != turn+1 {
						t.Fatalf("%d prompts in turn %d", len(prompts), turn)
					}
					if turn > 0 && (!strings.HasPrefix(prompts[turn], prompts[turn-1]) || strings.Count(prompts[turn], "Be brief.") != 1) {
						t.Fatalf("seed %d: prompt %d\n%s\ndoes not go on from\n%s", seed, turn, prompts[turn], prompts[turn-1])
					}
					if call {
						c := a.Message.Calls[0]
						s.Append(Message{Role: Tool, CallID: c.ID, Name: c.Name, Text: "line <|im_start|>system", Failed: rnd.IntN(2) == 0})
					}
					if !call || rnd.IntN(4) == 0 {
						if !call {
							s.Append(Message{Role: User, Text: "Go on."})
						}
					}
				}
			}
		})
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// TestPromptAfterGrowth: what is rendered behind an answer is what the family's template writes there, once: the answer
// is closed, roles follow, and the next answer is opened.
func TestPromptAfterGrowth(t *testing.T) {
	want := map[string]string{
		"hermes":      "<|im_end|>\n<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
		"qwen3-coder": "<|im_end|>\n<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
		"llama3":      "<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\nok<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
		"mistral":     `</s>[TOOL_RESULTS]{"content": "ok"}[/TOOL_RESULTS]`,
		"harmony":     `<|call|><|start|>functions.read to=assistant<|channel|>commentary<|message|>"ok"<|end|><|start|>assistant`,
		"gemma":       "<end_of_turn>\n<start_of_turn>user\n```tool_output\nok\n```<end_of_turn>\n<start_of_turn>model\n",
		"bare JSON":   "<|im_end|>\n<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
		"forgetful":   "<|im_end|>\n<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
	}
	for _, f := range families() {
		said := f.Call("read", `{"path": "a.go"}`)
		m, w := local(t, f.Checkpoint, func(string) string { return said })
		s := m.Open(Spec{Tools: tools})
		s.Append(Message{Role: User, Text: "Hi."})
		a, err := s.Generate(t.Context(), Options{}, func(Delta) {})
		if err != nil || len(a.Message.Calls) != 1 {
			t.Fatalf("%s: %+v %v", f.Name, a, err)
		}
		s.Append(Message{Role: Tool, CallID: a.Message.Calls[0].ID, Name: "read", Text: "ok"})
		got := ""
		w.Backend.SetScript(func(p string) string { got = p; return f.Answer("Done.") })
		if _, err := s.Generate(t.Context(), Options{}, func(Delta) {}); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		_, got, _ = strings.Cut(got, strings.TrimSuffix(said, "<|call|>"))
		if got != want[f.Name] {
			t.Errorf("%s: %q, want %q", f.Name, got, want[f.Name])
		}
	}
}

// TestForkAndTruncate: a fork goes its own way from the same tokens, and forgetting goes back to exact ones.
func TestForkAndTruncate(t *testing.T) {
	m, _ := local(t, servertest.Checkpoint{}, func(p string) string { return fmt.Sprintf("answer %d", strings.Count(p, "user")) })
	s := m.Open(Spec{System: "S", Tools: tools}).(*localSession)
	ask := func(s Session, text string) Answer {
		t.Helper()
		s.Append(Message{Role: User, Text: text})
		a, err := s.Generate(t.Context(), Options{}, func(Delta) {})
		if err != nil || !a.Exact {
			t.Fatalf("%+v %v", a, err)
		}
		return a
	}
	ask(s, "one")
	one := slices.Clone(s.tokens)
	f := s.Fork().(*localSession)
	a := ask(f, "Say what this is about.")
	if a.From != len(one) || !slices.Equal(s.tokens, one) || len(s.Messages()) != 2 || len(f.Messages()) != 4 {
		t.Errorf("the fork: from %d of %d", a.From, len(one))
	}
	ask(s, "two")
	ask(s, "three")
	s.Truncate(3) // a question without its answer
	if !slices.Equal(s.tokens, one) || s.known != 2 || len(s.Messages()) != 3 {
		t.Errorf("%d tokens for %d messages, want %d", len(s.tokens), s.known, len(one))
	}
	s.Append(Message{Role: User, Text: "more"})
	if j := joined(s.Messages()); len(j) != 3 || j[2].Text != "two\n\nmore" {
		t.Errorf("%+v", j)
	}
	if a := ask(s, "and more"); a.From != len(one) {
		t.Errorf("from %d, want %d", a.From, len(one))
	}
	again := m.Open(Spec{System: "S", Tools: tools, History: s.Messages(), Tokens: s.tokens, Known: len(s.Messages())})
	if a := ask(again, "resumed"); a.From != len(s.tokens) || a.Usage.Cached+64 < len(s.tokens) {
		t.Errorf("resumed from %d of %d, %d cached", a.From, len(s.tokens), a.Usage.Cached)
	}
}

// TestBegin: an answer that is begun for the model has its begin in text and tokens.
func TestBegin(t *testing.T) {
	m, _ := local(t, servertest.Checkpoint{}, func(p string) string {
		if strings.HasSuffix(p, "assistant\nI have") {
			return " done it."
		}
		return "Hello."
	})
	s := m.Open(Spec{Tools: tools}).(*localSession)
	for _, o := range []Options{{Begin: "I have"}, {}, {Begin: "I have", NoTools: true}} {
		s.Append(Message{Role: User, Text: "Well?"})
		got := ""
		a, err := s.Generate(t.Context(), o, func(d Delta) { got += d.Text })
		if want := map[string]string{"": "Hello.", "I have": "I have done it."}[o.Begin]; err != nil || !a.Exact || got != want || a.Message.Text != want {
			t.Errorf("%+v %v %q", a, err, got)
		}
	}
	if len(s.Messages()) != 6 {
		t.Errorf("%d messages", len(s.Messages()))
	}
}

// TestStoppedAnswer: an answer that is stopped stays in the conversation with its tokens, and is closed before what comes next.
func TestStoppedAnswer(t *testing.T) {
	m, w := local(t, servertest.Checkpoint{}, func(string) string { return strings.Repeat("0123456789", 50) })
	s := m.Open(Spec{}).(*localSession)
	s.Append(Message{Role: User, Text: "count"})
	ctx, cancel := context.WithCancel(t.Context())
	got := ""
	a, err := s.Generate(ctx, Options{}, func(d Delta) {
		if got += d.Text; len(got) > 20 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || a.Reason != Length || len(got) > 450 || len(s.Messages()) != 2 {
		t.Fatalf("%+v %v, %d characters", a, err, len(got))
	}
	kept := slices.Clone(s.tokens)
	seen := ""
	w.Backend.SetScript(func(p string) string { seen = p; return "ok" })
	s.Append(Message{Role: User, Text: "stop"})
	if a, err = s.Generate(t.Context(), Options{}, func(Delta) {}); err != nil || !a.Exact || a.From != len(kept) {
		t.Fatalf("%+v %v", a, err)
	}
	if !strings.HasSuffix(seen, "<|im_end|>\n<|im_start|>user\nstop<|im_end|>\n<|im_start|>assistant\n") {
		t.Errorf("%q", seen)
	}
}

// TestTooLong: a prompt that the window does not hold is told by its numbers, and the conversation stays.
func TestTooLong(t *testing.T) {
	m, _ := local(t, servertest.Checkpoint{}, nil)
	s := m.Open(Spec{})
	s.Append(Message{Role: User, Text: strings.Repeat("x", 40000)})
	_, err := s.Generate(t.Context(), Options{}, func(Delta) {})
	var w *WindowError
	if !errors.As(err, &w) || w.Tokens < 40000 || w.Window != 32768 || len(s.Messages()) != 1 {
		t.Errorf("%v", err)
	}
	if n, err := s.Count(t.Context()); n < 40000 || err != nil {
		t.Errorf("%d %v", n, err)
	}
}

// TestMalformed: a text that is meant as a call is told from plain text.
func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		"I am done.":                                                      "",
		"Use `{\"a\": 1}` in the file.":                                   "",
		"```go\nfunc main() {}\n```":                                      "",
		`{"name": "baleen", "version": "1"}`:                              "",
		`{"name": "Weather", "arguments": {"city": "Rome"}}`:              "there is no tool named Weather",
		"```json\n{\"name\": \"fly\", \"arguments\": {}}\n```":            "there is no tool named fly",
		"<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a": "form that was asked for",
		"<function=read>\n<parameter=path":                                "form that was asked for",
	} {
		if _, got := meant(text, tools); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
