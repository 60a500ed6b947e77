package cpu

import (
	"testing"
	"time"
)

// Short runs do not teach, unless all are short.
func TestReachLearnsFromLongRuns(t *testing.T) {
	var r prefetchTuner
	for _, c := range []struct {
		bytes int
		want  bool
	}{
		{4 << 10, false},
		{9 << 10, true},
		{30 << 10, true},
		{14 << 10, false},
		{20 << 10, true},
		{1 << 20, true},
		{90 << 10, false},
		{96 << 10, true},
		{30 << 10, false},
	} {
		if got := r.teaches(c.bytes); got != c.want {
			t.Errorf("after runs of up to %d bytes, one of %d teaches: %v", r.largest, c.bytes, got)
		}
	}
}

// A prefetchTuner finds the distance that is fastest, tries all of them now and then, and follows when another becomes
// so.
func TestReachFindsTheFastest(t *testing.T) {
	var r prefetchTuner
	now := func(fastest int) (used [len(prefetchDistances)]int) {
		for n := range 20000 {
			i, trial := r.pick()
			used[i]++
			if !trial {
				continue
			}
			took := 1100 * time.Nanosecond
			if i == fastest {
				took = 1000 * time.Nanosecond
			}
			if n%20 == 0 { // held up by another program
				took *= 100
			}
			r.learn(i, 1000, took)
		}
		return used
	}
	for _, fastest := range []int{2, 0, 3, 1} {
		now(fastest)
		used := now(fastest)
		if int(r.best) != fastest {
			t.Fatalf("distance %d is the fastest; means %v, chosen %d", fastest, r.time, r.best)
		}
		for i, n := range used {
			if i != fastest && n < 20 {
				t.Errorf("distance %d was tried %d times in 20000", i, n)
			}
		}
		if used[fastest] < 19000 {
			t.Errorf("distance %d is the fastest and was used %d times in 20000: %v", fastest, used[fastest], used)
		}
	}
}
