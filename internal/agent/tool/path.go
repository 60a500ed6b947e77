package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/files"
	"github.com/baleenrun/baleen/internal/nearest"
)

// A place is a path of a call. What is in the workspace is opened below its root, so that no link made meanwhile leads
// out of it; what is outside must be where it was when it was decided about.
type place struct {
	shown string // relative to the workspace, or absolute
	real  string // absolute, links followed
	rel   string // real relative to the workspace, with slashes; "": it is outside
}

// lexical makes a call's path absolute: relative ones belong to the workspace, ~ is the user's home.
func (e *Env) lexical(p string) (string, error) {
	switch {
	case p == "":
		return "", errors.New("the path is empty")
	case strings.IndexByte(p, 0) >= 0:
		return "", errors.New("the path has a zero byte")
	case p == "~" || strings.HasPrefix(p, "~/"):
		return filepath.Join(e.Home, p[1:]), nil
	case filepath.IsAbs(p):
		return filepath.Clean(p), nil
	}
	return filepath.Join(e.Root, filepath.FromSlash(p)), nil
}

// resolve follows the links of a path as far as it is there.
func resolve(p string) (string, error) {
	rest := ""
	for range 255 {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if to, err := os.Readlink(p); err == nil { // it leads to what is not there yet
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(p), to)
			}
			p = to
			continue
		}
		if p == filepath.Dir(p) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = filepath.Dir(p)
	}
	return "", errors.New("too many links")
}

// agree finds where a path leads, for a decision about it.
func (e *Env) agree(p string) (place, error) {
	lex, err := e.lexical(p)
	if err != nil {
		return place{}, err
	}
	at, err := e.place(lex)
	if err != nil {
		return place{}, err
	}
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	if e.state.agreed == nil {
		e.state.agreed = map[string]string{}
	}
	e.state.agreed[lex] = at.real
	return at, nil
}

// find returns where a path leads, which must be where it led when it was decided about.
func (e *Env) find(p string) (place, error) {
	lex, err := e.lexical(p)
	if err != nil {
		return place{}, err
	}
	at, err := e.place(lex)
	if err != nil {
		return place{}, err
	}
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	if was, ok := e.state.agreed[lex]; ok && was != at.real {
		return place{}, fmt.Errorf("%s leads to another place now than when it was allowed: %s", p, at.real)
	}
	return at, nil
}

func (e *Env) place(lex string) (place, error) {
	real, err := resolve(lex)
	if err != nil {
		return place{}, fmt.Errorf("%s: %w", e.short(lex), plain(err))
	}
	at := place{shown: e.short(lex), real: real}
	if rel, err := filepath.Rel(e.Root, real); err == nil && filepath.IsLocal(rel) {
		at.rel = filepath.ToSlash(rel)
	}
	return at, nil
}

// short is a path as it is shown.
func (e *Env) short(p string) string {
	if rel, err := filepath.Rel(e.Root, p); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return p
}

// plain is an error without the path that is named already.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// within opens the workspace. Its methods follow no link out of it.
func (e *Env) within() (*os.Root, error) { return os.OpenRoot(e.Root) }

func (e *Env) stat(at place) (fs.FileInfo, error) {
	if at.rel == "" {
		return os.Stat(at.real)
	}
	r, err := e.within()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Stat(at.rel)
}

// open opens a regular file to read.
func (e *Env) open(at place) (*os.File, fs.FileInfo, error) {
	st, err := e.stat(at)
	if err != nil {
		return nil, nil, e.notThere(at, err)
	}
	if !st.Mode().IsRegular() {
		if st.IsDir() {
			return nil, nil, fmt.Errorf("%s is a folder", at.shown)
		}
		return nil, nil, fmt.Errorf("%s is no regular file", at.shown)
	}
	var f *os.File
	if at.rel == "" {
		f, err = os.OpenFile(at.real, os.O_RDONLY|files.NonBlock, 0)
	} else {
		var r *os.Root
		if r, err = e.within(); err == nil {
			f, err = r.OpenFile(at.rel, os.O_RDONLY|files.NonBlock, 0)
			_ = r.Close()
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at.shown, plain(err))
	}
	if st, err = f.Stat(); err != nil || !st.Mode().IsRegular() {
		_ = f.Close()
		return nil, nil, fmt.Errorf("%s is no regular file any more", at.shown)
	}
	return f, st, nil
}

// notThere says that a file is not there, and what there is of that name.
func (e *Env) notThere(at place, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", at.shown, plain(err))
	}
	r, rerr := e.within()
	if rerr != nil || at.rel == "" {
		return fmt.Errorf("there is no file %s", at.shown)
	}
	defer r.Close()
	base := path.Base(at.rel)
	var same, close []string
	_ = files.Walk(context.Background(), r, ".", files.Options{Max: 20_000}, func(f files.Entry) error {
		switch {
		case f.IsDir():
		case f.Name() == base:
			same = append(same, f.Path)
		case path.Dir(f.Path) == path.Dir(at.rel) && len(nearest.Names(base, []string{f.Name()})) > 0:
			close = append(close, f.Path)
		}
		return nil
	})
	if same = append(same, close...); len(same) == 0 {
		return fmt.Errorf("there is no file %s", at.shown)
	}
	return fmt.Errorf("there is no file %s; there is %s", at.shown, list(same[:min(len(same), 5)]))
}

// replace writes a file as a whole: another in its folder, which takes its name. Permissions stay; the folders above are
// made. A link's target was found before, and the link stays.
func (e *Env) replace(at place, data []byte, perm fs.FileMode) error {
	if at.rel == "" {
		root, err := os.OpenRoot(filepath.Dir(at.real))
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.MkdirAll(filepath.Dir(at.real), 0o777); err == nil {
				root, err = os.OpenRoot(filepath.Dir(at.real))
			}
		}
		if err != nil {
			return err
		}
		defer root.Close()
		return replaceIn(root, filepath.Base(at.real), data, perm)
	}
	root, err := e.within()
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := path.Dir(at.rel); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	return replaceIn(root, at.rel, data, perm)
}

func replaceIn(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	st, err := root.Lstat(name)
	switch {
	case err == nil && !st.Mode().IsRegular():
		return errors.New("it is no regular file any more")
	case err == nil:
		perm = st.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	exists := err == nil
	tmp := path.Join(path.Dir(name), fmt.Sprintf(".%s.%d.new", cut(path.Base(name), 100), os.Getpid()))
	_ = root.Remove(tmp) // of a process that was killed and had our number
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrPermission) && exists { // a file that may be written in a folder that may not
		return inPlace(root, name, data)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if exists && err == nil {
		err = f.Chmod(perm) // the umask has no say about a file that was there
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		_ = root.Remove(tmp)
	}
	return err
}

func inPlace(root *os.Root, name string, data []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_TRUNC|files.NonBlock, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// all reads a whole file, up to a bound.
func (e *Env) all(at place, most int64) ([]byte, error) {
	f, st, err := e.open(at)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size() > most {
		return nil, fmt.Errorf("%s has %s, too much for this tool: use bash, with sed or a script", at.shown, size(st.Size()))
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s grows", at.shown)
	}
	return b, err
}

// size words a number of bytes.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
