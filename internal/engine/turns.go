package engine

// turns lets callers take turns at being admitted: of those that wait, the one goes next whose last turn is the longest
// ago. Each caller's own requests keep their order, and those of a higher priority go first whoever asks.
type turns struct {
	last map[string]uint64 // the number of a caller's last turn
	n    uint64
}

// maxTurns bounds how many callers are remembered.
const maxTurns = 1024

// next returns the place of the sequence that is admitted next; waiting is in order and not empty.
func (t *turns) next(waiting []*sequence) int {
	best := 0
	for i, s := range waiting {
		if s.r.Priority != waiting[0].r.Priority {
			break
		}
		if t.last[s.r.Caller] < t.last[waiting[best].r.Caller] {
			best = i
		}
	}
	return best
}

// took notes that a sequence was admitted.
func (t *turns) took(s *sequence) {
	if len(t.last) >= maxTurns {
		clear(t.last)
	}
	t.n++
	t.last[s.r.Caller] = t.n
}

// leaveQueue gives a sequence's place in the queue back, once.
func (e *Engine) leaveQueue(s *sequence) {
	if s.placed {
		s.placed = false
		e.places.Give(s.r.Caller, 1)
	}
}
