package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestPlots(t *testing.T) {
	r := Result{
		Model: "Some Model", Quantization: "Q4_K_M", Threads: 2, CPU: "avx512", Prompt: 512, PrefillTPS: 812.5,
		AggregateTPS: map[string]float64{"1": 61.25, "8": 240, "2": 100}, ReadGBps: 40, DecodeShare: 0.81,
	}
	dir := t.TempDir()
	if keep := os.Getenv("BALEEN_TEST_PLOTS"); keep != "" {
		dir = keep
	}
	for name, want := range map[string][]string{
		"p.svg": {"<svg", "8 streams", "512 tokens", "81 %", "Some Model"},
		"p.png": {"\x89PNG"},
	} {
		path := filepath.Join(dir, name)
		if err := WritePlot(path, r); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !bytes.Contains(b, []byte(w)) {
				t.Errorf("%s does not have %q", name, w)
			}
		}
	}
	if err := WritePlot(filepath.Join(dir, "p.pdf"), r); err == nil {
		t.Error("a PDF was written")
	}
}
