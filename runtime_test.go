package baleen_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen"
)

func newRuntime(t *testing.T, o baleen.Options) *baleen.Runtime {
	t.Helper()
	o.Threads = 1
	if o.Home == "" {
		o.Home = t.TempDir()
	}
	r, err := baleen.NewRuntime(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// put writes a tiny model into a store.
func put(t *testing.T, home, name string) string {
	t.Helper()
	path := filepath.Join(home, "models", name+".gguf")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeTiny(path, chatTemplate); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestModelsShareOneBudget: where two do not fit, the one that nobody has open goes; where both are open, the third
// is refused.
func TestModelsShareOneBudget(t *testing.T) {
	dir := t.TempDir()
	paths := make([]string, 3)
	for i := range paths {
		paths[i] = filepath.Join(dir, string(rune('a'+i))+".gguf")
		if err := writeTiny(paths[i], chatTemplate); err != nil {
			t.Fatal(err)
		}
	}
	r := newRuntime(t, baleen.Options{MaxModels: 2})
	open := func(i int) *baleen.Model {
		t.Helper()
		m, err := r.Open(t.Context(), paths[i])
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	loaded := func() (out []string) {
		for _, l := range r.Loaded() {
			out = append(out, filepath.Base(l.Path))
		}
		slices.Sort(out)
		return out
	}
	a, b := open(0), open(1)
	again := open(0) // shared
	var full *baleen.NoMemoryError
	if _, err := r.Open(t.Context(), paths[2]); !errors.As(err, &full) || !full.InUse {
		t.Errorf("a third model while two are open: %v", err)
	}
	a.Close()
	if _, err := r.Open(t.Context(), paths[2]); !errors.As(err, &full) {
		t.Errorf("a third model while one is open twice: %v", err)
	}
	if _, err := baleen.Text(again.Generate(t.Context(), "x", greedy(2))); err != nil {
		t.Errorf("the second handle, after the first was closed: %v", err)
	}
	again.Close()
	if got := loaded(); !slices.Equal(got, []string{"a.gguf", "b.gguf"}) {
		t.Errorf("loaded %v: a closed model stays for a while", got)
	}
	c := open(2)
	if got := loaded(); !slices.Equal(got, []string{"b.gguf", "c.gguf"}) {
		t.Errorf("loaded %v, want the closed one gone", got)
	}
	for _, m := range []*baleen.Model{b, c} {
		if _, err := baleen.Text(m.Generate(t.Context(), "x", greedy(2))); err != nil {
			t.Error(err)
		}
	}
	if used, limit := r.Memory(); used <= 0 || limit < used {
		t.Errorf("memory %d of %d", used, limit)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := baleen.Text(b.Generate(t.Context(), "x", nil)); !errors.Is(err, baleen.ErrClosed) {
		t.Errorf("a model of a closed runtime: %v", err)
	}
	if _, err := r.Open(t.Context(), paths[0]); !errors.Is(err, baleen.ErrClosed) {
		t.Errorf("a closed runtime opens: %v", err)
	}
	if _, err := r.Handler(baleen.ServerOptions{}); !errors.Is(err, baleen.ErrClosed) {
		t.Errorf("a closed runtime serves: %v", err)
	}
}

func TestListAndRemove(t *testing.T) {
	home := t.TempDir()
	path := put(t, home, "mine")
	r := newRuntime(t, baleen.Options{Home: home})
	find := func() (out []baleen.Stored) {
		t.Helper()
		list, err := r.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if m.Path == path {
				out = append(out, m)
			}
		}
		return out
	}
	got := find()
	if len(got) != 1 || !got[0].Own || got[0].Size == 0 || got[0].Problem != "" {
		t.Fatalf("listed %+v", got)
	}
	m, err := r.Open(t.Context(), got[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	var open *baleen.ParamError
	if _, err := r.Remove(got[0].Name); !errors.As(err, &open) {
		t.Errorf("an open model is removed: %v", err)
	}
	m.Close()
	if freed, err := r.Remove(got[0].Name); err != nil || freed != got[0].Size {
		t.Errorf("freed %d of %d, %v", freed, got[0].Size, err)
	}
	if len(find()) != 0 {
		t.Error("it is listed still")
	}
	var unknown *baleen.UnknownModelError
	if _, err := r.Remove(got[0].Name); !errors.As(err, &unknown) {
		t.Errorf("removed twice: %v", err)
	}
	if list := baleen.Catalog(); len(list) < 3 || list[0].Name != baleen.DefaultModel || list[0].Size == 0 {
		t.Errorf("catalog %+v", list)
	}
}

// TestPipIsNotRun unless it was allowed to: a catalog's entry that only pip could bring is refused, whatever lies
// on the path.
func TestPipIsNotRun(t *testing.T) {
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	for _, name := range []string{"pip", "pip3", "python3", "python"} {
		script := "#!/bin/sh\ntouch " + ran + "\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	for _, name := range []string{baleen.DefaultModel, "pip:some-model==1.0"} {
		r := newRuntime(t, baleen.Options{HFEndpoint: gone.URL})
		if _, err := r.Pull(t.Context(), name); err == nil || !strings.Contains(err.Error(), "pip") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("another program was run")
	}
}

// TestAddressesAreFetched: what stands in Open's document is asked of the server that the options name, and Pull takes
// it without a prefix, too.
func TestAddressesAreFetched(t *testing.T) {
	asked := make(chan string, 100)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.NotFound(w, r)
	}))
	defer hub.Close()
	r := newRuntime(t, baleen.Options{HFEndpoint: hub.URL})
	for name, fetch := range map[string]func() error{
		"Open": func() error { _, err := r.Open(t.Context(), "hf:org/tiny:Q8_0"); return err },
		"Pull": func() error { _, err := r.Pull(t.Context(), "org/tiny:Q8_0"); return err },
	} {
		if err := fetch(); err == nil || !strings.HasPrefix(err.Error(), "baleen: ") {
			t.Errorf("%s: %v", name, err)
		}
		if len(asked) == 0 {
			t.Fatalf("%s: nobody was asked", name)
		}
		for len(asked) > 0 {
			if path := <-asked; !strings.Contains(path, "org/tiny") {
				t.Errorf("%s: asked for %s", name, path)
			}
		}
	}
	var unknown *baleen.UnknownModelError
	if _, err := r.Pull(t.Context(), "smolm2-135m"); !errors.As(err, &unknown) || len(unknown.Near) == 0 ||
		len(asked) != 0 {
		t.Errorf("a misspelt name: %v", err)
	}
}

// TestNothingIsReadFromTheEnvironment: a variable of the command line changes what FromEnv returns and nothing else.
func TestNothingIsReadFromTheEnvironment(t *testing.T) {
	t.Setenv("BALEEN_CONTEXT", "128")
	t.Setenv("BALEEN_CPU", "generic")
	t.Setenv("HF_TOKEN", "secret")
	m := openTest(t, &baleen.Options{Threads: 1})
	if got := m.Info().Context; got != 2048 {
		t.Errorf("a context of %d: BALEEN_CONTEXT was read", got)
	}
	o, err := baleen.FromEnv()
	if err != nil || o.Context != 128 || o.CPU != "generic" || o.HFToken != "secret" {
		t.Errorf("%+v, %v", o, err)
	}
	o.Threads = 1
	if got := openTest(t, o).Info().Context; got != 128 {
		t.Errorf("a context of %d, want FromEnv's", got)
	}
	t.Setenv("BALEEN_CONTEXT", "many")
	if _, err := baleen.FromEnv(); err == nil || !strings.Contains(err.Error(), "BALEEN_CONTEXT") {
		t.Errorf("error %v", err)
	}
}

// TestHandlerServes all dialects below a path of one's own, with the library's requests beside it.
func TestHandlerServes(t *testing.T) {
	r := newRuntime(t, baleen.Options{})
	m, err := r.Open(t.Context(), tinyModel())
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.Handler(baleen.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ai/", http.StripPrefix("/ai", h))
	web := httptest.NewServer(mux)
	defer web.Close()
	post := func(path, body string) map[string]any {
		t.Helper()
		res, err := http.Post(web.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		var v map[string]any
		if err != nil || res.StatusCode != 200 || json.Unmarshal(b, &v) != nil {
			t.Fatalf("%s: %d %s", path, res.StatusCode, b)
		}
		return v
	}
	want, err := baleen.Text(m.Chat(t.Context(), []baleen.Message{baleen.UserMessage("hello")}, greedy(6)))
	if err != nil {
		t.Fatal(err)
	}
	const ask = `"messages":[{"role":"user","content":"hello"}],"stream":false`
	openai := post("/ai/v1/chat/completions", `{"model":"chat",`+ask+`,"max_tokens":6,"temperature":0}`)
	if got := openai["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["content"]; got != want {
		t.Errorf("OpenAI's API answers %q, the library %q", got, want)
	}
	anthropic := post("/ai/v1/messages", `{"model":"chat",`+ask+`,"max_tokens":6,"temperature":0}`)
	if got := anthropic["content"].([]any)[0].(map[string]any)["text"]; got != want {
		t.Errorf("Anthropic's API answers %q, the library %q", got, want)
	}
	ollama := post("/ai/api/chat", `{"model":"chat",`+ask+`,"options":{"num_predict":6,"temperature":0}}`)
	if got := ollama["message"].(map[string]any)["content"]; got != want {
		t.Errorf("Ollama's API answers %q, the library %q", got, want)
	}
	// What nobody says is the same for all: the model's own sampling.
	want, err = baleen.Text(m.Chat(t.Context(), []baleen.Message{baleen.UserMessage("hello")},
		&baleen.Params{MaxTokens: 12, Seed: new(uint64(5))}))
	if err != nil {
		t.Fatal(err)
	}
	drawn := post("/ai/v1/chat/completions", `{"model":"chat",`+ask+`,"max_tokens":12,"seed":5}`)
	if got := drawn["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["content"]; got != want {
		t.Errorf("with nothing but a seed OpenAI's API answers %q, the library %q", got, want)
	}
	drawn = post("/ai/api/chat", `{"model":"chat",`+ask+`,"options":{"num_predict":12,"seed":5}}`)
	if got := drawn["message"].(map[string]any)["content"]; got != want {
		t.Errorf("with nothing but a seed Ollama's API answers %q, the library %q", got, want)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(
		web.URL+"/ai/v1/chat/completions",
		"application/json",
		strings.NewReader(`{"model":"chat",`+ask+`}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a closed runtime answers with %d", res.StatusCode)
	}
}

// TestHandlerAccess: without a key this machine alone gets in; with one, those who have it.
func TestHandlerAccess(t *testing.T) {
	r := newRuntime(t, baleen.Options{})
	if _, err := r.Handler(baleen.ServerOptions{Keys: []string{"short"}}); err == nil {
		t.Error("a key of five characters was taken")
	}
	for name, tc := range map[string]struct {
		o      baleen.ServerOptions
		remote string
		key    string
		status int
	}{
		"this machine":               {baleen.ServerOptions{}, "127.0.0.1:9", "", 200},
		"a socket file":              {baleen.ServerOptions{}, "@", "", 200},
		"another machine":            {baleen.ServerOptions{}, "192.0.2.1:9", "", 403},
		"another machine with a key": {baleen.ServerOptions{Keys: []string{"0123456789"}}, "192.0.2.1:9", "0123456789", 200},
		"with a wrong key":           {baleen.ServerOptions{Keys: []string{"0123456789"}}, "192.0.2.1:9", "9876543210", 401},
		"this machine without one":   {baleen.ServerOptions{Keys: []string{"0123456789"}}, "127.0.0.1:9", "", 401},
		"open to all":                {baleen.ServerOptions{Public: true}, "192.0.2.1:9", "", 200},
	} {
		h, err := r.Handler(tc.o)
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/models", nil)
		req.RemoteAddr = tc.remote
		if tc.key != "" {
			req.Header.Set("Authorization", "Bearer "+tc.key)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != tc.status {
			t.Errorf("%s: %d, want %d: %s", name, w.Code, tc.status, w.Body)
		}
	}
	// Clients change models where that was allowed alone.
	for manage, want := range map[bool]int{false: 403, true: 404} {
		h, err := r.Handler(baleen.ServerOptions{Manage: manage})
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequestWithContext(
			t.Context(),
			"DELETE",
			"http://localhost/api/delete",
			strings.NewReader(`{"model":"nobody-has-it"}`),
		)
		req.RemoteAddr = "127.0.0.1:9"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != want {
			t.Errorf("Manage %v: %d, want %d: %s", manage, w.Code, want, w.Body)
		}
	}
}

// TestCloseEndsHandlersStreams with their dialect's last event.
func TestCloseEndsHandlersStreams(t *testing.T) {
	r := newRuntime(t, baleen.Options{})
	if _, err := r.Open(t.Context(), tinyModel()); err != nil {
		t.Fatal(err)
	}
	h, err := r.Handler(baleen.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	defer web.Close()
	body := `{"model":"chat","messages":[{"role":"user","content":"hello"}],"stream":true,"logit_bias":{"0":-100}}`
	req, err := http.NewRequestWithContext(
		context.Background(),
		"POST",
		web.URL+"/v1/chat/completions",
		strings.NewReader(body),
	)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := res.Body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(rest), "[DONE]") && !strings.Contains(string(rest), `data: {"error"`) {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
}
