package server_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/fields"
	"github.com/baleenrun/baleen/internal/server/llamacpp"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// noKeeper is a keeper that nothing gets to: what is refused here is refused before.
type noKeeper struct{ t *testing.T }

func (k noKeeper) fail() error { k.t.Error("a refused request got through"); return nil }

func (k noKeeper) Pull(context.Context, string, func(modeladmin.Progress)) error { return k.fail() }
func (k noKeeper) Copy(context.Context, string, string) error                    { return k.fail() }
func (k noKeeper) Delete(context.Context, string, func()) error                  { return k.fail() }

func (k noKeeper) Create(context.Context, modeladmin.Creation, func(modeladmin.Progress)) error {
	return k.fail()
}
func (k noKeeper) HasBlob(context.Context, string) (bool, error)           { return true, nil }
func (k noKeeper) PutBlob(context.Context, string, int64, io.Reader) error { return k.fail() }
func (k noKeeper) About(context.Context, string) (modeladmin.About, error) {
	return modeladmin.About{}, nil
}

// all is a world with every dialect.
func all(t *testing.T, o servertest.Options) *servertest.World {
	o.Dialects = []func(*server.Env) server.Dialect{
		openai.New,
		anthropic.New,
		ollama.New(noKeeper{t}),
		llamacpp.New(openai.Shapes()),
	}
	if o.Script == nil {
		o.Script = servertest.Demo
	}
	return servertest.New(t, o)
}

// errorShape takes an error of a dialect apart: the field it names and its message. ok is false where it has another
// shape.
func errorShape(dialect, body string) (field, message string, ok bool) {
	switch dialect {
	case "openai":
		var e struct {
			Error *struct {
				Message, Type, Code string
				Param               *string
			}
		}
		if json.Unmarshal([]byte(body), &e) != nil || e.Error == nil || e.Error.Message == "" || e.Error.Type == "" ||
			e.Error.Code == "" {
			return "", "", false
		}
		if e.Error.Param != nil {
			field = *e.Error.Param
		}
		return field, e.Error.Message, true
	case "llamacpp":
		var e struct {
			Error *struct {
				Code          int
				Message, Type string
			}
		}
		if json.Unmarshal([]byte(body), &e) != nil || e.Error == nil || e.Error.Code < 400 || e.Error.Type == "" {
			return "", "", false
		}
		field, _, _ = strings.Cut(e.Error.Message, ": ")
		return field, e.Error.Message, true
	case "anthropic":
		var e struct {
			Type  string
			Error struct{ Type, Message string }
			ID    string `json:"request_id"`
		}
		if json.Unmarshal([]byte(body), &e) != nil || e.Type != "error" || e.Error.Type == "" ||
			e.Error.Message == "" ||
			e.ID == "" {
			return "", "", false
		}
		field, _, _ = strings.Cut(e.Error.Message, ": ")
		return field, e.Error.Message, true
	}
	var e struct{ Error string }
	if json.Unmarshal([]byte(body), &e) != nil || e.Error == "" {
		return "", "", false
	}
	field, _, _ = strings.Cut(e.Error, ": ")
	return field, e.Error, true
}

const (
	askChat      = `{"model":"scripted","messages":[{"role":"user","content":"hi"}]@}`
	askCalls     = `{"model":"scripted","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}@}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`
	askResponse  = `{"model":"scripted","input":"hi"@}`
	askMessage   = `{"model":"scripted","max_tokens":5,"messages":[{"role":"user","content":"hi"}]@}`
	askCount     = `{"model":"scripted","messages":[{"role":"user","content":"hi"}]@}`
	askToolUse   = `{"model":"scripted","max_tokens":5,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}@}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}]}`
	askGenerate  = `{"model":"scripted","prompt":"hi"@}`
	askOllama    = `{"model":"scripted","messages":[{"role":"user","content":"hi"}]@}`
	askCreate    = `{"model":"mine","from":"scripted"@}`
	anthropicHdr = "anthropic-version"
)

