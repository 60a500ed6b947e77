package cpu

import (
	"time"

	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
)

// prefetchDistances are the distances in bytes at which products of few rows may fetch their weights; 0 leaves it to
// the processor. Which is best depends on the processor, on the format and on the number of rows: with one row of Q4_0,
// a Zen 4 server reads 32 GB/s a thread at 0 and 24 at 12288, Q6_K 9 and 24. So each thread tries them now and then,
// and uses the best.
// RATIONALE: Why are weights fetched into the second-level cache?
var prefetchDistances = [...]int{matmul.DefaultAhead, 6144, 2048, 0}

// A prefetchTuner is what one thread knows of the distances for one format and number of rows.
// RATIONALE: Why does each thread learn how far ahead to fetch weights?
type prefetchTuner struct {
	best    uint8
	random  uint32
	largest int                             // run of weights, in bytes
	time    [len(prefetchDistances)]float64 // mean nanoseconds for a byte of weights
	samples [len(prefetchDistances)]int
}

const (
	tunerFirst = 4        // times each distance is tried to begin with
	tunerEvery = 64       // then one product in so many is a trial, at random, so that it falls in with no order of matrices
	tunerMean  = 32       // samples that a mean looks back on
	tunerLeast = 8 << 10  // bytes of weights below which a product says nothing
	tunerLong  = 96 << 10 // bytes from which it says much: the first lines of a run were fetched by the one before
)

// pick returns the number of the distance to use, and whether it is a trial.
func (r *prefetchTuner) pick() (i int, trial bool) {
	r.random = r.random*1664525 + 1013904223
	high := int(r.random >> 16) // the upper bits are the random ones
	i = high / tunerEvery % len(prefetchDistances)
	if r.samples[i] < tunerFirst || high%tunerEvery == 0 {
		return i, true
	}
	return int(r.best), false
}

// teaches reports whether a product with so many bytes of weights is to be learnt from: it is a long run, or, where
// shares are small because there are many threads, one of the longer ones.
func (r *prefetchTuner) teaches(bytes int) bool {
	r.largest = max(r.largest, bytes)
	return bytes >= max(tunerLeast, min(tunerLong, r.largest/2))
}

// learn takes in that a product with distance number i took so long. What took far longer than usual was held up by
// something else.
func (r *prefetchTuner) learn(i, bytes int, took time.Duration) {
	t := float64(took) / float64(bytes)
	if r.samples[i] > 0 {
		t = min(t, 1.5*r.time[i])
	}
	r.samples[i]++
	r.time[i] += (t - r.time[i]) / float64(min(r.samples[i], tunerMean))
	for j := range prefetchDistances {
		if r.samples[j] >= tunerFirst && r.time[j] < r.time[r.best] {
			r.best = uint8(j)
		}
	}
}

// tunerTable holds a thread's tuners by format and number of rows.
type tunerTable [][]prefetchTuner

func newTunerTable(ws []weight) tunerTable {
	var t tunerTable
	for i := range ws {
		for j := range ws[i].m {
			f := int(ws[i].m[j].Type)
			for len(t) <= f {
				t = append(t, nil)
			}
			if t[f] == nil {
				t[f] = make([]prefetchTuner, matmul.FewRows+1)
			}
		}
	}
	return t
}

// mul multiplies groups [g0, g1) of m on a thread; see matmul.Kernels.Mul.
func (e *exec) mul(
	worker int,
	m *matmul.Matrix,
	g0, g1 int,
	act []byte,
	actStride, rows int,
	y []float32,
	yStride int,
) {
	if rows < 1 || rows > matmul.FewRows || m.Act() == matmul.ActF32 {
		e.mm.Mul(m, g0, g1, act, actStride, rows, y, yStride, matmul.DefaultAhead)
		return
	}
	r, bytes := &e.tuners[worker][m.Type][rows], (g1-g0)*m.Stride
	i, trial := int(r.best), false
	if r.teaches(bytes) {
		i, trial = r.pick()
	}
	if !trial {
		e.mm.Mul(m, g0, g1, act, actStride, rows, y, yStride, prefetchDistances[i])
		return
	}
	start := time.Now()
	e.mm.Mul(m, g0, g1, act, actStride, rows, y, yStride, prefetchDistances[i])
	r.learn(i, bytes, time.Since(start))
}
