package bench

import (
	"sort"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/engine"
)

// A Newcomer says what a long prompt costs a stream that runs already, and what the stream costs the prompt.
// Intervals are those between a stream's tokens as its reader sees them, in milliseconds.
type Newcomer struct {
	Prompt         int     `json:"prompt"`
	IntervalAlone  float64 `json:"interval_alone_ms"` // median
	IntervalBeside float64 `json:"interval_beside_ms"`
	WorstBeside    float64 `json:"worst_interval_beside_ms"`
	FirstAlone     float64 `json:"first_token_alone_ms"`
	FirstBeside    float64 `json:"first_token_beside_ms"`
	FirstAgain     float64 `json:"first_token_same_prefix_ms"` // of a request that differs in its last token
	CachedAgain    int     `json:"cached_same_prefix"`
}

const (
	quietTime     = 2 * time.Second // how long a stream is watched alone
	newcomerSpare = 1024            // tokens that the stream may generate meanwhile
)

// newcomer measures a prompt of o.Newcomer tokens, alone and beside a stream.
func (b *run) newcomer() (*Newcomer, error) {
	n := &Newcomer{Prompt: b.o.Newcomer}
	if _, err := b.first(b.request(b.o.Newcomer, 1)); err != nil { // touches the pages
		return nil, err
	}
	alone, err := b.first(b.request(b.o.Newcomer, 1))
	if err != nil {
		return nil, err
	}
	n.FirstAlone = alone.First.Seconds() * 1e3

	req := b.request(b.o.Depth, b.o.Newcomer+newcomerSpare-b.o.Depth)
	stream, err := b.m.Engine.Generate(b.ctx, req)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var w watch
	go w.read(stream)
	time.Sleep(quietTime)
	quiet := w.intervals()
	long := b.request(b.o.Newcomer, 1)
	beside, err := b.first(long)
	if err != nil {
		return nil, err
	}
	busy := w.intervals()
	n.FirstBeside = beside.First.Seconds() * 1e3
	again := *long
	again.Tokens = append(append([]int32(nil), long.Tokens[:len(long.Tokens)-1]...), (long.Tokens[len(long.Tokens)-1]+1)%commonTokens)
	u, err := b.first(&again)
	if err != nil {
		return nil, err
	}
	n.FirstAgain, n.CachedAgain = u.First.Seconds()*1e3, u.Cached
	if len(quiet) > 0 && len(busy) > 0 {
		n.IntervalAlone, n.IntervalBeside, n.WorstBeside = quiet[len(quiet)/2], busy[len(busy)/2], busy[len(busy)-1]
	}
	return n, nil
}

// first runs a request of one token and returns what it took.
func (b *run) first(r *engine.Request) (engine.Usage, error) {
	stream, err := b.m.Engine.Generate(b.ctx, r)
	if err != nil {
		return engine.Usage{}, err
	}
	defer stream.Close()
	var last engine.Event
	for ev := range stream.All() {
		last = ev
	}
	return last.Usage, last.Err
}

// watch notes when a stream's tokens arrive.
type watch struct {
	mu sync.Mutex
	at []time.Time
}

func (w *watch) read(s *engine.Stream) {
	for range s.All() {
		w.mu.Lock()
		w.at = append(w.at, time.Now())
		w.mu.Unlock()
	}
}

// intervals returns those since the last call, in milliseconds, in ascending order.
func (w *watch) intervals() []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ms []float64
	for i := 1; i < len(w.at); i++ {
		ms = append(ms, w.at[i].Sub(w.at[i-1]).Seconds()*1e3)
	}
	w.at = w.at[:0]
	sort.Float64s(ms)
	return ms
}
