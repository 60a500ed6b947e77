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

// A Lock is held on a file until Unlock, or until the process ends.
type Lock struct{ f *os.File }

// LockEntry takes the lock for writing an entry. While another process holds it, waiting is called once and
// LockEntry waits until the lock is free or ctx ends. The lock file stays: removing it would let a third
// process lock a file that nobody else sees.
func (s *Store) LockEntry(ctx context.Context, e Entry, waiting func()) (*Lock, error) {
	dir := s.Models()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder for models: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "."+e.FileName()+".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", e.Name, err)
	}
	for first := true; ; first = false {
		err := tryLock(f)
		if err == nil {
			return &Lock{f}, nil
		}
		if !errors.Is(err, errLocked) {
			f.Close()
			return nil, fmt.Errorf("cannot lock %s: %w", f.Name(), err)
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Unlock gives the lock back.
func (l *Lock) Unlock() error { return l.f.Close() }
