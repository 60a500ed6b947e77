package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/kv"
	"github.com/baleenrun/baleen/internal/sample"
)

// masks are those that the tests' model answers can be computed with: plain returns the mask anew, without more than a
// sample.Mask has.
type masks interface{ plain() sample.Mask }

// A script allows at each place of an answer what its list says; a list of one token forces it.
type script struct {
	places [][]int32
	at     int
}

func (s *script) plain() sample.Mask { return &script{places: s.places} }

func (s *script) Allowed() []uint64 {
	bits := make([]uint64, 1)
	if s.at < len(s.places) {
		for _, id := range s.places[s.at] {
			bits[0] |= 1 << id
		}
	}
	return bits
}

func (s *script) Accept(id int32) error {
	if s.at >= len(s.places) || !slices.Contains(s.places[s.at], id) {
		return fmt.Errorf("token %d at place %d", id, s.at)
	}
	s.at++
	return nil
}

// A forcing script says what it forces, up to three tokens at a time.
type forcing struct{ script }

func (f *forcing) Forced() []int32 {
	var ids []int32
	for i := f.at; i < len(f.places) && len(f.places[i]) == 1 && len(ids) < 3; i++ {
		ids = append(ids, f.places[i][0])
	}
	return ids
}

// A slow script makes its masks when it is told to; nil: at once.
type slow struct {
	forcing
	bits []uint64
	gate chan struct{}
	fail int // the mask that panics, counted from 1
	made int
}

func (s *slow) Prepare() {
	if s.gate != nil {
		<-s.gate
	}
	if s.made++; s.made == s.fail {
		panic("no mask today")
	}
	s.bits = s.script.Allowed()
}

func (s *slow) Allowed() []uint64 {
	bits := s.bits
	s.bits = []uint64{0} // a mask that was not made anew allows nothing
	return bits
}

// randomPlaces makes a script that ends with a stop token.
func randomPlaces(rnd *rand.Rand, stop int32) (places [][]int32, free int) {
	for range rnd.IntN(60) {
		if rnd.IntN(2) == 0 {
			places = append(places, []int32{rnd.Int32N(stop)})
			continue
		}
		var set []int32
		for id := range stop {
			if rnd.IntN(3) == 0 {
				set = append(set, id)
			}
		}
		if len(set) < 2 {
			set = []int32{1, 2}
		}
		places = append(places, set)
		free++
	}
	return append(places, []int32{stop}), free
}

const fakeStop = 60

// TestConstrainedSchedules runs masks of all kinds beside each other with pages for a few of them only: each answer is
// the one that the mask gives alone, without forcing, preparing or company.
func TestConstrainedSchedules(t *testing.T) {
	for seed := range uint64(6) {
		for _, k := range kinds {
			t.Run(fmt.Sprintf("%s/%d", k.name, seed), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				o := Options{Exec: backend.Options{MaxRows: 1 + rnd.IntN(40), MaxSeqs: 1 + rnd.IntN(5), MaxOut: 5}}
				o.Exec.Pages = make([]int, len(k.windows))
				for g, w := range k.windows {
					o.Exec.Pages[g] = max(kv.MinPages(w), 200/kv.PageTokens+1) + rnd.IntN(6)
				}
				if k.state {
					o.Exec.Slots = 1 + rnd.IntN(6)
				}
				r := newRig(t, k, 200, o)
				r.e.admitRoom, r.e.resumeRoom = 1+rnd.IntN(64), 1+rnd.IntN(64)
				var streams []*Stream
				var requests []*Request
				for range 12 {
					q := &Request{
						Tokens: []int32{rnd.Int32N(50), 7}, StopTokens: []int32{fakeStop},
						Sampling: sample.Params{
							Temperature:      4,
							FrequencyPenalty: 0.5,
							HasSeed:          true,
							Seed:             rnd.Uint64(),
						},
					}
					places, _ := randomPlaces(rnd, fakeStop)
					switch rnd.IntN(4) {
					case 0:
						q.Mask = &script{places: places}
					case 1:
						q.Mask = &forcing{script{places: places}}
					case 2:
						q.Mask = &slow{forcing: forcing{script{places: places}}}
					}
					q.LogProbs = rnd.IntN(2) * rnd.IntN(3)
					q.MaxTokens = 1 + rnd.IntN(80)
					if rnd.IntN(3) == 0 { // counted on the engine's goroutine, once for each token
						q.NoPenalty = everyThird()
					}
					requests, streams = append(requests, q), append(streams, r.start(q))
				}
				r.finishWithMasks()
				for i, s := range streams {
					if requests[i].NoPenalty != nil {
						requests[i].NoPenalty = everyThird()
					}
					r.verify(fmt.Sprint("request ", i), s, requests[i])
				}
				r.nothingIsHeld()
			})
		}
	}
}

// everyThird leaves out penalties by a count of the tokens: who misses one is found out.
func everyThird() func(int32) bool {
	n := 0
	return func(int32) bool { n++; return n%3 == 0 }
}

// finishWithMasks steps until all is done, through steps that wait for a mask.
func (r *rig) finishWithMasks() {
	r.Helper()
	for n := 0; ; n++ {
		if !r.step() {
			if !slices.ContainsFunc(r.e.running, (*sequence).awaitsMask) {
				return
			}
			<-r.e.wakeup
		}
		if n > 100000 {
			r.Fatal("the engine does not come to an end")
		}
	}
}

