package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
	"github.com/baleenrun/baleen/internal/synth"
)

// tiny opens a model of random weights.
func tiny(t *testing.T, name string, o Options) *model.Model {
	t.Helper()
	s, err := synth.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := synth.LookupRecipe("Q8_0")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), f, s, r, 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(t.Context(), path, model.Options{
		Threads: 1, Context: o.Context(), Seqs: o.MaxStreams(), CacheTokens: (o.MaxStreams() + 1) * o.Context(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestRunMeasuresEverything(t *testing.T) {
	o := Options{Prompt: 40, Generate: 6, Depth: 3, Streams: []int{3, 2}, Reps: 2}
	for _, shape := range []string{"tiny", "tiny-moe"} {
		var notes []string
		r, err := Run(t.Context(), tiny(t, shape, o), o, func(s string) { notes = append(notes, s) })
		if err != nil {
			t.Fatal(err)
		}
		if r.PrefillTPS <= 0 || r.DecodeTPS <= 0 || r.PeakRSS <= 0 || r.WeightBytes <= 0 || r.BytesPerToken <= 0 {
			t.Errorf("%s: %+v", shape, r)
		}
		if len(r.AggregateTPS) != 3 || r.AggregateTPS["1"] != r.DecodeTPS || r.AggregateTPS["3"] <= 0 {
			t.Errorf("%s: aggregate %v", shape, r.AggregateTPS)
		}
		if s := r.Spreads["prefill_tps"]; s.Min > s.Median || s.Max < s.Median {
			t.Errorf("%s: spread %+v", shape, s)
		}
		if len(notes) != 5 {
			t.Errorf("%s: notes %q", shape, notes)
		}
	}
}

func TestFirstToken(t *testing.T) {
	o := Options{Prompt: 16, Generate: 2, Depth: 1, Streams: []int{1}, Reps: 1}
	if err := FirstToken(t.Context(), tiny(t, "tiny", o)); err != nil {
		t.Error(err)
	}
}

func TestSteadyRate(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(100, 0).Add(time.Duration(ms) * time.Millisecond) }
	stream := func(begin, first, last, tokens int) timing { return timing{at(begin), at(first), at(last), tokens} }
	for _, tc := range []struct {
		name  string
		times []timing
		want  float64
	}{
		{"one stream", []timing{stream(0, 10, 40, 4)}, 100},
		{"two streams", []timing{stream(0, 10, 60, 6), stream(0, 20, 60, 5)}, 200},
		{"one after the other", []timing{stream(0, 10, 20, 2), stream(0, 30, 40, 2)}, 100},
	} {
		if got := steadyRate(tc.times); got < tc.want-1e-6 || got > tc.want+1e-6 {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	for _, tc := range []struct {
		in   []float64
		want Spread
	}{
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{3, 1, 2}, Spread{2, 1, 3}},
		{[]float64{4, 1, 2, 3}, Spread{2.5, 1, 4}},
	} {
		if got := SpreadOf(tc.in); got != tc.want {
			t.Errorf("%v, want %v", got, tc.want)
		}
	}
}

// TestBytesPerToken counts a plan by hand: experts by those chosen, the embedding by its row, the cache by the window.
func TestBytesPerToken(t *testing.T) {
	p := &plan.Plan{
		Weights: []plan.Weight{
			{Type: quant.F32, Rows: 100, K: 64},            // embedding: one row
			{Type: quant.F32, Rows: 32, K: 64},             // matrix
			{Type: quant.F32, Rows: 16, K: 64, Experts: 8}, // gate, up
			{Type: quant.F32, Rows: 64, K: 16, Experts: 8}, // down
		},
		Routes: []plan.Route{{Experts: 8, TopK: 2}},
		Groups: []plan.Group{
			{Layers: []plan.KVLayer{{Heads: 2, KDim: 8, VDim: 4}}},
			{Window: 10, Layers: []plan.KVLayer{{Heads: 1, KDim: 16, VDim: 8, VInK: true}}},
		},
		Ops: []plan.Op{
			&plan.Embed{W: 0},
			&plan.MatMul{W: []plan.WeightID{1}},
			&plan.Experts{Route: 0, Gate: 2, Up: 2, Down: 3},
		},
	}
	want := int64(64*4 + 32*64*4 + 2*2*16*64*4 + 2*64*16*4 + 100*2*12*2 + 10*16*2)
	got, err := BytesPerToken(p, 2, 100)
	if err != nil || got != want {
		t.Errorf("%d bytes (%v), want %d", got, err, want)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Prompt: 1, Generate: 2, Depth: 1, Streams: []int{1}, Reps: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []func(*Options){
		func(o *Options) { o.Prompt = 0 },
		func(o *Options) { o.Generate = 1 },
		func(o *Options) { o.Reps = 0 },
		func(o *Options) { o.Streams = nil },
		func(o *Options) { o.Streams = []int{1, 0} },
		func(o *Options) { o.Streams = []int{1000} },
	} {
		o := good
		bad(&o)
		if o.Check() == nil {
			t.Errorf("%+v passed", o)
		}
	}
}

func TestReadBandwidth(t *testing.T) {
	if got := ReadBandwidth(1, time.Millisecond); got < 0.05 || got > 5000 {
		t.Errorf("%v GB/s", got)
	}
}

// TestWorkers uses this test binary as the worker.
func TestWorkers(t *testing.T) {
	switch os.Getenv("BALEEN_TEST_WORKER") {
	case "first":
		os.Stdout.WriteString(FirstLine + "\n")
		os.Exit(0)
	case "result":
		os.Stdout.WriteString(`{"prefill_tps": 12.5}` + "\n")
		os.Exit(0)
	case "silent":
		os.Exit(0)
	case "fails":
		os.Exit(1)
	}
	command := []string{os.Args[0], "-test.run=^TestWorkers$"}
	worker := func(what string) { t.Setenv("BALEEN_TEST_WORKER", what) }

	worker("first")
	if s, err := TimeToFirstToken(t.Context(), command, os.Stderr, 2); err != nil || s.Min <= 0 {
		t.Errorf("first: %+v, %v", s, err)
	}
	worker("result")
	if r, err := Measure(t.Context(), command, os.Stderr); err != nil || r.PrefillTPS != 12.5 {
		t.Errorf("result: %+v, %v", r, err)
	}
	if _, err := TimeToFirstToken(t.Context(), command, os.Stderr, 1); err == nil {
		t.Error("any line passes as the first token")
	}
	worker("silent")
	if _, err := Measure(t.Context(), command, os.Stderr); err == nil ||
		!strings.Contains(err.Error(), "without a result") {
		t.Errorf("silent: %v", err)
	}
	worker("fails")
	var failed *WorkerError
	if _, err := Measure(t.Context(), command, os.Stderr); !errors.As(err, &failed) {
		t.Errorf("fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, command, os.Stderr); err == nil {
		t.Error("a cancelled context measures")
	}
}
