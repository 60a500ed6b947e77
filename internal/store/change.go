package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/nearest"
)

// ErrForeign is wrapped by refusals to change what another program owns.
var ErrForeign = errors.New("not ours to change")

// Remove deletes a model of this store and returns the bytes that its files had. Processes that run it keep what they
// have open.
func (s *Store) Remove(name string) (int64, error) {
	m, ok := s.findOwn(name)
	if !ok {
		if m, ok := s.Find(name); ok {
			return 0, fmt.Errorf("%w: %s belongs to %s (%s); remove it there", ErrForeign, m.Name, m.Where, m.Path)
		}
		if s.home == "" {
			return 0, ErrNoHome
		}
		if list, err := s.own(); err == nil {
			if near := nearest.Names(name, modelNames(list)); len(near) > 0 {
				return 0, &MisspeltError{Name: name, Near: near}
			}
		}
		return 0, fmt.Errorf("%w: %q is not in %s", ErrNotFound, name, s.Models())
	}
	top := s.topOf(m)
	if top == "" {
		return 0, fmt.Errorf("%w: %s lies at %s", ErrForeign, m.Name, m.Path)
	}
	size := m.Size
	if fi, err := os.Stat(top); err == nil && fi.IsDir() {
		if man, err := ReadManifest(top); err == nil {
			size = man.size()
		}
		// The manifest goes first: what is left of a removal that was cut off is no model.
		if err := os.Remove(filepath.Join(top, manifestName)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
	}
	if err := os.RemoveAll(top); err != nil {
		return 0, err
	}
	return size, nil
}

func (s *Store) findOwn(name string) (Model, bool) {
	list, err := s.own()
	if err != nil {
		return Model{}, false
	}
	for _, equal := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, m := range list {
			if equal(m.Name, name) {
				return m, true
			}
		}
	}
	return Model{}, false
}

// topOf is the file or folder right below Models that a model of the store is made of.
func (s *Store) topOf(m Model) string {
	for _, top := range []string{encodeName(m.Name), encodeName(m.Name) + ".gguf"} {
		path := filepath.Join(s.Models(), top)
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return ""
}

// Copy gives a model a second name. The store's own files are shared where the file system can, so that each name can
// be removed alone; of another program's model only the place is kept.
func (s *Store) Copy(from, to string) error {
	if s.home == "" {
		return ErrNoHome
	}
	if err := CheckName(to); err != nil {
		return err
	}
	if _, ok := Lookup(to); ok {
		return fmt.Errorf("%s is a name of the catalog; choose another", to)
	}
	if m, ok := s.findOwn(to); ok {
		return fmt.Errorf("there is a model %s already; remove it first", m.Name)
	}
	ref, err := s.Resolve(from)
	if err != nil {
		return err
	}
	if ref.Entry != nil && !s.Has(*ref.Entry) {
		return fmt.Errorf("%s is not on this machine: pull it first", from)
	}
	src, own := s.findOwn(from)
	if !own && ref.Entry != nil {
		src, own = s.findOwn(ref.Entry.Name)
	}
	tmp := filepath.Join(s.Models(), "."+encodeName(to)+".copy")
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if d, err := os.Open(tmp); err == nil { // against those who remove what killed processes left
		defer d.Close()
		_, _ = TryLock(d) // where folders cannot be locked they are left alone
	}
	man := Manifest{Name: to, Fetched: time.Now().UTC().Truncate(time.Second)}
	if own {
		err = s.copyOwn(src, tmp, &man)
	} else {
		man.Link, err = filepath.Abs(ref.Path)
		if err == nil && ref.Model != nil {
			man.Licence = ref.Model.Licence
			err = ref.Model.writeSettings(tmp, &man)
		}
	}
	if err == nil {
		err = WriteManifest(tmp, man)
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(s.Models(), encodeName(to)))
}

// writeSettings writes what stands beside the weights into the files that takeFolder reads.
func (m *Model) writeSettings(dir string, man *Manifest) error {
	params, err := json.Marshal(m.Params)
	if err != nil {
		return err
	}
	messages, err := json.Marshal(m.Messages)
	if err != nil {
		return err
	}
	for kind, text := range map[string]string{"system": m.System, "template": m.Template, "params": string(params), "messages": string(messages)} {
		if text == "" || text == "null" {
			continue
		}
		name := LayerFile(kind)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
		man.Files = append(man.Files, File{Name: name, Size: int64(len(text))})
	}
	return nil
}

// copyOwn links or copies a model's files into dir.
func (s *Store) copyOwn(m Model, dir string, man *Manifest) error {
	man.Source, man.Licence = m.Source, m.Licence
	top := s.topOf(m)
	fi, err := os.Stat(top)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		name := filepath.Base(top)
		man.Files = []File{{Name: name, Size: fi.Size(), SHA256: m.Digest}}
		return linkOrCopy(top, filepath.Join(dir, name))
	}
	old, err := ReadManifest(top)
	if err != nil {
		return err
	}
	man.Files, man.Revision, man.Link = old.Files, old.Revision, old.Link
	for _, f := range old.Files {
		name := filepath.FromSlash(f.Name)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return err
		}
		if err := linkOrCopy(filepath.Join(top, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}
