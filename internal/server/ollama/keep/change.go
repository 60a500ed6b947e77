package keep

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/server/chat"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/store"
)

// A teller turns a download's progress into Ollama's lines.
type teller struct {
	report func(ollama.Progress)
	sum    string // of the model's one file; "": not known before it is here
	step   ollama.Progress
}

// Start begins a transfer. Clients tell transfers apart by their digests, so one whose bytes are not known yet gets
// that of its title.
func (t *teller) Start(title string, done, total int64) {
	sum := t.sum
	if sum == "" {
		sum = fmt.Sprintf("%x", sha256.Sum256([]byte(title)))
	}
	t.step = ollama.Progress{Status: "pulling " + title, Digest: "sha256:" + sum, Total: total}
	t.Set(done)
}

func (t *teller) Set(done int64) {
	t.step.Completed = done
	t.report(t.step)
}

func (t *teller) Stop() {}

func (t *teller) Note(line string) { t.report(ollama.Progress{Status: line}) }

// Pull fetches a model by a name of the catalog, of Hugging Face or of Ollama's registry.
func (k *Keeper) Pull(ctx context.Context, name string, report func(ollama.Progress)) error {
	if strings.Contains(name, "://") {
		return chat.Invalidf("model", "addresses are not fetched for clients: name a model of the catalog, hf.co/ORG/REPO or NAME:TAG")
	}
	plain := strings.TrimSuffix(name, ":latest")
	e, ok := store.Lookup(strings.ToLower(plain))
	if !ok {
		if m, ok := k.store.Find(plain); ok && m.Problem == "" {
			report(ollama.Progress{Status: "model is here already"})
			return nil
		}
		var err error
		if e, ok, err = store.Remote(name, true); err != nil {
			return chat.Invalidf("model", "%v", err)
		} else if !ok {
			return &chat.Error{Kind: chat.UnknownModel, Model: name}
		}
	}
	report(ollama.Progress{Status: "pulling manifest"})
	f := k.fetcher
	f.Progress = &teller{report: report, sum: e.SHA256}
	if _, err := f.Fetch(ctx, e); err != nil {
		return fetchError(name, err)
	}
	report(ollama.Progress{Status: "verifying sha256 digest"}) // which is done before a model is published
	return nil
}

// fetchError words a failed download for clients.
func fetchError(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var status *fetch.StatusError
	if errors.As(err, &status) && status.Code == 404 {
		return &chat.Error{Kind: chat.UnknownModel, Model: name, Msg: fmt.Sprintf("model '%s' not found: %v", name, err), Err: err}
	}
	return &chat.Error{Kind: chat.Internal, Model: name, Msg: err.Error(), Err: err}
}

// Copy gives a model a second name, with all that was added to it.
func (k *Keeper) Copy(ctx context.Context, source, destination string) error {
	s, err := k.Resolve(ctx, source)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.derive(s, destination, addition{
		Parent: s.Name, System: s.System, Template: s.Template, Messages: s.Messages, Sampling: s.Sampling, Stop: s.Stop,
		MaxTokens: s.MaxTokens, Context: s.Context,
	})
}

// derive makes a name of the store with a model's weights. The addition is written first: without the name it means
// nothing, so that being cut off between both leaves no half model.
func (k *Keeper) derive(s chat.Spec, name string, a addition) error {
	defer k.forget()
	name, err := k.free(name, s.Name)
	if err != nil {
		return err
	}
	a.Name, a.Weights = name, s.Path
	if about, err := k.About(context.Background(), s.Name); err == nil && a.Licence == "" {
		a.Licence = about.Licence
	}
	old, exists := k.store.Find(name)
	if err := k.writeAddition(a); err != nil {
		return failed(name, err)
	}
	if exists && old.Own && strings.EqualFold(name, s.Name) {
		return nil // a model that is made anew from itself keeps its weights
	}
	if exists && old.Own {
		if _, err := k.store.Remove(old.Name); err != nil {
			return failed(name, err)
		}
	}
	from := s.Path
	if m, ok := k.store.Find(s.Name); ok && m.Own {
		from = m.Name
	}
	if err := k.store.Copy(from, name); err != nil {
		return failed(name, err)
	}
	return nil
}

// free checks a new name. A name that is taken by a model of the store is free: it is replaced, as with Ollama.
func (k *Keeper) free(name, from string) (string, error) {
	name = strings.TrimSuffix(name, ":latest")
	if err := store.CheckName(name); err != nil {
		return "", chat.Invalidf("model", "%v", err)
	}
	if _, ok := store.Lookup(strings.ToLower(name)); ok {
		return "", chat.Invalidf("model", "%s is a name of the catalog: choose another", name)
	}
	if m, ok := k.store.Find(name); ok && !m.Own && strings.EqualFold(m.Name, name) {
		return "", &chat.Error{Kind: chat.Forbidden, Msg: fmt.Sprintf("%s belongs to %s: choose another name", name, m.Where)}
	}
	if s, err := k.base.Resolve(context.Background(), name); err == nil && !strings.EqualFold(s.Name, from) {
		if m, ok := k.store.Find(name); !ok || !m.Own {
			return "", chat.Invalidf("model", "%s is served from %s: choose another name", name, filepath.Base(s.Path))
		}
	}
	return name, nil
}

func failed(name string, err error) error {
	var known *chat.Error
	if errors.As(err, &known) {
		return err
	}
	return &chat.Error{Kind: chat.Internal, Model: name, Msg: fmt.Sprintf("model %s could not be changed: %v", name, err), Err: err}
}

