package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Proxy lets commands in a sandbox reach hosts that are allowed by name, at public addresses alone. It listens on a
// socket of the file system, which only the sandbox's own relay reaches.
type Proxy struct {
	// Socket is its path, for sandbox.Policy.
	Socket string

	dir     string
	allow   func(host string) bool
	dialer  net.Dialer
	server  *http.Server
	forward *http.Transport
	tunnels chan struct{} // as many as are open

	mu   sync.Mutex
	open map[net.Conn]bool // of tunnels, which the server does not know
}

// Bounds of a proxy.
const (
	maxTunnels = 64
	idleTunnel = 5 * time.Minute
)

// proxyPorts are those of the web; others are for other protocols, that nobody has looked at.
var proxyPorts = []string{"80", "443"}

// NewProxy starts a proxy for hosts that allow lets through.
func NewProxy(allow func(host string) bool) (*Proxy, error) {
	return newProxy(allow, check, proxyPorts)
}

func newProxy(allow func(string) bool, allowed func(netip.Addr) error, ports []string) (*Proxy, error) {
	dir, err := os.MkdirTemp("", "baleen-egress-")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Socket: filepath.Join(dir, "proxy"), dir: dir, tunnels: make(chan struct{}, maxTunnels), open: map[net.Conn]bool{},
		dialer: net.Dialer{Timeout: 15 * time.Second, Control: control(allowed), FallbackDelay: -1},
		allow:  func(host string) bool { return allow(strings.ToLower(strings.TrimSuffix(host, "."))) },
	}
	p.forward = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if _, port, err := net.SplitHostPort(address); err != nil || !slices.Contains(ports, port) {
				return nil, fmt.Errorf("only ports %s are reached", strings.Join(ports, " and "))
			}
			return p.dialer.DialContext(ctx, network, address)
		},
		ResponseHeaderTimeout: time.Minute, DisableKeepAlives: true, DisableCompression: true,
	}
	l, err := net.Listen("unix", p.Socket)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// Close ends the proxy, with all that goes through it.
func (p *Proxy) Close() {
	_ = p.server.Close()
	p.mu.Lock()
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	_ = os.RemoveAll(p.dir)
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := r.URL.Hostname()
	if r.Method == http.MethodConnect {
		host, _, _ = net.SplitHostPort(r.Host)
	}
	if host == "" || r.Method != http.MethodConnect && r.URL.Scheme != "http" {
		http.Error(w, "this is a proxy", http.StatusBadRequest)
		return
	}
	if !p.allow(host) {
		http.Error(w, fmt.Sprintf("the sandbox does not let commands reach %s: the user can allow it by the rule \"reach %s\"", host, host), http.StatusForbidden)
		return
	}
	select {
	case p.tunnels <- struct{}{}:
		defer func() { <-p.tunnels }()
	default:
		http.Error(w, "too many connections at a time", http.StatusServiceUnavailable)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	p.pass(w, r)
}

// hopByHop are headers that are about one connection.
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// pass hands on a request without TLS.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.Host = r.URL.Host // what was decided about, whatever the header says
	for _, h := range hopByHop {
		out.Header.Del(h)
	}
	resp, err := p.forward.RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), refusal(err))
		return
	}
	defer resp.Body.Close()
	for k, vs := range resp.Header {
		if !slices.Contains(hopByHop, k) {
			w.Header()[k] = vs
		}
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

func refusal(err error) int {
	var f *ForbiddenError
	if errors.As(err, &f) {
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// tunnel connects two ends.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := p.forward.DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), refusal(err))
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer here.Close()
	p.mu.Lock()
	p.open[here], p.open[there] = true, true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, here)
		delete(p.open, there)
	}()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	copyTo := func(to net.Conn, from io.Reader, conn net.Conn) {
		buf := make([]byte, 32<<10)
		for {
			_ = conn.SetReadDeadline(time.Now().Add(idleTunnel))
			n, err := from.Read(buf)
			if n > 0 {
				if _, werr := to.Write(buf[:n]); werr != nil {
					break
				}
			}
			if err != nil {
				break
			}
		}
		if c, ok := to.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite()
		}
		done <- struct{}{}
	}
	go copyTo(there, buffered, here)
	go copyTo(here, there, there)
	<-done
	<-done
}
