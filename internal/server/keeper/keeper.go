// Package keeper changes the models on disk for clients that ask over HTTP: it fetches, copies, removes, and makes
// models of others or of uploaded files. It stands between the dialect that asks and the packages store and fetch.
package keeper

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/store"
)

// A Keeper is a modeladmin.Keeper over a store.
type Keeper struct {
	Store   *store.Store
	Catalog *models.Catalog
	// Fetcher makes a fetcher that reports to p.
	Fetcher func(p fetch.Progress) *fetch.Fetcher
	// MaxUpload is the largest file that may be uploaded; 0: 1 TiB.
	MaxUpload int64
	// Spare is how many bytes of the disk uploads leave free; 0: 256 MiB.
	Spare int64
}

var _ modeladmin.Keeper = (*Keeper)(nil)

// Pull fetches a model. What is here already is left alone.
func (k *Keeper) Pull(ctx context.Context, name string, report func(modeladmin.Progress)) (err error) {
	defer worded(&err)
	report(modeladmin.Progress{Status: "pulling manifest"})
	if _, err := k.Catalog.Resolve(ctx, name); err == nil {
		return nil
	}
	name = strings.TrimSpace(name)
	e, ok := store.Lookup(strings.TrimSuffix(name, ":latest"))
	if !ok {
		var err error
		if e, ok, err = store.Remote(name, true); err != nil {
			return chat.Invalidf("model", "%v", err)
		}
	}
	if !ok {
		return &chat.Error{Kind: chat.UnknownModel, Model: name}
	}
	defer k.Catalog.Changed()
	_, err = k.Fetcher(&progress{report: report}).Fetch(ctx, e)
	switch {
	case err == nil:
		report(modeladmin.Progress{Status: "verifying sha256 digest"})
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return pullError(name, err)
}

// pullError words why a model could not be fetched.
func pullError(name string, err error) error {
	var space *fetch.NoSpaceError
	var missing *fetch.NotFoundError
	var status *fetch.StatusError
	e := &chat.Error{Kind: chat.Upstream, Model: name, Msg: "fetching failed: " + err.Error(), Err: err}
	switch {
	case errors.As(err, &space), store.IsFull(err), store.IsReadOnly(err):
		return err // worded puts it into words
	case errors.As(err, &missing):
		e.Kind = chat.UnknownModel
	case errors.As(err, &status) && (status.Code == 404 || status.Code == 401 || status.Code == 403):
		e.Kind = chat.UnknownModel // Hugging Face tells those who may not have a model nothing else of one that is not there
	}
	return e
}

// progress turns a download's steps into Ollama's.
type progress struct {
	report func(modeladmin.Progress)
	p      modeladmin.Progress
}

func (p *progress) Start(title string, done, total int64) {
	// Clients tell transfers apart by digests; that of the bytes is not known yet.
	p.p = modeladmin.Progress{
		Status:    "pulling " + title,
		Digest:    fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(title))),
		Total:     total,
		Completed: done,
	}
	p.report(p.p)
}

func (p *progress) Set(done int64) {
	p.p.Completed = done
	p.report(p.p)
}
func (p *progress) Stop()            {}
func (p *progress) Note(line string) { p.report(modeladmin.Progress{Status: line}) }

// Copy gives a model a second name.
func (k *Keeper) Copy(ctx context.Context, source, destination string) (err error) {
	defer worded(&err)
	spec, err := k.Catalog.Resolve(ctx, source)
	if err != nil {
		return err
	}
	if err := k.free(ctx, destination); err != nil {
		return err
	}
	d, ok, err := k.Catalog.Derived(source)
	if err != nil {
		return err
	}
	if !ok {
		about, err := k.About(ctx, source)
		if err != nil {
			return err
		}
		d = models.Derived{Spec: spec, Parent: spec.Name, Licence: about.Licence}
	}
	d.Spec.Name, d.Spec.Time = clean(destination), time.Now()
	return k.Catalog.Derive(d)
}

