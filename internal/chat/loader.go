package chat

import (
	"context"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/plan"
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

// fit fills in what a model is to be opened with.
func (l *Loader) fit(info family.Info) model.Options {
	o := l.Options
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
	c, err := family.Open(path)
	if err != nil {
		return nil, err
	}
	o := l.fit(c.Info())
	if err := c.Close(); err != nil {
		return nil, err
	}
	if room > 0 {
		o.Budget = &model.Budget{Available: room, Total: room, Source: "the memory for models"}
	}
	if l.Progress != nil {
		o.Progress = func(done, total int64) { l.Progress(path, done, total) }
	}
	return Open(ctx, path, o)
}

// Need estimates the bytes that the model at path takes: with a cache of one full context, and with the cache that
// the options ask for.
func (l *Loader) Need(_ context.Context, path string) (least, want int64, err error) {
	p, err := model.OpenPlan(path, 0)
	if err != nil {
		return 0, 0, err
	}
	defer p.Close()
	o := l.fit(p.Info)
	be, err := o.BackendFor(p.Plan)
	if err != nil {
		return 0, 0, err
	}
	mem, err := be.Memory(p.Plan, backend.Options{
		KV: o.KV, MaxRows: max(o.MaxRows, o.Seqs), MaxSeqs: o.Seqs, MaxOut: o.Seqs, Pages: make([]int, len(p.Plan.Groups)),
	})
	if err != nil {
		return 0, 0, err
	}
	base := mem.Weights + mem.Scratch
	least = base + cacheBytes(p.Plan.Groups, mem.Page, o.Context, o) + 3*mem.Slot
	// The model gives its cache at most half of what is free beside one context, so twice that is wanted.
	want = least + 2*cacheBytes(p.Plan.Groups, mem.Page, max(0, o.CacheTokens-o.Context), o) + 4*int64(o.Seqs+64)*mem.Slot
	return least + least/64, want + want/64, nil
}

// cacheBytes is what the keys and values of so many tokens take.
func cacheBytes(groups []plan.Group, page []int64, tokens int, o model.Options) (n int64) {
	for g, group := range groups {
		pages := (tokens+backend.PageTokens-1)/backend.PageTokens + 1
		if group.Window > 0 {
			pages = min(pages, ((group.Window+o.MaxRows)/backend.PageTokens+3)*((tokens+o.Context-1)/o.Context))
		}
		n += int64(pages) * page[g]
	}
	return n
}
