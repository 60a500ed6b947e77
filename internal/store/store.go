// Package store owns the models on this machine: where they lie, what their names mean, and the locks that
// keep two processes from writing the same file. It does not download (package fetch does) and does not read
// what is inside a model.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/nearest"
)

// A Store is a folder with models, beside the folders of other programs whose models run in place.
type Store struct {
	home   string
	places []Place
}

// Open returns the store below home. The folder is made when something is written. Models in the places are found by
// their names too. Where home is "", the store holds nothing and what would write to it fails with ErrNoHome.
func Open(home string, places ...Place) *Store { return &Store{home: home, places: places} }

// ErrNoHome says that this user has no folder for data. What runs a file, or another program's model, needs none.
var ErrNoHome = errors.New("no home folder is known: set BALEEN_HOME to a folder for models")

// Home returns the folder of this user's data: configured when it is not empty, else what the system's
// conventions say, else ErrNoHome. getenv is os.Getenv outside tests.
func Home(configured string, getenv func(string) string) (string, error) {
	if configured != "" {
		return filepath.Abs(configured)
	}
	switch runtime.GOOS {
	case "windows":
		if dir := getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "baleen"), nil
		}
	case "darwin", "ios":
		if dir := getenv("HOME"); dir != "" {
			return filepath.Join(dir, "Library", "Application Support", "baleen"), nil
		}
	default:
		if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "baleen"), nil
		}
		if dir := getenv("HOME"); dir != "" {
			return filepath.Join(dir, ".local", "share", "baleen"), nil
		}
	}
	return "", ErrNoHome
}

// OpenUser returns the store of this user, see Home, with the places of other programs.
func OpenUser(configured string, getenv func(string) string) (*Store, error) {
	home, err := Home(configured, getenv)
	if err != nil && !errors.Is(err, ErrNoHome) {
		return nil, err
	}
	return Open(home, Places(getenv)...), nil
}

// Dir is the folder of this user's data, "" where there is none.
func (s *Store) Dir() string { return s.home }

// Models is the folder that holds fetched models.
func (s *Store) Models() string { return filepath.Join(s.home, "models") }

// Path is where an entry lies, or will lie once it is fetched: a file or a folder.
func (s *Store) Path(e Entry) string { return filepath.Join(s.Models(), e.FileName()) }

// Staging is the folder in which an entry is put together before it is published.
func (s *Store) Staging(e Entry) string {
	return filepath.Join(s.Models(), "."+encodeName(e.Name)+".pull")
}

// Has reports whether the entry is there, with its whole size. Files are published only after their checksum
// was found right, so the size is looked at for files that something else has cut off.
func (s *Store) Has(e Entry) bool {
	if s.home == "" {
		return false
	}
	if e.OneFile() {
		fi, err := os.Stat(s.Path(e))
		return err == nil && fi.Mode().IsRegular() && fi.Size() == e.Size
	}
	_, err := ReadManifest(s.Path(e))
	return err == nil
}

// openPath is the path to open of an entry that is there: a folder's only GGUF file, else the folder.
func (s *Store) openPath(e Entry) string {
	path := s.Path(e)
	if e.OneFile() {
		return path
	}
	if m, ok := s.ownFolder(path); ok && m.Problem == "" {
		return m.Path
	}
	return path
}

// Located is the path to open once an entry is there.
func (s *Store) Located(e Entry) string { return s.openPath(e) }

// List returns the models on this machine: those of the store, then those of other programs.
func (s *Store) List() ([]Model, error) {
	out, err := s.own()
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder for models: %w", err)
	}
	for _, p := range s.places {
		out = append(out, p.list()...)
	}
	sortModels(out)
	return out, nil
}

// Blocked says which places of other programs are there and cannot be read, so that List lacks their models.
func (s *Store) Blocked() []error {
	var out []error
	for _, p := range s.places {
		if _, err := os.ReadDir(p.root()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, fmt.Errorf("models of %s are left out: %w", p.Kind, err))
		}
	}
	return out
}

