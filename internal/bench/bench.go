// Package bench measures how fast a model runs on this machine, and how close that is to what its memory allows. It
// knows open models and processes; it knows no command lines beyond the ones that it starts.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/model"
)

// Options say what is measured.
type Options struct {
	Prompt   int   // tokens of the prompt whose prefill is timed
	Generate int   // tokens that a stream generates
	Depth    int   // tokens in a stream's context before it generates
	Streams  []int // numbers of concurrent streams
	Reps     int   // repetitions of each measurement
	Newcomer int   // tokens of a prompt that arrives beside a stream; 0: not measured
}

// Check reports what cannot be measured.
func (o Options) Check() error {
	switch {
	case o.Prompt < 1 || o.Generate < 2 || o.Depth < 1 || o.Reps < 1:
		return fmt.Errorf("prompt %d, generate %d, depth %d and repetitions %d: want at least 1, 2, 1 and 1",
			o.Prompt, o.Generate, o.Depth, o.Reps)
	case o.Newcomer < 0:
		return fmt.Errorf("a newcomer of %d tokens", o.Newcomer)
	case len(o.Streams) == 0:
		return errors.New("no number of streams is given")
	}
	for _, n := range o.Streams {
		if n < 1 || n > 256 {
			return fmt.Errorf("%d streams: want 1 to 256", n)
		}
	}
	return nil
}

// MaxStreams is the largest number of streams.
func (o Options) MaxStreams() int {
	n := 1
	if o.Newcomer > 0 {
		n = 2
	}
	for _, s := range o.Streams {
		n = max(n, s)
	}
	return n
}

// Context is the number of tokens that a sequence needs.
func (o Options) Context() int {
	n := max(o.Prompt, o.Depth+o.Generate)
	if o.Newcomer > 0 {
		n = max(n, o.Newcomer+1, o.Depth+besideTokens(o.Newcomer))
	}
	return n + 8
}

// A Spread is the median of some repetitions with their extremes.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf sorts values; there must be one.
func SpreadOf(values []float64) Spread {
	sort.Float64s(values)
	n := len(values)
	return Spread{Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1]}
}

// A Result is what "bench --json" prints.
type Result struct {
	Model        string `json:"model"`
	Family       string `json:"family"`
	Quantization string `json:"quantization"`
	Parameters   int64  `json:"parameters"`
	Threads      int    `json:"threads"`
	CPU          string `json:"cpu"`
	Prompt       int    `json:"prompt"`
	Generate     int    `json:"generate"`
	Depth        int    `json:"depth"`
	Reps         int    `json:"reps"`

	PrefillTPS   float64            `json:"prefill_tps"`   // tokens per second of the prompt
	DecodeTPS    float64            `json:"decode_tps"`    // of one stream
	AggregateTPS map[string]float64 `json:"aggregate_tps"` // of all streams together, by their number
	TTFTms       float64            `json:"ttft_ms"`       // from process start to the first token
	PeakRSS      int64              `json:"peak_rss_bytes"`
	ReadGBps     float64            `json:"read_gbps"` // what this many threads read from memory, 10^9 bytes

	WeightBytes   int64             `json:"weight_bytes"`    // packed
	BytesPerToken int64             `json:"bytes_per_token"` // that one stream reads for a token
	DecodeShare   float64           `json:"decode_share"`    // decode reads per second / read bandwidth
	Spreads       map[string]Spread `json:"spreads"`

	Newcomer *Newcomer `json:"newcomer,omitempty"`
}

