//go:build linux || darwin

package mmap

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestGuardReportsShortenedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	sum := byte(0)
	err = Guard(func() error {
		sum += f.Bytes()[1<<20-1]
		return nil
	})
	if !errors.Is(err, ErrShortened) {
		t.Errorf("error %v, byte %d", err, sum)
	}
	if err := Guard(func() error { return os.ErrExist }); !errors.Is(err, os.ErrExist) {
		t.Errorf("f's own error became %v", err)
	}
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("f's own panic became %v", r)
		}
	}()
	_ = Guard(func() error { panic("mine") })
}
