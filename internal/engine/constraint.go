package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/baleenrun/baleen/internal/sample"
)

// maskWait is how long a step's other rows wait for the mask of one. After that its row of logits is set aside, and the
// token is drawn before a later step. What is drawn does not depend on it.
const maskWait = time.Millisecond

// A constraint is what a sequence's mask adds to its way through the engine. The zero value is that of no mask.
type constraint struct {
	preparer sample.Preparer // nil: Allowed is at hand at once
	forcer   sample.Forcer   // nil: nothing is ever forced

	ready  chan struct{} // closed when Prepare has returned; nil: nothing is being prepared
	failed error         // of Prepare; read it after ready
	err    error         // why no token can be drawn any more

	early  int       // tokens behind the prompt that are not handed out yet
	forced []int32   // known and not taken yet
	row    []float32 // logits that wait for the mask
	waits  bool
}

// begin takes what must come first: it is computed with the prompt, and handed out when the first token is drawn.
func (s *sequence) begin() {
	c := &s.mask
	defer caught(&c.err)
	c.preparer, _ = s.r.Mask.(sample.Preparer)
	c.forcer, _ = s.r.Mask.(sample.Forcer)
	if c.forcer == nil || s.limit == s.prompt {
		return
	}
	c.forced = c.forcer.Forced()
	for s.r.LogProbs == 0 && len(c.forced) > 0 && !s.stopsAt(c.forced[0]) && len(s.tokens) < s.limit {
		id, _ := c.next()
		if c.err = s.sampler.Take(id); c.err != nil {
			return
		}
		s.tokens = append(s.tokens, id)
		c.early++
		if len(c.forced) == 0 {
			c.forced = c.forcer.Forced()
		}
	}
}

// prepare begins to make the mask of the next draw, beside the step that computes its logits.
func (e *Engine) prepare(s *sequence) {
	c := &s.mask
	if c.preparer == nil || len(c.forced) > 0 {
		return
	}
	ready := make(chan struct{})
	c.ready = ready
	go func() {
		defer func() {
			if p := recover(); p != nil {
				c.failed = fmt.Errorf("engine: the mask panicked: %v", p)
			}
			close(ready)
			e.wake()
		}()
		c.preparer.Prepare()
	}()
}

// maskReady reports whether a sequence's mask is made. It waits a moment, but no longer, also where no other row is
// kept waiting: a request that comes, or one that is cancelled, would be.
func (e *Engine) maskReady(s *sequence) bool {
	c := &s.mask
	if c.ready == nil {
		return true
	}
	select {
	case <-c.ready:
	default:
		if e.maskBy.IsZero() { // one time for all late masks of a step
			e.maskBy = time.Now().Add(maskWait)
		}
		t := time.NewTimer(time.Until(e.maskBy))
		defer t.Stop()
		select {
		case <-c.ready:
		case <-t.C:
			return false
		}
	}
	c.ready, c.err = nil, c.failed
	return true
}

// wait sets a row of logits aside.
func (c *constraint) wait(logits []float32) {
	c.row, c.waits = append(c.row[:0], logits...), true
}

func (s *sequence) awaitsMask() bool { return s.mask.waits }

// drawWaiting draws the tokens of sequences whose masks were late.
func (e *Engine) drawWaiting() {
	for _, s := range e.running {
		if c := &s.mask; c.waits {
			select {
			case <-c.ready:
				c.ready, c.err, c.waits = nil, c.failed, false
				e.draw(s, c.row)
			default:
			}
		}
	}
	e.running = slices.DeleteFunc(e.running, func(s *sequence) bool { return s.done })
}

// next returns a token that is known already.
func (c *constraint) next() (int32, bool) {
	if len(c.forced) == 0 {
		return 0, false
	}
	id := c.forced[0]
	c.forced = c.forced[1:]
	return id, true
}

// takeForced takes the tokens that must follow, and then lets the next mask be made. Where log probabilities are asked
// for, they are taken one by one, each with its own row of logits.
func (e *Engine) takeForced(s *sequence) {
	c := &s.mask
	for c.forcer != nil && !s.done {
		if len(c.forced) == 0 {
			c.forced = c.forcer.Forced()
		}
		if len(c.forced) == 0 || s.r.LogProbs > 0 {
			break
		}
		id, _ := c.next()
		if err := s.sampler.Take(id); err != nil {
			e.end(s, FinishError, err)
			return
		}
		s.passOver()
		e.take(s, id)
	}
	if !s.done {
		e.prepare(s)
	}
}

// passOver tells NoPenalty of a token that is not drawn: it wants to see them all.
func (s *sequence) passOver() {
	if s.r.NoPenalty != nil {
		s.r.NoPenalty(s.last())
	}
}
