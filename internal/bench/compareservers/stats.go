package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// quantiles are by the nearest rank: the 99th of a hundred is the last but one.
type quantiles struct{ p50, p99, max float64 }

func quantilesOf(v []float64) quantiles {
	if len(v) == 0 {
		return quantiles{}
	}
	v = slices.Sorted(slices.Values(v)) // the caller's order means something
	at := func(q float64) float64 { return v[max(0, int(math.Ceil(q*float64(len(v))))-1)] }
	return quantiles{at(0.5), at(0.99), v[len(v)-1]}
}

func (q quantiles) String() string { return fmt.Sprintf("p50 %.1f p99 %.1f", q.p50, q.p99) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
