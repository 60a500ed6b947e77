package keeper_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
)

// TestFullAndReadOnlyDisks says in every operation what is wrong with the disk. Only root may mount one.
func TestFullAndReadOnlyDisks(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a disk that fills up cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	h := newHome(t, dir)
	if err := h.Create(t.Context(), modeladmin.Creation{Name: "calf", From: "whale"}, quiet); err != nil {
		t.Fatal(err)
	}
	h.Spare = -1 << 40 // others fill the disk behind the check
	all := map[string]func() error{
		"upload": func() error { return h.PutBlob(t.Context(), h.digest, -1, bytes.NewReader(h.file)) },
		"create": func() error {
			return h.Create(t.Context(), modeladmin.Creation{Name: "other", From: "whale", System: "x"}, quiet)
		},
		"copy": func() error { return h.Copy(t.Context(), "whale", "third") },
	}
	check := func(state string, kind chat.Kind, status int, words string) {
		t.Helper()
		for name, f := range all {
			err := f()
			e := chat.AsError(err)
			if kindOf(err) != kind || server.Status(e) != status || !strings.Contains(e.Message(), words) ||
				strings.Contains(e.Message(), dir) {
				t.Errorf("%s, %s: %v, want %d %q", state, name, err, status, words)
			}
		}
	}
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 2<<20), 0o600) // as much as there is room for
	check("full", chat.NoSpace, 507, "no space left on")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("it cannot be made read-only: %v", err)
	}
	all["delete"] = func() error { return h.Delete(t.Context(), "calf", func() {}) }
	check("read-only", chat.Internal, 500, "cannot be written")
}
