package engine

import (
	"context"
	"slices"
	"time"

	"github.com/baleenrun/baleen/internal/kv"
	"github.com/baleenrun/baleen/internal/sample"
)

// A sequence is a request on its way through the engine.
type sequence struct {
	// Fixed by Generate.
	r       *Request
	ctx     context.Context
	unwatch func() bool // ends the watch on ctx
	stream  *Stream
	sampler *sample.Sampler
	stopIDs []int32
	prompt  int // tokens of the prompt
	limit   int // tokens that it may come to have; prompt: none is generated
	order   uint64
	start   time.Time

	// The engine goroutine's.
	tokens   []int32   // prompt and what was generated; mem.Len() of them are computed
	mem      *kv.Seq   // nil: waiting
	leader   *sequence // computes a prefix that this one will share
	shared   int       // how much of it
	logitsAt int       // the next prompt position whose logits are wanted; prompt: none
	ready    int       // most that was ever computed or cached of it: what is computed again is counted once
	long     bool      // what mem holds was computed as a long sequence's, see plan.Plan.LongFrom
	admitted bool
	placed   bool // has a place in the queue
	done     bool
	usage    Usage
	mask     constraint

	// The step's.
	rows int
	outs int // of these, with logits
}

// pending counts the tokens that are not computed yet; the last of them gives the next token.
func (s *sequence) pending() int { return len(s.tokens) - s.mem.Len() }

// reusable is how many tokens may come from the cache: the last one's logits are needed, and those asked for.
func (s *sequence) reusable() int { return max(min(len(s.tokens)-1, s.logitsAt), 0) }

// outsFor counts the rows with logits if the next n tokens are computed.
func (s *sequence) outsFor(n int) int {
	from, to := s.mem.Len(), s.mem.Len()+n
	outs := max(0, min(to, s.prompt)-max(from, s.logitsAt))
	if to == len(s.tokens) && (outs == 0 || to > s.prompt) && s.limit > s.prompt {
		outs++
	}
	return outs
}

// wants reports whether the logits of a position are needed.
func (s *sequence) wants(pos int) bool {
	return pos >= s.logitsAt && pos < s.prompt || pos == len(s.tokens)-1 && s.limit > s.prompt
}

// before orders sequences by who goes first.
func (s *sequence) before(o *sequence) bool {
	if s.r.Priority != o.r.Priority {
		return s.r.Priority > o.r.Priority
	}
	return s.order < o.order
}

// insert keeps a list in order.
func insert(list []*sequence, s *sequence) []*sequence {
	i := len(list)
	for i > 0 && s.before(list[i-1]) {
		i--
	}
	return slices.Insert(list, i, s)
}
