package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/sample"
)

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, n)) }

func ifElse[T any](c bool, a, b T) T {
	if c {
		return a
	}
	return b
}

// start runs an engine in its own goroutine.
func startEngine(t *testing.T, k kind, context int, o Options) (*Engine, *fake) {
	t.Helper()
	if o.Exec.Pages == nil {
		reserve(k.plan(context), &o.Exec, 4*context)
	}
	f := newFake(k, o.Exec)
	e, err := New(f, k.plan(context), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if !f.closed || f.problem != nil {
			t.Errorf("executor closed: %v, problem: %v", f.closed, f.problem)
		}
	})
	return e, f
}

var usual = backend.Options{MaxRows: 32, MaxSeqs: 4, MaxOut: 4}

// TestPanicInACallbackEndsItsRequest: others in the same batch get what they get alone.
func TestPanicInACallbackEndsItsRequest(t *testing.T) {
	k := kinds[0]
	e, _ := startEngine(t, k, 200, Options{Exec: usual})
	good := &Request{Tokens: []int32{1, 2, 3}, MaxTokens: 20}
	want := expect(k, good, 200)
	for name, bad := range map[string]*Request{
		"NoPenalty":    {Tokens: []int32{4, 5}, MaxTokens: 20, NoPenalty: func(last int32) bool { panic("in a draw") }},
		"PromptLogits": {Tokens: []int32{4, 5, 6}, MaxTokens: 20, PromptLogits: func(int, []float32) { panic("in a draw") }},
	} {
		b, err := e.Generate(context.Background(), bad)
		if err != nil {
			t.Fatal(err)
		}
		g, err := e.Generate(context.Background(), good)
		if err != nil {
			t.Fatal(err)
		}
		var last Event
		for ev := range b.All() {
			last = ev
		}
		var p *CallbackPanic
		if last.Reason != FinishError || !errors.As(last.Err, &p) || p.Value != "in a draw" || len(p.Stack) == 0 {
			t.Errorf("%s: ended by %v: %v", name, last.Reason, last.Err)
		}
		var got []int32
		for ev := range g.All() {
			if !ev.Done {
				got = append(got, ev.Token)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the other request got %v, want %v", name, got, want)
		}
	}
}

func TestHammer(t *testing.T) {
	for _, k := range []kind{kinds[0], kinds[5]} {
		m := mode{"tight", 16, 4, 4, 340, 5000}
		e, _ := startEngine(t, k, 300, m.options(k))
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				w := &workload{rnd: seeded(uint64(g)), k: k, cap: e.Capacity()}
				for i := range 25 {
					q := w.next()
					want := expect(k, q, e.Capacity()) // first: the engine calls q's functions, too
					ctx, cancel := context.WithCancel(context.Background())
					s, err := e.Generate(ctx, q)
					if err != nil {
						t.Error(err)
						cancel()
						return
					}
					stopAfter := ifElse(w.rnd.IntN(3) == 0, w.rnd.IntN(30), 1<<30)
					n := 0
					for ev := range s.All() {
						if !ev.Done && (n >= len(want) || ev.Token != want[n]) {
							t.Errorf("request %d/%d: token %d is %d, want %v", g, i, n, ev.Token, want)
							break
						}
						if ev.Done && ev.Err != nil && !errors.Is(ev.Err, context.Canceled) {
							t.Error(ev.Err)
						}
						if all := n + ifElse(ev.StopToken >= 0, 1, 0); ev.Done && ev.Reason != FinishCancelled &&
							all != len(want) {
							t.Errorf("request %d/%d: %d tokens of %d, then %v", g, i, all, len(want), ev.Reason)
						}
						if n++; n == stopAfter {
							cancel()
						}
						if w.rnd.IntN(50) == 0 {
							e.Stats()
						}
					}
					cancel()
				}
			})
		}
		wg.Wait()
		// A stream may end a moment before the counters of its last step are published.
		st := e.Stats()
		for deadline := time.Now().Add(10 * time.Second); st.Running+st.Waiting+st.Swapped != 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
			st = e.Stats()
		}
		if st.Running != 0 || st.Waiting != 0 || st.Swapped != 0 {
			t.Errorf("all streams have ended: %+v", st)
		}
	}
}

