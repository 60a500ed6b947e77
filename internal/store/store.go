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
	"strings"
)

// A Store is a folder with models.
type Store struct {
	home string
}

// Open returns the store below home. The folder is made when something is written.
func Open(home string) *Store { return &Store{home: home} }

// Home returns the folder of this user's data: configured when it is not empty, else what the system's
// conventions say. getenv is os.Getenv outside tests.
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
	return "", errors.New("no home folder is known: set BALEEN_HOME to a folder for models")
}

// Models is the folder that holds fetched models.
func (s *Store) Models() string { return filepath.Join(s.home, "models") }

// Path is where an entry lies, or will lie once it is fetched.
func (s *Store) Path(e Entry) string { return filepath.Join(s.Models(), e.FileName()) }

// Has reports whether the entry is there, with its whole size. Files are published only after their checksum
// was found right, so the size is looked at for files that something else has cut off.
func (s *Store) Has(e Entry) bool {
	fi, err := os.Stat(s.Path(e))
	return err == nil && fi.Mode().IsRegular() && fi.Size() == e.Size
}

// A Ref is what a MODEL argument means: a catalog entry, or a path.
type Ref struct {
	Path  string
	Entry *Entry // nil for a path
}

// ErrNotFound is wrapped by errors about a MODEL argument that is neither a name nor a path.
var ErrNotFound = errors.New("no such model")

// Resolve says what a MODEL argument means: an existing path, or else a catalog name. Names win over files of
// the same name in the current folder; write ./NAME for these.
func (s *Store) Resolve(arg string) (Ref, error) {
	if e, ok := Lookup(arg); ok {
		return Ref{Path: s.Path(e), Entry: &e}, nil
	}
	path := expandHome(arg)
	if _, err := os.Stat(path); err == nil {
		return Ref{Path: path}, nil
	} else if !errors.Is(err, fs.ErrNotExist) && LooksLikePath(arg) {
		return Ref{}, err
	}
	if LooksLikePath(arg) {
		return Ref{}, fmt.Errorf("%w: there is no file or folder %s", ErrNotFound, arg)
	}
	return Ref{}, fmt.Errorf("%w: %q is neither a known name (%s) nor a file or folder", ErrNotFound, arg,
		strings.Join(names(), ", "))
}

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
