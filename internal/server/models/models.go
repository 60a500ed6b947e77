// Package models is the catalog of a server: the models that it was started with, and those that are on this machine.
// It knows names and files, not what is inside them.
package models

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/nearest"
	"github.com/baleenrun/baleen/internal/store"
)

// A Catalog resolves names against what was served by name and what is in the store. Paths in requests mean nothing:
// a client cannot make the server open a file that it was not started with.
type Catalog struct {
	// Log is told of models that are left out of lists because what is kept of them cannot be read; nil: nobody is.
	Log *slog.Logger

	store *store.Store

	mu     sync.Mutex
	served []chat.Spec
	warned string // what the log was told last
	seen   *shelf // what lay on disk when it was read last; nil: it must be read
}

// New returns the catalog of a store.
func New(st *store.Store) *Catalog { return &Catalog{store: st} }

// Serve adds a model that the server was started with; the first one is the default. path is where it lies, arg what
// the user called it. It returns the name that requests use. Two models whose paths give one name are refused: requests
// could only reach the first.
func (c *Catalog) Serve(arg, path string) (string, error) {
	s := chat.Spec{Name: strings.TrimSuffix(filepath.Base(arg), ".gguf"), Path: path}
	if m, ok := c.store.Find(arg); ok && samePath(m.Path, path) {
		s = SpecOf(m)
	} else {
		stat(&s)
	}
	s.Path = path
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, have := range c.served {
		switch {
		case !strings.EqualFold(have.Name, s.Name):
		case have.Path == path:
			return "", fmt.Errorf("model %s is named twice: %s", s.Name, path)
		default:
			return "", fmt.Errorf(
				"two models would both be called %s: %s and %s; rename one, or serve only one of them",
				s.Name,
				have.Path,
				path,
			)
		}
	}
	c.served = append(c.served, s)
	return s.Name, nil
}

func samePath(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
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
func (c *Catalog) Resolve(ctx context.Context, name string) (chat.Spec, error) {
	plain := key(name)
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
	if plain == "" {
		return chat.Spec{}, &chat.Error{
			Kind:    chat.Invalid,
			Field:   "model",
			Missing: true,
			Msg:     "the request names no model",
		}
	}
	sh, err := c.shelf()
	if err != nil {
		return chat.Spec{}, err // it may be there
	}
	if d, ok, err := sh.derived(c, plain); ok || err != nil {
		return d.Spec, err
	}
	m, ok := store.FindIn(sh.models, strings.TrimSpace(name))
	switch {
	case !ok:
		here, err := c.List(ctx)
		if err != nil {
			return chat.Spec{}, err // it may be there
		}
		return chat.Spec{}, &chat.Error{Kind: chat.UnknownModel, Model: name, Near: near(plain, here)}
	case m.Problem != "":
		problem := chat.TraceOf(ctx).Hide(m.Problem, m.Path)
		return chat.Spec{}, &chat.Error{
			Kind:  chat.Unsupported,
			Field: "model",
			Model: name,
			Msg:   "model " + name + " cannot run: " + problem,
		}
	}
	return SpecOf(m), nil
}

// near returns the names that one which no model here has may misspell: of models here and of those that can be fetched
// by name. A name of the latter is spelt well.
func near(name string, here []chat.Spec) []string {
	if _, ok := store.Lookup(name); ok {
		return nil
	}
	var known []string
	for _, s := range here {
		known = append(known, strings.TrimSuffix(s.Name, ":latest"))
	}
	for _, e := range store.Catalog() {
		known = append(known, e.Name)
	}
	return nearest.Names(name, known)
}

// List returns the models that can be used: those that the server was started with, then the others on this machine,
// what was made of them last: of several names of one file the first is the file's own. One damaged file does not take
// the list away: its model is left out, and the log says so.
func (c *Catalog) List(context.Context) ([]chat.Spec, error) {
	sh, err := c.shelf()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	out := append([]chat.Spec(nil), c.served...)
	if sh.problem != nil {
		c.warn("models are missing in the list: files of derived models cannot be read", sh.problem)
	}
	c.mu.Unlock()
	have := map[string]bool{}
	for _, s := range out {
		have[strings.ToLower(s.Name)] = true
	}
	var made []chat.Spec
	for _, d := range sh.made { // their names hide those of the store
		if key := strings.ToLower(d.Spec.Name); !have[key] {
			have[key] = true
			made = append(made, d.Spec)
		}
	}
	for _, m := range sh.models {
		if key := strings.ToLower(m.Name); m.Problem == "" && !have[key] {
			have[key] = true
			out = append(out, SpecOf(m))
		}
	}
	return append(out, made...), nil
}

// SpecOf takes over what a model says beside its weights. A template in Go's language is not taken: the weights bring
// their own in Jinja.
func SpecOf(m store.Model) chat.Spec {
	s := chat.Spec{Name: m.Name, Path: m.Path, Digest: m.Digest, Size: m.Size, Time: m.Modified, System: m.System}
	number := func(name string) (float64, bool) {
		switch v := m.Params[name].(type) {
		case float64:
			return v, !math.IsNaN(v)
		case int64:
			return float64(v), true
		case int:
			return float64(v), true
		}
		return 0, false
	}
	for name, dst := range map[string]**float32{
		"temperature": &s.Sampling.Temperature, "top_p": &s.Sampling.TopP, "min_p": &s.Sampling.MinP, "typical_p": &s.Sampling.TypicalP,
		"repeat_penalty": &s.Sampling.RepetitionPenalty, "presence_penalty": &s.Sampling.PresencePenalty, "frequency_penalty": &s.Sampling.FrequencyPenalty,
	} {
		if v, ok := number(name); ok {
			f := float32(v)
			*dst = &f
		}
	}
	for name, dst := range map[string]**int{"top_k": &s.Sampling.TopK, "repeat_last_n": &s.Sampling.RepeatLastN} {
		if v, ok := number(name); ok {
			n := int(v)
			*dst = &n
		}
	}
	for _, t := range m.Messages {
		s.Messages = append(s.Messages, chat.Text(t.Role, t.Content))
	}
	if v, ok := number("seed"); ok && v != -1 { // which asks for another one each time
		s.Sampling.Seed = new(uint64(int64(v)))
	}
	if v, ok := number("num_predict"); ok && v > 0 {
		s.MaxTokens = int(min(v, math.MaxInt32))
	}
	if v, ok := number("num_ctx"); ok && v > 0 { // more than the server gives the model means all of it
		s.Context = int(min(v, math.MaxInt32))
	}
	switch v := m.Params["stop"].(type) {
	case string:
		s.Stop = append(s.Stop, v)
	case []string:
		s.Stop = append(s.Stop, v...)
	case []any:
		for _, x := range v {
			if t, ok := x.(string); ok {
				s.Stop = append(s.Stop, t)
			}
		}
	}
	kept := s.Stop[:0]
	for _, t := range s.Stop {
		if t != "" {
			kept = append(kept, t)
		}
	}
	s.Stop = kept
	return s
}