// refusals are requests, with @ where a field is put in, by the dialect's table whose fields stand there.
var refusals = map[string]map[string]struct{ path, body, prefix string }{
	"openai": {
		"chat completion request": {"/v1/chat/completions", askChat, ""},
		"message": {
			"/v1/chat/completions",
			`{"model":"scripted","messages":[{"role":"user","content":"hi"@}]}`,
			"messages[0].",
		},
		"tool call": {"/v1/chat/completions", askCalls, "messages[1].tool_calls[0]."},
		"tool": {
			"/v1/chat/completions",
			strings.Replace(askChat, "@", `,"tools":[{"type":"function","function":{"name":"f"}@}]`, 1),
			"tools[0].",
		},
		"response request": {"/v1/responses", askResponse, ""},
		"reasoning": {
			"/v1/responses",
			strings.Replace(askResponse, "@", `,"reasoning":{"effort":"low"@}`, 1),
			"reasoning.",
		},
		"text": {
			"/v1/responses",
			strings.Replace(askResponse, "@", `,"text":{"format":{"type":"text"}@}`, 1),
			"text.",
		},
		"response tool": {
			"/v1/responses",
			strings.Replace(askResponse, "@", `,"tools":[{"type":"function","name":"f"@}]`, 1),
			"tools[0].",
		},
	},
	"anthropic": {
		"POST /v1/messages":              {"/v1/messages", askMessage, ""},
		"POST /v1/messages/count_tokens": {"/v1/messages/count_tokens", askCount, ""},
		"image block": {
			"/v1/messages", `{"model":"scripted","max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://x/"}@}]}]}`,
			"messages.0.content.0.",
		},
		"image source": {
			"/v1/messages", `{"model":"scripted","max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://x/"@}}]}]}`,
			"messages.0.content.0.source.",
		},
		"tool use block": {"/v1/messages", askToolUse, "messages.1.content.0."},
		"tool result block": {
			"/v1/messages",
			strings.Replace(strings.Replace(askToolUse, "@", "", 1), `"content":"x"}`, `"content":"x"@}`, 1),
			"messages.2.content.0.",
		},
		"tool": {
			"/v1/messages",
			strings.Replace(askMessage, "@", `,"tools":[{"name":"f","input_schema":{"type":"object"}@}]`, 1),
			"tools.0.",
		},
		"output config": {
			"/v1/messages",
			strings.Replace(askMessage, "@", `,"output_config":{"effort":"low"@}`, 1),
			"output_config.",
		},
		"tool change": {
			"/v1/messages", `{"model":"scripted","max_tokens":5,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"},` +
				`{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"@}}]}]}`, "messages.1.content.0.tool.",
		},
	},
	"llamacpp": {
		"completion request": {"/completion", `{"prompt":"x"@}`, ""},
		"infill request":     {"/infill", `{"input_prefix":"x"@}`, ""},
		"message":            {"/apply-template", `{"messages":[{"role":"user","content":"hi"@}]}`, "messages[0]."},
		"tool call": {
			"/apply-template",
			`{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}@}]}]}`,
			"messages[1].tool_calls[0].",
		},
		"tool": {
			"/apply-template",
			`{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}@}]}`,
			"tools[0].",
		},
	},
	"ollama": {
		"generate": {"/api/generate", askGenerate, ""},
		"options":  {"/api/chat", strings.Replace(askOllama, "@", `,"options":{"seed":1@}`, 1), "options."},
		"pull":     {"/api/pull", `{"model":"x"@}`, ""},
		"create":   {"/api/create", askCreate, ""},
	},
}

