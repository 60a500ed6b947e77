package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type fake struct {
	key    string
	bytes  int64
	closed atomic.Bool
	f      *factory
	file   int64 // contents of the file that it was loaded from
}

func (m *fake) Current() error {
	if m.file != m.f.file.Load() {
		return errChanged
	}
	return nil
}

var errChanged = errors.New("the file was changed")

func (m *fake) Bytes() int64 { return m.bytes }

func (m *fake) Close() error {
	if m.closed.Swap(true) {
		panic("closed twice: " + m.key)
	}
	time.Sleep(m.f.closing)
	m.f.used.Add(-m.bytes)
	return nil
}

// factory makes models whose key is their size.
type factory struct {
	loads   atomic.Int64
	used    atomic.Int64 // bytes of open models
	file    atomic.Int64 // contents of the files of all keys
	loading time.Duration
	closing time.Duration
	fail    error
	block   chan struct{}
}

func size(key string) int64 {
	var n int64
	fmt.Sscanf(key[1:], "%d", &n) //nolint:errcheck // keys of tests
	return n
}

func (f *factory) open(ctx context.Context, key string, _ int64) (*fake, error) {
	f.loads.Add(1)
	if f.block != nil {
		select {
		case <-f.block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	time.Sleep(f.loading)
	if f.fail != nil {
		return nil, f.fail
	}
	m := &fake{key: key, bytes: size(key), f: f, file: f.file.Load()}
	f.used.Add(m.bytes)
	return m, nil
}

func (f *factory) pool(o Options[*fake]) *Pool[*fake] {
	o.Open = f.open
	o.Need = func(_ context.Context, key string) (int64, int64, error) { return size(key), size(key), nil }
	return New(o)
}

func must(t *testing.T, p *Pool[*fake], key string, keep *time.Duration) *Lease[*fake] {
	t.Helper()
	l, err := p.Acquire(t.Context(), key, keep)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func keys(p *Pool[*fake]) []string {
	var out []string
	for _, s := range p.Loaded(nil) {
		out = append(out, s.Key)
	}
	slices.Sort(out)
	return out
}

func same(t *testing.T, p *Pool[*fake], want ...string) {
	t.Helper()
	if got := keys(p); !slices.Equal(got, want) {
		t.Errorf("loaded: %v, want %v", got, want)
	}
}

func lasting(d time.Duration) *time.Duration { return &d }

func unload(p *Pool[*fake], key string) bool {
	was, err := p.Unload(key, "")
	return was && err == nil
}

// TestModelsThatAreGone unloads what nobody can name any more, when nobody uses it.
func TestModelsThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1)})
		must(t, p, "a1", nil).Release()
		used := must(t, p, "b1", nil)
		must(t, p, "c1", nil).Release()
		p.Prune(func(key string) bool { return key != "c1" })
		synctest.Wait()
		same(t, p, "b1", "c1")
		used.Release()
		synctest.Wait()
		same(t, p, "c1")
		closeAll(t, p, f)
	})
}

// TestWhoDecidesHowLongAModelStays gives it to whoever made it load, and to those who may decide about every model.
func TestWhoDecidesHowLongAModelStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		p := f.pool(Options[*fake]{})
		lend := func(key, by string, keep time.Duration) bool {
			l, err := p.Lend(t.Context(), key, Use{Keep: &keep, By: by, Name: "of " + by})
			if err != nil {
				t.Fatal(err)
			}
			l.Release()
			synctest.Wait()
			return l.Heeded
		}
		if !lend("a1", "", -1) || lend("a1", "guest", 0) || lend("a1", "guest", time.Second) {
			t.Error("a guest decides about a model that was loaded for all")
		}
		same(t, p, "a1")
		if was, err := p.Unload("a1", "guest"); !was || !errors.Is(err, ErrNotYours) {
			t.Errorf("a guest unloads it: %v %v", was, err)
		}
		same(t, p, "a1")
		if !lend("b1", "guest", time.Hour) || lend("b1", "other", 0) {
			t.Error("not whoever loaded it decides")
		}
		same(t, p, "a1", "b1")
		if list := p.Loaded(nil); !slices.Equal(list[1].Names, []string{"of guest", "of other"}) {
			t.Errorf("asked for as %+v", list)
		}
		if !lend("b1", "guest", 0) {
			t.Error("whoever loaded it does not decide")
		}
		same(t, p, "a1")
		if was, err := p.Unload("a1", ""); !was || err != nil {
			t.Errorf("%v %v", was, err)
		}
		closeAll(t, p, f)
	})
}

func TestOneLoadForManyWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{loading: time.Second}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1)})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { must(t, p, "a1", nil).Release() })
		}
		wg.Wait()
		if f.loads.Load() != 1 {
			t.Errorf("%d loads", f.loads.Load())
		}
		closeAll(t, p, f)
	})
}

func closeAll(t *testing.T, p *Pool[*fake], f *factory) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Error(err)
	}
	if n := f.used.Load(); n != 0 {
		t.Errorf("%d bytes stay in use", n)
	}
	if _, err := p.Acquire(t.Context(), "a1", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed pool lends: %v", err)
	}
}

func TestNobodyWaitsForAnotherLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{block: make(chan struct{})}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1)})
		done := make(chan error, 1)
		go func() {
			l, err := p.Acquire(t.Context(), "b1", nil)
			if err == nil {
				l.Release()
			}
			done <- err
		}()
		synctest.Wait()
		open := f.block
		f.block = nil
		begin := time.Now()
		must(t, p, "a1", nil).Release()
		if d := time.Since(begin); d > 0 {
			t.Errorf("waited %v", d)
		}
		close(open)
		if err := <-done; err != nil {
			t.Error(err)
		}
		closeAll(t, p, f)
	})
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		p := f.pool(Options[*fake]{KeepAlive: lasting(time.Minute)})
		must(t, p, "a1", nil).Release()
		time.Sleep(59 * time.Second)
		must(t, p, "a1", nil).Release() // starts anew
		time.Sleep(59 * time.Second)
		same(t, p, "a1")
		time.Sleep(2 * time.Second)
		same(t, p)
		must(t, p, "b1", lasting(time.Hour)).Release()
		must(t, p, "b1", nil).Release() // keeps what was said
		time.Sleep(59 * time.Minute)
		same(t, p, "b1")
		l := must(t, p, "b1", lasting(0))
		time.Sleep(2 * time.Hour) // in use
		same(t, p, "b1")
		l.Release()
		l.Release() // does nothing
		synctest.Wait()
		same(t, p)
		must(t, p, "c1", lasting(-1)).Release()
		time.Sleep(1000 * time.Hour)
		same(t, p, "c1")
		closeAll(t, p, f)
	})
}

// TestKeepAliveOfThePool leaves models to what the pool says: not at all is another answer than nothing.
func TestKeepAliveOfThePool(t *testing.T) {
	for _, c := range []struct {
		keep *time.Duration
		want time.Duration
	}{{nil, 5 * time.Minute}, {lasting(0), 0}, {lasting(time.Hour), time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			f := &factory{}
			p := f.pool(Options[*fake]{KeepAlive: c.keep})
			must(t, p, "a1", nil).Release()
			synctest.Wait()
			if c.want > 0 {
				time.Sleep(c.want - time.Second)
				same(t, p, "a1")
				time.Sleep(2 * time.Second)
			}
			same(t, p)
			closeAll(t, p, f)
		})
	}
}

func TestTheLongestUnusedGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{closing: time.Second}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1), Limit: 10})
		for _, key := range []string{"a4", "b3", "c3"} {
			must(t, p, key, nil).Release()
			time.Sleep(time.Second)
		}
		must(t, p, "a4", nil).Release() // now b is the oldest
		must(t, p, "d3", nil).Release()
		same(t, p, "a4", "c3", "d3")
		l := must(t, p, "c3", nil)
		must(t, p, "e7", nil).Release()
		same(t, p, "c3", "e7")
		var full *FullError
		if _, err := p.Acquire(t.Context(), "f8", nil); !errors.As(err, &full) {
			t.Errorf("got %v, want a FullError", err)
		}
		same(t, p, "c3", "e7") // nothing went for nothing
		var large *TooLargeError
		if _, err := p.Acquire(t.Context(), "g11", nil); !errors.As(err, &large) {
			t.Errorf("got %v, want a TooLargeError", err)
		}
		l.Release()
		must(t, p, "f8", nil).Release()
		same(t, p, "f8")
		closeAll(t, p, f)
	})
}

func TestMaxModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1), MaxModels: 2})
		must(t, p, "a1", nil).Release()
		time.Sleep(time.Second)
		l := must(t, p, "b1", nil)
		must(t, p, "c1", nil).Release()
		same(t, p, "b1", "c1")
		l2 := must(t, p, "c1", nil)
		var full *FullError
		if _, err := p.Acquire(t.Context(), "d1", nil); !errors.As(err, &full) {
			t.Errorf("got %v, want a FullError", err)
		}
		l.Release()
		l2.Release()
		closeAll(t, p, f)
	})
}

func TestFailedLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{fail: errors.New("damaged"), loading: time.Second}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1), Limit: 10})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := p.Acquire(t.Context(), "a10", nil); err == nil || err.Error() != "damaged" {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		f.fail = nil
		must(t, p, "b10", nil).Release() // the memory is free again
		if f.loads.Load() != 2 {
			t.Errorf("%d loads", f.loads.Load())
		}
		closeAll(t, p, f)
	})
}

func TestAWaiterThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{loading: time.Minute}
		p := f.pool(Options[*fake]{KeepAlive: lasting(time.Hour)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Acquire(ctx, "a1", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		time.Sleep(2 * time.Minute)
		same(t, p, "a1") // the load was not for nothing
		time.Sleep(time.Hour)
		same(t, p)
		closeAll(t, p, f)
	})
}

func TestUnload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{closing: time.Second}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1)})
		if unload(p, "a1") {
			t.Error("unloaded what was not there")
		}
		l := must(t, p, "a1", nil)
		unload(p, "a1")
		synctest.Wait()
		if l.Model.closed.Load() {
			t.Fatal("closed while in use")
		}
		l.Release()
		l = must(t, p, "a1", nil) // waits for the end of the old one, then loads anew
		if f.loads.Load() != 2 {
			t.Errorf("%d loads", f.loads.Load())
		}
		l.Release()
		closeAll(t, p, f)
	})
}

func TestCloseWaitsForLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1)})
		l := must(t, p, "a1", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		l.Release()
		closeAll(t, p, f)
	})
}

// TestManyAtOnce holds the limit under random use.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{loading: 3 * time.Millisecond, closing: time.Millisecond}
		p := f.pool(Options[*fake]{KeepAlive: lasting(5 * time.Millisecond), Limit: 10, MaxModels: 3})
		var wg sync.WaitGroup
		for i := range 16 {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			wg.Go(func() {
				for range 200 {
					key := fmt.Sprintf("%c%d", 'a'+rng.IntN(6), 1+rng.IntN(5))
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(20))*time.Millisecond)
					l, err := p.Acquire(ctx, key, nil)
					if err == nil {
						if l.Model.closed.Load() || l.Model.key != key {
							t.Error("a lease of a closed or wrong model")
						}
						time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
						if l.Model.closed.Load() {
							t.Error("closed during a lease")
						}
						l.Release()
					}
					if n := f.used.Load(); n > 10 {
						t.Errorf("%d bytes in use", n)
					}
					if rng.IntN(20) == 0 {
						unload(p, key)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		closeAll(t, p, f)
		if used, _ := p.Used(); used != 0 {
			t.Errorf("%d bytes are counted", used)
		}
	})
}

