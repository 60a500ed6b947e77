package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/kv"
	"github.com/baleenrun/baleen/internal/sample"
)

// rig is an engine over a fake executor that a test steps by hand.
type rig struct {
	*testing.T
	k kind
	f *fake
	e *Engine
}

func newRig(t *testing.T, k kind, context int, o Options) *rig {
	t.Helper()
	if o.Exec.Pages == nil {
		reserve(k.plan(context), &o.Exec, 4*context)
	}
	f := newFake(k, o.Exec)
	e, err := build(f, k.plan(context), o)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, k, f, e}
}

func (r *rig) start(q *Request) *Stream {
	r.Helper()
	s, err := r.e.Generate(context.Background(), q)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// step runs one step and checks the books.
func (r *rig) step() bool {
	r.Helper()
	r.e.intake()
	busy := r.e.step()
	if e := r.e; busy && e.decodeRows+e.promptRows != len(e.batch.Tokens) {
		r.Fatalf(
			"%d rows of streams and %d of prompts in a step of %d",
			e.decodeRows,
			e.promptRows,
			len(e.batch.Tokens),
		)
	}
	if err := r.e.cache.CheckInvariants(); err != nil {
		r.Fatal(err)
	}
	if r.f.problem != nil {
		r.Fatal(r.f.problem)
	}
	return busy
}

// finish steps until all is done.
func (r *rig) finish() {
	r.Helper()
	for n := 0; r.step(); n++ {
		if n > 100000 {
			r.Fatal("the engine does not come to an end")
		}
	}
}

// read returns what a stream has brought, which must have ended.
func (r *rig) read(s *Stream) ([]int32, Event) {
	r.Helper()
	var tokens []int32
	for {
		if s.count == 0 {
			r.Fatal("the stream has not ended")
		}
		ev, _ := s.Next()
		if ev.Done {
			if _, more := s.Next(); more {
				r.Fatal("an event after the last")
			}
			return tokens, ev
		}
		tokens = append(tokens, ev.Token)
	}
}

// verify compares a finished stream with the oracle.
func (r *rig) verify(name string, s *Stream, q *Request) Event {
	r.Helper()
	want := expect(r.k, q, r.e.capacity)
	got, done := r.read(s)
	if done.Reason == FinishStop && done.StopToken >= 0 {
		got = append(got, done.StopToken)
	}
	if done.Reason == FinishCancelled {
		want = want[:min(len(got), len(want))]
	} else if done.Err != nil {
		r.Fatalf("%s: %v", name, done.Err)
	}
	if !slices.Equal(got, want) {
		r.Fatalf("%s: %d prompt tokens, generated\n%v, want\n%v", name, len(q.Tokens), got, want)
	}
	if done.Usage.Generated != len(got) || done.Usage.Prompt != len(q.Tokens) {
		r.Fatalf("%s: usage %+v, generated %d", name, done.Usage, len(got))
	}
	return done
}

// workload makes requests that share prefixes with each other and continue what others have generated.
type workload struct {
	rnd  *rand.Rand
	k    kind
	past [][]int32
	cap  int
}

func (w *workload) tokens(n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = int32(w.rnd.IntN(fakeVocab))
	}
	return t
}

func (w *workload) next() *Request {
	var prompt []int32
	if len(w.past) > 0 && w.rnd.IntN(4) > 0 {
		p := w.past[w.rnd.IntN(len(w.past))]
		n := len(p)
		if w.rnd.IntN(2) == 0 {
			n = w.rnd.IntN(n + 1)
		}
		prompt = slices.Clone(p[:n])
	}
	prompt = append(prompt, w.tokens(1+w.rnd.IntN(60))...)
	prompt = prompt[:min(len(prompt), w.cap-20)]
	q := &Request{Tokens: prompt, MaxTokens: 1 + w.rnd.IntN(160)}
	switch w.rnd.IntN(3) {
	case 0:
		q.Sampling = sample.Params{Temperature: 1, TopP: 0.9, Seed: w.rnd.Uint64(), HasSeed: true}
	case 1:
		q.Sampling = sample.Params{Temperature: 0.7, TopK: 5, RepetitionPenalty: 1.3, Seed: 7, HasSeed: true}
	}
	if q.Sampling.Penalizes() && w.rnd.IntN(2) == 0 {
		q.NoPenalty, q.Answered = sometimes(), w.rnd.IntN(len(prompt)+1)
		q.Sampling.FrequencyPenalty = 2
	}
	if w.rnd.IntN(3) == 0 {
		q.StopTokens = w.tokens(2)
	}
	if w.rnd.IntN(5) == 0 {
		q.CacheSalt = "other"
	}
	w.past = append(w.past, append(slices.Clone(prompt), expect(w.k, q, w.cap)...))
	return q
}