// TestEveryRefusedField puts each field that is declared as refused into a request that is good otherwise, and wants
// the dialect's own error, which names the field.
func TestEveryRefusedField(t *testing.T) {
	w := all(t, servertest.Options{})
	seen := 0
	for _, d := range w.Server.Dialects() {
		tables := map[string]fields.ObjectTable{}
		for _, r := range d.Routes() {
			if r.Body != nil {
				tables[r.Body.Title()] = r.Body
			}
			for _, o := range r.Objects {
				tables[o.Title()] = o
			}
		}
		for title, table := range tables {
			for _, row := range table.Rows() {
				if row.Use != fields.Refused.String() {
					continue
				}
				at, ok := refusals[d.Name()][title]
				if !ok {
					t.Errorf("%s: no request for the refused fields of %q", d.Name(), title)
					break
				}
				seen++
				value := `,"` + row.Name + `":{"x":1}`
				r := w.Post(t, at.path, strings.Replace(at.body, "@", value, 1), anthropicHdr, "2023-06-01")
				field, message, shaped := errorShape(d.Name(), r.Body)
				if r.Status != 400 || !shaped || field != at.prefix+row.Name ||
					!strings.Contains(message, "not supported") {
					t.Errorf("%s: %s of %s: %d %s", d.Name(), row.Name, title, r.Status, r.Body)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d refused fields", seen)
	}
}

// TestRefusedValues is about fields that are honoured and some of whose values cannot be.
func TestRefusedValues(t *testing.T) {
	w := all(t, servertest.Options{})
	const schema = `{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","$dynamicRef":"#x"}}}`
	const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`
	for _, c := range []struct{ dialect, path, body, add, field string }{
		{"openai", "/v1/chat/completions", askChat, `,"response_format":{"type":"yaml"}`, "response_format.type"},
		{"openai", "/v1/chat/completions", askChat, `,"response_format":` + schema, "response_format.json_schema.schema"},
		{"openai", "/v1/chat/completions", askChat, `,"guided_regex":"("`, "guided_regex"},
		{"openai", "/v1/chat/completions", askChat, `,"guided_regex":"a","guided_choice":["b"]`, "guided_choice"},
		{"openai", "/v1/chat/completions", askChat, `,"tools":[{"type":"custom","custom":{"name":"f"}}]`, "tools[0].type"},
		{"openai", "/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":[@` + image + `]}]}`, ``, "messages[0].content[0]"},
		{"openai", "/v1/completions", `{"model":"scripted","prompt":"x"@}`, `,"best_of":3`, "best_of"},
		{"openai", "/v1/responses", askResponse, `,"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object","$dynamicRef":"#x"}}}`, "text.format.schema"},
		{"openai", "/v1/responses", askResponse, `,"text":{"format":{"type":"json_schema","name":"x"}}`, "text.format.schema"},
		{"openai", "/v1/chat/completions", askChat, `,"response_format":{"type":"json_schema"}`, "response_format.json_schema"},
		{"openai", "/v1/responses", askResponse, `,"tools":[{"type":"web_serch"}]`, "tools[0].type"},
		{"openai", "/v1/responses", askResponse, `,"tools":[{"type":"web_search"}],"tool_choice":"required"`, "tool_choice"},
		{"openai", "/v1/responses", askResponse, `,"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`, "tool_choice"},
		{"openai", "/v1/responses", `{"model":"scripted","input":[{"type":"computer_call_output","call_id":"x","output":{}}]@}`, ``, "input[0]"},
		{"openai", "/v1/responses", `{"model":"scripted","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]@}`, ``, "input[0].content[0]"},
		{"anthropic", "/v1/messages", askMessage, `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","$dynamicRef":"#x"}}}`, "output_config.format.schema"},
		{"anthropic", "/v1/messages", askMessage, `,"thinking":{"type":"between_tools"}`, "thinking.type"},
		{"anthropic", "/v1/messages", askMessage, `,"tools":[{"type":"web_search_20250305","name":"web_search"}]`, "tools.0"},
		{"anthropic", "/v1/messages", `{"model":"scripted","max_tokens":5,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"x","media_type":"text/plain"}}]}]@}`, ``, "messages.0.content.0"},
		{"anthropic", "/v1/messages", `{"model":"scripted","max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]@}`, ``, "messages.0.content.0"},
		{"ollama", "/api/chat", askOllama, `,"format":"yaml"`, "format"},
		{"ollama", "/api/chat", askOllama, `,"format":{"type":"object","$dynamicRef":"#x"}`, "format"},
		{"ollama", "/api/chat", `{"model":"scripted","messages":[{"role":"user","content":"x","images":["AAAA"]}]@}`, ``, "messages[0].images[0]"},
		{"ollama", "/api/generate", askGenerate, `,"images":["AAAA"]`, "images[0]"},
		{"ollama", "/api/generate", askGenerate, `,"format":"yaml"`, "format"},
		{"ollama", "/api/create", askCreate, `,"template":"{{ .Prompt }}"`, "template"},
	} {
		r := w.Post(t, c.path, strings.Replace(c.body, "@", c.add, 1), anthropicHdr, "2023-06-01")
		field, message, ok := errorShape(c.dialect, r.Body)
		if r.Status != 400 || !ok || field != c.field || len(message) < 20 {
			t.Errorf("%s %s: %d %s, want the field %s", c.path, c.add, r.Status, r.Body, c.field)
		}
	}
}

// TestEmptyContent wants what is there and empty to be called that, and not missing.
func TestEmptyContent(t *testing.T) {
	w := all(t, servertest.Options{})
	for _, c := range []struct{ dialect, path, body, field, say string }{
		{"openai", "/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":[]}]}`, "messages[0].content", "this list is empty"},
		{"openai", "/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":null}]}`, "messages[0].content", "missing"},
		{"openai", "/v1/responses", `{"model":"scripted","input":[]}`, "input", "this list is empty"},
		{"openai", "/v1/responses", `{"model":"scripted"}`, "input", "missing"},
		{"openai", "/v1/responses", `{"model":"scripted","input":[{"role":"user"}]}`, "input[0].content", "missing"},
		{"anthropic", "/v1/messages", `{"model":"scripted","max_tokens":5,"messages":[{"role":"user","content":[]}]}`, "messages.0", "must have non-empty content"},
		{"anthropic", "/v1/messages", `{"model":"scripted","max_tokens":5,"messages":[{"role":"user"}]}`, "messages.0.content", "Field required"},
		{"ollama", "/api/chat", `{"model":"scripted","messages":[{"role":"user","content":[]}]}`, "messages[0].content", "got an array, want a string"},
	} {
		r := w.Post(t, c.path, c.body, anthropicHdr, "2023-06-01")
		field, message, ok := errorShape(c.dialect, r.Body)
		if r.Status != 400 || !ok || field != c.field || !strings.Contains(message, c.say) {
			t.Errorf("%s: %d %s, want %s: %s", c.body, r.Status, r.Body, c.field, c.say)
		}
	}
}

