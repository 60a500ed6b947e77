package ollama_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/keeper"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/store"
)

// A room is a server over a store that begins empty, beside one model that is served by its path.
type room struct {
	*servertest.World
	store  *store.Store
	keeper *keeper.Keeper
	file   []byte // of the served model
}

func newRoom(t *testing.T, places ...store.Place) *room {
	t.Helper()
	r := &room{store: store.Open(t.TempDir(), places...)}
	registry := httptest.NewServer(http.HandlerFunc(r.registry))
	t.Cleanup(registry.Close)
	catalog := models.New(r.store)
	r.keeper = &keeper.Keeper{Store: r.store, Catalog: catalog, Fetcher: func(p fetch.Progress) *fetch.Fetcher {
		return &fetch.Fetcher{
			Store:          r.store,
			Progress:       p,
			OllamaEndpoint: registry.URL,
			HFEndpoint:     registry.URL,
			ReachTimeout:   time.Second,
		}
	}}
	r.World = servertest.New(t, servertest.Options{
		Script:   func(string) string { return "Hello! What now?" },
		Dialects: []func(*server.Env) server.Dialect{ollama.New(r.keeper)},
		Chat:     func(o *chat.Options) { o.Catalog = catalog },
	})
	if _, err := catalog.Serve("scripted", r.Path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(r.Path)
	if err != nil {
		t.Fatal(err)
	}
	r.file = b
	return r
}

// registry answers as Ollama's does, for one model: tiny.
func (r *room) registry(w http.ResponseWriter, q *http.Request) {
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256(r.file))
	switch q.URL.Path {
	case "/v2/library/tiny/manifests/latest":
		fmt.Fprintf(
			w,
			`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":%q,"size":%d}]}`,
			sum,
			len(r.file),
		)
	case "/v2/library/tiny/blobs/" + sum:
		http.ServeContent(w, q, "", time.Time{}, strings.NewReader(string(r.file)))
	default:
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
	}
}

// ok sends a request that must work.
func (r *room) ok(t *testing.T, method, path, body string) servertest.Reply {
	t.Helper()
	res := r.Do(t, method, path, body)
	if res.Status >= 300 || strings.Contains(res.Body, `"error"`) {
		t.Fatalf("%s %s %s: %d %s", method, path, body, res.Status, res.Body)
	}
	return res
}

func (r *room) fails(t *testing.T, status int, word, method, path, body string) {
	t.Helper()
	res := r.Do(t, method, path, body)
	if res.Status != status || !strings.Contains(res.Body, word) {
		t.Errorf("%s %s %s: %d %s, want %d with %q", method, path, body, res.Status, res.Body, status, word)
	}
}

func (r *room) prompt(t *testing.T, model string) string {
	t.Helper()
	return r.ok(
		t,
		"POST",
		"/api/chat",
		`{"model":"`+model+`","_debug_render_only":true,"messages":[{"role":"user","content":"x"}]}`,
	).Body
}

