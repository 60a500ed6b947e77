package model

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/plan"
)

const (
	defaultContext = 8192
	defaultSeqs    = 8
	defaultRows    = 512

	// snapshots are the states that a model with recurrent layers keeps beside those of its running sequences.
	snapshots = 64
)

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

// A sizing is the one place that knows how much memory a model takes: what it must have, what it would like to have,
// and what a budget gives it.
type sizing struct {
	plan    *plan.Plan
	backend backend.Options // Pages and Slots are set by fit
	memory  backend.Memory
	context int
	tokens  int   // whose keys and values are to be kept, where there is room
	one     int64 // bytes of the keys, values and states of one full context
}

// measure asks the backend what a plan takes under the options.
func measure(be backend.Backend, p *plan.Plan, context int, o Options) (s sizing, err error) {
	s = sizing{plan: p, context: context, backend: backend.Options{
		KV:       o.KV,
		MaxRows:  min(orDefault(o.MaxRows, defaultRows), max(context, 1)),
		MaxSeqs:  orDefault(o.Seqs, defaultSeqs),
		Pages:    make([]int, len(p.Groups)),
		Progress: o.Progress,
	}}
	eo := &s.backend
	eo.MaxRows = max(eo.MaxRows, eo.MaxSeqs)
	eo.MaxOut = eo.MaxSeqs
	if s.memory, err = be.Memory(p, *eo); err != nil {
		return s, err
	}
	s.one = cacheBytes(p, s.memory, context, eo.MaxRows)
	if s.memory.Slot > 0 {
		s.one += 2 * s.memory.Slot // a running state and a snapshot
	}
	if s.tokens = orDefault(o.CacheTokens, eo.MaxSeqs*context); s.tokens < context {
		return s, fmt.Errorf("a cache of %d tokens does not hold a context of %d", s.tokens, context)
	}
	return s, nil
}

// least is what the model needs: weights, scratch memory and the cache of one full context.
func (s *sizing) least() int64 { return s.memory.Weights + s.memory.Scratch + s.one }

// want is the budget under which fit gives the model all that its options ask for.
func (s *sizing) want() int64 {
	full := *s
	full.backend.Pages = make([]int, len(s.plan.Groups))
	full.fill(s.tokens, s.backend.MaxSeqs+snapshots)
	cache := full.pageBytes() - s.one
	states := int64(full.backend.Slots) * s.memory.Slot
	return s.least() + max(2*cache, 4*states, 0)
}

// fit divides a budget: what is free beside one full context goes to the cache, half of it, and a quarter to
// recurrent states. It refuses with a *NoMemoryError what does not fit.
func (s *sizing) fit(budget Budget, known bool) error {
	tokens, slots := s.tokens, s.backend.MaxSeqs+snapshots
	if known {
		free := budget.Available - s.least()
		if free < 0 {
			return &NoMemoryError{
				Weights: s.memory.Weights, Scratch: s.memory.Scratch, Cache: s.one, Context: s.context, Budget: budget,
			}
		}
		if s.one > 0 {
			tokens = min(tokens, s.context+int(float64(free/2)/float64(s.one)*float64(s.context)))
		}
		if s.memory.Slot > 0 {
			slots = min(slots, 2+int(free/4/s.memory.Slot))
		}
	}
	s.fill(tokens, slots)
	return nil
}

// fill sets pages for so many tokens, and slots where the model has states.
func (s *sizing) fill(tokens, slots int) {
	setPages(&s.backend, s.plan, tokens, s.context)
	if s.memory.Slot > 0 {
		s.backend.Slots = slots
	}
}

// bytes is what the model takes after fit.
func (s *sizing) bytes() int64 {
	return s.memory.Weights + s.memory.Scratch + s.pageBytes() + int64(s.backend.Slots)*s.memory.Slot
}

func (s *sizing) pageBytes() (n int64) {
	for g, pages := range s.backend.Pages {
		n += int64(pages) * s.memory.Page[g]
	}
	return n
}

// Needs returns the bytes that the model at path must have to be opened with these options, and those with which it
// has all that they ask for. It reads no weights.
func Needs(path string, o Options) (least, want int64, err error) {
	c, err := family.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	info := c.Info()
	o = o.fitted(info)
	context, err := contextFor(info, o.Context)
	if err != nil {
		return 0, 0, err
	}
	p, err := c.Lower(family.Options{Context: context})
	if err != nil {
		return 0, 0, err
	}
	be, err := o.BackendFor(p)
	if err != nil {
		return 0, 0, err
	}
	s, err := measure(be, p, context, o)
	if err != nil {
		return 0, 0, err
	}
	return s.least(), s.want(), nil
}

// budgetOf is what a model may take on a backend: a device's own memory, what the options say, or what the system
// has.
func budgetOf(be backend.Backend, o Options) (b Budget, known bool, err error) {
	if d, own := be.(backend.Device); own { // what the host has does not matter
		b.Source = d.Name() + ", " + d.Describe()
		b.Available, b.Total, err = d.Free()
		return b, err == nil, err
	}
	if o.Budget != nil {
		return *o.Budget, true, nil
	}
	b, known = SystemBudget()
	return b, known, nil
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
