package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestPoolCoversEachItemOnce runs loops of many sizes, on more threads than there are processors too.
func TestPoolCoversEachItemOnce(t *testing.T) {
	for _, threads := range []int{1, 2, runtime.GOMAXPROCS(0), 5} {
		p := newPool(threads)
		for items := range 70 {
			for _, least := range []int{0, 1, 3, 100} {
				hits := make([]atomic.Int32, items)
				p.run(items, least, func(worker, lo, hi int) {
					if worker < 0 || worker >= threads || lo >= hi {
						t.Errorf("thread %d of %d got [%d,%d)", worker, threads, lo, hi)
					}
					for i := lo; i < hi; i++ {
						hits[i].Add(1)
					}
				})
				for i := range hits {
					if n := hits[i].Load(); n != 1 {
						t.Fatalf(
							"%d threads, %d items, least %d: item %d was done %d times",
							threads,
							items,
							least,
							i,
							n,
						)
					}
				}
			}
		}
		p.close()
	}
}

// TestPoolKeepsLoopsApart runs loops back to back, whose shares are the same ones time and again: a thread that is late
// for one must neither repeat its items nor do the next one's with its function. Items are plain memory, for the race
// detector.
func TestPoolKeepsLoopsApart(t *testing.T) {
	for _, threads := range []int{2, 3, 8} {
		p := newPool(threads)
		var items [64]int
		for loop := range 2000 {
			p.run(len(items), 1+loop%3*7, func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					if items[i] != loop {
						t.Errorf("%d threads: item %d was done %d times before loop %d", threads, i, items[i], loop)
					}
					items[i] = loop + 1
				}
			})
			for i, n := range items {
				if n != loop+1 {
					t.Fatalf("%d threads: item %d was not done in loop %d", threads, i, loop)
				}
			}
		}
		p.close()
	}
}

// TestPoolWakesParkedThreads lets the threads fall asleep between loops.
func TestPoolWakesParkedThreads(t *testing.T) {
	p := newPool(2)
	defer p.close()
	for range 5 {
		deadline := time.Now().Add(10 * time.Second)
		for !p.parked[1].asleep.Load() {
			if time.Now().After(deadline) {
				t.Fatal("the thread does not park")
			}
			time.Sleep(spinFor)
		}
		var done atomic.Int32
		var both [2]atomic.Int32
		p.run(2, 1, func(worker, lo, hi int) {
			done.Add(int32(hi - lo))
			both[worker].Add(1)
			for start := time.Now(); done.Load() < 2 && time.Since(start) < 10*time.Second; {
				runtime.Gosched() // until the other thread has its half
			}
		})
		if done.Load() != 2 || both[1].Load() != 1 {
			t.Fatalf("%d of 2 items done, %d by the parked thread", done.Load(), both[1].Load())
		}
	}
}

// TestPoolCloseEndsThreads counts goroutines.
func TestPoolCloseEndsThreads(t *testing.T) {
	before := runtime.NumGoroutine()
	p := newPool(4)
	p.run(8, 1, func(int, int, int) {})
	p.close()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}
