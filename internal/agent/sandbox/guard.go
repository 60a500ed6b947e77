package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A guard remembers protected files and puts them back. The kernel keeps a command from most changes of them where it has
// namespaces; what remains is that a folder above is renamed, or that a path comes into being that was not there.
type guard struct {
	paths []string
	was   map[string]entry
}

type entry struct {
	mode fs.FileMode
	data []byte // of a regular file
	link string
}

// What one policy may protect: git's hooks and configuration files, not trees of sources.
const (
	guardFiles = 4096
	guardBytes = 32 << 20
)

func newGuard(paths []string) (*guard, error) {
	g := &guard{paths: paths}
	var err error
	g.was, err = g.read()
	return g, err
}

// read returns what is at the paths now.
func (g *guard) read() (map[string]entry, error) {
	now, total := map[string]entry{}, int64(0)
	for _, root := range g.paths {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			}
			fi, err := d.Info()
			if err != nil {
				return err
			}
			e := entry{mode: fi.Mode()}
			switch {
			case fi.Mode().IsRegular():
				if total += fi.Size(); total > guardBytes {
					return fmt.Errorf("more than %d MiB", guardBytes>>20)
				}
				if e.data, err = os.ReadFile(path); err != nil {
					return err
				}
			case fi.Mode()&fs.ModeSymlink != 0:
				if e.link, err = os.Readlink(path); err != nil {
					return err
				}
			}
			if now[path] = e; len(now) > guardFiles {
				return fmt.Errorf("more than %d files", guardFiles)
			}
			return nil
		})
		if err != nil {
			return now, fmt.Errorf("sandbox: protecting %s: %w", root, err)
		}
	}
	return now, nil
}

func (e entry) equal(o entry) bool {
	return e.mode == o.mode && e.link == o.link && bytes.Equal(e.data, o.data)
}

// restore puts everything back that is not as it was, and returns the paths.
func (g *guard) restore() ([]string, error) {
	now, err := g.read()
	if err != nil { // what cannot be read, or has become too much, goes; what was there is put back
		for _, p := range g.paths {
			_ = os.RemoveAll(p)
		}
		now = map[string]entry{}
	}
	var changed []string
	for path := range now {
		if _, ok := g.was[path]; !ok {
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	var errs []error
	for _, path := range slices.Backward(changed) { // what is in a folder first
		errs = append(errs, os.RemoveAll(path))
	}
	var old []string
	for path := range g.was {
		old = append(old, path)
	}
	slices.Sort(old)
	for _, path := range old {
		e := g.was[path]
		n, there := now[path]
		if there && n.equal(e) {
			continue
		}
		changed = append(changed, path)
		if there && n.mode.Type() != e.mode.Type() {
			errs = append(errs, os.RemoveAll(path))
		}
		errs = append(errs, e.write(path))
	}
	if err := errors.Join(errs...); err != nil {
		return changed, fmt.Errorf("sandbox: what a command changed cannot be put back: %w", err)
	}
	return changed, nil
}

func (e entry) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch {
	case e.mode.IsDir():
		if err := os.Mkdir(path, e.mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Chmod(path, e.mode.Perm())
	case e.mode&fs.ModeSymlink != 0:
		_ = os.Remove(path)
		return os.Symlink(e.link, path)
	case e.mode.IsRegular():
		_ = os.Remove(path) // it may be a link to elsewhere, or have other names
		if err := os.WriteFile(path, e.data, e.mode.Perm()); err != nil {
			return err
		}
		return os.Chmod(path, e.mode.Perm())
	}
	return nil
}
