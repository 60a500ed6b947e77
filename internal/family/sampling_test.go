package family

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/baleenrun/baleen/internal/gguf"
)

func f32(v float32) *float32 { return &v }
func whole(v int) *int       { return &v }

func TestSampling(t *testing.T) {
	for _, test := range []struct {
		name, config string
		want         Sampling
	}{
		{"nothing", `{"eos_token_id": 2}`, Sampling{}},
		{
			"all", `{"do_sample": true, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "min_p": 0.05, "typical_p": 0.9, "repetition_penalty": 1.1}`,
			Sampling{f32(0.7), f32(0.8), f32(0.05), f32(0.9), f32(1.1), whole(20), whole(-1)},
		},
		{"greedy", `{"do_sample": false}`, Sampling{Temperature: f32(0)}},
		{"no sampling is said", `{"temperature": 0.6}`, Sampling{Temperature: f32(0.6)}},
		{"impossible values", `{"temperature": -1, "top_k": 2.5, "top_p": 7, "min_p": "x", "repetition_penalty": 0}`, Sampling{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := load(t, "llama").write(t)
			if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(test.config), 0o600); err != nil {
				t.Fatal(err)
			}
			check(t, dir, test.want)
		})
	}
}

func TestSamplingOfGGUF(t *testing.T) {
	for _, test := range []struct {
		name string
		keys map[string]any
		want Sampling
	}{
		{"nothing", nil, Sampling{}},
		{"all", map[string]any{
			"temp": float32(0.7), "top_k": int32(20), "top_p": float32(0.8), "min_p": float32(0.05), "penalty_repeat": float32(1.1), "penalty_last_n": int32(128),
		}, Sampling{Temperature: f32(0.7), TopP: f32(0.8), MinP: f32(0.05), RepetitionPenalty: f32(1.1), TopK: whole(20), RepeatLastN: whole(128)}},
		{"impossible values", map[string]any{"temp": float32(-3), "top_k": int32(-4), "penalty_last_n": int32(-9), "top_p": "x"}, Sampling{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			w := gguf.NewWriter(&b)
			if err := w.Set("general.architecture", "llama"); err != nil {
				t.Fatal(err)
			}
			for k, v := range test.keys {
				if err := w.Set("general.sampling."+k, v); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			check(t, path, test.want)
		})
	}
}

func check(t *testing.T, path string, want Sampling) {
	t.Helper()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.Sampling(); !reflect.DeepEqual(got, want) || got.Empty() != (want == Sampling{}) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestDefaultSampling holds who is asked how to draw, in order: the checkpoint, the makers of the base model by
// architecture and name, Baleen. Who names a temperature has the last word.
func TestDefaultSampling(t *testing.T) {
	for _, test := range []struct {
		name, kind, model, config string
		want                      Sampling
		source                    string
	}{
		{
			"nobody", "llama", "mine", `{}`,
			Sampling{Temperature: f32(0.7), TopP: f32(0.95), MinP: f32(0.05), TopK: whole(40)},
			"Baleen's default",
		},
		{
			"the checkpoint", "qwen2", "Qwen2.5-0.5B-Instruct", `{"temperature": 0.3, "top_k": 5}`,
			Sampling{Temperature: f32(0.3), TopK: whole(5)},
			"generation_config.json",
		},
		{"a greedy checkpoint", "qwen2", "Qwen2.5", `{"do_sample": false}`, Sampling{Temperature: f32(0)}, "generation_config.json"},
		{
			"makers by name", "qwen2", "Qwen2.5-Coder-1.5B-Instruct-AWQ", `{}`,
			Sampling{Temperature: f32(0.7), TopP: f32(0.8), TopK: whole(20), RepetitionPenalty: f32(1.05), RepeatLastN: whole(-1)},
			"the makers of Qwen2.5",
		},
		{
			"makers by architecture", "qwen3", "my-tune", `{}`,
			Sampling{Temperature: f32(0.6), TopP: f32(0.95), TopK: whole(20)},
			"the makers of Qwen3",
		},
		{
			"a distillate before its base model", "qwen2", "DeepSeek-R1-Distill-Qwen-1.5B", `{}`,
			Sampling{Temperature: f32(0.6), TopP: f32(0.95)},
			"the makers of DeepSeek R1",
		},
		{
			"a name of another architecture", "qwen2", "smollm3", `{}`,
			Sampling{Temperature: f32(0.7), TopP: f32(0.95), MinP: f32(0.05), TopK: whole(40)},
			"Baleen's default",
		},
		{
			"what the checkpoint leaves open", "llama", "Llama-3.2-1B-Instruct", `{"top_p": 0.5}`,
			Sampling{Temperature: f32(0.6), TopP: f32(0.5)},
			"generation_config.json, the makers of Llama 3",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			generation := map[string]any{}
			if err := json.Unmarshal([]byte(test.config), &generation); err != nil {
				t.Fatal(err)
			}
			c := &Checkpoint{kind: test.kind, path: filepath.Join(t.TempDir(), test.model), generation: generation}
			if got, source := c.DefaultSampling(); !reflect.DeepEqual(got, test.want) || source != test.source {
				t.Errorf("%s of %s, want %s of %s", text(got), source, text(test.want), test.source)
			}
		})
	}
}

// TestNamesOfCheckpoints: a hub's cache has the name two folders above a snapshot.
func TestNamesOfCheckpoints(t *testing.T) {
	c := &Checkpoint{kind: "qwen2", path: "/hub/models--Qwen--Qwen2.5-0.5B-Instruct/snapshots/0123abcd"}
	if _, source := c.DefaultSampling(); source != "the makers of Qwen2.5" {
		t.Errorf("%s", source)
	}
}

func text(s Sampling) string {
	b, _ := json.Marshal(s)
	return string(b)
}
