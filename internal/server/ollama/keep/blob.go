package keep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/baleenrun/baleen/internal/server/chat"
)

func (k *Keeper) blobs() string { return filepath.Join(k.store.Dir(), "uploads") }

// blobPath is where an upload lies; digest was checked to be hexadecimal.
func (k *Keeper) blobPath(digest string) string { return filepath.Join(k.blobs(), "sha256-"+digest) }

// HasBlob reports whether a file was uploaded.
func (k *Keeper) HasBlob(_ context.Context, digest string) (bool, error) {
	_, err := os.Stat(k.blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// PutBlob keeps an upload under its name once it was found to have its checksum.
func (k *Keeper) PutBlob(ctx context.Context, digest string, body io.Reader) error {
	if err := os.MkdirAll(k.blobs(), 0o755); err != nil {
		return failed("upload", err)
	}
	f, err := os.CreateTemp(k.blobs(), ".part-*")
	if err != nil {
		return failed("upload", err)
	}
	defer os.Remove(f.Name())
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), body)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return &chat.Error{Kind: chat.Internal, Msg: "the upload could not be kept: " + err.Error(), Err: err}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return chat.Invalidf("digest", "digest mismatch, expected sha256:%s, got sha256:%s", digest, got)
	}
	if err := os.Rename(f.Name(), k.blobPath(digest)); err != nil {
		return failed("upload", err)
	}
	return nil
}

// prune removes uploads that nothing was made of for a day, those that were cut off included.
func (k *Keeper) prune(now time.Time) {
	entries, err := os.ReadDir(k.blobs())
	if err != nil {
		return
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil && st.Mode().IsRegular() && now.Sub(st.ModTime()) > 24*time.Hour {
			_ = os.Remove(filepath.Join(k.blobs(), e.Name()))
		}
	}
}

// link makes a second name of a file, or a copy where the file system has no such names.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
