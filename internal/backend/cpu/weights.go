package cpu

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
	"github.com/baleenrun/baleen/internal/plan"
)

// A weight is a packed plan.Weight: one matrix per expert, or one. Weights that only Embed uses stay where they
// are and have no matrices.
type weight struct {
	*plan.Weight
	m []matmul.Matrix
}

// packChunk is the number of source bytes that one packing call covers: small enough to stay in the second-level
// cache between reading and packing.
const packChunk = 256 << 10

// loadWeights allocates and packs all weights of p that are multiplied by.
// RATIONALE: Why are weights repacked at load?
func loadWeights(
	p *plan.Plan,
	a *arena,
	k *matmul.Kernels,
	threads *pool,
	progress func(done, total int64),
) ([]weight, error) {
	ws := make([]weight, len(p.Weights))
	use := p.Multiplied()
	var total int64
	for i := range p.Weights {
		w := &p.Weights[i]
		ws[i].Weight = w
		if !use[i] {
			continue
		}
		size, err := matmul.PackedBytes(w.Type, w.Rows, w.K)
		if err != nil {
			return nil, fmt.Errorf("cpu: weight %q: %w", w.Name, err)
		}
		n := max(1, w.Experts)
		data, err := a.alloc(n * size)
		if err != nil {
			return nil, fmt.Errorf("cpu: weight %q: %w", w.Name, err)
		}
		ws[i].m = make([]matmul.Matrix, n)
		for e := range ws[i].m {
			m, err := matmul.New(w.Type, w.Rows, w.K, data[e*size:(e+1)*size])
			if err != nil {
				return nil, fmt.Errorf("cpu: weight %q: %w", w.Name, err)
			}
			ws[i].m[e] = m
		}
		total += w.Size()
	}
	askHuge(a.blocks)
	l := &loader{kernels: k, total: total, progress: progress, buf: make([][]byte, threads.n)}
	for i := range ws {
		if err := l.pack(&ws[i], threads); err != nil {
			return nil, err
		}
	}
	// A file that was written while it was read may have given rows of both contents.
	return ws, unchanged(p.Files(func(plan.WeightID) bool { return true }))
}

type loader struct {
	kernels  *matmul.Kernels
	total    int64
	progress func(done, total int64)
	buf      [][]byte // one per thread, for what is read

	done atomic.Int64
	mu   sync.Mutex
	err  error
}

// pack packs one weight on all threads. What does not lie in memory is read and converted a piece at a time, each just
// before it is packed: no page of a file is touched in a mapping, and none is held here longer than it takes.
func (l *loader) pack(w *weight, threads *pool) error {
	if len(w.m) == 0 {
		return nil
	}
	rowBytes, err := w.Type.RowBytes(w.K)
	if err != nil {
		return fmt.Errorf("cpu: weight %q: %w", w.Name, err)
	}
	if w.Parts == nil && int64(len(w.Bytes)) != w.Size() {
		return fmt.Errorf("cpu: weight %q has %d bytes, its shape needs %d", w.Name, len(w.Bytes), w.Size())
	}
	perCall := max(1, packChunk/(matmul.Lanes*rowBytes), w.Together()/matmul.Lanes) // groups of rows
	groups := w.m[0].Groups
	calls := (groups + perCall - 1) / perCall
	threads.run(len(w.m)*calls, 1, func(worker, lo, hi int) {
		for i := lo; i < hi; i++ {
			e, g0 := i/calls, i%calls*perCall
			g1 := min(g0+perCall, groups)
			r0, r1 := matmul.Lanes*g0, min(matmul.Lanes*g1, w.Rows)
			src, err := l.read(w.Weight, worker, e*w.Rows+r0, r1-r0, rowBytes)
			if err != nil {
				l.fail(err)
				return
			}
			l.kernels.Pack(&w.m[e], src, g0, g1)
			if done := l.done.Add(int64(len(src))); l.progress != nil {
				l.progress(done, l.total)
			}
		}
	})
	return l.err
}

// read returns n rows of a weight from row on: a view of memory, or what was read into the thread's buffer.
func (l *loader) read(w *plan.Weight, worker, row, n, rowBytes int) ([]byte, error) {
	if w.Parts == nil {
		return w.Bytes[row*rowBytes : (row+n)*rowBytes], nil
	}
	if cap(l.buf[worker]) < n*rowBytes {
		l.buf[worker] = make([]byte, max(n*rowBytes, packChunk+matmul.Lanes*rowBytes))
	}
	buf := l.buf[worker][:n*rowBytes]
	if err := w.ReadRows(buf, row, n); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	return buf, nil
}

// unchanged refuses results of files that were written meanwhile.
// RATIONALE: Why is a model's file looked at in every step?
func unchanged(files []plan.File) error {
	if err := plan.Unchanged(files); err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	return nil
}

func (l *loader) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}
