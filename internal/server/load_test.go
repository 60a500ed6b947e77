package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/store"
)

const loadClients = 16

const forGood = time.Duration(-1) // keeps models loaded

// loadTime is how long a load runs: BALEEN_TEST_LOAD says it, such as 10m; the whole set of tests takes some seconds.
func loadTime(t *testing.T) time.Duration {
	if v := os.Getenv("BALEEN_TEST_LOAD"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if os.Getenv("BALEEN_TEST_MODELS") != "" {
		return 20 * time.Second
	}
	return 2 * time.Second
}

// TestLoadWithCancels has 16 clients ask in every dialect, hang up, make mistakes and ask again, and then accounts for
// everything: requests, generations, tokens, pages, leases, goroutines, files and memory. The cache is too small for
// all of them, so sequences are moved out and prefixes given up.
func TestLoadWithCancels(t *testing.T) {
	rows := newRowLog()
	w := world(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{anthropic.New, ollama.New(nil)},
		Model:    func(o *model.Options) { o.Context, o.CacheTokens = 4096, 4096 },
		Server:   func(o *server.Options) { o.MaxBody, o.Log = loadMaxBody, slog.New(rows) },
	})
	w.Backend.SetDelay(200 * time.Microsecond)
	w.Backend.SetFail(func(prompt string, written int) error {
		if written >= 3 && strings.Contains(servertest.LastTurn(prompt), "BREAK") {
			return servertest.ErrScripted
		}
		return nil
	})
	l := newLoad(t, w, rows, "scripted", true)
	l.run(t, loadTime(t))
	l.breaks(t)
	l.account(t)
}

// TestLoadOnRealModel is the same with a real model, which BALEEN_TEST_MODELS turns on; it must have been fetched.
func TestLoadOnRealModel(t *testing.T) {
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
	rows := newRowLog()
	w := world(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{anthropic.New, ollama.New(nil)},
		Names:    func(string) servertest.Names { return servertest.Names{{Name: "real", Path: m.Path}} },
		Server:   func(o *server.Options) { o.MaxBody, o.Log = loadMaxBody, slog.New(rows) },
		Chat: func(o *chat.Options) {
			l := &chat.Loader{Options: model.Options{Context: 4096, CacheTokens: 6144}}
			o.Pool = pool.New(pool.Options[*chat.Model]{Open: l.Open, KeepAlive: new(forGood)})
			t.Cleanup(func() { o.Pool.Close(context.Background()) }) //nolint:errcheck // the test is over
		},
	})
	l := newLoad(t, w, rows, "real", false)
	l.run(t, loadTime(t))
	l.account(t)
}

const loadMaxBody = 256 << 10

// A load is some clients' requests and what became of them.
type load struct {
	w        *servertest.World
	model    string
	scripted bool
	patience time.Duration // the longest of clients that hang up
	rows     *rowLog
	client   *http.Client
	http     *httptest.Server
	inWork   atomic.Int64 // handlers that have not returned

	sent, whole, hung atomic.Int64

	goroutines, files int
	heap, resident    int64
	heaps             []int64                             // of objects in use, after each part
	warm              struct{ resident, untouched int64 } // after a fifth of the time
	long              bool                                // long enough to tell growth from what a system does with memory
}

func newLoad(t *testing.T, w *servertest.World, rows *rowLog, name string, scripted bool) *load {
	t.Helper()
	l := &load{
		w: w, model: name, scripted: scripted, rows: rows,
		patience: 60 * time.Millisecond,
		client:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loadClients}},
	}
	if !scripted {
		l.patience = time.Second
	}
	l.http = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		l.inWork.Add(1)
		defer l.inWork.Add(-1)
		w.Server.ServeHTTP(rw, r)
	}))
	t.Cleanup(l.http.Close)
	if r, err := l.send(t.Context(), "warm", loadRequest{"POST", chatPath, fmt.Sprintf(`{"model":%q,"max_tokens":8,"messages":[{"role":"user","content":"hi"}]}`, name), 200, `"finish_reason"`}); err != nil ||
		r != "" {
		t.Fatal(err, r)
	}
	l.sent.Add(1)
	l.whole.Add(1)
	l.quiet(t)
	l.goroutines, l.files = runtime.NumGoroutine(), openFiles()
	l.heap, l.resident = heapBytes(), residentBytes()
	return l
}

