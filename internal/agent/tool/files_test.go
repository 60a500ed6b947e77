package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	long := strings.Repeat("line\n", 3000)
	r := newRoom(t, map[string]string{
		"a.txt": "one\ntwo\nthree\n", "end": "no end", "empty": "", "long": long, "wide": strings.Repeat("x", 5000) + "\nend\n",
		"crlf": "a\r\nb\r\n", "latin": "caf\xe9\n", "bin": "a\x00b", "bom": "\xef\xbb\xbfhi\n", "utf16": "\xff\xfeh\x00i\x00\n\x00", "d/x": "", "torn": "größe \xff\n",
		"gif": "GIF89a\x02\x00\x03\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00!\xf9\x04\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;",
	})
	if err := syscall.Mkfifo(r.path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []any
		fails bool
		want  string
		whole bool // the text is just that
	}{
		{[]any{"path", "a.txt"}, false, "one\ntwo\nthree", true},
		{[]any{"path", r.path("a.txt")}, false, "one\ntwo\nthree", true},
		{[]any{"path", "a.txt", "offset", 2, "limit", 1}, false, "two\n[lines 2-2 of 3; the next is offset 3]", true},
		{[]any{"file_path", "a.txt", "offset", "3"}, false, "three\n[lines 3-3 of 3]", true},
		{[]any{"path", "a.txt", "offset", 9}, true, "a.txt has 3 lines", true},
		{[]any{"path", "end"}, false, "no end\n[no newline at the end]", true},
		{[]any{"path", "empty"}, false, "(the file is empty)", true},
		{[]any{"path", "long"}, false, "[lines 1-2000 of 3000; the next is offset 2001]", false},
		{[]any{"path", "wide"}, false, "x…[3000 bytes more]\nend", false},
		{[]any{"path", "crlf"}, false, "a\nb\n[CRLF, kept]", true},
		{[]any{"path", "latin"}, false, "café\n[Latin-1]", true},
		{[]any{"path", "torn"}, false, "[some bytes are no UTF-8]", false},
		{[]any{"path", "bom"}, false, "hi", true},
		{[]any{"path", "utf16"}, false, "hi\n[UTF-16]", true},
		{[]any{"path", "bin"}, true, "binary file", false},
		{[]any{"path", "gif"}, false, "image/gif, 43 bytes, 2 x 3 pixels", false},
		{[]any{"path", "d"}, false, "d is a folder:\nd/x", true},
		{[]any{"path", "pipe"}, true, "no regular file", false},
		{[]any{"path", "e/a.txt"}, true, "there is no file e/a.txt; there is a.txt", true},
		{[]any{"path", ""}, true, "empty", false},
		{[]any{"path", "a.txt", "lines", 3}, true, `there is no argument "lines"; there are path, offset, limit`, true},
		{[]any{"offset", 3}, true, "the argument path is missing", true},
		{[]any{"path", "a.txt", "offset", "x"}, true, "a whole number", false},
	} {
		res := r.run(read{}, c.args...)
		r.want(res, c.fails, c.want)
		if c.whole && res.Text != c.want {
			t.Errorf("%v: %q, want just %q", c.args, res.Text, c.want)
		}
	}
	if res := r.run(read{}, "path", "gif"); len(res.Images) != 1 {
		t.Error("no picture")
	}
	big := strings.Repeat("0123456789\n", 2<<20)
	r.write("big", big)
	r.want(r.run(read{}, "path", "big", "offset", 2000000, "limit", 1), false, "0123456789\n[lines 2000000-2000000 of a file of 22.0 MiB")
	r.want(r.run(edit{}, "path", "big", "old", "0", "new", "1"), true, "22.0 MiB, too much")
}

