package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/server/servertest"
)

// A body is something that the server answered, with the name of the vendor's type that it must have.
type body struct {
	Type string         `json:"type"`
	From string         `json:"from"` // where it was answered, for messages
	Body map[string]any `json:"body"`
}

// published are the types of the vendors' SDKs that say what each route answers, whole and piece by piece: in
// TypeScript, which tells keys that may be absent from those that may be null, or in Python where it begins with "py:".
var published = []struct {
	path          *regexp.Regexp
	header        bool // anthropic's answer to a path of two dialects
	whole, pieces string
}{
	{
		regexp.MustCompile(`^/v1/chat/completions$`),
		false,
		"OpenAI.Chat.Completions.ChatCompletion",
		"OpenAI.Chat.Completions.ChatCompletionChunk",
	},
	{regexp.MustCompile(`^/v1/completions$`), false, "Completion", "CompletionPiece"},
	{regexp.MustCompile(`^/v1/responses$`), false, "WithoutOutputText", "ResponseEvent"},
	{regexp.MustCompile(`^/v1/responses/input_tokens$`), false, "OpenAI.Responses.InputTokenCountResponse", ""},
	{regexp.MustCompile(`^/v1/responses/[^/]+/input_items$`), false, "OpenAI.Responses.ResponseItemList", ""},
	{regexp.MustCompile(`^/v1/responses/[^/]+$`), false, "WithoutOutputText", ""},
	{regexp.MustCompile(`^/v1/messages$`), false, "Message", "MessageEvent"},
	{regexp.MustCompile(`^/v1/messages/count_tokens$`), false, "Anthropic.MessageTokensCount", ""},
	{regexp.MustCompile(`^/v1/models$`), true, "AnthropicModels", ""},
	{regexp.MustCompile(`^/v1/models/`), true, "Anthropic.ModelInfo", ""},
	{regexp.MustCompile(`^/v1/models$`), false, "OpenAIModels", ""},
	{regexp.MustCompile(`^/v1/models/`), false, "OpenAI.Models.Model", ""},
	{regexp.MustCompile(`^/api/chat$`), false, "py:ChatResponse", "py:ChatResponse"},
	{regexp.MustCompile(`^/api/generate$`), false, "py:GenerateResponse", "py:GenerateResponse"},
	{regexp.MustCompile(`^/api/tags$`), false, "py:ListResponse", ""},
	{regexp.MustCompile(`^/api/ps$`), false, "py:ProcessResponse", ""},
	{regexp.MustCompile(`^/api/show$`), false, "py:ShowResponse", ""},
	{regexp.MustCompile(`^/api/(pull|create)$`), false, "py:ProgressResponse", "py:ProgressResponse"},
}

// extensions are keys of answers that no vendor has: they are documented, and clients skip them.
var extensions = []string{
	"reasoning_content",        // of chat completions, as other servers of open models have it
	"prompt_eval_cached_count", // of /api/chat and /api/generate, as Ollama has it from 0.33 on
	"store",                    // of responses, as OpenAI's documentation shows it and its types do not
	"prefill",                  // where the request asked for reports
	"_debug_info",              // where the request asked for the prompt
}

func without(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, in := range x {
			if slices.Contains(extensions, k) {
				delete(x, k)
				continue
			}
			x[k] = without(in)
		}
	case []any:
		for i := range x {
			x[i] = without(x[i])
		}
	}
	return v
}

// shape is what a body is like without its texts and numbers.
func shape(v any) string {
	switch x := v.(type) {
	case map[string]any:
		var keys []string
		for k, in := range x {
			s := shape(in)
			if word, ok := in.(string); ok && slices.Contains([]string{"type", "object", "role", "status", "finish_reason", "stop_reason", "done_reason"}, k) {
				s = word
			}
			keys = append(keys, k+":"+s)
		}
		slices.Sort(keys)
		return "{" + strings.Join(keys, ",") + "}"
	case []any:
		set := map[string]bool{}
		for _, in := range x {
			set[shape(in)] = true
		}
		var list []string
		for s := range set {
			list = append(list, s)
		}
		slices.Sort(list)
		return "[" + strings.Join(list, ",") + "]"
	}
	return fmt.Sprintf("%T", v)
}

// A collection holds one body of each shape.
type collection struct {
	t    *testing.T
	seen map[string]bool
	list []body
}

