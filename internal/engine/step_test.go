package engine

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/sample"
)

// blank is an executor that computes nothing, for what is measured around it.
type blank struct {
	*fake
	out int
}

func (b *blank) Submit(batch *backend.Batch) error { b.out = len(batch.Out); return nil }
func (b *blank) Wait() ([]float32, error) {
	for i := range b.logits {
		b.logits[i] = float32(i % fakeVocab)
	}
	return b.logits[:b.out*fakeVocab], nil
}

func TestStepAllocs(t *testing.T) {
	for _, k := range kinds {
		for _, p := range []sample.Params{
			{},
			{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepetitionPenalty: 1.1, FrequencyPenalty: 0.1},
		} {
			o := Options{Exec: backend.Options{MaxRows: 64, MaxSeqs: 4, MaxOut: 4}}
			reserve(k.plan(0), &o.Exec, 1<<14)
			x := &blank{fake: newFake(k, o.Exec)}
			e, err := build(x, k.plan(4000), o)
			if err != nil {
				t.Fatal(err)
			}
			r := &rig{t, k, x.fake, e}
			var streams []*Stream
			for range 4 {
				streams = append(streams, r.start(&Request{Tokens: []int32{1, 2, 3}, MaxTokens: 3000, Sampling: p}))
			}
			step := func() {
				if e.intake(); !e.step() {
					t.Fatal("nothing to do")
				}
				for _, s := range streams {
					for s.count > 0 {
						s.Next()
					}
				}
			}
			for range 100 {
				step()
			}
			if n := testing.AllocsPerRun(300, step); n != 0 {
				t.Errorf("%s: a step allocates %v times", k.name, n)
			}
		}
	}
}

// timed is a rig whose executor takes a given time for its rows.
func timed(t *testing.T, cost func(rows int) time.Duration, maxRows int) *rig {
	c := &clock{time.Unix(1000, 0)}
	k := kind{"full", []int{0}, false, 0}
	o := Options{Exec: backend.Options{MaxRows: maxRows, MaxSeqs: 4, MaxOut: 4}, Now: c.now}
	reserve(k.plan(0), &o.Exec, 20000)
	x := &blank{fake: newFake(k, o.Exec)}
	tx := &timedExec{x, c, cost, 0}
	e, err := build(tx, k.plan(8192), o)
	if err != nil {
		t.Fatal(err)
	}
	x.fake.clock = c
	return &rig{t, k, x.fake, e}
}

type timedExec struct {
	*blank
	c    *clock
	cost func(rows int) time.Duration
	rows int
}

func (x *timedExec) Submit(b *backend.Batch) error {
	x.rows = len(b.Tokens)
	return x.blank.Submit(b)
}

func (x *timedExec) Wait() ([]float32, error) {
	x.c.t = x.c.t.Add(x.cost(x.rows))
	return x.blank.Wait()
}

// costs are models of an executor: what a step costs that reads all weights, and each row.
var costs = []struct {
	name string
	f    func(rows int) time.Duration
}{
	{"roofline", func(n int) time.Duration { return max(30*time.Millisecond, time.Duration(n)*2500*time.Microsecond) }},
	{"rounded roofline", func(n int) time.Duration {
		return time.Duration(math.Pow(math.Pow(30, 4)+math.Pow(2.5*float64(n), 4), 0.25) * float64(time.Millisecond))
	}},
	{"tiles of 16", func(n int) time.Duration {
		return max(30*time.Millisecond, time.Duration((n+15)/16)*36*time.Millisecond)
	}},
}

func TestRunningStreamKeepsItsPace(t *testing.T) {
	prompt := make([]int32, 4000)
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			alone := firstToken(t, timed(t, c.f, 512), prompt)

			r := timed(t, c.f, 512)
			stream := r.start(&Request{Tokens: []int32{1, 2, 3}, MaxTokens: 4000})
			for range 30 {
				r.step()
			}
			quiet := intervals(r, stream, 50, nil)
			start := r.f.clock.t
			newcomer := r.start(&Request{Tokens: prompt, MaxTokens: 5})
			busy := intervals(r, stream, 1<<30, newcomer)
			first := r.f.clock.t.Sub(start)

			slices.Sort(busy)
			median, worst := busy[len(busy)/2], busy[len(busy)-1]
			var sum time.Duration
			for _, d := range busy {
				sum += d
			}
			base, mean := quiet[0], sum/time.Duration(len(busy))
			t.Logf("interval %v, while a prompt is computed %v median, %v mean, %v worst; first token %v, alone %v",
				base, median, mean, worst, first, alone)
			if median > 2*base || mean > 2*base || worst > 4*base {
				t.Errorf("the running stream's interval more than doubles")
			}
			if first > alone*16/10 {
				t.Errorf("the newcomer's first token comes %.2f times as late as alone", float64(first)/float64(alone))
			}
		})
	}
}

