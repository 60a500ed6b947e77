package model

import (
	"runtime"
	"testing"

	"github.com/baleenrun/baleen/internal/synth"
)

// TestNeedsAndDescribeReadNoWeights asks about checkpoints of several GB, in files without contents, whose weights
// would have to be converted: what is asked for before a model is loaded, and what show prints.
func TestNeedsAndDescribeReadNoWeights(t *testing.T) {
	for _, storage := range synth.Storages {
		t.Run(string(storage), func(t *testing.T) {
			dir := t.TempDir()
			f := synth.Folder{Storage: storage, Hidden: 4096, Width: 14336, Experts: 8, Layers: 2}
			if err := f.Write(dir); err != nil {
				t.Skipf("no files without contents can be made here: %v", err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			least, want, err := Needs(dir, Options{Device: "cpu", Threads: 1, Context: 256})
			if err != nil {
				t.Fatal(err)
			}
			d, err := Describe(dir, Options{Device: "cpu", Threads: 1, Context: 256})
			if err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
				t.Errorf("%d KiB were allocated", took>>10)
			}
			if least < 1<<30 || want < least || d.Memory.Weights < 1<<30 {
				t.Errorf("needs %d MiB, wants %d, weights of %d", least>>20, want>>20, d.Memory.Weights>>20)
			}
		})
	}
}
