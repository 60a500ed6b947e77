// Package keep changes the models of a store for package ollama: it fetches, copies, removes and creates them, and it
// is the catalog in which the created ones are found. It knows names, files and what a Modelfile adds; it knows no
// HTTP.
package keep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/server/chat"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/store"
)

// A Keeper keeps the models of a store. It is a chat.Catalog, too: that of its base, with the models of the store that
// the base does not know, and with what was added to created ones. It is safe for concurrent use.
type Keeper struct {
	store   *store.Store
	base    chat.Catalog
	fetcher fetch.Fetcher // copied for each download

	mu sync.Mutex // held while names change

	foundMu sync.Mutex
	found   map[string]sighting // by the name that was asked for
}

// A sighting spares reading all manifests of all programs for every request.
type sighting struct {
	model store.Model
	at    time.Time
}

const (
	sightFor   = 3 * time.Second
	maxSighted = 1024
)

// find is the store's Find, remembered for a moment while the files are there.
func (k *Keeper) find(name string) (store.Model, bool) {
	k.foundMu.Lock()
	s, ok := k.found[name]
	k.foundMu.Unlock()
	if ok && time.Since(s.at) < sightFor {
		if _, err := os.Stat(s.model.Path); err == nil {
			return s.model, true
		}
	}
	m, ok := k.store.Find(name)
	if !ok {
		return m, false
	}
	k.foundMu.Lock()
	defer k.foundMu.Unlock()
	if k.found == nil || len(k.found) >= maxSighted {
		k.found = map[string]sighting{}
	}
	k.found[name] = sighting{m, time.Now()}
	return m, true
}

// forget makes find look again.
func (k *Keeper) forget() {
	k.foundMu.Lock()
	defer k.foundMu.Unlock()
	k.found = nil
}

var _ interface {
	ollama.Keeper
	chat.Catalog
} = (*Keeper)(nil)

// New returns the keeper of a store. base knows the models that have names without it; f says how models are fetched,
// its Store and Progress are not used. Uploads that nothing was made of within a day are removed.
func New(st *store.Store, base chat.Catalog, f fetch.Fetcher) *Keeper {
	f.Store = st
	k := &Keeper{store: st, base: base, fetcher: f}
	k.prune(time.Now())
	return k
}

// An addition is what a created model has beside its weights. It counts only while the store has a model of its name.
type addition struct {
	Name      string         `json:"name"`
	Parent    string         `json:"parent,omitempty"`
	Weights   string         `json:"weights,omitempty"` // path of the parent's: names with the same file share one loaded model
	System    string         `json:"system,omitempty"`
	Template  string         `json:"template,omitempty"`
	Licence   string         `json:"licence,omitempty"`
	Messages  []chat.Message `json:"messages,omitempty"`
	Sampling  chat.Sampling  `json:"sampling"`
	Stop      []string       `json:"stop,omitempty"`
	MaxTokens int            `json:"max_tokens,omitempty"`
	Context   int            `json:"context,omitempty"`
}

// maxAddition bounds what is read of one.
const maxAddition = 8 << 20

func (k *Keeper) additionPath(name string) string {
	safe := strings.NewReplacer("/", "+", ":", "=").Replace(strings.ToLower(name))
	return filepath.Join(k.store.Dir(), "created", safe+".json")
}

// addition reads what belongs to a name; nothing where nothing was added.
func (k *Keeper) addition(name string) (addition, bool, error) {
	var a addition
	if store.CheckName(name) != nil {
		return a, false, nil
	}
	path := k.additionPath(name)
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a, false, nil
	}
	if err == nil && st.Size() > maxAddition {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxAddition>>20)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil { // a model without its system message would be another one
		return a, false, &chat.Error{Kind: chat.Unavailable, Model: name, Msg: "what was added to model " + name + " cannot be read: create it anew", Err: err}
	}
	return a, true, nil
}

