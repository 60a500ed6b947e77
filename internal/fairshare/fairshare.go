// Package fairshare bounds what callers take of something together, such as places in a queue or bytes of memory, so
// that no caller can keep the others out. It knows callers and amounts, not what they are for.
package fairshare

import "sync"

// Shares counts what each caller has taken.
//
// Who has less than an equal share of the limit always gets it, also where others have taken all of it already: so a
// caller that was alone and took everything keeps nobody out. With n callers at most limit * (1 + 1/2 + ... + 1/n) is
// taken. A single caller, such as that of a server without keys, can take the limit and no more.
type Shares struct {
	limit int64

	mu    sync.Mutex
	total int64
	by    map[string]int64 // callers that have taken anything
}

// New returns shares of a limit; 0 and less is none.
func New(limit int64) *Shares { return &Shares{limit: limit, by: map[string]int64{}} }

// Take takes n for a caller, all of it or nothing. Where it reports false, others says whether other callers have
// taken a part of what is used up: if so, the caller has its share already.
// RATIONALE: Why does a fair share exceed the limit?
func (s *Shares) Take(caller string, n int64) (ok, others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.by[caller]
	callers := int64(len(s.by))
	if mine == 0 {
		callers++
	}
	if s.limit > 0 && s.total+n > s.limit && mine+n > s.limit/callers {
		return false, callers > 1
	}
	s.total += n
	s.by[caller] = mine + n
	return true, false
}

// Give gives back n that a caller took.
func (s *Shares) Give(caller string, n int64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total -= n
	if s.by[caller] -= n; s.by[caller] <= 0 {
		delete(s.by, caller)
	}
}

// Total is what all callers have taken.
func (s *Shares) Total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Limit is the limit, 0 for none.
func (s *Shares) Limit() int64 { return max(s.limit, 0) }