// TestChangedModelIsLoadedAnew: once a key names something else, no lease is given of what was loaded. Those that are
// out go on, its memory counts until they end, and what was said of how long the key stays holds for its successor.
func TestChangedModelIsLoadedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{loading: time.Second, closing: time.Second}
		p := f.pool(Options[*fake]{KeepAlive: lasting(time.Minute), Limit: 10})
		must(t, p, "a4", lasting(-1)).Release()
		old := must(t, p, "a4", nil)
		f.file.Add(1)

		var fresh [3]*Lease[*fake]
		var wg sync.WaitGroup
		for i := range fresh {
			wg.Go(func() { fresh[i] = must(t, p, "a4", nil) })
		}
		wg.Wait()
		if n := f.loads.Load(); n != 2 {
			t.Errorf("%d loads, want 2", n)
		}
		for _, l := range fresh {
			if l.Model == old.Model || l.Model != fresh[0].Model || l.Model.file != 1 || !l.Cold {
				t.Error("a lease of another model than the new one")
			}
		}
		if used, _ := p.Used(); used != 8 || old.Model.closed.Load() {
			t.Errorf(
				"%d bytes are in use, want 8 while the old lease is out; closed: %v",
				used,
				old.Model.closed.Load(),
			)
		}
		if list := p.Loaded(nil); len(list) != 2 || list[0].Leaving == list[1].Leaving {
			t.Errorf("models: %+v", list)
		}

		// A third does not fit beside both, and waits for the old one instead of being refused.
		third := make(chan *Lease[*fake])
		go func() { third <- must(t, p, "b3", nil) }()
		synctest.Wait()
		old.Release()
		(<-third).Release()
		if !old.Model.closed.Load() {
			t.Error("the old model was not closed with its last lease")
		}
		for _, l := range fresh {
			l.Release()
		}
		time.Sleep(time.Hour)
		if list := p.Loaded(nil); len(list) != 1 || list[0].Key != "a4" || list[0].Keep >= 0 {
			t.Errorf("an hour later: %+v, want a4 for good", list)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestModelThatGoesOnChanging ends with the error instead of loading for ever.
func TestModelThatGoesOnChanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		p := f.pool(Options[*fake]{})
		open := f.open
		p.o.Open = func(ctx context.Context, key string, room int64) (*fake, error) {
			m, err := open(ctx, key, room)
			f.file.Add(1)
			return m, err
		}
		if _, err := p.Acquire(t.Context(), "a1", nil); !errors.Is(err, errChanged) || f.loads.Load() > 5 {
			t.Errorf("error %v after %d loads", err, f.loads.Load())
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := f.used.Load(); n != 0 {
			t.Errorf("%d bytes are open", n)
		}
	})
}

// TestHeldLeaseIsNotWaitedFor: a request may wait for those that run, and nobody waits for a program to close a model.
// Who holds one runs requests on it, whatever its key names now.
func TestHeldLeaseIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1), Limit: 10})
		held, err := p.Lend(t.Context(), "a6", Use{Held: true})
		if err != nil {
			t.Fatal(err)
		}
		f.file.Add(1)
		var full *FullError
		if _, err := p.Acquire(t.Context(), "a6", nil); !errors.As(err, &full) {
			t.Errorf("the new contents beside what is held: %v", err)
		}
		shared, err := held.Share()
		if err != nil || shared.Model != held.Model || shared.Model.file != 0 {
			t.Errorf("shared: %v", err)
		}
		held.Release()
		if _, err := held.Share(); !errors.Is(err, ErrClosed) {
			t.Errorf("a share of what was given back: %v", err)
		}
		if held.Model.closed.Load() {
			t.Error("closed while a request runs on it")
		}
		fresh := make(chan *Lease[*fake])
		go func() { fresh <- must(t, p, "a6", nil) }()
		synctest.Wait()
		shared.Release()
		if l := <-fresh; l.Model.file != 1 || !held.Model.closed.Load() {
			t.Errorf("contents %d; the old ones closed: %v", l.Model.file, held.Model.closed.Load())
		} else {
			l.Release()
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatALoadingModelDoesNotTake: a model that is loading has all that it would like to have until its size is known. One
// that would fit beside it then waits for that, and is refused with the numbers only where it does not.
func TestWhatALoadingModelDoesNotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{loading: time.Second}
		p := f.pool(Options[*fake]{KeepAlive: lasting(-1), Limit: 10 << 20})
		p.o.Need = func(_ context.Context, key string) (int64, int64, error) {
			return size(key) / 2, 100 << 20, nil // a half is for cached prompts
		}
		var group sync.WaitGroup
		group.Go(func() { must(t, p, "a6291456", nil) })
		synctest.Wait()
		group.Go(func() {
			l, err := p.Lend(t.Context(), "b3145728", Use{Name: "second", Held: true})
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Release()
			_, err = p.Lend(t.Context(), "c4194304", Use{})
			var full *FullError
			const want = "the model needs 2 MiB, and models in use take 9 of 10 MiB: " +
				"one 6 MiB (3 of them for cached prompts, which a smaller context leaves free), " +
				"second 3 MiB (1 of them for cached prompts, which a smaller context leaves free)"
			if !errors.As(err, &full) || full.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
		group.Wait()
		if used, _ := p.Used(); used != 9<<20 {
			t.Errorf("%d bytes are used", used)
		}
	})
}
