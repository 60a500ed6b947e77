package synth

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/quant"
)

func mustShape(t *testing.T, name string) Shape {
	t.Helper()
	s, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRecipe(t *testing.T, name string) Recipe {
	t.Helper()
	r, err := LookupRecipe(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFilesOpen writes every recipe of two tiny shapes and reads them back.
func TestFilesOpen(t *testing.T) {
	for _, shape := range []string{"tiny", "tiny-moe"} {
		for _, r := range recipes {
			t.Run(shape+"/"+r.Name, func(t *testing.T) {
				s := mustShape(t, shape)
				path := filepath.Join(t.TempDir(), "m.gguf")
				file, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				var last int64
				if err := Write(t.Context(), file, s, r, 1, func(n int64) { last = n }); err != nil {
					t.Fatal(err)
				}
				if err := file.Close(); err != nil {
					t.Fatal(err)
				}
				if want := Size(s, r); last != want {
					t.Errorf("%d bytes of weights written, Size says %d", last, want)
				}
				f, err := gguf.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				checkWeights(t, f)
			})
		}
	}
}

// checkWeights wants weights with the standard deviation that keeps activations at their size, and norms near one.
func checkWeights(t *testing.T, f *gguf.File) {
	for _, x := range f.Tensors() {
		n := 1
		for _, d := range x.Dims {
			n *= d
		}
		values := make([]float32, n)
		if err := quant.Dequantize(x.Type, values, x.Bytes()); err != nil {
			t.Fatalf("%s: %v", x.Name, err)
		}
		var sum, squares float64
		for _, v := range values {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		mean := sum / float64(n)
		dev := math.Sqrt(squares/float64(n) - mean*mean)
		wantMean, wantDev := 1.0, 0.05
		if len(x.Dims) > 1 {
			wantMean, wantDev = 0, 1/math.Sqrt(float64(x.Dims[0]))
		}
		if math.Abs(mean-wantMean) > 0.05 || dev < wantDev*0.6 || dev > wantDev*1.4 {
			t.Errorf(
				"%s (%v): mean %.3f, deviation %.4f; want %.0f and %.4f",
				x.Name,
				x.Type,
				mean,
				dev,
				wantMean,
				wantDev,
			)
		}
	}
}

func TestSameSeedSameFile(t *testing.T) {
	s, r := mustShape(t, "tiny"), mustRecipe(t, "q4_0")
	var a, b, c bytes.Buffer
	for seed, w := range map[uint64]*bytes.Buffer{1: &a, 2: &c} {
		if err := Write(t.Context(), w, s, r, seed, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(t.Context(), &b, s, r, 1, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same seed gave two files")
	}
	if bytes.Equal(a.Bytes(), c.Bytes()) {
		t.Error("two seeds gave one file")
	}
}

// TestFormatsFollowLlamaQuantize holds known cases of llama.cpp's mixes.
func TestFormatsFollowLlamaQuantize(t *testing.T) {
	for _, tc := range []struct {
		shape, recipe, tensor string
		want                  quant.Type
	}{
		{"llama-3.2-1b", "Q4_0", "token_embd.weight", quant.Q6_K}, // shared with the output
		{"llama-3.2-1b", "Q4_0", "blk.0.attn_v.weight", quant.Q4_0},
		{"llama-3.2-1b", "Q4_K_M", "blk.0.attn_v.weight", quant.Q6_K},
		{"llama-3.2-1b", "Q4_K_M", "blk.2.ffn_down.weight", quant.Q4_K},
		{"llama-3.2-1b", "Q4_K_M", "blk.4.ffn_down.weight", quant.Q6_K},
		{"llama-3.2-1b", "Q4_K_M", "blk.15.ffn_down.weight", quant.Q6_K},
		{"llama-3.2-1b", "Q4_K_M", "blk.0.attn_output.weight", quant.Q4_K},
		{"qwen3-8b", "Q4_K_M", "token_embd.weight", quant.Q4_K},
		{"qwen3-8b", "Q4_K_M", "output.weight", quant.Q6_K},
		{"qwen2.5-0.5b", "Q4_K_M", "blk.2.attn_q.weight", quant.Q5_0}, // 896 is no multiple of 256
		{"qwen2.5-0.5b", "Q4_K_M", "blk.0.attn_v.weight", quant.Q8_0},
		{"qwen2.5-0.5b", "Q4_K_M", "token_embd.weight", quant.Q8_0},
		{"qwen2.5-0.5b", "Q4_K_M", "blk.0.ffn_down.weight", quant.Q6_K}, // 4864 is one
		{"mixtral-8x7b", "Q4_K_M", "blk.5.attn_k.weight", quant.Q8_0},
		{"mixtral-8x7b", "Q4_K_M", "blk.5.attn_output.weight", quant.Q5_K},
		{"olmoe", "Q4_K_M", "blk.0.ffn_gate_inp.weight", quant.F32},
		{"olmoe", "F16", "blk.0.attn_q.weight", quant.F16},
	} {
		found := false
		for _, x := range tensors(mustShape(t, tc.shape), mustRecipe(t, tc.recipe)) {
			if x.name == tc.tensor {
				found = true
				if x.typ != tc.want {
					t.Errorf("%s %s: %s is %v, want %v", tc.shape, tc.recipe, tc.tensor, x.typ, tc.want)
				}
			}
		}
		if !found {
			t.Errorf("%s has no %s", tc.shape, tc.tensor)
		}
	}
}

func TestVocabularyHasTheDeclaredSize(t *testing.T) {
	for _, s := range Shapes() {
		for _, kv := range vocabulary(s) {
			tokens, ok := kv.value.([]string)
			if !ok || kv.key != "tokenizer.ggml.tokens" {
				continue
			}
			seen := make(map[string]bool, len(tokens))
			for _, tok := range tokens {
				seen[tok] = true
			}
			if len(tokens) != s.Vocab || len(seen) != s.Vocab {
				t.Errorf("%s: %d tokens, %d different, want %d", s.Name, len(tokens), len(seen), s.Vocab)
			}
		}
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := Lookup("gpt-9"); err == nil || !strings.Contains(err.Error(), "llama-3.2-1b") {
		t.Errorf("shape: %v", err)
	}
	if _, err := LookupRecipe("Q3_9"); err == nil || !strings.Contains(err.Error(), "Q4_K_M") {
		t.Errorf("recipe: %v", err)
	}
}

func TestWriteStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var buf bytes.Buffer
	if err := Write(ctx, &buf, mustShape(t, "tiny"), mustRecipe(t, "F16"), 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
