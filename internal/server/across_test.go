package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/chat"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/store"
)

// ways are one request in every dialect, and how its text is found in the answer.
var ways = []struct {
	name, path, body string
	text             []any // keys and indices
}{
	{"chat", "/v1/chat/completions", `{"messages":[SYS,ASK],"temperature":T,"top_p":1,"seed":3,"max_tokens":24}`, []any{"choices", 0, "message", "content"}},
	{"responses", "/v1/responses", `{"instructions":"You are brief.","input":[ASK],"temperature":T,"top_p":1,"max_output_tokens":24}`, []any{"output", 0, "content", 0, "text"}},
	{"messages", "/v1/messages", `{"system":"You are brief.","messages":[ASK],"temperature":T,"max_tokens":24}`, []any{"content", 0, "text"}},
	{
		"ollama", "/api/chat", `{"messages":[SYS,ASK],"stream":false,"options":{"temperature":T,"seed":3,"top_k":0,"top_p":1,"repeat_penalty":1,"num_predict":24}}`,
		[]any{"message", "content"},
	},
}

func ask(ctx context.Context, w *servertest.World, way int, temperature string) (string, error) {
	x := ways[way]
	body := strings.NewReplacer("SYS", `{"role":"system","content":"You are brief."}`, "ASK", `{"role":"user","content":"Tell me about whales."}`, ":T", ":"+temperature).
		Replace(`{"model":"real",` + x.body[1:])
	r, err := w.Send(ctx, "POST", x.path, body, "anthropic-version", "2023-06-01")
	if err != nil || r.Status != 200 {
		return "", fmt.Errorf("%s: %v %d %s", x.name, err, r.Status, r.Body)
	}
	var v any
	if err := json.Unmarshal([]byte(r.Body), &v); err != nil {
		return "", err
	}
	for _, k := range x.text {
		switch k := k.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return "", fmt.Errorf("%s: no text in %s", x.name, r.Body)
			}
			v = l[k]
		}
	}
	s, _ := v.(string)
	return s, nil
}

// TestSameTokensInEveryDialect asks a real model in every dialect, alone and among others. BALEEN_TEST_MODELS turns
// it on; the model must have been fetched.
func TestSameTokensInEveryDialect(t *testing.T) {
	if os.Getenv("BALEEN_TEST_MODELS") == "" {
		t.Skip("BALEEN_TEST_MODELS is not set")
	}
	home, err := store.Home(os.Getenv("BALEEN_HOME"), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := store.Open(home).Find("smollm2-135m")
	if !ok {
		t.Fatal("smollm2-135m is not here: baleen pull smollm2-135m")
	}
	w := servertest.New(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{openai.New, anthropic.New, ollama.New(nil)},
		Names:    func(string) servertest.Names { return servertest.Names{{Name: "real", Path: m.Path}} },
		Chat: func(o *chat.Options) {
			l := &chat.Loader{Options: model.Options{Context: 2048}}
			o.Pool = pool.New(pool.Options[*chat.Model]{Open: l.Open, KeepAlive: -1})
			t.Cleanup(func() { o.Pool.Close(context.Background()) }) //nolint:errcheck // the test is over
		},
	})
	want, err := ask(t.Context(), w, 0, "0")
	if err != nil || want == "" {
		t.Fatalf("%q %v", want, err)
	}
	var wg sync.WaitGroup
	for round := range 2 {
		for way := range ways {
			check := func() {
				if got, err := ask(t.Context(), w, way, "0"); err != nil || got != want {
					t.Errorf("%s: %q %v, want %q", ways[way].name, got, err, want)
				}
			}
			if round == 0 {
				check()
			} else {
				wg.Go(check)
				wg.Go(check)
			}
		}
	}
	wg.Wait()
	warm, err := ask(t.Context(), w, 0, "0.9")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ask(t.Context(), w, 3, "0.9"); err != nil || got != warm {
		t.Errorf("with a seed: %q over ollama %v, %q over chat", got, err, warm)
	}
}
