// Package model opens a model from a path and holds what belongs together: the checkpoint, its plan compiled on a
// backend, the engine, the tokenizer and the chat template. It turns messages into tokens. It knows no commands
// and no protocols, and downloads nothing.
package model

import (
	"context"
	"errors"
	"slices"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/device"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// Options say how a model is opened. The zero value is the default.
type Options struct {
	Device  string         // "auto" or "", "cpu", "cuda", "cuda:1": see package device
	Threads int            // 0: one for each available core
	CPU     string         // limit of the instruction set; "": none
	KV      backend.KVType // storage of cached keys and values
	Context int            // tokens of one sequence; 0: the model's maximum, at most 8192
	Seqs    int            // sequences that run at once; 0: 8
	MaxRows int            // rows of one step; 0: 512

	// CacheTokens bounds the tokens whose keys and values are kept, for all sequences together. 0: enough for
	// Seqs full contexts, or what half of the free memory holds if that is less.
	CacheTokens int

	Budget   *Budget                 // nil: measured
	Progress func(done, total int64) // bytes of weights that are loaded; nil: not told
	Backend  backend.Backend         // nil: what Device says
	Tune     func(o *engine.Options) // changes to the engine's options; nil: none

	// Fit returns what a model is opened with by what it says of itself, given these options; nil: these.
	Fit func(o Options, info family.Info) Options
}

// fitted returns the options for a model.
func (o Options) fitted(info family.Info) Options {
	if o.Fit == nil {
		return o
	}
	return o.Fit(o, info)
}

// A Model is an open model.
type Model struct {
	Info      family.Info
	Context   int // tokens of one sequence
	Plan      *plan.Plan
	Memory    backend.Memory
	KVBytes   int // bytes of a cached number
	Engine    *engine.Engine
	Tokenizer *tokenizer.Tokenizer

	HasTemplate bool // there is a chat template; without one a model continues text

	bytes      int64
	stops      []int32
	checkpoint *family.Checkpoint
}

// Bytes is the memory that the model takes.
func (m *Model) Bytes() int64 { return m.bytes }

// Open opens the model at path. It refuses with a *NoMemoryError what does not fit. A model whose files were written
// meanwhile may have parts of both contents: it is opened anew, and where that goes on the error wraps
// mmap.ErrChanged.
func Open(ctx context.Context, path string, o Options) (*Model, error) {
	for tries := 3; ; tries-- {
		m, err := openOnce(ctx, path, o)
		if tries == 1 || !errors.Is(err, mmap.ErrChanged) || ctx.Err() != nil {
			return m, err
		}
	}
}

func openOnce(ctx context.Context, path string, o Options) (*Model, error) {
	c, err := family.Open(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Info: c.Info(), checkpoint: c}
	if err = m.open(ctx, o.fitted(m.Info)); err == nil {
		if err = m.Current(); err == nil {
			return m, nil
		}
		return nil, errors.Join(err, m.Close())
	}
	return nil, errors.Join(err, m.Current(), c.Close())
}

// Current returns an error that wraps mmap.ErrChanged where the path that was opened no longer leads to what was
// loaded. Requests that run go on with what was loaded if it is still whole: a file that was replaced is, one that
// was overwritten ends them.
func (m *Model) Current() error { return m.checkpoint.Current() }

func (m *Model) open(ctx context.Context, o Options) error {
	var err error
	if m.Tokenizer, err = loadTokenizer(m.checkpoint); err != nil {
		return err
	}
	m.HasTemplate = m.Info.ChatTemplate != ""
	if m.Context, err = contextFor(m.Info, o.Context); err != nil {
		return err
	}
	if m.Plan, err = m.checkpoint.Lower(family.Options{Context: m.Context}); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	be, err := o.BackendFor(m.Plan)
	if err != nil {
		return err
	}
	m.stops = m.stopTokens()
	size, err := measure(be, m.Plan, m.Context, o)
	if err != nil {
		return err
	}
	budget, known, err := budgetOf(be, o)
	if err != nil {
		return err
	}
	if err := size.fit(budget, known); err != nil {
		return err
	}
	m.Memory, m.bytes, m.KVBytes = size.memory, size.bytes(), 2
	if o.KV == backend.KVF32 {
		m.KVBytes = 4
	}
	exec, err := be.Compile(m.Plan, size.backend)
	if err != nil {
		return err
	}
	opt := engine.Options{Exec: size.backend, StopTokens: m.stops}
	if o.Tune != nil {
		o.Tune(&opt)
	}
	m.Engine, err = engine.New(exec, m.Plan, opt)
	if err != nil {
		return errors.Join(err, exec.Close())
	}
	return nil
}

// BackendFor returns the backend that the options choose for a plan.
func (o Options) BackendFor(p *plan.Plan) (backend.Backend, error) {
	if o.Backend != nil {
		return o.Backend, nil
	}
	return device.For(p, device.Options{Name: o.Device, Threads: o.Threads, Limit: o.CPU, KV: o.KV})
}

type backendKey struct{}

// WithBackend returns a context under which tests open models on a backend of their own.
func WithBackend(ctx context.Context, b backend.Backend) context.Context {
	return context.WithValue(ctx, backendKey{}, b)
}

// BackendFrom returns the backend that WithBackend put into a context, nil where there is none.
func BackendFrom(ctx context.Context) backend.Backend {
	b, _ := ctx.Value(backendKey{}).(backend.Backend)
	return b
}

// Close stops the engine and closes the files.
func (m *Model) Close() error { return errors.Join(m.Engine.Close(), m.checkpoint.Close()) }

func loadTokenizer(c *family.Checkpoint) (*tokenizer.Tokenizer, error) {
	if f := c.GGUF(); f != nil {
		return tokenizer.FromGGUF(f)
	}
	return tokenizer.FromDir(c.Dir())
}

// Sampling returns how tokens are drawn where a request does not say so, and who says that.
func (m *Model) Sampling() (s family.Sampling, source string) { return m.checkpoint.DefaultSampling() }

// StopTokens are the ids that end an answer: the tokenizer's and those of the configuration.
func (m *Model) StopTokens() []int32 { return slices.Clone(m.stops) }

func (m *Model) stopTokens() []int32 {
	var out []int32
	for _, list := range [][]int32{m.Tokenizer.EOS(), m.Info.EOS} {
		for _, id := range list {
			known := id < 0 || int(id) >= m.Plan.Vocab
			for _, have := range out {
				known = known || have == id
			}
			if !known {
				out = append(out, id)
			}
		}
	}
	return out
}