func TestCloseEndsStreams(t *testing.T) {
	k := kinds[0]
	o := Options{Exec: usual}
	reserve(k.plan(5000), &o.Exec, 20000)
	e, err := New(newFake(k, o.Exec), k.plan(5000), o)
	if err != nil {
		t.Fatal(err)
	}
	var streams []*Stream
	for range 10 { // some of them wait
		s, err := e.Generate(context.Background(), &Request{Tokens: []int32{1}})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	streams[0].Next()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	for i, s := range streams {
		last := Event{}
		for ev := range s.All() {
			last = ev
		}
		if !last.Done || last.Reason != FinishError || !errors.Is(last.Err, ErrClosed) {
			t.Errorf("stream %d ends with %+v", i, last)
		}
	}
	if _, err := e.Generate(context.Background(), &Request{Tokens: []int32{1}}); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed engine takes requests: %v", err)
	}
}

// TestCloseWhileRequestsComeAndGo: each stream has exactly one last event, whoever ends it.
func TestCloseWhileRequestsComeAndGo(t *testing.T) {
	for round := range 6 {
		k := kinds[round%len(kinds)]
		m := mode{"tight", 16, 4, 4, 340, 5000}
		o := m.options(k)
		f := newFake(k, o.Exec)
		e, err := New(f, k.plan(300), o)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				rnd := seeded(uint64(g + 100*round))
				for range 1000 {
					ctx, cancel := context.WithCancel(context.Background())
					q := &Request{Tokens: make([]int32, 1+rnd.IntN(200)), LogProbs: rnd.IntN(3), Progress: true}
					s, err := e.Generate(ctx, q)
					if err != nil {
						cancel()
						if !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
						return
					}
					n, done := rnd.IntN(20), 0
					go func() { <-s.Ended(); e.Stats() }()
					for ev := range s.All() {
						if ev.Done {
							done++
						} else if n--; n == 0 {
							switch rnd.IntN(3) {
							case 0:
								cancel()
							case 1:
								s.Close()
							}
						}
					}
					if done != 1 {
						t.Errorf("%d last events", done)
					}
					cancel()
				}
			})
		}
		time.Sleep(time.Duration(round) * time.Millisecond)
		for range 3 {
			wg.Go(func() {
				if err := e.Close(); err != nil || !f.closed {
					t.Errorf("closed: %v, executor: %v", err, f.closed)
				}
			})
		}
		wg.Wait()
		if f.problem != nil {
			t.Fatal(f.problem)
		}
	}
}

func TestPanicInALoopClosesTheStream(t *testing.T) {
	r := newRig(t, kinds[0], 400, Options{Exec: usual})
	s := r.start(&Request{Tokens: []int32{1}})
	r.step()
	func() {
		defer func() { _ = recover() }()
		for range s.All() {
			panic("the reader fails")
		}
	}()
	r.step()
	if !s.ended {
		t.Error("a request goes on although its reader has gone")
	}
}

