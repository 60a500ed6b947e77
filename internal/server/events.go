package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
)

const eventStream = "text/event-stream"

// Marshal writes JSON as APIs do: without the escapes for HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// WriteJSON answers with a JSON document.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	b, err := Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(append(b, '\n'))
	return err
}

// A Writer sends a stream piece by piece. A client that does not read for longer than Options.WriteTimeout loses its
// stream. Its methods may be called from several goroutines. After an error all further calls return it.
type Writer struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	media string

	mu      sync.Mutex
	started bool
	last    time.Time
	err     error
}

// NewEvents makes a Writer of server-sent events. Nothing is written before the first piece.
func (e *Env) NewEvents(w http.ResponseWriter) *Writer {
	return e.newWriter(w, eventStream+"; charset=utf-8")
}

// NewLines makes a Writer of JSON lines.
func (e *Env) NewLines(w http.ResponseWriter) *Writer { return e.newWriter(w, "application/x-ndjson") }

func (e *Env) newWriter(w http.ResponseWriter, media string) *Writer {
	return &Writer{w: w, rc: http.NewResponseController(w), media: media, last: time.Now()}
}

// Withdraw makes a stream of which nothing was sent send nothing any more, and reports whether that is so: then an
// error is answered instead of it. Otherwise errors belong into the stream.
func (s *Writer) Withdraw() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started && s.err == nil {
		s.err = errWithdrawn
	}
	return !s.started
}

var errWithdrawn = errors.New("server: the stream was withdrawn")

// Event sends one server-sent event with JSON data; its name may be empty.
func (s *Writer) Event(name string, v any) error {
	b, err := Marshal(v)
	if err != nil {
		return err
	}
	if name != "" {
		return s.raw("event: "+name+"\ndata: ", b, "\n\n")
	}
	return s.raw("data: ", b, "\n\n")
}

// Data sends a server-sent event of plain text, such as [DONE].
func (s *Writer) Data(text string) error { return s.raw("data: ", []byte(text), "\n\n") }

// Comment sends a line that clients skip: it keeps a connection alive.
func (s *Writer) Comment(text string) error { return s.raw(": ", []byte(text), "\n\n") }

// Line sends one JSON line.
func (s *Writer) Line(v any) error {
	b, err := Marshal(v)
	if err != nil {
		return err
	}
	return s.raw("", b, "\n")
}

func (s *Writer) raw(before string, b []byte, after string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if !s.started {
		h := s.w.Header()
		h.Set("Content-Type", s.media)
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
		s.started = true
	}
	buf := make([]byte, 0, len(before)+len(b)+len(after))
	buf = append(append(append(buf, before...), b...), after...)
	now := time.Now()
	if _, err := s.w.Write(buf); err != nil {
		s.err = &chat.Error{Kind: chat.Cancelled, Msg: "the client stopped reading", Err: err}
		return s.err
	}
	if err := s.rc.Flush(); err != nil {
		s.err = &chat.Error{Kind: chat.Cancelled, Msg: "the client stopped reading", Err: err}
		return s.err
	}
	s.last = now
	return nil
}

// Beat calls f whenever nothing was sent for the interval, until stop is called: for pings. stop waits for a running f.
func (s *Writer) Beat(interval time.Duration, f func() error) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(max(interval/4, time.Millisecond))
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				s.mu.Lock()
				quiet := time.Since(s.last) >= interval
				s.mu.Unlock()
				if quiet && f() != nil {
					return
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}
