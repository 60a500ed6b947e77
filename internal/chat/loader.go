package chat

import (
	"context"

	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/model"
)

// A Loader opens models for a pool, all with the same options.
type Loader struct {
	Options model.Options // Budget and Progress are not used
	// Progress is told how much of a model is loaded; nil: not told.
	Progress func(path string, done, total int64)
}

const (
	serveContext = 32768 // most tokens of a sequence where nothing is said
	serveCache   = 65536 // tokens that the cache holds where nothing is said, at least one context
	serveSeqs    = 8
	serveRows    = 512
)

// options are those that every model is opened with; what depends on the model is filled in by fit.
func (l *Loader) options() model.Options {
	o := l.Options
	o.Fit = fit
	return o
}

// fit fills in what a model is to be opened with.
func fit(o model.Options, info family.Info) model.Options {
	if o.Context == 0 {
		o.Context = serveContext
		if info.MaxContext > 0 {
			o.Context = min(o.Context, info.MaxContext)
		}
	} else if info.MaxContext > 0 { // of several models each gets what it was trained for
		o.Context = min(o.Context, info.MaxContext)
	}
	if o.CacheTokens == 0 {
		o.CacheTokens = max(serveCache, o.Context)
	}
	if o.Seqs == 0 {
		o.Seqs = serveSeqs
	}
	if o.MaxRows == 0 {
		o.MaxRows = serveRows
	}
	return o
}

// MaxContext is the largest context that any model gets.
func (l *Loader) MaxContext() int {
	if l.Options.Context > 0 {
		return l.Options.Context
	}
	return serveContext
}

// Open loads the model at path into at most room bytes; 0: what the system has.
func (l *Loader) Open(ctx context.Context, path string, room int64) (*Model, error) {
	o := l.options()
	if room > 0 {
		o.Budget = &model.Budget{Available: room, Total: room, Source: "the memory for models"}
	}
	if l.Progress != nil {
		o.Progress = func(done, total int64) { l.Progress(path, done, total) }
	}
	return Open(ctx, path, o)
}

// Need returns the bytes that the model at path takes: with a cache of one full context, and with the cache that the
// options ask for.
func (l *Loader) Need(_ context.Context, path string) (least, want int64, err error) {
	return model.Needs(path, l.options())
}
