package engine

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/baleenrun/baleen/internal/sample"
)

// Generate starts a request. A request that can never run is refused with a *PromptTooLong, *BadToken,
// *BadRequest, *QueueFull or *sample.ParamError, or with ErrClosed. When ctx ends, the request is cancelled at
// the next step.
func (e *Engine) Generate(ctx context.Context, r *Request) (*Stream, error) {
	if err := e.check(r); err != nil {
		return nil, err
	}
	s := e.newSequence(ctx, r)
	if r.Priority <= 0 {
		ok, others := e.places.Take(r.Caller, 1)
		if !ok {
			return nil, &QueueFull{Waiting: int(e.places.Total()), Limit: e.o.MaxQueue, Shared: others}
		}
		s.placed = true
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		e.leaveQueue(s)
		return nil, ErrClosed
	}
	s.order = e.order
	e.order++
	e.prepare(s)
	s.unwatch = context.AfterFunc(ctx, s.stream.Close)
	e.inbox = append(e.inbox, s)
	e.mu.Unlock()
	e.wake()
	return s.stream, nil
}

// check refuses what can never run.
func (e *Engine) check(r *Request) error {
	if len(r.Tokens) == 0 {
		return &BadRequest{"tokens", "an empty prompt has no continuation: send at least one token"}
	}
	room := e.capacity
	if r.MaxTokens >= 0 {
		room-- // at least one token must fit behind the prompt
	}
	if len(r.Tokens) > room {
		return &PromptTooLong{Tokens: len(r.Tokens), Context: e.capacity}
	}
	for i, t := range r.Tokens {
		if t < 0 || int(t) >= e.vocab {
			return &BadToken{Token: t, Position: i, Vocab: e.vocab}
		}
	}
	if err := r.Sampling.Validate(); err != nil {
		return err
	}
	for t := range r.Sampling.LogitBias {
		if int(t) >= e.vocab {
			return &BadToken{Token: t, Position: -1, Vocab: e.vocab}
		}
	}
	if r.LogProbs < 0 || r.LogProbs > e.vocab {
		return &BadRequest{"logprobs", fmt.Sprintf("%d, must be 0 to %d", r.LogProbs, e.vocab)}
	}
	if r.Answered < 0 || r.Answered > len(r.Tokens) {
		return &BadRequest{"answered", fmt.Sprintf("%d of %d tokens", r.Answered, len(r.Tokens))}
	}
	if r.LogitsFrom < 0 {
		return &BadRequest{"logits from", fmt.Sprintf("position %d", r.LogitsFrom)}
	}
	return nil
}

func (e *Engine) newSequence(ctx context.Context, r *Request) *sequence {
	p := r.Sampling
	if !p.HasSeed {
		p.Seed = rand.Uint64() >> 11 // below 2^53: clients that read numbers as float64 can send it back
	}
	s := &sequence{
		r: r, ctx: ctx, stream: newStream(e.wake), sampler: sample.New(p, r.Mask),
		stopIDs: r.StopTokens, prompt: len(r.Tokens), logitsAt: len(r.Tokens), start: e.now(),
	}
	if s.stopIDs == nil {
		s.stopIDs = e.o.StopTokens
	}
	if r.PromptLogits != nil {
		s.logitsAt = min(r.LogitsFrom, s.prompt)
	}
	s.usage.Seed = p.Seed
	s.limit = e.capacity
	switch {
	case r.MaxTokens < 0:
		s.limit = s.prompt
	case r.MaxTokens > 0:
		s.limit = s.prompt + min(r.MaxTokens, e.capacity-s.prompt)
	}
	// The prompt is copied: generated tokens are appended. Beyond the first few thousand the list may have to grow.
	s.tokens = append(make([]int32, 0, min(s.limit, s.prompt+4096)), r.Tokens...)
	s.begin()
	return s
}