// Run measures an open model. note is told what is about to be measured.
func Run(ctx context.Context, m *model.Model, o Options, note func(string)) (Result, error) {
	if err := o.Check(); err != nil {
		return Result{}, err
	}
	b := &run{ctx: ctx, m: m, o: o, rng: rand.New(rand.NewPCG(1, 2))}
	r := Result{
		Model: m.Info.Name, Family: m.Info.Family, Quantization: m.Info.Quantization, Parameters: m.Info.Parameters,
		Prompt: o.Prompt, Generate: o.Generate, Depth: o.Depth, Reps: o.Reps,
		AggregateTPS: map[string]float64{}, Spreads: map[string]Spread{}, WeightBytes: m.Memory.Weights,
	}
	var err error
	if r.BytesPerToken, err = BytesPerToken(m.Plan, m.KVBytes, o.Depth+o.Generate/2); err != nil {
		return r, err
	}
	note("warming up")
	if _, err := b.prefill(min(64, o.Prompt)); err != nil {
		return r, err
	}
	if _, err := b.streams(1, 4); err != nil {
		return r, err
	}
	note(fmt.Sprintf("prefill of %d tokens", o.Prompt))
	if r.Spreads["prefill_tps"], err = b.repeat(func() (float64, error) { return b.prefill(o.Prompt) }); err != nil {
		return r, err
	}
	r.PrefillTPS = r.Spreads["prefill_tps"].Median
	for _, n := range withOne(o.Streams) {
		note(fmt.Sprintf("%d tokens on each of %s", o.Generate, streams(n)))
		s, err := b.repeat(func() (float64, error) { return b.streams(n, o.Generate) })
		if err != nil {
			return r, err
		}
		key := strconv.Itoa(n)
		r.AggregateTPS[key], r.Spreads["aggregate_tps_"+key] = s.Median, s
		if n == 1 {
			r.DecodeTPS, r.Spreads["decode_tps"] = s.Median, s
		}
	}
	r.PeakRSS = peakRSS()
	if o.Newcomer > 0 {
		note(fmt.Sprintf("a prompt of %d tokens beside a stream", o.Newcomer))
		if r.Newcomer, err = b.newcomer(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// withOne returns the numbers in order, one stream first.
func withOne(streams []int) []int {
	out := []int{1}
	sorted := append([]int(nil), streams...)
	sort.Ints(sorted)
	for _, n := range sorted {
		if n != out[len(out)-1] {
			out = append(out, n)
		}
	}
	return out
}

// run is one benchmark on its way.
type run struct {
	ctx  context.Context
	m    *model.Model
	o    Options
	rng  *rand.Rand
	salt int
}

func (b *run) repeat(f func() (float64, error)) (Spread, error) {
	var values []float64
	for range b.o.Reps {
		v, err := f()
		if err != nil {
			return Spread{}, err
		}
		values = append(values, v)
	}
	return SpreadOf(values), nil
}

// commonTokens bounds the ids of prompts: text, too, is made mostly of a thousand common tokens, which have low ids.
// Ids from everywhere would have every page of the embedding in memory.
const commonTokens = 1024

func (b *run) commonIDs() int { return min(b.m.Plan.Vocab, commonTokens) }

// request makes a prompt that no cache has.
func (b *run) request(prompt, generate int) *engine.Request {
	tokens := make([]int32, prompt)
	for i := range tokens {
		tokens[i] = int32(b.rng.IntN(b.commonIDs()))
	}
	b.salt++
	return &engine.Request{Tokens: tokens, MaxTokens: generate, IgnoreEOS: true, CacheSalt: strconv.Itoa(b.salt)}
}

// prefill times a prompt up to its first token, and gives tokens per second.
func (b *run) prefill(tokens int) (float64, error) {
	t, err := generate(b.ctx, b.m.Engine, b.request(tokens, 1))
	if err != nil {
		return 0, err
	}
	return float64(tokens) / t.first.Sub(t.begin).Seconds(), nil
}

// streams runs n requests at once. It gives the tokens per second of all of them while all of them generate.
func (b *run) streams(n, tokens int) (float64, error) {
	times := make([]timing, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		req := b.request(b.o.Depth, tokens)
		wg.Go(func() { times[i], errs[i] = generate(b.ctx, b.m.Engine, req) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	return steadyRate(times), nil
}

// A timing says when a stream began, when it had its first and its last token, and how many it got.
type timing struct {
	begin, first, last time.Time
	tokens             int
}

// steadyRate adds up the streams' own rates if there was a time when all of them generated, as there is unless they
// are very short. Otherwise it is all tokens by all the time.
func steadyRate(times []timing) float64 {
	allFrom, allTo := times[0].first, times[0].last
	from, to := allFrom, allTo
	rate, tokens := 0.0, 0
	for _, t := range times {
		if t.first.After(allFrom) {
			allFrom = t.first
		}
		if t.last.Before(allTo) {
			allTo = t.last
		}
		if t.begin.Before(from) {
			from = t.begin
		}
		if t.last.After(to) {
			to = t.last
		}
		rate += float64(t.tokens-1) / max(t.last.Sub(t.first).Seconds(), 1e-9)
		tokens += t.tokens
	}
	if allTo.After(allFrom) {
		return rate
	}
	return float64(tokens) / max(to.Sub(from).Seconds(), 1e-9)
}

// generate runs a request. The engine's own clock counts: a reader may be late on a busy machine.
func generate(ctx context.Context, e *engine.Engine, req *engine.Request) (timing, error) {
	t := timing{begin: time.Now()}
	stream, err := e.Generate(ctx, req)
	if err != nil {
		return t, err
	}
	defer stream.Close()
	for ev := range stream.All() {
		if !ev.Done {
			t.tokens++
			continue
		}
		if ev.Reason != engine.FinishLength {
			return t, errors.Join(fmt.Errorf("a stream ended with %q", ev.Reason), ev.Err)
		}
		t.first, t.last = t.begin.Add(ev.Usage.First), t.begin.Add(ev.Usage.Total)
	}
	if t.tokens != req.MaxTokens {
		return t, fmt.Errorf("a stream gave %d tokens of %d", t.tokens, req.MaxTokens)
	}
	return t, nil
}

// FirstToken generates one token from a short prompt, for timing how long a new process needs.
func FirstToken(ctx context.Context, m *model.Model) error {
	tokens := make([]int32, 16)
	for i := range tokens {
		tokens[i] = int32((i*37 + 11) % m.Plan.Vocab)
	}
	_, err := generate(ctx, m.Engine, &engine.Request{Tokens: tokens, MaxTokens: 1, IgnoreEOS: true})
	return err
}

func streams(n int) string {
	if n == 1 {
		return "1 stream"
	}
	return fmt.Sprintf("%d streams", n)
}
