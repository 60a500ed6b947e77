package fetch

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/store"
)

// asRoot runs a test in a process that may mount file systems: where this one may not, in one with namespaces of its
// own. It reports whether that was done.
func asRoot(t *testing.T) (done bool) {
	t.Helper()
	const inside = "BALEEN_TEST_OWN_NAMESPACE"
	if os.Getuid() == 0 || os.Getenv(inside) != "" {
		return false
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), inside+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Skipf("this user has no namespaces of its own: %v", err)
	}
	switch err := c.Wait(); {
	case err != nil:
		t.Errorf("%v\n%s", err, out.Bytes())
	case bytes.Contains(out.Bytes(), []byte("--- SKIP")):
		t.Skipf("%s", out.Bytes())
	case !bytes.Contains(out.Bytes(), []byte("--- PASS: "+t.Name())):
		t.Errorf("it did not run: %s", out.Bytes())
	}
	return true
}

// smallDisk mounts a file system of size bytes: see asRoot.
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
	if asRoot(t) {
		return
	}
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
	if !errors.As(err, &full) || full.Need != 0 || !strings.Contains(err.Error(), "the disk of "+dir) ||
		!strings.Contains(err.Error(), "is full") ||
		strings.Contains(err.Error(), "\n") {
		t.Fatalf("a disk that fills up gives %v", err)
	}
	if _, err := os.Stat(f.Store.Path(e)); err == nil {
		t.Fatal("half a model is published")
	}
	if list, err := f.Store.List(); err != nil || f.Store.Has(e) || slices.ContainsFunc(list, func(m store.Model) bool { return m.Own }) {
		t.Fatalf("half a model is listed: %+v, %v", list, err)
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
