package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// errLocked says that another process holds a lock.
var errLocked = errors.New("locked by another process")

// TryLock locks an open file or folder until it is closed, and reports false where another process has locked it.
// Systems that cannot lock folders give an error for these.
func TryLock(f *os.File) (bool, error) {
	err := tryLock(f)
	if errors.Is(err, errLocked) {
		return false, nil
	}
	return err == nil, err
}

// A Lock is held on a file until Unlock, or until the process ends.
type Lock struct{ f *os.File }

// LockEntry takes the lock for writing an entry. While another process holds it, waiting is called once and
// LockEntry waits until the lock is free or ctx ends.
func (s *Store) LockEntry(ctx context.Context, e Entry, waiting func()) (*Lock, error) {
	if s.home == "" {
		return nil, ErrNoHome
	}
	dir := s.Models()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder for models: %w", err)
	}
	path := filepath.Join(dir, "."+encodeName(e.Name)+".lock")
	for told := false; ; {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, fmt.Errorf("cannot lock %s: %w", e.Name, err)
		}
		err = tryLock(f)
		if err == nil && stillThere(f, path) {
			return &Lock{f}, nil
		}
		f.Close()
		if err == nil {
			continue // whoever held it before has removed the file: a third process would lock another one
		}
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		if !told && waiting != nil {
			waiting()
		}
		told = true
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Sweep removes what a process that was killed left of an entry that is there all the same: killed between publishing
// and cleaning up. Where another process is at work, it does that itself.
func (s *Store) Sweep(e Entry) {
	lock := filepath.Join(s.Models(), "."+encodeName(e.Name)+".lock")
	if missing(lock) && missing(s.Staging(e)) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l, err := s.LockEntry(ctx, e, nil)
	if err != nil {
		return
	}
	_ = os.RemoveAll(s.Staging(e))
	_ = l.Unlock()
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return err != nil
}

func stillThere(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(mine, now)
}

// Unlock gives the lock back and removes its file: while the lock is held where the system allows that, so that nobody
// else holds a lock on a file that is gone.
func (l *Lock) Unlock() error {
	err := os.Remove(l.f.Name())
	cerr := l.f.Close()
	if err != nil {
		_ = os.Remove(l.f.Name()) // Windows removes only what is closed
	}
	return cerr
}
