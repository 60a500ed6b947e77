// Package pool keeps models loaded: it admits them by memory, lends them to requests, keeps them for a while after
// their last use, and gives up the one that was idle longest where another needs its memory.
//
// It knows keys and bytes; what a model is, where it lies and who asks for it belongs to its callers.
package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// A Model is what a pool holds.
type Model interface {
	Bytes() int64 // of memory that it takes
	// Current returns an error where what the key names now is something else than what was loaded. It is asked before
	// each lease, so it takes no longer than looking at some files.
	Current() error
	Close() error
}

// Options say how a pool works. Open is required.
type Options[M Model] struct {
	// Open loads the model of a key into at most room bytes (0: no limit is known). Loads of different keys run at
	// the same time.
	Open func(ctx context.Context, key string, room int64) (M, error)
	// Need estimates the bytes that a model takes at least and would like to take. Nil: 0 and 0.
	Need func(ctx context.Context, key string) (least, want int64, err error)

	Limit     int64          // bytes of all models together; 0: none
	MaxModels int            // models at once; 0: no limit
	KeepAlive *time.Duration // for models that nobody uses; nil: 5 minutes; 0: they go at once; negative: for good
	Closed    func(key string, err error)
}

// A Pool holds loaded models. Its methods may be called from many goroutines.
type Pool[M Model] struct {
	o      Options[M]
	ctx    context.Context // ends the loads
	cancel context.CancelFunc

	mu      sync.Mutex
	entries map[string]*entry[M]
	retired map[*entry[M]]bool  // no longer what their keys name: they go when nobody uses them
	heirs   map[string]heritage // of retired ones whose keys were not loaded again
	used    int64               // bytes of loaded, loading and closing models
	count   int                 // the same models, counted
	closed  bool
	changed chan struct{} // closed and replaced whenever a model was closed
}

// An entry is a model on its way in, or loaded, or on its way out.
type entry[M Model] struct {
	key   string
	ready chan struct{} // closed when loading has ended
	err   error         // of loading; set before ready is closed
	model M

	// Guarded by Pool.mu.
	loaded  bool
	bytes   int64 // while it is loading: reserved
	least   int64 // of bytes, that it cannot do without
	leases  int
	held    int // of the leases: see Use.Held
	waiters int
	heritage
	since   time.Time // loaded
	used    time.Time // last use ended or began
	expires time.Time // zero: never, or in use
	timer   *time.Timer
	leaving bool // closed as soon as nobody uses it
}

// heritage is what the model of a key leaves to the next one, when the key has come to name another. It does not hold
// the model, which may be large.
type heritage struct {
	keep  *time.Duration // nil: the pool's
	owner string         // who decides how long it stays, see Use.By
	names []string       // by which it was asked for, the first first
}

// ErrClosed refuses leases of a pool that is closed.
var ErrClosed = errors.New("pool: closed")

// A FullError refuses a model for which there is no room while the others are in use.
type FullError struct {
	Need, Used, Limit int64
	Models, MaxModels int
	Holders           []Holder // the models in use, the largest first
}

// A Holder is a model in use, which keeps its memory.
type Holder struct {
	Name         string // by which it was asked for; "": nobody said
	Bytes, Least int64  // that it takes, and that it needs at least: what is between them is for cached prompts
}

func (e *FullError) Error() string {
	if e.MaxModels > 0 && e.Models >= e.MaxModels {
		return fmt.Sprintf("%d models are in use, at most %d may be loaded", e.Models, e.MaxModels)
	}
	s := fmt.Sprintf("the model needs %d MiB, and models in use take %d of %d MiB", up(e.Need), up(e.Used), e.Limit>>20)
	for i, h := range e.Holders {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		if h.Name == "" {
			h.Name = "one"
		}
		if s += fmt.Sprintf("%s%s %d MiB", sep, h.Name, up(h.Bytes)); h.Bytes > h.Least {
			s += fmt.Sprintf(" (%d of them for cached prompts, which a smaller context leaves free)", (h.Bytes-h.Least)>>20)
		}
	}
	return s
}

// up is a number of bytes in MiB, rounded up.
func up(n int64) int64 { return (n + 1<<20 - 1) >> 20 }

// A TooLargeError refuses a model that does not fit even alone.
type TooLargeError struct{ Need, Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf(
		"the model needs %d MiB of memory, and models may take %d MiB: take a smaller model or a larger limit",
		e.Need>>20,
		e.Limit>>20,
	)
}

