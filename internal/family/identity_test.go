package family

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/baleenrun/baleen/internal/mmap"
)

// TestCurrent says what of a folder belongs to a model: weights, configuration, tokenizer and template, also a file
// that was not there before.
func TestCurrent(t *testing.T) {
	put := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	for _, test := range []struct {
		name    string
		do      func(dir string) error
		current bool
	}{
		{"nothing", func(string) error { return nil }, true},
		{"a file beside the model", put("README.md", "# Model"), true},
		{"a program's state beside the model", put("state.json", "{}"), true},
		{"the tokenizer", put("tokenizer.json", `{"b": 1}`), false},
		{"a template", put("chat_template.jinja", "{{ x }}"), false},
		{"more weights", put("model-2.safetensors", "x"), false},
		{"no tokenizer", func(dir string) error { return os.Remove(filepath.Join(dir, "tokenizer.json")) }, false},
		{"one file replaced", func(dir string) error {
			return errors.Join(put("new", "{}")(dir), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "tokenizer.json")))
		}, false},
		{"the folder replaced", func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.CopyFS(dir, os.DirFS(dir+".old")))
		}, false},
		{"no folder", func(dir string) error { return os.Rename(dir, dir+".old") }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := load(t, "llama").write(t)
			if err := put("tokenizer.json", `{"a": 1}`)(dir); err != nil {
				t.Fatal(err)
			}
			c, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Current(); err != nil {
				t.Errorf("before: %v", err)
			}
			if err := test.do(dir); err != nil {
				t.Fatal(err)
			}
			if err := c.Current(); (err == nil) != test.current || err != nil && !errors.Is(err, mmap.ErrChanged) {
				t.Errorf("current: %v", err)
			}
		})
	}
}
