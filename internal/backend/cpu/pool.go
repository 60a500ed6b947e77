package cpu

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A pool runs loops on a fixed number of threads, the caller's among them. A step has a hundred fork-joins of
// 10 to 500 microseconds, and waking a parked thread takes about 120 of them (measured, more on virtual
// machines), so workers spin between loops and park only after spinFor without work.
type pool struct {
	n     int  // threads, the caller included
	yield bool // more threads than processors: let others run while waiting

	gen  atomic.Uint64 // number of the current loop
	_    [56]byte
	next atomic.Int64 // first item not yet taken
	_    [56]byte
	done atomic.Int32 // workers that have finished the current loop
	_    [60]byte

	// Of the current loop; written by the caller before gen moves.
	fn    func(worker, lo, hi int)
	items int
	least int

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
	seen := uint64(0)
	for {
		p.await(w, seen)
		if p.closed.Load() {
			return
		}
		seen++
		p.take(w)
		p.done.Add(1)
	}
}

// await returns when the generation has moved past seen, spinning first and sleeping later.
func (p *pool) await(w int, seen uint64) {
	var since time.Time
	for {
		for range spinBatch {
			if p.gen.Load() != seen {
				return
			}
			p.pause()
		}
		switch {
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > spinFor:
			s := &p.parked[w]
			s.asleep.Store(true)
			// A loop started since the last look has either seen asleep and will wake us, or is seen here.
			if p.gen.Load() != seen && s.asleep.CompareAndSwap(true, false) {
				return
			}
			<-s.wake
			since = time.Time{}
		}
	}
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
	p.fn, p.items, p.least = fn, items, max(1, least)
	p.next.Store(0)
	p.done.Store(0)
	p.gen.Add(1)
	for w := 1; w < p.n; w++ {
		if s := &p.parked[w]; s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
			s.wake <- struct{}{}
		}
	}
	p.take(0)
	for spins := 0; p.done.Load() != int32(p.n-1); spins++ {
		p.pause()
		if spins > 1<<16 { // a worker that has lost its processor needs ours
			runtime.Gosched()
		}
	}
	p.fn = nil
}

func (p *pool) take(w int) {
	total := int64(p.items)
	for {
		lo := p.next.Load()
		if lo >= total {
			return
		}
		n := max((total-lo)/int64(2*p.n), int64(p.least))
		hi := min(lo+n, total)
		if p.next.CompareAndSwap(lo, hi) {
			p.fn(w, int(lo), int(hi))
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
	p.gen.Add(1)
	for w := 1; w < p.n; w++ {
		if s := &p.parked[w]; s.asleep.CompareAndSwap(true, false) {
			s.wake <- struct{}{}
		}
	}
}
