package server

import (
	"net/http"
	"slices"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/fairshare"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// A call is one HTTP request on its way.
type call struct {
	trace    *chat.Trace
	dialect  Dialect
	route    *Route
	writer   *writer
	maxBody  int64
	bodyRead bool
	limits   fields.Limits

	bodyTimeout, bodyPause time.Duration
	bodies                 *fairshare.Shares // memory for bodies; nil: not counted
	buffered, counted      int64             // of this one; counted of bodies
}

func (c *call) record(name string, b []byte) {
	if c.trace.Record != nil {
		c.trace.Record(name, b)
	}
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

// trailer sends the notices that came up after the header was sent, as streams have them.
func (w *writer) trailer() {
	if w.notices == nil || w.status == 0 {
		return
	}
	sent := w.Header().Values(NoticeHeader)
	for _, text := range w.notices() {
		if !slices.Contains(sent, text) {
			w.Header().Add(http.TrailerPrefix+NoticeHeader, text)
		}
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
