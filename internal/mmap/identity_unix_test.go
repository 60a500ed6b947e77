//go:build linux || darwin

package mmap

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestUnchanged says what counts as a change of an open file, and of what a path names. Each write follows the
// opening at once: within one tick of the clock that file systems take their times from it must be seen all the same.
func TestUnchanged(t *testing.T) {
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	overwrite := func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("b"), 3)
		return errors.Join(err, f.Close())
	}
	for _, test := range []struct {
		name       string
		do         func(path string) error
		open, path bool // whether the open file, and the path, count as changed
	}{
		{"nothing", func(string) error { return nil }, false, false},
		{"read", func(path string) error { _, err := os.ReadFile(path); return err }, false, false},
		{"overwritten", overwrite, true, true},
		{"overwritten, time of writing set back", func(path string) error {
			return errors.Join(overwrite(path), os.Chtimes(path, long, long))
		}, true, true},
		{"shortened", func(path string) error { return os.Truncate(path, 7) }, true, true},
		{"longer", func(path string) error { return os.Truncate(path, 9) }, true, true},
		{"emptied and written anew", func(path string) error {
			return os.WriteFile(path, []byte("aaaaaaaa"), 0o600)
		}, true, true},
		{"replaced by renaming", func(path string) error {
			err := os.WriteFile(path+".new", []byte("bbbbbbbb"), 0o600)
			return errors.Join(err, os.Chtimes(path+".new", long, long), os.Rename(path+".new", path))
		}, false, true},
		{"removed", os.Remove, false, true},
		{"linked", func(path string) error { return os.Link(path, path+".link") }, false, false},
		{"made read-only", func(path string) error { return os.Chmod(path, 0o400) }, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m")
			if err := errors.Join(os.WriteFile(path, []byte("aaaaaaaa"), 0o600), os.Chtimes(path, long, long)); err != nil {
				t.Fatal(err)
			}
			m, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := test.do(path); err != nil {
				t.Fatal(err)
			}
			if err := m.Unchanged(); errors.Is(err, ErrChanged) != test.open {
				t.Errorf("the open file: %v", err)
			}
			id := m.Identity()
			if err := id.Check(path); errors.Is(err, ErrChanged) != test.path {
				t.Errorf("the path: %v", err)
			}
			now, err := Identify(path)
			if err == nil && id.Same(&now) == test.path {
				t.Errorf("the same as before: %v", id.Same(&now))
			}
		})
	}
}

func TestUnchangedAllocatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	if err := os.WriteFile(path, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if n := testing.AllocsPerRun(100, func() {
		if m.Unchanged() != nil {
			t.Fatal("changed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkUnchanged(b *testing.B) {
	path := filepath.Join(b.TempDir(), "m")
	if err := os.WriteFile(path, []byte("a"), 0o600); err != nil {
		b.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for b.Loop() {
		if m.Unchanged() != nil {
			b.Fatal("changed")
		}
	}
}
