package vec

import (
	"math"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// widening is the number of rows from which it pays to widen a page's keys and values to float32 once for all rows,
// rather than for each tile as they are multiplied. The instructions that widen take the multipliers' ports on many
// processors, so that it pays from two or three tiles on: with AVX-512 a page's keys for 35 rows take a sixth less on
// Zen 4, a seventh on Intel. On others they are free: on Zen 5 it never pays.
type widening struct{ keys, values int }

// wideKDim is the key dimension up to which widening keys may pay: above it a page leaves the first-level cache.
const wideKDim = 256

const never = math.MaxInt

// widenings finds out about each level, when it is first asked for.
var widenings = func() (f [isa.NEONI8MM + 1]func() widening) {
	for l := range f {
		f[l] = sync.OnceValue(func() widening { return measureWidening(table(isa.Level(l))) })
	}
	return f
}()

// measureWidening times the kernels on a page in the first-level cache.
func measureWidening(o *ops) widening {
	if o == &generic {
		return widening{never, never} // slow, and nobody waits for it
	}
	const dims = 64
	var (
		half   [pageTokens * dims]uint16
		wide   [pageTokens * dims]float32
		q      [qkRows * dims]float32
		scores [qkRows * pageTokens]float32
	)
	// The shortest of some times: all others were held up.
	shortest := func(f func()) float64 {
		least := time.Duration(math.MaxInt64)
		for range 10 {
			start := time.Now()
			for range 4 {
				f()
			}
			least = min(least, time.Since(start))
		}
		return float64(least)
	}
	halves, floats := &asBytes(half[:])[0], &asBytes(wide[:])[0]
	// Twice what it takes, for what is widened takes room in the cache: on Zen 5, where it saves a tenth of the sums of
	// values, five rows of 7 heads take 126 µs with it and 123 without.
	once := 2 * shortest(func() { o.fromHalf(wide[:], half[:]) })
	rows := func(tile int, direct, widened float64) int {
		gain := direct - widened
		if !(gain > 0 && gain >= direct/16) { // a coarse clock finds nothing
			return never
		}
		return int(math.Ceil(once/gain)) * tile
	}
	return widening{
		keys: rows(qkRows,
			shortest(func() { o.qk16(&q[0], qkRows, dims, halves, dims*Lanes*2, &scores[0], pageTokens*4, 0, 0, 0) }),
			shortest(func() { o.qk32(&q[0], qkRows, dims, floats, dims*Lanes*4, &scores[0], pageTokens*4, 0, 0, 0) })),
		values: rows(
			pvRows,
			shortest(
				func() { o.pv16(&q[0], 4*dims, pvRows, dims, &scores[0], pageTokens*4, pageTokens, halves, 2*dims, 0) },
			),
			shortest(
				func() { o.pv32(&q[0], 4*dims, pvRows, dims, &scores[0], pageTokens*4, pageTokens, floats, 4*dims, 0) },
			),
		),
	}
}
