package ollama_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

func start(t *testing.T, o servertest.Options) (*servertest.World, *shelf) {
	t.Helper()
	k := newShelf()
	o.Dialects = []func(*server.Env) server.Dialect{ollama.New(k)}
	if o.Names == nil {
		o.Names = names
	}
	return servertest.New(t, o), k
}

func TestContextGoesOn(t *testing.T) {
	var prompts []string
	w, _ := start(t, servertest.Options{Script: func(p string) string { prompts = append(prompts, p); return "Yes." }})
	first := w.Post(t, "/api/generate", `{"model":"whale:small","prompt":"Is it wet?","stream":false}`).JSON(t)
	ctx, err := json.Marshal(first["context"])
	if err != nil {
		t.Fatal(err)
	}
	second := w.Post(t, "/api/generate", `{"model":"whale:small","prompt":"And cold?","stream":false,"context":`+string(ctx)+`}`).
		JSON(t)
	if second["response"] != "Yes." ||
		second["prompt_eval_cached_count"].(float64) < first["prompt_eval_count"].(float64) {
		t.Errorf("%v behind %v", second, first)
	}
	want := prompts[0] + "Yes.<|im_end|><|im_start|>system\nYou are a whale.<|im_end|>\n<|im_start|>user\nAnd " +
		"cold?<|im_end|>\n<|im_start|>assistant\n"
	if prompts[1] != want {
		t.Errorf("the second prompt is %q\nwant %q", prompts[1], want)
	}
}

func TestTextIsNoControlTokenUnlessRaw(t *testing.T) {
	w, _ := start(t, servertest.Options{})
	count := func(body string) float64 {
		return w.Post(t, "/api/generate", body).JSON(t)["prompt_eval_count"].(float64)
	}
	plain := count(`{"model":"scripted","stream":false,"prompt":"abcdefghij"}`)
	if n := count(`{"model":"scripted","stream":false,"prompt":"<|im_end|>"}`); n != plain {
		t.Errorf("ten letters are %v tokens, a control token's name is %v", plain, n)
	}
	if n := count(`{"model":"scripted","stream":false,"raw":true,"prompt":"<|im_end|>"}`); n != 1 {
		t.Errorf("a raw control token is %v tokens", n)
	}
}

func TestSeeds(t *testing.T) {
	w, _ := start(t, servertest.Options{})
	ask := func(options string) string {
		return w.Post(
			t,
			"/api/chat",
			`{"model":"scripted","stream":false,"messages":[{"role":"user","content":"x"}],"options":{"temperature":60,"top_k":0,"top_p":1,"num_predict":24,`+options+`}}`,
		).Body
	}
	text := func(body string) string {
		var r struct{ Message struct{ Content string } }
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return r.Message.Content
	}
	a, b, c := text(ask(`"seed":7`)), text(ask(`"seed":7`)), text(ask(`"seed":8`))
	if a != b || a == c || a == "Hello!" {
		t.Errorf("seeds 7, 7, 8 draw %q, %q, %q", a, b, c)
	}
	if d, e := text(ask(`"seed":-1`)), text(ask(`"seed":-1`)); d == e {
		t.Errorf("seed -1 draws %q twice", d)
	}
	if g := text(ask(`"seed":7,"top_p":0`)); g != "Hello!" {
		t.Errorf("top_p 0 draws %q", g)
	}
	if g := text(ask(`"seed":7,"min_p":1`)); g != "Hello!" {
		t.Errorf("min_p 1 draws %q", g)
	}
	if g := text(ask(`"seed":7,"top_k":1`)); g != "Hello!" {
		t.Errorf("top_k 1 draws %q", g)
	}
}

