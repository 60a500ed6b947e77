package engine

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/baleenrun/baleen/internal/sample"
)

// draw samples the next token of a sequence and hands it to the stream, and those that must follow it.
func (e *Engine) draw(s *sequence, logits []float32) {
	defer e.endOnPanic(s)
	for i := s.prompt; i < s.prompt+s.mask.early && !s.done; i++ {
		s.passOver()
		e.emit(s, s.tokens[i])
	}
	s.mask.early = 0
	if s.done {
		return
	}
	if s.r.LogProbs > 0 {
		copy(e.row, logits) // sampling changes the row
	}
	id, err := e.sample(s, logits)
	if err != nil {
		e.end(s, FinishError, err)
		return
	}
	e.take(s, id)
	e.takeForced(s)
}

// take adds a token to a sequence and hands it to the stream. One that ends the generation is no part of it.
func (e *Engine) take(s *sequence, id int32) {
	s.tokens = append(s.tokens, id)
	e.emit(s, id)
}

// emit hands the token behind those that were handed out to the stream.
func (e *Engine) emit(s *sequence, id int32) {
	e.stats.Generated++
	s.usage.Generated++
	if s.usage.Generated == 1 {
		s.usage.First = e.now().Sub(s.start)
	}
	if s.stopsAt(id) {
		s.tokens = s.tokens[:s.prompt+s.usage.Generated-1]
		e.endAt(s, id)
		return
	}
	ev := Event{Token: id, StopToken: -1}
	if n := s.r.LogProbs; n > 0 {
		ev.LogProb, ev.Top = sample.LogProbs(e.scratch, nil, e.row, id, n-1)
	}
	s.stream.push(ev)
	if s.prompt+s.usage.Generated == s.limit {
		e.end(s, FinishLength, nil)
	}
}

// stopsAt reports whether a token ends the generation.
func (s *sequence) stopsAt(id int32) bool { return !s.r.IgnoreEOS && slices.Contains(s.stopIDs, id) }

// last is the token that was handed out last, -1 where none was.
func (s *sequence) last() int32 {
	if s.usage.Generated == 0 {
		return -1
	}
	return s.tokens[s.prompt+s.usage.Generated-1]
}

// report tells how far the prompt is, where that was asked for.
func (e *Engine) report(s *sequence) {
	if s.r.Progress && s.usage.Generated == 0 {
		s.stream.push(
			Event{
				Token:     -1,
				StopToken: -1,
				Prefill:   &Prefill{Ready: s.mem.Len(), Cached: s.usage.Cached, Total: s.prompt},
			},
		)
	}
}

// sample draws a token id.
func (e *Engine) sample(s *sequence, logits []float32) (int32, error) {
	if s.mask.err != nil {
		return -1, s.mask.err
	}
	if id, ok := s.mask.next(); ok {
		s.passOver()
		return id, s.sampler.Take(id)
	}
	if s.r.NoPenalty != nil && s.r.NoPenalty(s.last()) {
		return s.sampler.SampleFreely(e.scratch, logits, s.tokens)
	}
	return s.sampler.Sample(e.scratch, logits, s.tokens, s.prompt-s.r.Answered)
}

// tellLogits hands the logits of a prompt position out.
func (s *sequence) tellLogits(pos int, logits []float32) (err error) {
	defer caught(&err)
	s.r.PromptLogits(pos, logits)
	return nil
}

// endOnPanic ends a sequence where a function of its request, or its mask, panicked. Others go on.
func (e *Engine) endOnPanic(s *sequence) {
	p := recover()
	switch {
	case p == nil:
	case s.done: // ending it is what panicked
		panic(p)
	default:
		e.end(s, FinishError, &CallbackPanic{Value: p, Stack: debug.Stack()})
	}
}

// caught turns a panic of a request's function or mask into an error: it ends that request, not the engine.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = &CallbackPanic{Value: p, Stack: debug.Stack()}
	}
}

// end ends a sequence of the running batch; runBatch takes it out of the list.
func (e *Engine) end(s *sequence, reason FinishReason, err error) {
	e.abandon(s)
	e.finishAt(s, Event{Reason: reason, StopToken: -1, Err: err})
}

// endAt ends a sequence at a stop token.
func (e *Engine) endAt(s *sequence, id int32) {
	e.abandon(s)
	e.finishAt(s, Event{Reason: FinishStop, StopToken: id})
}

// finish ends a sequence that is in no list any more.
func (e *Engine) finish(s *sequence, reason FinishReason, err error) {
	e.finishAt(s, Event{Reason: reason, StopToken: -1, Err: err})
}

// finishAt returns a sequence's memory, keeping what is known to be right in the cache, and closes its stream.
func (e *Engine) finishAt(s *sequence, ev Event) {
	s.done = true
	e.leaveQueue(s)
	if s.mem != nil {
		keep := ev.Reason != FinishError
		s.mem.Close(s.tokens[:s.mem.Len()], keep)
	}
	s.unwatch()
	s.usage.Prompt = s.prompt
	s.usage.Total = e.now().Sub(s.start)
	ev.Token, ev.Done, ev.Usage = -1, true, s.usage
	s.stream.push(ev)
}

// cancel ends a sequence whose context ended or whose stream was closed.
func (e *Engine) cancel(s *sequence) {
	e.finish(s, FinishCancelled, context.Cause(s.ctx))
}
