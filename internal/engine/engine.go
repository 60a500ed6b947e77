// Package engine runs requests on one loaded model: many at once, in ragged batches, over one cache.
//
// It owns the scheduler, the steps, the streams and the counts of a loaded model. One goroutine drives the
// executor. It knows tokens; it knows no text, templates, dialects, files or HTTP.
//
// What a request generates depends on the model, the request and its seed alone. Timing decides how much of a
// prompt is computed in a step, never what comes out.
package engine

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/fairshare"
	"github.com/baleenrun/baleen/internal/kv"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/sample"
)

// An Engine runs requests on one compiled plan.
type Engine struct {
	// Fixed at load.
	x          backend.Exec
	o          Options
	vocab      int
	capacity   int // positions of one sequence
	longFrom   int // see plan.Plan
	maxRunning int
	admitRoom  int
	resumeRoom int
	now        func() time.Time

	// The engine goroutine's: every request is in one of these lists, in order.
	cache   *kv.Cache
	waiting []*sequence
	running []*sequence
	swapped []*sequence
	budget  prefillBudget
	stats   Stats
	turns   turns

	// The step's, made at load.
	batch                  backend.Batch
	entries                []*sequence // of the batch, in its order
	prefill                []*sequence
	decodeRows, promptRows int
	maskBy                 time.Time // until when late masks are waited for; zero: none was late yet
	need                   []int
	scratch                *sample.Scratch
	row                    []float32

	// Between callers and the engine goroutine.
	places   *fairshare.Shares // of requests that wait to be admitted, those in the inbox included
	wakeup   chan struct{}
	stopped  chan struct{} // closed when the goroutine has ended
	closing  sync.Once
	closeErr error

	mu     sync.Mutex
	inbox  []*sequence
	order  uint64
	closed bool
	public Stats
}

// New starts an engine. It owns x from now on and closes it in Close.
func New(x backend.Exec, p *plan.Plan, o Options) (*Engine, error) {
	e, err := build(x, p, o)
	if err != nil {
		return nil, err
	}
	go e.run()
	return e, nil
}

// build makes an engine that does not run yet.
func build(x backend.Exec, p *plan.Plan, o Options) (*Engine, error) {
	if err := o.complete(p); err != nil {
		return nil, err
	}
	c := kv.Config{Pages: o.Exec.Pages, SnapshotEvery: o.SnapshotEvery, SwapBytes: max(o.SwapBytes, 0)}
	for _, g := range p.Groups {
		c.Windows = append(c.Windows, g.Window)
	}
	if len(p.States) > 0 {
		c.Slots = o.Exec.Slots
	}
	cache, err := kv.New(c, x)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	lim := o.Exec
	e := &Engine{
		x: x, o: o, vocab: p.Vocab, now: o.Now, cache: cache,
		capacity:   min(p.Context, cache.Capacity()),
		longFrom:   p.LongFrom,
		maxRunning: min(lim.MaxSeqs, lim.MaxRows, lim.MaxOut),
		admitRoom:  admitRoom,
		resumeRoom: resumeRoom,
		need:       make([]int, len(p.Groups)),
		scratch:    sample.NewScratch(p.Vocab),
		row:        make([]float32, p.Vocab),
		turns:      turns{last: map[string]uint64{}},
		places:     fairshare.New(int64(o.MaxQueue)),
		wakeup:     make(chan struct{}, 1),
		stopped:    make(chan struct{}),
	}
	e.budget = newPrefillBudget(o.Stretch, lim.MaxRows, lim.MaxSeqs)
	e.batch.Tokens = make([]int32, 0, lim.MaxRows)
	e.batch.Seqs = make([]backend.Seq, 0, lim.MaxSeqs)
	e.batch.Out = make([]int32, 0, lim.MaxOut)
	e.entries = make([]*sequence, 0, lim.MaxSeqs)
	e.prefill = make([]*sequence, 0, lim.MaxSeqs)
	e.running = make([]*sequence, 0, lim.MaxSeqs)
	e.stats.Groups = make([]PageStats, len(p.Groups))
	e.public.Groups = make([]PageStats, len(p.Groups))
	for g := range p.Groups {
		e.stats.Groups[g].Window = p.Groups[g].Window
	}
	e.publish(0)
	return e, nil
}

