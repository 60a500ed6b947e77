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

// A guard remembers protected files and puts them back. The kernel keeps a command from most changes of them where it
// has namespaces; what remains is that a folder above is renamed, or that a path comes into being that was not there.
//
// It works outside of the sandbox, when no process of the command is left. So a link that the command has made of a
// folder above must not lead it to another place, where it would remove and write what the command could not.
type guard struct {
	paths []string
	was   map[string]entry
	links map[string]string // where the links above the paths led
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
	g := &guard{paths: paths, links: map[string]string{}}
	for _, path := range paths {
		for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if to, err := os.Readlink(dir); err == nil {
				g.links[dir] = to
			}
		}
	}
	var err error
	g.was, err = g.read()
	return g, err
}

// straighten makes the folders above the paths lead where they led: a link that was not there is removed, one that was
// is put back. It returns these links.
func (g *guard) straighten() (changed []string, err error) {
	for _, path := range g.paths {
		var above []string // the outermost last
		for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			above = append(above, dir)
		}
		for _, dir := range slices.Backward(above) {
			to, err := os.Readlink(dir)
			was, linked := g.links[dir]
			if err != nil || linked && to == was { // a folder, nothing, or the link that was there
				continue
			}
			changed = append(changed, dir)
			if err := os.Remove(dir); err != nil {
				return changed, err
			}
			if !linked {
				break // nothing is below
			}
			if err := os.Symlink(was, dir); err != nil {
				return changed, err
			}
		}
	}
	return changed, nil
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
	changed, err := g.straighten()
	if err != nil {
		return changed, fmt.Errorf(
			"sandbox: a link that a command made cannot be removed, so nothing behind it was put back: %w",
			err,
		)
	}
	now, err := g.read()
	if err != nil { // what cannot be read, or has become too much, goes; what was there is put back
		for _, p := range g.paths {
			_ = os.RemoveAll(p)
		}
		now = map[string]entry{}
	}
	var added []string
	for path := range now {
		if _, ok := g.was[path]; !ok {
			added = append(added, path)
		}
	}
	slices.Sort(added)
	var errs []error
	for _, path := range slices.Backward(added) { // what is in a folder first
		errs = append(errs, os.RemoveAll(path))
	}
	changed = append(changed, added...)
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
