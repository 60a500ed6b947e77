package keeper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/store"
)

// Unused is how long an upload may wait for the model that is made of it.
const Unused = 24 * time.Hour

func (k *Keeper) blobDir() string     { return filepath.Join(k.Store.Dir(), "blobs") }
func (k *Keeper) uploadedDir() string { return filepath.Join(k.Store.Dir(), "uploaded") }

func (k *Keeper) blob(digest string) (string, error) {
	if b, err := hex.DecodeString(digest); err != nil || len(b) != sha256.Size {
		return "", chat.Invalidf("digest", "%q is no SHA-256", digest)
	}
	return filepath.Join(k.blobDir(), "sha256-"+strings.ToLower(digest)), nil
}

// HasBlob reports whether a file was uploaded.
func (k *Keeper) HasBlob(_ context.Context, digest string) (bool, error) {
	path, err := k.blob(digest)
	if err != nil {
		return false, err
	}
	now := time.Now()
	return os.Chtimes(path, now, now) == nil, nil // who asks is about to use it: Sweep leaves it
}

// maxUpload is the usual bound of a file: more than any model in one file has.
const maxUpload = 1 << 40

// PutBlob keeps a file whose bytes have the digest; size is how many bytes are to come, -1 where that is not known.
func (k *Keeper) PutBlob(_ context.Context, digest string, size int64, body io.Reader) (err error) {
	defer worded(&err)
	path, err := k.blob(digest)
	if err != nil {
		return err
	}
	limit := k.MaxUpload
	if limit == 0 {
		limit = maxUpload
	}
	if size > limit {
		return &chat.Error{Kind: chat.BodyTooLarge, Limit: limit}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".upload-*")
	if err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	defer os.Remove(f.Name())
	if _, err := store.TryLock(f); err != nil { // against SweepLeftovers of another process
		return errors.Join(fmt.Errorf("keeper: %w", err), f.Close())
	}
	if err := k.room(filepath.Dir(path), max(size, 0)); err != nil {
		return errors.Join(err, f.Close())
	}
	sum := sha256.New()
	err = k.take(io.MultiWriter(f, sum), filepath.Dir(path), limit, body)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("keeper: upload: %w", err) // a body's reader has worded its own, as *chat.Error
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.EqualFold(got, digest) {
		return chat.Invalidf("digest", "the file has the digest sha256:%s, not sha256:%s", got, digest)
	}
	return os.Rename(f.Name(), path)
}

// roomEvery is how many bytes of an upload come between looks at the disk, on which others write, too.
const roomEvery = 64 << 20

// take copies at most limit bytes of an upload, as long as there is room for them.
func (k *Keeper) take(w io.Writer, dir string, limit int64, body io.Reader) error {
	for n := int64(0); ; {
		got, err := io.CopyN(w, body, min(roomEvery, limit+1-n))
		n += got
		switch {
		case n > limit:
			return &chat.Error{Kind: chat.BodyTooLarge, Limit: limit}
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := k.room(dir, 0); err != nil {
			return err
		}
	}
}

// Sweep removes uploads that nobody used: files that no model has and that came before a time, and folders whose model
// was never finished. While a derived model's file cannot be read it removes
// nothing.
func (k *Keeper) Sweep(before time.Time) error {
	list, err := k.Catalog.AllDerived()
	if err != nil {
		return fmt.Errorf("keeper: it is not known which uploads are used, so all are kept: %w", err)
	}
	has := map[string]bool{}
	for _, d := range list {
		has[d.Folder] = true
	}
	entries, err := os.ReadDir(k.uploadedDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keeper: %w", err)
	}
	var used []os.FileInfo
	var errs []error
	for _, e := range entries {
		dir := filepath.Join(k.uploadedDir(), e.Name())
		info, err := e.Info()
		if err != nil || !e.IsDir() {
			continue // removed meanwhile, or not ours
		}
		if !has[dir] && info.ModTime().Before(before) {
			errs = append(errs, os.RemoveAll(dir))
			continue
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				used = append(used, info)
			}
		}
	}
	return errors.Join(append(errs, k.sweepBlobs(before, used))...)
}

func (k *Keeper) sweepBlobs(before time.Time, used []os.FileInfo) error {
	entries, err := os.ReadDir(k.blobDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keeper: %w", err)
	}
	var errs []error
	for _, e := range entries {
		ours := strings.HasPrefix(e.Name(), "sha256-")
		info, err := e.Info()
		if err != nil || !ours || !info.Mode().IsRegular() || !info.ModTime().Before(before) {
			continue
		}
		inUse := false
		for _, u := range used {
			inUse = inUse || os.SameFile(u, info)
		}
		if !inUse {
			errs = append(errs, os.Remove(filepath.Join(k.blobDir(), e.Name())))
		}
	}
	return errors.Join(errs...)
}
