package bench

import (
	"errors"
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

// A stream is watched alone for so long, but not for more than so many tokens, nor for less than the few that have an
// interval.
const (
	quietTime   = 2 * time.Second
	quietTokens = 256
	fewTokens   = 3
)

// besideTokens is how many tokens the stream may generate in all: more than it can while it is watched alone and while
// a prompt of so many tokens is computed, of which a step takes at least three.
func besideTokens(newcomer int) int { return newcomer/2 + 4*quietTokens }

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

	stream, err := b.m.Engine.Generate(b.ctx, b.request(b.o.Depth, besideTokens(b.o.Newcomer)))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var w watch
	go w.read(stream)
	w.alone(stream)
	quiet := w.intervals()
	long := b.request(b.o.Newcomer, 1)
	beside, err := b.first(long)
	if err != nil {
		return nil, err
	}
	busy := w.intervals()
	select {
	case <-stream.Ended():
		return nil, errors.New("the stream ended before the newcomer had its first token")
	default:
	}
	n.FirstBeside = beside.First.Seconds() * 1e3
	again := *long
	again.Tokens = append([]int32(nil), long.Tokens...)
	last := &again.Tokens[len(again.Tokens)-1]
	*last = (*last + 1) % int32(b.commonIDs())
	u, err := b.first(&again)
	if err != nil {
		return nil, err
	}
	n.FirstAgain, n.CachedAgain = u.First.Seconds()*1e3, u.Cached
	if len(quiet) == 0 || len(busy) == 0 {
		return nil, errors.New("too few of the stream's tokens came to tell its intervals")
	}
	n.IntervalAlone, n.IntervalBeside, n.WorstBeside = quiet[len(quiet)/2], busy[len(busy)/2], busy[len(busy)-1]
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

// alone waits until a stream has been watched alone.
func (w *watch) alone(s *engine.Stream) {
	for end := time.Now().Add(quietTime); ; {
		w.mu.Lock()
		n := len(w.at)
		w.mu.Unlock()
		if n >= quietTokens || n >= fewTokens && time.Now().After(end) {
			return
		}
		select {
		case <-s.Ended():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// intervals returns those that ended since the last call, in milliseconds, in ascending order.
func (w *watch) intervals() []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ms []float64
	for i := 1; i < len(w.at); i++ {
		ms = append(ms, w.at[i].Sub(w.at[i-1]).Seconds()*1e3)
	}
	w.at = append(w.at[:0], w.at[max(len(w.at)-1, 0):]...) // the next interval begins with the last token
	sort.Float64s(ms)
	return ms
}
