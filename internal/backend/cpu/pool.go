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
type pool struct {
	n     int  // threads, the caller included
	yield bool // more threads than processors: let others run while waiting

	state atomic.Uint64 // number of the loop << 32 | items not yet taken
	_     [56]byte
	done  atomic.Int64 // items finished
	_     [56]byte
	least atomic.Int64

	// Of the current loop: written by the caller before state, read by those who have taken items of it.
	fn    func(worker, lo, hi int)
	items int

	parked []parking // by worker
	closed atomic.Bool
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
	p.parked = make([]parking, p.n)
	for w := 1; w < p.n; w++ {
		p.parked[w].wake = make(chan struct{}, 1)
		go p.worker(w)
	}
	return p
}

func (p *pool) worker(w int) {
	for p.await(w) {
		p.take(w)
	}
}

// await returns when there are items to take, spinning first and sleeping later. It returns false once the pool is
// closed.
func (p *pool) await(w int) bool {
	var since time.Time
	for !p.closed.Load() {
		for range spinBatch {
			if uint32(p.state.Load()) > 0 {
				return true
			}
			p.pause()
		}
		runtime.Gosched() // between steps there are readers of new tokens to run
		switch {
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > spinFor:
			p.park(&p.parked[w])
			since = time.Time{}
		}
	}
	return false
}

// park sleeps until the next loop. One that began since the last look has either seen the thread asleep and will
// wake it, or is seen here.
func (p *pool) park(s *parking) {
	s.asleep.Store(true)
	if (uint32(p.state.Load()) > 0 || p.closed.Load()) && s.asleep.CompareAndSwap(true, false) {
		return
	}
	<-s.wake
}

// run calls fn on disjoint ranges that cover [0,items), each at least `least` items where that many are left,
// and returns when all calls have. Ranges shrink as the work runs out: long runs of memory first, for the
// prefetcher, and a balanced end. fn gets the number of the thread that it runs on, below p.n.
func (p *pool) run(items, least int, fn func(worker, lo, hi int)) {
	if items <= 0 {
		return
	}
	if p.n == 1 || items <= least {
		fn(0, 0, items)
		return
	}
	p.fn, p.items = fn, items
	p.least.Store(int64(max(1, least)))
	p.done.Store(0)
	p.state.Store((p.state.Load()>>32+1)<<32 | uint64(items))
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

// take runs items as long as there are any.
func (p *pool) take(w int) {
	for {
		s := p.state.Load()
		left := int64(uint32(s))
		if left == 0 {
			return
		}
		n := min(max(left/int64(2*p.n), p.least.Load()), left)
		// Success means that the loop is the one that was looked at, and that it cannot end before these items
		// do: what the caller wrote for it may be read.
		if p.state.CompareAndSwap(s, s-uint64(n)) {
			lo := p.items - int(left)
			p.fn(w, lo, lo+int(n))
			p.done.Add(n)
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
