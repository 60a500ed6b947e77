package arrows

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/baleenrun/baleen/"

type listed struct {
	ImportPath string
	Doc        string
	Dir        string
	Imports    []string
	Name       string
}

func packages(t *testing.T) []listed {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Dir,Imports,Name", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	if len(ps) < 10 {
		t.Fatalf("go list found only %d packages", len(ps))
	}
	return ps
}

func within(path, tree string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

// TestImportsPointOneWay holds the arrows of docs/ARCHITECTURE.md against the code.
func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			for _, f := range forbidden {
				if !within(p.ImportPath, module+f.from) {
					continue
				}
				to := f.to
				if strings.HasPrefix(to, "internal/") || to == "cmd" {
					to = module + to
				}
				if within(imp, to) {
					t.Errorf("%s imports %s: %s", p.ImportPath, imp, f.why)
				}
			}
		}
	}
}

// TestEveryPackageSaysWhatItOwns wants a package comment everywhere.
func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	for _, p := range packages(t) {
		if strings.TrimSpace(p.Doc) == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