func TestCreatedModels(t *testing.T) {
	r := newRoom(t)
	r.ok(
		t,
		"POST",
		"/api/create",
		`{"model":"singer","from":"scripted","system":"Sing.","license":"MIT","parameters":{"num_predict":5,"stop":["?"]},"messages":[{"role":"user","content":"la"}]}`,
	)
	if p := r.prompt(t, "singer"); !strings.Contains(p, "Sing.") || !strings.Contains(p, "la<|im_end|>") {
		t.Errorf("the prompt is %s", p)
	}
	if res := r.ok(t, "POST", "/api/generate", `{"model":"singer:latest","prompt":"x","stream":false}`); !strings.Contains(
		res.Body,
		`"response":"Hello"`,
	) ||
		!strings.Contains(res.Body, "length") {
		t.Errorf("num_predict of the model is not kept: %s", res.Body)
	}
	if ps := r.ok(t, "GET", "/api/ps", "").Body; strings.Count(ps, `"name"`) != 1 {
		t.Errorf("a created model loads its parent's weights again: %s", ps)
	}
	// A child of the child says only what differs; one made anew under its own name, too.
	r.ok(t, "POST", "/api/create", `{"model":"team/whale:small","from":"singer","system":"Dive."}`)
	if p := r.prompt(t, "team/whale:small"); !strings.Contains(p, "Dive.") || !strings.Contains(p, "la<|im_end|>") {
		t.Errorf("the prompt is %s", p)
	}
	r.ok(t, "POST", "/api/create", `{"model":"singer","from":"singer","system":"Hum."}`)
	if p := r.prompt(t, "Singer"); !strings.Contains(p, "Hum.") {
		t.Errorf("the prompt is %s", p)
	}
	r.ok(t, "POST", "/api/copy", `{"source":"singer","destination":"twin"}`)
	r.ok(t, "DELETE", "/api/delete", `{"model":"singer"}`)
	r.fails(t, 404, "not found", "POST", "/api/show", `{"model":"singer"}`)
	show := r.ok(t, "POST", "/api/show", `{"model":"twin"}`).Body
	for _, want := range []string{`"license":"MIT"`, "SYSTEM \\\"Hum.\\\"", "num_predict", `"parent_model":"scripted"`} {
		if !strings.Contains(show, want) {
			t.Errorf("twin has no %s: %s", want, show)
		}
	}
	tags := r.ok(t, "GET", "/api/tags", "").Body
	for _, want := range []string{`"scripted:latest"`, `"team/whale:small"`, `"twin:latest"`} {
		if !strings.Contains(tags, want) {
			t.Errorf("tags has no %s: %s", want, tags)
		}
	}
	r.fails(t, 403, "served from a file", "DELETE", "/api/delete", `{"model":"scripted"}`)
	if ps := r.ok(t, "GET", "/api/ps", "").Body; !strings.Contains(ps, `"name"`) {
		t.Errorf("weights that others use went with a name, or with one that was not deleted: %s", ps)
	}
	r.ok(t, "POST", "/api/pull", `{"model":"tiny"}`)
	r.ok(t, "POST", "/api/create", `{"model":"child","from":"tiny","parameters":{"num_ctx":25,"temperature":0}}`)
	r.fails(t, 403, "child was made of tiny:latest", "DELETE", "/api/delete", `{"model":"tiny"}`)
	if res := r.ok(t, "POST", "/api/generate", `{"model":"child","prompt":"x","stream":false}`); !strings.Contains(
		res.Body,
		`"done_reason":"length"`,
	) {
		t.Errorf("num_ctx of the model is not kept: %s", res.Body)
	}
	r.ok(t, "DELETE", "/api/delete", `{"model":"child"}`)
	r.ok(t, "DELETE", "/api/delete", `{"model":"tiny"}`)
	r.fails(t, 400, "catalog", "POST", "/api/copy", `{"source":"twin","destination":"qwen2.5-coder-0.5b"}`)
	r.fails(t, 400, "choose another name", "POST", "/api/copy", `{"source":"twin","destination":"scripted"}`)
}

func TestUploadedFiles(t *testing.T) {
	r := newRoom(t)
	upload := func(b []byte) string {
		sum := fmt.Sprintf("sha256:%x", sha256.Sum256(b))
		r.ok(t, "POST", "/api/blobs/"+sum, string(b))
		r.ok(t, "HEAD", "/api/blobs/"+sum, "")
		return sum
	}
	sum := upload(r.file)
	r.ok(t, "POST", "/api/create", `{"model":"mine","files":{"a.gguf":"`+sum+`"},"system":"Up."}`)
	if p := r.prompt(t, "mine"); !strings.Contains(p, "Up.") {
		t.Errorf("the prompt is %s", p)
	}
	r.ok(t, "POST", "/api/generate", `{"model":"mine","prompt":"x","stream":false}`)
	bad := upload([]byte("no weights"))
	r.fails(t, 200, "no model", "POST", "/api/create", `{"model":"worse","files":{"b.gguf":"`+bad+`"}}`)
	r.fails(t, 400, "no model", "POST", "/api/create", `{"model":"worse","files":{"b.gguf":"`+bad+`"},"stream":false}`)
	r.fails(t, 400, "has the digest", "POST", "/api/blobs/sha256:"+strings.Repeat("a", 64), "x")
}

