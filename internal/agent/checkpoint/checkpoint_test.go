package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A world is a workspace with checkpoints.
type world struct {
	t    *testing.T
	o    Options
	c    *Checkpoints
	ids  []string // of turns that are not undone
	redo []string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, o: Options{Root: t.TempDir(), Dir: filepath.Join(t.TempDir(), "cp"), MaxFile: 1000}}
	w.reopen()
	return w
}

func (w *world) reopen() {
	w.t.Helper()
	var err error
	if w.c, err = Open(w.o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.o.Root, name) }

// do changes the workspace: "name=text" writes, "name->to" links, "name/" makes a folder, "-name" removes, "name+x"
// makes executable.
func (w *world) do(changes ...string) {
	w.t.Helper()
	for _, c := range changes {
		var err error
		if name, text, ok := strings.Cut(c, "="); ok {
			_ = os.MkdirAll(filepath.Dir(w.path(name)), 0o755)
			err = os.WriteFile(w.path(name), []byte(text), 0o644)
		} else if name, to, ok := strings.Cut(c, "->"); ok {
			err = os.Symlink(to, w.path(name))
		} else if name, ok := strings.CutPrefix(c, "-"); ok {
			err = os.RemoveAll(w.path(name))
		} else if name, ok := strings.CutSuffix(c, "+x"); ok {
			err = os.Chmod(w.path(name), 0o755)
		} else {
			err = os.MkdirAll(w.path(c), 0o755)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) take() {
	w.t.Helper()
	id, err := w.c.Take(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.ids, w.redo = append(w.ids, id), nil
}

// back undoes the last turn, as the loop does it.
func (w *world) back(force bool) (Change, error) {
	w.t.Helper()
	after, err := w.c.Take(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	n := len(w.ids) - 1
	ch, err := w.c.RestoreAll(w.t.Context(), w.ids[n], force)
	if err == nil {
		w.redo, w.ids = append(w.redo, after+" "+w.ids[n]), w.ids[:n]
	}
	return ch, err
}

// forth does it again.
func (w *world) forth() (Change, error) {
	w.t.Helper()
	n := len(w.redo) - 1
	after, id, _ := strings.Cut(w.redo[n], " ")
	ch, err := w.c.RestoreAll(w.t.Context(), after, false)
	if err == nil {
		w.redo, w.ids = w.redo[:n], append(w.ids, id)
	}
	return ch, err
}

// turn makes changes as an agent does.
func (w *world) turn(changes ...string) {
	w.t.Helper()
	w.take()
	w.do(changes...)
	if err := w.c.End(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// state is all that is in the workspace.
func (w *world) state() string {
	var out []string
	_ = filepath.WalkDir(w.o.Root, func(p string, d fs.DirEntry, _ error) error {
		rel, _ := filepath.Rel(w.o.Root, p)
		st, _ := d.Info()
		switch {
		case rel == ".":
		case d.IsDir():
			out = append(out, rel+"/")
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			out = append(out, rel+"->"+to)
		default:
			b, _ := os.ReadFile(p)
			out = append(out, fmt.Sprintf("%s=%.20s %o", rel, b, st.Mode().Perm()))
		}
		return nil
	})
	return strings.Join(out, "\n")
}

func (w *world) undo(want ...string) {
	w.t.Helper()
	ch, err := w.back(false)
	if err != nil || !slices.Equal(ch.Files, want) {
		w.t.Errorf("undone: %q %v, want %q", ch.Files, err, want)
	}
}

// TestUndoRedo: turns are undone and done again, whatever they did, also by another process.
func TestUndoRedo(t *testing.T) {
	w := newWorld(t)
	w.do("a=1", "d/e/f=deep", "d/g=g", "l->a", "run=#!", "keep=k", "empty/", "out->/etc", "x=file", "y/z=in folder")
	states := []string{w.state()}
	turns := [][]string{
		{"a=2", "new/dir/file=n", "-l", "l->d/g"},
		{"-d", "run+x", "-empty"},
		{"-x", "x/in=now a folder", "-y", "y=now a file", "-out", "out=plain"},
		{},
	}
	for _, changes := range turns {
		w.turn(changes...)
		states = append(states, w.state())
	}
	for range 2 {
		w.reopen()
		for i := len(turns) - 1; i >= 0; i-- {
			if _, err := w.back(false); err != nil || w.state() != states[i] {
				t.Fatalf("turn %d undone: %v\n%s\nwant\n%s", i+1, err, w.state(), states[i])
			}
		}
		for i := range turns {
			if _, err := w.forth(); err != nil || w.state() != states[i+1] {
				t.Fatalf("turn %d done again: %v\n%s\nwant\n%s", i+1, err, w.state(), states[i+1])
			}
		}
	}
	w.undo() // a turn that changed nothing
	w.turn("a=3")
	w.undo("a")
}

// TestNeverOverLaterEdits: a file that was changed after the turn is named, and nothing is done; other changes stay.
func TestNeverOverLaterEdits(t *testing.T) {
	for name, c := range map[string]struct{ before, turn, hand, conflicts []string }{
		"edited":             {[]string{"a=1", "b=1"}, []string{"a=2", "b=2"}, []string{"a=mine"}, []string{"a"}},
		"removed":            {[]string{"a=1"}, []string{"a=2"}, []string{"-a"}, []string{"a"}},
		"made anew":          {[]string{"a=1"}, []string{"-a"}, []string{"a=mine"}, []string{"a"}},
		"new file edited":    {nil, []string{"n=1"}, []string{"n=mine"}, []string{"n"}},
		"made a link":        {[]string{"a=1", "b=1"}, []string{"a=2"}, []string{"-a", "a->b"}, []string{"a"}},
		"made executable":    {[]string{"a=1"}, []string{"a=2"}, []string{"a+x"}, []string{"a"}},
		"folder made a file": {[]string{"d/a=1"}, []string{"-d"}, []string{"d=mine"}, []string{"d"}},
		"folder in the way":  {[]string{"a=1"}, []string{"-a"}, []string{"a/x=mine"}, []string{"a"}},
		"another file":       {[]string{"a=1"}, []string{"a=2"}, []string{"b=mine", "d/c=mine"}, nil},
		"in its folder":      {nil, []string{"d/a=1"}, []string{"d/b=mine"}, nil},
		"back already":       {[]string{"a=1"}, []string{"a=2"}, []string{"a=1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.do(c.before...)
			w.turn(c.turn...)
			w.do(c.hand...)
			before := w.state()
			_, err := w.back(false)
			var conflict *ConflictError
			if errors.As(err, &conflict); (conflict != nil) != (c.conflicts != nil) || conflict != nil && !slices.Equal(conflict.Files, c.conflicts) {
				t.Fatalf("%v, want conflicts at %q", err, c.conflicts)
			}
			if conflict != nil {
				if w.state() != before {
					t.Errorf("it was changed:\n%s\nwas\n%s", w.state(), before)
				}
				if !strings.Contains(err.Error(), c.conflicts[0]) {
					t.Error(err)
				}
				return
			}
			for _, h := range c.hand {
				if name, text, _ := strings.Cut(h, "="); name != "a" {
					if b, _ := os.ReadFile(w.path(name)); string(b) != text {
						t.Errorf("%s is %q", name, b)
					}
				}
			}
		})
	}
	w := newWorld(t)
	w.do("a=1")
	w.turn("a=2")
	w.do("a=mine")
	if ch, err := w.back(true); err != nil || fmt.Sprint(ch.Files) != "[a]" || w.state() != "a=1 644" {
		t.Errorf("forced: %+v %v %s", ch, err, w.state())
	}
}

// TestCutShort: what a turn that was killed has changed is undone only when that is wanted, and can be done again.
func TestCutShort(t *testing.T) {
	w := newWorld(t)
	w.do("a=1", "b=1")
	w.take()
	w.do("a=2", "n=1")
	w.reopen()
	var conflict *ConflictError
	if _, err := w.back(false); !errors.As(err, &conflict) || !conflict.Cut || fmt.Sprint(conflict.Files) != "[a n]" {
		t.Fatal(err)
	}
	if _, err := w.back(true); err != nil || w.state() != "a=1 644\nb=1 644" {
		t.Errorf("%v %s", err, w.state())
	}
	if _, err := w.forth(); err != nil || !strings.Contains(w.state(), "a=2") {
		t.Errorf("%v %s", err, w.state())
	}
}

// TestLimits: what is ignored is not touched, what is too large is named, and what is too much is an error.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	big := strings.Repeat("x", 2000)
	w.do(".gitignore=out/\n", "out/x=1", "big="+big, "a=1", ".git/config=c")
	w.turn("out/x=2", "big="+big+"y", "a=2", ".git/config=d", "big2="+big)
	if got := w.c.NotKept(); fmt.Sprint(got) != "[big big2]" {
		t.Errorf("not kept: %q", got)
	}
	ch, err := w.back(false)
	if err != nil || fmt.Sprint(ch.Files) != "[a]" || fmt.Sprint(ch.Lost) != "[big big2]" {
		t.Errorf("%+v %v", ch, err)
	}
	for name, want := range map[string]string{"out/x": "2", "a": "1", ".git/config": "d"} {
		if b, _ := os.ReadFile(w.path(name)); string(b) != want {
			t.Errorf("%s is %q", name, b)
		}
	}
	w.o.MaxFiles = 2
	w.reopen()
	if _, err := w.c.Take(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 2 files") {
		t.Error(err)
	}
	w.o.MaxFiles, w.o.MaxBytes = 0, 1
	w.do("a=quite another")
	w.reopen()
	if _, err := w.c.Take(t.Context()); err == nil || !strings.Contains(err.Error(), "would take more than") {
		t.Error(err)
	}
}

// TestDamage of what is kept is noticed before anything is changed.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	w.do("a=1")
	w.turn("a=2")
	blobs, _ := filepath.Glob(filepath.Join(w.o.Dir, "blobs", "*", "*"))
	for _, b := range blobs {
		_ = os.Remove(b)
	}
	if _, err := w.back(false); err == nil || w.state() != "a=2 644" {
		t.Errorf("%v %s", err, w.state())
	}
	if err := os.WriteFile(filepath.Join(w.o.Dir, "turns.json"), []byte(`[{"id":"1","before":"../../x"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(w.o); err == nil {
		t.Error("a list of turns that leads elsewhere was taken")
	}
}

// TestLinksLeadNowhere: an undo writes through no link that has taken a folder's place.
func TestLinksLeadNowhere(t *testing.T) {
	w := newWorld(t)
	outside := t.TempDir()
	w.do("d/a=1")
	w.turn("-d", "d->"+outside)
	w.undo("d", "d/a")
	w.turn("d/a=2")
	w.do("-d", "d->"+outside)
	if _, err := w.back(true); err == nil {
		if _, err := os.Stat(filepath.Join(outside, "a")); err == nil {
			t.Error("it wrote outside")
		}
	}
	if list, _ := os.ReadDir(outside); len(list) > 0 {
		t.Errorf("%v", list)
	}
}

// TestSeveralTurns are undone at once, unless somebody else's change stands between them.
func TestSeveralTurns(t *testing.T) {
	w := newWorld(t)
	w.do("a=1", "b=1")
	before := w.state()
	w.turn("a=2", "c=1")
	w.turn("a=3", "b=2")
	after := w.state()
	point, err := w.c.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if files, err := w.c.Restore(t.Context(), "1"); err != nil || fmt.Sprint(files) != "[a b c]" || w.state() != before {
		t.Errorf("%q %v %s", files, err, w.state())
	}
	if files, err := w.c.Restore(t.Context(), point); err != nil || fmt.Sprint(files) != "[a b c]" || w.state() != after {
		t.Errorf("%q %v %s", files, err, w.state())
	}
	w = newWorld(t)
	w.do("a=1")
	w.turn("a=2")
	w.do("a=mine")
	w.turn("a=3")
	var conflict *ConflictError
	if _, err := w.c.Restore(t.Context(), "1"); !errors.As(err, &conflict) || fmt.Sprint(conflict.Files) != "[a]" || w.state() != "a=3 644" {
		t.Errorf("%v %s", err, w.state())
	}
	if _, err := w.c.Restore(t.Context(), "2"); err != nil || w.state() != "a=mine 644" {
		t.Errorf("%v %s", err, w.state())
	}
	if _, err := w.c.Restore(t.Context(), "1"); !errors.As(err, &conflict) || w.state() != "a=mine 644" {
		t.Errorf("%v %s", err, w.state())
	}
	if _, err := w.c.Restore(t.Context(), "9"); err == nil {
		t.Error("a checkpoint that is not there")
	}
}