func TestThoseWhoWaitGoOnAfterAFailure(t *testing.T) {
	k := kinds[0]
	o := Options{Exec: backend.Options{MaxRows: 8, MaxSeqs: 1, MaxOut: 1, Pages: []int{3}}}
	e, err := build(newFake(k, o.Exec), k.plan(96), o)
	if err != nil {
		t.Fatal(err)
	}
	e.capacity = 200 // more than there is
	a, err := e.Generate(context.Background(), &Request{Tokens: []int32{1}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Generate(context.Background(), &Request{Tokens: []int32{1}, MaxTokens: 3})
	if err != nil {
		t.Fatal(err)
	}
	<-e.wakeup // else this token alone would wake it
	go e.run()
	defer e.Close()
	for _, s := range []*Stream{a, b} {
		select {
		case <-s.Ended():
		case <-time.After(10 * time.Second):
			t.Fatal("a stream does not end")
		}
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t, kinds[0], 100, Options{Exec: usual, MaxQueue: 3})
	nan := float32(math.NaN())
	tests := []struct {
		name string
		q    Request
		want string
	}{
		{"no tokens", Request{}, "tokens: an empty prompt has no continuation: send at least one token"},
		{
			"too long",
			Request{Tokens: make([]int32, 9120)},
			"prompt 9,120 tokens, context 100: shorten the prompt or load the model with a larger context",
		},
		{
			"no room for an answer",
			Request{Tokens: make([]int32, 100)},
			"prompt 100 tokens, context 100: shorten the prompt or load the model with a larger context",
		},
		{
			"unknown token",
			Request{Tokens: []int32{1, fakeVocab}},
			"token 61 at prompt position 1: the model has 61 tokens",
		},
		{"negative token", Request{Tokens: []int32{-1}}, "token -1 at prompt position 0: the model has 61 tokens"},
		{
			"temperature",
			Request{Tokens: []int32{1}, Sampling: sample.Params{Temperature: nan}},
			"sampling: temperature is NaN, must be 0 (greedy) to 10000",
		},
		{
			"bias",
			Request{Tokens: []int32{1}, Sampling: sample.Params{LogitBias: map[int32]float32{99: 1}}},
			"token 99 at logit bias: the model has 61 tokens",
		},
		{"logprobs", Request{Tokens: []int32{1}, LogProbs: 62}, "logprobs: 62, must be 0 to 61"},
	}
	for _, tt := range tests {
		if _, err := r.e.Generate(context.Background(), &tt.q); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	var long *PromptTooLong
	if _, err := r.e.Generate(context.Background(), &tests[1].q); !errors.As(err, &long) || long.Tokens != 9120 ||
		long.Context != 100 {
		t.Errorf("%+v", long)
	}
	if _, err := r.e.Generate(context.Background(), &Request{Tokens: make([]int32, 100), MaxTokens: -1}); err != nil {
		t.Errorf("a full context without output is refused: %v", err)
	}
	r.start(&Request{Tokens: []int32{1}})
	r.start(&Request{Tokens: []int32{1}})
	var full *QueueFull
	if _, err := r.e.Generate(context.Background(), &Request{Tokens: []int32{1}}); !errors.As(err, &full) ||
		full.Waiting != 3 {
		t.Errorf("a full queue takes requests: %v", err)
	}
	if _, err := r.e.Generate(context.Background(), &Request{Tokens: []int32{1}, Priority: 1}); err != nil {
		t.Errorf("a full queue refuses what goes on: %v", err)
	}
}

func TestLengthLimits(t *testing.T) {
	k := kinds[0]
	r := newRig(t, k, 100, Options{Exec: usual})
	for _, tt := range []struct{ prompt, max, want int }{{10, 5, 5}, {10, 0, 90}, {10, 500, 90}, {99, 0, 1}, {99, 7, 1}, {10, -1, 0}} {
		q := &Request{Tokens: make([]int32, tt.prompt), MaxTokens: tt.max}
		s := r.start(q)
		r.finish()
		if got, done := r.read(s); len(got) != tt.want || done.Reason != FinishLength {
			t.Errorf("%+v: %d tokens, %v", tt, len(got), done.Reason)
		}
	}
}

func TestPenaltiesPause(t *testing.T) {
	k := kinds[0]
	p := sample.Params{RepetitionPenalty: 3, FrequencyPenalty: 2}
	all := func(on bool) func(int32) bool { return func(int32) bool { return on } }
	run := func(q *Request) []int32 {
		q.Tokens, q.MaxTokens = []int32{5, 6, 7}, 60
		if want := expect(k, q, 200); len(want) != 60 {
			t.Fatalf("%d tokens", len(want))
		}
		r := newRig(t, k, 200, Options{Exec: usual})
		s := r.start(q)
		r.finish()
		got, _ := r.read(s)
		if !slices.Equal(got, expect(k, q, 200)) {
			t.Errorf("%+v: not what the rule says", q)
		}
		return got
	}
	plain, held := run(&Request{}), run(&Request{Sampling: p})
	if slices.Equal(plain, held) {
		t.Fatal("the penalties change nothing")
	}
	if got := run(&Request{Sampling: p, NoPenalty: all(true)}); !slices.Equal(got, plain) {
		t.Error("paused penalties have an effect")
	}
	if got := run(&Request{Sampling: p, NoPenalty: all(false)}); !slices.Equal(got, held) {
		t.Error("penalties that are not paused have none")
	}
	if got := run(&Request{Sampling: p, NoPenalty: sometimes()}); slices.Equal(got, plain) || slices.Equal(got, held) {
		t.Error("penalties that pause at times are on or off throughout")
	}
}

func TestAnsweredTokensArePenalized(t *testing.T) {
	k := kinds[0]
	q := &Request{
		Tokens:    []int32{5, 6, 7},
		MaxTokens: 60,
		Sampling:  sample.Params{FrequencyPenalty: 1, PresencePenalty: 1},
	}
	whole := expect(k, q, 200)
	r := newRig(t, k, 200, Options{Exec: usual})
	s := r.start(
		&Request{
			Tokens:    append(slices.Clone(q.Tokens), whole[:25]...),
			Answered:  25,
			MaxTokens: 35,
			Sampling:  q.Sampling,
		},
	)
	r.finish()
	if got, _ := r.read(s); !slices.Equal(got, whole[25:]) {
		t.Error("an answer that goes on behind its first part differs from one in a piece")
	}
}

func TestProgressOfAPrompt(t *testing.T) {
	k := kinds[0]
	r := newRig(t, k, 400, Options{Exec: usual})
	prompt := make([]int32, 150)
	for i := range prompt {
		prompt[i] = int32(i % 7)
	}
	for round := range 2 {
		s := r.start(&Request{Tokens: prompt, MaxTokens: 3, Progress: true})
		r.finish()
		var seen []Prefill
		tokens := 0
		for ev := range s.All() {
			switch {
			case ev.Prefill != nil && (tokens > 0 || ev.Token != -1 || ev.Done):
				t.Errorf("a report in the wrong place: %+v", ev)
			case ev.Prefill != nil:
				seen = append(seen, *ev.Prefill)
			case !ev.Done:
				tokens++
			}
		}
		last := seen[len(seen)-1]
		if tokens != 3 || len(seen) < 2 || last.Ready != 150 || last.Total != 150 ||
			round > 0 != (seen[0].Cached > 0) ||
			seen[0].Ready != seen[0].Cached {
			t.Errorf("%d tokens, reports %+v", tokens, seen)
		}
		for i := range seen[1:] {
			if seen[i+1].Ready <= seen[i].Ready {
				t.Errorf("reports do not go on: %+v", seen)
			}
		}
	}
}

func TestStopTokens(t *testing.T) {
	k := kinds[0]
	q := Request{Tokens: []int32{5, 6, 7}, MaxTokens: 40}
	all := expect(k, &q, 200)
	eos := all[12]
	at := slices.Index(all, eos)
	for _, tt := range []struct {
		name   string
		change func(*Request)
		want   int
		reason FinishReason
	}{
		{"the model's", func(*Request) {}, at, FinishStop},
		{"ignored", func(q *Request) { q.IgnoreEOS = true }, 40, FinishLength},
		{"none", func(q *Request) { q.StopTokens = []int32{} }, 40, FinishLength},
		{"the request's", func(q *Request) { q.StopTokens = []int32{all[0]} }, 0, FinishStop},
	} {
		r := newRig(t, k, 200, Options{Exec: usual, StopTokens: []int32{eos}})
		q := q
		tt.change(&q)
		s := r.start(&q)
		r.finish()
		got, done := r.read(s)
		if len(got) != tt.want || done.Reason != tt.reason || done.StopToken >= 0 != (tt.reason == FinishStop) {
			t.Errorf(
				"%s: %d tokens, %v, stop token %d; want %d, %v",
				tt.name,
				len(got),
				done.Reason,
				done.StopToken,
				tt.want,
				tt.reason,
			)
		}
	}
}

func TestLogProbsAreTheModels(t *testing.T) {
	k := kinds[0]
	r := newRig(t, k, 200, Options{Exec: usual})
	q := &Request{
		Tokens: []int32{9, 8, 7}, MaxTokens: 20, LogProbs: 4,
		Sampling: sample.Params{
			Temperature:      3,
			TopK:             20,
			FrequencyPenalty: 1,
			LogitBias:        map[int32]float32{4: 2},
			HasSeed:          true,
			Seed:             5,
		},
	}
	s := r.start(q)
	r.finish()
	o := &oracle{k: k}
	var hash uint64
	for _, t := range q.Tokens {
		hash = o.feed(t)
	}
	logits, w := make([]float32, fakeVocab), sample.NewScratch(fakeVocab)
	for range 20 {
		ev, _ := s.Next()
		fakeLogits(logits, hash)
		lp, top := sample.LogProbs(w, nil, logits, ev.Token, 3)
		if ev.LogProb != lp || !slices.Equal(ev.Top, top) {
			t.Fatalf("log probabilities %v %v, want %v %v", ev.LogProb, ev.Top, lp, top)
		}
		hash = o.feed(ev.Token)
	}
}

// alternate allows even tokens, then odd ones, in turns; after its count it allows none.
type alternate struct{ n, end int }

func (a *alternate) Allowed() []uint64 {
	if a.n == a.end {
		return []uint64{0}
	}
	return []uint64{0x5555555555555555 << (a.n % 2)}
}

func (a *alternate) Accept(id int32) error {
	if int(id)%2 != a.n%2 {
		return fmt.Errorf("token %d is not allowed at %d", id, a.n)
	}
	a.n++
	return nil
}

func TestMaskFailsClosed(t *testing.T) {
	r := newRig(t, kinds[0], 200, Options{Exec: usual})
	s := r.start(&Request{Tokens: []int32{1, 2}, Mask: &alternate{end: 9}, Sampling: sample.Params{Temperature: 2}})
	r.finish()
	got, done := r.read(s)
	for i, id := range got {
		if int(id)%2 != i%2 {
			t.Errorf("token %d is %d", i, id)
		}
	}
	if len(got) != 9 || done.Reason != FinishError || !errors.Is(done.Err, sample.ErrNothingAllowed) {
		t.Errorf("%d tokens, then %v, %v", len(got), done.Reason, done.Err)
	}
}

func TestPriority(t *testing.T) {
	r := newRig(t, kinds[0], 200, Options{Exec: backend.Options{MaxRows: 8, MaxSeqs: 1, MaxOut: 1}})
	low := r.start(&Request{Tokens: []int32{1}, MaxTokens: 3})
	high := r.start(&Request{Tokens: []int32{2}, MaxTokens: 3, Priority: 1})
	for high.count == 0 {
		r.step()
	}
	if low.count != 0 {
		t.Error("the request of lower priority went first")
	}
	r.finish()
}

func TestUnseededRequestsDiffer(t *testing.T) {
	r := newRig(t, kinds[0], 200, Options{Exec: usual})
	a := r.start(&Request{Tokens: []int32{1}, MaxTokens: 30, Sampling: sample.Params{Temperature: 1}})
	b := r.start(&Request{Tokens: []int32{1}, MaxTokens: 30, Sampling: sample.Params{Temperature: 1}})
	r.finish()
	ta, da := r.read(a)
	tb, _ := r.read(b)
	if slices.Equal(ta, tb) {
		t.Error("two requests without seed drew the same 30 tokens")
	}
	again := &Request{
		Tokens:    []int32{1},
		MaxTokens: 30,
		Sampling:  sample.Params{Temperature: 1, Seed: da.Usage.Seed, HasSeed: true},
	}
	c := r.start(again)
	r.finish()
	if tc, _ := r.read(c); !slices.Equal(ta, tc) {
		t.Error("the reported seed does not repeat the tokens")
	}
}