// sometimes pauses penalties by what was drawn so far, and begins anew at each first draw.
func sometimes() func(last int32) bool {
	sum := int32(0)
	return func(last int32) bool {
		if last < 0 {
			sum = 0
		}
		sum += last + 1
		return sum%3 == 0
	}
}

// mode is how a workload is run.
type mode struct {
	name             string
	rows, seqs, outs int
	tokens           int // in the cache; small: sequences push each other out
	swap             int64
}

// eachMode runs a test over kinds of memory, batches, chunks and sources of prefixes.
func eachMode(t *testing.T, context int, f func(t *testing.T, k kind, m mode)) {
	for _, k := range kinds {
		for _, rows := range []int{1, 3, 8, 50, 512} {
			for _, seqs := range []int{1, 3, 8} {
				for _, m := range []mode{
					{"roomy", rows, seqs, seqs, 16 * context, 0},
					{"tight", rows, seqs, seqs + 3, context + 40, 0},
					{"no swap", rows, seqs, seqs, context + 40, -1},
					{"little swap", rows, seqs, seqs, context + 40, 6000},
				} {
					t.Run(
						fmt.Sprintf("%s/rows %d/seqs %d/%s", k.name, rows, seqs, m.name),
						func(t *testing.T) { f(t, k, m) },
					)
				}
			}
		}
	}
}

func (m mode) options(k kind) Options {
	o := Options{
		Exec:          backend.Options{MaxRows: m.rows, MaxSeqs: m.seqs, MaxOut: m.outs},
		SwapBytes:     m.swap,
		SnapshotEvery: 64,
	}
	reserve(k.plan(0), &o.Exec, m.tokens)
	if m.name != "roomy" {
		for g, w := range k.windows {
			if w > 0 {
				o.Exec.Pages[g] = kv.MinPages(w) + 2
			} else {
				o.Exec.Pages[g] = (m.tokens + kv.PageTokens - 1) / kv.PageTokens
			}
		}
		if k.state {
			o.Exec.Slots = 2 + m.seqs/2
		}
	}
	return o
}

func TestSameRequestSameTokens(t *testing.T) {
	const context = 300
	swaps, cached, evicted := int64(0), int64(0), int64(0)
	eachMode(t, context, func(t *testing.T, k kind, m mode) {
		r := newRig(t, k, context, m.options(k))
		if m.name != "roomy" {
			r.e.admitRoom, r.e.resumeRoom = 1, 1 // admit far too many
		}
		w := &workload{rnd: rand.New(rand.NewPCG(uint64(m.rows), uint64(m.seqs))), k: k, cap: r.e.capacity}
		type job struct {
			q *Request
			s *Stream
		}
		var jobs []job
		for n := 0; n < 24; {
			for range w.rnd.IntN(5) {
				q := w.next()
				jobs = append(jobs, job{q, r.start(q)})
				n++
			}
			for range w.rnd.IntN(40) {
				r.step()
			}
		}
		r.finish()
		for i, j := range jobs {
			r.verify(fmt.Sprint("request ", i), j.s, j.q)
		}
		r.nothingIsHeld()
		st := r.e.Stats()
		swaps += st.Swaps
		cached += st.Cached
		evicted += st.Evicted
	})
	t.Logf("%d swaps, %d tokens from the cache, %d pages evicted", swaps, cached, evicted)
	if swaps < 100 || cached < 1000 || evicted < 100 {
		t.Errorf(
			"the modes do not reach what they should: %d swaps, %d cached tokens, %d evicted pages",
			swaps,
			cached,
			evicted,
		)
	}
}

func TestCancelAtRandomPoints(t *testing.T) {
	const context = 300
	for _, k := range kinds {
		for seed := range uint64(6) {
			m := mode{"tight", 16, 4, 4, context + 40, 4000}
			r := newRig(t, k, context, m.options(k))
			w := &workload{rnd: rand.New(rand.NewPCG(seed, 2)), k: k, cap: r.e.capacity}
			var reqs []*Request
			var streams []*Stream
			for range 40 {
				q := w.next()
				reqs, streams = append(reqs, q), append(streams, r.start(q))
				for range w.rnd.IntN(12) {
					r.step()
				}
				streams[w.rnd.IntN(len(streams))].Close()
			}
			r.finish()
			cancelled := 0
			for i := range reqs {
				if r.verify(fmt.Sprint(k.name, " request ", i), streams[i], reqs[i]).Reason == FinishCancelled {
					cancelled++
				}
			}
			if cancelled == 0 || cancelled == len(reqs) {
				t.Errorf("%d of %d cancelled", cancelled, len(reqs))
			}
		}
	}
}