// TestForcedTokensTakeNoStep counts the steps of an answer: one for each token that was free, the first of them with
// the prompt. An end that is forced takes none.
func TestForcedTokensTakeNoStep(t *testing.T) {
	for seed := range uint64(20) {
		places, free := randomPlaces(rand.New(rand.NewPCG(seed, 1)), fakeStop)
		r := newRig(t, kinds[0], 200, Options{Exec: backend.Options{MaxRows: 64, MaxSeqs: 4, MaxOut: 4}})
		q := &Request{
			Tokens: []int32{3, 4, 5}, Mask: &forcing{script{places: places}}, StopTokens: []int32{fakeStop},
			Sampling: sample.Params{Temperature: 2, HasSeed: true, Seed: seed},
		}
		s := r.start(q)
		r.finish()
		done := r.verify("the answer", s, q)
		if want := max(free, 1); len(r.f.steps) != want || done.Usage.Generated != len(places) {
			t.Errorf(
				"%d steps and %d tokens for %d free ones of %d",
				len(r.f.steps),
				done.Usage.Generated,
				free,
				len(places),
			)
		}
	}
}

// TestForcedTokensHaveLogProbs: they are the model's, and the tokens are the same as without.
func TestForcedTokensHaveLogProbs(t *testing.T) {
	places, _ := randomPlaces(rand.New(rand.NewPCG(8, 1)), fakeStop)
	r := newRig(t, kinds[0], 200, Options{Exec: usual})
	q := &Request{
		Tokens: []int32{3, 4, 5}, Mask: &forcing{script{places: places}}, StopTokens: []int32{fakeStop}, LogProbs: 1,
		Sampling: sample.Params{Temperature: 2, HasSeed: true, Seed: 3},
	}
	s := r.start(q)
	r.finish()
	want := expect(r.k, q, r.e.capacity)
	o := &oracle{k: r.k}
	var hash uint64
	for _, id := range q.Tokens {
		hash = o.feed(id)
	}
	logits, w := make([]float32, fakeVocab), sample.NewScratch(fakeVocab)
	for _, id := range want[:len(want)-1] {
		ev, _ := s.Next()
		fakeLogits(logits, hash)
		lp, _ := sample.LogProbs(w, nil, logits, id, 0)
		if ev.Token != id || ev.LogProb != lp {
			t.Fatalf("token %d of %v, want %d of %v", ev.Token, ev.LogProb, id, lp)
		}
		hash = o.feed(id)
	}
}

// TestLateMaskHoldsNobodyUp: while one row's mask is being made, the others go on; then it goes on as if nothing had
// been.
func TestLateMaskHoldsNobodyUp(t *testing.T) {
	r := newRig(t, kinds[0], 200, Options{Exec: usual})
	places := [][]int32{{1, 2, 3}, {4, 5}, {6, 7, 8}, {fakeStop}}
	m := &slow{forcing: forcing{script{places: places}}, gate: make(chan struct{})}
	sampling := sample.Params{Temperature: 2, HasSeed: true, Seed: 3}
	late := &Request{Tokens: []int32{1, 2}, Mask: m, StopTokens: []int32{fakeStop}, Sampling: sampling}
	free := &Request{Tokens: []int32{5}, MaxTokens: 50, Sampling: sampling}
	a, b := r.start(late), r.start(free)
	for !b.ended {
		r.step()
	}
	if a.count != 0 {
		t.Error("a token was drawn without its mask")
	}
	if r.step() {
		t.Error("a step with nothing to compute")
	}
	close(m.gate)
	r.finishWithMasks()
	r.verify("the late one", a, late)
	r.verify("the free one", b, free)
}

// TestLateMaskOfALoneRequest: one that comes while the mask of the only one that runs is being made does not wait for
// it.
func TestLateMaskOfALoneRequest(t *testing.T) {
	r := newRig(t, kinds[0], 200, Options{Exec: usual})
	m := &slow{forcing: forcing{script{places: [][]int32{{1, 2, 3}, {fakeStop}}}}, gate: make(chan struct{})}
	late := &Request{Tokens: []int32{1, 2}, Mask: m, StopTokens: []int32{fakeStop}}
	a := r.start(late)
	for r.step() { // until nothing is left but to wait
	}
	free := &Request{Tokens: []int32{5}, MaxTokens: 9}
	b := r.start(free)
	for !b.ended {
		r.step()
	}
	close(m.gate)
	r.finishWithMasks()
	r.verify("the late one", a, late)
	r.verify("the free one", b, free)
}

// TestMaskThatPanics ends its request, and no other.
func TestMaskThatPanics(t *testing.T) {
	r := newRig(t, kinds[0], 200, Options{Exec: usual})
	places := [][]int32{{1, 2, 3}, {4, 5}, {6, 7, 8}, {fakeStop}}
	bad := &Request{Tokens: []int32{1}, Mask: &slow{forcing: forcing{script{places: places}}, fail: 2}}
	free := &Request{Tokens: []int32{5}, MaxTokens: 9}
	a, b := r.start(bad), r.start(free)
	r.finishWithMasks()
	got, done := r.read(a)
	if len(got) != 1 || done.Reason != FinishError || done.Err == nil ||
		!strings.Contains(done.Err.Error(), "no mask today") {
		t.Errorf("%v, then %v %v", got, done.Reason, done.Err)
	}
	r.verify("the free one", b, free)
}
