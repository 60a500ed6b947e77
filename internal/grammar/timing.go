package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Timing is what masks took, in microseconds.
type Timing struct {
	Count  int       `json:"count"`
	Tokens int       `json:"tokens"` // of the vocabulary
	Mean   float64   `json:"mean_us"`
	P50    float64   `json:"p50_us"`
	P90    float64   `json:"p90_us"`
	P99    float64   `json:"p99_us"`
	Max    float64   `json:"max_us"`
	Times  []float64 `json:"times_us,omitempty"` // where they are asked for
	All    []float64 `json:"-"`
}

// A Timer measures masks along texts.
type Timer struct {
	k     *Masker
	mask  []uint64
	times []float64
}

// Timer begins a measurement.
func (k *Masker) Timer() *Timer { return &Timer{k: k, mask: make([]uint64, k.v.Words())} }

func (t *Timer) at(m Matcher) error {
	start := Clock()
	err := t.k.Mask(m, t.mask)
	t.times = append(t.times, float64((Clock()-start).Nanoseconds())/1000)
	return err
}

// Along computes a mask before each token of a text, as far as the tokens are allowed.
func (t *Timer) Along(ids []int32) error {
	m := t.k.g.Matcher()
	for _, id := range ids {
		if err := t.at(m); err != nil {
			return err
		}
		next, ok, err := t.k.AcceptToken(m, id)
		if err != nil {
			return err
		}
		if allowed := t.mask[id>>6]>>(id&63)&1 == 1; allowed != ok {
			return fmt.Errorf("grammar: token %d: its mask says %v, the automaton %v", id, allowed, ok)
		}
		if !ok {
			return nil
		}
		m = next
	}
	return nil
}

// Random computes masks along random texts of at most steps tokens.
func (t *Timer) Random(r *rand.Rand, texts, steps int) error {
	for range texts {
		m := t.k.g.Matcher()
		for range steps {
			if err := t.at(m); err != nil {
				return err
			}
			var allowed []int32
			for id := range int32(t.k.v.size) {
				if t.mask[id>>6]>>(id&63)&1 == 1 && !slices.Contains(t.k.v.end, id) {
					allowed = append(allowed, id)
				}
			}
			if len(allowed) == 0 {
				break
			}
			next, ok, err := t.k.AcceptToken(m, allowed[r.IntN(len(allowed))])
			if err != nil || !ok {
				return fmt.Errorf("grammar: an allowed token was refused: %w", err)
			}
			m = next
		}
	}
	return nil
}

// Result is what was measured so far.
func (t *Timer) Result() *Timing {
	r := &Timing{Count: len(t.times), Tokens: t.k.v.size, All: t.times}
	if r.Count == 0 {
		return r
	}
	sorted := slices.Sorted(slices.Values(t.times))
	for _, x := range sorted {
		r.Mean += x / float64(r.Count)
	}
	at := func(p int) float64 { return sorted[min(r.Count-1, r.Count*p/100)] }
	r.P50, r.P90, r.P99, r.Max = at(50), at(90), at(99), sorted[r.Count-1]
	return r
}
