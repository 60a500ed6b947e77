package mmap

import (
	"testing"
	"time"
)

// A file that was changed within the present tick of the clock of time stamps could be changed again unseen.
func TestSettled(t *testing.T) {
	now, ok := stampClock()
	if !ok {
		t.Fatal("the clock cannot be read")
	}
	for _, test := range []struct {
		changed time.Duration // from now
		want    bool
	}{{-time.Hour, true}, {0, false}, {10 * time.Millisecond, false}, {time.Hour, true}} {
		s := stamp{changed: now + int64(test.changed)}
		for tries := 0; !test.want && s.settled() && tries < 1000; tries++ { // the clock went on meanwhile
			now, _ = stampClock()
			s.changed = now + int64(test.changed)
		}
		if got := s.settled(); got != test.want {
			t.Errorf("changed %v from now: settled %v, want %v", test.changed, got, test.want)
		}
	}
}