// TestBytesStay: what an edit does not touch stays as it was, byte for byte.
func TestBytesStay(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new, want string }{
		"CRLF":            {"a\r\nb\r\nc\r\n", "a\nb", "a\nx\ny", "a\r\nx\r\ny\r\nc\r\n"},
		"CRLF in the old": {"a\nb\n", "a\r\nb", "a\r\nx", "a\nx\n"},
		"mixed":           {"a\r\nb\nc\n", "a\nb", "x\ny", "x\r\ny\r\nc\n"},
		"BOM":             {"\xef\xbb\xbfa\n", "a", "b", "\xef\xbb\xbfb\n"},
		"no end":          {"a\nb", "b", "c", "a\nc"},
		"Latin-1":         {"caf\xe9 a\n", "a\n", "b\n", "caf\xe9 b\n"},
		"Latin-1 new":     {"caf\xe9 a\n", "é a", "ü a", "caf\xfc a\n"},
		"torn":            {"größe \xff a\n", " a", " b", "größe \xff b\n"},
		"UTF-16":          {"\xff\xfea\x00\r\x00\n\x00", "a", "ä", "\xff\xfe\xe4\x00\r\x00\n\x00"},
		"blanks at ends":  {"a  \nb\t\nc\n", "a\nb", "a\nx", "a  \nx\nc\n"},
		"indentation":     {"func f() {\n\tif x {\n\t\ta()\n\t}\n}\n", "if x {\n    a()\n}", "if x {\n    b()\n    if y {\n        c()\n    }\n}", "func f() {\n\tif x {\n\t\tb()\n\t\tif y {\n\t\t\tc()\n\t\t}\n\t}\n}\n"},
		"deeper":          {"class A:\n    def f(self):\n        return 1\n", "def f(self):\n    return 1", "def f(self):\n    x = 2\n    return x", "class A:\n    def f(self):\n        x = 2\n        return x\n"},
		"outer":           {"  a\n  b\n", "    a\n    b", "    a\n  c\n    b", "  a\nc\n  b\n"},
		"deleted":         {"a\nb \nc\n", "b\n", "", "a\nc\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t, map[string]string{"f": c.file})
			res := r.run(edit{}, "path", "f", "old", c.old, "new", c.new)
			if got := r.read("f"); got != c.want || res.IsError || res.Diff == "" || len(res.Changed) != 1 {
				t.Errorf("%q, want %q: %+v", got, c.want, res)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	file := "package a\n\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n\nx\nx\ny \ny\t\n"
	for _, c := range []struct{ old, new, want string }{
		{"x", "z", "old is in f 2 times (lines 7, 8)"},
		{"func Sum(a, c int) int {\n\treturn a + c", "x", "The nearest is in lines 3-4:\nfunc Sum(a, b int) int {\n\treturn a + b"},
		{"nothing like it at all", "z", "read the file"},
		{"x", "x", "the same"},
		{"", "x", "old is empty"},
		{"return a - b", "return a + b", "is it done already?"},
		{"y\ny", "y \ny", "old and new are the same"},
	} {
		r := newRoom(t, map[string]string{"f": file})
		res := r.run(edit{}, "path", "f", "old", c.old, "new", c.new)
		if c.old != "y\ny" {
			r.want(res, true, c.want)
		}
		if r.read("f") != file && c.old != "y\ny" {
			t.Errorf("%q: it was changed: %q", c.old, r.read("f"))
		}
	}
	r := newRoom(t, map[string]string{"f": file, "latin": "\xe9 a\n", "bin": "\x00"})
	r.want(r.run(edit{}, "path", "f", "old", "x", "new", "z", "all", true), false, "edited f: lines 7, 8")
	r.want(r.run(edit{}, "path", "f", "old_string", "z\nz", "new_string", "q", "replace_all", "true"), false, "lines 7-8")
	r.want(r.run(edit{}, "path", "latin", "old", "a", "new", "→"), true, "Latin-1, which has no '→'")
	r.want(r.run(edit{}, "path", "bin", "old", "a", "new", "b"), true, "binary")
	r.want(r.run(edit{}, "path", "none", "old", "a", "new", "b"), true, "no file none")
}

// TestWrite replaces nothing that the model does not know.
func TestWrite(t *testing.T) {
	r := newRoom(t, map[string]string{"a": "1\n2\n", "crlf": "a\r\n", "noend": "a", "long": strings.Repeat("x\n", 2500), "run.sh": "x\n", "empty": ""})
	w := func(path, content string) Result { return r.run(write{}, "path", path, "content", content) }
	r.want(w("new/dir/f", "x"), false, "created new/dir/f: 1 line")
	r.want(w("new/dir/f", "y"), false, "written")
	r.want(w("a", "x\n"), true, "you have not read it")
	r.run(read{}, "path", "a", "limit", 1)
	r.want(w("a", "x\n"), true, "only a part")
	r.run(read{}, "path", "a", "offset", 2)
	r.want(w("a", "x"), false, "written a: 1 line")
	r.want(w("a", "x\n"), true, "just that text already")
	r.write("a", "theirs\n")
	r.want(w("a", "mine\n"), true, "has changed since you read it")
	r.want(r.run(edit{}, "path", "a", "old", "theirs", "new", "ours"), false, "the other changes are kept")
	r.want(w("a", "mine\n"), true, "read it")
	r.run(read{}, "path", "long")
	r.want(w("long", "x\n"), true, "only a part")
	for _, name := range []string{"crlf", "noend"} {
		r.run(read{}, "path", name)
		r.want(w(name, "b\nc\n"), false, "written")
	}
	if r.read("crlf") != "b\r\nc\r\n" || r.read("noend") != "b\nc" || r.read("a") != "ours\n" || r.read("new/dir/f") != "y" {
		t.Errorf("%q %q %q", r.read("crlf"), r.read("noend"), r.read("a"))
	}
	r.want(w("noend", "b\nc\n"), false, "written") // the newline is what is meant
	if r.read("noend") != "b\nc\n" {
		t.Errorf("%q", r.read("noend"))
	}
	r.want(w("noend", "b\nc"), true, "just that text already") // a newline that is left out is not
	r.want(w("empty", "x\n"), false, "written")
	r.want(w("new", "x"), true, "folder")
	r.want(w("x/", "x"), true, "folder")
	r.want(w("a/b", "x"), true, "not a directory")

	if err := os.Chmod(r.path("run.sh"), 0o751); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run.sh", r.path("link")); err != nil {
		t.Fatal(err)
	}
	r.want(r.run(edit{}, "path", "link", "old", "x", "new", "y"), false, "edited")
	st, err := os.Lstat(r.path("link"))
	if st2, err2 := os.Stat(r.path("run.sh")); err != nil || err2 != nil || st.Mode()&os.ModeSymlink == 0 || st2.Mode().Perm() != 0o751 || r.read("run.sh") != "y\n" {
		t.Errorf("%v %v %q", st.Mode(), st2.Mode(), r.read("run.sh"))
	}
	if left, _ := filepath.Glob(r.path(".*.new")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestLinksThatMove: a path that leads elsewhere when it is opened than when it was decided about is refused, and nothing
// in the workspace leads out of it.
func TestLinksThatMove(t *testing.T) {
	r := newRoom(t, map[string]string{"d/f": "mine\n"})
	secret := filepath.Join(r.env.Home, "f")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool Tool
		args string
	}{{read{}, `{"path":"d/f"}`}, {write{}, `{"path":"d/f","content":"x"}`}, {edit{}, `{"path":"d/f","old":"e","new":"x"}`}, {grep{own: true}, `{"pattern":".","path":"d"}`}} {
		_ = os.RemoveAll(r.path("d"))
		r.write("d/f", "mine\n")
		e, err := c.tool.Effect(r.env, json.RawMessage(c.args))
		if err != nil || len(e.Reads)+len(e.Writes) != 1 {
			t.Fatal(e, err)
		}
		_ = os.RemoveAll(r.path("d"))
		if err := os.Symlink(r.env.Home, r.path("d")); err != nil {
			t.Fatal(err)
		}
		res, err := c.tool.Run(t.Context(), r.env, json.RawMessage(c.args), nil)
		if b, _ := os.ReadFile(secret); err != nil || !res.IsError || strings.Contains(res.Text, "secret") || string(b) != "secret\n" {
			t.Errorf("%s: %v %+v, the file is %q", c.args, err, res, b)
		}
		if e, _ := c.tool.Effect(r.env, json.RawMessage(c.args)); !strings.HasPrefix(fmt.Sprint(e.Reads, e.Writes), "["+r.env.Home) && !strings.Contains(fmt.Sprint(e.Writes), r.env.Home) {
			t.Errorf("%s: the effect is %+v", c.args, e)
		}
	}
}

// TestSearch: ripgrep and the search that needs no program find the same.
func TestSearch(t *testing.T) {
	many := strings.Repeat("needle\n", 150)
	r := newRoom(t, map[string]string{
		"a.go": "package a\n\nfunc Needle() {}\n", "b.txt": "needle 12\r\nhay\r\n", "sub/c.go": "// needle ä\n", "sub/.gitignore": "ign*\n!ignot\n", "sub/ign": "needle",
		"sub/ignot": "needle", ".gitignore": "/out\n*.log\n", "out/x": "needle", "x.log": "needle", ".env": "needle=1", ".hidden": "needle", "bin": "needle\x00",
		"latin": "needle \xe9\n", "many/m": many, "wide": strings.Repeat("x", 1000) + "needle\n", ".git/x": "needle", "utf16": "\xff\xfen\x00e\x00e\x00d\x00l\x00e\x00\n\x00",
	})
	for _, own := range []bool{true, false} {
		g := grep{own: own}
		for _, c := range []struct {
			args  []any
			fails bool
			want  string
		}{
			{[]any{"pattern", "needle", "glob", "*.go"}, false, "sub/c.go:1: // needle ä"},
			{[]any{"pattern", "(?i)needle", "glob", "*.go"}, false, "a.go:3: func Needle() {}\nsub/c.go:1: // needle ä"},
			{[]any{"pattern", "needle", "path", "sub"}, false, "sub/c.go:1: // needle ä\nsub/ignot:1: needle"},
			{[]any{"pattern", "needle", "path", "b.txt"}, false, "b.txt:1: needle 12"},
			{[]any{"pattern", `needle \d+$`}, false, "b.txt:1: needle 12"},
			{[]any{"pattern", `^hay$`}, false, "b.txt:2: hay"},
			{[]any{"pattern", `\bneedle\b`, "glob", "sub/*"}, false, "sub/c.go:1: // needle ä\nsub/ignot:1: needle"},
			{[]any{"pattern", "needle é"}, false, "latin:1: needle é"},
			{[]any{"pattern", "nothing such"}, false, "nothing found"},
			{[]any{"pattern", "needle", "path", "many"}, false, "[100 of 150 lines found in 1 file; search for less]"},
			{[]any{"pattern", "("}, true, "cannot be read"},
			{[]any{"pattern", "x", "path", "no"}, true, "there is no file no"},
			{[]any{"pattern", "needle=1", "path", ".env"}, false, ".env:1: needle=1"},
		} {
			res := r.run(g, c.args...)
			text := strings.TrimSuffix(res.Text, "\n[not searched, may hold secrets: .env]")
			if own || c.want != "latin:1: needle é" {
				if res.IsError != c.fails || text != c.want && !(strings.HasPrefix(c.want, "[") || c.fails) || !strings.Contains(text, c.want) {
					t.Errorf("own %v, %v: %v %q, want %q", own, c.args, res.IsError, res.Text, c.want)
				}
			}
		}
	}
	r.write("many/m", "needle\n")
	a, b := r.run(grep{own: true}, "pattern", "needle"), r.run(grep{}, "pattern", "needle")
	if a.Text != b.Text || !strings.Contains(a.Text, ".hidden:1") || !strings.Contains(a.Text, "not searched, may hold secrets: .env") ||
		strings.Contains(a.Text, "out/x") || strings.Contains(a.Text, ".git/") {
		t.Errorf("by itself:\n%s\nby ripgrep:\n%s", a.Text, b.Text)
	}
}

func TestList(t *testing.T) {
	r := newRoom(t, map[string]string{"a.go": "", "d/b.go": "", "d/e/c.go": "", ".gitignore": "ign\n", "ign": "", ".git/x": "", "d/t.txt": ""})
	if err := os.Symlink("/etc", r.path("z")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []any
		fails bool
		want  string
	}{
		{nil, false, ".gitignore\na.go\nd/\nz -> /etc"},
		{[]any{"path", "d"}, false, "d/b.go\nd/e/\nd/t.txt"},
		{[]any{"glob", "*.go"}, false, "a.go\nd/b.go\nd/e/c.go"},
		{[]any{"path", "d", "glob", "e/*.go"}, false, "d/e/c.go"},
		{[]any{"path", "**/*.txt"}, false, "d/t.txt"},
		{[]any{"glob", "*.py"}, false, "no file has a name like *.py"},
		{[]any{"path", "a.go"}, false, "a.go (a file of 0 bytes)"},
		{[]any{"path", "no"}, true, "there is no file no"},
		{[]any{"glob", "{"}, true, "without its }"},
	} {
		r.want(r.run(listing{}, c.args...), c.fails, c.want)
	}
	for i := range 300 {
		r.write(fmt.Sprintf("many/f%03d", i), "")
	}
	r.want(r.run(listing{}, "path", "many"), false, "[200 of 300; give a glob or a folder]")
}
