package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/mmap"
)

// An answerer has a model: this process, or a server that has it loaded. Both give the same tokens.
type answerer interface {
	// answer runs a request and hands its text to emit as it comes. What there is of an answer is returned with an
	// error, too; one that was stopped ends with context.Canceled.
	answer(ctx context.Context, r *chat.Request, emit func(reasoning bool, text string) error) (answered, error)
	// count returns how many tokens the prompt of a request has.
	count(ctx context.Context, r *chat.Request) (int, error)
	about() about
	close()
}

// about is what is known of a model that answers.
type about struct {
	Info    family.Info
	Context int       // tokens of prompt and answer together
	Spec    chat.Spec // what it was made with
	Base    bool      // it has no chat template
	Server  string    // the address of the server that has it, "" for this process
}

// here is a model of this process. A conversation goes on with what was loaded also when its file is replaced; one
// that was overwritten is loaded anew for the next message.
type here struct {
	svc   *chat.Service
	alone bool // the service is of this model alone, and closed with it

	mu      sync.Mutex
	lease   *chat.Lease // the model stays while there is the conversation
	changed bool        // its file was overwritten: the lease was given back
}

func newHere(ctx context.Context, svc *chat.Service) (*here, error) {
	l, err := svc.Hold(ctx, "")
	if err != nil {
		return nil, err
	}
	return &here{svc: svc, lease: l}, nil
}

// on says which loaded model requests run on.
func (h *here) on(ctx context.Context) (*chat.Lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed {
		l, err := h.svc.Hold(ctx, "")
		if err != nil {
			return nil, err
		}
		h.lease, h.changed = l, false
	}
	return h.lease, nil
}

func (h *here) answer(ctx context.Context, r *chat.Request, emit func(bool, string) error) (got answered, err error) {
	if r.On, err = h.on(ctx); err != nil {
		return got, err
	}
	got, err = generate(ctx, h.svc, r, emit)
	if errors.Is(err, mmap.ErrChanged) {
		h.mu.Lock()
		defer h.mu.Unlock()
		r.On.Release()
		h.changed = h.changed || h.lease == r.On
	}
	return got, err
}

func (h *here) count(ctx context.Context, r *chat.Request) (n int, err error) {
	if r.On, err = h.on(ctx); err != nil {
		return 0, err
	}
	return h.svc.Count(ctx, r)
}

func (h *here) about() about {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.lease.Model
	return about{Info: m.Info, Context: m.Context, Spec: h.lease.Spec, Base: !m.HasTemplate}
}

func (h *here) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease.Release()
	if h.alone {
		_ = h.svc.Pool().Close(context.Background()) // the process ends
	}
}

// String says where the model is.
func (a about) String() string {
	s := fmt.Sprintf("%s, context of %d tokens", printableLine(a.Info.Name), a.Context)
	if a.Server != "" {
		s += ", loaded by the server at " + a.Server
	}
	return s
}