func firstToken(t *testing.T, r *rig, prompt []int32) time.Duration {
	start := r.f.clock.t
	s := r.start(&Request{Tokens: prompt, MaxTokens: 5})
	for s.count == 0 {
		r.step()
	}
	return r.f.clock.t.Sub(start)
}

// intervals steps n times, or until other has brought something, and returns the time between a stream's tokens.
func intervals(r *rig, s *Stream, n int, other *Stream) []time.Duration {
	var d []time.Duration
	last := r.f.clock.t
	for ; n > 0 && (other == nil || other.count == 0); n-- {
		r.step()
		for s.count > 0 {
			s.Next()
			d = append(d, r.f.clock.t.Sub(last))
			last = r.f.clock.t
		}
	}
	return d
}

func TestNewcomersShareThePrefill(t *testing.T) {
	r := timed(t, costs[0].f, 128)
	long, short := make([]int32, 4000), make([]int32, 100)
	for i := range short {
		long[i], short[i] = 1, 2
	}
	a := r.start(&Request{Tokens: long, MaxTokens: 2})
	r.step()
	b := r.start(&Request{Tokens: short, MaxTokens: 2})
	steps := 0
	for b.count == 0 {
		r.step()
		steps++
	}
	if steps > 3 || a.count > 0 {
		t.Errorf("a prompt of 100 tokens took %d steps of 128 rows beside one of 4,000", steps)
	}
}

func TestSamePrefixComputesOnlyItsTail(t *testing.T) {
	for _, k := range kinds {
		r := newRig(t, k, 1000, Options{Exec: backend.Options{MaxRows: 64, MaxSeqs: 4, MaxOut: 4}, SnapshotEvery: 64})
		w := &workload{rnd: seeded(3), k: k, cap: 1000}
		prompt := w.tokens(400)
		first := &Request{Tokens: prompt, MaxTokens: 40}
		s := r.start(first)
		r.finish()
		r.verify("first", s, first)
		answer := append(slices.Clone(prompt), expect(k, first, 1000)...)

		tests := []struct {
			name   string
			tokens []int32
			least  int // tokens that must come from the cache
		}{
			// The same prompt starts at its last page boundary where states are kept, else at its last token.
			{"same prompt", prompt, ifElse(k.state, 384, 399)},
			{"conversation goes on", append(slices.Clone(answer), w.tokens(9)...), 439},
			{"other end", append(slices.Clone(prompt[:390]), w.tokens(30)...), ifElse(k.state, 384, 390)},
			{
				"other end after a snapshot",
				append(slices.Clone(prompt[:330]), w.tokens(30)...),
				ifElse(k.state, 320, 330),
			},
		}
		for _, tt := range tests {
			before := r.e.Stats().Rows
			q := &Request{Tokens: tt.tokens, MaxTokens: 1}
			s := r.start(q)
			r.finish()
			done := r.verify(k.name+" "+tt.name, s, q)
			rows := int(r.e.Stats().Rows - before)
			if done.Usage.Cached < tt.least || rows != len(tt.tokens)-done.Usage.Cached {
				t.Errorf("%s, %s: %d of %d tokens from the cache, %d rows computed, want at least %d cached",
					k.name, tt.name, done.Usage.Cached, len(tt.tokens), rows, tt.least)
			}
		}
	}
}

func TestTwinsComputeTheirPrefixOnce(t *testing.T) {
	for _, k := range kinds {
		r := newRig(t, k, 1000, Options{Exec: backend.Options{MaxRows: 64, MaxSeqs: 4, MaxOut: 4}, SnapshotEvery: 64})
		w := &workload{rnd: seeded(4), k: k, cap: 1000}
		prefix := w.tokens(512)
		var reqs []*Request
		var streams []*Stream
		for range 4 {
			q := &Request{Tokens: append(slices.Clone(prefix), w.tokens(20)...), MaxTokens: 8}
			reqs, streams = append(reqs, q), append(streams, r.start(q))
		}
		r.finish()
		for i := range reqs {
			done := r.verify(k.name, streams[i], reqs[i])
			if i > 0 && done.Usage.Cached < 448 {
				t.Errorf(
					"%s: request %d computed %d tokens of the prefix of 512 again",
					k.name,
					i,
					512-done.Usage.Cached,
				)
			}
		}
	}
}

// TestEqualPromptsAreComputedOnce: copies of a prompt wait for the first, also where it is shorter than the way from
// one snapshot to the next.
func TestEqualPromptsAreComputedOnce(t *testing.T) {
	for _, k := range kinds {
		r := newRig(t, k, 1000, Options{Exec: backend.Options{MaxRows: 64, MaxSeqs: 4, MaxOut: 4}})
		prompt := (&workload{rnd: seeded(4), k: k}).tokens(200)
		var reqs []*Request
		var streams []*Stream
		for range 4 {
			q := &Request{Tokens: prompt, MaxTokens: 8}
			reqs, streams = append(reqs, q), append(streams, r.start(q))
		}
		r.finish()
		for i := range reqs {
			done := r.verify(k.name, streams[i], reqs[i])
			if i > 0 && done.Usage.Cached < 192 {
				t.Errorf("%s: copy %d computed %d tokens of 200 again", k.name, i, 200-done.Usage.Cached)
			}
		}
	}
}

