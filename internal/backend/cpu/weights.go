package cpu

import (
	"errors"
	"fmt"
	"io"
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

// used reports for each weight of p whether an operation multiplies by it.
func used(p *plan.Plan) []bool {
	u := make([]bool, len(p.Weights))
	mark := func(ids ...plan.WeightID) {
		for _, id := range ids {
			if id != plan.None {
				u[id] = true
			}
		}
	}
	for _, op := range p.Ops {
		switch o := op.(type) {
		case *plan.MatMul:
			mark(o.W...)
		case *plan.HeadMatMul:
			mark(o.W)
		case *plan.Experts:
			mark(o.Gate, o.Up, o.Down)
		}
	}
	return u
}

// loadWeights allocates and packs all weights of p that are multiplied by.
func loadWeights(p *plan.Plan, a *arena, k *matmul.Kernels, threads *pool, progress func(done, total int64)) ([]weight, error) {
	ws := make([]weight, len(p.Weights))
	use := used(p)
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
		total += int64(len(w.Bytes))
	}
	askHuge(a.blocks)
	l := &loader{kernels: k, total: total, progress: progress, buf: make([][]byte, threads.n)}
	for i := range ws {
		if err := l.pack(&ws[i], threads); err != nil {
			return nil, err
		}
	}
	return ws, nil
}

type loader struct {
	kernels  *matmul.Kernels
	total    int64
	progress func(done, total int64)
	buf      [][]byte // one per thread, for direct reads

	done atomic.Int64
	mu   sync.Mutex
	err  error
}

// pack packs one weight on all threads. Bytes that lie in a file are read into a small buffer rather than
// touched in their mapping: no page faults, and the file's pages are not counted as this process's memory.
func (l *loader) pack(w *weight, threads *pool) error {
	if len(w.m) == 0 {
		return nil
	}
	rowBytes, err := w.Type.RowBytes(w.K)
	if err != nil {
		return fmt.Errorf("cpu: weight %q: %w", w.Name, err)
	}
	if want := len(w.m) * w.Rows * rowBytes; len(w.Bytes) != want {
		return fmt.Errorf("cpu: weight %q has %d bytes, its shape needs %d", w.Name, len(w.Bytes), want)
	}
	perCall := max(1, packChunk/(16*rowBytes)) // groups of 16 rows
	groups := w.m[0].Groups
	calls := (groups + perCall - 1) / perCall
	threads.run(len(w.m)*calls, 1, func(worker, lo, hi int) {
		for i := lo; i < hi; i++ {
			e, g0 := i/calls, i%calls*perCall
			g1 := min(g0+perCall, groups)
			r0, r1 := 16*g0, min(16*g1, w.Rows)
			from, to := (e*w.Rows+r0)*rowBytes, (e*w.Rows+r1)*rowBytes
			src := w.Bytes[from:to]
			if w.File != nil {
				if cap(l.buf[worker]) < len(src) {
					l.buf[worker] = make([]byte, max(len(src), packChunk+16*rowBytes))
				}
				src = l.buf[worker][:len(src)]
				if err := readFull(w.Weight, src, from); err != nil {
					l.fail(err)
					return
				}
			}
			l.kernels.Pack(&w.m[e], src, g0, g1)
			if done := l.done.Add(int64(len(src))); l.progress != nil {
				l.progress(done, l.total)
			}
		}
	})
	return l.err
}

// readFull fills dst with the bytes of w from at on, which lie in a file.
func readFull(w *plan.Weight, dst []byte, at int) error {
	n, err := w.File.ReadAt(dst, w.Off+int64(at))
	switch {
	case n == len(dst):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("cpu: reading weight %q: %w", w.Name, err)
}

func (l *loader) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}
