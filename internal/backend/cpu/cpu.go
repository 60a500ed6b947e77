// Package cpu executes plans on the processor: packed weights, a spinning pool of threads, and passes over the
// rows of a step. The arithmetic is in its kernel packages matmul and vec and is written down in
// ../NUMERICS.md; this package decides who computes what, and where it lies in memory.
//
// A plan compiles to passes. Consecutive operations that treat rows one by one become a single pass that a
// thread runs for a few rows from beginning to end, so that values stay in its cache; matrix products, attention,
// experts and scans are passes of their own. One pass ends before the next one begins.
package cpu

import (
	"fmt"
	"runtime"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
	"github.com/baleenrun/baleen/internal/backend/cpu/vec"
	"github.com/baleenrun/baleen/internal/plan"
)

// Options say how the processor is used. The zero value is the default.
type Options struct {
	Threads int    // 0: one for each available core
	Limit   string // "", "avx512", "avx2", "neon", "generic": at most this instruction set
}

type cpuBackend struct{ Options }

// New returns the CPU backend.
func New(o Options) backend.Backend { return cpuBackend{o} }

func (cpuBackend) Name() string { return "cpu" }

// Memory computes what Compile would allocate, without allocating it.
func (c cpuBackend) Memory(p *plan.Plan, o backend.Options) (backend.Memory, error) {
	threads, err := c.threads()
	if err != nil {
		return backend.Memory{}, err
	}
	if o, err = withDefaults(o); err != nil {
		return backend.Memory{}, err
	}
	var m backend.Memory
	for i, u := range p.Multiplied() {
		if !u {
			continue
		}
		w := &p.Weights[i]
		size, err := matmul.PackedBytes(w.Type, w.Rows, w.K)
		if err != nil {
			return m, fmt.Errorf("cpu: weight %q: %w", w.Name, err)
		}
		m.Weights += int64(size) * int64(max(1, w.Experts))
	}
	for _, v := range p.Vectors {
		m.Weights += int64(4 * len(v.Data))
	}
	z := measure(p, o)
	for _, g := range z.groups {
		m.Page = append(m.Page, int64(g.pageBytes))
	}
	m.Slot = int64(4 * z.slotFloats)
	m.Scratch = z.scratch(threads)
	return m, nil
}

// Compile packs the weights and prepares the passes.
func (c cpuBackend) Compile(p *plan.Plan, o backend.Options) (backend.Exec, error) {
	threads, err := c.threads()
	if err != nil {
		return nil, err
	}
	if o, err = withDefaults(o); err != nil {
		return nil, err
	}
	level, err := isa.Best(c.Limit)
	if err != nil {
		return nil, err
	}
	e := &exec{
		plan: p,
		opt:  o,
		mm:   matmul.For(level),
		vec:  vec.For(level),
		pool: newPool(threads),
	}
	if err := e.build(); err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

func (c cpuBackend) threads() (int, error) {
	if c.Threads < 0 || c.Threads > 1024 {
		return 0, fmt.Errorf("cpu: %d threads", c.Threads)
	}
	if c.Threads == 0 {
		return runtime.GOMAXPROCS(0), nil // honours affinity and cgroup quotas
	}
	return c.Threads, nil
}

func withDefaults(o backend.Options) (backend.Options, error) {
	if o.MaxRows <= 0 || o.MaxSeqs <= 0 || o.MaxOut <= 0 {
		return o, fmt.Errorf("cpu: limits of a step must be positive: %d rows, %d sequences, %d rows with logits",
			o.MaxRows, o.MaxSeqs, o.MaxOut)
	}
	o.MaxOut = min(o.MaxOut, o.MaxRows)
	return o, nil
}
