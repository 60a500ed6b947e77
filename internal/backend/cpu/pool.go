package cpu

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A pool runs loops on a fixed number of threads, the caller's among them. A step has a hundred fork-joins of
// 10 to 500 microseconds, and waking a parked thread takes about 120 of them (measured, more on virtual
// machines), so workers spin between loops and park only after spinFor without work.
//
// A loop ends when its items are done, not when all workers have seen it: a thread that has lost its processor to
// another program is waited for only while it holds items.
// RATIONALE: Why do worker threads spin?
type pool struct {
	n     int  // threads, the caller included
	yield bool // more threads than processors: let others run while waiting

	loops atomic.Uint64 // begun so far; threads wait for it to change
	_     [56]byte
	done  atomic.Int64 // items finished
	_     [56]byte
	least atomic.Int64

	// Of the current loop: written by the caller before shares, read by those who have taken items of it.
	fn func(worker, lo, hi int)

	shares []share   // by worker
	parked []parking // by worker
	closed atomic.Bool
}

// A share is a worker's part of a loop: the items lo<<32|hi that are not yet taken. Its worker takes them from the
// front, one run of memory from begin to end, which is what prefetching wants; workers that are done with theirs
// take from the back.
// RATIONALE: Why does each thread have a share of a loop?
type share struct {
	left atomic.Uint64
	_    [56]byte
}

type parking struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [40]byte
}

const (
	spinFor   = 2 * time.Millisecond
	spinBatch = 256 // spins between looks at the clock
)

func newPool(threads int) *pool {
	p := &pool{n: max(1, threads)}
	p.yield = p.n > runtime.GOMAXPROCS(0)
	p.shares, p.parked = make([]share, p.n), make([]parking, p.n)
	for w := 1; w < p.n; w++ {
		p.parked[w].wake = make(chan struct{}, 1)
		go p.worker(w)
	}
	return p
}

func (p *pool) worker(w int) {
	for seen, ok := p.await(w, 0); ok; seen, ok = p.await(w, seen) {
		p.take(w)
	}
}

// await returns the number of the current loop when it is another than the one seen last, spinning first and sleeping
// later. It returns false once the pool is closed.
func (p *pool) await(w int, seen uint64) (uint64, bool) {
	var since time.Time
	for !p.closed.Load() {
		for range spinBatch {
			if n := p.loops.Load(); n != seen {
				return n, true
			}
			p.pause()
		}
		runtime.Gosched() // between steps there are readers of new tokens to run
		switch {
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > spinFor:
			p.park(&p.parked[w], seen)
			since = time.Time{}
		}
	}
	return seen, false
}

// park sleeps until the next loop. One that began since the last look has either seen the thread asleep and will
// wake it, or is seen here.
func (p *pool) park(s *parking, seen uint64) {
	s.asleep.Store(true)
	if (p.loops.Load() != seen || p.closed.Load()) && s.asleep.CompareAndSwap(true, false) {
		return
	}
	<-s.wake
}

// run calls fn on disjoint ranges that cover [0,items), fewer than 1<<32, and returns when all calls have. Each thread
// has a share of consecutive items, and takes from others' when it is done with its own: at least `least` items at once
// where a share has that many left. A share has half of `least` or more to begin with. fn gets the number of the thread
// that it runs on, below p.n. Only one goroutine may call run, and not from fn.
func (p *pool) run(items, least int, fn func(worker, lo, hi int)) {
	if items <= 0 {
		return
	}
	least = max(1, least)
	if p.n == 1 || items <= least {
		fn(0, 0, items)
		return
	}
	p.fn = fn
	p.least.Store(int64(least))
	p.done.Store(0)
	sharers := min(p.n, (items+least-1)/least)
	for w := range sharers {
		p.shares[w].left.Store(uint64(w*items/sharers)<<32 | uint64((w+1)*items/sharers))
	}
	p.loops.Add(1)
	p.wakeAll()
	p.take(0)
	for spins := 0; p.done.Load() != int64(items); spins++ {
		p.pause()
		if spins > 1<<14 { // a thread that has lost its processor may need ours
			runtime.Gosched()
		}
	}
	p.fn = nil
}

func (p *pool) wakeAll() {
	for w := 1; w < p.n; w++ {
		if s := &p.parked[w]; s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
			s.wake <- struct{}{}
		}
	}
}

// take runs items as long as there are any: the worker's own, then others'.
func (p *pool) take(w int) {
	for p.takeFrom(w, w) {
	}
	for i := 1; i < p.n; i++ {
		for from := (w + i) % p.n; p.takeFrom(w, from); {
		}
	}
}

// takeFrom runs some items of a share, and reports whether there were any. Runs shrink as the work runs out, so that
// the threads end together.
func (p *pool) takeFrom(w, from int) bool {
	s := &p.shares[from].left
	for {
		seen := s.Load()
		lo, hi := int(seen>>32), int(uint32(seen))
		if lo >= hi {
			return false
		}
		part := 3 // smaller parts cost more beginnings, larger ones leave less to balance
		if w != from {
			part = 2 // of what its worker, held up or late, has left
		}
		n := min(max((hi-lo)/part, int(p.least.Load())), hi-lo)
		next := uint64(lo+n)<<32 | uint64(hi)
		if w != from {
			next = uint64(lo)<<32 | uint64(hi-n)
			lo = hi - n
		}
		// Success means that these items are not done, so their loop cannot end before they are: what the caller
		// wrote for it may be read. It may be a later loop than the one seen, when the same items are left of its
		// share; only least may then be the other's.
		if s.CompareAndSwap(seen, next) {
			p.fn(w, lo, lo+n)
			p.done.Add(int64(n))
			return true
		}
	}
}

func (p *pool) pause() {
	if p.yield {
		runtime.Gosched()
		return
	}
	pause()
}

// close ends the workers. No loop may run.
func (p *pool) close() {
	p.closed.Store(true)
	p.wakeAll()
}