// New returns an empty pool.
func New[M Model](o Options[M]) *Pool[M] {
	if o.KeepAlive == nil {
		o.KeepAlive = new(5 * time.Minute)
	}
	p := &Pool[M]{
		o: o, entries: map[string]*entry[M]{}, changed: make(chan struct{}),
		retired: map[*entry[M]]bool{}, heirs: map[string]heritage{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// A Use says what a lease is for.
type Use struct {
	// Keep is how long the model stays after this lease (0: it goes at once, negative: for good); nil leaves what an
	// earlier lease of this load said.
	Keep *time.Duration
	// By is who asks. Whoever made a model load decides how long it stays, and those who ask as "" decide that of every
	// model: Keep of others is not heeded.
	By string
	// Name is what the model was asked for by: see Status.Names.
	Name string
	// Held says that the lease comes back when somebody closes the model, not when a request ends: others do not wait
	// for that.
	Held bool
}

// A Lease is the right to use a model until Release.
type Lease[M Model] struct {
	Model  M
	Cold   bool // this lease waited for the model to be loaded
	Heeded bool // Use.Keep was heeded, or nil

	p    *Pool[M]
	e    *entry[M]
	held bool
	back bool // released; guarded by Pool.mu
}

// Acquire is Lend for those who may decide about every model.
func (p *Pool[M]) Acquire(ctx context.Context, key string, keep *time.Duration) (*Lease[M], error) {
	return p.Lend(ctx, key, Use{Keep: keep})
}

// Lend lends the model of a key and loads it first where that is needed; many callers wait for one load, and nobody for
// the load of another key. A model that is no longer what the key names is lent no more: the key is loaded anew, while
// those who have leases go on with theirs.
func (p *Pool[M]) Lend(ctx context.Context, key string, u Use) (*Lease[M], error) {
	cold := false
	for tries := 3; ; tries-- {
		e, waited, err := p.enter(ctx, key, u)
		if err != nil {
			return nil, err
		}
		cold = cold || waited
		select {
		case <-e.ready:
		case <-ctx.Done():
			p.leave(e)
			return nil, context.Cause(ctx)
		}
		if e.err != nil {
			p.leave(e)
			return nil, e.err
		}
		if err := e.model.Current(); err != nil {
			p.retire(e)
			if tries == 1 {
				return nil, err
			}
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		e.waiters--
		l := p.lease(e, u.Held)
		l.Cold, l.Heeded = cold, u.Keep == nil || e.obeys(u.By)
		return l, nil
	}
}

// lease gives out a lease of a loaded model.
func (p *Pool[M]) lease(e *entry[M], held bool) *Lease[M] {
	e.leases++
	if held {
		e.held++
	}
	p.stopTimer(e)
	e.used = time.Now()
	return &Lease[M]{Model: e.model, Heeded: true, p: p, e: e, held: held}
}

// Share returns another lease of the same loaded model, whatever its key names now, for a request on behalf of who has
// this one. It is refused with ErrClosed where this one was released.
func (l *Lease[M]) Share() (*Lease[M], error) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.back {
		return nil, ErrClosed
	}
	return l.p.lease(l.e, false), nil
}

// retire takes back a waiter for a model that is no longer what its key names, and lets the model go.
func (p *Pool[M]) retire(e *entry[M]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.waiters--
	if p.entries[e.key] == e {
		delete(p.entries, e.key)
		p.retired[e] = true
		p.heirs[e.key] = e.heritage
		p.stopTimer(e)
		e.leaving = true
	}
	p.idle(e)
}

// obeys reports whether somebody decides how long the model stays.
func (e *entry[M]) obeys(by string) bool { return by == "" || by == e.owner }

// maxNames bounds what is noted of the names of one model.
const maxNames = 64

// note takes over what a lease says, except for the time that the model stays where others decide that.
func (e *entry[M]) note(u Use) {
	if u.Name != "" && len(e.names) < maxNames && !slices.Contains(e.names, u.Name) {
		e.names = append(e.names, u.Name)
	}
	if u.Keep == nil || !e.obeys(u.By) {
		return
	}
	e.keep, e.owner = new(*u.Keep), u.By
	e.leaving = false
}

// leave takes back a waiter that did not get a lease.
func (p *Pool[M]) leave(e *entry[M]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.waiters--
	if e.loaded {
		p.idle(e)
	}
}

// enter finds the entry of a key, or starts to load it, and counts the caller as a waiter. It waits while the
// entry is being closed.
func (p *Pool[M]) enter(ctx context.Context, key string, u Use) (e *entry[M], cold bool, err error) {
	var least, want int64
	known := false
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, false, ErrClosed
		}
		if e := p.entries[key]; e != nil {
			if e.leaving && e.leases == 0 && e.waiters == 0 && e.loaded { // it is being closed
				changed := p.changed
				p.mu.Unlock()
				if err := wait(ctx, changed); err != nil {
					return nil, false, err
				}
				continue
			}
			e.waiters++
			e.note(u)
			cold := !e.loaded
			p.mu.Unlock()
			return e, cold, nil
		}
		if !known {
			p.mu.Unlock()
			if p.o.Need != nil {
				if least, want, err = p.o.Need(ctx, key); err != nil {
					return nil, false, err
				}
			}
			known = true
			continue
		}
		room, victims, err := p.makeRoom(least, want)
		if err != nil {
			p.mu.Unlock()
			return nil, false, err
		}
		if len(victims) > 0 || room < 0 {
			changed := p.changed
			p.mu.Unlock()
			for _, v := range victims {
				p.shut(v)
			}
			if len(victims) == 0 {
				if err := wait(ctx, changed); err != nil {
					return nil, false, err
				}
			}
			continue
		}
		e := &entry[M]{key: key, ready: make(chan struct{}), waiters: 1, bytes: room, least: least, heritage: heritage{owner: u.By}}
		if old, ok := p.heirs[key]; ok { // the same model to those who asked for it
			e.heritage = old
			delete(p.heirs, key)
		}
		e.note(u)
		p.entries[key] = e
		p.used += room
		p.count++
		p.mu.Unlock()
		go p.load(e, room)
		return e, true, nil
	}
}

func wait(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// makeRoom chooses the idle models that must go for another one, longest unused first. It returns the bytes to
// reserve where nothing must go, and room < 0 where others are being closed that will make room.
func (p *Pool[M]) makeRoom(least, want int64) (room int64, victims []*entry[M], err error) {
	if p.o.Limit > 0 && least > p.o.Limit {
		return 0, nil, &TooLargeError{least, p.o.Limit}
	}
	fits := func(used int64, count int) bool {
		return (p.o.Limit == 0 || used+least <= p.o.Limit) && (p.o.MaxModels == 0 || count < p.o.MaxModels)
	}
	if fits(p.used, p.count) {
		room = max(least, want)
		if p.o.Limit > 0 {
			room = min(room, p.o.Limit-p.used)
		}
		return room, nil, nil
	}
	var idle []*entry[M]
	used, count := p.used, p.count
	for e := range p.retired {
		if e.held == 0 {
			used -= e.bytes
			count--
		}
	}
	for _, e := range p.entries {
		switch {
		case !e.loaded || e.leases > 0 || e.waiters > 0:
		case e.leaving: // on its way out
			used -= e.bytes
			count--
		default:
			idle = append(idle, e)
		}
	}
	if fits(used, count) {
		return -1, nil, nil
	}
	sort.Slice(idle, func(i, j int) bool { return idle[i].used.Before(idle[j].used) })
	for _, e := range idle {
		victims = append(victims, e)
		used -= e.bytes
		count--
		if fits(used, count) {
			for _, v := range victims {
				p.stopTimer(v)
				v.leaving = true
			}
			return 0, victims, nil
		}
	}
	spare := int64(0) // that models which are loading may leave: they take what there is until they know their size
	for _, e := range p.entries {
		if !e.loaded {
			spare += e.bytes - e.least
		}
	}
	if spare > 0 && fits(used-spare, count) {
		return -1, nil, nil
	}
	full := &FullError{Need: least, Used: used, Limit: p.o.Limit, Models: count, MaxModels: p.o.MaxModels}
	for _, e := range p.entries {
		if e.loaded && !e.leaving && !slices.Contains(idle, e) {
			h := Holder{Bytes: e.bytes, Least: e.least}
			if len(e.names) > 0 {
				h.Name = e.names[0]
			}
			full.Holders = append(full.Holders, h)
		}
	}
	slices.SortFunc(full.Holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name))
	})
	return 0, nil, full
}

