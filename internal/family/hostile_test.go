package family

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// hostileValues replace every value of a configuration in turn.
var hostileValues = []any{
	0, 1, -1, 3, 7, 1 << 20, 4194304, 1e9, 1e18, -1e18, 1.5, 1e-30, 1e300, "", "x", true, false,
	[]any{},
	[]any{0},
	[]any{-1, "x"},
	map[string]any{},
	map[string]any{"rope_type": "yarn"},
	map[string]any{"rope_type": "longrope", "long_factor": []any{0}},
}

// tryLower lowers and wants a plan or an error, never a panic.
func tryLower(t testing.TB, c *Checkpoint) {
	c.Info()
	for _, context := range []int{0, 1 << 40} {
		if p, err := c.Lower(Options{Context: context}); err == nil && p.Check() != nil {
			t.Errorf("a plan that does not fit: %v", p.Check())
		}
	}
}

// tryOpen is tryLower for a path that need not open.
func tryOpen(t testing.TB, path string) {
	c, err := Open(path)
	if err != nil {
		return
	}
	defer c.Close()
	tryLower(t, c)
}

// TestHostileConfigs replaces each value of each golden's configuration, nested ones too, by values that make no sense.
func TestHostileConfigs(t *testing.T) {
	dirs, err := filepath.Glob("testdata/goldens/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no goldens", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			config := load(t, filepath.Base(dir)).config
			try := func() {
				data, err := json.Marshal(config)
				if err != nil {
					t.Fatal(err)
				}
				if c.config, err = decodeJSON(data); err != nil {
					t.Fatal(err)
				}
				c.identify()
				tryLower(t, c)
			}
			mutate := func(m map[string]any) {
				for _, key := range sortedKeys(m) {
					old := m[key]
					for _, bad := range hostileValues {
						m[key] = bad
						try()
					}
					delete(m, key)
					try()
					m[key] = old
				}
			}
			mutate(config)
			if p, ok := config["rope_parameters"].(map[string]any); ok {
				mutate(p)
			}
		})
	}
}

// TestHostileShapes gives tensors shapes that are not theirs.
func TestHostileShapes(t *testing.T) {
	for _, name := range []string{"phi3", "qwen3_next", "gpt_oss", "deepseek_v3"} {
		v := load(t, name)
		for _, tensor := range sortedKeys(v.tensors) {
			if strings.Contains(tensor, "layers.2.") || strings.Contains(tensor, "experts.1") {
				continue // like the others
			}
			old := v.tensors[tensor]
			n := len(old.Data) / 2
			for _, shape := range [][]int{{n}, {n, 1}, {}, {0}} {
				e := old
				e.Shape = shape
				switch {
				case len(shape) == 0:
					e.Data = old.Data[:2]
				case shape[0] == 0:
					e.Data = []byte{}
				}
				v.tensors[tensor] = e
				tryOpen(t, v.write(t))
			}
			v.tensors[tensor] = safetensors.Entry{DType: "U32", Shape: []int{1, 1}, Data: make([]byte, 4)}
			tryOpen(t, v.write(t))
			v.tensors[tensor] = old
		}
	}
}

// TestHostileGGUF replaces each number of each GGUF golden's metadata.
func TestHostileGGUF(t *testing.T) {
	for _, name := range []string{"llama", "phi3_longrope", "lfm2", "deepseek_v3", "qwen3_5"} {
		file := filepath.Join("testdata", "ggufs", name+".gguf")
		t.Run(name, func(t *testing.T) {
			f, err := gguf.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			arch, _ := f.String("general.architecture")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			into := filepath.Join(t.TempDir(), "model.gguf")
			for _, key := range f.Keys() {
				v, _ := f.Get(key)
				if _, isInt := v.Int(); !strings.HasPrefix(key, arch+".") || !isInt && v.Type != gguf.Float32 {
					continue
				}
				at := bytes.Index(data, []byte(key)) + len(key) + 4 // after the type: a number of four bytes
				for _, bad := range [][]byte{{0, 0, 0, 0}, {1, 0, 0, 0}, {3, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 1}, {0xff, 0xff, 0xff, 0x7f}, {0, 0, 0x80, 0x7f}} {
					changed := bytes.Clone(data)
					copy(changed[at:], bad)
					if err := os.WriteFile(into, changed, 0o600); err != nil {
						t.Fatal(err)
					}
					tryOpen(t, into)
				}
			}
		})
	}
}

