package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestToolPathsHoldNoKeys: files in which people keep tokens are not read, beside folders of toolchains that are.
func TestToolPathsHoldNoKeys(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{
		"go/pkg/mod/x", ".cargo/bin/x", ".cargo/credentials.toml", ".gitconfig", ".netrc", ".npmrc", ".git-credentials", ".ssh/id_ed25519", ".config/x",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(home, "go/pkg/mod"), filepath.Join(home, ".cargo/bin")}
	if got := ToolPaths(home); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
