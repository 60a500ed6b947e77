package verify

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/family"
)

// goldens returns the committed checkpoints and those of $BALEEN_TEST_GOLDENS.
func goldens(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("../family/testdata/goldens/*/golden.safetensors")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	if more := os.Getenv("BALEEN_TEST_GOLDENS"); more != "" {
		list, _ := filepath.Glob(filepath.Join(more, "*/golden.safetensors"))
		dirs = append(dirs, list...)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs
}

// TestGoldens holds the CPU backend against every reference, in one step and in small ones, and wants equal bits.
func TestGoldens(t *testing.T) {
	for _, dir := range goldens(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, err := family.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			name := c.Info().Family
			c.Close()
			if name == "" {
				t.Skip("no such family")
			}
			ref, err := ReadReference(filepath.Join(dir, "golden.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			var first Report
			for i, o := range []Options{
				{KV: backend.KVF32},
				{KV: backend.KVF32, Batch: 3, Chunk: 5, Threads: 1},
				{KV: backend.KVF32, Chunk: 1, Threads: 2},
				{KV: backend.KVF32, Batch: 2, Chunk: 8, CPU: "generic"},
			} {
				r, err := Checkpoint(t.Context(), dir, ref, o)
				if err != nil {
					t.Fatal(err)
				}
				if !r.Pass {
					t.Errorf("%+v: %+v", o, r)
				}
				if i == 0 {
					first = r
				}
				if r.LogitsSHA256 != first.LogitsSHA256 {
					t.Errorf("%+v: other bits than in one step", o)
				}
			}
			t.Logf("%s: %.3f of the tolerance", first.Family, first.MaxTolerance)
		})
	}
}
