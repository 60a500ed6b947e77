//go:build linux || darwin

package mmap

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPipeIsRefused wants an error at once: opening a pipe for reading waits for a writer.
func TestPipeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip("pipes have no names here:", err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := Open(path)
		result <- err
	}()
	select {
	case err := <-result:
		if err == nil {
			t.Error("a pipe opens")
		}
	case <-time.After(10 * time.Second):
		t.Error("Open waits for a writer")
	}
}
