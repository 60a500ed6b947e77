package server

import (
	"fmt"
	"io"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/pool"
)

// Metrics counts what happens, for Prometheus' text format.
type Metrics struct {
	mu       sync.Mutex
	requests map[string]int64 // by labels
	seconds  map[string]*histogram
	prompt   map[string]int64 // by model
	cached   map[string]int64
	tokens   map[string]int64
	thought  map[string]int64
	started  map[string]int64
	ended    map[string]int64 // by model and end
	first    map[string]*histogram
	gap      map[string]*histogram
}

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	return &Metrics{
		requests: map[string]int64{}, seconds: map[string]*histogram{}, prompt: map[string]int64{}, cached: map[string]int64{},
		tokens: map[string]int64{}, thought: map[string]int64{}, started: map[string]int64{}, ended: map[string]int64{},
		first: map[string]*histogram{}, gap: map[string]*histogram{},
	}
}

// Hooks are what a chat.Service tells the metrics.
func (m *Metrics) Hooks() chat.Hooks {
	return chat.Hooks{
		Started: func(model string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.started[label("model", model)]++
		},
		FirstTok: func(model string, d time.Duration) {
			m.mu.Lock()
			defer m.mu.Unlock()
			observe(m.first, label("model", model), firstBounds, d)
		},
		Gap: func(model string, d time.Duration) {
			m.mu.Lock()
			defer m.mu.Unlock()
			observe(m.gap, label("model", model), gapBounds, d)
		},
		Ended: func(model string, u chat.Usage, end string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			l := label("model", model)
			m.prompt[l] += int64(u.Prompt)
			m.cached[l] += int64(u.Cached)
			m.tokens[l] += int64(u.Generated)
			m.thought[l] += int64(u.Reasoning)
			m.ended[l+","+label("end", end)]++
		},
	}
}

var (
	firstBounds = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	gapBounds   = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
	tookBounds  = []float64{.005, .025, .1, .5, 1, 5, 15, 60, 300}
)

func (m *Metrics) request(route string, status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[label("route", route)+","+label("code", fmt.Sprint(status))]++
	observe(m.seconds, label("route", route), tookBounds, took)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func label(name, value string) string { return name + `="` + labelEscapes.Replace(value) + `"` }

type histogram struct {
	bounds []float64
	counts []int64
	n      int64
	sum    float64
}

func observe(hs map[string]*histogram, key string, bounds []float64, d time.Duration) {
	h := hs[key]
	if h == nil {
		h = &histogram{bounds: bounds, counts: make([]int64, len(bounds))}
		hs[key] = h
	}
	v := d.Seconds()
	for i, b := range bounds {
		if v <= b {
			h.counts[i]++
			break
		}
	}
	h.n++
	h.sum += v
}

func head(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func counters(w io.Writer, name, help string, m map[string]int64) {
	head(w, name, "counter", help)
	for _, k := range sorted(m) {
		fmt.Fprintf(w, "%s{%s} %d\n", name, k, m[k])
	}
}

func histograms(w io.Writer, name, help string, m map[string]*histogram) {
	head(w, name, "histogram", help)
	for _, k := range sorted(m) {
		h := m[k]
		sum := int64(0)
		for i, b := range h.bounds {
			sum += h.counts[i]
			fmt.Fprintf(w, "%s_bucket{%s,le=\"%g\"} %d\n", name, k, b, sum)
		}
		fmt.Fprintf(
			w,
			"%s_bucket{%s,le=\"+Inf\"} %d\n%s_sum{%s} %g\n%s_count{%s} %d\n",
			name,
			k,
			h.n,
			name,
			k,
			h.sum,
			name,
			k,
			h.n,
		)
	}
}

func (m *Metrics) write(w io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counters(w, "baleen_requests_total", "HTTP requests that ended.", m.requests)
	histograms(w, "baleen_request_seconds", "Time that HTTP requests took.", m.seconds)
	counters(w, "baleen_generations_total", "Generations that began.", m.started)
	counters(w, "baleen_generations_ended_total", "Generations by how they ended.", m.ended)
	counters(w, "baleen_prompt_tokens_total", "Prompt tokens.", m.prompt)
	counters(w, "baleen_cached_tokens_total", "Prompt tokens that the cache had.", m.cached)
	counters(w, "baleen_generated_tokens_total", "Generated tokens.", m.tokens)
	counters(w, "baleen_reasoning_tokens_total", "Generated tokens that were reasoning.", m.thought)
	histograms(w, "baleen_first_token_seconds", "Time from a request to its first token.", m.first)
	histograms(w, "baleen_token_interval_seconds", "Time between the tokens of an answer.", m.gap)
}

// gauge is one level of each model.
type gauge struct{ name, kind, help string }

// writeModels writes what the loaded models' engines say, under the catalog's names. A name inside a file is not
// enough: quantizations of one model have the same, and two samples of one series spoil a whole scrape.
func writeModels(w io.Writer, svc *chat.Service, byPath map[string]chat.Spec) {
	gauges := []gauge{
		{"baleen_running", "gauge", "Sequences in the batch."},
		{"baleen_queue", "gauge", "Requests that wait for the batch."},
		{"baleen_swapped", "gauge", "Sequences moved out of the cache under memory pressure."},
		{"baleen_steps_total", "counter", "Steps of the engine; rows per step are the batch size."},
		{"baleen_step_rows_total", "counter", "Rows of those steps."},
		{"baleen_pages_total", "gauge", "Pages of the cache."},
		{"baleen_pages_free", "gauge", "Pages that hold nothing."},
		{"baleen_pages_cached", "gauge", "Pages that hold prefixes for later requests."},
		{"baleen_model_bytes", "gauge", "Memory of the model."},
	}
	rows := map[string][]string{}
	svc.Pool().Loaded(func(st pool.Status, m *chat.Model) {
		e := m.Engine.Stats()
		var total, free, cached int
		for _, g := range e.Groups {
			total, free, cached = total+g.Total, free+g.Free, cached+g.Cached
		}
		name := byPath[st.Key].Name
		if name == "" {
			name = st.Key // removed meanwhile
		}
		l := label("model", name)
		for i, v := range []int64{
			int64(e.Running), int64(e.Waiting), int64(e.Swapped), e.Steps, e.Rows, int64(total), int64(free), int64(cached), st.Bytes,
		} {
			g := gauges[i].name
			rows[g] = append(rows[g], fmt.Sprintf("%s{%s} %d\n", g, l, v))
		}
	})
	for _, g := range gauges {
		head(w, g.name, g.kind, g.help)
		for _, r := range rows[g.name] {
			io.WriteString(w, r) //nolint:errcheck // into memory
		}
	}
	used, limit := svc.Pool().Used()
	head(w, "baleen_models_bytes", "gauge", "Memory of all models.")
	fmt.Fprintf(w, "baleen_models_bytes %d\n", used)
	head(w, "baleen_models_bytes_limit", "gauge", "Memory that models may take; 0 is no limit.")
	fmt.Fprintf(w, "baleen_models_bytes_limit %d\n", limit)
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	head(w, "baleen_heap_bytes", "gauge", "Memory of the Go heap, without weights and pages.")
	fmt.Fprintf(w, "baleen_heap_bytes %d\n", ms.HeapAlloc)
	head(w, "baleen_goroutines", "gauge", "Goroutines.")
	fmt.Fprintf(w, "baleen_goroutines %d\n", runtime.NumGoroutine())
}
