// Package models is the catalog of a server: the models that it was started with, and those of the store. It knows
// names and files, not what is inside them.
package models

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/baleenrun/baleen/internal/server/chat"
	"github.com/baleenrun/baleen/internal/store"
)

// A Catalog resolves names against what was served by name and what is in the store. Paths in requests mean nothing:
// a client cannot make the server open a file that it was not started with.
type Catalog struct {
	store *store.Store

	mu     sync.Mutex
	served []chat.Spec
}

// New returns the catalog of a store.
func New(st *store.Store) *Catalog { return &Catalog{store: st} }

// Serve adds a model that the server was started with; the first one is the default. path is where it lies, arg what
// the user called it. It returns the name that requests use.
func (c *Catalog) Serve(arg, path string) string {
	name := strings.TrimSuffix(filepath.Base(arg), ".gguf")
	if _, ok := store.Lookup(arg); ok {
		name = arg
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := chat.Spec{Name: name, Path: path}
	stat(&s)
	if e, ok := store.Lookup(name); ok && c.store.Path(e) == path {
		s.Digest = e.SHA256
	}
	c.served = append(c.served, s)
	return name
}

func stat(s *chat.Spec) {
	st, err := os.Stat(s.Path)
	if err != nil {
		return
	}
	s.Time, s.Size = st.ModTime(), st.Size()
	if !st.IsDir() {
		return
	}
	s.Size = 0
	files, err := os.ReadDir(s.Path)
	if err != nil {
		return
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil && !f.IsDir() {
			s.Size += info.Size()
		}
	}
}

// Resolve finds a model by name. The tag "latest" is what a name without a tag means.
func (c *Catalog) Resolve(_ context.Context, name string) (chat.Spec, error) {
	plain := strings.TrimSuffix(strings.TrimSpace(name), ":latest")
	c.mu.Lock()
	served := c.served
	c.mu.Unlock()
	if plain == "" && len(served) > 0 {
		return served[0], nil
	}
	for _, s := range served {
		if strings.EqualFold(s.Name, plain) {
			return s, nil
		}
	}
	if e, ok := store.Lookup(strings.ToLower(plain)); ok && c.store.Has(e) {
		return fromEntry(c.store, e), nil
	}
	return chat.Spec{}, &chat.Error{Kind: chat.UnknownModel, Model: name}
}

func fromEntry(st *store.Store, e store.Entry) chat.Spec {
	s := chat.Spec{Name: e.Name, Path: st.Path(e), Digest: e.SHA256}
	stat(&s)
	return s
}

// List returns the models that are there: those that the server was started with, then the store's.
func (c *Catalog) List(context.Context) ([]chat.Spec, error) {
	c.mu.Lock()
	out := append([]chat.Spec(nil), c.served...)
	c.mu.Unlock()
	have := map[string]bool{}
	for _, s := range out {
		have[s.Name] = true
	}
	for _, e := range store.Catalog() {
		if c.store.Has(e) && !have[e.Name] {
			out = append(out, fromEntry(c.store, e))
		}
	}
	return out, nil
}