// TestBrokenUpload sends a body that cannot be read: that is no failure of the server.
func TestBrokenUpload(t *testing.T) {
	r := newRoom(t)
	c, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(
		c,
		"POST /api/blobs/sha256:%s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n",
		strings.Repeat("a", 64),
	)
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(answer, "HTTP/1.1 400") || strings.Contains(r.Log(), `"level":"ERROR"`) {
		t.Errorf("%v: %s%s", err, answer, r.Log())
	}
}

func TestPull(t *testing.T) {
	r := newRoom(t)
	res := r.ok(t, "POST", "/api/pull", `{"model":"tiny"}`)
	for _, want := range []string{`"pulling manifest"`, `"digest":"sha256:`, fmt.Sprintf(`"total":%d,"completed":%[1]d`, len(r.file)), `{"status":"success"}`} {
		if !strings.Contains(res.Body, want) {
			t.Errorf("no %s in %s", want, res.Body)
		}
	}
	r.ok(t, "POST", "/api/generate", `{"model":"tiny","prompt":"x","stream":false}`)
	if again := r.ok(t, "POST", "/api/pull", `{"model":"tiny:latest"}`).Body; strings.Contains(again, "completed") {
		t.Errorf("pulled twice: %s", again)
	}
	r.ok(t, "DELETE", "/api/delete", `{"model":"tiny"}`)
	r.fails(t, 404, "the registry has no", "POST", "/api/pull", `{"model":"tiny:none","stream":false}`)
	r.fails(t, 400, "addresses", "POST", "/api/pull", `{"model":"http://127.0.0.1/x.gguf"}`)
}

