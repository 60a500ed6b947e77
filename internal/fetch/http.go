package fetch

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// finalError is one that trying again cannot mend.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func isFinal(err error) bool {
	var f finalError
	return errors.As(err, &f)
}

func final(format string, args ...any) error { return finalError{fmt.Errorf(format, args...)} }

var (
	errUnreachable = errors.New("no answer")
	errStalled     = errors.New("the transfer stalled")
	errTrickle     = errors.New("the server sends less than 1 KiB/s")
)

// unreachableError says that a server did not answer at all.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }
func (e unreachableError) Error() string { return "not reachable: " + e.error.Error() }

// maxRedirects bounds how often a server may send us elsewhere.
const maxRedirects = 8

// client returns the client to use. It opens a connection for each request at once, since one that multiplexes would
// be as fast as a single transfer; and it follows no redirect that leads from https to http.
func (f *Fetcher) client() *http.Client {
	c := http.Client{}
	if f.Client != nil {
		c = *f.Client
	}
	if c.Transport == nil {
		c.Transport = sharedTransport
	}
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return final("more than %d redirects", maxRedirects)
		case req.URL.Scheme != "https" && req.URL.Scheme != "http":
			return final("redirected to a %q address", req.URL.Scheme)
		case req.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
			return final("redirected from https to plain http at %s", req.URL.Host)
		}
		if req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
			req.Header.Del("Authorization") // a key is for the one it was given to
		}
		return nil
	}
	return &c
}

// sharedTransport keeps connections between requests of all fetchers.
var sharedTransport = &http.Transport{
	Proxy:       http.ProxyFromEnvironment,
	DialContext: (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
	// RATIONALE: Why is HTTP/2 switched off for downloads?
	TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
	MaxIdleConnsPerHost:    16,
	IdleConnTimeout:        60 * time.Second,
	TLSHandshakeTimeout:    15 * time.Second,
	MaxResponseHeaderBytes: 1 << 20,
}

// An answer is a response whose body is watched: a pause as long as StallTimeout ends it.
type answer struct {
	*http.Response
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  *time.Timer
	stall  time.Duration
}

// get asks for a URL. Where reached is nil or false, the server must show a sign of life within ReachTimeout.
func (f *Fetcher) get(
	ctx context.Context,
	address, token string,
	header map[string]string,
	reached *atomic.Bool,
) (*answer, error) {
	a := &answer{stall: orDefault(f.StallTimeout, stallTimeout)}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	reach := orDefault(f.ReachTimeout, reachTimeout)
	var answered atomic.Bool
	wait := reach
	if reached != nil && reached.Load() {
		answered.Store(true)
		wait = a.stall
	}
	a.watch = time.AfterFunc(wait, func() {
		if answered.Load() {
			a.cancel(fmt.Errorf("%w for %v", errStalled, a.stall))
		} else {
			a.cancel(unreachableError{fmt.Errorf("%w within %v", errUnreachable, reach)})
		}
	})
	trace := &httptrace.ClientTrace{GotFirstResponseByte: func() {
		answered.Store(true)
		a.watch.Reset(a.stall)
	}}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(a.ctx, trace), http.MethodGet, address, nil)
	if err != nil {
		a.close()
		return nil, finalError{err}
	}
	req.Header.Set("Accept-Encoding", "identity") // sizes and ranges are those of the file
	if f.UserAgent != "" {
		req.Header.Set("User-Agent", f.UserAgent)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	a.Response, err = f.client().Do(req)
	if err != nil {
		cause := causeOf(a.ctx, err)
		a.close()
		if !answered.Load() && ctx.Err() == nil && !isFinal(cause) && !errors.As(cause, new(unreachableError)) {
			cause = unreachableError{cause}
		}
		return nil, cause
	}
	if reached != nil {
		reached.Store(true)
	}
	return a, nil
}

func (a *answer) close() {
	a.watch.Stop()
	a.cancel(nil)
	if a.Response != nil {
		a.Body.Close()
	}
}

// Read reads the body and notes that the transfer is alive.
func (a *answer) Read(b []byte) (int, error) {
	n, err := a.Body.Read(b)
	if n > 0 {
		a.watch.Reset(a.stall)
	}
	if err != nil && err != io.EOF {
		err = causeOf(a.ctx, err)
	}
	return n, err
}

// maxReply bounds what is read of an interface's answer.
const maxReply = 32 << 20

// getJSON asks an interface and decodes its answer.
func (f *Fetcher) getJSON(
	ctx context.Context,
	address, token string,
	header map[string]string,
	into any,
) (http.Header, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*orDefault(f.StallTimeout, stallTimeout), errTrickle)
	defer cancel()
	a, err := f.get(ctx, address, token, header, nil)
	if err != nil {
		return nil, err
	}
	defer a.close()
	if a.StatusCode != http.StatusOK {
		return nil, statusError(a.Response)
	}
	b, err := io.ReadAll(io.LimitReader(a, maxReply+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxReply {
		return nil, final("the answer has more than %d MiB", maxReply>>20)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return nil, final("%s does not answer as expected: %w", hostOf(address), err)
	}
	return a.Header, nil
}

// A NotFoundError says that a server is there and has no such model.
type NotFoundError struct{ What string }

func (e *NotFoundError) Error() string { return e.What }

func notFound(format string, args ...any) error {
	return finalError{&NotFoundError{fmt.Sprintf(format, args...)}}
}

// A StatusError is an answer that is not what was asked for.
type StatusError struct {
	Code   int
	Status string
	Detail string // what the server says, "" where it says nothing
}

func (e *StatusError) Error() string {
	if e.Detail != "" {
		return "the server answered " + e.Status + ": " + e.Detail
	}
	return "the server answered " + e.Status
}

// statusError tells what another try can mend from what it cannot.
func statusError(resp *http.Response) error {
	e := &StatusError{Code: resp.StatusCode, Status: resp.Status, Detail: oneLine(resp.Header.Get("X-Error-Message"))}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusRequestTimeout,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return e
	}
	return finalError{e}
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	return s
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// causeOf prefers why a request was given up to what the client made of it, and shortens what users will read.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return cause
	}
	var f finalError
	if errors.As(err, &f) {
		return f
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return fmt.Errorf("%s: %s", dns.Name, dns.Err)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err // without the address, which the source's name says already
	}
	return err
}

func asStatus(err error) (*StatusError, bool) {
	var s *StatusError
	ok := errors.As(err, &s)
	return s, ok
}
