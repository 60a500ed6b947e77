package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/baleenrun/baleen/internal/store"
)

const (
	partSuffix    = ".part"
	journalSuffix = ".part.json"
)

// maxSize bounds a file, so that no server's number overflows a sum: a petabyte.
const maxSize = 1 << 50

// retries is how often a piece may break off without having brought a single byte.
const retries = 3

// transferAll fetches the listing's files into stage and fills in the manifest.
func (f *Fetcher) transferAll(ctx context.Context, e store.Entry, src store.Source, l *listing, stage string) error {
	var total, have int64
	known := true
	downloads := make([]*download, len(l.files))
	for i, r := range l.files {
		d := &download{
			fetcher: f,
			file:    r,
			path:    filepath.Join(stage, filepath.FromSlash(r.name)),
			reached: new(atomic.Bool),
		}
		downloads[i] = d
		if err := os.MkdirAll(filepath.Dir(d.path), 0o755); err != nil {
			return err
		}
		d.restore()
		known = known && r.size >= 0
		total += max(r.size, 0)
		have += d.have.Load()
	}
	if !known {
		total = 0
	}
	if err := checkSpace(stage, total-have); err != nil {
		return err
	}
	m := &meter{progress: f.progress(), title: title(e, src), total: total, downloads: downloads}
	defer m.stop()
	for i, d := range downloads {
		file, err := f.transfer(ctx, d, m, &l.files[i])
		if err != nil {
			if len(downloads) > 1 {
				err = fmt.Errorf("%s: %w", d.file.name, err)
			}
			return err
		}
		l.man.Files = append(l.man.Files, file)
		m.add(0)
	}
	return nil
}

func title(e store.Entry, src store.Source) string {
	return orDefault(e.Title, e.Name) + " from " + src.String()
}

// transfer fetches one file and checks it. A checksum that differs after a resumed download may be the fault of what
// was there before, so that the file gets a second, fresh try.
func (f *Fetcher) transfer(ctx context.Context, d *download, m *meter, r *remoteFile) (store.File, error) {
	for {
		resumed := d.have.Load() > 0
		if !d.whole {
			if err := d.run(ctx, m); err != nil {
				return store.File{}, err
			}
		}
		path := d.path
		if !d.whole {
			path += partSuffix
		}
		n, sum, err := checkFile(ctx, path, r.sum)
		if err == nil && r.sum.kind == "" {
			err = checkMagic(path, r.name)
		}
		if err == nil && (r.size < 0 || n == r.size) {
			r.size = n
			if d.whole {
				return store.File{Name: r.name, Size: n, SHA256: sum}, nil
			}
			if err := os.Rename(path, d.path); err != nil {
				return store.File{}, err
			}
			_ = os.Remove(d.path + journalSuffix)
			return store.File{Name: r.name, Size: n, SHA256: sum}, nil
		}
		if err == nil {
			err = fmt.Errorf("got %d bytes, want %d", n, r.size)
		}
		if ctx.Err() != nil {
			return store.File{}, ctx.Err()
		}
		d.discard()
		if !resumed {
			return store.File{}, err
		}
		m.stop()
		m.progress.Note("what an earlier download left was damaged; starting anew")
	}
}

// checkMagic refuses what is no GGUF file where no checksum says what it is: pages of errors and of sign-ins come with
// the status of success.
func checkMagic(path, name string) error {
	if !strings.HasSuffix(name, ".gguf") {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	magic := make([]byte, 4)
	n, err := io.ReadFull(f, magic)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if string(magic[:n]) != "GGUF" {
		return final("what came is no GGUF file: it begins with %q", magic[:n])
	}
	return nil
}

// A meter tells how far a whole transfer is.
type meter struct {
	progress  Progress
	title     string
	total     int64
	downloads []*download

	mu      sync.Mutex
	started bool
	quit    chan struct{}
	gone    chan struct{}
}

func (m *meter) done() (n int64) {
	for _, d := range m.downloads {
		n += d.have.Load()
	}
	return n
}

// start shows the transfer, once a server sends something. total is filled in where it was not known.
func (m *meter) start(total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		return
	}
	if m.total == 0 && len(m.downloads) == 1 {
		m.total = max(total, 0)
	}
	m.started = true
	m.progress.Start(m.title, m.done(), m.total)
	m.quit, m.gone = make(chan struct{}), make(chan struct{})
	go m.tick(m.quit, m.gone)
}

func (m *meter) tick(quit, gone chan struct{}) {
	defer close(gone)
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-quit:
			return
		case <-t.C:
			m.add(0)
		}
	}
}

// add shows how much is there.
func (m *meter) add(int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		m.progress.Set(m.done())
	}
}

