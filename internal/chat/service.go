package chat

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/sample"
)

// Options say what a Service works with.
type Options struct {
	Catalog Catalog
	Pool    *pool.Pool[*Model]
	// MaxTime bounds every request; 0: not bounded.
	MaxTime time.Duration
	// Conclude asks models that only repeat a call again, where a request does not say otherwise: see repeatGuard.
	Conclude bool
	Hooks    Hooks
}

// Hooks are told what happens, for metrics. Nil ones are not called.
type Hooks struct {
	Started  func(model string)
	FirstTok func(model string, d time.Duration)
	Gap      func(model string, d time.Duration) // between tokens of one answer
	Ended    func(model string, u Usage, end string)
}

// A Service runs requests.
type Service struct {
	o Options

	grammars grammars

	mu   sync.Mutex
	live map[liveKey]map[*Stream]bool
}

// A liveKey names an HTTP request in work. Clients choose ids, so an id means something to its caller alone, and
// several requests of one caller may have the same.
type liveKey struct{ caller, id string }

func (t *Trace) liveKey() liveKey { return liveKey{t.Caller, t.ID} }

// New returns a service.
func New(o Options) *Service { return &Service{o: o, live: map[liveKey]map[*Stream]bool{}} }

// Catalog returns the models that requests may name.
func (s *Service) Catalog() Catalog { return s.o.Catalog }

// Pool returns the loaded models.
func (s *Service) Pool() *pool.Pool[*Model] { return s.o.Pool }

// Resolve is the catalog's, asked once for each name of a request: a name means the same to all that handle it.
func (s *Service) Resolve(ctx context.Context, name string) (Spec, error) {
	t := TraceOf(ctx)
	if spec, ok := t.spec(name); ok {
		return spec, nil
	}
	spec, err := s.o.Catalog.Resolve(ctx, name)
	if err == nil {
		t.means(name, spec)
	}
	return spec, err
}

// A Lease is a loaded model that stays until Release.
type Lease struct {
	Spec  Spec
	Model *Model
	Load  time.Duration // what the caller waited for loading
	l     *pool.Lease[*Model]
}

// Release gives the model back.
func (l *Lease) Release() { l.l.Release() }

// Acquire lends the model of a name, for a request, and loads it first where needed.
func (s *Service) Acquire(ctx context.Context, name string, keep *time.Duration) (*Lease, error) {
	return s.lend(ctx, name, pool.Use{Keep: keep})
}

// Hold is Acquire for who keeps the model until it is closed: see Request.On.
func (s *Service) Hold(ctx context.Context, name string) (*Lease, error) {
	return s.lend(ctx, name, pool.Use{Held: true})
}

// forRequest lends the model that a request runs on.
func (s *Service) forRequest(ctx context.Context, r *Request) (*Lease, error) {
	if r.On == nil {
		return s.Acquire(ctx, r.Model, r.KeepAlive)
	}
	TraceOf(ctx).model(r.On.Spec.Name)
	l, err := r.On.l.Share()
	if err != nil {
		return nil, poolError(r.On.Spec.Name, err)
	}
	return &Lease{Spec: r.On.Spec, Model: l.Model, l: l}, nil
}

func (s *Service) lend(ctx context.Context, name string, u pool.Use) (*Lease, error) {
	spec, err := s.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	TraceOf(ctx).model(spec.Name)
	began := time.Now()
	u.By, u.Name = TraceOf(ctx).decides(), spec.Name
	l, err := s.o.Pool.Lend(ctx, spec.Path, u)
	if err != nil {
		err = poolError(spec.Name, err)
		var e *Error
		if errors.As(err, &e) {
			own := *e // others may wait for the same load
			own.Msg = TraceOf(ctx).Hide(e.Msg, spec.Path)
			return nil, &own
		}
		return nil, err
	}
	if !l.Heeded {
		TraceOf(
			ctx,
		).Notice("keep_alive has no effect: this key does not have the scope manage, and another one loaded the model")
	}
	return &Lease{Spec: spec, Model: l.Model, Load: time.Since(began), l: l}, nil
}