// Find finds a model on this machine by its name; upper and lower case are the same, and a tag "latest" may be left
// out. Where several have the name, the store's own comes first.
func (s *Store) Find(name string) (Model, bool) {
	m, ok, err := s.find(name)
	return m, ok && err == nil
}

// maxFind bounds what may be a name. Those of other programs' models follow no rules of ours: a registry has a port
// before its colon, a folder spaces.
const maxFind = 1000

func (s *Store) find(name string) (Model, bool, error) {
	if name == "" || len(name) > maxFind {
		return Model{}, false, nil
	}
	list, err := s.List()
	if err != nil {
		return Model{}, false, err
	}
	m, ok := FindIn(list, name)
	return m, ok, nil
}

// FindIn is Find in a list that List has given.
func FindIn(list []Model, name string) (Model, bool) {
	if name == "" || len(name) > maxFind {
		return Model{}, false
	}
	fits := []func(have string) bool{
		func(have string) bool { return have == name },
		func(have string) bool { return strings.EqualFold(have, name) },
		func(have string) bool { return strings.EqualFold(untagged(have), untagged(name)) },
	}
	for _, fit := range fits {
		for _, m := range list {
			if fit(m.Name) {
				return m, true
			}
		}
	}
	return findPart(list, name)
}

// untagged is a name without the tag that may be left out, and that lists of Ollama's API add to every name.
func untagged(name string) string {
	if n := len(name) - len(":latest"); n > 0 && strings.EqualFold(name[n:], ":latest") {
		return name[:n]
	}
	return name
}

