package fetch

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/store"
)

// smallDisk mounts a file system of size bytes, which only root may.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a disk that fills up cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestDiskThatFillsUp: another program takes the room while a download runs. The error says so, what came is kept, and
// the next try asks only for the rest.
func TestDiskThatFillsUp(t *testing.T) {
	data := content(6 << 20)
	dir := smallDisk(t, "8m")
	ballast := filepath.Join(dir, "ballast")
	var sent atomic.Int64
	var filled atomic.Bool
	written := make(chan struct{})
	f, _ := newFetcher(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(hungryWriter{countWriter{w, &sent}, func() {
			if sent.Load() > 3<<20 && filled.CompareAndSwap(false, true) {
				_ = os.WriteFile(ballast, make([]byte, 8<<20), 0o600) // as much as there is room for
				close(written)
			}
		}}, r, "", time.Time{}, bytes.NewReader(data))
	})
	f.Store, f.Connections, f.Piece = store.Open(dir), 2, 1<<20
	e := entry(data, hfSource())
	_, err := f.Fetch(t.Context(), e)
	var full *NoSpaceError
	if !errors.As(err, &full) || full.Need != 0 || !strings.Contains(err.Error(), "is full") ||
		strings.Contains(err.Error(), "\n") {
		t.Fatalf("a disk that fills up gives %v", err)
	}
	if _, err := os.Stat(f.Store.Path(e)); err == nil {
		t.Fatal("half a model is published")
	}
	<-written // a file that is still written to keeps its room when it is removed
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	before := sent.Load()
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mustHold(t, f, e, data)
	if again := sent.Load() - before; again >= int64(len(data)) {
		t.Errorf("the second try asked for %d bytes of %d: nothing was kept", again, len(data))
	}
}

// hungryWriter does something after each write.
type hungryWriter struct {
	countWriter
	then func()
}

func (h hungryWriter) Write(b []byte) (int, error) {
	n, err := h.countWriter.Write(b)
	h.then()
	return n, err
}
