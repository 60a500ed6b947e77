package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/baleenrun/baleen/internal/server/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

const defaultMaxBody = 32 << 20

// A call is one HTTP request on its way.
type call struct {
	trace    *chat.Trace
	dialect  Dialect
	route    *Route
	writer   *writer
	maxBody  int64
	bodyTime time.Duration // that a client may take to send its body
}

func (c *call) record(name string, b []byte) {
	if c.trace.Record != nil {
		c.trace.Record(name, b)
	}
}

func (c *call) readBody(r *http.Request) ([]byte, error) {
	if c.writer != nil && c.bodyTime > 0 {
		rc := http.NewResponseController(c.writer)
		if rc.SetReadDeadline(time.Now().Add(c.bodyTime)) == nil {
			defer rc.SetReadDeadline(time.Time{}) //nolint:errcheck // it worked a moment ago
		}
	}
	limit := c.maxBody
	if limit < 0 {
		limit = 1 << 62
	}
	if r.ContentLength > limit {
		return nil, &chat.Error{Kind: chat.BodyTooLarge, Limit: limit}
	}
	var body io.Reader = r.Body
	switch enc := strings.ToLower(r.Header.Get("Content-Encoding")); enc {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, chat.Invalidf("", "the request body is not gzip, as Content-Encoding says")
		}
		body = z
	default:
		return nil, chat.Invalidf("", "Content-Encoding %q is not supported: send the body plain or as gzip", enc)
	}
	return fields.ReadBody(body, limit)
}

// writer is a ResponseWriter that notes what was written.
type writer struct {
	http.ResponseWriter
	status int
	bytes  int64
	tee    func([]byte)
}

func (w *writer) WriteHeader(status int) {
	if w.status == 0 || w.status < 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.tee != nil {
		w.tee(b)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// gate bounds how many requests are in work.
type gate struct {
	limit int64
	n     atomic.Int64
}

func (g *gate) enter() bool {
	if g.n.Add(1) > g.limit && g.limit > 0 {
		g.n.Add(-1)
		return false
	}
	return true
}

func (g *gate) leave() { g.n.Add(-1) }
