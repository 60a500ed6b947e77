package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestGuardIsNotLedAway: a folder above a protected path that was made a link leads the guard, which works outside of
// the sandbox, to no other place.
func TestGuardIsNotLedAway(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git, other := filepath.Join(dir, "ws", ".git"), filepath.Join(dir, "other")
	write(filepath.Join(git, "hooks", "a"), "ours")
	write(filepath.Join(other, "hooks", "b"), "theirs")
	// A link that was there before is none of the command's doing.
	linked := filepath.Join(dir, "ws", "link")
	if err := os.Symlink(filepath.Join(dir, "far"), linked); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "far", "config"), "far")
	g, err := newGuard(
		[]string{filepath.Join(git, "hooks"), filepath.Join(git, "absent"), filepath.Join(linked, "config")},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(git, git+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, git); err != nil {
		t.Fatal(err)
	}
	restored, err := g.restore()
	if err != nil || !slices.Contains(restored, git) {
		t.Errorf("%v, %v", restored, err)
	}
	for path, want := range map[string]string{
		filepath.Join(other, "hooks", "b"): "theirs", filepath.Join(git, "hooks", "a"): "ours", filepath.Join(linked, "config"): "far",
	} {
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(other, "hooks", "a")); err == nil {
		t.Error("the hook was written into another folder")
	}
	if restored, err := g.restore(); err != nil || len(restored) != 0 {
		t.Errorf("again: %v, %v", restored, err)
	}
	// A link that was there is led to where it led.
	if err := os.Remove(linked); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, linked); err != nil {
		t.Fatal(err)
	}
	if _, err := g.restore(); err != nil {
		t.Error(err)
	}
	if to, err := os.Readlink(linked); err != nil || to != filepath.Join(dir, "far") {
		t.Errorf("%s, %v", to, err)
	}
}
