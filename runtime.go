package baleen

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/keeper"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/store"
)

// A Runtime holds models under one memory budget, and knows those on this machine. Its methods may be called from
// many goroutines at once.
type Runtime struct {
	o       Options
	store   *store.Store
	catalog *models.Catalog
	pool    *pool.Pool[*chat.Model]
	service *chat.Service

	mu      sync.Mutex
	closed  bool
	backend backend.Backend // of tests
	specs   map[string]chat.Spec
	opened  []chat.Spec // in their order, for servers
	open    map[*Model]bool
	servers []*server.Server
	loads   map[string]*load // by path
}

// NewRuntime returns a runtime that has nothing loaded. options may be nil.
func NewRuntime(options *Options) (*Runtime, error) {
	r := &Runtime{specs: map[string]chat.Spec{}, open: map[*Model]bool{}, loads: map[string]*load{}}
	if options != nil {
		r.o = *options
	}
	if err := r.o.check(); err != nil {
		return nil, err
	}
	var err error
	if r.store, err = store.OpenUser(r.o.Home, r.o.env); err != nil {
		return nil, public(err)
	}
	r.catalog = models.New(r.store)
	limit := r.o.Memory
	if limit == 0 {
		if b, known := model.SystemBudget(); known {
			limit = b.Available
		}
	}
	var keep *time.Duration
	if r.o.KeepAlive != 0 {
		keep = &r.o.KeepAlive
	}
	r.pool = pool.New(pool.Options[*chat.Model]{
		Open: r.load, Need: func(ctx context.Context, path string) (least, want int64, err error) {
			return r.loader().Need(ctx, path)
		},
		Limit: limit, MaxModels: r.o.MaxModels, KeepAlive: keep,
	})
	r.service = chat.New(chat.Options{Catalog: opened{r}, Pool: r.pool})
	return r, nil
}

func (o *Options) check() error {
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"Threads", int64(o.Threads)},
		{"Context", int64(o.Context)},
		{"Streams", int64(o.Streams)},
		{"Queue", int64(o.Queue)},
		{"Memory", o.Memory},
		{"MaxModels", int64(o.MaxModels)},
	} {
		if f.n < 0 {
			return wrong("Options."+f.name, "%d: want 0 or more", f.n)
		}
	}
	return nil
}

// loader opens models as the options say.
func (r *Runtime) loader() *chat.Loader {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := model.Options{
		Device: r.o.Device, Threads: r.o.Threads, CPU: r.o.CPU, Backend: r.backend,
		Context: r.o.Context, Seqs: r.o.Streams,
		Tune: func(e *engine.Options) { e.MaxQueue = r.o.Queue },
	}
	if r.o.KV32 {
		o.KV = backend.KVF32
	}
	return &chat.Loader{Options: o}
}

// opened are the models that the program opened, by the names that it used.
type opened struct{ r *Runtime }

// Resolve is chat.Catalog's.
func (o opened) Resolve(_ context.Context, name string) (chat.Spec, error) {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	if s, ok := o.r.specs[name]; ok {
		return s, nil
	}
	return chat.Spec{}, &chat.Error{Kind: chat.UnknownModel, Model: name}
}

// List is chat.Catalog's.
func (o opened) List(context.Context) ([]chat.Spec, error) {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	return slices.Clone(o.r.opened), nil
}

// Open opens a model as the function Open does, beside others of this Runtime. It stays loaded until it is closed,
// and for Options.KeepAlive after that, so that opening it again is quick. Where the memory does not suffice,
// models that nobody has open go first; a *NoMemoryError says that those which are open take the rest. A model that
// is open already is shared: both need to be closed.
func (r *Runtime) Open(ctx context.Context, nameOrPath string) (*Model, error) {
	if err := r.alive(ctx); err != nil {
		return nil, err
	}
	spec, err := r.locate(ctx, nameOrPath)
	if err != nil {
		return nil, public(err)
	}
	r.mu.Lock()
	if _, have := r.specs[spec.Name]; !have {
		r.opened = append(r.opened, spec)
	}
	r.specs[spec.Name] = spec
	l := r.loads[spec.Path]
	if l == nil {
		l = &load{name: spec.Name}
		r.loads[spec.Path] = l
	}
	r.mu.Unlock()
	lease, err := r.service.Hold(ctx, spec.Name)
	if err != nil {
		return nil, public(err)
	}
	m := &Model{runtime: r, spec: spec, lease: lease, m: lease.Model, info: describe(lease.Model)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		lease.Release()
		return nil, ErrClosed
	}
	r.open[m] = true
	return m, nil
}

