package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// through is a client of a proxy.
func through(p *Proxy) *http.Client {
	proxy := &url.URL{Scheme: "http", Host: "proxy"}
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(proxy), DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", p.Socket)
		},
	}}
}

func get(c *http.Client, address string) string {
	resp, err := c.Get(address)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(b))
}

// TestProxy lets through what is allowed, by name and by address, and nothing else.
func TestProxy(t *testing.T) {
	var hits atomic.Int32
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		fmt.Fprint(w, "hello "+r.Host)
	})
	plain, secure := httptest.NewServer(h), httptest.NewTLSServer(h)
	defer plain.Close()
	defer secure.Close()
	_, port, _ := net.SplitHostPort(plain.Listener.Addr().String())
	_, securePort, _ := net.SplitHostPort(secure.Listener.Addr().String())
	ports := []string{port, securePort}
	allow := func(host string) bool { return host == "127.0.0.1" || host == "localhost" }
	open, err := newProxy(allow, func(netip.Addr) error { return nil }, ports)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	c := through(open)
	c.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	if got := get(c, plain.URL); got != "200 hello "+plain.Listener.Addr().String() {
		t.Error(got)
	}
	if got := get(c, secure.URL); got != "200 hello "+secure.Listener.Addr().String() {
		t.Error(got)
	}
	for _, u := range []string{"http://example.org/", "https://example.org/"} {
		if got := get(c, u); !strings.Contains(got, "Forbidden") && !strings.Contains(got, `the rule "reach example.org"`) {
			t.Errorf("%s: %s", u, got)
		}
	}
	if got := get(c, "http://127.0.0.1:1/"); !strings.Contains(got, "only ports") {
		t.Error(got)
	}
	// Asked for by name, it connects where the name leads, which is not public.
	hits.Store(0)
	closed, err := newProxy(func(string) bool { return true }, check, ports)
	if err != nil {
		t.Fatal(err)
	}
	c = through(closed)
	for _, u := range []string{plain.URL, secure.URL, "http://localhost:" + port, "https://[::ffff:127.0.0.1]:" + securePort} {
		if got := get(c, u); !strings.Contains(got, "403") && !strings.Contains(got, "Forbidden") {
			t.Errorf("%s: %s", u, got)
		}
	}
	if hits.Load() != 0 {
		t.Error("a server of this machine was reached")
	}
	closed.Close()
	if _, err := os.Stat(closed.Socket); err == nil {
		t.Error("the socket is still there")
	}
}
