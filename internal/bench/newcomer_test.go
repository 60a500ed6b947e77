package bench

import "testing"

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
	if n.CachedAgain != 299 { // all but the token that differs
		t.Errorf("%d of 300 tokens came from the cache", n.CachedAgain)
	}
	if n.IntervalAlone <= 0 {
		t.Errorf("a stream of %v ms between tokens", n.IntervalAlone)
	}
}