func (m *meter) stop() {
	m.mu.Lock()
	if !m.started {
		m.mu.Unlock()
		return
	}
	m.started = false
	quit, gone := m.quit, m.gone
	m.progress.Set(m.done())
	m.progress.Stop()
	m.mu.Unlock()
	close(quit)
	<-gone
}

// A download is one file on its way: pieces that are fetched side by side into a file of the full size. What of each
// piece is there stands in a journal beside it.
type download struct {
	fetcher *Fetcher
	file    remoteFile
	path    string // without ".part"
	whole   bool   // the file is there under its own name: fetched and checked before

	out     *os.File
	size    int64 // -1: not known
	piece   int64
	tag     string         // what the server says of this version of the file
	got     []atomic.Int64 // bytes of each piece, from its begin
	have    atomic.Int64   // their sum
	reached *atomic.Bool   // a server has answered
	saving  sync.Mutex     // one writes the journal at a time
	ranges  bool           // it knows ranges
}

// A journal is what a killed process leaves to the next one.
// RATIONALE: Why does a download keep a journal beside the file?
type journal struct {
	Size  int64   `json:"size"`
	Piece int64   `json:"piece"`
	Tag   string  `json:"tag,omitempty"`
	Got   []int64 `json:"got"`
}

func (d *download) discard() {
	_ = os.Remove(d.path + partSuffix)
	_ = os.Remove(d.path + journalSuffix)
	_ = os.Remove(d.path + journalSuffix + ".new")
	if d.whole {
		_ = os.Remove(d.path)
	}
	d.whole, d.got, d.tag, d.size = false, nil, "", d.file.size
	d.have.Store(0)
}

// restore reads what an earlier process left.
func (d *download) restore() {
	d.size = d.file.size
	if fi, err := os.Stat(d.path); err == nil && fi.Mode().IsRegular() && (d.size < 0 || fi.Size() == d.size) {
		d.whole, d.size = true, fi.Size()
		d.have.Store(fi.Size())
		return
	}
	var j journal
	b, err := os.ReadFile(d.path + journalSuffix)
	if err != nil || json.Unmarshal(b, &j) != nil || !j.sound() || d.size >= 0 && j.Size != d.size ||
		size(d.path+partSuffix) > j.Size || d.size < 0 && j.Tag == "" {
		d.discard()
		return
	}
	d.size, d.piece, d.tag = j.Size, j.Piece, j.Tag
	d.got = make([]atomic.Int64, len(j.Got))
	end := size(d.path + partSuffix)
	for i, n := range j.Got {
		n = max(0, min(n, end-int64(i)*j.Piece)) // a file that is shorter than its journal says
		d.got[i].Store(n)
		d.have.Add(n)
	}
}

func (j journal) sound() bool {
	if j.Size < 1 || j.Piece < 1 || int64(len(j.Got)) != (j.Size+j.Piece-1)/j.Piece {
		return false
	}
	for i, n := range j.Got {
		if n < 0 || n > min(j.Piece, j.Size-int64(i)*j.Piece) {
			return false
		}
	}
	return true
}

// save writes the journal. The bytes that it speaks of were written before.
func (d *download) save() error {
	d.saving.Lock()
	defer d.saving.Unlock()
	if len(d.got) == 0 {
		return nil
	}
	j := journal{Size: d.size, Piece: d.piece, Tag: d.tag, Got: make([]int64, len(d.got))}
	for i := range d.got {
		j.Got[i] = d.got[i].Load()
	}
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	tmp := d.path + journalSuffix + ".new"
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return writeError(filepath.Dir(d.path), err)
	}
	return os.Rename(tmp, d.path+journalSuffix)
}

// layout decides the pieces once the size is known.
func (d *download) layout() {
	if len(d.got) > 0 || d.size < 1 {
		return
	}
	d.piece = orDefault(d.fetcher.Piece, defaultPiece)
	d.piece = max(d.piece, (d.size+maxPieces-1)/maxPieces)
	d.got = make([]atomic.Int64, (d.size+d.piece-1)/d.piece)
}

func (d *download) bounds(i int) (from, to int64) {
	from = int64(i) * d.piece
	return from, min(from+d.piece, d.size)
}

