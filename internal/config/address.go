package config

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// DefaultPort is the server's, and OllamaPort what a value of OLLAMA_HOST without a port means.
const (
	DefaultPort = 57455
	OllamaPort  = 11434
)

// An Address is where a server listens.
type Address struct {
	Host   string
	Port   int
	Socket string // path of a socket file, instead of host and port
	TLS    bool
}

// ParseAddress reads HOST, HOST:PORT, :PORT, http://HOST:PORT, https://HOST:PORT or unix:PATH. A path of an address
// says nothing, as in OLLAMA_HOST.
func ParseAddress(text string, port int) (Address, error) {
	bad := errors.New("want HOST, HOST:PORT, http://HOST:PORT or unix:PATH")
	a := Address{Port: port}
	text = strings.Trim(strings.TrimSpace(text), `"'`)
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if a.Socket = strings.TrimPrefix(path, "//"); a.Socket == "" {
			return a, bad
		}
		return a, nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		rest = text
	} else {
		switch scheme {
		case "http":
			a.Port = 80
		case "https":
			a.Port, a.TLS = 443, true
		default:
			return a, bad
		}
	}
	rest, _, _ = strings.Cut(rest, "/")
	host, number, err := net.SplitHostPort(rest)
	if err != nil {
		host, number = strings.Trim(rest, "[]"), ""
	}
	if number != "" {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return a, bad
		}
		a.Port = int(n)
	}
	if a.Host = host; host == "" {
		a.Host = "127.0.0.1"
	}
	if u, err := url.Parse("http://" + net.JoinHostPort(a.Host, "1")); err != nil || u.Hostname() != a.Host ||
		strings.ContainsAny(a.Host, " \t") {
		return a, bad
	}
	return a, nil
}