// quiet waits until nothing runs, and takes stock of the log's rows.
func (l *load) quiet(t *testing.T) {
	t.Helper()
	eventually(t, "all requests end", func() bool { return l.w.Server.Active() == 0 && l.inWork.Load() == 0 })
	l.rows.settle()
	l.client.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
	l.http.CloseClientConnections()
	l.w.HTTP.CloseClientConnections()
}

// run has the clients ask, with a pause every half minute.
func (l *load) run(t *testing.T, took time.Duration) {
	begin := time.Now()
	end := begin.Add(took)
	l.long = took >= time.Minute
	for part := 0; time.Now().Before(end) && !t.Failed(); part++ {
		stop := time.Now().Add(min(took/5, 30*time.Second))
		l.round(t, part, earliest(stop, end))
		l.quiet(t)
		l.heaps = append(l.heaps, heapBytes())
		if l.warm.resident == 0 && time.Since(begin) >= took/5 {
			l.warm.resident, l.warm.untouched = residentBytes(), l.freePages(t)
		}
	}
	t.Logf("%d requests in %v, %d given up", l.sent.Load(), time.Since(begin).Round(time.Second), l.hung.Load())
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// freePages returns the bytes of pages that hold nothing: memory that a busier cache will take.
func (l *load) freePages(t *testing.T) (n int64) {
	t.Helper()
	lease, err := l.w.Chat.Acquire(t.Context(), l.model, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	for g, p := range lease.Model.Engine.Stats().Groups {
		n += int64(p.Free) * lease.Model.Memory.Page[g]
	}
	return n
}

// round lets all clients ask until the end.
func (l *load) round(t *testing.T, part int, end time.Time) {
	var wg sync.WaitGroup
	for client := range loadClients {
		rng := rand.New(rand.NewPCG(uint64(part), uint64(client)))
		wg.Go(func() {
			for n := 0; time.Now().Before(end) && !t.Failed(); n++ {
				l.one(t, rng, fmt.Sprintf("load-%d-%d-%d", part, client, n))
			}
		})
	}
	wg.Wait()
}

// one sends a request and looks at its answer, or hangs up meanwhile.
func (l *load) one(t *testing.T, rng *rand.Rand, id string) {
	q := l.request(rng)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if rng.IntN(3) == 0 {
		defer time.AfterFunc(time.Duration(rng.Int64N(int64(l.patience))), cancel).Stop()
	}
	l.sent.Add(1)
	wrong, err := l.send(ctx, id, q)
	switch {
	case ctx.Err() != nil && (err != nil || wrong != ""):
		l.hung.Add(1)
		l.rows.giveUp(id)
	case err != nil || wrong != "":
		t.Errorf("%s %s %s: %v %s\n%.300s", id, q.method, q.path, err, wrong, q.body)
	default:
		l.whole.Add(1)
	}
}

// A loadRequest says what is sent, and what its answer must have: a status, and what shows that it is whole.
type loadRequest struct {
	method, path, body string
	status             int
	end                string
}

// send gives what is wrong with the answer, or why there is none.
func (l *load) send(ctx context.Context, id string, q loadRequest) (wrong string, err error) {
	req, err := http.NewRequestWithContext(ctx, q.method, l.http.URL+q.path, strings.NewReader(q.body))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Request-Id", id)
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(q.path, "/v1/messages") {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	res, err := l.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode != q.status || !strings.Contains(string(b), q.end) {
		return fmt.Sprintf("status %d, want %d, without %s: %.400s", res.StatusCode, q.status, q.end, b), nil
	}
	return "", nil
}

const (
	openaiTools    = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
	responsesTools = `"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`
	anthropicTools = `"tools":[{"name":"get_weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}]`
)

// request makes one of all kinds of requests.
func (l *load) request(rng *rand.Rand) loadRequest {
	if rng.IntN(6) == 0 {
		return l.mistake(rng)
	}
	says := []string{"COUNT", "hi", "THINK", "UNICODE", "WEATHER"}[rng.IntN(5)] + " " + strings.Repeat(
		"water ",
		rng.IntN(100),
	)
	if rng.IntN(20) == 0 {
		says += strings.Repeat("x ", 1000) // a prompt of several chunks
	}
	stream, most := rng.IntN(2) == 0, 1+rng.IntN(120)
	if rng.IntN(8) == 0 {
		says, most = "COUNT "+says, 1000 // more than there was room for when it began
	}
	tools := ""
	with := func(t string) string {
		if rng.IntN(3) == 0 {
			tools = "," + t
		}
		return tools
	}
	m := fmt.Sprintf(`"model":%q,"stream":%v`, l.model, stream)
	messages := fmt.Sprintf(`"messages":[{"role":"user","content":%q}]`, says)
	switch rng.IntN(7) {
	case 0, 1:
		q := loadRequest{
			"POST",
			chatPath,
			fmt.Sprintf(
				`{%s,%s,"max_tokens":%d,"n":%d,"stop":["17 "]%s}`,
				m,
				messages,
				most,
				1+rng.IntN(3),
				with(openaiTools),
			),
			200,
			`"finish_reason":"`,
		}
		if stream {
			q.end = "[DONE]"
		}
		return q
	case 2:
		q := loadRequest{
			"POST",
			"/v1/completions",
			fmt.Sprintf(`{%s,"prompt":[%q,"a"],"max_tokens":%d,"logprobs":1}`, m, says, most),
			200,
			`"finish_reason":"`,
		}
		if stream {
			q.end = "[DONE]"
		}
		return q
	case 3:
		q := loadRequest{
			"POST",
			"/v1/responses",
			fmt.Sprintf(
				`{%s,"input":%q,"max_output_tokens":%d,"store":%v%s}`,
				m,
				says,
				16+most,
				rng.IntN(2) == 0,
				with(responsesTools),
			),
			200,
			`"output_tokens":`,
		}
		if stream {
			q.end = `"output_tokens":` // only the last event has it
		}
		return q
	case 4:
		if rng.IntN(4) == 0 {
			return loadRequest{
				"POST",
				"/v1/messages/count_tokens",
				fmt.Sprintf(`{"model":%q,%s%s}`, l.model, messages, with(anthropicTools)),
				200,
				`"input_tokens":`,
			}
		}
		q := loadRequest{
			"POST",
			"/v1/messages",
			fmt.Sprintf(`{%s,%s,"max_tokens":%d%s}`, m, messages, most, with(anthropicTools)),
			200,
			`"stop_reason":"`,
		}
		if stream {
			q.end = `"message_stop"`
		}
		return q
	case 5:
		return loadRequest{
			"POST",
			"/api/chat",
			fmt.Sprintf(`{%s,%s,"options":{"num_predict":%d}%s}`, m, messages, most, with(openaiTools)),
			200,
			`"done":true`,
		}
	}
	return loadRequest{
		"POST",
		"/api/generate",
		fmt.Sprintf(`{%s,"prompt":%q,"options":{"num_predict":%d}}`, m, says, most),
		200,
		`"done":true`,
	}
}

// mistake makes a request that must fail, in the right way.
func (l *load) mistake(rng *rand.Rand) loadRequest {
	ask := fmt.Sprintf(`"model":%q,"messages":[{"role":"user","content":"hi"}]`, l.model)
	long := fmt.Sprintf(`"model":%q,"messages":[{"role":"user","content":%q}]`, l.model, strings.Repeat("z9 ", 4500))
	list := []loadRequest{
		{"POST", chatPath, `{` + ask, 400, `"error"`},
		{"POST", chatPath, `{"model":"nobody","messages":[{"role":"user","content":"hi"}]}`, 404, `"model_not_found"`},
		{"POST", chatPath, `{` + ask + `,"temprature":1}`, 400, "temprature"},
		{"POST", chatPath, `{` + long + `}`, 400, `"context_length_exceeded"`},
		{
			"POST",
			chatPath,
			`{` + strings.Replace(ask, `"hi"`, `"`+strings.Repeat("x", loadMaxBody)+`"`, 1) + `}`,
			413,
			`"error"`,
		},
		{"GET", chatPath, "", 405, `"error"`},
		{"GET", "/v1/nowhere", "", 404, `"error"`},
		{"GET", "/v1/models", "", 200, l.model},
		{"GET", "/healthz", "", 200, `"ok"`},
		{"POST", "/v1/messages", `{` + ask + `}`, 400, "max_tokens"},
		{"POST", "/v1/messages", `{` + long + `,"max_tokens":5}`, 400, `"invalid_request_error"`},
		{"POST", "/v1/messages", `{` + ask + `,"max_tokens":5,"temperature":3}`, 400, `"invalid_request_error"`},
		{"POST", "/api/chat", `{"model":"nobody","messages":[]}`, 404, `"error"`},
		{"POST", "/api/chat", `{` + strings.Replace(ask, "user", "nobody", 1) + `}`, 400, `"error"`},
		{"GET", "/api/tags", "", 200, l.model},
	}
	return list[rng.IntN(len(list))]
}

// breaks makes the backend fail, which ends all answers of the step: each must say so, or be whole.
func (l *load) breaks(t *testing.T) {
	t.Helper()
	ask := fmt.Sprintf(`"model":%q,"messages":[{"role":"user","content":"BREAK COUNT"}]`, l.model)
	list := []loadRequest{
		{"POST", chatPath, `{` + ask + `}`, 500, `"error"`},
		{"POST", chatPath, `{` + ask + `,"stream":true}`, 200, "[DONE]"},
		{"POST", "/v1/messages", `{` + ask + `,"max_tokens":50,"stream":true}`, 200, "event: error"},
		{"POST", "/api/chat", `{` + ask + `,"stream":true}`, 200, `"error"`},
		{"POST", "/api/chat", `{` + strings.Replace(ask, "BREAK ", "", 1) + `}`, 200, ""},
	}
	var wg sync.WaitGroup
	for client := range loadClients {
		wg.Go(func() {
			for n := range 5 {
				q := list[(client+n)%len(list)]
				l.sent.Add(1)
				wrong, err := l.send(t.Context(), fmt.Sprintf("break-%d-%d", client, n), q)
				if strings.Contains(wrong, `"error"`) { // a stream that failed before its first token
					wrong = ""
				}
				if err != nil || wrong != "" {
					t.Errorf("%s: %v %s", q.body, err, wrong)
					continue
				}
				l.whole.Add(1)
			}
		})
	}
	wg.Wait()
	l.quiet(t)
}

// account looks for everything that should have been given back, and for every request.
func (l *load) account(t *testing.T) {
	t.Helper()
	if l.sent.Load() != l.whole.Load()+l.hung.Load() || l.whole.Load() < 10 || l.hung.Load() == 0 {
		t.Errorf("%d sent, %d answered, %d given up", l.sent.Load(), l.whole.Load(), l.hung.Load())
	}
	lease, err := l.w.Chat.Acquire(t.Context(), l.model, nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all pages are given back", func() bool {
		st := lease.Model.Engine.Stats()
		held := st.SlotsHeld
		for _, g := range st.Groups {
			held += g.Held
			if g.Free+g.Cached+g.Held != g.Total {
				t.Fatalf("pages are lost: %+v", g)
			}
		}
		return st.Running+st.Waiting+st.Swapped+held == 0 && st.SwapBytes == 0
	})
	st := lease.Model.Engine.Stats()
	lease.Release()
	t.Logf(
		"%d steps of %.1f rows, %d of %d prompt tokens cached, %d moved out, %d pages given up",
		st.Steps,
		float64(st.Rows)/float64(st.Steps),
		st.Cached,
		st.Prompt,
		st.Swaps,
		st.Evicted,
	)
	leases := -1
	l.w.Chat.Pool().Loaded(func(st pool.Status, _ *chat.Model) { leases = st.Leases })
	if leases != 0 {
		t.Errorf("%d leases of the model are left", leases)
	}
	l.accountRequests(t)
	l.quiet(t)
	eventually(
		t,
		fmt.Sprintf("the goroutines are gone: %d before, %d now", l.goroutines, runtime.NumGoroutine()),
		func() bool { return runtime.NumGoroutine() <= l.goroutines },
	)
	if l.files >= 0 {
		eventually(
			t,
			fmt.Sprintf("files are closed: %d before, %d now", l.files, openFiles()),
			func() bool { return openFiles() <= l.files },
		)
	}
	heap, resident := heapBytes(), residentBytes()
	t.Logf(
		"heap %.1f, %.1f MiB, resident %.0f, %.0f, %.0f MiB: before, after a fifth, after all",
		mib(l.heap),
		mib(heap),
		mib(l.resident),
		mib(l.warm.resident),
		mib(resident),
	)
	// What is leaked stays: the least of the last parts is more than the least of the first ones by what was leaked
	// between.
	half := len(l.heaps) / 2
	if half > 0 {
		if grown := slices.Min(l.heaps[half:]) - slices.Min(l.heaps[:half]); grown > 32<<20 {
			t.Errorf("the heap has grown by %.1f MiB: %v", mib(grown), l.heaps)
		}
	}
	if grown := resident - l.warm.resident; l.long && grown > 64<<20+l.warm.untouched {
		t.Errorf("resident memory has grown by %.1f MiB", mib(grown))
	}
}

// accountRequests compares what clients, log rows and metrics say.
func (l *load) accountRequests(t *testing.T) {
	t.Helper()
	rows := l.rows.sums()
	metrics := l.w.Do(t, "GET", "/metrics", "").Body
	sum := func(pattern string) (n int64) {
		for _, m := range regexp.MustCompile(`(?m)^`+pattern+` (\d+)$`).FindAllStringSubmatch(metrics, -1) {
			k, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		return n
	}
	if got := sum(`baleen_requests_total\{.*\}`); got != rows.n {
		t.Errorf("the metrics count %d requests, there are %d rows", got, rows.n)
	}
	if rows.twice > 0 {
		t.Errorf("%d requests have more than one row", rows.twice)
	}
	// Who hangs up may do so before the server has seen the request.
	if rows.answered != l.whole.Load() || rows.n > l.sent.Load() {
		t.Errorf(
			"%d rows, %d of requests that were not given up: %d were sent, %d answered",
			rows.n,
			rows.answered,
			l.sent.Load(),
			l.whole.Load(),
		)
	}
	started, ended := sum(`baleen_generations_total\{.*\}`), sum(`baleen_generations_ended_total\{.*\}`)
	if started != ended || started == 0 {
		t.Errorf("%d generations began, %d ended", started, ended)
	}
	for name, want := range map[string]int64{"baleen_generated_tokens_total": rows.tokens, "baleen_prompt_tokens_total": rows.prompt} {
		if got := sum(name + `\{.*\}`); got != want || got == 0 {
			t.Errorf("%s is %d, the rows have %d", name, got, want)
		}
	}
	for _, level := range []string{"baleen_running", "baleen_queue", "baleen_swapped"} {
		if n := sum(level + `\{.*\}`); n != 0 {
			t.Errorf("%s is %d", level, n)
		}
	}
}

// rowLog is a slog.Handler that counts the rows of requests, in little memory.
type rowLog struct {
	mu  sync.Mutex
	ids map[string]int // rows of requests, negative where the client has given up
	rowSums
}

type rowSums struct{ n, answered, twice, tokens, prompt int64 }

func newRowLog() *rowLog { return &rowLog{ids: map[string]int{}} }

func (r *rowLog) Enabled(context.Context, slog.Level) bool { return true }
func (r *rowLog) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *rowLog) WithGroup(string) slog.Handler            { return r }

func (r *rowLog) Handle(_ context.Context, rec slog.Record) error {
	if rec.Message != "request" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "tokens":
			r.tokens += a.Value.Int64()
		case "prompt":
			r.prompt += a.Value.Int64()
		case "request":
			r.ids[a.Value.String()]++
		}
		return true
	})
	return nil
}

// giveUp notes that nobody waits for a request any more.
func (r *rowLog) giveUp(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[id] -= 1 << 16
}

// settle forgets requests, having counted them.
func (r *rowLog) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, n := range r.ids {
		if n > 0 {
			r.answered++
		}
		if n > 1 || n < 0 && n+1<<16 > 1 {
			r.twice++
		}
		delete(r.ids, id)
	}
}

func (r *rowLog) sums() rowSums {
	r.settle()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rowSums
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // what pools keep goes in two
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// residentBytes is 0 where the system does not tell.
func residentBytes() int64 {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// openFiles is negative where the system does not tell.
func openFiles() int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(d)
}