// run fetches what is missing into the part.
func (d *download) run(ctx context.Context, m *meter) (err error) {
	if d.out, err = os.OpenFile(d.path+partSuffix, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return err
	}
	defer func() {
		serr := d.save()
		if err == nil {
			err = errors.Join(serr, d.out.Sync())
		}
		if cerr := d.out.Close(); err == nil {
			err = cerr
		}
		if err != nil && d.have.Load() == 0 {
			d.discard() // there is nothing to continue
		}
	}()
	if d.size == 0 {
		return d.out.Truncate(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.layout()
	if len(d.got) > 0 && d.next(0) < 0 {
		return nil // an earlier process ended between the last byte and the check
	}
	first, err := d.begin(ctx)
	if err != nil {
		return err
	}
	m.start(d.size)
	stop := d.guard(cancel, d.ranges)
	defer stop()
	if !d.ranges {
		return d.serial(ctx, first)
	}
	return d.parallel(ctx, cancel, first)
}

// minRate is the least speed in bytes per second at which a transfer is not given up.
const minRate = 1024

// guard saves the journal now and then, where there is one, and ends a transfer that only trickles.
func (d *download) guard(cancel context.CancelCauseFunc, journaled bool) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	window := 3 * orDefault(d.fetcher.StallTimeout, stallTimeout) // a pause alone is for get to mend
	go func() {
		defer close(gone)
		save, check := time.NewTicker(300*time.Millisecond), time.NewTicker(window)
		defer save.Stop()
		defer check.Stop()
		last := d.have.Load()
		for {
			select {
			case <-quit:
				return
			case <-save.C:
				if journaled {
					if err := d.save(); err != nil {
						cancel(finalError{err})
					}
				}
			case <-check.C:
				now := d.have.Load()
				if now-last < int64(minRate*window.Seconds()) {
					cancel(finalError{errTrickle})
				}
				last = now
			}
		}
	}()
	return func() {
		close(quit)
		<-gone
	}
}

// again runs try until it succeeds, as long as that may help: between tries that bring nothing it waits longer and
// longer.
func (d *download) again(ctx context.Context, try func() error) error {
	for failed := 0; ; {
		before := d.have.Load()
		err := try()
		if err == nil {
			return nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if d.have.Load() > before {
			failed = 0
		}
		if failed++; failed >= retries || !d.reached.Load() || isFinal(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(failed*failed) * 300 * time.Millisecond):
		}
	}
}

// begin makes the first request and learns the size and whether the server knows ranges.
func (d *download) begin(ctx context.Context) (a *answer, err error) {
	err = d.again(ctx, func() error {
		from, to := int64(0), orDefault(d.fetcher.Piece, defaultPiece)
		if i := d.next(0); i >= 0 {
			from, to = d.bounds(i)
			from += d.got[i].Load()
		}
		if a, err = d.ask(ctx, from, to); err != nil {
			return err
		}
		if err = d.accept(a, from, to); err != nil {
			a.close()
		}
		return err
	})
	return a, err
}

// next is the first piece from i on that is not complete, -1 where there is none.
func (d *download) next(i int) int {
	for ; i < len(d.got); i++ {
		if from, to := d.bounds(i); d.got[i].Load() < to-from {
			return i
		}
	}
	return -1
}

func (d *download) ask(ctx context.Context, from, to int64) (*answer, error) {
	header := map[string]string{"Range": fmt.Sprintf("bytes=%d-%d", from, to-1)}
	if d.tag != "" && d.file.sum.kind == "" { // no checksum will tell whether the file was changed meanwhile
		header["If-Range"] = d.tag
	}
	return d.fetcher.get(ctx, d.file.url, d.file.token, header, d.reached)
}

// accept checks the first answer.
func (d *download) accept(a *answer, from, to int64) error {
	switch a.StatusCode {
	case http.StatusOK:
		n := a.ContentLength
		if d.file.size >= 0 && n >= 0 && n != d.file.size {
			return final("the file there has %d bytes, want %d", n, d.file.size)
		}
		d.ranges = false
		d.got, d.size, d.tag = nil, d.file.size, ""
		if d.size < 0 {
			d.size = n
		}
		d.have.Store(0)
		return nil
	case http.StatusPartialContent:
		total, err := d.checkRange(a.Response, from, to)
		if err != nil {
			return err
		}
		d.ranges, d.size, d.tag = true, total, tagOf(a.Response)
		d.layout()
		if d.file.size < 0 { // only now is it known how much room the rest needs
			if err := checkSpace(filepath.Dir(d.path), d.size-d.have.Load()); err != nil {
				return finalError{err}
			}
		}
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		return final("the server has no bytes from %d on: the file there is shorter than %d", from, d.size)
	}
	return statusError(a.Response)
}

// tagOf is what the server says of the file's version, "" where that cannot be relied on.
func tagOf(r *http.Response) string {
	if tag := r.Header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") && len(tag) < 300 {
		return tag
	}
	return ""
}

