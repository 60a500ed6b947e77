package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// An Entry is a file or folder that a walk found.
type Entry struct {
	Path string // relative to the workspace, with slashes
	fs.DirEntry
}

// Options of a walk.
type Options struct {
	All   bool // what is ignored, too
	Depth int  // folders deep; 0: no bound
	Max   int  // entries; 0: 200,000
}

const maxEntries = 200_000

// SkipDir makes a walk leave out what is in a folder.
var SkipDir = fs.SkipDir

// ErrMany is returned by Walk where there are more entries than it may find.
var ErrMany = errors.New("there are too many files")

// Walk hands out what is in a folder of a workspace and below it, in the order of the names, files and folders of Git
// itself left out, and those that its ignore files name. Links are entries; they are not followed. A folder that cannot
// be read is left out. fn's error ends the walk, but SkipDir.
func Walk(ctx context.Context, root *os.Root, dir string, o Options, fn func(Entry) error) error {
	if o.Max == 0 {
		o.Max = maxEntries
	}
	dir = path.Clean(dir)
	w := &walk{ctx: ctx, root: root, o: o, fn: fn}
	var rules []ignoreRule
	if !o.All {
		rules = w.rules(nil, ".")
		at := ""
		if dir != "." {
			for part := range strings.SplitSeq(dir, "/") { // the folder's own files are read by the walk
				if at != "" {
					rules = w.rules(rules, at)
				}
				at = path.Join(at, part)
			}
		}
	}
	return w.walk(dir, rules, 1)
}

type walk struct {
	ctx  context.Context
	root *os.Root
	o    Options
	fn   func(Entry) error
	n    int
}

// rules returns the rules with those of a folder's own files behind them.
func (w *walk) rules(rules []ignoreRule, dir string) []ignoreRule {
	names := []string{".gitignore"}
	if dir == "." {
		names = []string{".git/info/exclude", ".gitignore"}
	}
	rel := dir
	if dir == "." {
		rel = ""
	}
	out := slices.Clip(rules)
	for _, name := range names {
		if text, err := w.small(path.Join(dir, name)); err == nil {
			out = append(out, parseIgnore(rel, text)...)
		}
	}
	return out
}

// small reads a small regular file.
func (w *walk) small(name string) (string, error) {
	st, err := w.root.Stat(name)
	if err != nil || !st.Mode().IsRegular() {
		return "", errors.Join(err, fs.ErrInvalid)
	}
	f, err := w.root.OpenFile(name, os.O_RDONLY|NonBlock, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	return string(b), err
}

func (w *walk) walk(dir string, rules []ignoreRule, deep int) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	f, err := w.root.Open(dir)
	if err != nil {
		if deep == 1 {
			return err
		}
		return nil
	}
	entries, err := f.ReadDir(-1)
	_ = f.Close()
	if err != nil && deep == 1 {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if !w.o.All && dir != "." {
		rules = w.rules(rules, dir)
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		rel := path.Join(dir, e.Name())
		if !w.o.All && ignored(rules, rel, e.IsDir()) {
			continue
		}
		if w.n++; w.n > w.o.Max {
			return ErrMany
		}
		switch err := w.fn(Entry{rel, e}); {
		case err == SkipDir && e.IsDir():
			continue
		case err == SkipDir:
		case err != nil:
			return err
		}
		if e.IsDir() && (w.o.Depth == 0 || deep < w.o.Depth) {
			if err := w.walk(rel, rules, deep+1); err != nil {
				return err
			}
		}
	}
	return nil
}
