package server_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// halfClosing serves a world as `baleen serve` does, and connects to it.
func halfClosing(t *testing.T, w *servertest.World) *net.TCPConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: w.Server, ConnContext: server.ConnContext}
	go srv.Serve(server.Listen(l)) //nolint:errcheck // ends with Close
	t.Cleanup(func() { srv.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func sendRaw(t *testing.T, c net.Conn, version, body string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "POST %s HTTP/%s\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", chatPath, version, len(body), body); err != nil {
		t.Fatal(err)
	}
}

// TestHalfClosedClientsAreServed has clients close their side behind a request, which takes long enough for attempts to
// write before the answer.
func TestHalfClosedClientsAreServed(t *testing.T) {
	w := world(t, servertest.Options{})
	w.Backend.SetDelay(3 * time.Millisecond)
	whole := strings.Replace(counting, `"stream":true`, `"max_tokens":100`, 1)
	for _, q := range []struct{ name, version, body, end string }{
		{"whole", "1.1", whole, `"finish_reason":"length"`},
		{"stream", "1.1", strings.Replace(counting, `true`, `true,"max_tokens":100`, 1), "data: [DONE]"},
		{"HTTP/1.0", "1.0", whole, `"finish_reason":"length"`},
	} {
		c := halfClosing(t, w)
		sendRaw(t, c, q.version, q.body)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(c)
		answer := strings.TrimPrefix(
			string(b),
			strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", strings.Count(string(b), "100 Continue")),
		)
		if err != nil || !strings.HasPrefix(answer, "HTTP/"+q.version+" 200 OK\r\n") ||
			!strings.Contains(answer, q.end) {
			t.Errorf("%s: %v: %s", q.name, err, b)
		}
		if q.name == "whole" && len(answer) == len(b) {
			t.Error("nobody looked whether the client is there")
		}
	}
	held(t, w)
}

// TestClientsThatLeaveAreNoticed closes connections whole, before and while an answer is made, and keeps one open.
func TestClientsThatLeaveAreNoticed(t *testing.T) {
	w := world(t, servertest.Options{})
	w.Backend.SetDelay(5 * time.Millisecond)
	for _, body := range []string{strings.Replace(counting, `"stream":true`, `"max_tokens":4000`, 1), counting} {
		c := halfClosing(t, w)
		sendRaw(t, c, "1.1", body)
		eventually(t, "it runs", func() bool { return w.Server.Active() == 1 })
		c.Close()
		eventually(t, "it ends", func() bool { return w.Server.Active() == 0 })
	}
	c := halfClosing(t, w)
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", chatPath)
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 400") {
		t.Errorf("half a body: %v %s", err, b)
	}
	c = halfClosing(t, w)
	for range 3 {
		sendRaw(t, c, "1.1", hello)
		b := make([]byte, 1<<16)
		n, err := c.Read(b)
		if err != nil || !strings.HasPrefix(string(b[:n]), "HTTP/1.1 200 OK\r\n") {
			t.Fatalf("several on one connection: %v %s", err, b[:n])
		}
	}
	held(t, w)
}

// TestHalfClosedClientsUnderTLS: TLS says by close_notify that a client sends no more; it is served, one that leaves is
// noticed, HTTP/2 is spoken, and plain HTTP is answered in plain words.
func TestHalfClosedClientsUnderTLS(t *testing.T) {
	w := world(t, servertest.Options{})
	w.Backend.SetDelay(3 * time.Millisecond)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lent := httptest.NewTLSServer(nil)
	lent.Close()
	srv := &http.Server{Handler: w.Server, ConnContext: server.ConnContext}
	go srv.Serve(server.ListenTLS(l, lent.TLS, func(error) {})) //nolint:errcheck // ends with Close
	t.Cleanup(func() { srv.Close() })
	dial := func(version uint16) *tls.Conn {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c := dial(version)
		sendRaw(t, c, "1.1", strings.Replace(counting, `"stream":true`, `"max_tokens":100`, 1))
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); err != nil || !strings.Contains(string(b), `"finish_reason":"length"`) {
			t.Errorf("%x: %v: %s", version, err, b)
		}
		c = dial(version)
		sendRaw(t, c, "1.1", strings.Replace(counting, `"stream":true`, `"max_tokens":4000`, 1))
		eventually(t, "it runs", func() bool { return w.Server.Active() == 1 })
		c.Close()
		eventually(t, "it ends", func() bool { return w.Server.Active() == 0 })
	}
	web := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	defer web.CloseIdleConnections()
	if r, err := web.Get("https://" + l.Addr().String() + "/health"); err != nil || r.ProtoMajor != 2 {
		t.Errorf("%v %v", r, err)
	} else {
		r.Body.Close()
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err != nil {
		t.Error(err)
	} else {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if b, _ := io.ReadAll(c); !strings.Contains(string(b), "speaks HTTPS") {
			t.Errorf("%s", b)
		}
		c.Close()
	}
	held(t, w)
}
