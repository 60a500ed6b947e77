package openai_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestFailedPromptEndsTheOthers has one prompt of two fail while the other one, which is long, is still computed: it
// must be given up, not computed to its first token.
func TestFailedPromptEndsTheOthers(t *testing.T) {
	w := servertest.New(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{openai.New},
		Model:    func(o *model.Options) { o.Seqs = 1 }, // one behind the other: a failed step ends all that are in it
	})
	w.Backend.SetDelay(5 * time.Millisecond)
	var long atomic.Bool
	w.Backend.SetWatch(func(prompt string, _ int) {
		if strings.HasPrefix(prompt, "long") {
			long.Store(true)
		}
	})
	w.Backend.SetFail(func(prompt string, _ int) error {
		if prompt == "BREAK" {
			return servertest.ErrScripted
		}
		return nil
	})
	for _, stream := range []string{"false", "true"} {
		body := `{"model":"scripted","stream":` + stream + `,"prompt":["BREAK","` + strings.Repeat(
			"long "+stream,
			3000,
		) + `"]}`
		r := w.Post(t, "/v1/completions", body)
		if !strings.Contains(r.Body, `"error"`) {
			t.Errorf("stream %s: %d %.300s", stream, r.Status, r.Body)
		}
		if long.Load() {
			t.Errorf("stream %s: the other prompt was computed to its end", stream)
		}
	}
}
