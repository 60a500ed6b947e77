package server

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// atEnd is a connection whose client has closed its side.
type atEnd struct{ net.Conn }

func (atEnd) Read([]byte) (int, error)         { return 0, io.EOF }
func (atEnd) Write(b []byte) (int, error)      { return len(b), nil }
func (atEnd) Close() error                     { return nil }
func (atEnd) SetReadDeadline(time.Time) error  { return nil }
func (atEnd) SetWriteDeadline(time.Time) error { return nil }

// TestOldClientsThatLeaveAreNoticed: there is nothing to try a client of HTTP/1.0 with, so one that has closed its side
// is taken for gone when nothing of its answer was sent for a while; not while it is being answered, and no client of
// HTTP/1.1, which was tried.
func TestOldClientsThatLeaveAreNoticed(t *testing.T) {
	for _, q := range []struct {
		minor    int
		answered bool
		err      error
	}{{0, false, io.EOF}, {0, true, net.ErrClosed}, {1, false, net.ErrClosed}} {
		synctest.Test(t, func(t *testing.T) {
			c := newConn(atEnd{})
			c.begin(&http.Request{ProtoMajor: 1, ProtoMinor: q.minor})
			if q.answered {
				time.AfterFunc(oldWait/2, func() { c.Write([]byte("x")) }) //nolint:errcheck
			}
			time.AfterFunc(time.Hour, func() { c.Close() })
			began := time.Now()
			_, err := c.Read(make([]byte, 1))
			want := time.Hour
			if q.err == io.EOF {
				want = oldWait
			}
			if took := time.Since(began); err != q.err || took != want {
				t.Errorf("HTTP/1.%d, answered %v: %v after %v, want %v after %v", q.minor, q.answered, err, took, q.err, want)
			}
		})
	}
}
