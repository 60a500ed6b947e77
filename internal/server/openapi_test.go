package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

var everyDialect = []func(*server.Env) server.Dialect{openai.New, anthropic.New, ollama.New(nil)}

// TestOpenAPI looks at what a document must have: every route, references that lead somewhere, answers with schemas.
func TestOpenAPI(t *testing.T) {
	for _, key := range []string{"", "a-key-of-tests"} {
		w := servertest.New(t, servertest.Options{Dialects: everyDialect, Server: func(o *server.Options) {
			if key != "" {
				o.Keys = auth.NewKeys([]string{key}, "")
			}
		}})
		doc := w.Do(t, "GET", "/openapi.json", "").JSON(t)
		paths := doc["paths"].(map[string]any)
		for _, d := range w.Server.Dialects() {
			for _, r := range d.Routes() {
				at := r.Method + " " + r.Path
				p := strings.NewReplacer("{$}", "", "...", "").Replace(r.Path)
				op, ok := paths[p].(map[string]any)[strings.ToLower(r.Method)].(map[string]any)
				if !ok {
					t.Errorf("%s is not in the document", at)
					continue
				}
				checkOperation(t, at, op, r)
				if security, _ := op["security"].([]any); r.Scope != auth.Public &&
					strings.Contains(fmt.Sprint(security), "map[]") == (key != "") {
					t.Errorf("%s with the key %q: security %v", at, key, security)
				}
			}
		}
		checkReferences(t, doc, doc)
	}
}

func checkOperation(t *testing.T, at string, op map[string]any, r server.Route) {
	t.Helper()
	answers := op["responses"].(map[string]any)
	for status, a := range answers {
		content, _ := a.(map[string]any)["content"].(map[string]any)
		if len(content) == 0 && !r.Empty && r.Method != "HEAD" {
			t.Errorf("%s: the answer %s has no content", at, status)
		}
		for media, c := range content {
			schema, _ := c.(map[string]any)["schema"].(map[string]any)
			if len(schema) == 0 && status != "200" || schema == nil {
				t.Errorf("%s: the answer %s as %s has no schema", at, status, media)
			}
		}
	}
	for _, status := range append(map[bool][]string{true: {"400", "413"}}[r.Body != nil], "200", "403") {
		if answers[status] == nil {
			t.Errorf("%s has no answer %s", at, status)
		}
	}
	if good, _ := answers["200"].(map[string]any)["content"].(map[string]any); r.Stream != "" && good[r.Stream] == nil {
		t.Errorf("%s: no stream %s", at, r.Stream)
	}
}

func checkReferences(t *testing.T, doc map[string]any, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			at := any(doc)
			for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				m, _ := at.(map[string]any)
				at = m[part]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, x := range v {
			checkReferences(t, doc, x)
		}
	case []any:
		for _, x := range v {
			checkReferences(t, doc, x)
		}
	}
}

// TestHostileBodies sends bodies that are no requests to every route that generates: each answers 400 in its own
// dialect's shape, and the server goes on.
func TestHostileBodies(t *testing.T) {
	w := servertest.New(t, servertest.Options{Dialects: everyDialect})
	deep := strings.Repeat("[", 100_000)
	bodies := []string{
		"", "{", "[]", "null", `"x"`, "\xff\xfe", "{}{}", `{"a":1,}`, "\x00", "\xef\xbb\xbf{}", `{"model":"` + "\xff" + `"}`, deep, `{"messages":` + deep + "}",
		`{"messages":` + deep + strings.Repeat(
			"]",
			100_000,
		) + "}", `{"max_tokens":NaN}`, `{"max_tokens":01}`, `{"max_tokens":0x10}`, "{'model':'x'}",
		`{"model":` + strings.Repeat(
			"9",
			5000,
		) + `}`, `{"model":"scripted","stream":"yes"}`, `{"model":"scripted","messages":"x","input":{},"prompt":{}}`,
	}
	for _, d := range w.Server.Dialects() {
		for _, r := range d.Routes() {
			if r.Scope != auth.Infer || r.Stream == "" {
				continue // others have none of the fields of the last bodies; their decoder is the same
			}
			for _, body := range bodies {
				a := w.Do(t, r.Method, r.Path, body, "Content-Type", "application/json")
				if a.Status != 400 || !shaped(d.Name(), a.Body) {
					t.Errorf("%s %s with %.60q: %d %.300s", r.Method, r.Path, body, a.Status, a.Body)
				}
			}
		}
	}
	if log := w.Log(); strings.Contains(log, "panic") {
		t.Error(log)
	}
}

// shaped reports whether an error has its dialect's shape.
func shaped(dialect, body string) bool {
	var e struct {
		Type  string          `json:"type"`
		ID    string          `json:"request_id"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal([]byte(body), &e) != nil {
		return false
	}
	var text string
	var object struct {
		Message, Type string
		Param, Code   *string
	}
	switch dialect {
	case "ollama":
		return json.Unmarshal(e.Error, &text) == nil && text != ""
	case "baleen":
		return json.Unmarshal(e.Error, &object) == nil && object.Message != ""
	case "anthropic":
		return e.Type == "error" && e.ID != "" && json.Unmarshal(e.Error, &object) == nil && object.Message != "" &&
			object.Type == "invalid_request_error"
	}
	return json.Unmarshal(e.Error, &object) == nil && object.Message != "" && object.Code != nil
}