// findPart finds REPO:QUANTIZATION among models that are called REPO:FILE, where only one fits.
func findPart(list []Model, name string) (Model, bool) {
	repo, pick, ok := strings.Cut(name, ":")
	if !ok {
		return Model{}, false
	}
	var found []Model
	for _, m := range list {
		r, file, _ := strings.Cut(m.Name, ":")
		if file == "" {
			file = fileOf(m.Path)
		}
		if strings.EqualFold(r, repo) && HasQuant(file, pick) {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		return Model{}, false
	}
	return found[0], true
}

// fileOf is what a model's file or folder is called.
func fileOf(path string) string {
	if strings.HasSuffix(strings.ToLower(path), ".gguf") {
		return stem(path)
	}
	return filepath.Base(path)
}

// HasQuant reports whether a file's name has a quantization's name in it, as a word.
func HasQuant(file, quant string) bool {
	file, quant = strings.ToLower(file), strings.ToLower(quant)
	for at := 0; quant != ""; {
		i := strings.Index(file[at:], quant)
		if i < 0 {
			return false
		}
		i += at
		end := i + len(quant)
		if (i == 0 || isBreak(file[i-1])) && (end == len(file) || isBreak(file[end])) {
			return true
		}
		at = i + 1
	}
	return false
}

func isBreak(c byte) bool { return c == '-' || c == '.' || c == '/' }

// A Ref is what a MODEL argument means: an entry to fetch, or what lies at a path.
type Ref struct {
	Path  string
	Entry *Entry // nil for a path and for another program's model
	Model *Model // nil for a path and for an entry
}

// ErrNotFound is wrapped by errors about a MODEL argument that is neither a name nor a path.
var ErrNotFound = errors.New("no such model")

// A MisspeltError is an ErrNotFound about what is nearly a model's name.
type MisspeltError struct {
	Name string
	Near []string // the names that may have been meant; at least one
}

func (e *MisspeltError) Error() string {
	return fmt.Sprintf("there is no model %q; did you mean %s?", e.Name, nearest.Quoted(e.Near))
}

// Is makes it an ErrNotFound.
func (e *MisspeltError) Is(target error) bool { return target == ErrNotFound }

// near returns the names, of the catalog and on this machine, that arg may have been meant to be.
func (s *Store) near(arg string) []string {
	if CheckName(arg) != nil {
		return nil
	}
	known := names()
	if list, err := s.List(); err == nil {
		known = append(known, modelNames(list)...)
	}
	if near := nearest.Names(arg, known); len(near) > 0 {
		return near
	}
	return begun(arg, known)
}

// begun returns up to three of the names that begin with word and go on with a size or a tag. A word with neither a
// digit nor a hyphen is no such beginning, as it is one of a sentence.
func begun(word string, known []string) []string {
	if !strings.ContainsAny(word, "0123456789-") {
		return nil
	}
	var out []string
	for _, name := range known {
		n := len(word)
		if len(name) > n && (name[n] == '-' || name[n] == ':') && strings.EqualFold(name[:n], word) &&
			!slices.Contains(out, name) {
			if out = append(out, name); len(out) == 3 {
				break
			}
		}
	}
	return out
}

// Misspelt returns an error where name is nearly a name of the catalog and none of it.
func Misspelt(name string) error {
	near := nearest.Names(name, names())
	if len(near) == 0 || slices.Contains(near, name) {
		return nil
	}
	return &MisspeltError{Name: name, Near: near}
}

// modelNames are the names of models, without the tag that may be left out.
func modelNames(list []Model) []string {
	var out []string
	for _, m := range list {
		out = append(out, strings.TrimSuffix(m.Name, ":latest"))
	}
	return out
}

// Resolve says what a MODEL argument means: a catalog name, an existing path, the name of a model that is on this
// machine, or an address (see Remote). Catalog names win over files of the same name in the current folder; write
// ./NAME for these.
func (s *Store) Resolve(arg string) (Ref, error) {
	if e, ok := Lookup(arg); ok {
		return s.entryRef(e), nil
	}
	path := expandHome(arg)
	if _, err := os.Stat(path); err == nil {
		return Ref{Path: path}, nil
	} else if !errors.Is(err, fs.ErrNotExist) && LooksLikePath(arg) {
		return Ref{}, err
	}
	if m, ok, err := s.find(arg); err != nil {
		return Ref{}, err
	} else if ok {
		if m.Problem != "" {
			return Ref{}, fmt.Errorf("%s (%s) cannot run: %s", m.Name, m.Where, m.Problem)
		}
		return Ref{Path: m.Path, Model: &m}, nil
	}
	if e, ok, err := Remote(arg, false); err != nil {
		return Ref{}, err
	} else if ok {
		return s.entryRef(e), nil
	}
	if LooksLikePath(arg) {
		return Ref{}, fmt.Errorf("%w: there is no file or folder %s", ErrNotFound, arg)
	}
	if near := s.near(arg); len(near) > 0 {
		return Ref{}, &MisspeltError{Name: arg, Near: near}
	}
	return Ref{}, fmt.Errorf(
		"%w: %q is neither a known name (%s, ...; see \"baleen list --all\") nor a file or folder",
		ErrNotFound,
		arg,
		strings.Join(names()[:4], ", "),
	)
}

func (s *Store) entryRef(e Entry) Ref { return Ref{Path: s.openPath(e), Entry: &e} }

// Known reports whether arg is a catalog name or an existing path.
func (s *Store) Known(arg string) bool {
	_, err := s.Resolve(arg)
	return err == nil
}

// LooksLikePath reports whether someone who wrote arg meant a file, so that a missing one is an error rather
// than a prompt.
func LooksLikePath(arg string) bool {
	if strings.ContainsAny(arg, " \t\n") {
		return false
	}
	for _, p := range []string{"/", "./", "../", "~/", `.\`, `..\`} {
		if strings.HasPrefix(arg, p) {
			return true
		}
	}
	lower := strings.ToLower(arg)
	return strings.HasSuffix(lower, ".gguf") || strings.HasSuffix(lower, ".safetensors")
}

func names() []string {
	var out []string
	for _, e := range catalog {
		out = append(out, e.Name)
	}
	return out
}

func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if dir, err := os.UserHomeDir(); err == nil {
			return filepath.Join(dir, rest)
		}
	}
	return path
}
