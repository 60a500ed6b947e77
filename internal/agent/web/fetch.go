package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
)

// Bounds of a page.
const (
	maxBody      = 5 << 20
	maxRedirects = 5
	maxTime      = 30 * time.Second
	maxURL       = 8 << 10
)

// A Page is what was fetched.
type Page struct {
	URL   string // after redirects
	Title string
	Text  string // Markdown of pages, the text itself of others
	Cut   bool   // it is longer than what is read
}

// A RedirectError says that an address leads to another host, which must be allowed on its own.
type RedirectError struct{ URL string }

func (e *RedirectError) Error() string { return "it leads to another host: " + e.URL }

// A Fetcher fetches pages. The zero value is ready; it keeps no cookies, and sends nothing of the user's.
type Fetcher struct {
	allowed  func(netip.Addr) error // for tests; nil: check
	resolver *net.Resolver          // for tests; nil: the system's
}

// Host returns the host of an address that can be fetched.
func Host(address string) (string, error) {
	u, err := parse(address)
	if err != nil {
		return "", err
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), nil
}

func parse(address string) (*url.URL, error) {
	if len(address) > maxURL {
		return nil, fmt.Errorf("an address of %d bytes is too long", len(address))
	}
	u, err := url.Parse(strings.TrimSpace(address))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the address cannot be read: %w", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the address must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the address has no host")
	case u.User != nil:
		return nil, errors.New("the address has a name or a password in it")
	}
	return u, nil
}

func (f *Fetcher) client() *http.Client {
	allowed := f.allowed
	if allowed == nil {
		allowed = check
	}
	d := &net.Dialer{Timeout: 10 * time.Second, Control: control(allowed), Resolver: f.resolver, FallbackDelay: -1}
	t := &http.Transport{ // no proxy: it would connect in our place, unlooked at
		DialContext: d.DialContext, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 20 * time.Second,
		MaxResponseHeaderBytes: 256 << 10, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}
	return &http.Client{Transport: t, Timeout: maxTime, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if _, err := parse(r.URL.String()); err != nil {
			return fmt.Errorf("it leads to %s: %w", r.URL.Redacted(), err)
		}
		if len(via) >= maxRedirects {
			return fmt.Errorf("it leads on and on, %d times", len(via))
		}
		if !strings.EqualFold(r.URL.Hostname(), via[0].URL.Hostname()) {
			return &RedirectError{r.URL.String()}
		}
		if via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme == "http" {
			return errors.New("it leads from https to http")
		}
		return nil
	}}
}

// Fetch fetches a page. A redirect to another host is not followed: it is a *RedirectError.
func (f *Fetcher) Fetch(ctx context.Context, address string) (*Page, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	u.Fragment = ""
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "Mozilla/5.0 (compatible; baleen)")
	req.Header.Set("Accept", "text/html,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5")
	resp, err := f.client().Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("the page broke off: %w", err)
	}
	p := &Page{URL: resp.Request.URL.String()}
	if p.Cut = len(b) > maxBody; p.Cut {
		b = b[:maxBody]
	}
	if kind == "" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(b))
	}
	if !textual(kind) {
		return nil, fmt.Errorf("it is no text but %s, %d bytes", kind, len(b))
	}
	text := decode(b, resp.Header.Get("Content-Type"))
	if kind == "text/html" || kind == "application/xhtml+xml" {
		p.Title, p.Text = markdown(text, resp.Request.URL)
	} else {
		p.Text = text
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server says %s: %.300s", resp.Status, p.Text)
	}
	return p, nil
}

func textual(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") {
		return true
	}
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/x-yaml", "application/yaml", "application/toml":
		return true
	}
	return false
}

// decode makes UTF-8 of a text in the character set that it says it has.
func decode(b []byte, contentType string) string {
	enc, _, _ := charset.DetermineEncoding(b[:min(len(b), 1024)], contentType)
	out, err := enc.NewDecoder().Bytes(b)
	if err != nil {
		out = b
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}
