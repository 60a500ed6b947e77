// Package model opens a model from a path and holds what belongs together: the checkpoint, its plan compiled on a
// backend, the engine, the tokenizer and the chat template. It turns messages into tokens. It knows no commands
// and no protocols, and downloads nothing.
package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/device"
	"github.com/baleenrun/baleen/internal/chattmpl"
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
}

const (
	defaultContext = 8192
	defaultSeqs    = 8
	defaultRows    = 512
)

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

	checkpoint  *family.Checkpoint
	template    *chattmpl.Template
	templateErr error // a template that cannot be read matters to those who chat only
}

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
	if err = m.open(ctx, o); err == nil {
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
	if src := m.Info.ChatTemplate; src != "" {
		m.HasTemplate = true
		m.template, m.templateErr = chattmpl.Parse("chat template", src)
	}
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
	eo, err := m.size(be, o)
	if err != nil {
		return err
	}
	exec, err := be.Compile(m.Plan, eo)
	if err != nil {
		return err
	}
	opt := engine.Options{Exec: eo, StopTokens: m.StopTokens()}
	if o.Tune != nil {
		o.Tune(&opt)
	}
	m.Engine, err = engine.New(exec, m.Plan, engine.Decoders(m.Tokenizer.NewDecoder), opt)
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

// Close stops the engine and closes the files.
func (m *Model) Close() error { return errors.Join(m.Engine.Close(), m.checkpoint.Close()) }

func loadTokenizer(c *family.Checkpoint) (*tokenizer.Tokenizer, error) {
	if f := c.GGUF(); f != nil {
		return tokenizer.FromGGUF(f)
	}
	return tokenizer.FromDir(c.Dir())
}

// contextFor chooses the context of a model.
func contextFor(info family.Info, want int) (int, error) {
	limit := info.MaxContext
	switch {
	case want < 0:
		return 0, fmt.Errorf("a context of %d tokens", want)
	case want > limit && limit > 0:
		return 0, fmt.Errorf("context %d is more than the model's %d", want, limit)
	case want > 0:
		return want, nil
	case limit > 0:
		return min(limit, defaultContext), nil
	}
	return defaultContext, nil
}

// Sampling returns how tokens are drawn where a request does not say so, and who says that.
func (m *Model) Sampling() (s family.Sampling, source string) { return m.checkpoint.DefaultSampling() }

// StopTokens are the ids that end an answer: the tokenizer's and those of the configuration.
func (m *Model) StopTokens() []int32 {
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

// size chooses the number of pages and slots, and checks that everything fits.
func (m *Model) size(be backend.Backend, o Options) (backend.Options, error) {
	eo := backend.Options{
		KV:       o.KV,
		MaxRows:  min(orDefault(o.MaxRows, defaultRows), max(m.Context, 1)),
		MaxSeqs:  orDefault(o.Seqs, defaultSeqs),
		Pages:    make([]int, len(m.Plan.Groups)),
		Progress: o.Progress,
	}
	eo.MaxRows = max(eo.MaxRows, eo.MaxSeqs)
	eo.MaxOut = eo.MaxSeqs
	mem, err := be.Memory(m.Plan, eo)
	if err != nil {
		return eo, err
	}
	m.Memory, m.KVBytes = mem, 2
	if o.KV == backend.KVF32 {
		m.KVBytes = 4
	}
	budget, known := Budget{}, false
	d, own := be.(backend.Device)
	switch {
	case own: // what the host has does not matter
		budget.Source = d.Name() + ", " + d.Describe()
		if budget.Available, budget.Total, err = d.Free(); err != nil {
			return eo, err
		}
		known = true
	case o.Budget != nil:
		budget, known = *o.Budget, true
	default:
		budget, known = SystemBudget()
	}
	one := cacheBytes(m.Plan, mem, m.Context, eo.MaxRows)
	if mem.Slot > 0 {
		one += 2 * mem.Slot // a running state and a snapshot
	}
	free := budget.Available - mem.Weights - mem.Scratch - one
	if known && free < 0 {
		return eo, &NoMemoryError{Weights: mem.Weights, Scratch: mem.Scratch, Cache: one, Context: m.Context, Budget: budget}
	}
	tokens := orDefault(o.CacheTokens, eo.MaxSeqs*m.Context)
	if tokens < m.Context {
		return eo, fmt.Errorf("a cache of %d tokens does not hold a context of %d", tokens, m.Context)
	}
	if known && one > 0 {
		tokens = min(tokens, m.Context+int(float64(free/2)/float64(one)*float64(m.Context)))
	}
	setPages(&eo, m.Plan, tokens, m.Context)
	if mem.Slot > 0 {
		eo.Slots = eo.MaxSeqs + 64
		if known {
			eo.Slots = min(eo.Slots, 2+int(free/4/mem.Slot))
		}
	}
	return eo, nil
}

// setPages gives every group pages for so many tokens. A window keeps fewer per sequence: its own length, what a
// step adds, and the pages at both ends.
func setPages(eo *backend.Options, p *plan.Plan, tokens, context int) {
	seqs := (tokens + context - 1) / context
	for g, group := range p.Groups {
		per := pagesOf(group, context, eo.MaxRows)
		all := pagesOf(group, tokens, eo.MaxRows)
		if group.Window > 0 {
			all = max(all, per*seqs)
			all = min(all, pagesFor(tokens)+seqs)
		}
		eo.Pages[g] = max(all, per) + seqs
	}
}

func pagesFor(tokens int) int { return (tokens + backend.PageTokens - 1) / backend.PageTokens }

// pagesOf is the number of pages that one sequence of so many tokens needs in a group.
func pagesOf(g plan.Group, tokens, rows int) int {
	n := pagesFor(tokens)
	if g.Window > 0 {
		n = min(n, pagesFor(g.Window+rows)+2)
	}
	return n
}

// cacheBytes is what the keys and values of one full context take.
func cacheBytes(p *plan.Plan, mem backend.Memory, context, rows int) int64 {
	var n int64
	for g, group := range p.Groups {
		n += mem.Page[g] * int64(pagesOf(group, context, rows)+1)
	}
	return n
}

func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}
