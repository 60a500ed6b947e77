package store

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Watch tells whether what List gives may have changed: by the sizes, times and identities of the folders and files
// that it comes from, which takes a fraction of the time of reading them.
type Watch struct {
	stamps []stamp
	taken  time.Time
}

type stamp struct {
	path string
	info os.FileInfo // nil: it was not there
}

const (
	// maxWatched bounds how many files and folders are looked at; where there are more, all is read each time.
	maxWatched = 20_000
	// unsettled is how long a file must have been left alone for its time to tell of the next change: some file systems
	// keep times in steps of two seconds.
	unsettled = 2500 * time.Millisecond
)

// Watch begins to watch what List reads, and other folders with their files. It is called before List, so that a change
// between the two is seen later; the files of the models that List gives then are handed to Add.
func (s *Store) Watch(others ...string) *Watch {
	w := &Watch{taken: time.Now()}
	if s.home != "" {
		w.walk(s.Models(), 3, "")
	}
	for _, p := range s.places {
		only := ""
		if p.Kind == hubPlace {
			only = "models--" // beside them lie data sets, and all blobs
		}
		w.walk(p.root(), 4, only)
	}
	for _, dir := range others {
		w.walk(dir, 1, "")
	}
	return w
}

// Add watches the files of models, wherever they lie.
func (w *Watch) Add(list []Model) {
	for _, m := range list {
		w.add(m.Path)
	}
}

// walk watches a folder and what is in it, depth levels down. Of a Hugging Face cache the folder of blobs is left out:
// what names lead to are links to its files, and these are looked at behind the links.
func (w *Watch) walk(dir string, depth int, only string) {
	w.add(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if len(w.stamps) > maxWatched || !strings.HasPrefix(name, only) || only == "" && name == "blobs" {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() && depth > 1 {
			w.walk(path, depth-1, "")
			continue
		}
		w.add(path)
	}
}

func (w *Watch) add(path string) {
	info, err := os.Stat(path)
	if err != nil {
		info = nil
	}
	w.stamps = append(w.stamps, stamp{path, info})
}

// Unchanged reports whether nothing has changed. It is false for a while after a change that would hide a next one.
func (w *Watch) Unchanged() bool {
	if len(w.stamps) > maxWatched {
		return false
	}
	for _, s := range w.stamps {
		now, err := os.Stat(s.path)
		switch {
		case err != nil && s.info == nil:
		case err != nil || s.info == nil:
			return false
		case !now.ModTime().Equal(s.info.ModTime()) || now.Size() != s.info.Size() || !os.SameFile(now, s.info):
			return false
		case w.taken.Sub(now.ModTime()).Abs() < unsettled:
			return false
		}
	}
	return true
}