// run is the engine goroutine.
func (e *Engine) run() {
	defer close(e.stopped)
	for e.intake() {
		if !e.step() {
			<-e.wakeup
		}
	}
	for _, list := range [][]*sequence{e.running, e.swapped, e.waiting} {
		for _, s := range list {
			e.finish(s, FinishError, ErrClosed)
		}
	}
}

// step runs one step of the batch and reports whether there was anything to run.
// RATIONALE: Why does the engine yield between steps?
func (e *Engine) step() bool {
	start := e.now()
	e.reap()
	e.drawWaiting()
	e.lengthen()
	e.admit()
	if !e.schedule() {
		e.publish(0)
		return false
	}
	e.runBatch()
	d := e.now().Sub(start)
	e.budget.observe(e.decodeRows, e.promptRows, d)
	e.publish(d)
	// The next step will hold this processor, and the executor's threads the others, for as long as it takes.
	// Readers that have just become runnable go first: else tokens reach them in bursts.
	runtime.Gosched()
	return true
}

// intake takes new requests over; it returns false once the engine is closed.
func (e *Engine) intake() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, s := range e.inbox {
		e.waiting = insert(e.waiting, s)
		e.inbox[i] = nil
	}
	e.inbox = e.inbox[:0]
	return !e.closed
}

// reap ends the sequences that were cancelled; their pages are free for this very step.
func (e *Engine) reap() {
	for _, list := range []*[]*sequence{&e.running, &e.swapped, &e.waiting} {
		kept := (*list)[:0]
		for _, s := range *list {
			if !s.stream.cancelled.Load() {
				kept = append(kept, s)
				continue
			}
			e.abandon(s)
			e.cancel(s)
		}
		clear((*list)[len(kept):])
		*list = kept
	}
}

// publish makes the counters visible.
func (e *Engine) publish(d time.Duration) {
	st := &e.stats
	st.Running, st.Waiting, st.Swapped = len(e.running), len(e.waiting), len(e.swapped)
	for g := range st.Groups {
		l := e.cache.Pages(g)
		st.Groups[g] = PageStats{st.Groups[g].Window, l.Total, l.Free, l.Cached, l.Held}
	}
	l := e.cache.Slots()
	st.SlotsFree, st.SlotsCached, st.SlotsHeld = l.Free, l.Cached, l.Held
	st.SwapBytes, st.Evicted = e.cache.SwapBytes(), e.cache.Evicted()
	st.ChunkRows = int(e.budget.rows)
	if d > 0 {
		st.StepTime = d
	}
	e.mu.Lock()
	groups := e.public.Groups
	copy(groups, st.Groups)
	e.public = *st
	e.public.Groups = groups
	e.mu.Unlock()
}

// Stats returns the counters as of the last step.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.public
	s.Groups = append([]PageStats(nil), s.Groups...)
	s.Waiting += len(e.inbox)
	return s
}

// Capacity returns how many tokens one sequence can have, prompt and output together.
func (e *Engine) Capacity() int { return e.capacity }

// Close ends all streams with ErrClosed and closes the executor. A second call waits for the first.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.mu.Lock()
		e.closed = true
		e.mu.Unlock()
		e.wake()
		<-e.stopped
		if err := e.x.Close(); err != nil {
			e.closeErr = fmt.Errorf("engine: %w", err)
		}
	})
	return e.closeErr
}

// wake makes the engine goroutine look for news.
func (e *Engine) wake() {
	select {
	case e.wakeup <- struct{}{}:
	default:
	}
}

// ErrClosed ends the streams of an engine that is closed, and refuses new ones.
var ErrClosed = errors.New("engine: closed")
