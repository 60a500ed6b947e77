package engine

import (
	"fmt"
	"slices"

	"github.com/baleenrun/baleen/internal/kv"
)

// Pages for this many generated tokens must be there before a request is admitted, or comes back from host
// memory: else it would push others out, or be pushed out, at once.
const (
	admitRoom  = 128
	resumeRoom = 256
)

// admit moves sequences into the running batch: first those that were swapped out, in order, then those that wait, by
// turns of their callers. One that does not fit yet keeps those behind it waiting, so that none starves.
func (e *Engine) admit() {
	for len(e.swapped) > 0 && len(e.running) < e.maxRunning {
		s := e.swapped[0]
		if !s.mem.SwapIn(s.tokens[:s.mem.Len()], e.room(s, e.resumeRoom), e.reserved()) {
			break
		}
		e.swapped = e.swapped[1:]
		e.running = insert(e.running, s)
	}
	if len(e.swapped) > 0 {
		return
	}
	for len(e.waiting) > 0 && len(e.running) < e.maxRunning {
		i := e.turns.next(e.waiting)
		s := e.waiting[i]
		if !e.open(s) {
			if len(e.running) == 0 {
				e.waiting = slices.Delete(e.waiting, i, i+1)
				e.finish(s, FinishError, fmt.Errorf("engine: %d tokens do not fit into an empty cache", len(s.tokens)))
				continue
			}
			return
		}
		e.waiting = slices.Delete(e.waiting, i, i+1)
		e.turns.took(s)
		e.leaveQueue(s)
		e.running = insert(e.running, s)
	}
}

// room returns for how many positions there must be pages so that s can go on for a while.
func (e *Engine) room(s *sequence, ahead int) int {
	if len(e.running) == 0 {
		return len(s.tokens) // alone it gets whatever there is
	}
	return max(min(s.limit, len(s.tokens)+ahead), len(s.tokens))
}

// reserved counts, by group, the pages that the running sequences need next.
func (e *Engine) reserved() []int {
	clear(e.need)
	for _, s := range e.running {
		s.mem.Need(e.need, max(min(s.limit, len(s.tokens)+kv.PageTokens), len(s.tokens)))
	}
	return e.need
}

// open gives a waiting sequence its memory, as much of it as possible from the cache.
func (e *Engine) open(s *sequence) bool {
	s.long = e.isLong(s)
	s.mem = e.cache.Open(kv.Want{
		Salt: s.salt(), Tokens: s.tokens, Limit: s.reusable(), Prompt: s.prompt,
		Total: e.room(s, e.admitRoom), Reserved: e.reserved(), Size: s.limit,
	})
	if s.mem == nil {
		return false
	}
	e.reuse(s, 0)
	if !s.admitted {
		s.admitted = true
		s.usage.Queue = e.now().Sub(s.start)
		e.stats.Prompt += int64(s.prompt)
		e.report(s)
	}
	e.follow(s)
	return true
}

// reuse counts what a sequence has taken from the cache behind from. What it had before it was moved out is no news.
func (e *Engine) reuse(s *sequence, from int) {
	if n := s.mem.Len() - max(from, s.ready); n > 0 {
		s.usage.Cached += n
		e.stats.Cached += int64(n)
		s.ready = s.mem.Len()
	}
}

// preempt moves a sequence out of the running batch: to host memory, or, where that is used up, back to those who
// wait, to be computed again.
func (e *Engine) preempt(s *sequence) {
	e.remove(s)
	s.usage.Swaps++
	e.stats.Swaps++
	if s.mem.SwapOut() {
		e.swapped = insert(e.swapped, s)
		return
	}
	s.mem.Close(s.tokens[:s.mem.Len()], true)
	s.mem = nil
	e.waiting = insert(e.waiting, s)
}

// isLong tells whether a sequence has come to have more tokens than one may that turns by a plan's first angles.
func (e *Engine) isLong(s *sequence) bool { return e.longFrom > 0 && len(s.tokens) > e.longFrom }

// salt separates cached prefixes by who may share them, and those of long sequences from others: their keys differ.
func (s *sequence) salt() string {
	if s.long {
		return s.r.CacheSalt + "\x00long"
	}
	return s.r.CacheSalt
}

// lengthen sends running sequences that have become long back to those who wait, to be computed again: all of their
// positions turn by other angles now.
func (e *Engine) lengthen() {
	for i := 0; i < len(e.running); i++ {
		if s := e.running[i]; s.long != e.isLong(s) {
			e.remove(s)
			i--
			s.mem.Close(s.tokens[:s.mem.Len()], true)
			s.mem = nil
			e.waiting = insert(e.waiting, s)
		}
	}
}

// remove takes a sequence out of the running batch.
func (e *Engine) remove(s *sequence) {
	e.abandon(s)
	for i, r := range e.running {
		if r == s {
			e.running = append(e.running[:i], e.running[i+1:]...)
			return
		}
	}
}

// follow lets a sequence wait for a running one that is computing a prefix of both.
func (e *Engine) follow(s *sequence) {
	s.leader, s.shared = nil, s.mem.Len()+2*kv.PageTokens-1
	for _, l := range e.running {
		if l.pending() <= 1 || l.salt() != s.salt() {
			continue
		}
		if n := l.mem.LastMark(min(kv.Common(l.tokens, s.tokens), s.reusable())); n > s.shared {
			s.leader, s.shared = l, n
		}
	}
}

// following reports whether a sequence still waits for its leader. Once the leader is far enough it takes over
// what is cached.
func (e *Engine) following(s *sequence) bool {
	l := s.leader
	if l == nil {
		return false
	}
	if l.pending() > 1 && l.mem.Len() < s.shared {
		return true
	}
	s.leader = nil
	before := s.mem.Len()
	if s.mem.Rematch(s.tokens, s.reusable()) {
		e.reuse(s, before)
	}
	return false
}

// abandon frees the followers of a sequence that leaves the batch.
func (e *Engine) abandon(l *sequence) {
	l.leader = nil
	for _, s := range e.running {
		if s.leader == l {
			s.leader = nil
		}
	}
}
