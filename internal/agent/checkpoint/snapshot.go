package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/baleenrun/baleen/internal/agent/files"
)

// A snapshot is a state of a workspace.
type snapshot struct {
	taken   time.Time
	Entries map[string]entry `json:"entries"` // by paths relative to the workspace, with slashes
}

// An entry is a file, a folder or a link. The zero entry is none.
type entry struct {
	Kind string      `json:"kind"` // file, folder, link
	Mode fs.FileMode `json:"mode,omitempty"`
	Sum  string      `json:"sum,omitempty"` // of a file's content
	Link string      `json:"link,omitempty"`
	Big  bool        `json:"big,omitempty"`  // its content is not kept
	Size int64       `json:"size,omitempty"` // of such a file, by which changes are noticed
	Time int64       `json:"time,omitempty"`

	stamp stamp
}

// A stamp tells whether a file is what it was without reading it.
type stamp struct{ size, modified, changed, inode int64 }

func (e entry) none() bool    { return e.Kind == "" }
func (e entry) dir() bool     { return e.Kind == "folder" }
func (e entry) regular() bool { return e.Kind == "file" }

func (e entry) same(o entry) bool {
	e.stamp, o.stamp = stamp{}, stamp{}
	return e == o
}

// snapshot looks at the workspace, and keeps the contents that are not kept yet.
func (c *Checkpoints) snapshot(ctx context.Context) (*snapshot, error) {
	root, err := os.OpenRoot(c.o.Root)
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	defer root.Close()
	s := &snapshot{taken: time.Now(), Entries: map[string]entry{}}
	err = files.Walk(ctx, root, ".", files.Options{Max: c.o.MaxFiles}, func(f files.Entry) error {
		e, err := c.entry(root, f.Path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // gone meanwhile, or not to be read: it is no part of what is kept
		}
		if err != nil {
			return err
		}
		if !e.none() {
			s.Entries[f.Path] = e
		}
		return nil
	})
	if errors.Is(err, files.ErrMany) {
		return nil, fmt.Errorf("the workspace has more than %d files that .gitignore does not name", c.o.MaxFiles)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	c.last = s
	return s, nil
}

// entry looks at one path.
func (c *Checkpoints) entry(root *os.Root, name string) (entry, error) {
	st, err := root.Lstat(name)
	if err != nil {
		return entry{}, err
	}
	switch {
	case st.IsDir():
		return entry{Kind: "folder", Mode: st.Mode().Perm()}, nil
	case st.Mode()&fs.ModeSymlink != 0:
		to, err := root.Readlink(name)
		return entry{Kind: "link", Link: to}, err
	case !st.Mode().IsRegular():
		return entry{}, nil // sockets and pipes are no files to keep
	}
	e := entry{Kind: "file", Mode: st.Mode().Perm(), stamp: stampOf(st)}
	if st.Size() > c.o.MaxFile {
		e.Big, e.Size, e.Time = true, st.Size(), st.ModTime().UnixNano()
		return e, nil
	}
	if c.last != nil {
		if was, ok := c.last.Entries[name]; ok && was.regular() && !was.Big && was.stamp == e.stamp && e.stamp.changed != 0 &&
			c.last.taken.UnixNano()-e.stamp.changed > int64(time.Second) { // clocks of file systems are coarse
			e.Sum = was.Sum
			return e, nil
		}
	}
	e.Sum, err = c.content(root, name)
	return e, err
}

// read returns a file's content and its hash.
func (c *Checkpoints) read(root *os.Root, name string) ([]byte, string, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|files.NonBlock, 0)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, c.o.MaxFile+1))
	if err != nil {
		return nil, "", err
	}
	if int64(len(b)) > c.o.MaxFile {
		return nil, "", fmt.Errorf("%s grows", name)
	}
	sum := sha256.Sum256(b)
	return b, hex.EncodeToString(sum[:]), nil
}

func (c *Checkpoints) blob(sum string) string { return c.file("blobs", sum[:2], sum) }

// content keeps a file's content and returns its name.
func (c *Checkpoints) content(root *os.Root, name string) (string, error) {
	b, sum, err := c.read(root, name)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(c.blob(sum)); err == nil {
		return sum, nil
	}
	if c.bytes+int64(len(b)) > c.o.MaxBytes {
		return "", fmt.Errorf("the checkpoints of this session would take more than %d MiB", c.o.MaxBytes>>20)
	}
	if err := c.write(filepath.Join("blobs", sum[:2], sum), b); err != nil {
		return "", err
	}
	c.bytes += int64(len(b))
	return sum, nil
}

// is tells whether a path is what an entry says.
func (c *Checkpoints) is(root *os.Root, name string, e entry) (bool, error) {
	st, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || notFolder(root, name) {
		return e.none(), nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case st.IsDir():
		return e.dir(), nil
	case st.Mode()&fs.ModeSymlink != 0:
		to, err := root.Readlink(name)
		return e.Kind == "link" && to == e.Link, err
	case !st.Mode().IsRegular() || !e.regular() || st.Mode().Perm() != e.Mode || st.Size() > c.o.MaxFile:
		return false, nil
	}
	_, sum, err := c.read(root, name)
	return sum == e.Sum, err
}

// notFolder tells whether something above a path is no folder, so that the path is not there.
func notFolder(root *os.Root, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := root.Lstat(dir); err == nil && !st.IsDir() {
			return true
		}
	}
	return false
}

// apply makes paths what they are in a snapshot: first what goes, then what comes. A folder that others have put files
// into stays.
func (c *Checkpoints) apply(root *os.Root, paths []string, to *snapshot) (changed []string, err error) {
	for _, p := range slices.Backward(paths) { // what is in a folder first
		will := to.Entries[p]
		st, err := root.Lstat(p)
		if err != nil || notFolder(root, p) || st.IsDir() && will.dir() {
			continue
		}
		if will.none() || st.IsDir() || will.dir() || !st.Mode().IsRegular() || !will.regular() {
			if err := root.Remove(p); err != nil && !(st.IsDir() && will.none()) {
				return changed, fmt.Errorf("%s: %w", p, err)
			}
			if will.none() {
				changed = append(changed, p)
			}
		}
	}
	for _, p := range paths {
		e := to.Entries[p]
		var err error
		switch e.Kind {
		case "":
			continue
		case "folder":
			if err = root.MkdirAll(p, 0o777); err == nil {
				err = root.Chmod(p, e.Mode)
			}
		case "link":
			if err = above(root, p); err == nil {
				err = root.Symlink(e.Link, p)
			}
		case "file":
			if err = above(root, p); err == nil {
				err = c.put(root, p, e)
			}
		}
		if err != nil {
			return changed, fmt.Errorf("%s: %w", p, err)
		}
		changed = append(changed, p)
	}
	slices.Sort(changed)
	return changed, nil
}

func above(root *os.Root, p string) error {
	if d := path.Dir(p); d != "." {
		return root.MkdirAll(d, 0o777)
	}
	return nil
}

// put writes a file's kept content.
func (c *Checkpoints) put(root *os.Root, p string, e entry) error {
	b, err := os.ReadFile(c.blob(e.Sum))
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != e.Sum {
		return errors.New("its kept content is damaged")
	}
	tmp := path.Join(path.Dir(p), fmt.Sprintf(".checkpoint.%d.new", os.Getpid()))
	_ = root.Remove(tmp)
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(e.Mode), f.Close())
	if err == nil {
		err = root.Rename(tmp, p)
	}
	if err != nil {
		_ = root.Remove(tmp)
	}
	return err
}
