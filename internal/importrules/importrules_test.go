package importrules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

type listed struct {
	ImportPath string
	Doc        string
	Imports    []string
}

// list asks the go command for all packages of the module, once.
var list = sync.OnceValues(func() ([]listed, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var ps []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return ps, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		ps = append(ps, p)
	}
})

func packages(t *testing.T) []listed {
	t.Helper()
	ps, err := list()
	if err != nil {
		t.Fatal(err)
	}
	if len(ps) < 10 {
		t.Fatalf("go list found only %d packages", len(ps))
	}
	return ps
}

// TestImportsPointOneWay holds the arrows of docs/ARCHITECTURE.md against the code.
func TestImportsPointOneWay(t *testing.T) {
	ps := packages(t)
	for _, f := range forbidden {
		from, to := false, !within(f.target(), module+"internal")
		for _, p := range ps {
			from = from || within(p.ImportPath, module+f.from)
			to = to || within(p.ImportPath, f.target())
			for _, imp := range p.Imports {
				if !f.allows(p.ImportPath, imp) {
					t.Errorf("%s imports %s: %s", p.ImportPath, imp, f.why)
				}
			}
		}
		if !from || !to {
			t.Errorf("the rule %s ↛ %s names a package that does not exist", f.from, f.to)
		}
	}
}

// TestRulesForbid holds rules against imports that they are there for, and some that they are not.
func TestRulesForbid(t *testing.T) {
	for _, test := range []struct {
		r          rule
		from, path string
		allowed    bool
	}{
		{rule{"internal/quant", "internal", ""}, module + "internal/quant", module + "internal/mmap", false},
		{rule{"internal/quant", "internal", ""}, module + "internal/quant", "internal/cpu", true},
		{rule{"internal/quant", "internal", ""}, module + "internal/quant", module + "internal/quant/part", true},
		{rule{"internal/quant", "internal", ""}, module + "internal/quantity", module + "internal/mmap", true},
		{rule{"internal/engine", "net/http", ""}, module + "internal/engine", "net/http/httptest", false},
		{rule{"internal/engine", "net/http", ""}, module + "internal/server", "net/http", true},
		{rule{"internal/engine", "internal/backend/cpu", ""}, module + "internal/engine", module + "internal/backend", true},
		{rule{"internal/engine", "internal/backend/cpu", ""}, module + "internal/engine/part", module + "internal/backend/cpu/isa", false},
	} {
		if got := test.r.allows(test.from, test.path); got != test.allowed {
			t.Errorf("%s ↛ %s: %s imports %s: allowed %v", test.r.from, test.r.to, test.from, test.path, got)
		}
	}
}

// TestArchitectureNamesEveryPackage wants each package below internal in the table of docs/ARCHITECTURE.md.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	page, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"internal/importrules": true} // has only rules
	for _, p := range packages(t) {
		path, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok || !within(path, "internal") {
			continue
		}
		top := strings.Join(strings.SplitN(path, "/", 3)[:2], "/")
		if !seen[top] && !strings.Contains(string(page), "`"+top+"`") {
			t.Errorf("docs/ARCHITECTURE.md does not name %s", top)
		}
		seen[top] = true
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

// TestDecisionsAreCited wants each question of docs/RATIONALE.md cited where the code does what it asks about
// ("RATIONALE: " and the heading), and each citation to be a heading.
func TestDecisionsAreCited(t *testing.T) {
	page, err := os.ReadFile("../../docs/RATIONALE.md")
	if err != nil {
		t.Fatal(err)
	}
	cited := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if heading, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok && heading != "Dependencies" {
			cited[heading] = false
		}
	}
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != "../.." {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(source)) {
			_, heading, ok := strings.Cut(line, "// RATIONALE: ")
			if !ok {
				continue
			}
			heading = strings.TrimSpace(heading)
			if _, known := cited[heading]; !known {
				t.Errorf("%s cites %q, which is no heading", path, heading)
			}
			cited[heading] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for heading, ok := range cited {
		if !ok {
			t.Errorf("nothing cites %q", heading)
		}
	}
}
