package family

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/plan/planref"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// goldenDirs returns the committed goldens and those of $BALEEN_TEST_GOLDENS.
func goldenDirs(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/goldens/*/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if more := os.Getenv("BALEEN_TEST_GOLDENS"); more != "" {
		list, err := filepath.Glob(filepath.Join(more, "*/golden.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, list...)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs
}

type golden struct {
	ids    []int32
	logits []float32 // rows of vocab
}

func readGolden(t *testing.T, dir string) golden {
	t.Helper()
	set, err := safetensors.Open(filepath.Join(dir, "golden.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	read := func(name string) []float32 {
		tensor, ok := set.Tensor(name)
		if !ok {
			t.Fatalf("%s has no %s", dir, name)
		}
		v, err := tensor.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	g := golden{logits: read("logits")}
	for _, v := range read("input_ids") {
		g.ids = append(g.ids, int32(v))
	}
	return g
}

func lower(t *testing.T, path string, o Options) *plan.Plan {
	t.Helper()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	p, err := c.Lower(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// compare checks logits within the tolerance of the goldens and returns the largest error in units of it.
func compare(t *testing.T, got [][]float32, want []float32) float64 {
	t.Helper()
	if len(got)*len(got[0]) != len(want) {
		t.Fatalf("%d x %d logits, want %d", len(got), len(got[0]), len(want))
	}
	worst, at := 0.0, 0
	for r, row := range got {
		for i, v := range row {
			w := float64(want[r*len(row)+i])
			e := math.Abs(float64(v)-w) / (1e-4 + 1e-4*math.Abs(w))
			if !(e <= worst) {
				worst, at = e, r*len(row)+i
			}
		}
	}
	if !(worst <= 1) {
		t.Errorf(
			"worst logit at row %d: %v, want %v (%.3g times the tolerance)",
			at/len(got[0]),
			got[at/len(got[0])][at%len(got[0])],
			want[at],
			worst,
		)
	}
	return worst
}

// skipUnknown skips goldens of families that other packages own or that are not written yet.
func skipUnknown(t *testing.T, dir string) {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Info().Family == "" && filepath.Dir(dir) != filepath.Join("testdata", "goldens") {
		t.Skipf("type %s is not supported", c.Info().Type)
	}
}

func TestGoldens(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			skipUnknown(t, dir)
			g := readGolden(t, dir)
			worst := compare(t, planref.Run(lower(t, dir, Options{Context: len(g.ids)}), g.ids), g.logits)
			t.Logf("%s: %.3f of the tolerance", filepath.Base(dir), worst)
		})
	}
}

// TestEveryFamilyHasGolden fails for a family whose mathematics nothing checks.
func TestEveryFamilyHasGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, dir := range goldenDirs(t) {
		c, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(dir) == filepath.Join("testdata", "goldens") {
			seen[c.Info().Family] = true
		}
		c.Close()
	}
	for _, name := range Names() {
		if !seen[name] {
			t.Errorf("family %s has no golden in testdata/goldens: make one with testdata/make_goldens.py", name)
		}
	}
}
