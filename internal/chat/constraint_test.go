package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

const personSchema = `{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
	"tags": {"type": "array", "items": {"enum": ["a", "bc"]}, "maxItems": 3}, "parent": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
	"required": ["name", "age"], "additionalProperties": false}`

func schemaFormat(text string) chat.Format {
	return chat.Format{Kind: chat.SchemaFormat, Schema: json.RawMessage(text), Field: "format"}
}

func validator(t *testing.T, text string) func(answer string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(answer string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
}

// free is a service with real weights that mean nothing: its model draws from all that is allowed.
func free(t *testing.T) *chat.Service {
	t.Helper()
	path := filepath.Join(t.TempDir(), "free.gguf")
	if err := (servertest.Checkpoint{Context: 2048}).Write(path); err != nil {
		t.Fatal(err)
	}
	s, err := chat.OpenSingle(
		t.Context(),
		chat.Spec{Name: "scripted", Path: path},
		model.Options{Seqs: 4, Context: 2048},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Pool().Close(t.Context()) })
	return s
}

// wants is a script that goes on with a text from wherever the answer stands.
func wants(text string) servertest.Script {
	return func(prompt string) string {
		_, said, _ := strings.Cut(prompt, "<|im_start|>assistant\n")
		if rest, ok := strings.CutPrefix(text, said); ok {
			return rest
		}
		return text
	}
}

func answerTo(
	t *testing.T,
	s *chat.Service,
	r *chat.Request,
) (text, reasoning string, calls []chat.Call, finish []chat.Delta, done chat.Delta) {
	t.Helper()
	r.Model = "scripted"
	st, err := s.Run(t.Context(), r)
	if err != nil {
		t.Error(err)
		return "", "", nil, []chat.Delta{{}}, chat.Delta{}
	}
	return collect(t, st)
}