func (c *collection) add(typ, from, text string) {
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		c.t.Errorf("%s: %v: %.200s", from, err, text)
		return
	}
	switch {
	case m["error"] != nil && m["id"] == nil: // of all dialects: the tests of errors have them
		return
	case m["type"] == "ping": // no type of the SDK has it, and both drop it
		return
	}
	m, _ = without(m).(map[string]any)
	if key := typ + shape(m); !c.seen[key] {
		c.seen[key] = true
		c.list = append(c.list, body{typ, from, m})
	}
}

// answer adds an answer of a path: a document, server-sent events or lines.
func (c *collection) answer(from, path, media, text string, anthropic bool) {
	path, _, _ = strings.Cut(path, "?")
	if strings.TrimSpace(text) == "" { // of HEAD
		return
	}
	for _, p := range published {
		if !p.path.MatchString(path) || p.header && !anthropic {
			continue
		}
		switch {
		case strings.HasPrefix(media, "text/event-stream"):
			for _, e := range (servertest.Reply{Body: text}).Events(c.t) {
				if e.Data != "[DONE]" {
					c.add(p.pieces, from, e.Data)
				}
			}
		case strings.HasPrefix(media, "application/x-ndjson"):
			for line := range strings.Lines(text) {
				c.add(p.pieces, from, line)
			}
		default:
			c.add(p.whole, from, text)
		}
		return
	}
}

// goldens adds the answers in the dialects' golden files, which their own tests hold.
func (c *collection) goldens() {
	n := len(c.list)
	for _, pattern := range []string{"openai/testdata/golden/*.txt", "ollama/testdata/*.txt", "anthropic/testdata/*.txt"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			c.t.Fatal(pattern, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				c.t.Fatal(err)
			}
			c.golden(f, string(b))
		}
	}
	if len(c.list)-n < 60 {
		c.t.Errorf("only %d bodies in the golden files: are they read?", len(c.list)-n)
	}
}

var (
	sections = regexp.MustCompile(`(?m)^-- ([a-z]+) --\n`)
	answered = regexp.MustCompile(`(?s)^200 ?([^\n]*)\n+(.*)$`)
)

func (c *collection) golden(file, text string) {
	if strings.HasPrefix(file, "openai") {
		request, rest, _ := strings.Cut(text, "\n\n")
		if m := answered.FindStringSubmatch(rest); m != nil {
			c.answer(file, strings.Fields(request)[1], m[1], m[2], false)
		}
		return
	}
	marks := sections.FindAllStringSubmatchIndex(text, -1)
	path := "/v1/messages"
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		name, section := text[m[2]:m[3]], text[m[1]:end]
		ollama := strings.HasPrefix(file, "ollama")
		switch {
		case name == "request" && ollama:
			path = strings.Fields(section)[1]
		case name == "answer" && ollama:
			section = strings.ReplaceAll(section, `"TIME"`, `"2026-01-02T03:04:05Z"`)
			if m := answered.FindStringSubmatch(section); m != nil {
				c.answer(file, path, m[1], m[2], false)
			}
		case name == "answer":
			if m := answered.FindStringSubmatch(section); m != nil {
				c.answer(file, path, "application/json", m[2], true)
			}
		case name == "stream":
			for line := range strings.Lines(section) {
				if strings.HasPrefix(line, "{") { // deltas are joined there
					c.add("MessageEvent", file, line)
				}
			}
		}
	}
}

const (
	chatTools     = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
	responseTools = `"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`
	messageTools  = `"tools":[{"name":"get_weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}]`
)

