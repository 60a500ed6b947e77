package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/store"
)

// A Derived model is one that was made over HTTP: weights that are there, with settings of its own.
type Derived struct {
	Spec    chat.Spec `json:"spec"`
	Parent  string    `json:"parent,omitempty"`
	Licence string    `json:"licence,omitempty"`
	Folder  string    `json:"folder,omitempty"` // of uploaded files that belong to it, and to models made of it
}

// DerivedDir is the folder of the files of derived models.
func (c *Catalog) DerivedDir() string { return filepath.Join(c.store.Dir(), "derived") }

// key is what names are compared by.
func key(name string) string {
	return strings.TrimSuffix(strings.ToLower(strings.TrimSpace(name)), ":latest")
}

// fileOf is where a derived model is kept; names may have slashes and colons, files here have neither.
func (c *Catalog) fileOf(name string) string {
	return filepath.Join(c.DerivedDir(), strings.NewReplacer("/", "+", ":", "=", `\`, "+").Replace(key(name))+".json")
}

// Derived finds a derived model. Where its file is there and cannot be read, that is an error.
func (c *Catalog) Derived(name string) (d Derived, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.derivedLocked(name)
}

func (c *Catalog) derivedLocked(name string) (d Derived, ok bool, err error) {
	if store.CheckName(key(name)) != nil {
		return d, false, nil
	}
	d, err = readDerived(c.fileOf(name))
	return checkDerived(name, c.fileOf(name), d, err)
}

func damaged(name string, err error) error {
	return &chat.Error{
		Kind: chat.Internal, Model: name, Err: err,
		Msg: "what is kept of model " + name + " cannot be read: its file in the server's folder of derived models " +
			"must be repaired or removed",
	}
}

// readDerived reads the file of a derived model.
func readDerived(path string) (d Derived, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return d, fmt.Errorf("models: %w", err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return Derived{}, fmt.Errorf("models: %s: %w", path, err)
	}
	if d.Spec.Name == "" {
		return Derived{}, fmt.Errorf("models: %s: it names no model", path)
	}
	return d, nil
}

// Derive keeps a derived model under its name, in the place of an earlier one.
func (c *Catalog) Derive(d Derived) error {
	if err := store.CheckName(key(d.Spec.Name)); err != nil {
		return chat.Invalidf("model", "%v", err)
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = nil
	if err := os.MkdirAll(c.DerivedDir(), 0o755); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	f, err := os.CreateTemp(c.DerivedDir(), ".new-*")
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	defer os.Remove(f.Name())
	if _, err := store.TryLock(f); err != nil { // against those who remove what killed processes left
		return errors.Join(fmt.Errorf("models: %w", err), f.Close())
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if err := os.Rename(f.Name(), c.fileOf(d.Spec.Name)); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	return nil
}

// Forget removes a derived model, and uploaded files when the last model that has them goes. It reports whether there
// was one. Where another model's file cannot be read the uploaded files stay: that model may have them.
func (c *Catalog) Forget(name string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = nil
	d, ok, err := c.derivedLocked(name)
	if !ok {
		return false, err
	}
	if err := os.Remove(c.fileOf(name)); err != nil {
		return true, fmt.Errorf("models: %w", err)
	}
	if d.Folder == "" {
		return true, nil
	}
	others, err := c.allDerived()
	if err != nil {
		c.warn("uploaded files of a model that was removed are kept: another model may need them", err)
		return true, nil
	}
	for _, other := range others {
		if other.Folder == d.Folder {
			return true, nil
		}
	}
	return true, os.RemoveAll(d.Folder)
}

// AllDerived lists the derived models. With an error it is not known which others there are, and what they need.
func (c *Catalog) AllDerived() ([]Derived, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.allDerived()
}

// allDerived lists the derived models that can be read, and says which files cannot.
func (c *Catalog) allDerived() (out []Derived, err error) {
	err = c.eachDerived(func(_ string, d Derived, err error) {
		if err == nil {
			out = append(out, d)
		}
	})
	return out, err
}

// eachDerived calls f for each file of a derived model, and returns what is wrong with any of them.
func (c *Catalog) eachDerived(f func(path string, d Derived, err error)) error {
	entries, err := os.ReadDir(c.DerivedDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("models: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		path := filepath.Join(c.DerivedDir(), e.Name())
		d, err := readDerived(path)
		if err != nil {
			errs = append(errs, err)
		}
		f(path, d, err)
	}
	return errors.Join(errs...)
}

// warn logs a problem, once until it changes.
func (c *Catalog) warn(what string, err error) {
	if text := what + err.Error(); c.Log != nil && text != c.warned {
		c.warned = text
		c.Log.Warn(what, "error", err)
	}
}
