package mmap

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReadSmall(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadSmall(path, 5); err != nil || string(b) != "12345" {
		t.Errorf("%q, %v", b, err)
	}
	for _, p := range []string{path, dir, filepath.Join(dir, "missing"), os.DevNull} {
		if b, err := ReadSmall(p, 4); err == nil {
			t.Errorf("%s: %q and no error", p, b)
		}
	}
}