func TestModelsOfOllamaRunInPlace(t *testing.T) {
	dir := t.TempDir()
	r := newRoom(t, store.Place{Kind: "Ollama", Dir: dir})
	write := func(path, text string) {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	layer := func(kind, text string) string {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		write("blobs/sha256-"+sum, text)
		return fmt.Sprintf(
			`{"mediaType":"application/vnd.ollama.image.%s","digest":"sha256:%s","size":%d}`,
			kind,
			sum,
			len(text),
		)
	}
	write("manifests/registry.ollama.ai/library/theirs/latest", `{"schemaVersion":2,"layers":[`+strings.Join([]string{
		layer(
			"model",
			string(r.file),
		), layer("system", "Be theirs."), layer("params", `{"num_predict":5,"stop":["?"],"mirostat":1}`),
	}, ",")+`]}`)
	if p := r.prompt(t, "theirs"); !strings.Contains(p, "Be theirs.") {
		t.Errorf("the prompt is %s", p)
	}
	if res := r.ok(t, "POST", "/api/generate", `{"model":"theirs:latest","prompt":"x","stream":false}`); !strings.Contains(
		res.Body,
		`"response":"Hello"`,
	) {
		t.Errorf("their parameters are not kept: %s", res.Body)
	}
	r.fails(t, 403, "Ollama", "DELETE", "/api/delete", `{"model":"theirs"}`)
	r.ok(t, "POST", "/api/create", `{"model":"ours","from":"theirs","parameters":{"temperature":0}}`)
	if show := r.ok(t, "POST", "/api/show", `{"model":"ours"}`).Body; !strings.Contains(show, "Be theirs.") ||
		!strings.Contains(show, "temperature") {
		t.Errorf("ours is %s", show)
	}
}

// TestRefusedMakings wants what would have been dropped in silence refused, with the word that the route has for it.
func TestRefusedMakings(t *testing.T) {
	r := newRoom(t)
	for _, c := range []struct{ path, body, say string }{
		{"/api/create", `{"model":"a","modelfile":"FROM scripted","from":"scripted"}`, "from: a modelfile was given, too"},
		{"/api/create", `{"model":"a","modelfile":"FROM scripted\nPARAMETER temperature 1","parameters":{"top_k":3}}`, "parameters: a modelfile was given, too"},
		{"/api/create", `{"model":"a","modelfile":"FROM scripted","system":"x"}`, "system: a modelfile was given, too"},
		{"/api/create", `{"model":"a","modelfile":"FROM scripted","license":["x"]}`, "license: a modelfile was given, too"},
		{"/api/create", `{"model":"a","modelfile":"FROM scripted\nSYSTEM \"\"\"b\"\"\" c"}`, "no line ends with the closing"},
		{"/api/create", `{"model":"a","from":"scripted","template":"{{ if .System }}x{{ end }}"}`, "template: this is no template in Jinja"},
		{"/api/create", `{"model":"a","from":"scripted","template":"{{- if .System -}}x{{- end -}}"}`, "template: this is no template in Jinja"},
		{"/api/copy", `{"source":"scripted","destination":"a:b:c"}`, "destination: "},
		{"/api/copy", `{"source":"scripted","destination":"smollm2-135m"}`, "destination: "},
	} {
		var e struct{ Error string }
		if got := r.Post(t, c.path, c.body); got.Status != 400 || json.Unmarshal([]byte(got.Body), &e) != nil ||
			!strings.Contains(e.Error, c.say) {
			t.Errorf("%s: %d %s, want %q", c.body, got.Status, got.Body, c.say)
		}
	}
	for _, body := range []string{
		`{"model":"a","modelfile":"FROM scripted\nSYSTEM x","parameters":{},"license":"","system":""}`, `{"model":"b","from":"scripted","modelfile":"","system":"x"}`,
	} {
		if got := r.Post(t, "/api/create", body); got.Status != 200 {
			t.Errorf("%s: %d %s", body, got.Status, got.Body)
		}
	}
}

// TestShowOfADamagedModel wants to hear what is wrong with it, not that it can do nothing; it is listed all the same.
func TestShowOfADamagedModel(t *testing.T) {
	r := newRoom(t)
	path := filepath.Join(r.store.Dir(), "models", "torn.gguf")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, r.file[:len(r.file)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	r.fails(t, 500, "torn cannot be read: gguf: ", "POST", "/api/show", `{"model":"torn"}`)
	if tags := r.ok(t, "GET", "/api/tags", "").Body; !strings.Contains(tags, `"torn:latest"`) {
		t.Errorf("tags has no torn: %s", tags)
	}
	if err := os.WriteFile(path, r.file, 0o644); err != nil {
		t.Fatal(err)
	}
	if show := r.ok(t, "POST", "/api/show", `{"model":"torn"}`).Body; !strings.Contains(show, `"completion"`) {
		t.Errorf("the repaired file is not read again: %s", show)
	}
}

// TestModelfilesGoRound makes a model of texts that are hard to quote, and another one of its Modelfile: both are the
// same.
func TestModelfilesGoRound(t *testing.T) {
	for i, text := range []string{"He said \"yes\"", "\"", "\"\"\"", "two\nlines", "\n", " a\r\nb \n\"", "{# \"x\" #}\n{{ messages[0].content }}\"\"\""} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := newRoom(t)
			body, err := json.Marshal(map[string]any{
				"model": "one", "from": "scripted", "stream": false, "system": text, "template": text, "license": text,
				"parameters": map[string]any{"stop": []string{text, "x"}, "top_k": 7, "seed": -5},
				"messages": []map[string]string{
					{"role": "user", "content": text},
					{"role": "assistant", "content": text},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			r.ok(t, "POST", "/api/create", string(body))
			one := r.ok(t, "POST", "/api/show", `{"model":"one"}`).JSON(t)
			file := strings.Replace(one["modelfile"].(string), "\nFROM "+r.Path+"\n", "\nFROM scripted\n", 1)
			body, err = json.Marshal(map[string]any{"model": "two", "modelfile": file, "stream": false})
			if err != nil {
				t.Fatal(err)
			}
			r.ok(t, "POST", "/api/create", string(body))
			two := r.ok(t, "POST", "/api/show", `{"model":"two"}`).JSON(t)
			for _, key := range []string{"system", "template", "license", "parameters", "messages"} {
				if a, b := fmt.Sprint(one[key]), fmt.Sprint(two[key]); a != b ||
					!strings.Contains(a, strings.Trim(fmt.Sprintf("%q", text), `"`)) && !strings.Contains(a, text) {
					t.Errorf("%s: %q, of its Modelfile %q", key, a, b)
				}
			}
		})
	}
}