// free refuses names whose meaning is fixed: a model made under one could not be reached. Names of models that were
// made are free, these are replaced.
func (k *Keeper) free(ctx context.Context, name string) error {
	if _, ok := store.Lookup(strings.ToLower(clean(name))); ok {
		return chat.Invalidf("model", "%s is a name of the catalog: choose another", clean(name))
	}
	if _, ok, err := k.Catalog.Derived(name); ok || err != nil {
		return err // what cannot be read is not replaced: it may say which uploaded files it has
	}
	if s, err := k.Catalog.Resolve(ctx, name); err == nil {
		return chat.Invalidf("model", "there is a model %s already: choose another name, or remove it first", s.Name)
	}
	return nil
}

func clean(name string) string { return strings.TrimSuffix(strings.TrimSpace(name), ":latest") }

// Delete removes a name, and the files that no other name needs.
func (k *Keeper) Delete(ctx context.Context, name string, removing func()) (err error) {
	defer worded(&err)
	if d, ok, err := k.Catalog.Derived(name); err != nil {
		return err
	} else if ok {
		last, err := k.lastName(ctx, d.Spec)
		if err != nil {
			return err
		}
		if last {
			removing()
		}
		_, err = k.Catalog.Forget(name)
		return err
	}
	name = strings.TrimSpace(name)
	if m, ok := k.Store.Find(name); ok {
		name = m.Name // with its tag
		if m.Own {
			if err := k.Unneeded(m); err != nil {
				return err
			}
			removing()
		}
	} else if s, err := k.Catalog.Resolve(ctx, name); err == nil {
		return &chat.Error{Kind: chat.Forbidden, Model: name, Msg: fmt.Sprintf("%s is no model of the store: it is "+
			"served from a file", s.Name)}
	}
	defer k.Catalog.Changed()
	_, err = k.Store.Remove(name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &chat.Error{Kind: chat.UnknownModel, Model: name, Err: err}
	case errors.Is(err, store.ErrForeign):
		return &chat.Error{Kind: chat.Forbidden, Model: name, Msg: err.Error(), Err: err}
	}
	return err
}

// lastName reports whether a model is the last whose name leads to its weights: without it nobody could unload them.
func (k *Keeper) lastName(ctx context.Context, spec chat.Spec) (bool, error) {
	list, err := k.Catalog.List(ctx)
	if err != nil {
		return false, err
	}
	for _, s := range list {
		if s.Path == spec.Path && !strings.EqualFold(s.Name, spec.Name) {
			return false, nil
		}
	}
	return true, nil
}

// Unneeded refuses to remove weights that models were made of.
func (k *Keeper) Unneeded(m store.Model) error {
	list, err := k.Catalog.AllDerived()
	if err != nil {
		return &chat.Error{
			Kind:  chat.Internal,
			Model: m.Name,
			Err:   err,
			Msg: "nothing is removed: a file in the server's folder of derived models cannot be read, so it is " +
				"not known which weights are needed",
		}
	}
	for _, d := range list {
		if d.Spec.Path == m.Path || strings.HasPrefix(d.Spec.Path, m.Path+string(filepath.Separator)) {
			return &chat.Error{
				Kind:  chat.Forbidden,
				Model: m.Name,
				Msg: fmt.Sprintf(
					"model %s was made of %s and needs its weights: remove it first",
					d.Spec.Name,
					m.Name,
				),
			}
		}
	}
	return nil
}

// About says what is known of a model beside its Spec.
func (k *Keeper) About(_ context.Context, name string) (modeladmin.About, error) {
	d, ok, err := k.Catalog.Derived(name)
	if err != nil {
		return modeladmin.About{}, err
	}
	if ok {
		return modeladmin.About{Licence: d.Licence, Parent: d.Parent}, nil
	}
	if m, ok := k.Store.Find(strings.TrimSpace(name)); ok {
		return modeladmin.About{Licence: m.Licence}, nil
	}
	return modeladmin.About{}, nil
}

