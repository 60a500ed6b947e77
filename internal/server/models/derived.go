package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/server/chat"
	"github.com/baleenrun/baleen/internal/store"
)

// A Derived model is one that was made over HTTP: weights that are there, with settings of its own.
type Derived struct {
	Spec    chat.Spec `json:"spec"`
	Parent  string    `json:"parent,omitempty"`
	Licence string    `json:"licence,omitempty"`
	Folder  string    `json:"folder,omitempty"` // of uploaded files that belong to it, and to models made of it
}

func (c *Catalog) derivedDir() string { return filepath.Join(c.store.Dir(), "derived") }

// key is what names are compared by.
func key(name string) string {
	return strings.ToLower(strings.TrimSuffix(strings.TrimSpace(name), ":latest"))
}

// fileOf is where a derived model is kept; names may have slashes and colons, files here have neither.
func (c *Catalog) fileOf(name string) string {
	return filepath.Join(c.derivedDir(), strings.NewReplacer("/", "+", ":", "=", `\`, "+").Replace(key(name))+".json")
}

// Derived finds a derived model.
func (c *Catalog) Derived(name string) (Derived, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.derivedLocked(name)
}

func (c *Catalog) derivedLocked(name string) (d Derived, ok bool) {
	if store.CheckName(key(name)) != nil {
		return d, false
	}
	b, err := os.ReadFile(c.fileOf(name))
	if err != nil || json.Unmarshal(b, &d) != nil || key(d.Spec.Name) != key(name) {
		return Derived{}, false
	}
	return d, true
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
	if err := os.MkdirAll(c.derivedDir(), 0o755); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	f, err := os.CreateTemp(c.derivedDir(), ".new-*")
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if err := os.Rename(f.Name(), c.fileOf(d.Spec.Name)); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	return nil
}

// Forget removes a derived model, and uploaded files when the last model that has them goes. It reports whether there was one.
func (c *Catalog) Forget(name string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.derivedLocked(name)
	if !ok {
		return false, nil
	}
	if err := os.Remove(c.fileOf(name)); err != nil {
		return true, fmt.Errorf("models: %w", err)
	}
	if d.Folder == "" {
		return true, nil
	}
	for _, other := range c.allDerived() {
		if other.Folder == d.Folder {
			return true, nil
		}
	}
	return true, os.RemoveAll(d.Folder)
}

// Uses reports whether a derived model has its files in a folder.
func (c *Catalog) Uses(folder string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.allDerived() {
		if d.Folder == folder {
			return true
		}
	}
	return false
}

// allDerived lists the derived models; what cannot be read is left out.
func (c *Catalog) allDerived() []Derived {
	var out []Derived
	_ = filepath.WalkDir(c.derivedDir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".json" {
			return nil //nolint:nilerr // a folder that is not there has no models
		}
		var d Derived
		if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &d) == nil && d.Spec.Name != "" {
			out = append(out, d)
		}
		return nil
	})
	return out
}
