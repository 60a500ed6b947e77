//go:build linux || darwin

package family

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEndlessFilesAreRefused puts a device without end in the place of each text file of a checkpoint.
func TestEndlessFilesAreRefused(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip(err)
	}
	source := filepath.Join("testdata", "goldens", "llama")
	for _, name := range []string{"config.json", "generation_config.json", "chat_template.jinja", "tokenizer_config.json"} {
		dir := t.TempDir()
		for _, file := range []string{"config.json", "model.safetensors"} {
			if file == name {
				continue
			}
			data, err := os.ReadFile(filepath.Join(source, file))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("/dev/zero", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if c, err := Open(dir); err == nil {
			c.Close()
			t.Errorf("%s without end is read", name)
		}
	}
}
