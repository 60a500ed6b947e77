package files

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		glob, yes, no string // paths apart by spaces
	}{
		{"*.go", "a.go .go", "a.go.txt d/a.go ago"},
		{"**/*.go", "a.go d/a.go d/e/a.go", "a.got"},
		{"src/**", "src/a src/b/c", "src srca/b"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "ab a/xb"},
		{"?.txt", "a.txt ä.txt", "ab.txt /.txt"},
		{"[a-c]x", "ax cx", "dx"},
		{"[!a]x", "bx", "ax /x"},
		{"[]]x", "]x", "ax"},
		{"*.{go,mod}", "a.go go.mod", "a.sum"},
		{"größe*", "größe.txt", "grose.txt"},
		{`\*`, "*", "a"},
		{"a.b", "a.b", "axb"},
		{"[", "[", "a"},
	} {
		p, err := Compile(c.glob)
		if err != nil {
			t.Fatal(err)
		}
		for path := range strings.FieldsSeq(c.yes) {
			if !p.Match(path) {
				t.Errorf("%s does not match %s", c.glob, path)
			}
		}
		for path := range strings.FieldsSeq(c.no) {
			if p.Match(path) {
				t.Errorf("%s matches %s", c.glob, path)
			}
		}
	}
	for glob, want := range map[string]string{"a/b/*.go": "a/b", "*": "", "/etc/**": "/etc", "/*": "/", "a/b": "a/b"} {
		if got := Literal(glob); got != want {
			t.Errorf("Literal(%s) is %q", glob, got)
		}
	}
	if _, err := Compile("{a"); err == nil {
		t.Error("a brace without its end")
	}
}

// tree makes files; a name that ends with a slash is a folder, one with " -> " a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		from, to, link := strings.Cut(name, " -> ")
		path := filepath.Join(dir, from)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if link {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestWalkIgnores what Git ignores, and says nothing of what a link outside has.
func TestWalkIgnores(t *testing.T) {
	dir := tree(t, map[string]string{
		".gitignore":        "# comment\n*.log\n!keep.log\n/top.txt\nbuild/\ndoc/*.pdf\n\\#x\nspace\\ \n**/deep/*.o\n",
		".git/info/exclude": "secret\n", ".git/config": "", "a.log": "", "keep.log": "", "top.txt": "", "s/top.txt": "", "build/x": "", "s/build": "",
		"doc/a.pdf": "", "doc/s/a.pdf": "", "#x": "", "space ": "", "a/deep/x.o": "", "secret": "", "s/.gitignore": "!a.log\n/t\n", "s/a.log": "",
		"s/t": "", "s/u/t": "", "link -> /etc": "", "b/link -> ..": "", "main.go": "",
	})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	list := func(from string, o Options) []string {
		var out []string
		if err := Walk(t.Context(), root, from, o, func(e Entry) error {
			if !e.IsDir() {
				out = append(out, e.Path)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(out)
		return out
	}
	want := []string{
		".gitignore", "b/link", "doc/s/a.pdf", "keep.log", "link", "main.go", "s/.gitignore", "s/a.log", "s/build", "s/top.txt", "s/u/t",
	}
	got := list(".", Options{})
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := list("s", Options{}); !slices.Equal(got, []string{"s/.gitignore", "s/a.log", "s/build", "s/top.txt", "s/u/t"}) {
		t.Errorf("below s: %q", got)
	}
	if got := list(".", Options{All: true, Depth: 1}); len(got) != 9 {
		t.Errorf("%q", got)
	}
	if _, err := exec.LookPath("git"); err == nil { // Git has the last word
		cmd := exec.Command("git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard")
		_ = os.RemoveAll(filepath.Join(dir, ".git", "config"))
		init := exec.Command("git", "init", "-q")
		init.Dir, cmd.Dir = dir, dir
		if err := init.Run(); err != nil {
			t.Skip(err)
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		theirs := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
		slices.Sort(theirs)
		if !slices.Equal(theirs, want) {
			t.Errorf("git lists %q", theirs)
		}
	}
}

func TestWalkIsBounded(t *testing.T) {
	dir := tree(t, map[string]string{"a": "", "b": "", "c": ""})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := Walk(t.Context(), root, ".", Options{Max: 2}, func(Entry) error { return nil }); err != ErrMany {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Walk(ctx, root, ".", Options{}, func(Entry) error { return nil }); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
