package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/kv"
)

// TestRandomSchedules draws everything at random, the sizes of the engine too, and these down to the least that it
// takes: one sequence's pages, one slot, one row. Requests come, share prefixes, want logits of prompts, overtake and
// are cancelled at any time, and each gets what it would get alone.
func TestRandomSchedules(t *testing.T) {
	for seed := range uint64(10) {
		for _, k := range kinds {
			t.Run(fmt.Sprintf("%s/%d", k.name, seed), func(t *testing.T) { randomSchedule(t, k, seed) })
		}
	}
}

// asked is a request on its way through such a schedule.
type asked struct {
	q    *Request
	s    *Stream
	next int // the prompt position whose logits come next
}

func randomSchedule(t *testing.T, k kind, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 77))
	context := 64 + 32*rnd.IntN(8) + rnd.IntN(2)*rnd.IntN(32)
	o := Options{
		Exec:          backend.Options{MaxRows: 1 + rnd.IntN(90), MaxSeqs: 1 + rnd.IntN(6), MaxOut: 1 + rnd.IntN(8)},
		SnapshotEvery: kv.PageTokens * (1 + rnd.IntN(3)),
		SwapBytes:     []int64{-1, 1, 3000, 1 << 20}[rnd.IntN(4)],
	}
	o.Exec.Pages = make([]int, len(k.windows))
	for g, w := range k.windows {
		o.Exec.Pages[g] = (context + kv.PageTokens - 1) / kv.PageTokens
		if w > 0 {
			o.Exec.Pages[g] = kv.MinPages(w)
		}
		o.Exec.Pages[g] += rnd.IntN(3) * rnd.IntN(5)
	}
	if k.state {
		o.Exec.Slots = 1 + rnd.IntN(7)
	}
	r := newRig(t, k, context, o)
	r.e.admitRoom, r.e.resumeRoom = 1+rnd.IntN(64), 1+rnd.IntN(64)
	w := &workload{rnd: rnd, k: k, cap: context}
	var all []*asked
	for range 30 {
		for range rnd.IntN(4) {
			all = append(all, r.ask(w))
		}
		for range rnd.IntN(30) {
			if rnd.IntN(12) == 0 && len(all) > 0 {
				s := all[rnd.IntN(len(all))].s
				s.Close()
				if r.step(); !s.ended {
					t.Fatal("a cancelled stream goes on after a step")
				}
			}
			r.step()
		}
	}
	r.finish()
	for i, a := range all {
		done := r.verify(fmt.Sprint("request ", i), a.s, a.q)
		n := len(a.q.Tokens)
		most := n - 1
		if a.q.PromptLogits != nil {
			most = min(most, a.q.LogitsFrom)
			if done.Reason != FinishCancelled && a.next != n {
				t.Errorf("request %d: logits up to %d of %d", i, a.next, n)
			}
		}
		if u := done.Usage; u.Cached > most {
			t.Errorf("request %d: %d tokens from the cache, at most %d can be", i, u.Cached, most)
		}
	}
	r.nothingIsHeld()
}

// ask starts a request of a workload, at times with a prompt that others had in full.
func (r *rig) ask(w *workload) *asked {
	r.Helper()
	q := w.next()
	if w.rnd.IntN(3) == 0 {
		p := w.past[w.rnd.IntN(len(w.past))]
		q.Tokens, q.Answered = slices.Clone(p[:min(len(p), r.e.capacity-1)]), 0
	}
	q.Priority = w.rnd.IntN(6) / 5
	a := &asked{q: q}
	if w.rnd.IntN(4) == 0 {
		q.LogitsFrom = w.rnd.IntN(len(q.Tokens) + 1)
		a.next = q.LogitsFrom
		want, row := promptHashes(r.k, q.Tokens), make([]float32, fakeVocab)
		q.PromptLogits = func(pos int, logits []float32) {
			if fakeLogits(row, want[pos]); pos != a.next || !slices.Equal(row, logits) {
				r.Fatalf("logits of %d, want those of %d: equal: %v", pos, a.next, slices.Equal(row, logits))
			}
			a.next++
		}
	}
	a.s = r.start(q)
	return a
}

// nothingIsHeld says that an engine whose requests have ended has given everything back.
func (r *rig) nothingIsHeld() {
	r.Helper()
	st := r.e.Stats()
	if st.Running+st.Waiting+st.Swapped != 0 || st.SwapBytes != 0 || st.SlotsHeld != 0 {
		r.Errorf("after the end: %+v", st)
	}
	for _, g := range st.Groups {
		if g.Held != 0 {
			r.Errorf("%d pages are held by nobody", g.Held)
		}
	}
}
