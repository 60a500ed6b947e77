package tool

import (
	"crypto/sha256"
)

// seen is a file as the model knows it.
type seen struct {
	sum   [sha256.Size]byte
	upTo  int  // lines from the first on that it was shown
	whole bool // all of it
}

// saw remembers that lines [from, to) of total were shown to the model, counted from 0.
func (e *Env) saw(at place, data []byte, from, to, total int) {
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	if e.state.seen == nil {
		e.state.seen = map[string]*seen{}
	}
	sum := sha256.Sum256(data)
	s := e.state.seen[at.real]
	if s == nil || s.sum != sum {
		s = &seen{sum: sum}
		e.state.seen[at.real] = s
	}
	if from <= s.upTo {
		s.upTo = max(s.upTo, to)
	}
	s.whole = s.whole || s.upTo >= total
}

// wrote remembers what the model has made of a file; whether it knows all of it is as before.
func (e *Env) wrote(at place, data []byte, whole bool) {
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	if e.state.seen == nil {
		e.state.seen = map[string]*seen{}
	}
	s := e.state.seen[at.real]
	e.state.seen[at.real] = &seen{sum: sha256.Sum256(data), whole: whole || s != nil && s.whole}
}

// What is known of a file that is about to be changed.
const (
	known    = iota
	unread   // the model has never seen it
	partly   // it has seen a part
	modified // it is not what it was when the model saw it
)

func (e *Env) knows(at place, data []byte) int {
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	s := e.state.seen[at.real]
	switch {
	case s == nil:
		return unread
	case s.sum != sha256.Sum256(data):
		return modified
	case !s.whole:
		return partly
	}
	return known
}
