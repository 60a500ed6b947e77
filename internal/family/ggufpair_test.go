package family

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/plan/planref"
)

// TestGGUFForms compares GGUF files with the goldens of the same name: $BALEEN_TEST_GGUFS/NAME.gguf holds the weights
// of $BALEEN_TEST_GOLDENS/NAME or of the committed golden, as llama.cpp's converter writes them.
func TestGGUFForms(t *testing.T) {
	dir := os.Getenv("BALEEN_TEST_GGUFS")
	if dir == "" {
		dir = filepath.Join("testdata", "ggufs")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	goldens := map[string]string{}
	for _, d := range goldenDirs(t) {
		goldens[filepath.Base(d)] = d
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".gguf")
		t.Run(name, func(t *testing.T) {
			skipUnknown(t, file)
			golden, ok := goldens[name]
			if !ok {
				t.Fatalf("no golden is named %s", name)
			}
			g := readGolden(t, golden)
			worst := compare(t, planref.Run(lower(t, file, Options{}), g.ids), g.logits)
			t.Logf("%s: %.3f of the tolerance", name, worst)
		})
	}
}