// TestDamagedConfigs: what is no JSON object is refused in words that say so.
func TestDamagedConfigs(t *testing.T) {
	golden := filepath.Join("testdata", "goldens", "llama")
	good, err := os.ReadFile(filepath.Join(golden, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	many := map[string]any{"model_type": "llama"}
	for i := range 5000 {
		many[fmt.Sprintf("key%d", i)] = i
	}
	for _, tc := range []struct{ config, want string }{
		{"", "is no JSON object: it is empty"},
		{" \n", "is no JSON object: it is empty"},
		{"[]", "is no JSON object"},
		{"7", "is no JSON object"},
		{"null", "is no JSON object"},
		{string(good[:len(good)/2]), "is no JSON object: it is cut off"},
		{string(good) + "garbage", "is no JSON object: there is more behind it"},
		{string(good) + "{}", "is no JSON object: there is more behind it"},
		{"{}", "config.json names no model_type"},
		{`{"model_type": 7}`, "config.json names no model_type"},
	} {
		err := openWith(t, golden, tc.config)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "Go value") {
			t.Errorf("%.40q: error %v, want %q", tc.config, err, tc.want)
		}
	}
	c := config{values: many, used: map[string]bool{}}
	err = func() (err error) {
		defer catch(&err)
		c.finish("config.json")
		return nil
	}()
	if err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "and 4993 more") {
		t.Errorf("%d unknown keys: %.1000v", len(many), err)
	}
}

// openWith opens and lowers the weights of a golden under another config.json.
func openWith(t *testing.T, golden, config string) error {
	t.Helper()
	dir := t.TempDir()
	weights, err := os.ReadFile(filepath.Join(golden, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"model.safetensors": weights, "config.json": []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Open(dir)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Lower(Options{})
	return err
}

// FuzzConfig feeds configurations to the tensors of one golden of each kind.
func FuzzConfig(f *testing.F) {
	var open []*Checkpoint
	for _, name := range []string{"llama", "gemma3", "qwen3_next", "lfm2_moe", "gpt_oss", "deepseek_v3"} {
		dir := filepath.Join("testdata", "goldens", name)
		data, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			f.Fatal(err)
		}
		c, err := Open(dir)
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { c.Close() })
		f.Add(data, uint8(len(open)))
		open = append(open, c)
	}
	f.Fuzz(func(t *testing.T, config []byte, which uint8) {
		c := *open[int(which)%len(open)]
		var err error
		if c.config, err = decodeJSON(config); err != nil {
			return
		}
		c.identify()
		tryLower(t, &c)
	})
}

// TestTemplateIsText: a chat template that is no text is refused, in a GGUF file as in a folder.
func TestTemplateIsText(t *testing.T) {
	for _, tc := range []struct {
		value any
		ok    bool
	}{{"{{ messages }}", true}, {uint32(7), false}, {[]string{"a"}, false}} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := gguf.NewWriter(f)
		for key, v := range map[string]any{"general.architecture": "llama", "tokenizer.chat_template": tc.value} {
			if err := w.Set(key, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		c, err := Open(path)
		if (err == nil) != tc.ok || err != nil && !strings.Contains(err.Error(), "is no text") {
			t.Errorf("%v: %v", tc.value, err)
		}
		if err == nil {
			if got := c.Info().ChatTemplate; got != tc.value {
				t.Errorf("%q", got)
			}
			c.Close()
		}
	}
}
