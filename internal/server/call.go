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

const defaultMaxBody = 32 << 20

// A call is one HTTP request on its way.
type call struct {
	trace    *chat.Trace
	dialect  Dialect
	route    *Route
	writer   *writer
	maxBody  int64
	bodyRead bool
}

func (c *call) record(name string, b []byte) {
	if c.trace.Record != nil {
		c.trace.Record(name, b)
	}
}

// lastBytes is how long a client may go on sending a body that was refused before it was read.
const lastBytes = 2 * time.Second

// await bounds how long the rest of a request's body may take. Without it a client that never sends its body would hold
// a connection for good, also where nobody looks at the body: the answer is only sent behind it.
func (c *call) await(r *http.Request, d time.Duration) {
	if r.ContentLength != 0 {
		http.NewResponseController(c.writer).SetReadDeadline(time.Now().Add(d)) //nolint:errcheck // writers of tests have none
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
	var body io.Reader = r.Body
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
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, BodyError(err)
	}
	if int64(len(b)) > limit {
		return nil, &chat.Error{Kind: chat.BodyTooLarge, Limit: limit}
	}
	c.bodyRead = true
	if c.writer != nil { // the answer may take longer than the body
		http.NewResponseController(c.writer).SetReadDeadline(time.Time{}) //nolint:errcheck // writers of tests have none
	}
	return b, nil
}

// BodyError words an error of reading a request's body: it is the client's, never the server's.
func BodyError(err error) *chat.Error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &chat.Error{Kind: chat.SlowBody, Err: err}
	}
	return &chat.Error{Kind: chat.Invalid, Msg: "the request body could not be read", Err: err}
}

// writer is a ResponseWriter that notes what was written. A client that does not read for longer than the timeout loses
// its answer: what an answer holds must not be held for good.
type writer struct {
	http.ResponseWriter
	timeout time.Duration // to read a piece; 0: not bounded
	notices func() []string
	status  int
	tee     func([]byte)
}

// maxPiece is how much of an answer is written under one deadline.
const maxPiece = 64 << 10

func (w *writer) WriteHeader(status int) {
	if w.status == 0 || w.status < 200 {
		w.status = status
		w.notice()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
		w.notice()
	}
	if w.tee != nil {
		w.tee(b)
	}
	n := 0
	for {
		w.deadline(true)
		k, err := w.ResponseWriter.Write(b[n:min(n+maxPiece, len(b))])
		w.deadline(false)
		n += k
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// NoticeHeader is the header that says what a client should know of its request beside the answer, such as a field that
// was accepted and has no effect here.
const NoticeHeader = "X-Baleen-Notice"

func (w *writer) notice() {
	if w.notices == nil {
		return
	}
	for _, text := range w.notices() {
		w.Header().Add(NoticeHeader, text)
	}
}

// FlushError is for http.ResponseController.
func (w *writer) FlushError() error {
	w.deadline(true)
	defer w.deadline(false)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// deadline bounds what is written next, or lifts the bound. Over HTTP/2 one that was left would end the answer when it
// passes, whether something is being written or not.
func (w *writer) deadline(on bool) {
	if w.timeout == 0 {
		return
	}
	var t time.Time
	if on {
		t = time.Now().Add(w.timeout)
	}
	http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t) //nolint:errcheck // writers of tests have none
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