// checkRange wants exactly the bytes that were asked for, of a file of the right size.
func (d *download) checkRange(r *http.Response, from, to int64) (total int64, err error) {
	got := r.Header.Get("Content-Range")
	var first, last int64
	if _, err := fmt.Sscanf(got, "bytes %d-%d/%d", &first, &last, &total); err != nil {
		return 0, final("asked for bytes %d-%d, got the range %q", from, to-1, got)
	}
	if total > maxSize {
		return 0, final("the file there has %d bytes (range %q), more than any model", total, got)
	}
	if d.size >= 0 && total != d.size || total < 1 {
		return 0, final("the file there has %d bytes (range %q), want %d", total, got, d.size)
	}
	if first != from || last != min(to, total)-1 || r.ContentLength >= 0 && r.ContentLength != last-first+1 {
		return 0, final("asked for bytes %d-%d, got the range %q with %d bytes", from, to-1, got, r.ContentLength)
	}
	if tag := tagOf(r); d.tag != "" && d.file.sum.kind == "" && tag != d.tag {
		return 0, final("the file there was changed during the download")
	}
	return total, nil
}

// serial reads a whole file from a server that knows no ranges.
func (d *download) serial(ctx context.Context, first *answer) error {
	return d.again(ctx, func() error {
		a := first
		first = nil
		if a == nil {
			var err error
			if a, err = d.fetcher.get(ctx, d.file.url, d.file.token, nil, d.reached); err != nil {
				return err
			}
			if err = d.accept(a, 0, 0); err != nil {
				a.close()
				return err
			}
		}
		defer a.close()
		if err := d.out.Truncate(0); err != nil {
			return finalError{err}
		}
		d.have.Store(0)
		limit := d.size
		if limit < 0 {
			limit = maxSize
		}
		n, err := d.copy(a, 0, limit, func(n int64) { d.have.Add(n) })
		if err == nil && d.size >= 0 && n != d.size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return brokeOff(d.have.Load(), err)
		}
		return nil
	})
}

func brokeOff(n int64, err error) error {
	if isFinal(err) {
		return err
	}
	return fmt.Errorf("broke off after %s: %w", Bytes(n), err)
}

// parallel fetches the missing pieces, the first one from the answer that is there.
func (d *download) parallel(ctx context.Context, cancel context.CancelCauseFunc, first *answer) error {
	var mu sync.Mutex
	at := 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		i := d.next(at)
		if i >= 0 {
			at = i + 1
		} else {
			at = len(d.got)
		}
		return i
	}
	if err := d.out.Truncate(d.size); err != nil {
		first.close()
		return writeError(filepath.Dir(d.path), err)
	}
	work := func(i int, a *answer) {
		for ; i >= 0; i = take() {
			if err := d.fetchPiece(ctx, i, a); err != nil {
				cancel(err)
				return
			}
			if err := d.save(); err != nil {
				cancel(finalError{err})
				return
			}
			a = nil
		}
	}
	var wg sync.WaitGroup
	i := take()
	wg.Go(func() { work(i, first) })
	missing := int((d.size - d.have.Load() + d.piece - 1) / d.piece)
	for range min(orDefault(d.fetcher.Connections, defaultConnections), missing) - 1 {
		wg.Go(func() { work(take(), nil) })
	}
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return nil
}

// fetchPiece completes a piece, from the answer to the first request where there is one.
func (d *download) fetchPiece(ctx context.Context, i int, a *answer) error {
	start, to := d.bounds(i)
	return d.again(ctx, func() error {
		from := start + d.got[i].Load()
		if a == nil {
			var err error
			if a, err = d.ask(ctx, from, to); err != nil {
				return err
			}
			if a.StatusCode != http.StatusPartialContent {
				defer a.close()
				if a.StatusCode == http.StatusOK {
					return final("the server knew ranges and then did not, or the file there was changed")
				}
				return statusError(a.Response)
			}
			if _, err := d.checkRange(a.Response, from, to); err != nil {
				a.close()
				return err
			}
		}
		body := a
		a = nil
		defer body.close()
		n, err := d.copy(body, from, to-from, func(n int64) {
			d.got[i].Add(n)
			d.have.Add(n)
		})
		if err == nil && n < to-from {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return brokeOff(d.have.Load(), err)
		}
		return nil
	})
}

// copy writes at most limit bytes of the body at off, and refuses more. wrote is called after the bytes are in the
// file.
func (d *download) copy(body io.Reader, off, limit int64, wrote func(int64)) (total int64, err error) {
	buf := make([]byte, 128<<10)
	for {
		n, err := body.Read(buf)
		if total+int64(n) > limit {
			return total, final("the server sent more than %d bytes", limit)
		}
		if n > 0 {
			if _, werr := d.out.WriteAt(buf[:n], off+total); werr != nil {
				return total, finalError{writeError(filepath.Dir(d.path), werr)}
			}
			total += int64(n)
			wrote(int64(n))
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
