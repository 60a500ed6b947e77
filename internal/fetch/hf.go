package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/baleenrun/baleen/internal/store"
)

// retries is how often a transfer may break off without having brought a single byte.
const retries = 3

// fromHF downloads a file of a Hugging Face repository into part, from where part ends.
func (f *Fetcher) fromHF(ctx context.Context, e store.Entry, src store.HFFile, part string) error {
	address, err := f.hfURL(src)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	d := &download{fetcher: f, entry: e, url: address, out: out, progress: f.progress()}
	if d.have, err = out.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	defer d.stop()
	for failed := 0; d.have < e.Size; {
		before := d.have
		err := d.transfer(ctx)
		if err == nil {
			continue
		}
		if d.have > before {
			failed = 0
		}
		if failed++; ctx.Err() != nil || failed >= retries || !d.reached || isFinal(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(failed) * 500 * time.Millisecond):
		}
	}
	d.stop()
	return out.Sync()
}

func (f *Fetcher) hfURL(src store.HFFile) (string, error) {
	endpoint := f.HFEndpoint
	if endpoint == "" {
		endpoint = defaultEndpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return "", fmt.Errorf("HF_ENDPOINT is %q, which is no http or https address", endpoint)
	}
	return u.JoinPath(src.Repo, "resolve", "main", src.File).String(), nil
}

// finalError is one that trying again cannot mend.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func isFinal(err error) bool {
	var f finalError
	return errors.As(err, &f)
}

func final(format string, args ...any) error { return finalError{fmt.Errorf(format, args...)} }

// A download is one file on its way.
type download struct {
	fetcher  *Fetcher
	entry    store.Entry
	url      string
	out      *os.File
	progress Progress

	have    int64 // bytes in out
	reached bool  // the server has answered
	started bool  // the progress runs
}

func (d *download) stop() {
	if d.started {
		d.progress.Stop()
		d.started = false
	}
}

var (
	errUnreachable = errors.New("no answer")
	errStalled     = errors.New("the transfer stalled")
)

// transfer makes one request for what is missing and writes what comes.
func (d *download) transfer(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reach, stall := orDefault(d.fetcher.ReachTimeout, reachTimeout), orDefault(d.fetcher.StallTimeout, stallTimeout)
	wait := stall
	if !d.reached {
		wait = reach
	}
	var answered atomic.Bool
	answered.Store(d.reached)
	watch := time.AfterFunc(wait, func() {
		if answered.Load() {
			cancel(errStalled)
		} else {
			cancel(fmt.Errorf("%w within %v", errUnreachable, reach))
		}
	})
	defer watch.Stop()
	alive := func() {
		answered.Store(true)
		watch.Reset(stall)
	}
	trace := &httptrace.ClientTrace{GotFirstResponseByte: alive}
	resp, err := d.request(httptrace.WithClientTrace(ctx, trace))
	if err != nil {
		return fmt.Errorf("not reachable: %w", causeOf(ctx, err))
	}
	defer resp.Body.Close()
	d.reached = true
	if err := d.accept(resp); err != nil {
		return err
	}
	if !d.started {
		d.progress.Start(d.entry.Title+" from Hugging Face", d.have, d.entry.Size)
		d.started = true
	}
	return d.copyBody(ctx, resp.Body, alive)
}

func (d *download) request(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // sizes and ranges are those of the file
	if ua := d.fetcher.UserAgent; ua != "" {
		req.Header.Set("User-Agent", ua)
	}
	if d.have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
	}
	client := d.fetcher.Client
	if client == nil {
		client = http.DefaultClient
	}
	return client.Do(req)
}

// accept checks the answer's status and sizes, and starts over where the server does.
func (d *download) accept(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		if d.have > 0 { // the server does not know ranges
			if err := d.out.Truncate(0); err != nil {
				return finalError{err}
			}
			if _, err := d.out.Seek(0, io.SeekStart); err != nil {
				return finalError{err}
			}
			d.have = 0
			d.stop()
		}
		if n := resp.ContentLength; n >= 0 && n != d.entry.Size {
			return final("the file there has %d bytes, want %d", n, d.entry.Size)
		}
	case http.StatusPartialContent:
		var first, last, total int64
		_, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &total)
		if err != nil || first != d.have || total != d.entry.Size {
			return final("asked for bytes %d-%d, got %q", d.have, d.entry.Size-1, resp.Header.Get("Content-Range"))
		}
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("the server answered %s", resp.Status)
	default:
		return final("the server answered %s", resp.Status)
	}
	return nil
}

// copyBody appends the body to the part, and never more than the entry's size.
func (d *download) copyBody(ctx context.Context, body io.Reader, alive func()) error {
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		alive()
		if d.have+int64(n) > d.entry.Size {
			return final("the server sent more than %d bytes", d.entry.Size)
		}
		if _, werr := d.out.Write(buf[:n]); werr != nil {
			return finalError{werr}
		}
		d.have += int64(n)
		d.progress.Set(d.have)
		if err == io.EOF && d.have == d.entry.Size {
			return nil
		}
		if err != nil {
			return fmt.Errorf("broke off after %s: %w", Bytes(d.have), causeOf(ctx, err))
		}
	}
}

// causeOf prefers why a request was given up to what the client made of it, and shortens what users will read.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return cause
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

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}
