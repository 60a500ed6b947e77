package bench

import (
	"slices"
	"testing"
	"time"
)

func TestNewcomerReusesItsPrefix(t *testing.T) {
	o := Options{Prompt: 8, Generate: 2, Depth: 3, Streams: []int{1}, Reps: 1, Newcomer: 300}
	r, err := Run(t.Context(), tiny(t, "tiny", o), o, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	n := r.Newcomer
	if n == nil || n.Prompt != 300 || n.FirstAlone <= 0 || n.FirstBeside <= 0 || n.FirstAgain <= 0 {
		t.Fatalf("%+v", n)
	}
	if n.IntervalAlone <= 0 || n.IntervalBeside <= 0 || n.WorstBeside < n.IntervalBeside {
		t.Errorf("the stream that the newcomer joins did not run: %+v", n)
	}
	if n.CachedAgain != 299 { // all but the token that differs
		t.Errorf("%d of 300 tokens came from the cache", n.CachedAgain)
	}
}

func TestWatchSortsIntervals(t *testing.T) {
	start := time.Now()
	w := watch{at: []time.Time{start, start.Add(9 * time.Millisecond), start.Add(12 * time.Millisecond)}}
	if got := w.intervals(); !slices.Equal(got, []float64{3, 9}) {
		t.Errorf("intervals %v", got)
	}
	w.at = append(w.at, start.Add(17*time.Millisecond))
	if got := w.intervals(); !slices.Equal(got, []float64{5}) {
		t.Errorf("intervals %v behind the last token", got)
	}
	if got := w.intervals(); len(got) != 0 {
		t.Errorf("intervals %v of no tokens", got)
	}
}
