package server

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
)

const (
	defaultMaxBody    = 32 << 20
	defaultBodyMemory = 128 << 20

	// freeBody is how much of a body is not counted against the memory for bodies: ordinary requests get in whatever
	// others send.
	freeBody = 64 << 10
	// pieceBody is how much a body's buffer grows at least. A piece of the network's is smaller.
	pieceBody = 16 << 10
)

// lastBytes is how long a client may go on sending a body that was refused before it was read.
const lastBytes = 2 * time.Second

// await bounds how long the rest of a request's body may take. Without it a client that never sends its body would hold
// a connection for good, also where nobody looks at the body: the answer is only sent behind it.
func (c *call) await(r *http.Request, d time.Duration) {
	if r.ContentLength != 0 {
		http.NewResponseController(c.writer).
			SetReadDeadline(time.Now().Add(d))
		//nolint:errcheck // writers of tests have none
	}
}

func (c *call) readBody(r *http.Request) ([]byte, error) {
	limit := c.maxBody
	if limit < 0 {
		limit = 1 << 62
	}
	if r.ContentLength > limit {
		return nil, &chat.Error{Kind: chat.BodyTooLarge, Limit: limit}
	}
	var body io.Reader = &paced{c: c, body: r.Body, end: time.Now().Add(c.bodyTimeout)}
	switch enc := strings.ToLower(r.Header.Get("Content-Encoding")); enc {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(body)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, BodyError(err)
		case err != nil:
			return nil, chat.Invalidf("", "the request body is not gzip, as Content-Encoding says")
		}
		body = z
	default:
		return nil, chat.Invalidf("", "Content-Encoding %q is not supported: send the body plain or as gzip", enc)
	}
	b, err := c.readAll(body, limit)
	if err != nil {
		return nil, err
	}
	c.bodyRead = true
	if c.writer != nil { // the answer may take longer than the body
		http.NewResponseController(c.writer).
			SetReadDeadline(time.Time{})
		//nolint:errcheck // writers of tests have none
	}
	return b, nil
}

// readAll reads a body of at most limit bytes, as far as there is memory for it. What is decoded of it may share its
// bytes, so the memory counts as used until the request ends.
func (c *call) readAll(body io.Reader, limit int64) ([]byte, error) {
	var b []byte
	for {
		if cap(b)-len(b) < pieceBody/2 && int64(cap(b)) <= limit { // at limit+1 there is room for all that is taken
			size := min(max(int64(cap(b))*2, pieceBody), limit+1)
			if err := c.grow(size - int64(cap(b))); err != nil {
				return nil, err
			}
			b = append(make([]byte, 0, size), b...)
		}
		n, err := body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > limit:
			return nil, &chat.Error{Kind: chat.BodyTooLarge, Limit: limit}
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, BodyError(err)
		}
	}
}

// grow counts n more bytes of a body.
func (c *call) grow(n int64) error {
	before := max(0, c.buffered-freeBody)
	c.buffered += n
	more := max(0, c.buffered-freeBody) - before
	if c.bodies == nil || more == 0 {
		return nil
	}
	ok, others := c.bodies.Take(c.trace.Caller, more)
	if !ok {
		e := &chat.Error{
			Kind:       chat.Overloaded,
			RetryAfter: 2 * time.Second,
			Msg: "the requests in work have too large bodies together: try again when some have ended, or " +
				"send less",
		}
		if others {
			e.Kind = chat.RateLimited
		}
		return e
	}
	c.counted += more
	return nil
}

// release gives the memory for the body back.
func (c *call) release() {
	if c.bodies != nil {
		c.bodies.Give(c.trace.Caller, c.counted)
		c.counted = 0
	}
}

// paced reads a body that has to go on: a client that sends nothing for a while holds memory for nothing.
type paced struct {
	c    *call
	body io.Reader
	end  time.Time // of the whole body
}

func (p *paced) Read(b []byte) (int, error) {
	if p.c.writer != nil {
		by := time.Now().Add(p.c.bodyPause)
		if p.end.Before(by) {
			by = p.end
		}
		http.NewResponseController(p.c.writer).SetReadDeadline(by) //nolint:errcheck // writers of tests have none
	}
	return p.body.Read(b)
}

// BodyError words an error of reading a request's body: it is the client's, never the server's.
func BodyError(err error) *chat.Error {
	var known *chat.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &chat.Error{Kind: chat.SlowBody, Err: err}
	}
	return &chat.Error{Kind: chat.Invalid, Msg: "the request body could not be read", Err: err}
}
