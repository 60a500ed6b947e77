package gguf

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/quant"
)

// TestRealFiles reads whole models named in BALEEN_TEST_GGUF (paths, separated by commas): it opens them, times that,
// and decodes a row of every tensor.
func TestRealFiles(t *testing.T) {
	list := os.Getenv("BALEEN_TEST_GGUF")
	if list == "" {
		t.Skip("BALEEN_TEST_GGUF names no models")
	}
	for path := range strings.SplitSeq(list, ",") {
		start := time.Now()
		f, err := Open(path)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		t.Logf("%s: %d keys, %d tensors, opened in %v", path, len(f.Keys()), len(f.Tensors()), time.Since(start))
		for _, x := range f.Tensors() {
			row, err := x.Type.RowBytes(x.Dims[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := quant.Dequantize(x.Type, make([]float32, x.Dims[0]), x.Bytes()[:row]); err != nil {
				t.Errorf("%s: %s: %v", path, x.Name, err)
			}
		}
		if _, ok := f.Strings("tokenizer.ggml.tokens"); !ok {
			t.Errorf("%s: no tokens", path)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