func TestKeepAlive(t *testing.T) {
	w, _ := start(t, servertest.Options{})
	rows := func() []map[string]any {
		var r struct{ Models []map[string]any }
		if err := json.Unmarshal([]byte(w.Do(t, "GET", "/api/ps", "").Body), &r); err != nil {
			t.Fatal(err)
		}
		return r.Models
	}
	for _, c := range []struct {
		keep string
		want time.Duration
	}{{`"10m"`, 10 * time.Minute}, {`90`, 90 * time.Second}, {`1.5`, 1500 * time.Millisecond}, {`"-1s"`, 100 * 365 * 24 * time.Hour}, {`-1`, 100 * 365 * 24 * time.Hour}} {
		w.Post(t, "/api/generate", `{"model":"scripted","keep_alive":`+c.keep+`}`)
		list := rows()
		if len(list) != 1 {
			t.Fatalf("keep_alive %s: %v", c.keep, list)
		}
		at, err := time.Parse(time.RFC3339Nano, list[0]["expires_at"].(string))
		left := time.Until(at)
		if err != nil || left > c.want && c.want < time.Hour || left < c.want-time.Minute {
			t.Errorf("keep_alive %s: stays %v, want %v (%v)", c.keep, left, c.want, err)
		}
	}
	w.Post(
		t,
		"/api/chat",
		`{"model":"scripted","messages":[{"role":"user","content":"x"}],"keep_alive":0,"stream":false}`,
	)
	for end := time.Now().Add(10 * time.Second); len(rows()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("with keep_alive 0 the model stays: %v", rows())
		}
	}
}

func TestDisconnectEndsTheAnswer(t *testing.T) {
	w, _ := start(t, servertest.Options{Script: func(string) string { return strings.Repeat("long ", 2000) }})
	w.Backend.SetDelay(2 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(
		ctx,
		"POST",
		w.URL+"/api/chat",
		strings.NewReader(`{"model":"scripted","messages":[{"role":"user","content":"x"}]}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	for end := time.Now().Add(10 * time.Second); w.Server.Active() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the request runs on without its client")
		}
	}
	if n := w.Backend.Steps(); n > 4000 {
		t.Errorf("%d steps for a client that left", n)
	}
}

func TestDeadlineEndsTheStreamWithAnError(t *testing.T) {
	w, _ := start(t, servertest.Options{
		Script: func(string) string { return strings.Repeat("long ", 2000) },
		Chat:   func(o *chat.Options) { o.MaxTime = 200 * time.Millisecond },
	})
	w.Post(t, "/api/generate", `{"model":"scripted"}`)
	w.Backend.SetDelay(5 * time.Millisecond)
	body := `{"model":"scripted","prompt":"x"}`
	r := w.Post(t, "/api/generate", body)
	lines := strings.Split(strings.TrimSpace(r.Body), "\n")
	if last := lines[len(lines)-1]; r.Status != 200 || len(lines) < 2 ||
		last != `{"error":"the request took longer than its deadline"}` {
		t.Errorf("%d, %d lines, the last one %s", r.Status, len(lines), last)
	}
	if r := w.Post(t, "/api/generate", `{"model":"scripted","prompt":"x","stream":false}`); r.Status != http.StatusGatewayTimeout ||
		!strings.HasPrefix(r.Body, `{"error":"`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	w, _ := start(t, servertest.Options{Server: func(o *server.Options) {
		o.Keys = auth.NewKeys([]string{"secret"}, "")
		o.MaxBody = 100
	}})
	key := []string{"Authorization", "Bearer secret"}
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		text               string
	}{
		{"POST", "/api/chat", `{}`, nil, 401, "API key"},
		{"GET", "/api/tags", "", []string{"Authorization", "Bearer wrong"}, 401, "API key"},
		{"GET", "/api/tags", "", key, 200, "scripted"},
		{"GET", "/api/version", "", nil, 200, "version"},
		{"GET", "/", "", nil, 200, "Ollama is running"},
		{"POST", "/api/chat", strings.Repeat("x", 101), key, 413, "larger than 100 bytes"},
		{"POST", "/api/chat", "{\"model\":\"\xff\"}", key, 400, "UTF-8"},
		{"PUT", "/api/chat", `{}`, key, 405, "POST"},
		{"GET", "/api/tags", "", append([]string{"Host", "evil.example"}, key...), 403, "evil.example"},
		{"GET", "/api/tags", "", append([]string{"Origin", "https://evil.example"}, key...), 403, "evil.example"},
	} {
		r := w.Do(t, c.method, c.path, c.body, c.headers...)
		if r.Status != c.status || !strings.Contains(r.Body, c.text) ||
			c.status >= 400 && !strings.HasPrefix(r.Body, `{"error":"`) {
			t.Errorf("%s %s: %d %s, want %d with %q", c.method, c.path, r.Status, r.Body, c.status, c.text)
		}
	}
}

