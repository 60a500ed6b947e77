package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// handshakeWait bounds the opening of a connection under TLS.
const handshakeWait = 10 * time.Second

// ListenTLS is Listen under TLS: clients of HTTP/1.1 that say by TLS's close_notify that they send no more get their
// answers. Package net/http sees connections under TLS only where it opens them itself, and what it opens cannot be
// looked into; so they are opened here, and those that HTTP/2 was agreed on, which has a way of its own to say that a
// request is whole, are handed on as they are. failed is told why a connection could not be opened.
func ListenTLS(l net.Listener, config *tls.Config, failed func(error)) net.Listener {
	config = config.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	return &tlsListener{
		Listener: l, config: config, failed: failed, opened: make(chan accepted), closed: make(chan struct{}),
	}
}

type tlsListener struct {
	net.Listener
	config *tls.Config
	failed func(error)

	accepts, closing sync.Once
	opened           chan accepted
	closed           chan struct{}
}

type accepted struct {
	c   net.Conn
	err error
}

// Accept waits for a connection that is open; no client makes others wait.
func (l *tlsListener) Accept() (net.Conn, error) {
	l.accepts.Do(func() { go l.accept() })
	select {
	case a := <-l.opened:
		return a.c, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *tlsListener) accept() {
	for {
		c, err := l.Listener.Accept()
		if err == nil {
			go l.open(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) || !l.hand(accepted{err: err}) {
			l.closing.Do(func() { close(l.closed) })
			return
		}
	}
}

// hand hands a connection to who accepts; it reports whether there is somebody.
func (l *tlsListener) hand(a accepted) bool {
	select {
	case l.opened <- a:
		return true
	case <-l.closed:
		return false
	}
}

func (l *tlsListener) open(c net.Conn) {
	t := tls.Server(c, l.config)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeWait)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) && plain.Conn != nil { // no TLS at all: most likely plain HTTP
			io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nthis server speaks HTTPS\n") //nolint:errcheck
		}
		c.Close()
		l.failed(err)
		return
	}
	var out net.Conn = t
	if t.ConnectionState().NegotiatedProtocol != "h2" {
		out = tlsConn{newConn(t), t}
	}
	if !l.hand(accepted{c: out}) {
		t.Close()
	}
}

func (l *tlsListener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// tlsConn is a conn under TLS, of which net/http asks the state.
type tlsConn struct {
	*conn
	tls *tls.Conn
}

func (c tlsConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }
