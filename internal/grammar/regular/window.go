package regular

import "fmt"

// A Window says from which states a string of a bounded number of code points is still accepted.
type Window struct {
	d      *DFA
	lo, hi int
	alive  []bitset // remaining minimum, from 1 → states
}

// maxWindow bounds a window's table, in bits.
const maxWindow = 1 << 24

// Window prepares the question for strings of lo to hi code points; hi < 0 is no bound.
func (d *DFA) Window(lo, hi int) (*Window, error) {
	w := &Window{d: d, lo: lo, hi: hi}
	if lo == 0 || d.Empty() {
		return w, nil
	}
	if lo*len(d.labels) > maxWindow {
		return nil, fmt.Errorf("a pattern and a minimum length of %d together: %w", lo, ErrTooLarge)
	}
	words := (len(d.labels) + 63) / 64
	for rest := 1; rest <= lo; rest++ {
		set := make(bitset, words)
		same := true
		for s := range d.labels {
			for c := range d.columns {
				t := d.trans[s*d.columns+c]
				if t < 0 {
					continue
				}
				if rest == 1 {
					if hi >= 0 && int(d.Distance(t)) > hi-lo {
						continue
					}
				} else if !w.alive[rest-2].has(t) {
					continue
				}
				set.set(int32(s))
				break
			}
			same = same && rest > 1 && set.has(int32(s)) == w.alive[rest-2].has(int32(s))
		}
		w.alive = append(w.alive, set)
		if same {
			break // and so will be all that follow
		}
	}
	return w, nil
}

// Alive reports whether from a state some string is accepted with at least lo and at most hi more code points; both
// are the window's bounds less the code points read, lo not below 0.
func (w *Window) Alive(state int32, lo, hi int) bool {
	switch {
	case state < 0:
		return false
	case lo == 0:
		return hi < 0 || int(w.d.Distance(state)) <= hi
	}
	return w.alive[min(lo, len(w.alive))-1].has(state)
}