// TestDeepSchemas wants a tool's schema that is nested too deeply to be named, and one at the bound to be taken.
func TestDeepSchemas(t *testing.T) {
	w := all(t, servertest.Options{})
	// nested makes a schema of 2n+1 levels, with text that looks like more.
	nested := func(n int) string {
		return strings.Repeat(
			`{"type":"object","description":"\"[[[{","properties":{"a":`,
			n,
		) + `{}` + strings.Repeat(
			"}}",
			n,
		)
	}
	for _, c := range []struct{ dialect, path, body, tool, field string }{
		{"openai", "/v1/chat/completions", askChat, `{"type":"function","function":{"name":"f","parameters":@}}`, "tools[0].function.parameters"},
		{"openai", "/v1/responses", askResponse, `{"type":"function","name":"f","parameters":@}`, "tools[0].parameters"},
		{"anthropic", "/v1/messages", askMessage, `{"name":"f","input_schema":@}`, "tools.0.input_schema"},
		{"ollama", "/api/chat", askOllama, `{"type":"function","function":{"name":"f","parameters":@}}`, "tools[0].function.parameters"},
	} {
		for n, status := range map[int]int{(fields.MaxDepth - 1) / 2: 200, fields.MaxDepth / 2: 400, 450: 400} {
			tools := `,"tools":[` + strings.Replace(c.tool, "@", nested(n), 1) + `]`
			r := w.Post(t, c.path, strings.Replace(c.body, "@", tools, 1), anthropicHdr, "2023-06-01")
			if r.Status != status {
				t.Errorf("%s, %d levels: %d %s, want %d", c.path, 2*n+1, r.Status, r.Body, status)
			}
			if status != 200 {
				if field, message, ok := errorShape(c.dialect, r.Body); !ok || field != c.field ||
					!strings.Contains(message, "nested too deeply") {
					t.Errorf("%s, %d levels: %s, want the field %s", c.path, 2*n+1, r.Body, c.field)
				}
			}
		}
	}
}

// TestEmbeddings wants routes of embeddings to say why there are none.
func TestEmbeddings(t *testing.T) {
	w := all(t, servertest.Options{})
	const no = `does not support embeddings: it is not an embedding model`
	for _, c := range []struct {
		dialect, path, body string
		status              int
		say                 string
	}{
		{"openai", "/v1/embeddings", `{"model":"scripted","input":"x"}`, 400, no},
		{"openai", "/v1/embeddings", `{"model":"scripted","input":[[1,2],[3]],"encoding_format":"base64","dimensions":8,"user":"u"}`, 400, no},
		{"openai", "/v1/embeddings", `{"model":"scripted"}`, 400, "input: this field is missing"},
		{"openai", "/v1/embeddings", `{"model":"elephant","input":"x"}`, 404, "is not here"},
		{"ollama", "/api/embed", `{"model":"scripted","input":"x"}`, 400, no},
	} {
		r := w.Post(t, c.path, c.body)
		if _, message, ok := errorShape(c.dialect, r.Body); r.Status != c.status || !ok ||
			!strings.Contains(message, c.say) {
			t.Errorf("%s: %d %s, want %d %s", c.body, r.Status, r.Body, c.status, c.say)
		}
	}
}

