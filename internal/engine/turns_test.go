package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestCallersTakeTurns has one caller fill the queue: others get in, and are admitted by turns.
func TestCallersTakeTurns(t *testing.T) {
	one := usual
	one.MaxSeqs = 1
	r := newRig(t, kinds[0], 100, Options{Exec: one, MaxQueue: 4})
	var order []string
	ask := func(caller string) (*QueueFull, *Stream) {
		s, err := r.e.Generate(context.Background(), &Request{Tokens: []int32{1}, MaxTokens: 2, Caller: caller})
		var full *QueueFull
		if err != nil && !errors.As(err, &full) {
			t.Fatal(err)
		}
		return full, s
	}
	streams := map[*Stream]string{}
	for _, c := range []struct {
		caller string
		full   bool
		shared bool
	}{
		{"flood", false, false},
		{"flood", false, false},
		{"flood", false, false},
		{"flood", false, false},
		{"flood", true, false},
		{"b", false, false},
		{"flood", true, true},
		{"b", false, false},
		{"b", true, true}, // two of four places are its half
		{"c", false, false},
	} {
		full, s := ask(c.caller)
		if (full != nil) != c.full || full != nil && full.Shared != c.shared {
			t.Errorf("%s: %+v", c.caller, full)
		}
		if s != nil {
			streams[s] = c.caller
		}
	}
	for r.step() {
		for s, caller := range streams {
			if s.count > 0 {
				order = append(order, caller)
				delete(streams, s)
			}
		}
	}
	if want := []string{"flood", "b", "c", "flood", "b", "flood", "flood"}; !slices.Equal(order, want) {
		t.Errorf("admitted %v, want %v", order, want)
	}
	if n := r.e.places.Total(); n != 0 {
		t.Errorf("%d places are not given back", n)
	}
}
