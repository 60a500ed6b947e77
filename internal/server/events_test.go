package server_test

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/baleenrun/baleen/internal/server"
)

// TestWithdrawnStreams decides between an error in the stream and one instead of it, while comments are sent: what was
// decided must hold. At the very moment of a comment either may come first.
func TestWithdrawnStreams(t *testing.T) {
	const beat = 4 * time.Second
	for _, c := range []struct {
		after          time.Duration
		never, instead bool // what must not be, and what must be
	}{
		{beat - 1, false, true},
		{beat, false, false},
		{beat + 1, true, false},
		{3 * beat, true, false},
	} {
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				w := httptest.NewRecorder()
				out := (&server.Env{}).NewEvents(w)
				stop := out.Beat(beat, func() error { return out.Comment("working") })
				time.Sleep(c.after)
				instead := out.Withdraw()
				time.Sleep(2 * beat)
				stop()
				if c.never && instead || c.instead && !instead {
					t.Fatalf("withdrawn after %v: %v", c.after, instead)
				}
				if instead == (w.Body.Len() > 0) {
					t.Fatalf("an error is sent instead of the stream: %v; the stream: %q", instead, w.Body)
				}
				if instead != (out.Comment("more") != nil) {
					t.Fatalf("the stream is withdrawn: %v", instead)
				}
			})
		}
	}
}