// Create makes a model of another one or of uploaded files.
func (k *Keeper) Create(ctx context.Context, c modeladmin.Creation, report func(modeladmin.Progress)) (err error) {
	defer worded(&err)
	if err := k.free(ctx, c.Name); err != nil {
		return err
	}
	var d models.Derived
	if c.From != "" {
		spec, err := k.Catalog.Resolve(ctx, c.From)
		if err != nil {
			return err
		}
		about, err := k.About(ctx, c.From)
		if err != nil {
			return err
		}
		d = models.Derived{Spec: spec, Parent: spec.Name, Licence: about.Licence}
		parent, ok, err := k.Catalog.Derived(c.From)
		if err != nil {
			return err
		}
		if ok {
			d.Folder = parent.Folder
			if strings.EqualFold(clean(c.Name), parent.Spec.Name) { // it takes the other's place
				d.Parent = parent.Parent
			}
		}
	} else {
		report(modeladmin.Progress{Status: "using uploaded files"})
		if err := k.assemble(&d, c); err != nil {
			return err
		}
	}
	d.Spec.Name, d.Spec.Time = clean(c.Name), time.Now()
	if c.System != "" {
		d.Spec.System = c.System
	}
	if c.Template != "" {
		d.Spec.Template = c.Template
	}
	if len(c.Messages) > 0 {
		d.Spec.Messages = c.Messages
	}
	if len(c.Licences) > 0 {
		d.Licence = strings.Join(c.Licences, "\n")
	}
	if len(c.Stop) > 0 {
		d.Spec.Stop = c.Stop
	}
	if c.MaxTokens != 0 {
		d.Spec.MaxTokens = max(c.MaxTokens, 0)
	}
	if c.Context != 0 {
		d.Spec.Context = c.Context
	}
	d.Spec.Sampling = over(c.Sampling, d.Spec.Sampling)
	report(modeladmin.Progress{Status: "writing manifest"})
	if err := k.Catalog.Derive(d); err != nil {
		if c.From == "" {
			err = errors.Join(err, os.RemoveAll(d.Folder))
		}
		return err
	}
	return nil
}

// over returns a's settings, and b's where a says nothing.
func over(a, b chat.Sampling) chat.Sampling {
	pick := func(x, y *float32) *float32 {
		if x != nil {
			return x
		}
		return y
	}
	a.Temperature, a.TopP, a.MinP = pick(a.Temperature, b.Temperature), pick(a.TopP, b.TopP), pick(a.MinP, b.MinP)
	a.TypicalP, a.RepetitionPenalty = pick(a.TypicalP, b.TypicalP), pick(a.RepetitionPenalty, b.RepetitionPenalty)
	a.PresencePenalty, a.FrequencyPenalty = pick(
		a.PresencePenalty,
		b.PresencePenalty,
	), pick(
		a.FrequencyPenalty,
		b.FrequencyPenalty,
	)
	if a.TopK == nil {
		a.TopK = b.TopK
	}
	if a.RepeatLastN == nil {
		a.RepeatLastN = b.RepeatLastN
	}
	if a.Seed == nil {
		a.Seed = b.Seed
	}
	if a.LogitBias == nil {
		a.LogitBias = b.LogitBias
	}
	return a
}

// assemble puts uploaded files into a folder of their own.
func (k *Keeper) assemble(d *models.Derived, c modeladmin.Creation) error {
	base := k.uploadedDir()
	if err := os.MkdirAll(base, 0o755); err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	dir, err := os.MkdirTemp(base, "model-*")
	if err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	fail := func(err error) error { return errors.Join(err, os.RemoveAll(dir)) }
	for name, digest := range c.Files {
		if name != filepath.Base(name) || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
			return fail(chat.Invalidf("files", "%q is no file name", name))
		}
		from, err := k.blob(digest)
		if err != nil {
			return fail(err)
		}
		if err := os.Link(from, filepath.Join(dir, name)); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return fail(chat.Invalidf("files", "the file sha256:%s was not uploaded", digest))
			}
			return fail(fmt.Errorf("keeper: %w", err))
		}
		if st, err := os.Stat(from); err == nil {
			d.Spec.Size += st.Size()
		}
		d.Spec.Path, d.Spec.Digest = filepath.Join(dir, name), digest
	}
	if len(c.Files) != 1 || !strings.HasSuffix(strings.ToLower(d.Spec.Path), ".gguf") {
		d.Spec.Path, d.Spec.Digest = dir, ""
	}
	p, err := family.Open(d.Spec.Path)
	if err != nil {
		return fail(
			chat.Invalidf(
				"files",
				"these files are no model: %s",
				strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""),
			),
		)
	}
	if err := p.Close(); err != nil {
		return fail(fmt.Errorf("keeper: %w", err))
	}
	d.Folder = dir
	return nil
}
