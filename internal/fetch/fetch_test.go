package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/store"
)

// recorder is a Progress that remembers.
type recorder struct {
	mu    sync.Mutex
	notes []string
	max   int64
	start []int64
	onSet func(int64)
}

func (r *recorder) Start(_ string, done, _ int64) { r.start = append(r.start, done) }
func (r *recorder) Stop()                         {}
func (r *recorder) Set(n int64) {
	r.max = max(r.max, n)
	if r.onSet != nil {
		r.onSet(n)
	}
}

func (r *recorder) Note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, s)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.notes, "\n")
}

func content(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func entry(data []byte, sources ...store.Source) store.Entry {
	sum := sha256.Sum256(data)
	return store.Entry{Name: "tiny", Title: "Tiny", Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Sources: sources}
}

func hfSource() store.Source {
	return store.Source{HF: &store.HFFile{Repo: "org/repo", File: "m.gguf"}}
}

// newFetcher makes a fetcher that reaches handler only, and no pip.
func newFetcher(t *testing.T, handler http.HandlerFunc) (*Fetcher, *recorder) {
	t.Helper()
	rec := &recorder{}
	f := &Fetcher{Store: store.Open(t.TempDir()), Progress: rec, Pip: [][]string{}}
	if handler != nil {
		srv := httptest.NewServer(handler)
		t.Cleanup(srv.Close)
		f.HFEndpoint = srv.URL
	}
	return f, rec
}

func serve(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

func mustHold(t *testing.T, f *Fetcher, e store.Entry, data []byte) {
	t.Helper()
	got, err := os.ReadFile(f.Store.Path(e))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("the store has %d bytes (%v), want %d right ones", len(got), err, len(data))
	}
	left, _ := filepath.Glob(filepath.Join(f.Store.Models(), "*.part*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFetchFromHuggingFace(t *testing.T) {
	data := content(3 << 20)
	var path string
	f, rec := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		serve(data)(w, r)
	})
	e := entry(data, hfSource())
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mustHold(t, f, e, data)
	if path != "/org/repo/resolve/main/m.gguf" {
		t.Errorf("asked for %s", path)
	}
	if rec.max != e.Size || len(rec.start) != 1 {
		t.Errorf("progress reached %d of %d, started %d times", rec.max, e.Size, len(rec.start))
	}
}

func TestBadServersAreRefused(t *testing.T) {
	data := content(1 << 20)
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"not found":     {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "404"},
		"too short":     {serve(data[:1000]), "has 1000 bytes, want 1048576"},
		"too long":      {serve(append(bytes.Clone(data), 1)), "has 1048577 bytes"},
		"other content": {serve(bytes.Repeat([]byte{7}, len(data))), "wrong checksum"},
		"unsized and endless": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			for range 20 {
				if _, err := w.Write(make([]byte, 100<<10)); err != nil {
					return
				}
			}
		}, "more than 1048576 bytes"},
		"broken off for good": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Length", "1048576")
			w.Write(data[:1000])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "unexpected EOF"},
		"wrong range": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				w.Header().Set("Content-Range", "bytes 0-9/10")
				w.WriteHeader(http.StatusPartialContent)
				return
			}
			w.Header().Set("Content-Length", "1048576")
			w.Write(data[:1000])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, `got "bytes 0-9/10"`},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFetcher(t, tc.handler)
			e := entry(data, hfSource())
			_, err := f.Fetch(t.Context(), e)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if f.Store.Has(e) {
				t.Error("it was published all the same")
			}
		})
	}
}

func TestUnreachableServerIsGivenUpQuickly(t *testing.T) {
	hang := make(chan struct{})
	f, rec := newFetcher(t, func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	f.ReachTimeout = 100 * time.Millisecond
	begin := time.Now()
	_, err := f.Fetch(t.Context(), entry(content(10), hfSource()))
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	if err == nil || !strings.Contains(rec.text(), "Hugging Face: not reachable: no answer within 100ms") {
		t.Errorf("notes %q, error %v", rec.text(), err)
	}
	if strings.Contains(rec.text(), "\n") {
		t.Errorf("more than one line: %q", rec.text())
	}
}

func TestStalledTransferContinues(t *testing.T) {
	data := content(1 << 20)
	var calls atomic.Int32
	f, _ := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			serve(data)(w, r)
			return
		}
		w.Header().Set("Content-Length", "1048576")
		w.Write(data[:300000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f.StallTimeout = 200 * time.Millisecond
	e := entry(data, hfSource())
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mustHold(t, f, e, data)
}

func TestResumeAsksOnlyForTheRest(t *testing.T) {
	data := content(2 << 20)
	for name, tc := range map[string]struct {
		ranges bool
		damage bool
	}{"ranges": {ranges: true}, "no ranges": {}, "damaged part": {ranges: true, damage: true}} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			f, _ := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
				if !tc.ranges {
					r.Header.Del("Range")
				}
				serve(data)(countWriter{w, &sent}, r)
			})
			e := entry(data, hfSource())
			part := partPath(f.Store.Path(e), e.Sources[0])
			os.MkdirAll(filepath.Dir(part), 0o755)
			begun := bytes.Clone(data[:1<<20])
			want := int64(1 << 20)
			if tc.damage {
				begun[77] ^= 1
				want = 3 << 20
			}
			if !tc.ranges {
				want = 2 << 20
			}
			if err := os.WriteFile(part, begun, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Fetch(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			mustHold(t, f, e, data)
			if sent.Load() != want {
				t.Errorf("the server sent %d bytes, want %d", sent.Load(), want)
			}
		})
	}
}

type countWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c countWriter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// TestKilledDownloadContinues runs this test binary as a child that fetches, kills it half way, and fetches.
func TestKilledDownloadContinues(t *testing.T) {
	data := content(4 << 20)
	e := entry(data, hfSource())
	if home := os.Getenv("BALEEN_TEST_FETCH_HOME"); home != "" {
		f := &Fetcher{Store: store.Open(home), HFEndpoint: os.Getenv("BALEEN_TEST_FETCH_URL"), Pip: [][]string{}}
		f.Fetch(context.Background(), e)
		return
	}
	half := make(chan struct{})
	var once sync.Once
	var resumed atomic.Bool
	f, _ := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			resumed.Store(true)
			serve(data)(w, r)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		once.Do(func() { close(half) })
		<-r.Context().Done()
	})
	home := filepath.Dir(f.Store.Models())
	child := exec.Command(os.Args[0], "-test.run=^TestKilledDownloadContinues$")
	child.Env = append(os.Environ(), "BALEEN_TEST_FETCH_HOME="+home, "BALEEN_TEST_FETCH_URL="+f.HFEndpoint)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	<-half
	part := partPath(f.Store.Path(e), e.Sources[0])
	for deadline := time.Now().Add(10 * time.Second); size(part) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the child wrote nothing")
		}
	}
	child.Process.Kill()
	child.Wait()
	if f.Store.Has(e) {
		t.Fatal("published before it was whole")
	}
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mustHold(t, f, e, data)
	if !resumed.Load() {
		t.Error("the second try began anew")
	}
}

func TestTwoFetchersDownloadOnce(t *testing.T) {
	data := content(1 << 20)
	var calls atomic.Int32
	f, rec := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		time.Sleep(300 * time.Millisecond)
		serve(data)(w, r)
	})
	e := entry(data, hfSource())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			mine := *f
			mine.Progress = &recorder{}
			if _, err := mine.Fetch(t.Context(), e); err != nil {
				t.Error(err)
			}
			rec.Note(mine.Progress.(*recorder).text())
		})
	}
	wg.Wait()
	mustHold(t, f, e, data)
	if calls.Load() != 1 || !strings.Contains(rec.text(), "another process") {
		t.Errorf("%d downloads; notes %q", calls.Load(), rec.text())
	}
}

func TestCancelKeepsWhatIsThere(t *testing.T) {
	data := content(1 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	f, rec := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1048576")
		w.Write(data[:500000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	rec.onSet = func(n int64) {
		if n > 100000 {
			cancel()
		}
	}
	e := entry(data, hfSource(), store.Source{Pip: []store.PipPart{{Package: "x", Version: "1", Member: "m"}}})
	_, err := f.Fetch(ctx, e)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "continues where it ended") {
		t.Errorf("error %v", err)
	}
	if n := size(partPath(f.Store.Path(e), e.Sources[0])); n < 100000 {
		t.Errorf("%d bytes are kept", n)
	}
}

func TestEndpointIsChecked(t *testing.T) {
	f, _ := newFetcher(t, nil)
	for _, bad := range []string{"ftp://host", "host", "http://", "http://a b"} {
		f.HFEndpoint = bad
		if _, err := f.Fetch(t.Context(), entry([]byte("x"), hfSource())); err == nil || !strings.Contains(err.Error(), "HF_ENDPOINT") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestFullDiskIsSaidBefore(t *testing.T) {
	f, _ := newFetcher(t, serve(nil))
	e := entry([]byte("x"), hfSource())
	e.Size = 1 << 60
	_, err := f.Fetch(t.Context(), e)
	var full *NoSpaceError
	if !errors.As(err, &full) || full.Need != 1<<60 {
		t.Errorf("error %v", err)
	}
}