// Delete removes a model of the store.
func (k *Keeper) Delete(_ context.Context, name string) error {
	defer k.forget()
	k.mu.Lock()
	defer k.mu.Unlock()
	_, err := k.store.Remove(name)
	switch {
	case errors.Is(err, store.ErrForeign):
		return &chat.Error{Kind: chat.Forbidden, Msg: err.Error(), Err: err}
	case errors.Is(err, store.ErrNotFound):
		return &chat.Error{Kind: chat.Forbidden, Msg: fmt.Sprintf("%s is no model of the store: it is served from a file", name), Err: err}
	case err != nil:
		return failed(name, err)
	}
	if err := os.Remove(k.additionPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(name, err)
	}
	return nil
}

// Create makes a model of another one, or of uploaded files.
func (k *Keeper) Create(ctx context.Context, c ollama.Creation, report func(ollama.Progress)) error {
	a := addition{
		Parent: c.From, System: c.System, Template: c.Template, Licence: strings.Join(c.Licences, "\n"), Messages: c.Messages,
		Sampling: c.Sampling, Stop: c.Stop, MaxTokens: c.MaxTokens, Context: c.Context,
	}
	if c.From == "" {
		return k.fromFiles(c, a, report)
	}
	s, err := k.Resolve(ctx, c.From)
	if err != nil {
		return err
	}
	a.inherit(s)
	k.mu.Lock()
	defer k.mu.Unlock()
	report(ollama.Progress{Status: "using existing layer"})
	report(ollama.Progress{Status: "writing manifest"})
	return k.derive(s, c.Name, a)
}

// inherit fills in what a creation does not say.
func (a *addition) inherit(s chat.Spec) {
	if a.System == "" {
		a.System = s.System
	}
	if a.Template == "" {
		a.Template = s.Template
	}
	if len(a.Messages) == 0 {
		a.Messages = s.Messages
	}
	if len(a.Stop) == 0 {
		a.Stop = s.Stop
	}
	if a.MaxTokens == 0 {
		a.MaxTokens = s.MaxTokens
	}
	if a.Context == 0 {
		a.Context = s.Context
	}
	a.Sampling = over(a.Sampling, s.Sampling)
}

// over is a with b's settings where a has none.
func over(a, b chat.Sampling) chat.Sampling {
	for _, f := range []struct{ to, from **float32 }{
		{&a.Temperature, &b.Temperature},
		{&a.TopP, &b.TopP},
		{&a.MinP, &b.MinP},
		{&a.TypicalP, &b.TypicalP},
		{&a.RepetitionPenalty, &b.RepetitionPenalty},
		{&a.PresencePenalty, &b.PresencePenalty},
		{&a.FrequencyPenalty, &b.FrequencyPenalty},
	} {
		if *f.to == nil {
			*f.to = *f.from
		}
	}
	if a.TopK == nil {
		a.TopK = b.TopK
	}
	if a.RepeatLastN == nil {
		a.RepeatLastN = b.RepeatLastN
	}
	if a.Seed == nil {
		a.Seed = b.Seed
	}
	return a
}

// fromFiles makes a model of uploads. It is published only when it can be read.
func (k *Keeper) fromFiles(c ollama.Creation, a addition, report func(ollama.Progress)) error {
	defer k.forget()
	k.mu.Lock()
	defer k.mu.Unlock()
	name, err := k.free(c.Name, "")
	if err != nil {
		return err
	}
	a.Name = name
	if err := os.MkdirAll(k.store.Models(), 0o755); err != nil {
		return failed(name, err)
	}
	dir, err := os.MkdirTemp(k.store.Models(), ".create-*")
	if err != nil {
		return failed(name, err)
	}
	defer os.RemoveAll(dir)
	man := store.Manifest{Name: name, Fetched: time.Now().UTC().Truncate(time.Second), Licence: a.Licence}
	for file, hex := range c.Files {
		st, err := os.Stat(k.blobPath(hex))
		if err == nil {
			err = link(k.blobPath(hex), filepath.Join(dir, file))
		}
		if err != nil {
			return failed(name, err)
		}
		man.Files = append(man.Files, store.File{Name: file, Size: st.Size(), SHA256: hex})
	}
	slices.SortFunc(man.Files, func(a, b store.File) int { return strings.Compare(a.Name, b.Name) })
	report(ollama.Progress{Status: "parsing model"})
	path := dir
	if first := man.Files[0].Name; strings.HasSuffix(first, ".gguf") {
		path = filepath.Join(dir, first)
	}
	p, err := family.Open(path)
	if err != nil {
		return chat.Invalidf("files", "these files are no model: %s", strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""))
	}
	if err := p.Close(); err != nil {
		return failed(name, err)
	}
	report(ollama.Progress{Status: "writing manifest"})
	if err := store.WriteManifest(dir, man); err != nil {
		return failed(name, err)
	}
	if err := k.writeAddition(a); err != nil {
		return failed(name, err)
	}
	if old, ok := k.store.Find(name); ok && old.Own {
		if _, err := k.store.Remove(old.Name); err != nil {
			return failed(name, err)
		}
	}
	to := filepath.Join(k.store.Models(), strings.NewReplacer("/", "+", ":", "=").Replace(name))
	if err := os.Chmod(dir, 0o755); err != nil {
		return failed(name, err)
	}
	if err := os.Rename(dir, to); err != nil {
		return failed(name, err)
	}
	for _, hex := range c.Files {
		if err := os.Remove(k.blobPath(hex)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed(name, err)
		}
	}
	return nil
}