func (r *Runtime) alive(ctx context.Context) error {
	if err := r.usable(); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	if b := model.BackendFrom(ctx); b != nil {
		r.backend = b
	}
	return nil
}

func (r *Runtime) forget(m *Model) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, m)
}

// locate finds a model, and fetches it where it is not here.
func (r *Runtime) locate(ctx context.Context, arg string) (chat.Spec, error) {
	ref, err := r.store.Resolve(arg)
	if errors.Is(err, store.ErrNotFound) {
		if d, ok, derr := r.catalog.Derived(arg); ok || derr != nil {
			return d.Spec, derr
		}
		missing := &UnknownModelError{Name: arg, err: err}
		var near *store.MisspeltError
		if errors.As(err, &near) {
			missing.Near = near.Near
		}
		return chat.Spec{}, missing
	}
	if err != nil {
		return chat.Spec{}, err
	}
	if ref.Entry != nil {
		path, err := r.fetch(ctx, *ref.Entry)
		if err != nil {
			return chat.Spec{}, err
		}
		ref.Path = path
	}
	spec := chat.Spec{}
	if ref.Model != nil {
		spec = models.SpecOf(*ref.Model)
	}
	spec.Name = arg
	spec.Path, err = filepath.Abs(ref.Path)
	return spec, err
}