// load runs in its own goroutine.
func (p *Pool[M]) load(e *entry[M], room int64) {
	m, err := p.o.Open(p.ctx, e.key, room)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		e.err = err
		delete(p.entries, e.key)
		p.used -= e.bytes
		p.count--
		p.announce()
		close(e.ready)
		return
	}
	e.model, e.loaded = m, true
	p.used += m.Bytes() - e.bytes
	if less := m.Bytes() < e.bytes; less {
		defer p.announce() // others may have room now
	}
	e.bytes = m.Bytes()
	e.since, e.used = time.Now(), time.Now()
	close(e.ready)
	p.idle(e)
}

// announce tells those who wait for room.
func (p *Pool[M]) announce() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Release gives the lease back. Further calls do nothing.
func (l *Lease[M]) Release() {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.back {
		return
	}
	l.back = true
	l.e.leases--
	if l.held {
		l.e.held--
	}
	l.e.used = time.Now()
	l.p.idle(l.e)
}

// idle starts the time to live of a model that nobody uses.
func (p *Pool[M]) idle(e *entry[M]) {
	if e.leases > 0 || e.waiters > 0 || !e.loaded {
		return
	}
	p.stopTimer(e)
	switch keep := p.keep(e); {
	case e.leaving || keep == 0 || p.closed:
		e.leaving = true
		go p.shut(e)
	case keep > 0:
		e.expires = time.Now().Add(keep)
		e.timer = time.AfterFunc(keep, func() { p.expire(e) })
	}
}