// Unload closes the model of a name when nobody uses it. It reports whether it was loaded. A name that is no longer
// there means what was loaded by it.
func (s *Service) Unload(ctx context.Context, name string) (bool, error) {
	spec, err := s.Resolve(ctx, name)
	if e := AsError(err); e != nil && e.Kind == UnknownModel {
		for _, st := range s.o.Pool.Loaded(nil) {
			if slices.ContainsFunc(st.Names, func(n string) bool { return untagged(n) == untagged(name) }) {
				spec, err = Spec{Name: name, Path: st.Key}, nil
			}
		}
	}
	if err != nil {
		return false, err
	}
	was, err := s.o.Pool.Unload(spec.Path, TraceOf(ctx).decides())
	if err != nil {
		return was, &Error{
			Kind: Forbidden, Model: spec.Name, Err: err,
			Msg: "this key does not have the scope manage, and so unloads only what it loaded; model " + spec.Name + " was loaded by another one",
		}
	}
	return was, nil
}

// untagged is a name in lower case without the tag that a name without one means.
func untagged(name string) string {
	return strings.TrimSuffix(strings.ToLower(strings.TrimSpace(name)), ":latest")
}

func poolError(name string, err error) error {
	var full *pool.FullError
	var large *pool.TooLargeError
	var mem *model.NoMemoryError
	var known *Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &full):
		return &Error{
			Kind:       Overloaded,
			Model:      name,
			RetryAfter: 5 * time.Second,
			Msg:        "there is no room for model " + name + ": " + full.Error(),
			Err:        err,
		}
	case errors.As(err, &large): // whatever else ends: there is no use in trying again
		return &Error{
			Kind:  Unsupported,
			Field: "model",
			Model: name,
			Msg:   "model " + name + " cannot be loaded: " + err.Error(),
			Err:   err,
		}
	case errors.As(err, &mem):
		return &Error{
			Kind:       Unavailable,
			RetryAfter: 30 * time.Second,
			Model:      name,
			Msg:        "model " + name + " cannot be loaded: " + err.Error(),
			Err:        err,
		}
	case errors.Is(err, mmap.ErrChanged):
		return &Error{
			Kind: Unavailable, RetryAfter: 5 * time.Second, Model: name, Err: err,
			Msg: "model " + name + " cannot be loaded: its files are being written; once they are complete, ask again",
		}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{
			Kind:  Unavailable,
			Model: name,
			Err:   err,
			Msg:   "model " + name + " cannot be loaded: its file is gone",
		}
	case errors.Is(err, pool.ErrClosed):
		return &Error{Kind: Unavailable, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &Error{Kind: Internal, Model: name, Msg: "model " + name + " cannot be loaded: " + err.Error(), Err: err}
}

// Count returns the exact number of tokens of the prompt that Run would compute.
func (s *Service) Count(ctx context.Context, r *Request) (int, error) {
	tokens, _, err := s.Render(ctx, r)
	return len(tokens), err
}

// Render returns the prompt as the model would see it, as tokens and as text. The model is loaded for it.
func (s *Service) Render(ctx context.Context, r *Request) ([]int32, string, error) {
	if err := r.check(); err != nil {
		return nil, "", err
	}
	l, err := s.forRequest(ctx, r)
	if err != nil {
		return nil, "", err
	}
	defer l.Release()
	whole, never := *r, false // what a healed answer spells out again counts, too
	whole.Heal = &never
	p, err := l.Model.render(ctx, &whole, &l.Spec)
	if err != nil {
		return nil, "", err
	}
	return p.tokens, p.text, nil
}

