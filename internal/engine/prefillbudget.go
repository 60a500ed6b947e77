package engine

import (
	"slices"
	"time"
)

// prefillBudget chooses how many prompt rows a step takes while streams run, so that a step takes at most stretch times
// as long as one without prompt rows. It only ever decides about the size of chunks.
type prefillBudget struct {
	stretch float64
	max     int

	base []quiet // by decode rows
	step int64
	rows float64    // the present budget
	part float64    // of a row, that the last budgets left out
	want [3]float64 // what the last steps with prompt rows would have had
	seen int        // of these
}

// quiet remembers what the last steps of a number of decode rows took without prompt rows. Their median is not
// moved by a step during which the machine did something else.
type quiet struct {
	last [15]time.Duration
	n    int   // measured so far
	at   int64 // the step of the last
}

func (q *quiet) add(d time.Duration, step int64) {
	if step-q.at >= staleBase {
		q.n = 0
	}
	q.last[q.n%len(q.last)] = d
	q.n++
	q.at = step
}

func (q *quiet) median() time.Duration {
	n := min(q.n, len(q.last))
	d := q.last
	slices.Sort(d[:n])
	return d[n/2]
}

const (
	firstRows = 16  // budget before anything is known
	leastRows = 3   // a newcomer always gets on
	wholeRows = 12  // budgets below it keep what they lack to a whole row: of five rows it is up to a fifth
	staleBase = 512 // steps after which a step without prompt rows is measured again
)

func newPrefillBudget(stretch float64, maxRows, maxSeqs int) prefillBudget {
	return prefillBudget{
		stretch: stretch, max: maxRows, rows: firstRows,
		base: make([]quiet, maxSeqs+1),
	}
}

// rowsBeside returns how many prompt rows may join that many decode rows; 0 means none this time, so that the step
// without them is measured. What a small budget lacks to a whole row goes to the next.
func (p *prefillBudget) rowsBeside(decode int) int {
	if decode == 0 {
		return p.max
	}
	if _, fresh := p.baseOf(decode); !fresh {
		return 0
	}
	n := int(p.rows)
	if n < wholeRows {
		want := p.rows + p.part
		n = int(want)
		p.part = want - float64(n)
	}
	return min(max(n, leastRows), p.max)
}

// baseOf returns the time of a step of decode rows alone, taken from the nearest count that was measured, and
// whether that is recent and near enough.
func (p *prefillBudget) baseOf(decode int) (time.Duration, bool) {
	for n := decode; n > 0 && 2*n >= decode; n-- {
		if b := &p.base[n]; b.n > 0 && p.step-b.at < staleBase {
			return b.median(), true
		}
	}
	return 0, false
}

// observe learns from a step.
func (p *prefillBudget) observe(decode, prompt int, d time.Duration) {
	p.step++
	if decode == 0 {
		return
	}
	d = max(d, 1) // a coarse clock may not have moved: without a measurement newcomers would wait for the next one
	if prompt == 0 {
		p.base[decode].add(d, p.step)
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
	// The time grows by less than the rows, so this comes from below. The median of three leaves out a step during
	// which the machine did something else; half of the way damps the rest.
	p.want[p.seen%len(p.want)] = float64(prompt) * min(max(ratio, 0.25), 2)
	p.seen++
	w := p.want
	n := min(p.seen, len(w))
	slices.Sort(w[:n])
	p.rows = min(max((p.rows+w[n/2])/2, leastRows), float64(p.max))
}
