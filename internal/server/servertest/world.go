package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/nearest"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
)

// Names are a catalog of fixed names.
type Names []chat.Spec

// Resolve finds a name.
func (n Names) Resolve(_ context.Context, name string) (chat.Spec, error) {
	for _, s := range n {
		if strings.EqualFold(s.Name, name) || name == "" {
			return s, nil
		}
	}
	var known []string
	for _, s := range n {
		known = append(known, s.Name)
	}
	return chat.Spec{}, &chat.Error{Kind: chat.UnknownModel, Model: name, Near: nearest.Names(name, known)}
}

// List returns all.
func (n Names) List(context.Context) ([]chat.Spec, error) { return n, nil }

// Options say what a World has. The zero value is a ChatML model named "scripted" behind all dialects given.
type Options struct {
	Checkpoint Checkpoint
	Script     Script // nil: "Hello!"
	Dialects   []func(*server.Env) server.Dialect
	Server     func(*server.Options)
	Chat       func(*chat.Options)
	Model      func(*model.Options)
	Names      func(path string) Names // nil: "scripted"
}

// A World is a server with a scripted model behind it.
type World struct {
	URL     string
	Path    string // of the checkpoint
	Backend *Backend
	Chat    *chat.Service
	Pool    *pool.Pool[*chat.Model]
	Server  *server.Server
	HTTP    *httptest.Server

	mu  sync.Mutex
	log bytes.Buffer
}

// New starts a server for a test, which ends it.
func New(t testing.TB, o Options) *World {
	t.Helper()
	w := &World{Path: filepath.Join(t.TempDir(), "scripted.gguf")}
	if o.Script == nil {
		o.Script = func(string) string { return "Hello!" }
	}
	if err := o.Checkpoint.Write(w.Path); err != nil {
		t.Fatal(err)
	}
	b, err := NewBackend(w.Path, o.Script)
	if err != nil {
		t.Fatal(err)
	}
	w.Backend = b
	names := Names{{Name: "scripted", Path: w.Path}}
	if o.Names != nil {
		names = o.Names(w.Path)
	}
	w.Pool = pool.New(
		pool.Options[*chat.Model]{Open: func(ctx context.Context, key string, _ int64) (*chat.Model, error) {
			mo := model.Options{Backend: b, Context: 32768, Budget: &model.Budget{Available: 1 << 34, Total: 1 << 34}}
			if o.Model != nil {
				o.Model(&mo)
			}
			return chat.Open(ctx, key, mo)
		}},
	)
	metrics := server.NewMetrics()
	co := chat.Options{Catalog: names, Pool: w.Pool, Hooks: metrics.Hooks()}
	if o.Chat != nil {
		o.Chat(&co)
	}
	w.Chat = chat.New(co)
	so := server.Options{
		Chat:     w.Chat,
		Metrics:  metrics,
		Dialects: o.Dialects,
		Version:  "test",
		Log:      slog.New(slog.NewJSONHandler(lockedWriter{w}, nil)),
	}
	if o.Server != nil {
		o.Server(&so)
	}
	if w.Server, err = server.New(so); err != nil {
		t.Fatal(err)
	}
	w.HTTP = httptest.NewServer(w.Server)
	w.URL = w.HTTP.URL
	t.Cleanup(func() {
		w.HTTP.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := w.Pool.Close(ctx); err != nil {
			t.Errorf("after the test: %v", err)
		}
	})
	return w
}

type lockedWriter struct{ w *World }

func (l lockedWriter) Write(b []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.log.Write(b)
}

// Log returns what was logged so far.
func (w *World) Log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// A Reply is an HTTP answer read to its end.
type Reply struct {
	Status  int
	Header  http.Header
	Body    string
	Trailer http.Header
}

// JSON decodes the body.
func (r Reply) JSON(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
		t.Fatalf("status %d, no JSON: %v: %.400s", r.Status, err, r.Body)
	}
	return m
}

// An SSE is one server-sent event.
type SSE struct {
	Name string
	Data string
}

// Events splits a stream of server-sent events; comments are left out.
func (r Reply) Events(t testing.TB) []SSE {
	t.Helper()
	var out []SSE
	for block := range strings.SplitSeq(r.Body, "\n\n") {
		var e SSE
		seen := false
		for line := range strings.SplitSeq(block, "\n") {
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				e.Name, seen = v, true
			} else if v, ok := strings.CutPrefix(line, "data: "); ok {
				e.Data, seen = e.Data+v, true
			} else if line != "" && !strings.HasPrefix(line, ":") {
				t.Fatalf("a line that is no event: %q", line)
			}
		}
		if seen {
			out = append(out, e)
		}
	}
	return out
}

// Do sends a request; body is JSON text, or "" for none. Headers are pairs of name and value.
func (w *World) Do(t testing.TB, method, path, body string, headers ...string) Reply {
	t.Helper()
	r, err := w.Send(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Send is Do with a context and an error.
func (w *World) Send(ctx context.Context, method, path, body string, headers ...string) (Reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.URL+path, strings.NewReader(body))
	if err != nil {
		return Reply{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return Reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return Reply{res.StatusCode, res.Header, string(b), res.Trailer}, err
}

// Post sends JSON.
func (w *World) Post(t testing.TB, path, body string, headers ...string) Reply {
	t.Helper()
	return w.Do(t, http.MethodPost, path, body, headers...)
}

// ToolCall is what a model of the Hermes family writes to call a tool.
func ToolCall(name, arguments string) string {
	return fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", name, arguments)
}