// TestRecomputedPromptIsNotCountedAsCached: a request computes its prompt, loses its pages, and shares the prefix with
// another one when it comes back.
func TestRecomputedPromptIsNotCountedAsCached(t *testing.T) {
	k := kinds[0]
	r := newRig(
		t,
		k,
		320,
		Options{Exec: backend.Options{MaxRows: 32, MaxSeqs: 2, MaxOut: 2, Pages: []int{10}}, SwapBytes: -1},
	)
	w := &workload{rnd: seeded(6), k: k, cap: 320}
	prompt := w.tokens(128)
	q := &Request{Tokens: prompt, MaxTokens: 20}
	s := r.start(q)
	for s.count < 3 {
		r.step()
	}
	big := &Request{Tokens: w.tokens(300), MaxTokens: 1, Priority: 1}
	twin := &Request{Tokens: append(slices.Clone(prompt), 1, 2, 3), MaxTokens: 20, Priority: 1}
	sb, st := r.start(big), r.start(twin)
	r.e.intake()
	r.e.preempt(r.e.running[0])
	r.finish()
	r.verify("big", sb, big)
	r.verify("twin", st, twin)
	done := r.verify("first", s, q)
	if done.Usage.Swaps != 1 || done.Usage.Cached != 0 {
		t.Errorf("usage %+v: what a request computed itself and lost does not come from the cache", done.Usage)
	}
}

func TestSaltSeparates(t *testing.T) {
	k := kinds[0]
	r := newRig(t, k, 300, Options{Exec: backend.Options{MaxRows: 64, MaxSeqs: 4, MaxOut: 4}})
	prompt := make([]int32, 100)
	for _, tt := range []struct {
		salt   string
		cached int
	}{{"a", 0}, {"b", 0}, {"a", 99}, {"", 0}} {
		q := &Request{Tokens: prompt, MaxTokens: 1, CacheSalt: tt.salt}
		s := r.start(q)
		r.finish()
		if got := r.verify(tt.salt, s, q).Usage.Cached; got != tt.cached {
			t.Errorf("salt %q: %d cached, want %d", tt.salt, got, tt.cached)
		}
	}
}

func TestPaceIgnoresOneSlowStep(t *testing.T) {
	p := newPrefillBudget(1.9, 512, 8)
	for range 20 {
		p.observe(2, 0, 30*time.Millisecond)
	}
	p.observe(2, 0, 900*time.Millisecond)
	if d, ok := p.baseOf(2); !ok || d != 30*time.Millisecond {
		t.Errorf("a step takes %v, known: %v", d, ok)
	}
	for range 20 {
		p.observe(2, 30, 57*time.Millisecond)
	}
	if before := p.rows; before < 25 {
		t.Errorf("%v rows after steps of 30 that took just as long as they may", before)
	} else if p.observe(2, 30, time.Second); p.rows < before {
		t.Errorf("one slow step takes rows from %v to %v", before, p.rows)
	}
	if d, ok := p.baseOf(4); !ok || d != 30*time.Millisecond {
		t.Errorf("twice the rows take at least as long: %v, known: %v", d, ok)
	}
	if _, ok := p.baseOf(5); ok {
		t.Error("five rows are too far from two")
	}
	p.rows = 5.75
	if n := p.rowsBeside(2) + p.rowsBeside(2) + p.rowsBeside(2) + p.rowsBeside(2); n != 23 {
		t.Errorf("four steps of 5.75 rows have %d", n)
	}
	for range staleBase {
		p.observe(2, 16, 50*time.Millisecond)
	}
	if p.rowsBeside(2) != 0 {
		t.Error("an old measurement is not renewed")
	}
	p.observe(2, 0, 60*time.Millisecond)
	if d, _ := p.baseOf(2); d != 60*time.Millisecond {
		t.Errorf("the new measurement is %v", d)
	}
}

func TestNewcomerGetsOnWithACoarseClock(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	r := newRig(t, kinds[0], 400, Options{Exec: backend.Options{MaxRows: 32, MaxSeqs: 2, MaxOut: 2}, Now: c.now})
	r.start(&Request{Tokens: []int32{1}, MaxTokens: 300})
	for range 10 {
		r.step()
	}
	s := r.start(&Request{Tokens: make([]int32, 50), MaxTokens: 1})
	for range 40 {
		r.step()
	}
	if !s.ended {
		t.Error("a prompt is not computed beside a stream because the clock does not advance within a step")
	}
}
