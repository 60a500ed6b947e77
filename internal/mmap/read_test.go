//go:build !windows

package mmap

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
)

// TestReadFile covers the copy that stands in for a mapping.
func TestReadFile(t *testing.T) {
	want := []byte("some bytes")
	f, err := os.Open(write(t, want))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := readFile(f, len(want)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := readFile(f, len(want)+1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that shrank: %v", err)
	}
}

func TestShrunkFileGivesError(t *testing.T) {
	path := write(t, make([]byte, 100_000))
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ReadAt(make([]byte, 10), 50_000); !errors.Is(err, ErrShortened) {
		t.Errorf("reading what is gone: %v", err)
	}
}
