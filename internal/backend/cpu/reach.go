package cpu

import (
	"time"

	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
)

// reaches are the distances in bytes at which products of few rows may fetch their weights; 0 leaves it to the processor.
// Which is best depends on the processor, on the format and on the number of rows: with one row of Q4_0, a Zen 4 server reads
// 32 GB/s a thread at 0 and 24 at 12288, Q6_K 9 and 24. So each thread tries them now and then, and uses the best.
var reaches = [...]int{matmul.DefaultAhead, 6144, 2048, 0}

// A reach is what one thread knows of the distances for one format and number of rows.
type reach struct {
	best    uint8
	random  uint32
	largest int                   // run of weights, in bytes
	time    [len(reaches)]float64 // mean nanoseconds for a byte of weights
	samples [len(reaches)]int
}

const (
	reachFirst = 4        // times each distance is tried to begin with
	reachEvery = 64       // then one product in so many is a trial, at random, so that it falls in with no order of matrices
	reachMean  = 32       // samples that a mean looks back on
	reachLeast = 8 << 10  // bytes of weights below which a product says nothing
	reachLong  = 96 << 10 // bytes from which it says much: the first lines of a run were fetched by the one before
)

// pick returns the number of the distance to use, and whether it is a trial.
func (r *reach) pick() (i int, trial bool) {
	r.random = r.random*1664525 + 1013904223
	high := int(r.random >> 16) // the upper bits are the random ones
	i = high / reachEvery % len(reaches)
	if r.samples[i] < reachFirst || high%reachEvery == 0 {
		return i, true
	}
	return int(r.best), false
}

// teaches reports whether a product with so many bytes of weights is to be learnt from: it is a long run, or, where shares are
// small because there are many threads, one of the longer ones.
func (r *reach) teaches(bytes int) bool {
	r.largest = max(r.largest, bytes)
	return bytes >= max(reachLeast, min(reachLong, r.largest/2))
}

// learn takes in that a product with distance number i took so long. What took far longer than usual was held up by
// something else.
func (r *reach) learn(i, bytes int, took time.Duration) {
	t := float64(took) / float64(bytes)
	if r.samples[i] > 0 {
		t = min(t, 1.5*r.time[i])
	}
	r.samples[i]++
	r.time[i] += (t - r.time[i]) / float64(min(r.samples[i], reachMean))
	for j := range reaches {
		if r.samples[j] >= reachFirst && r.time[j] < r.time[r.best] {
			r.best = uint8(j)
		}
	}
}

// reachTable holds a thread's reaches by format and number of rows.
type reachTable [][]reach

func newReachTable(ws []weight) reachTable {
	var t reachTable
	for i := range ws {
		for j := range ws[i].m {
			f := int(ws[i].m[j].Type)
			for len(t) <= f {
				t = append(t, nil)
			}
			if t[f] == nil {
				t[f] = make([]reach, matmul.FewRows+1)
			}
		}
	}
	return t
}

// mul multiplies groups [g0, g1) of m on a thread; see matmul.Kernels.Mul.
func (e *exec) mul(worker int, m *matmul.Matrix, g0, g1 int, act []byte, actStride, rows int, y []float32, yStride int) {
	if rows < 1 || rows > matmul.FewRows || m.Act() == matmul.ActF32 {
		e.mm.Mul(m, g0, g1, act, actStride, rows, y, yStride, matmul.DefaultAhead)
		return
	}
	r, bytes := &e.reaches[worker][m.Type][rows], (g1-g0)*m.Stride
	i, trial := int(r.best), false
	if r.teaches(bytes) {
		i, trial = r.pick()
	}
	if !trial {
		e.mm.Mul(m, g0, g1, act, actStride, rows, y, yStride, reaches[i])
		return
	}
	start := time.Now()
	e.mm.Mul(m, g0, g1, act, actStride, rows, y, yStride, reaches[i])
	r.learn(i, bytes, time.Since(start))
}