func TestCancelFreesPagesWithinOneStep(t *testing.T) {
	for _, k := range kinds {
		r := newRig(t, k, 400, Options{Exec: backend.Options{MaxRows: 64, MaxSeqs: 4, MaxOut: 4}})
		ctx, cancel := context.WithCancelCause(context.Background())
		s, err := r.e.Generate(ctx, &Request{Tokens: make([]int32, 200)})
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			r.step()
		}
		cause := errors.New("the client has gone")
		cancel(cause)
		for !s.cancelled.Load() { // the context tells it in its own goroutine
		}
		r.step()
		for _, g := range r.e.Stats().Groups {
			if g.Held != 0 {
				t.Errorf("%s: %d pages held after the step", k.name, g.Held)
			}
		}
		if _, done := r.read(s); done.Reason != FinishCancelled || !errors.Is(done.Err, cause) {
			t.Errorf("%s: ended by %v, %v", k.name, done.Reason, done.Err)
		}
	}
}

func TestFailedStepEndsItsRequests(t *testing.T) {
	for _, k := range kinds {
		for failStep := 1; failStep < 60; failStep += 3 {
			r := newRig(
				t,
				k,
				300,
				Options{Exec: backend.Options{MaxRows: 20, MaxSeqs: 3, MaxOut: 3}, SnapshotEvery: 32},
			)
			r.f.failStep = failStep
			w := &workload{rnd: rand.New(rand.NewPCG(5, 5)), k: k, cap: r.e.capacity}
			var reqs []*Request
			var streams []*Stream
			for range 12 {
				q := w.next()
				reqs, streams = append(reqs, q), append(streams, r.start(q))
			}
			r.finish()
			failed := 0
			for i, s := range streams {
				got, done := r.read(s)
				want := expect(k, reqs[i], r.e.capacity)
				if done.Reason == FinishError {
					failed++
					want = want[:len(got)]
					if !errors.Is(done.Err, errFake) {
						t.Fatal(done.Err)
					}
				} else if done.StopToken >= 0 {
					got = append(got, done.StopToken)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s: request %d after a failed step %d: %v, want %v", k.name, i, failStep, got, want)
				}
			}
			if failed < 1 || failed > 3 {
				t.Errorf("%s: %d requests ended with step %d, of at most 3 in it", k.name, failed, failStep)
			}
		}
	}
}

func TestPromptLogits(t *testing.T) {
	const n = 150
	for _, k := range kinds {
		for _, outs := range []int{2, 7, 200} {
			for _, from := range []int{0, 1, 77, n - 1, n} {
				for _, maxTokens := range []int{-1, 3} {
					r := newRig(
						t,
						k,
						300,
						Options{Exec: backend.Options{MaxRows: 40, MaxSeqs: 2, MaxOut: outs}, SnapshotEvery: 32},
					)
					w := &workload{rnd: rand.New(rand.NewPCG(1, 1)), k: k, cap: 300}
					tokens := w.tokens(n)
					want := promptHashes(k, tokens)
					other := &Request{Tokens: append(slices.Clone(tokens[:100]), 3), MaxTokens: 30}
					so := r.start(other)
					for range 5 {
						r.step()
					}
					next := from
					row := make([]float32, fakeVocab)
					q := &Request{Tokens: tokens, MaxTokens: maxTokens, LogitsFrom: from}
					q.PromptLogits = func(pos int, logits []float32) {
						if pos != next {
							t.Fatalf("logits of %d, want %d", pos, next)
						}
						next++
						if fakeLogits(row, want[pos]); !slices.Equal(row, logits) {
							t.Fatalf("%s: wrong logits at %d", k.name, pos)
						}
					}
					s := r.start(q)
					r.finish()
					if next != n {
						t.Fatalf("%s, %d outs, from %d: logits up to %d of %d", k.name, outs, from, next, n)
					}
					r.verify("other", so, other)
					got, done := r.read(s)
					if maxTokens > 0 {
						if !slices.Equal(got, expect(k, q, 300)) {
							t.Fatal("wrong tokens after prompt logits")
						}
					} else if len(got) != 0 || done.Reason != FinishLength {
						t.Fatalf("generated %v, %v", got, done.Reason)
					}
					if done.Usage.Cached > from {
						t.Errorf("%d tokens from the cache, logits wanted from %d", done.Usage.Cached, from)
					}
				}
			}
		}
	}
}
