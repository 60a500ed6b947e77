package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/mmap"
)

// manifestName is the file that makes a folder of the store a model: it is there only when all others are.
const manifestName = "baleen.json"

// maxManifest bounds what is read of manifests, ours and others'.
const maxManifest = 4 << 20

// A Manifest says what a model of the store is and where it came from.
type Manifest struct {
	Name     string    `json:"name"`
	Source   string    `json:"source,omitempty"`   // address it came from
	Revision string    `json:"revision,omitempty"` // commit or digest
	Licence  string    `json:"licence,omitempty"`
	Fetched  time.Time `json:"fetched"`
	Files    []File    `json:"files,omitempty"`
	Link     string    `json:"link,omitempty"` // where another program keeps the model; Files are settings then
}

// WriteManifest writes a folder's manifest, whole or not at all.
func WriteManifest(dir string, m Manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, manifestName)
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// ReadManifest reads a folder's manifest and checks that the files are there with their sizes.
func ReadManifest(dir string) (Manifest, error) {
	b, err := readSmall(filepath.Join(dir, manifestName))
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	if err := CheckName(m.Name); err != nil {
		return Manifest{}, err
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return Manifest{}, fmt.Errorf("%s names a file outside its folder", filepath.Join(dir, manifestName))
		}
		fi, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			return Manifest{}, err
		}
		if !fi.Mode().IsRegular() || fi.Size() != f.Size {
			return Manifest{}, fmt.Errorf(
				"%s has %d bytes, its manifest says %d",
				filepath.Join(dir, f.Name),
				fi.Size(),
				f.Size,
			)
		}
	}
	if len(m.Files) == 0 && m.Link == "" {
		return Manifest{}, fmt.Errorf("%s names no files", filepath.Join(dir, manifestName))
	}
	return m, nil
}

// size is the sum of the files' sizes.
func (m Manifest) size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// readSmall reads a file that somebody may have made too large, or a pipe that nobody writes to.
func readSmall(path string) ([]byte, error) { return mmap.ReadSmall(path, maxManifest) }

// A Model is one that is on this machine.
type Model struct {
	Name     string // what commands call it
	Path     string // of the file or folder
	Where    string // whose it is: "baleen", "Ollama", "Hugging Face", "LM Studio"
	Size     int64
	Modified time.Time
	Own      bool   // it may be removed by us; others' models are only read
	Source   string // address it came from, "" where nobody knows
	Digest   string // SHA-256 of the model's file, "" where nobody knows
	Licence  string
	Problem  string // why it cannot run; "" where nothing is known against it

	// What an Ollama manifest says beside the weights.
	System   string
	Template string // in Go's template language
	Params   map[string]any
	Messages []Message // before every conversation
}

// A Message is a turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// own lists the models of this store.
func (s *Store) own() ([]Model, error) {
	if s.home == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(s.Models())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Model
	for _, d := range entries {
		path := filepath.Join(s.Models(), d.Name())
		switch {
		case strings.HasPrefix(d.Name(), "."):
		case strings.HasSuffix(d.Name(), ".gguf") && !d.IsDir():
			if m, ok := s.ownFile(path); ok {
				out = append(out, m)
			}
		case d.IsDir():
			if m, ok := s.ownFolder(path); ok {
				out = append(out, m)
			}
		}
	}
	return out, nil
}

func (s *Store) ownFile(path string) (Model, bool) {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return Model{}, false
	}
	m := Model{
		Name: strings.TrimSuffix(
			filepath.Base(path),
			".gguf",
		), Path: path, Where: ownPlace, Size: fi.Size(), Modified: fi.ModTime(), Own: true,
	}
	if e, ok := Lookup(m.Name); ok && e.OneFile() {
		m.Licence, m.Digest = e.Licence, e.SHA256
		if fi.Size() != e.Size {
			m.Problem = "the file is cut off; fetch it again"
		}
	}
	return m, true
}

func (s *Store) ownFolder(path string) (Model, bool) {
	man, err := ReadManifest(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, serr := os.Stat(filepath.Join(path, manifestName)); serr != nil {
			return Model{}, false
		}
	}
	fi, serr := os.Stat(path)
	if serr != nil {
		return Model{}, false
	}
	m := Model{
		Name: man.Name, Path: path, Where: ownPlace, Size: man.size(), Modified: fi.ModTime(), Own: true,
		Source: man.Source, Licence: man.Licence,
	}
	if err != nil {
		m.Name, m.Problem = strings.NewReplacer("+", "/", "=", ":").Replace(filepath.Base(path)), err.Error()
		return m, true
	}
	if e, ok := Lookup(man.Name); ok && m.Licence == "" {
		m.Licence = e.Licence
	}
	if len(man.Files) > 0 && strings.HasSuffix(man.Files[0].Name, ".gguf") {
		m.Digest = man.Files[0].SHA256
	}
	if man.Link != "" {
		m.Path = man.Link
		if m.Size, err = treeSize(man.Link); err != nil {
			m.Problem = "what it is a copy of is gone: " + man.Link
		}
	} else if file, one := onlyFile(path, man); one {
		m.Path = file
	}
	m.takeFolder(path, man)
	return m, true
}

// onlyFile is the path of the GGUF file, or the first of its parts, that a folder holds.
func onlyFile(dir string, m Manifest) (string, bool) {
	for _, f := range m.Files {
		if strings.HasSuffix(f.Name, ".gguf") {
			return filepath.Join(dir, filepath.FromSlash(f.Name)), true
		}
	}
	return "", false
}

// treeSize is the size of a file, with the other parts of a split one, or of a folder's files.
func treeSize(path string) (int64, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if !fi.IsDir() {
		var n int64
		for _, p := range shards(path) {
			if fi, err := os.Stat(p); err == nil {
				n += fi.Size()
			}
		}
		return n, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, e := range entries {
		if fi, err := os.Stat(filepath.Join(path, e.Name())); err == nil && fi.Mode().IsRegular() {
			n += fi.Size()
		}
	}
	return n, nil
}