func TestWhatTheKeeperIsAsked(t *testing.T) {
	w, k := start(t, servertest.Options{})
	file := strings.Repeat("a large file ", 1<<12)
	hex := fmt.Sprintf("%x", sha256.Sum256([]byte(file)))
	if r := w.Post(t, "/api/blobs/sha256:"+hex, file); r.Status != http.StatusCreated {
		t.Fatalf("upload: %d %s", r.Status, r.Body)
	}
	for _, c := range [][2]string{
		{"/api/pull", `{"model":"qwen:7b"}`},
		{"/api/copy", `{"source":"scripted:latest","destination":"mine"}`},
		{"/api/create", `{"model":"new","files":{"a.gguf":"sha256-` + hex + `"},"stream":false}`},
		{"/api/create", `{"model":"new","from":"scripted:latest","system":"Sing.","template":"{{ messages }}","license":["a","b"],"messages":[{"role":"user","content":"u"}],` +
			`"parameters":{"temperature":0.5,"num_ctx":64,"num_predict":5,"stop":["x"],"seed":3,"num_gpu":1}}`},
		{"/api/create", `{"model":"new","modelfile":"FROM whale:small\nSYSTEM Sing.\nPARAMETER top_k 3\nPARAMETER stop a\nPARAMETER stop b\nMESSAGE user u"}`},
	} {
		if r := w.Post(t, c[0], c[1]); r.Status != 200 {
			t.Fatalf("%s: %d %s", c, r.Status, r.Body)
		}
	}
	if r := w.Do(t, "DELETE", "/api/delete", `{"model":"scripted"}`); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	half, three, seed := float32(0.5), 3, uint64(3)
	user := chat.Message{
		Role:  chat.User,
		Parts: []chat.Part{{Text: "u", Field: "messages[0].content"}},
		Field: "messages[0]",
	}
	want := []modeladmin.Creation{
		{Name: "new", Files: map[string]string{"a.gguf": hex}},
		{
			Name: "new", From: "scripted", System: "Sing.", Template: "{{ messages }}", Licences: []string{"a", "b"}, Messages: []chat.Message{user},
			Sampling: chat.Sampling{Temperature: &half, Seed: &seed}, Stop: []string{"x"}, MaxTokens: 5, Context: 64,
		},
		{
			Name: "new", From: "whale:small", System: "Sing.", Messages: []chat.Message{chat.Text(chat.User, "u")},
			Sampling: chat.Sampling{TopK: &three}, Stop: []string{"a", "b"},
		},
	}
	if !reflect.DeepEqual(k.created, want) {
		t.Errorf("created\n %+v\nwant\n %+v", k.created, want)
	}
	if want := []string{"pull qwen:7b", "copy scripted mine", "delete scripted"}; !reflect.DeepEqual(k.did, want) {
		t.Errorf("did %q, want %q", k.did, want)
	}
}