// keep is how long a model stays that nobody uses.
func (p *Pool[M]) keep(e *entry[M]) time.Duration {
	if e.keep != nil {
		return *e.keep
	}
	return *p.o.KeepAlive
}

func (p *Pool[M]) stopTimer(e *entry[M]) {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	e.expires = time.Time{}
}

// expire closes a model whose time is over, unless it is in use again.
func (p *Pool[M]) expire(e *entry[M]) {
	p.mu.Lock()
	if e.leases > 0 || e.waiters > 0 || e.leaving || e.expires.IsZero() || time.Now().Before(e.expires) {
		p.mu.Unlock()
		return
	}
	e.leaving = true
	p.mu.Unlock()
	p.shut(e)
}

// shut closes a model that is leaving and that nobody uses.
func (p *Pool[M]) shut(e *entry[M]) {
	err := e.model.Close()
	if p.o.Closed != nil {
		p.o.Closed(e.key, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[e.key] == e {
		delete(p.entries, e.key)
	}
	delete(p.retired, e)
	p.used -= e.bytes
	p.count--
	p.announce()
}

// ErrNotYours refuses to unload a model that somebody else made load.
var ErrNotYours = errors.New("pool: the model was loaded by somebody else")

// Unload closes a model as soon as nobody uses it. It reports whether the model was there. by is as in Use.
func (p *Pool[M]) Unload(key, by string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[key]
	switch {
	case e == nil:
		return false, nil
	case !e.obeys(by):
		return true, ErrNotYours
	}
	if !e.leaving {
		if e.leases > 0 || e.waiters > 0 || !e.loaded {
			e.leaving = true
		} else {
			p.stopTimer(e)
			e.leaving = true
			go p.shut(e)
		}
	}
	return true, nil
}

// Prune unloads, as soon as nobody uses them, the models whose keys name nothing any more.
func (p *Pool[M]) Prune(gone func(key string) bool) {
	for _, st := range p.Loaded(nil) {
		if !st.Leaving && gone(st.Key) {
			p.Unload(st.Key, "") //nolint:errcheck // those who ask as "" may
		}
	}
}

// Status describes a model of the pool.
type Status struct {
	Key     string
	Names   []string // by which it was asked for since it was loaded, the first first
	Loading bool
	Leaving bool
	Bytes   int64
	Leases  int
	Since   time.Time // loaded
	Expires time.Time // zero: in use, or for good
	Keep    time.Duration
}

// Loaded lists the models, the last used first; f, where not nil, is called for each that is loaded.
func (p *Pool[M]) Loaded(f func(Status, M)) []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*entry[M], 0, len(p.entries))
	for _, e := range p.entries {
		list = append(list, e)
	}
	for e := range p.retired {
		list = append(list, e)
	}
	sort.Slice(list, func(i, j int) bool {
		if !list[i].used.Equal(list[j].used) {
			return list[i].used.After(list[j].used)
		}
		return list[i].key < list[j].key
	})
	out := make([]Status, len(list))
	for i, e := range list {
		out[i] = Status{
			e.key,
			slices.Clone(e.names),
			!e.loaded,
			e.leaving,
			e.bytes,
			e.leases,
			e.since,
			e.expires,
			p.keep(e),
		}
		if f != nil && e.loaded && (!e.leaving || e.leases > 0) {
			f(out[i], e.model)
		}
	}
	return out
}

// Used returns the bytes that models take, those on their way in and out included, and the limit.
func (p *Pool[M]) Used() (used, limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used, p.o.Limit
}

// Close refuses new leases, ends the loads, and closes each model when its last lease is given back. It waits for
// that until ctx ends; then it returns the context's error, and models in use stay open.
func (p *Pool[M]) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for _, e := range p.entries {
		if !e.leaving && e.loaded && e.leases == 0 && e.waiters == 0 {
			p.stopTimer(e)
			e.leaving = true
			go p.shut(e)
		}
	}
	p.mu.Unlock()
	p.cancel()
	for {
		p.mu.Lock()
		n, changed := len(p.entries)+len(p.retired), p.changed
		p.mu.Unlock()
		if n == 0 {
			return nil
		}
		if err := wait(ctx, changed); err != nil {
			return fmt.Errorf("pool: %d models are still in use: %w", n, err)
		}
	}
}
