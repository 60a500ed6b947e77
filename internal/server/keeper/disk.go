package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/store"
)

// spare is how much of a disk uploads leave free: what writes to a full one loses what it has.
const spare = 256 << 20

// room refuses to write n bytes more where the disk has no room for them.
func (k *Keeper) room(dir string, n int64) error {
	free, err := store.FreeBytes(dir)
	if err != nil || free-n >= k.spare() {
		return nil // what cannot be told is tried
	}
	return noSpace(
		fmt.Sprintf("%d MiB are needed, %d MiB are free, of which %d MiB must stay", n>>20, free>>20, k.spare()>>20),
		nil,
	)
}

func (k *Keeper) spare() int64 {
	if k.Spare != 0 {
		return k.Spare
	}
	return spare
}

func noSpace(more string, cause error) error {
	msg := "no space left on the disk that holds the models"
	if more != "" {
		msg += ": " + more
	}
	return &chat.Error{Kind: chat.NoSpace, Msg: msg + "; remove models or other files, and try again", Err: cause}
}

// worded puts errors of full and read-only disks into words for clients, who can do something about them or must tell
// somebody who can. Errors that have words already are left alone.
func worded(err *error) {
	var known *chat.Error
	var full *fetch.NoSpaceError
	switch {
	case *err == nil || errors.As(*err, &known):
	case errors.As(*err, &full), store.IsFull(*err):
		*err = noSpace("", *err)
	case store.IsReadOnly(*err):
		*err = &chat.Error{
			Kind: chat.Internal, Err: *err,
			Msg: "the folder that holds the models cannot be written: its disk is read-only, or it belongs to " +
				"another user",
		}
	}
}

// SweepLeftovers removes what processes that were killed left half done: pieces of uploads, of new models and of
// copies. What a process is at work on is locked, and stays; so does what came within the last moment, which may be
// about to be locked.
func (k *Keeper) SweepLeftovers(now time.Time) error {
	var errs []error
	for _, where := range []struct{ dir, begin, end string }{
		{k.blobDir(), ".upload-", ""},
		{k.Catalog.DerivedDir(), ".new-", ""},
		{k.Store.Models(), ".", ".copy"},
	} {
		entries, err := os.ReadDir(where.dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("keeper: %w", err))
			}
			continue
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || !strings.HasPrefix(e.Name(), where.begin) || !strings.HasSuffix(e.Name(), where.end) ||
				now.Sub(info.ModTime()) < time.Second {
				continue
			}
			errs = append(errs, removeUnlocked(filepath.Join(where.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// removeUnlocked removes a file or folder that no process has locked.
func removeUnlocked(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // gone meanwhile
	}
	defer f.Close()
	if ok, err := store.TryLock(f); !ok || err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	return nil
}
