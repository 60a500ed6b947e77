package family

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestInfo(t *testing.T) {
	dir := load(t, "llama").write(t)
	files := map[string]string{
		"generation_config.json": `{"bos_token_id": 1, "eos_token_id": [2, 7]}`,
		"tokenizer_config.json":  `{"chat_template": [{"name": "tools", "template": "T"}, {"name": "default", "template": "D"}]}`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hf := Info{
		Family: "llama", Type: "llama", Name: filepath.Base(dir), Path: dir, Container: "safetensors", Parameters: 66384,
		MaxContext: 256, Vocab: 112, Layers: 3, Quantization: "BF16", BOS: 1, EOS: []int32{2, 7}, ChatTemplate: "D",
	}
	file := filepath.Join("testdata", "ggufs", "llama.gguf")
	gguf := Info{
		Family: "llama", Type: "llama", Name: "Llama", Path: file, Container: "gguf", Parameters: 66390, // 6 are factors of the rope
		MaxContext: 256, Vocab: 112, Layers: 3, Quantization: "BF16", BOS: 1, EOS: []int32{2},
	}
	for _, want := range []Info{hf, gguf} {
		c, err := Open(want.Path)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Info(); !reflect.DeepEqual(got, want) {
			t.Errorf("Info() = %+v, want %+v", got, want)
		}
		if (c.GGUF() != nil) != (want.Container == "gguf") {
			t.Errorf("GGUF() = %v", c.GGUF())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBrokenTemplates: a template that is there and cannot be read is no model without one.
func TestBrokenTemplates(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"chat_template.jinja", strings.Repeat("x", maxJSON+1), "more than"},
		{"tokenizer_config.json", `{"chat_template": "a"`, "tokenizer_config.json is no JSON object: it is cut off"},
		{"tokenizer_config.json", `{"chat_template": 7}`, "want a text or a list"},
		{"chat_template.json", `{"chat_template": [{"name": "default", "template": null}]}`, "has no text"},
		{"tokenizer_config.json", `{"chat_template": null}`, ""},
		{"tokenizer_config.json", `{"chat_template": []}`, ""},
	} {
		dir := load(t, "llama").write(t)
		if err := os.WriteFile(filepath.Join(dir, c.name), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := FolderTemplate(dir)
		if c.want == "" && (err != nil || text != "") ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %.40q: %q, %v, want %q", c.name, c.text, text, err, c.want)
		}
		ck, err := Open(dir)
		if (err == nil) != (c.want == "") {
			t.Errorf("%s %.40q: Open says %v, want %q", c.name, c.text, err, c.want)
		}
		if err == nil {
			ck.Close()
		}
	}
}

func TestOpenFolders(t *testing.T) {
	model, err := os.ReadFile(filepath.Join("testdata", "ggufs", "llama.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		files []string
		want  string // part of the error, "" for a model
	}{
		{"one model", []string{"a.gguf"}, ""},
		{"a model and its projector", []string{"a.gguf", "mmproj-a.gguf"}, ""},
		{"a model and a configuration", []string{"a.gguf", "config.json"}, ""},
		{"two models", []string{"a.gguf", "b.gguf"}, "several models"},
		{"nothing", []string{"README.md"}, "neither"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range test.files {
				if err := os.WriteFile(filepath.Join(dir, name), model, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, err := Open(dir)
			if err == nil {
				defer c.Close()
			}
			if test.want == "" && err != nil ||
				test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("Open() = %v, want %q", err, test.want)
			}
			if err == nil && c.Dir() != dir {
				t.Errorf("Dir() = %q", c.Dir())
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a path that does not exist opened")
	}
}
