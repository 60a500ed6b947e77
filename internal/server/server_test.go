package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

var both = []func(*server.Env) server.Dialect{openai.New}

func world(t *testing.T, o servertest.Options) *servertest.World {
	t.Helper()
	o.Dialects = append(o.Dialects, both...)
	if o.Script == nil {
		o.Script = servertest.Demo
	}
	return servertest.New(t, o)
}

const (
	chatPath = "/v1/chat/completions"
	hello    = `{"model":"scripted","messages":[{"role":"user","content":"hi"}]}`
	counting = `{"model":"scripted","messages":[{"role":"user","content":"COUNT"}],"stream":true}`
)

func TestRefusalsAreOfTheDialect(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "keys.json")
	watch, err := auth.Add(keyFile, "watcher", []auth.Scope{auth.Watch})
	if err != nil {
		t.Fatal(err)
	}
	w := world(t, servertest.Options{Server: func(o *server.Options) {
		o.Keys = auth.NewKeys([]string{"secret-key"}, keyFile)
		o.MaxBody = 1000
		o.Hosts = auth.Hosts{Names: []string{"llm.example.org"}, Origins: []string{"https://good.example.org"}}
	}})
	ok := []string{"Authorization", "Bearer secret-key"}
	with := func(more ...string) []string { return append(append([]string{}, ok...), more...) }
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     string
	}{
		{"a good request", "POST", chatPath, hello, ok, 200, ""},
		{"the key as x-api-key", "POST", chatPath, hello, []string{"x-api-key", "secret-key"}, 200, ""},
		{"the key as api-key", "POST", chatPath, hello, []string{"api-key", "secret-key"}, 200, ""},
		{"no key", "POST", chatPath, hello, nil, 401, "invalid_api_key"},
		{"a wrong key", "POST", chatPath, hello, []string{"Authorization", "Bearer secret-kez"}, 401, "invalid_api_key"},
		{"a key without the scope", "POST", chatPath, hello, []string{"Authorization", "Bearer " + watch}, 403, "permission_denied"},
		{"a known name", "POST", chatPath, hello, with("Host", "llm.example.org:80"), 200, ""},
		{"a foreign name", "POST", chatPath, hello, with("Host", "evil.example.org"), 403, "permission_denied"},
		{"an address when only names are allowed", "POST", chatPath, hello, with("Host", "192.0.2.1"), 403, "permission_denied"},
		{"a page of the server itself", "POST", chatPath, hello, with("Host", "localhost:9", "Origin", "http://localhost:9"), 200, ""},
		{"a foreign page", "POST", chatPath, hello, with("Origin", "http://evil.example.org"), 403, "permission_denied"},
		{"a page of another port", "POST", chatPath, hello, with("Host", "localhost:9", "Origin", "http://localhost:10"), 403, "permission_denied"},
		{"a sandboxed page", "POST", chatPath, hello, with("Origin", "null"), 403, "permission_denied"},
		{"a named page", "POST", chatPath, hello, with("Origin", "https://good.example.org"), 200, ""},
		{"an unknown route", "GET", "/v1/nothing", "", ok, 404, "not_found"},
		{"a path that is not clean", "GET", "/v1//models", "", ok, 404, "not_found"},
		{"another method", "PUT", chatPath, hello, ok, 405, "method_not_allowed"},
		{"no body", "POST", chatPath, "", ok, 400, "invalid_value"},
		{"bad JSON", "POST", chatPath, `{"model": }`, ok, 400, "invalid_value"},
		{"a list", "POST", chatPath, `[]`, ok, 400, "invalid_value"},
		{"no UTF-8", "POST", chatPath, "{\"model\":\"\xff\"}", ok, 400, "invalid_value"},
		{"a large body", "POST", chatPath, `{"model":"` + strings.Repeat("x", 1000) + `"}`, ok, 413, "request_too_large"},
		{"an unknown model", "POST", chatPath, strings.Replace(hello, "scripted", "nope", 1), ok, 404, "model_not_found"},
		{"an unknown encoding", "POST", chatPath, hello, with("Content-Encoding", "br"), 400, "invalid_value"},
		{"no gzip", "POST", chatPath, hello, with("Content-Encoding", "gzip"), 400, "invalid_value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := w.Do(t, c.method, c.path, c.body, c.headers...)
			if r.Status != c.status {
				t.Fatalf("status %d, want %d: %s", r.Status, c.status, r.Body)
			}
			if r.Header.Get("X-Request-Id") == "" {
				t.Error("no request id")
			}
			if c.code == "" {
				return
			}
			e, _ := r.JSON(t)["error"].(map[string]any)
			if e["code"] != c.code || e["message"] == "" || e["type"] == nil {
				t.Errorf("got %v, want code %s", e, c.code)
			}
		})
	}
	r := w.Do(
		t,
		"OPTIONS",
		chatPath,
		"",
		"Origin",
		"https://good.example.org",
		"Access-Control-Request-Method",
		"POST",
		"Access-Control-Request-Headers",
		"authorization",
	)
	if r.Status != 204 || r.Header.Get("Access-Control-Allow-Origin") != "https://good.example.org" ||
		r.Header.Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("preflight: %d %v", r.Status, r.Header)
	}
	if r := w.Do(t, "OPTIONS", chatPath, "", "Origin", "https://evil.example.org", "Access-Control-Request-Method", "POST"); r.Status != 403 ||
		r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("foreign preflight: %d %v", r.Status, r.Header)
	}
	if r := w.Do(t, "PUT", chatPath, hello, ok...); r.Header.Get("Allow") != "POST" {
		t.Errorf("Allow %q", r.Header.Get("Allow"))
	}
	if r := w.Do(t, "GET", "/metrics", "", "Authorization", "Bearer "+watch); r.Status != 200 {
		t.Errorf("metrics with the scope: %d", r.Status)
	}
	if err := os.WriteFile(keyFile, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.Do(t, "POST", chatPath, hello, ok...); r.Status != 503 {
		t.Errorf("with a damaged key file everybody stays out: got %d", r.Status)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("did not happen: %s", what)
}

func TestDisconnectCancels(t *testing.T) {
	w := world(t, servertest.Options{})
	w.Backend.SetDelay(5 * time.Millisecond)
	for _, stream := range []string{"true", "false"} {
		ctx, cancel := context.WithCancel(t.Context())
		body := strings.Replace(counting, `"stream":true`, `"stream":`+stream, 1)
		done := make(chan error, 1)
		go func() { _, err := w.Send(ctx, "POST", chatPath, body); done <- err }()
		eventually(t, "the request runs", func() bool { return w.Server.Active() == 1 && w.Backend.Steps() > 10 })
		cancel()
		if err := <-done; err == nil {
			t.Fatal("the client was not cancelled")
		}
		eventually(t, "the request ends", func() bool { return w.Server.Active() == 0 })
		held(t, w) // the engine has nobody to make steps for
		eventually(t, "the log says so", func() bool { return strings.Contains(w.Log(), `"end":"cancelled"`) })
	}
}

// held checks that no page is held by anybody.
func held(t *testing.T, w *servertest.World) {
	t.Helper()
	l, err := w.Chat.Acquire(t.Context(), "scripted", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	eventually(t, "all pages are given back", func() bool {
		st := l.Model.Engine.Stats()
		return st.Running+st.Waiting+st.Swapped == 0 && st.Groups[0].Held == 0
	})
}

func TestDeadline(t *testing.T) {
	w := world(t, servertest.Options{Chat: func(o *chat.Options) { o.MaxTime = 150 * time.Millisecond }})
	w.Backend.SetDelay(5 * time.Millisecond)
	r := w.Post(t, chatPath, counting)
	ev := r.Events(t)
	if n := len(ev); r.Status != 200 || n < 5 || ev[n-1].Data != "[DONE]" ||
		!strings.Contains(ev[n-2].Data, `"code":"timeout"`) {
		t.Errorf("stream: %d %v", r.Status, ev[max(0, len(ev)-3):])
	}
	r = w.Post(t, chatPath, strings.Replace(counting, "true", "false", 1))
	if r.Status != 504 || !strings.Contains(r.Body, `"code":"timeout"`) {
		t.Errorf("whole: %d %s", r.Status, r.Body)
	}
	held(t, w)
}

func TestFailureInsideAStream(t *testing.T) {
	w := world(t, servertest.Options{})
	w.Backend.SetFail(func(_ string, written int) error {
		if written == 9 {
			return errors.New("out of luck")
		}
		return nil
	})
	ev := w.Post(t, chatPath, counting).Events(t)
	if n := len(ev); ev[n-1].Data != "[DONE]" || !strings.Contains(ev[n-2].Data, `"error"`) ||
		strings.Contains(ev[n-2].Data, "luck") {
		t.Errorf("%v", ev[len(ev)-2:])
	}
	if !strings.Contains(w.Log(), "out of luck") {
		t.Error("the log does not say what happened")
	}
	w.Backend.SetFail(nil)
	if r := w.Post(t, chatPath, hello); r.Status != 200 {
		t.Errorf("afterwards: %d %s", r.Status, r.Body)
	}
	held(t, w)
}

func TestFullQueue(t *testing.T) {
	w := world(t, servertest.Options{Model: func(o *model.Options) {
		o.Seqs = 1
		o.Tune = func(e *engine.Options) { e.MaxQueue = 1 }
	}})
	w.Backend.SetDelay(5 * time.Millisecond)
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 6 {
		wg.Go(func() {
			r, err := w.Send(
				t.Context(),
				"POST",
				chatPath,
				strings.Replace(counting, `"stream":true`, `"max_tokens":100`, 1),
			)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			statuses[r.Status]++
			if r.Status == 503 && r.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
	wg.Wait()
	if statuses[200] < 1 || statuses[503] < 1 || statuses[200]+statuses[503] != 6 {
		t.Errorf("%v", statuses)
	}
}

// TestAnswersGoOnBeforeOthersBegin ends an answer's reasoning, for which it goes through the engine's queue again,
// while that is full. It goes on before those that were there.
func TestAnswersGoOnBeforeOthersBegin(t *testing.T) {
	w := world(t, servertest.Options{
		Script: func(p string) string {
			if strings.Contains(p, "THINK") && !strings.HasSuffix(p, "</think>\n\n") {
				return "<think>\n" + strings.Repeat("endless thought ", 4000)
			}
			return strings.Repeat("answer ", 8)
		},
		Model: func(o *model.Options) {
			o.Seqs = 1
			o.Tune = func(e *engine.Options) { e.MaxQueue = 3 }
		},
	})
	w.Backend.SetDelay(2 * time.Millisecond)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var order []string
	ask := func(name, more string) {
		wg.Go(func() {
			body := strings.Replace(counting, "COUNT", name, 1)
			r, err := w.Send(t.Context(), "POST", chatPath, strings.Replace(body, `"stream":true`, more, 1))
			if err != nil || r.Status != 200 {
				t.Errorf("%s: %d %v %s", name, r.Status, err, r.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
		})
	}
	waiting := func(n int) func() bool {
		return func() bool {
			waits := 0
			w.Pool.Loaded(func(_ pool.Status, m *chat.Model) { waits = m.Engine.Stats().Waiting })
			return waits == n
		}
	}
	ask("THINK", `"thinking_budget":200`)
	eventually(t, "it thinks", func() bool { return w.Backend.Steps() > 10 })
	for i, name := range []string{"first", "second", "third"} {
		ask(name, `"n":1`)
		eventually(t, name+" waits", waiting(i+1))
	}
	wg.Wait()
	if len(order) != 4 || order[1] != "THINK" { // the first takes its place at once
		t.Errorf("%v", order)
	}
}

func TestTooManyRequests(t *testing.T) {
	w := world(t, servertest.Options{Server: func(o *server.Options) { o.MaxActive = 1 }})
	w.Backend.SetDelay(5 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	go w.Send(ctx, "POST", chatPath, counting) //nolint:errcheck // it is cancelled
	eventually(t, "one runs", func() bool { return w.Server.Active() == 1 })
	if r := w.Post(t, chatPath, hello); r.Status != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	if r := w.Do(t, "GET", "/healthz", ""); r.Status != 200 {
		t.Errorf("health: %d", r.Status)
	}
	cancel()
	eventually(t, "it ends", func() bool { return w.Server.Active() == 0 })
}

func TestStoppingLetsStreamsEnd(t *testing.T) {
	w := world(t, servertest.Options{})
	w.Backend.SetDelay(2 * time.Millisecond)
	got := make(chan servertest.Reply, 1)
	go func() {
		r, _ := w.Send(
			t.Context(),
			"POST",
			chatPath,
			strings.Replace(counting, `"stream":true`, `"stream":true,"max_tokens":200`, 1),
		)
		got <- r
	}()
	eventually(t, "it runs", func() bool { return w.Backend.Steps() > 5 })
	w.Server.Stop()
	if r := w.Post(t, chatPath, hello); r.Status != 503 {
		t.Errorf("a new request: %d", r.Status)
	}
	if r := w.Do(t, "GET", "/readyz", ""); r.Status != 503 {
		t.Errorf("readyz: %d", r.Status)
	}
	r := <-got
	if ev := r.Events(t); ev[len(ev)-1].Data != "[DONE]" ||
		!strings.Contains(ev[len(ev)-2].Data, `"finish_reason":"length"`) {
		t.Errorf("the running stream did not end well: %v", ev[len(ev)-2:])
	}
}

// panics is a dialect that fails.
type panics struct{}

func (panics) Name() string             { return "panics" }
func (panics) Claims(*http.Request) int { return 0 }
func (panics) ErrorBody() any           { return nil }
func (panics) WriteError(w http.ResponseWriter, _ *http.Request, e *chat.Error) {
	http.Error(w, e.Message(), server.Status(e))
}

func (panics) Routes() []server.Route {
	return []server.Route{{Method: "GET", Path: "/panic", Handle: func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.RawQuery == "late" {
			fmt.Fprint(w, "begun")
			w.(http.Flusher).Flush()
		}
		panic("secret detail")
	}}}
}

func TestPanicsAreContained(t *testing.T) {
	w := world(
		t,
		servertest.Options{
			Dialects: []func(*server.Env) server.Dialect{func(*server.Env) server.Dialect { return panics{} }},
		},
	)
	r := w.Do(t, "GET", "/panic", "")
	if r.Status != 500 || strings.Contains(r.Body, "secret") || !strings.Contains(w.Log(), "secret detail") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	if r := w.Do(t, "GET", "/healthz", ""); r.Status != 200 {
		t.Errorf("afterwards: %d", r.Status)
	}
}

// rawClient connects to a world with as little between as possible.
func rawClient(t *testing.T, w *servertest.World) *net.TCPConn {
	t.Helper()
	srv := &http.Server{Handler: w.Server, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		c.(*net.TCPConn).SetWriteBuffer(4096) //nolint:errcheck // only makes the test quicker
		return ctx
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l) //nolint:errcheck // ends with Close
	t.Cleanup(func() { srv.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	tcp := c.(*net.TCPConn)
	tcp.SetReadBuffer(4096) //nolint:errcheck // only makes the test quicker
	return tcp
}

// TestNoKeyIsLeft asks a server that other machines reach when its last key was revoked.
func TestNoKeyIsLeft(t *testing.T) {
	keys := auth.NewKeys(nil, filepath.Join(t.TempDir(), "keys.json"))
	keys.Demand()
	w := world(t, servertest.Options{Server: func(o *server.Options) { o.Keys = keys }})
	if r := w.Post(t, chatPath, hello); r.Status != http.StatusUnauthorized {
		t.Errorf("status %d: %s", r.Status, r.Body)
	}
}

func TestSlowReadersLoseTheirAnswers(t *testing.T) {
	w := world(t, servertest.Options{Server: func(o *server.Options) { o.WriteTimeout = 100 * time.Millisecond }})
	for _, more := range []string{`"stream":true,"n":16`, `"stream":false,"n":4,"logprobs":true,"top_logprobs":20`} {
		c := rawClient(t, w)
		body := strings.Replace(counting, `"stream":true`, more, 1)
		fmt.Fprintf(
			c,
			"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			chatPath,
			len(body),
			body,
		)
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the server gives up", func() bool { return w.Server.Active() == 0 })
		c.Close()
		held(t, w)
	}
	if !strings.Contains(w.Log(), "stopped reading") {
		t.Error("the log does not say why")
	}
}

// TestPausesInAStream makes a model slower than a client may take to read a piece. Over HTTP/2 a deadline for writing
// ends a stream when it passes, whether something is being written or not.
func TestPausesInAStream(t *testing.T) {
	w := world(t, servertest.Options{Server: func(o *server.Options) { o.WriteTimeout = 100 * time.Millisecond }})
	h2 := httptest.NewUnstartedServer(w.Server)
	h2.EnableHTTP2 = true
	h2.StartTLS()
	defer h2.Close()
	w.Backend.SetDelay(250 * time.Millisecond)
	for _, c := range []struct {
		client *http.Client
		url    string
		major  int
	}{{h2.Client(), h2.URL, 2}, {http.DefaultClient, w.URL, 1}} {
		body := `{"model":"scripted","prompt":"hi","max_tokens":3,"stream":true}`
		res, err := c.client.Post(c.url+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.HasSuffix(string(text), "data: [DONE]\n\n") || res.ProtoMajor != c.major {
			t.Errorf("%s: %v: %s", res.Proto, err, text)
		}
	}
}

func TestSlowSendersAreRefused(t *testing.T) {
	w := world(t, servertest.Options{Server: func(o *server.Options) { o.BodyTimeout = 100 * time.Millisecond }})
	for header, begin := range map[string]string{"Content-Type: application/json": `{"model":`, "Content-Encoding: gzip": "\x1f"} {
		c := rawClient(t, w)
		fmt.Fprintf(
			c,
			"POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: 1000\r\n\r\n%s",
			chatPath,
			header,
			begin,
		)
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.Contains(line, "408") {
			t.Errorf("%s: %q %v", header, line, err)
		}
		eventually(t, "the request ends", func() bool { return w.Server.Active() == 0 })
	}
	for path, status := range map[string]string{"/v1/nothing": "404", "/healthz": "405"} { // nobody reads these bodies
		c := rawClient(t, w)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", path)
		if err := c.SetReadDeadline(time.Now().Add(8 * time.Second)); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.Contains(line, status) {
			t.Errorf("%s: %q %v", path, line, err)
		}
	}
}

// TestClientsErrorsAreTheirs wants no error with a status of the client's to be called one of the server.
func TestClientsErrorsAreTheirs(t *testing.T) {
	for k := chat.Internal; k < chat.Upstream; k++ { // that is of routes that fetch
		e := &chat.Error{Kind: k}
		if status := server.Status(e); status < 400 || status >= 499 {
			continue
		}
		for name, d := range map[string]server.Dialect{"openai": openai.New(&server.Env{}), "anthropic": anthropic.New(&server.Env{})} {
			w := httptest.NewRecorder()
			d.WriteError(w, httptest.NewRequest("POST", "/", nil), e)
			if strings.Contains(w.Body.String(), `"server_error"`) || strings.Contains(w.Body.String(), `"api_error"`) {
				t.Errorf("%s: %s: %d %s", name, k, w.Code, w.Body)
			}
		}
	}
}

func TestEndThinkingInALiveStream(t *testing.T) {
	w := world(t, servertest.Options{Script: func(p string) string {
		if strings.HasSuffix(p, "</think>\n\n") {
			return "Short answer."
		}
		return "<think>\n" + strings.Repeat("endless thought ", 4000)
	}})
	w.Backend.SetDelay(2 * time.Millisecond)
	got := make(chan servertest.Reply, 1)
	go func() {
		r, _ := w.Send(
			t.Context(),
			"POST",
			chatPath,
			strings.Replace(counting, "COUNT", "x", 1),
			"X-Request-Id",
			"my-request",
		)
		got <- r
	}()
	eventually(t, "it thinks", func() bool { return w.Backend.Steps() > 20 })
	if r := w.Post(t, "/baleen/requests/my-request/end-thinking", ""); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	r := <-got
	text := ""
	for _, e := range r.Events(t) {
		var c struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if json.Unmarshal([]byte(e.Data), &c) == nil && len(c.Choices) > 0 {
			text += c.Choices[0].Delta.Content
		}
	}
	if strings.TrimSpace(text) != "Short answer." || r.Header.Get("X-Request-Id") != "my-request" {
		t.Errorf("%q", text)
	}
	if r := w.Post(t, "/baleen/requests/my-request/end-thinking", ""); r.Status != 404 {
		t.Errorf("after its end: %d", r.Status)
	}
}

// TestEndThinkingIsTheCallersOwn has three requests think under one id, of which one is another key's. Each key ends
// its own, all of them, and nobody else's.
func TestEndThinkingIsTheCallersOwn(t *testing.T) {
	w := world(t, servertest.Options{
		Script: func(p string) string {
			if strings.HasSuffix(p, "</think>\n\n") {
				return "Short answer."
			}
			return "<think>\n" + strings.Repeat("endless thought ", 1000)
		},
		Server: func(o *server.Options) { o.Keys = auth.NewKeys([]string{"key-a", "key-b", "key-c"}, "") },
	})
	w.Backend.SetDelay(2 * time.Millisecond)
	const end = "/baleen/requests/same/end-thinking"
	send := func(key string) <-chan string {
		got, from := make(chan string, 1), w.Backend.Steps()
		go func() {
			r, _ := w.Send(t.Context(), "POST", chatPath, hello, "X-Request-Id", "same", "Authorization", "Bearer "+key)
			got <- r.Body
		}()
		eventually(t, "it thinks", func() bool { return w.Backend.Steps() > from+20 })
		return got
	}
	running := func(got <-chan string) bool {
		select {
		case body := <-got:
			t.Logf("%.300s", body)
			return false
		default:
			return true
		}
	}
	short := func(got <-chan string) {
		t.Helper()
		if body := <-got; !strings.Contains(body, "Short answer.") || strings.Count(body, "endless") > 900 {
			t.Errorf("%.300s", body)
		}
	}
	first, second, other := send("key-a"), send("key-a"), send("key-b")
	if r := w.Post(t, end, "", "Authorization", "Bearer key-c"); r.Status != 404 {
		t.Errorf("a key without requests: %d %s", r.Status, r.Body)
	}
	if r := w.Post(t, end, "", "Authorization", "Bearer key-a"); r.Status != 200 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	short(first)
	short(second)
	if !running(other) {
		t.Error("the request of another key ended, too")
	}
	if r := w.Post(t, end, "", "Authorization", "Bearer key-b"); r.Status != 200 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	short(other)
	if r := w.Post(t, end, "", "Authorization", "Bearer key-b"); r.Status != 404 {
		t.Errorf("after its end: %d", r.Status)
	}
}

func TestRecords(t *testing.T) {
	dir := t.TempDir()
	w := world(t, servertest.Options{Server: func(o *server.Options) { o.RecordDir = dir }})
	w.Post(t, chatPath, strings.Replace(hello, "hi", "THINK", 1), "Authorization", "Bearer do-not-keep")
	var list []string
	eventually(t, "the record is there", func() bool {
		list, _ = filepath.Glob(filepath.Join(dir, "*", "response.txt"))
		return len(list) == 1
	})
	for name, want := range map[string]string{
		"request.json": "THINK", "prompt.txt": "<|im_start|>user\nTHINK", "output.txt": "<think>\nFour words", "response.txt": `"finish_reason":"stop"`, "headers.json": "(removed)",
	} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(list[0]), name))
		if err != nil || !strings.Contains(string(b), want) || strings.Contains(string(b), "do-not-keep") {
			t.Errorf("%s: %v %s", name, err, b)
		}
	}
}

// TestLostRecords wants a disk that takes nothing to be said, once a request, and requests to be answered.
func TestLostRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "records")
	var log lines
	w := world(t, servertest.Options{Server: func(o *server.Options) {
		o.RecordDir, o.Log = dir, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}})
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no folder can be made below a file
		t.Fatal(err)
	}
	for n := range 2 {
		if r := w.Post(t, chatPath, hello, "X-Request-Id", fmt.Sprint("lost-", n)); r.Status != 200 {
			t.Fatalf("status %d: %s", r.Status, r.Body)
		}
	}
	eventually(
		t,
		"both losses are logged",
		func() bool { return strings.Count(log.String(), "a part of a record is lost") >= 2 },
	)
	for n := range 2 {
		if got := strings.Count(log.String(), fmt.Sprint("request=lost-", n)); got != 1 {
			t.Errorf("request %d is in %d lines:\n%s", n, got, log.String())
		}
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), filepath.Base(dir)) ||
		!strings.Contains(log.String(), "error=") {
		t.Errorf("the log does not say what was lost and why: %s", log.String())
	}
	// The disk is mended: the next request is kept.
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	w.Post(t, chatPath, hello)
	eventually(t, "the record is there", func() bool {
		list, _ := filepath.Glob(filepath.Join(dir, "*", "response.txt"))
		return len(list) == 1
	})
}

// lines is a log that several may write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestMetricsAndDocuments(t *testing.T) {
	w := world(t, servertest.Options{})
	for range 2 {
		w.Post(t, chatPath, strings.Replace(hello, "hi", strings.Repeat("hi ", 30), 1))
	}
	body := w.Do(t, "GET", "/metrics", "").Body
	for _, want := range []string{
		`baleen_requests_total{route="POST /v1/chat/completions",code="200"} 2`, `baleen_generated_tokens_total{model="scripted"} 14`,
		`baleen_first_token_seconds_count{model="scripted"} 2`, `baleen_token_interval_seconds_bucket{model="scripted",le="+Inf"} 12`,
		`baleen_queue{model="scripted"} 0`, "baleen_models_bytes ", "baleen_active_requests 1",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if strings.Contains(body, `baleen_cached_tokens_total{model="scripted"} 0`) {
		t.Error("the second request had nothing from the cache")
	}
	doc := w.Do(t, "GET", "/openapi.json", "").JSON(t)
	paths, _ := doc["paths"].(map[string]any)
	for _, p := range []string{chatPath, "/v1/completions", "/v1/responses", "/v1/models/{model}", "/healthz"} {
		if paths[p] == nil {
			t.Errorf("the document lacks %s", p)
		}
	}
	text := w.Do(t, "GET", "/openapi.json", "").Body
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	refs := regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(text, -1)
	for _, m := range refs {
		if schemas[m[1]] == nil {
			t.Errorf("%s is referred to and not there", m[1])
		}
	}
	if len(refs) < 5 || strings.Contains(text, "x-object") {
		t.Errorf("%d references to objects", len(refs))
	}
	if !strings.Contains(w.Log(), `"prompt":`) || !strings.Contains(w.Log(), `"rate":`) {
		t.Errorf("the log row lacks counts: %s", w.Log())
	}
}

func TestManagement(t *testing.T) {
	w := world(t, servertest.Options{})
	w.Post(t, chatPath, hello)
	list, _ := w.Do(t, "GET", "/baleen/models", "").JSON(t)["models"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["name"] != "scripted" {
		t.Errorf("%v", list)
	}
	if r := w.Post(t, "/baleen/unload", `{"model":"scripted"}`); r.Status != 200 || !strings.Contains(r.Body, "true") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	eventually(t, "it is unloaded", func() bool { return len(w.Pool.Loaded(nil)) == 0 })
	if r := w.Post(t, "/baleen/unload", `{"model":"nope"}`); r.Status != 404 ||
		!strings.Contains(r.Body, `"kind":"unknown model"`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}
