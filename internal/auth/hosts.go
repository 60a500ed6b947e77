package auth

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Hosts says which names requests may use for the server, and which web pages may send them. A page of a foreign
// site can make a browser on this machine connect here, by a name that it points at a loopback address
// (rebinding) or directly; these lists are exact, so neither works.
type Hosts struct {
	// Names are allowed in the Host header, without a port, beside localhost and loopback addresses. A request to
	// an address of this machine by its number is allowed where Addresses is set.
	Names     []string
	Addresses bool
	// Origins are those of web pages that may call, such as https://chat.example.org. Pages that the server itself
	// served are always allowed. "*" allows all, and SCHEME://* all of a scheme: browsers give each installed extension
	// an origin such as moz-extension://UUID, which nobody knows before.
	Origins []string
}

// Loopback reports whether a host to listen on can be reached from this machine alone.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.Unmap().IsLoopback()
}

// HostAllowed reports whether the Host header names this server. Over a socket file, which no page can reach, any does:
// clients have to say something.
func (h *Hosts) HostAllowed(r *http.Request) bool {
	host := hostOnly(r.Host)
	if host == "" {
		return true // HTTP/1.0: no browser sends it
	}
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && a.Network() == "unix" {
		return true
	}
	if Loopback(host) {
		return true
	}
	for _, n := range h.Names {
		if strings.EqualFold(host, n) {
			return true
		}
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return h.Addresses && err == nil
}

func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// OriginAllowed reports whether a request may come from the page that sent it, if one did. cors is true where the
// page is of another origin and named in the list: then the answer may be read by it.
func (h *Hosts) OriginAllowed(r *http.Request) (allowed, cors bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true, false
	}
	for _, o := range h.Origins {
		if o == "*" || strings.EqualFold(strings.TrimRight(o, "/"), origin) {
			return true, true
		}
		if scheme, ok := strings.CutSuffix(o, "://*"); ok {
			if s, host, ok := strings.Cut(origin, "://"); ok && host != "" && strings.EqualFold(s, scheme) {
				return true, true
			}
		}
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false, false // "null" is the origin of files and sandboxed frames
	}
	return strings.EqualFold(u.Host, r.Host) && (u.Scheme == "http" || u.Scheme == "https"), false
}