// TestAnswersFitTheirSchema: whatever the model would write, a whole answer is valid, and one that was cut is said to
// be.
func TestAnswersFitTheirSchema(t *testing.T) {
	w, valid := free(t), validator(t, personSchema)
	g, err := grammar.JSONSchema([]byte(personSchema), grammar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	begin := g.Matcher()
	for seed := range uint64(20) {
		text, _, _, finish, done := answerTo(t, w, &chat.Request{
			Messages: user("x"), Format: schemaFormat(personSchema), MaxTokens: 400,
			Sampling: chat.Sampling{Temperature: new(float32(5)), TopK: new(0), Seed: new(seed)},
		})
		err := valid(text)
		if err != nil { // a cut one is the begin of a valid one
			if _, ok, _ := begin.Accept([]byte(text)); !ok {
				t.Errorf("seed %d: %q begins no valid answer", seed, text)
			}
		}
		if done.Err != nil || (finish[0].Reason == chat.Stop) != (err == nil) ||
			finish[0].Reason != chat.Stop && finish[0].Reason != chat.Length {
			t.Errorf("seed %d: %v %v: %q: %v", seed, finish[0].Reason, done.Err, text, err)
		}
	}
}

// TestFormatsOfAllKinds holds answers to each kind of format, and says what is refused before a token is made.
func TestFormatsOfAllKinds(t *testing.T) {
	w := free(t)
	any := chat.Sampling{Temperature: new(float32(5)), TopK: new(0), Seed: new(uint64(4))}
	for _, c := range []struct {
		name   string
		format chat.Format
		want   string // a regular expression
	}{
		{"choices", chat.Format{Kind: chat.ChoiceFormat, Choices: []string{"yes", "no", "not at all"}}, `^(yes|no|not at all)$`},
		{"a regular expression", chat.Format{Kind: chat.RegexFormat, Text: `[0-9]{4}-[0-9]{2}`}, `^[0-9]{4}-[0-9]{2}$`},
		{"a grammar", chat.Format{Kind: chat.GrammarFormat, Text: `root ::= "<" [a-c]{2,3} ">" root?`}, `^(<[a-c]{2,3}>)+$`},
		{"an object", chat.Format{Kind: chat.JSONFormat}, `(?s)^\{.*\}$`},
	} {
		text, _, _, finish, done := answerTo(
			t,
			w,
			&chat.Request{Messages: user("x"), Format: c.format, Sampling: any, MaxTokens: 3000},
		)
		if !regexp.MustCompile(c.want).MatchString(text) && finish[0].Reason == chat.Stop || done.Err != nil {
			t.Errorf("%s: %q %v", c.name, text, done.Err)
		}
	}
	for _, c := range []struct {
		name, schema, want string
		kind               chat.Kind
	}{
		{"a keyword that cannot be enforced", `{"type": "object", "properties": {"a": {"type": "string", "contentMediaType": "image/png", "$dynamicRef": "#x"}}}`, "$dynamicRef", chat.Unsupported},
		{"no schema", `{"type": 7}`, "type", chat.Invalid},
		{"no JSON", `{`, "", chat.Invalid},
	} {
		_, err := w.Run(
			t.Context(),
			&chat.Request{Model: "scripted", Messages: user("x"), Format: schemaFormat(c.schema)},
		)
		var e *chat.Error
		if !errors.As(err, &e) || e.Kind != c.kind || e.Field != "format" || !strings.Contains(e.Msg, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestConstraintsAreARowsOwn: eight answers at once, of which half are held, are those that come alone.
func TestConstraintsAreARowsOwn(t *testing.T) {
	w := free(t)
	ask := func(seed uint64) *chat.Request {
		r := &chat.Request{
			Model: "scripted", Messages: user(fmt.Sprint("question ", seed/4)), MaxTokens: 60,
			Sampling: chat.Sampling{
				Temperature:      new(float32(5)),
				TopK:             new(0),
				Seed:             new(seed),
				FrequencyPenalty: new(float32(0.3)),
			},
		}
		if seed%2 == 0 {
			r.Format = schemaFormat(personSchema)
		}
		r.LogProbs = seed%4 == 2 // forced tokens one by one, or together
		return r
	}
	answer := func(r *chat.Request) string {
		text, _, _, _, done := answerTo(t, w, r)
		if done.Err != nil {
			t.Error(done.Err)
		}
		return text
	}
	var alone [8]string
	for i := range alone {
		alone[i] = answer(ask(uint64(i)))
	}
	var wg sync.WaitGroup
	for i := range alone {
		wg.Go(func() {
			if got := answer(ask(uint64(i))); got != alone[i] {
				t.Errorf("answer %d: %q, alone %q", i, got, alone[i])
			}
			r := ask(uint64(i))
			r.LogProbs = !r.LogProbs
			if got := answer(r); got != alone[i] {
				t.Errorf("answer %d, log probabilities the other way: %q, alone %q", i, got, alone[i])
			}
		})
	}
	wg.Wait()
}

// TestReasoningIsFree: the model may reason first, and the answer behind is held. A budget that ends the reasoning does
// not end that.
func TestReasoningIsFree(t *testing.T) {
	w := servertest.New(
		t,
		servertest.Options{Script: wants("<think>\nno {JSON} here\n</think>\n\n" + `{"name": "Ann", "age": 7}`)},
	)
	text, reasoning, _, finish, done := run(
		t,
		w,
		&chat.Request{
			Messages: user("x"),
			Format:   schemaFormat(personSchema),
			Sampling: chat.Sampling{Temperature: new(float32(0))},
		},
	)
	if text != `{"name": "Ann", "age": 7}` || strings.TrimSpace(reasoning) != "no {JSON} here" ||
		finish[0].Reason != chat.Stop ||
		done.Err != nil {
		t.Errorf("%q after %q, %v %v", text, reasoning, finish[0].Reason, done.Err)
	}
	text, reasoning, _, _, done = run(
		t,
		w,
		&chat.Request{Messages: user("x"), Format: schemaFormat(personSchema), ThinkingBudget: 4, MaxTokens: 300},
	)
	if err := validator(t, personSchema)(text); err != nil || reasoning == "" || done.Err != nil {
		t.Errorf("%q after %q: %v %v", text, reasoning, err, done.Err)
	}
	text, reasoning, _, _, _ = run(
		t,
		w,
		&chat.Request{Messages: user("x"), Format: schemaFormat(personSchema), Thinking: new(false), MaxTokens: 300},
	)
	if err := validator(t, personSchema)(text); err != nil || reasoning != "" {
		t.Errorf("without reasoning: %q after %q: %v", text, reasoning, err)
	}
}

// TestCallOrFormat: where tools are offered, the answer is a call or fits the format.
func TestCallOrFormat(t *testing.T) {
	w := servertest.New(
		t,
		servertest.Options{Script: func(string) string { return servertest.ToolCall("add", `{"a": 1}`) }},
	)
	r := &chat.Request{
		Messages: user("x"),
		Tools:    []chat.Tool{{Name: "add"}},
		Format:   schemaFormat(personSchema),
		Sampling: chat.Sampling{Temperature: new(float32(0))},
	}
	_, _, calls, _, done := run(t, w, r)
	if len(calls) != 1 || calls[0].Name != "add" || done.Err != nil {
		t.Errorf("%v %v", calls, done.Err)
	}
	w.Backend.SetScript(wants(`{"name": "Ann", "age": 3}`))
	r.MaxTokens = 300
	r.Messages = user("y") // behind the first prompt the backend remembers what it wrote
	text, _, calls, _, _ := run(t, w, r)
	if err := validator(t, personSchema)(text); err != nil || len(calls) > 0 {
		t.Errorf("%q %v: %v", text, calls, err)
	}
}

// TestDemandedCallBesideAFormat: where a call is demanded beside a format, the answer is calls, and no free text follows.
func TestDemandedCallBesideAFormat(t *testing.T) {
	add := servertest.ToolCall("add", `{"a": 1}`)
	for _, choice := range []chat.ToolChoice{{Mode: chat.ToolNamed, Name: "add"}, {Mode: chat.ToolsRequired}} {
		for _, c := range []struct {
			behind string
			calls  int
		}{{"", 1}, {"\nHere you are!", 1}, {"\n" + add, 2}, {"\n" + add + "\n\nIt is <b>3", 2}, {"\n<tool_call>\nno", 1}} {
			w := servertest.New(t, servertest.Options{Script: func(p string) string {
				_, said, _ := strings.Cut(p, "<|im_start|>assistant\n")
				return strings.TrimPrefix(add, said) + c.behind
			}})
			text, _, calls, finish, done := run(t, w, &chat.Request{
				Messages: user("x"), Tools: []chat.Tool{{Name: "add"}}, Choice: choice, Format: schemaFormat(personSchema),
			})
			if text != "" || len(calls) != c.calls || finish[0].Reason != chat.ToolCalls || done.Err != nil {
				t.Errorf("%v, %q behind the call: text %q, calls %v, %v", choice, c.behind, text, calls, finish)
			}
		}
	}
}

// TestHeldBegin: an answer whose begin the request has goes on from there, or is refused where it cannot.
func TestHeldBegin(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: wants(`{"name": "An", "age": 3}`)})
	r := &chat.Request{
		Messages: append(
			user("x"),
			chat.Text(chat.Assistant, `{"name": "An`),
		), Continue: true, Format: schemaFormat(personSchema),
		Sampling: chat.Sampling{Temperature: new(float32(0))},
	}
	if text, _, _, _, done := run(t, w, r); text != `", "age": 3}` || done.Err != nil {
		t.Errorf("%q %v", text, done.Err)
	}
	r.Messages[1] = chat.Text(chat.Assistant, "Well")
	var e *chat.Error
	if _, err := w.Chat.Run(t.Context(), r); !errors.As(err, &e) || e.Kind != chat.Invalid {
		t.Errorf("%v", err)
	}
}