// Run starts a request. A request that can never run is refused with an *Error; everything later comes out of the
// stream. The caller closes the stream.
func (s *Service) Run(ctx context.Context, r *Request) (_ *Stream, err error) {
	began := time.Now()
	if err := r.check(); err != nil {
		return nil, err
	}
	ctx, cancel := s.bound(ctx, r)
	defer func() {
		if err != nil {
			cancel(nil)
		}
	}()
	l, err := s.forRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.Release()
		}
	}()
	if r.Context == 0 && l.Spec.Context > 0 {
		bounded := *r
		bounded.Context = l.Spec.Context
		r = &bounded
	}
	p, err := l.Model.render(ctx, r, &l.Spec)
	if err != nil {
		return nil, err
	}
	if err := s.hold(r, p, l.Spec.Name); err != nil {
		return nil, err
	}
	if err := s.holdCalls(r, p, l.Model); err != nil {
		return nil, err
	}
	st, err := newStream(ctx, cancel, s, r, l, p, began)
	if err != nil {
		return nil, err
	}
	if s.o.Hooks.Started != nil {
		s.o.Hooks.Started(l.Spec.Name)
	}
	if st.trace.ID != "" {
		k := st.trace.liveKey()
		s.mu.Lock()
		if s.live[k] == nil {
			s.live[k] = map[*Stream]bool{}
		}
		s.live[k][st] = true
		s.mu.Unlock()
	}
	return st, nil
}

// bound gives a request its deadline.
func (s *Service) bound(ctx context.Context, r *Request) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := r.Deadline
	if s.o.MaxTime > 0 {
		if limit := time.Now().Add(s.o.MaxTime); end.IsZero() || limit.Before(end) {
			end = limit
		}
	}
	if end.IsZero() {
		return ctx, cancel
	}
	ctx, stop := context.WithDeadline(ctx, end)
	return ctx, func(err error) { cancel(err); stop() }
}

// EndThinking makes the answers of a running request end their reasoning at the next token. It reports whether there
// is such a request. id is that of the HTTP request; only requests of the caller in ctx's trace are looked at, and all
// of its requests with that id are meant.
func (s *Service) EndThinking(ctx context.Context, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.live[liveKey{TraceOf(ctx).Caller, id}]
	for st := range all {
		st.endThinking.Store(true)
	}
	return len(all) > 0
}

func (s *Service) forget(st *Stream) {
	k := st.trace.liveKey()
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.live[k], st); len(s.live[k]) == 0 {
		delete(s.live, k)
	}
}

// engineError words the engine's refusals.
func engineError(err error) error {
	var long *engine.PromptTooLong
	var bad *engine.BadToken
	var req *engine.BadRequest
	var full *engine.QueueFull
	switch {
	case errors.As(err, &long):
		return &Error{Kind: PromptTooLong, Tokens: long.Tokens, Context: long.Context, Err: err}
	case errors.As(err, &bad):
		field := "prompt"
		if bad.Position < 0 {
			field = "logit_bias"
		}
		return &Error{Kind: Invalid, Field: field, Msg: bad.Error(), Err: err}
	case errors.Is(err, sample.ErrNothingAllowed):
		return &Error{Kind: Invalid, Field: "logit_bias", Msg: "it forbids every token", Err: err}
	case errors.As(err, &req):
		return &Error{Kind: Invalid, Field: req.Field, Msg: req.Problem, Err: err}
	case errors.As(err, &full):
		kind := Overloaded
		if full.Shared {
			kind = RateLimited
		}
		return &Error{Kind: kind, RetryAfter: 2 * time.Second, Msg: full.Error(), Err: err}
	case errors.Is(err, mmap.ErrChanged):
		return &Error{
			Kind: Unavailable, RetryAfter: time.Second, Err: err,
			Msg: "the model's file was written by another program, so the answer cannot go on: " +
				"once the file is complete, ask again",
		}
	case errors.Is(err, engine.ErrClosed):
		return &Error{Kind: Unavailable, Err: err}
	}
	return err
}
