package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Listen makes a listener's connections ones on which clients may say that they send no more and still get their
// answer: as `nc -N` does, old HTTP clients, and programs that shut down their side of a socket after a request.
//
// Package net/http ends a request's context when its client has closed its side, as one that has left has, too: TCP
// tells both in the same way. Who has left is told by an attempt to write: so as long as nothing of the answer was
// sent, such a client is sent "100 Continue" now and then, which every client skips, and which brings an error if
// nobody is there.
//
// Connections should be passed to ConnContext, as http.Server does.
// RATIONALE: Why is a client that has closed its side sent "100 Continue"?
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}

func newConn(c net.Conn) *conn {
	return &conn{Conn: c, closed: make(chan struct{}), moved: make(chan struct{})}
}

type connKey struct{}

// ConnContext is for http.Server's field of that name.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	switch c := c.(type) {
	case *conn:
		return context.WithValue(ctx, connKey{}, c)
	case tlsConn:
		return context.WithValue(ctx, connKey{}, c.conn)
	}
	return ctx
}

// conn is a connection whose end of input is only told where nobody waits for an answer.
type conn struct {
	net.Conn
	closing sync.Once
	closed  chan struct{}

	mu       sync.Mutex
	probing  bool          // a request is in work, of whose answer nothing was sent
	old      bool          // ... by HTTP/1.0, which has no interim answers
	deadline time.Time     // of reads
	moved    chan struct{} // closed and replaced when deadline changes
}

// probes are the pauses before attempts to write to a client that has closed its side. The first one makes a client
// that has left reset the connection, and the second finds that out. Some clients count what they skip, so there are
// few.
var probes = []time.Duration{
	50 * time.Millisecond,
	100 * time.Millisecond,
	300 * time.Millisecond,
	time.Second,
	4 * time.Second,
}

const probe = "HTTP/1.1 100 Continue\r\n\r\n"

// oldWait is how long a client of HTTP/1.0 that has closed its side is waited for: there is nothing to try it with, so
// this bounds the work for one that has left. Proxies leave so, such as nginx, which speaks HTTP/1.0 to what is
// behind it unless told otherwise.
const oldWait = 10 * time.Second

// begin notes that a request is in work.
func (c *conn) begin(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = r.ProtoMajor == 1
	c.old = c.probing && r.ProtoMinor == 0
}

// Write sends a part of an answer.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.probing = false
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// probe tries to write where nothing of the answer was sent to a client that closed its side some time ago.
func (c *conn) probe(ago time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock() // no answer begins meanwhile
	switch {
	case !c.probing, c.old && ago < oldWait:
		return nil
	case c.old:
		return io.EOF
	}
	_, err := io.WriteString(c.Conn, probe)
	return err
}

// Read hides the end of input from the reads of one byte by which package net/http watches clients while their requests
// are in work. Requests are read into buffers, so they are not concerned.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && err == io.EOF { // TLS tells of the end with what came before it; the next read tells again
		return n, nil
	}
	if err != io.EOF || len(b) != 1 {
		return n, err
	}
	began := time.Now()
	for i := 0; ; i++ {
		var next <-chan time.Time
		switch ago := time.Since(began); {
		case i < len(probes):
			next = time.After(probes[i])
		case ago < oldWait:
			next = time.After(oldWait - ago)
		}
		if err := c.pause(next); err != nil {
			return 0, err
		}
		if err := c.probe(time.Since(began)); err != nil {
			return 0, err
		}
	}
}

// pause waits for next, or for what ends a read.
func (c *conn) pause(next <-chan time.Time) error {
	for {
		c.mu.Lock()
		deadline, moved := c.deadline, c.moved
		c.mu.Unlock()
		var late <-chan time.Time
		if !deadline.IsZero() {
			if !time.Now().Before(deadline) {
				return os.ErrDeadlineExceeded
			}
			late = time.After(time.Until(deadline))
		}
		select {
		case <-next:
			return nil
		case <-c.closed:
			return net.ErrClosed
		case <-moved:
		case <-late:
		}
	}
}

// SetReadDeadline bounds reads, those that wait included.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	close(c.moved)
	c.moved = make(chan struct{})
	c.mu.Unlock()
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline bounds reads and writes.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// Close ends reads that wait.
func (c *conn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// noteRequest notes a request on the connection that it came by.
func noteRequest(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.begin(r)
	}
}
