package chat

import (
	"context"
	"errors"
	"time"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
)

// A single is the catalog of one model: the empty name and its own mean it.
type single Spec

// Resolve is Catalog's.
func (s single) Resolve(_ context.Context, name string) (Spec, error) {
	if name != "" && name != s.Name {
		return Spec{}, &Error{Kind: UnknownModel, Model: name}
	}
	return Spec(s), nil
}

// List is Catalog's.
func (s single) List(context.Context) ([]Spec, error) { return []Spec{Spec(s)}, nil }

// OpenSingle loads the model at spec.Path and returns a service that has this model alone, for commands and programs of
// one process: it stays loaded until the service is closed, or its file is another, and requests need not name it. What
// does not open is refused with the error of package model, in no wrapping.
func OpenSingle(ctx context.Context, spec Spec, o model.Options) (*Service, error) {
	m, err := Open(ctx, spec.Path, o)
	if err != nil {
		return nil, err
	}
	if spec.Name == "" {
		spec.Name = m.Info.Name
	}
	forever := time.Duration(-1)
	first, again := m, o
	again.Progress = nil
	s := New(Options{Catalog: single(spec), Pool: pool.New(pool.Options[*Model]{
		Open: func(ctx context.Context, path string, _ int64) (*Model, error) {
			if m := first; m != nil {
				first = nil
				return m, nil
			}
			return Open(ctx, path, again) // its file was changed
		},
		KeepAlive: &forever,
	})})
	l, err := s.Acquire(ctx, "", nil) // the pool closes what it has
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	l.Release()
	return s, nil
}
