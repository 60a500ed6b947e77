package server_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// counted is a catalog that counts how often it is asked.
type counted struct {
	chat.Catalog
	n atomic.Int64
}

func (c *counted) Resolve(ctx context.Context, name string) (chat.Spec, error) {
	c.n.Add(1)
	return c.Catalog.Resolve(ctx, name)
}

// TestOneLookupARequest wants a name to be looked up once for each request.
func TestOneLookupARequest(t *testing.T) {
	var c counted
	w := world(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{anthropic.New, ollama.New(nil)},
		Chat:     func(o *chat.Options) { c.Catalog = o.Catalog; o.Catalog = &c },
	})
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	for path, body := range map[string]string{
		chatPath:                    `"max_tokens":1,` + hi,
		"/v1/completions":           `"max_tokens":1,"prompt":["a","b"]`,
		"/v1/responses":             `"input":"hi"`,
		"/v1/messages":              `"max_tokens":1,` + hi,
		"/v1/messages/count_tokens": hi,
		"/api/generate":             `"prompt":"hi","stream":false`,
		"/api/chat":                 hi + `,"stream":false`,
		"/api/show":                 `"verbose":false`,
	} {
		c.n.Store(0)
		if r := w.Post(t, path, `{"model":"scripted",`+body+`}`); r.Status != 200 || c.n.Load() != 1 {
			t.Errorf("%s: %d, %d lookups", path, r.Status, c.n.Load())
		}
	}
}