// asked are requests for all kinds of answers, each as a document and as a stream.
var asked = []struct{ path, body string }{
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}]}`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"n":2,"logprobs":true,"top_logprobs":2}`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"THINK"}]}`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"TWO CALLS"}],` + chatTools + `}`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"COUNT"}],"max_tokens":3}`},
	{"/v1/completions", `{"prompt":["hi","you"],"max_tokens":3,"logprobs":2,"echo":true}`},
	{"/v1/completions", `{"prompt":"hi"}`},
	{"/v1/responses", `{"input":"hi","instructions":"Be kind.","metadata":{"a":"b"},"max_output_tokens":900}`},
	{
		"/v1/responses",
		`{"input":"THINK","include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"}}`,
	},
	{"/v1/responses", `{"input":"hi","top_logprobs":1,"include":["message.output_text.logprobs"]}`},
	{"/v1/responses", `{"input":"TWO CALLS","tool_choice":"required",` + responseTools + `}`},
	{"/v1/responses", `{"input":"WEATHER","tools":[{"type":"custom","name":"get_weather"}]}`},
	{
		"/v1/responses",
		`{"input":"NAMESPACE","tools":[{"type":"namespace","name":"get","description":"g","tools":[{"type":"function","name":"weather","strict":false,"parameters":{"type":"object"}}]}]}`,
	},
	{"/v1/responses", `{"input":"COUNT","max_output_tokens":3}`},
	{"/v1/responses/input_tokens", `{"input":"hi"}`},
	{"/v1/messages", `{"max_tokens":900,"messages":[{"role":"user","content":"hi"}]}`},
	{
		"/v1/messages",
		`{"max_tokens":900,"messages":[{"role":"user","content":"THINK"}],"thinking":{"type":"adaptive","display":"omitted"}}`,
	},
	{"/v1/messages", `{"max_tokens":900,"messages":[{"role":"user","content":"TWO CALLS"}],` + messageTools + `}`},
	{
		"/v1/messages",
		`{"max_tokens":3,"messages":[{"role":"user","content":[{"type":"text","text":"COUNT","cache_control":{"type":"ephemeral"}}]}]}`,
	},
	{"/v1/messages", `{"max_tokens":900,"messages":[{"role":"user","content":"COUNT"}],"stop_sequences":["3"]}`},
	{"/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"hi"}]}`},
	{"/api/chat", `{"messages":[{"role":"user","content":"THINK"}],"logprobs":true,"top_logprobs":2}`},
	{"/api/chat", `{"messages":[{"role":"user","content":"TWO CALLS"}],` + chatTools + `}`},
	{"/api/generate", `{"prompt":"THINK"}`},
	{"/api/generate", `{"prompt":"COUNT","options":{"num_predict":3}}`},
	{"/api/show", `{"verbose":true}`},
}

// live asks a server.
func (c *collection) live() {
	w := all(c.t, servertest.Options{})
	post := func(path, members string) servertest.Reply {
		r := w.Post(c.t, path, `{"model":"scripted",`+members[1:])
		if r.Status != 200 {
			c.t.Fatalf("%s %s: %d %s", path, members, r.Status, r.Body)
		}
		c.answer(path+" "+members, path, r.Header.Get("Content-Type"), r.Body, false)
		return r
	}
	for _, a := range asked {
		if strings.HasSuffix(a.path, "tokens") || strings.HasSuffix(a.path, "show") {
			post(a.path, a.body)
			continue
		}
		for _, stream := range []string{"false", "true"} {
			post(a.path, strings.TrimSuffix(a.body, "}")+`,"stream":`+stream+"}")
		}
	}
	kept := post("/v1/responses", `{"input":[{"role":"user","content":"WEATHER"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"x"}],`+responseTools+`}`).JSON(c.t)["id"]
	get := func(path string, anthropic bool) {
		var headers []string
		if anthropic {
			headers = []string{anthropicHdr, "2023-06-01"}
		}
		r := w.Do(c.t, "GET", path, "", headers...)
		if r.Status != 200 {
			c.t.Fatalf("%s: %d %s", path, r.Status, r.Body)
		}
		c.answer(path, path, r.Header.Get("Content-Type"), r.Body, anthropic)
	}
	get(fmt.Sprintf("/v1/responses/%s", kept), false)
	get(fmt.Sprintf("/v1/responses/%s/input_items", kept), false)
	get("/v1/models", false)
	get("/v1/models/scripted", false)
	get("/v1/models", true)
	get("/v1/models/scripted", true)
	get("/api/tags", false)
	get("/api/ps", false)
}