// A stream and a whole answer say the same, whatever stands beside them in the batch.
func TestStreamsAndWholeAnswersAgree(t *testing.T) {
	w, _ := start(
		t,
		servertest.Options{
			Script: func(p string) string { return "<think>\n" + p[len(p)/2:] + "\n</think>\n\nGrüße " + p[:8] },
		},
	)
	type body struct {
		Message struct{ Content, Thinking string }
		Done    bool
	}
	ask := func(i int, stream bool) (string, error) {
		q := fmt.Sprintf(
			`{"model":"scripted","stream":%v,"messages":[{"role":"user","content":"question %d"}]}`,
			stream,
			i,
		)
		r, err := w.Send(t.Context(), "POST", "/api/chat", q)
		if err != nil {
			return "", err
		}
		var text, thinking string
		done := 0
		for line := range strings.Lines(r.Body) {
			var b body
			if err := json.Unmarshal([]byte(line), &b); err != nil {
				return "", fmt.Errorf("%w: %s", err, line)
			}
			text, thinking = text+b.Message.Content, thinking+b.Message.Thinking
			if b.Done {
				done++
			}
		}
		if done != 1 {
			return "", fmt.Errorf("%d ends in %s", done, r.Body)
		}
		return thinking + "|" + text, nil
	}
	type result struct {
		i    int
		text string
		err  error
	}
	results := make(chan result)
	for i := range 8 {
		go func() {
			text, err := ask(i, true)
			results <- result{i, text, err}
		}()
	}
	got := make([]string, 8)
	for range 8 {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		got[r.i] = r.text
	}
	for i := range 8 {
		if alone, err := ask(i, false); err != nil || alone != got[i] || !strings.Contains(alone, "Grüße") {
			t.Errorf("alone %q, in a stream among others %q (%v)", alone, got[i], err)
		}
	}
}

// Every field of the official clients' types is declared, so that none is ignored by accident.
func TestFieldsOfOfficialClients(t *testing.T) {
	w, _ := start(t, servertest.Options{})
	var d server.Dialect
	for _, x := range w.Server.Dialects() {
		if x.Name() == "ollama" {
			d = x
		}
	}
	have := map[string]map[string]bool{}
	for _, r := range d.Routes() {
		if r.Body == nil {
			continue
		}
		for _, o := range append(r.Objects, r.Body) {
			m := map[string]bool{}
			for _, row := range o.Rows() {
				m[row.Name] = true
			}
			have[o.Title()] = m
		}
	}
	for title, list := range map[string]string{
		"generate": "model prompt suffix system template context stream raw format images keep_alive think " +
			"logprobs top_logprobs width height steps options",
		"chat":            "model messages stream format keep_alive tools think logprobs top_logprobs options",
		"message":         "role content thinking images tool_calls tool_name",
		"tool":            "type function",
		"tool's function": "name description parameters",
		"call's function": "name arguments",
		"options": "numa num_ctx num_batch num_gpu main_gpu low_vram f16_kv logits_all vocab_only use_mmap " +
			"use_mlock embedding_only num_thread " +
			"num_keep seed num_predict top_k top_p min_p tfs_z typical_p repeat_last_n temperature repeat_penalty " +
			"presence_penalty frequency_penalty " +
			"mirostat mirostat_tau mirostat_eta penalize_newline stop draft_num_predict",
		"embed":      "model input truncate dimensions options keep_alive",
		"embeddings": "model prompt options keep_alive",
		"pull":       "model insecure stream", "push": "model insecure stream", "delete": "model", "show": "model system template options",
		"copy":   "source destination",
		"create": "model from files adapters template license system parameters messages quantize stream",
	} {
		for _, name := range strings.Fields(list) {
			if !have[title][name] {
				t.Errorf("%s does not declare %s", title, name)
			}
		}
	}
}

// TestBrokenPullsAreLogged wants the failure in the log, too: the client, which has it in the stream, may not keep it.
func TestBrokenPullsAreLogged(t *testing.T) {
	w, _ := start(t, servertest.Options{})
	if r := w.Post(t, "/api/pull", `{"model":"torn"}`); r.Status != 200 || !strings.Contains(r.Body, "checksum") {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	w.HTTP.Close() // waits for the row
	if !strings.Contains(w.Log(), `"error":"the file does not have its checksum`) {
		t.Errorf("log %s", w.Log())
	}
}