func (k *Keeper) writeAddition(a addition) error {
	b, err := json.MarshalIndent(a, "", " ")
	if err != nil {
		return err
	}
	path := k.additionPath(a.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// onto puts an addition over a model.
func (a *addition) onto(s *chat.Spec) {
	same := func(x, y string) bool {
		p, err1 := os.Stat(x)
		q, err2 := os.Stat(y)
		return err1 == nil && err2 == nil && os.SameFile(p, q)
	}
	if a.Weights != "" && same(a.Weights, s.Path) {
		s.Path = a.Weights
	}
	s.System, s.Template, s.Messages = a.System, a.Template, a.Messages
	s.Sampling, s.Stop, s.MaxTokens, s.Context = a.Sampling, a.Stop, a.MaxTokens, a.Context
}

// spec is a model of the store as requests see it.
func (k *Keeper) spec(m store.Model) (chat.Spec, error) {
	s := chat.Spec{Name: m.Name, Path: m.Path, Digest: m.Digest, Size: m.Size, Time: m.Modified, System: m.System}
	if m.Problem != "" {
		return s, &chat.Error{Kind: chat.Unavailable, Model: m.Name, Msg: fmt.Sprintf("model %s cannot run: %s", m.Name, m.Problem)}
	}
	if len(m.Params) > 0 { // of Ollama's store, whose server reads some of them no more
		params := maps.Clone(m.Params)
		delete(params, "mirostat")
		delete(params, "tfs_z")
		c, err := ollama.Parameters(params)
		if err != nil {
			return s, &chat.Error{Kind: chat.Unavailable, Model: m.Name, Msg: fmt.Sprintf("model %s has a parameter that cannot be honoured: %v", m.Name, err), Err: err}
		}
		s.Sampling, s.Stop, s.MaxTokens, s.Context = c.Sampling, c.Stop, c.MaxTokens, c.Context
	}
	if !m.Own {
		return s, nil
	}
	a, ok, err := k.addition(m.Name)
	if ok {
		a.onto(&s)
	}
	return s, err
}

func unknown(err error) bool {
	var e *chat.Error
	return errors.As(err, &e) && e.Kind == chat.UnknownModel
}

// extend puts what was added over a model of the base, where it is one of the store.
func (k *Keeper) extend(s *chat.Spec) error {
	a, ok, err := k.addition(s.Name)
	if !ok {
		return err
	}
	if m, here := k.find(s.Name); here && m.Own {
		a.onto(s)
	}
	return nil
}

// Resolve finds a model: the base's, else one of the store.
func (k *Keeper) Resolve(ctx context.Context, name string) (chat.Spec, error) {
	s, err := k.base.Resolve(ctx, name)
	if err == nil {
		return s, k.extend(&s)
	}
	if !unknown(err) {
		return s, err
	}
	if m, ok := k.find(name); ok {
		return k.spec(m)
	}
	return s, err
}

// List returns the base's models, then those of the store that it does not know. Models that cannot run are left out.
func (k *Keeper) List(ctx context.Context) ([]chat.Spec, error) {
	list, err := k.base.List(ctx)
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for i := range list {
		have[strings.ToLower(list[i].Name)] = true
		if err := k.extend(&list[i]); err != nil {
			return nil, err
		}
	}
	models, err := k.store.List()
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		if s, err := k.spec(m); err == nil && !have[strings.ToLower(m.Name)] {
			have[strings.ToLower(m.Name)] = true
			list = append(list, s)
		}
	}
	return list, nil
}

// About says what is known of a model beside its Spec.
func (k *Keeper) About(_ context.Context, name string) (ollama.About, error) {
	var about ollama.About
	if m, ok := k.find(name); ok {
		about.Licence = m.Licence
	}
	a, ok, err := k.addition(name)
	if ok {
		about.Parent = a.Parent
		if a.Licence != "" {
			about.Licence = a.Licence
		}
	}
	return about, err
}
