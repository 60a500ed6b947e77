package engine

import "time"

// pace chooses how many prompt rows a step takes while streams run, so that a step takes at most stretch times as
// long as one without prompt rows. It only ever decides about the size of chunks.
type pace struct {
	stretch float64
	max     int

	base []time.Duration // by decode rows: a step without prompt rows, smoothed; 0: not known
	seen []int64         // by decode rows: the step that base was last measured in
	step int64
	rows float64 // the present budget
}

const (
	firstRows = 16  // budget before anything is known
	leastRows = 4   // a newcomer always gets on
	staleBase = 512 // steps after which a step without prompt rows is measured again
)

func newPace(stretch float64, maxRows, maxSeqs int) pace {
	return pace{
		stretch: stretch, max: maxRows, rows: firstRows,
		base: make([]time.Duration, maxSeqs+1), seen: make([]int64, maxSeqs+1),
	}
}

// budget returns how many prompt rows may join that many decode rows; 0 means none this time, so that the step
// without them is measured.
func (p *pace) budget(decode int) int {
	if decode == 0 {
		return p.max
	}
	if _, fresh := p.baseOf(decode); !fresh {
		return 0
	}
	// Kernels work on tiles of rows, and a part of a tile costs as much as the whole.
	total := decode + min(int(p.rows), p.max)
	for _, tile := range [...]int{16, 4} {
		if n := total - total%tile - decode; n >= leastRows {
			return n
		}
	}
	return min(leastRows, p.max)
}

// baseOf returns the time of a step of decode rows alone, taken from the nearest count that was measured, and
// whether that is recent and near enough.
func (p *pace) baseOf(decode int) (time.Duration, bool) {
	for n := decode; n > 0 && 2*n >= decode; n-- {
		if p.base[n] > 0 && p.step-p.seen[n] < staleBase {
			return p.base[n], true
		}
	}
	return 0, false
}

// observe learns from a step.
func (p *pace) observe(decode, prompt int, d time.Duration) {
	p.step++
	if decode == 0 || d <= 0 {
		return
	}
	if prompt == 0 {
		if b := p.base[decode]; b > 0 && p.step-p.seen[decode] < staleBase {
			d = b + (d-b)/4
		}
		p.base[decode], p.seen[decode] = max(d, 1), p.step
		return
	}
	base, ok := p.baseOf(decode)
	if !ok {
		return
	}
	ratio := p.stretch * float64(base) / float64(d)
	if ratio > 1 && float64(prompt) < 0.7*p.rows {
		return // the step had room to spare because there was no more to do
	}
	// The time grows by less than the rows, so this comes from below; half of the way damps the noise.
	want := float64(prompt) * min(max(ratio, 0.25), 2)
	p.rows = min(max((p.rows+want)/2, leastRows), float64(p.max))
}