// preamble are the types that the SDKs do not have in so many words: output_text is made by the SDK; the vendor's own
// completions have null for the log probability of the first token, and for the reason in pieces before the last;
// Anthropic leaves out what its types say may be null, and Vercel's SDK wants it so.
const preamble = `import type OpenAI from 'openai';
import type Anthropic from '@anthropic-ai/sdk';
type WithoutOutputText = Omit<OpenAI.Responses.Response, 'output_text'>;
type ResponseEvent = OpenAI.Responses.ResponseStreamEvent extends infer E
  ? E extends { response: OpenAI.Responses.Response } ? Omit<E, 'response'> & { response: WithoutOutputText } : E
  : never;
type Choice = Omit<OpenAI.Completions.CompletionChoice, 'logprobs'> & {
  logprobs: null | { text_offset: number[]; tokens: string[]; token_logprobs: (number | null)[]; top_logprobs: ({ [token: string]: number } | null)[] };
};
type Completion = Omit<OpenAI.Completions.Completion, 'choices'> & { choices: Choice[] };
type CompletionPiece = Omit<OpenAI.Completions.Completion, 'choices'> & {
  choices: (Omit<Choice, 'finish_reason'> & { finish_reason: Choice['finish_reason'] | null })[];
};
type Wire<T> = T extends (infer U)[] ? Wire<U>[] : T extends object
  ? { [K in keyof T as null extends T[K] ? never : K]: Wire<T[K]> } & { [K in keyof T as null extends T[K] ? K : never]?: Wire<T[K]> }
  : T;
type Edited = { context_management?: Anthropic.Beta.Messages.BetaContextManagementResponse };
type Message = Wire<Anthropic.Message> & Edited;
type MessageEvent = Wire<Anthropic.RawMessageStreamEvent> & Edited;
type OpenAIModels = { object: 'list'; data: OpenAI.Models.Model[] };
type AnthropicModels = { data: Anthropic.ModelInfo[]; has_more: boolean; first_id: string | null; last_id: string | null };
`

// TestPublishedSchemas holds every answer against the types that the vendors publish: no key that these do not have,
// none missing, none null that may only be absent. BALEEN_TEST_NODE names a folder whose node_modules have the SDKs and
// TypeScript, BALEEN_TEST_PYTHON a Python that has the package ollama.
func TestPublishedSchemas(t *testing.T) {
	node, python := os.Getenv("BALEEN_TEST_NODE"), os.Getenv("BALEEN_TEST_PYTHON")
	if node == "" || python == "" {
		t.Skip("BALEEN_TEST_NODE and BALEEN_TEST_PYTHON are not set")
	}
	c := &collection{t: t, seen: map[string]bool{}}
	c.goldens()
	c.live()
	t.Run("typescript", func(t *testing.T) { c.typescript(t, node) })
	t.Run("python", func(t *testing.T) { c.python(t, python) })
}

func (c *collection) typescript(t *testing.T, node string) {
	dir, err := os.MkdirTemp(node, "schemas-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var b strings.Builder
	b.WriteString(preamble)
	var lines []body
	first := strings.Count(preamble, "\n") + 1
	for _, x := range c.list {
		if strings.HasPrefix(x.Type, "py:") {
			continue
		}
		text, err := json.Marshal(x.Body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "export const x%d: %s = %s;\n", len(lines), x.Type, text)
		lines = append(lines, x)
	}
	if err := os.WriteFile(filepath.Join(dir, "bodies.ts"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(
		t.Context(),
		filepath.Join(node, "node_modules", ".bin", "tsc"),
		"--noEmit",
		"--strict",
		"--skipLibCheck",
		"--exactOptionalPropertyTypes",
		"--module",
		"nodenext",
		"--target",
		"es2022",
		"--pretty",
		"false",
		"bodies.ts",
	)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		var at, col int
		if n, _ := fmt.Sscanf(line, "bodies.ts(%d,%d)", &at, &col); n == 2 && at >= first {
			x := lines[at-first]
			text, _ := json.Marshal(x.Body)
			t.Errorf("%s: %.1500s\n%s", x.From, text, line)
		} else if strings.TrimSpace(line) != "" {
			t.Log(line)
		}
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d bodies", len(lines))
}

func (c *collection) python(t *testing.T, python string) {
	var list []body
	for _, x := range c.list {
		if name, ok := strings.CutPrefix(x.Type, "py:"); ok {
			list = append(list, body{name, x.From, x.Body})
		}
	}
	in, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/schemas.py")
	cmd.Stdin = strings.NewReader(string(in))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%d bodies", len(list))
}

// TestVercel runs Vercel's AI SDK, which checks every body by its own schemas, against all dialects.
func TestVercel(t *testing.T) {
	if os.Getenv("BALEEN_TEST_NODE") == "" {
		t.Skip("BALEEN_TEST_NODE is not set")
	}
	servertest.Node(t, "testdata/vercel.mjs", all(t, servertest.Options{}).URL)
}
