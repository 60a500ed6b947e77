package models

import (
	"errors"
	"io/fs"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/store"
)

// A shelf is what lay on disk at a time. It is read again when something has changed there: reading takes milliseconds
// for each model, and requests name models all the time.
type shelf struct {
	watch   *store.Watch
	checked time.Time // when nothing had changed

	models  []store.Model // of the store and of other programs
	made    []Derived
	problem error            // of derived models that cannot be read
	files   map[string]error // of derived models, by path: why it cannot be read, nil where it can
	byFile  map[string]Derived
}

// fresh is how long nobody looks at the disk again. Changes that this process makes are seen at once: see Changed.
const fresh = 20 * time.Millisecond

// Changed makes the catalog read what lies on disk again: whoever changes that calls it.
func (c *Catalog) Changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = nil
}

// shelf returns what lies on disk now, or lay there within the time that is fresh.
func (c *Catalog) shelf() (*shelf, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	old := c.seen
	if old != nil && (now.Sub(old.checked) < fresh || old.watch.Unchanged()) {
		old.checked = now
		return old, nil
	}
	sh := &shelf{
		checked: now,
		watch:   c.store.Watch(c.DerivedDir()),
		files:   map[string]error{},
		byFile:  map[string]Derived{},
	}
	var err error
	if sh.models, err = c.store.List(); err != nil {
		return nil, &chat.Error{Kind: chat.Internal, Msg: "the models cannot be listed", Err: err}
	}
	sh.watch.Add(sh.models)
	sh.problem = c.eachDerived(func(path string, d Derived, err error) {
		sh.files[path] = err
		if err == nil {
			sh.byFile[path] = d
			sh.made = append(sh.made, d)
		}
	})
	c.seen = sh
	return sh, nil
}

// derived is Catalog.Derived of what lay on disk then.
func (sh *shelf) derived(c *Catalog, name string) (Derived, bool, error) {
	if store.CheckName(key(name)) != nil {
		return Derived{}, false, nil
	}
	path := c.fileOf(name)
	err, ok := sh.files[path]
	if !ok {
		err = fs.ErrNotExist
		if sh.problem != nil && len(sh.files) == 0 { // the folder itself cannot be read
			err = sh.problem
		}
	}
	return checkDerived(name, path, sh.byFile[path], err)
}

// checkDerived is what reading a derived model's file means for its name.
func checkDerived(name, path string, d Derived, err error) (Derived, bool, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Derived{}, false, nil
	case err != nil:
		return Derived{}, false, damaged(name, err)
	case key(d.Spec.Name) != key(name):
		return Derived{}, false, damaged(name, errors.New(path+" is of another model: "+d.Spec.Name))
	}
	return d, true, nil
}