// TestMisspeltModel wants the name that was meant in place of advice to fetch what does not exist.
func TestMisspeltModel(t *testing.T) {
	w := all(t, servertest.Options{})
	for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/completions", "/v1/messages", "/v1/messages/count_tokens", "/api/chat", "/api/generate", "/api/show"} {
		body := map[string]string{"/v1/completions": `{"model":"scripted","prompt":"x"}`, "/v1/responses": `{"model":"scripted","input":"x"}`, "/api/generate": `{"model":"scripted","prompt":"x"}`, "/api/show": `{"model":"scripted"}`}[path]
		if body == "" {
			body = `{"model":"scripted","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`
		}
		if strings.HasSuffix(path, "count_tokens") {
			body = strings.Replace(askCount, "@", "", 1)
		}
		for name, want := range map[string]string{"scriptd": `did you mean \"scripted\"?`, "elephant": "baleen pull elephant"} {
			r := w.Post(t, path, strings.Replace(body, "scripted", name, 1), anthropicHdr, "2023-06-01")
			if r.Status != 404 || !strings.Contains(r.Body, want) ||
				strings.Contains(r.Body, "did you mean") && strings.Contains(r.Body, "pull") {
				t.Errorf("%s: %d %s, want %s", path, r.Status, r.Body, want)
			}
		}
	}
}

// TestRefusalsInEveryDialect wants each dialect's own shape of what no dialect decides.
func TestRefusalsInEveryDialect(t *testing.T) {
	w := all(
		t,
		servertest.Options{
			Server: func(o *server.Options) { o.MaxBody = 1000 },
			Model:  nil,
			Chat:   func(o *chat.Options) {},
		},
	)
	long := strings.Repeat("x", 1001)
	for _, d := range []struct{ name, path, good, kindOf404, tooLarge string }{
		{"openai", "/v1/chat/completions", strings.Replace(askChat, "@", "", 1), `"code":"model_not_found"`, `"code":"request_too_large"`},
		{"openai", "/v1/responses", strings.Replace(askResponse, "@", "", 1), `"code":"model_not_found"`, `"code":"request_too_large"`},
		{"openai", "/v1/completions", `{"model":"scripted","prompt":"hi"}`, `"code":"model_not_found"`, `"code":"request_too_large"`},
		{"anthropic", "/v1/messages", strings.Replace(askMessage, "@", "", 1), `"type":"not_found_error"`, `"type":"request_too_large"`},
		{"anthropic", "/v1/messages/count_tokens", strings.Replace(askCount, "@", "", 1), `"type":"not_found_error"`, `"type":"request_too_large"`},
		{"ollama", "/api/chat", strings.Replace(askOllama, "@", "", 1), `not found`, `larger than 1000 bytes`},
		{"ollama", "/api/generate", strings.Replace(askGenerate, "@", "", 1), `not found`, `larger than 1000 bytes`},
	} {
		if r := w.Post(t, d.path, d.good); r.Status != 200 {
			t.Fatalf("%s: a good request: %d %s", d.path, r.Status, r.Body)
		}
		for _, c := range []struct {
			what, body string
			status     int
			has        string
		}{
			{"bad JSON", `{"model": }`, 400, "JSON"},
			{"no JSON object", `[1]`, 400, "object"},
			{"an empty body", ``, 400, "empty"},
			{"no UTF-8", "{\"model\":\"\xff\"}", 400, "UTF-8"},
			{"an unknown model", strings.Replace(d.good, "scripted", "nope", 1), 404, d.kindOf404},
			{"a large body", strings.Replace(d.good, "hi", long, 1), 413, d.tooLarge},
			{"a wrong type", strings.Replace(d.good, `"scripted"`, `17`, 1), 400, "model"},
		} {
			r := w.Do(t, "POST", d.path, c.body)
			if _, _, ok := errorShape(d.name, r.Body); r.Status != c.status || !ok || !strings.Contains(r.Body, c.has) {
				t.Errorf("%s, %s: %d %s", d.path, c.what, r.Status, r.Body)
			}
		}
		if r := w.Do(t, "PUT", d.path, d.good); r.Status != 405 || r.Header.Get("Allow") == "" {
			t.Errorf("%s: PUT: %d %v", d.path, r.Status, r.Header)
		} else if _, _, ok := errorShape(d.name, r.Body); !ok {
			t.Errorf("%s: PUT: %s", d.path, r.Body)
		}
	}
}
