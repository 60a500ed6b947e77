//go:build linux || darwin

package family

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/mmap"
)

// A file that is cut short between opening and lowering it is an error that names it.
func TestLowerOfAShortenedFile(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "ggufs", "llama.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lower(Options{}); !errors.Is(err, mmap.ErrShortened) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}
