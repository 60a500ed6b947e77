package server_test

import (
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestRunLoadsOnce: a request that brings an earlier answer's ids and lets the model go afterwards loads it once, and
// ids that the model does not have are refused.
func TestRunLoadsOnce(t *testing.T) {
	loads := 0
	w := world(t, servertest.Options{Model: func(*model.Options) { loads++ }})
	const body = `{"model":"scripted","messages":[{"role":"user","content":"hi"}],"keep_alive":0,"said":`
	if r := w.Post(t, "/baleen/run", body+`[1,2]}`); r.Status != 200 || !strings.Contains(r.Body, `"done"`) {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	if loads != 1 {
		t.Errorf("the model was loaded %d times", loads)
	}
	for _, path := range []string{"/baleen/run", "/baleen/count"} {
		if r := w.Post(t, path, body+`[1,1073741824]}`); r.Status != 400 ||
			!strings.Contains(r.Body, "said: token 1073741824 at position 1") {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
}
