package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestInstructions: AGENTS.md before CLAUDE.md, from the workspace down, each once, bounded, and nothing from outside.
func TestInstructions(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "AGENTS.md"), "root rules\n")
	write(t, filepath.Join(root, "CLAUDE.md"), "not these")
	write(t, filepath.Join(root, "a", "CLAUDE.md"), "rules of a")
	write(t, filepath.Join(root, "a", "b", "x.go"), "package b")
	write(t, filepath.Join(outside, "secret"), "a key")
	if err := os.Mkdir(filepath.Join(root, "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(root, "c", "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	text := func(is []Instructions) string {
		s := ""
		for _, i := range is {
			s += i.Path + "=" + i.Text + ";"
		}
		return s
	}
	r := NewReader(root, 1000)
	for _, c := range []struct{ path, want string }{
		{root, "AGENTS.md=root rules;"},
		{filepath.Join(root, "a", "b", "x.go"), "a/CLAUDE.md=rules of a;"},
		{filepath.Join(root, "a", "b", "y.go"), ""},
		{filepath.Join(root, "c", "x"), ""},
		{outside, ""},
		{filepath.Join(root, "..", "x"), ""},
	} {
		if got := text(r.For(c.path)); got != c.want {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
	}
	r = NewReader(root, 6)
	if got := text(r.For(filepath.Join(root, "a"))); !strings.HasPrefix(got, "AGENTS.md=root r\n(4 bytes more") || !strings.Contains(got, "a/CLAUDE.md=(left out") {
		t.Errorf("%q", got)
	}
}

// TestFirst: the first message has the day, not the minute, the folder and its files, as deep as there is room.
func TestFirst(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module x")
	write(t, filepath.Join(root, "cmd", "x", "main.go"), "package main")
	write(t, filepath.Join(root, ".git", "config"), "")
	write(t, filepath.Join(root, "bad\nname <x>"), "")
	f := Facts{Now: time.Date(2026, 12, 1, 6, 7, 8, 0, time.UTC), Root: root, Git: "branch main, clean"}
	got := First(f, []Instructions{{"AGENTS.md", "Be good."}})
	want := "<environment>\nDate: 2026-12-01\nFolder: " + root + "\nSystem: linux\nGit: branch main, clean\nFiles: cmd/x/main.go go.mod\n" +
		"</environment>\n<instructions file=\"AGENTS.md\">\nBe good.\n</instructions>"
	if strings.Replace(got, "System: darwin", "System: linux", 1) != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range 100 {
		write(t, filepath.Join(root, "cmd", fmt.Sprint(i), "f"), "")
	}
	if got := First(f, nil); !strings.Contains(got, "Files: cmd/ go.mod\n") {
		t.Errorf("%q", got)
	}
	for i := range 100 {
		write(t, filepath.Join(root, fmt.Sprint("f", i)), "")
	}
	if got := First(f, nil); len(strings.Fields(got)) > maxFiles+30 || !strings.Contains(got, " …\n") {
		t.Errorf("%q", got)
	}
}

func TestGit(t *testing.T) {
	for in, want := range map[string]string{
		"## main...origin/main\n":              "branch main, clean",
		"## No commits yet on main\n?? a.go\n": "branch main, changed: ?? a.go",
		"## x\n M a\nA  b\n":                   "branch x, changed:  M a, A  b",
		"fatal: not a git repository":          "",
		"":                                     "",
		"## x\n" + strings.Repeat(" M file\n", 11) + "\n": "branch x, 11 changed: " + strings.Repeat(" M file, ", 9) + " M file …",
	} {
		if got := Git(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestSystemIsShort bounds the text without a tokenizer; package loop's test counts tokens, tools included.
func TestSystemIsShort(t *testing.T) {
	for _, n := range []int64{0, 1_500_000_000, 30_000_000_000} {
		if s := System(n); len(s) > 1400 || s != System(n) {
			t.Errorf("%d bytes", len(s))
		}
	}
	if !strings.Contains(System(1_500_000_000), "150 lines with write") || strings.Contains(System(30_000_000_000), "150") {
		t.Error("whole files are for small models alone")
	}
}