// fetch brings an entry here, unless it is here.
func (r *Runtime) fetch(ctx context.Context, e store.Entry) (path string, err error) {
	if r.store.Dir() == "" {
		return "", store.ErrNoHome
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &teller{tell: r.o.Progress, failed: cancel}
	path, err = r.fetcher(&downloads{t: t}).Fetch(ctx, e)
	if p := t.panicked(); p != nil {
		return "", p
	}
	return path, err
}

func (r *Runtime) fetcher(p fetch.Progress) *fetch.Fetcher {
	return &fetch.Fetcher{
		Store: r.store, Progress: p, UserAgent: "baleen",
		HFEndpoint: r.o.HFEndpoint, HFToken: r.o.HFToken, NoPip: !r.o.Pip,
	}
}

// A load is what is known of a model that may be being loaded.
type load struct{ name string }

// load is the pool's.
func (r *Runtime) load(ctx context.Context, path string, room int64) (*chat.Model, error) {
	r.mu.Lock()
	name := filepath.Base(path)
	if l := r.loads[path]; l != nil {
		name = l.name
	}
	r.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &teller{tell: r.o.Progress, failed: cancel}
	l := r.loader()
	if r.o.Progress != nil {
		l.Progress = func(_ string, done, total int64) { t.say(Progress{Loading, name, done, total}) }
	}
	m, err := l.Open(ctx, path, room)
	if p := t.panicked(); p != nil {
		if err == nil {
			err = m.Close()
		}
		return nil, errors.Join(p, err)
	}
	return m, err
}

// A teller calls Options.Progress, until it panics.
type teller struct {
	tell   func(Progress)
	failed context.CancelCauseFunc

	mu  sync.Mutex
	err error
}

func (t *teller) say(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tell == nil || t.err != nil {
		return
	}
	defer func() {
		if t.err != nil {
			t.failed(t.err)
		}
	}()
	defer recovered("Options.Progress", &t.err)
	t.tell(p)
}

func (t *teller) panicked() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// downloads is a fetch.Progress.
type downloads struct {
	t *teller
	p Progress
}

func (d *downloads) Start(title string, done, total int64) {
	d.p = Progress{Fetching, title, done, total}
	d.t.say(d.p)
}

func (d *downloads) Set(done int64) {
	d.p.Done = done
	d.t.say(d.p)
}
func (d *downloads) Stop()       {}
func (d *downloads) Note(string) {}

// A Stored is a model on this machine, or one that can be fetched by a name of the catalog.
type Stored struct {
	Name     string    `json:"name"`
	Path     string    `json:"path,omitempty"`  // "": it is not here
	Where    string    `json:"where,omitempty"` // whose it is: "baleen", "Ollama", "Hugging Face", "LM Studio"
	Size     int64     `json:"size"`            // bytes
	Modified time.Time `json:"modified,omitzero"`
	Digest   string    `json:"digest,omitempty"` // SHA-256 of its file, where known
	Licence  string    `json:"licence,omitempty"`
	Own      bool      `json:"own"`               // Remove may remove it: others' models are only read
	Problem  string    `json:"problem,omitempty"` // why it cannot run; "": nothing is known against it
}

// List returns the models on this machine: Baleen's own, and those of Ollama, the Hugging Face cache and LM Studio,
// which run in place.
func (r *Runtime) List() ([]Stored, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	all, err := r.store.List()
	if err != nil {
		return nil, public(err)
	}
	out := make([]Stored, len(all))
	for i, m := range all {
		out[i] = Stored{m.Name, m.Path, m.Where, m.Size, m.Modified, m.Digest, m.Licence, m.Own, m.Problem}
	}
	return out, nil
}

// Catalog returns the models that can be fetched by a short name, whether they are here or not. The first is the
// default.
func Catalog() []Stored {
	var out []Stored
	for _, e := range store.Catalog() {
		out = append(out, Stored{Name: e.Name, Size: e.Size, Licence: e.Licence})
	}
	return out
}

// Pull fetches a model, if it is not here, and returns its path. name is as for Open; ORG/REPO and NAME:TAG alone
// will do. Checksums are checked; a download that was cut off continues. Options.Progress is told.
func (r *Runtime) Pull(ctx context.Context, name string) (path string, err error) {
	if err := r.alive(ctx); err != nil {
		return "", err
	}
	ref, err := r.store.Resolve(name)
	if err == nil && ref.Entry == nil {
		return ref.Path, nil
	}
	if err == nil {
		path, err = r.fetch(ctx, *ref.Entry)
		return path, public(err)
	}
	if e, ok, rerr := store.Remote(name, true); rerr != nil {
		return "", public(rerr)
	} else if ok && store.Misspelt(name) == nil {
		path, err = r.fetch(ctx, e)
		return path, public(err)
	}
	_, err = r.locate(ctx, name)
	return "", public(err)
}

// Remove removes a model of Baleen's own store and returns the bytes that this frees. One that is open, that
// another model was made of, or that belongs to another program is not removed.
func (r *Runtime) Remove(name string) (freed int64, err error) {
	if err := r.usable(); err != nil {
		return 0, err
	}
	m, ok := r.store.Find(name)
	if !ok {
		return 0, &UnknownModelError{Name: name}
	}
	r.mu.Lock()
	for o := range r.open {
		if o.spec.Path == m.Path || strings.HasPrefix(o.spec.Path, m.Path+string(os.PathSeparator)) {
			r.mu.Unlock()
			return 0, wrong("name", "the model %s is open: close it first", name)
		}
	}
	r.mu.Unlock()
	if err := (&keeper.Keeper{Store: r.store, Catalog: r.catalog}).Unneeded(m); err != nil {
		return 0, public(err)
	}
	if _, err := r.pool.Unload(m.Path, ""); err != nil {
		return 0, public(err)
	}
	freed, err = r.store.Remove(m.Name)
	return freed, public(err)
}

// A Loaded is a model in memory.
type Loaded struct {
	Path    string    `json:"path"`
	Memory  int64     `json:"memory"`           // bytes that it takes
	Users   int       `json:"users"`            // open Models and running requests
	Loading bool      `json:"loading"`          // it is not ready yet
	Expires time.Time `json:"expires,omitzero"` // when it goes; zero: it is in use, or stays
}

// Loaded returns the models in memory, the last used first.
func (r *Runtime) Loaded() []Loaded {
	if r.usable() != nil {
		return nil
	}
	var out []Loaded
	for _, s := range r.pool.Loaded(nil) {
		out = append(out, Loaded{Path: s.Key, Memory: s.Bytes, Users: s.Leases, Loading: s.Loading, Expires: s.Expires})
	}
	return out
}

// Memory returns the bytes that models take, and those that they may take together; limit 0: no bound is known.
func (r *Runtime) Memory() (used, limit int64) {
	if r.usable() != nil {
		return 0, 0
	}
	return r.pool.Used()
}

// lastWords is how long answers of an http.Handler may take to end when the Runtime is closed.
const lastWords = 5 * time.Second

// Close closes the models, ends what handlers answer with an error in each one's own shape, and gives the memory
// back. Further calls do nothing.
func (r *Runtime) Close() error {
	if err := r.usable(); err != nil {
		return err
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	servers := slices.Clone(r.servers)
	open := make([]*Model, 0, len(r.open))
	for m := range r.open {
		open = append(open, m)
	}
	r.mu.Unlock()
	for _, s := range servers {
		s.End()
	}
	bodies := false
	for _, m := range open {
		m.shut()
		bodies = bodies || m.uses.standing()
	}
	wait := lastWords
	if bodies { // their leases come back when their loops go on
		wait = 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if err := r.pool.Close(ctx); err != nil && !bodies {
		return public(err)
	}
	return nil
}
