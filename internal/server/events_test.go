package server_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/server"
)

// TestWithdrawnStreams decides between an error in the stream and one instead of it, while comments are sent: what was
// decided must hold.
func TestWithdrawnStreams(t *testing.T) {
	var both [2]bool
	for i := range 400 {
		w := httptest.NewRecorder()
		out := (&server.Env{}).NewEvents(w)
		stop := out.Beat(time.Millisecond, func() error { return out.Comment("working") })
		time.Sleep(time.Millisecond + time.Duration(i)*time.Microsecond/4)
		instead := out.Withdraw()
		time.Sleep(2 * time.Millisecond)
		stop()
		if instead == (w.Body.Len() > 0) {
			t.Fatalf("an error is sent instead of the stream: %v; the stream: %q", instead, w.Body)
		}
		if instead != (out.Comment("more") != nil) {
			t.Fatalf("the stream is withdrawn: %v", instead)
		}
		if instead {
			both[0] = true
		} else {
			both[1] = true
		}
	}
	if both != [2]bool{true, true} {
		t.Errorf("withdrawn, not withdrawn: %v", both)
	}
}
