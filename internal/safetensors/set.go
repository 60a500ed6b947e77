// Package safetensors owns the safetensors container: it reads one file, a folder, or the files named by an index,
// through mappings, and writes single files. Files come from strangers, so headers are checked strictly: duplicates,
// gaps, overlaps, wrong sizes and trailing bytes are refused. It knows names, element types, shapes and byte ranges,
// not what a tensor means to a model.
package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/mmap"
)

// maxFiles bounds the files of one checkpoint.
const maxFiles = 4096

// Set is an open checkpoint: the tensors of one or several files. Reading from several goroutines is safe; Close ends
// the life of every tensor's bytes.
type Set struct {
	files    []*mmap.File
	tensors  []*Tensor
	byName   map[string]*Tensor
	metadata map[string]string
}

// Tensor is one tensor of a checkpoint.
type Tensor struct {
	Name  string
	DType string // as in the file: "BF16", "F8_E4M3", "I64"
	Shape []int  // row-major, the last dimension varies fastest; empty for a single number

	file *mmap.File
	off  int // of the first byte in the file
	size int
}

// Size returns the number of bytes.
func (t *Tensor) Size() int { return t.size }

// Bytes returns the tensor's bytes, little-endian, as a view of the mapping that is valid until the set is closed. They
// need not be aligned. Do not write to them.
func (t *Tensor) Bytes() []byte { return t.file.Bytes()[t.off : t.off+t.size : t.off+t.size] }

// File returns the file that holds the tensor, for positioned reads, and the offset of its first byte.
func (t *Tensor) File() (f *mmap.File, off int64) { return t.file, int64(t.off) }

// Path returns the path of the file that holds the tensor.
func (t *Tensor) Path() string { return t.file.Name() }

// Release tells the system that the tensor's pages may be dropped from memory; they stay readable.
func (t *Tensor) Release() error { return t.file.Release(t.off, t.size) }

// Open opens a checkpoint. path is a .safetensors file, an index (.json) whose shards lie beside it, or a folder. In a
// folder model.safetensors.index.json comes first, then model.safetensors, then all files named *.safetensors together.
func Open(path string) (*Set, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	switch {
	case info.IsDir():
		return openFolder(path)
	case strings.HasSuffix(path, ".json"):
		return openIndex(path)
	}
	return openFiles([]string{path})
}

func openFolder(dir string) (*Set, error) {
	index := filepath.Join(dir, "model.safetensors.index.json")
	if _, err := os.Stat(index); err == nil {
		return openIndex(index)
	}
	single := filepath.Join(dir, "model.safetensors")
	if _, err := os.Stat(single); err == nil {
		return openFiles([]string{single})
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	var paths []string
	for _, e := range entries { // sorted by name
		if strings.HasSuffix(e.Name(), ".safetensors") && !e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("safetensors: %s holds no .safetensors file", dir)
	}
	return openFiles(paths)
}

// openIndex opens the shards that an index names. Every tensor of the index must be in the shard it names; tensors that
// the index does not mention are kept.
func openIndex(path string) (*Set, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	weights, err := parseIndex(m.Bytes())
	if err = errors.Join(err, m.Close()); err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	var shards []string
	for name, shard := range weights {
		if !plainName(shard) {
			return nil, fmt.Errorf(
				"safetensors: the index puts tensor %q into %q: shards must lie beside the index (in %s)",
				name,
				shard,
				path,
			)
		}
		shards = append(shards, shard)
	}
	slices.Sort(shards)
	shards = slices.Compact(shards)
	dir := filepath.Dir(path)
	paths := make([]string, len(shards))
	for i, shard := range shards {
		paths[i] = filepath.Join(dir, shard)
	}
	s, err := openFiles(paths)
	if err != nil {
		return nil, err
	}
	for name, shard := range weights {
		t, ok := s.byName[name]
		if !ok || t.Path() != filepath.Join(dir, shard) {
			err := fmt.Errorf(
				"safetensors: tensor %q is not in %s, where the index puts it: fetch both again (in %s)",
				name,
				shard,
				path,
			)
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// plainName reports whether name is a file name without any path.
func plainName(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.ContainsAny(name, "/\\:\x00")
}

func openFiles(paths []string) (*Set, error) {
	if len(paths) == 0 || len(paths) > maxFiles {
		return nil, fmt.Errorf("safetensors: a checkpoint of %d files: 1 to %d are possible", len(paths), maxFiles)
	}
	s := newSet()
	for _, path := range paths {
		m, err := mmap.Open(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("safetensors: %w", err), s.Close())
		}
		if err := s.add(m); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func newSet() *Set { return &Set{byName: make(map[string]*Tensor), metadata: make(map[string]string)} }

// add takes one file, which the set then owns, and parses it.
func (s *Set) add(m *mmap.File) error {
	s.files = append(s.files, m)
	h, err := parseFile(m.Bytes())
	if err != nil {
		return fmt.Errorf("%w (in %s)", err, m.Name())
	}
	for k, v := range h.metadata {
		if _, ok := s.metadata[k]; !ok {
			s.metadata[k] = v
		}
	}
	slices.SortFunc(
		h.tensors,
		func(a, b *Tensor) int { return cmp.Or(cmp.Compare(a.off, b.off), cmp.Compare(a.Name, b.Name)) },
	)
	for _, t := range h.tensors {
		t.file = m
		if old, ok := s.byName[t.Name]; ok {
			return fmt.Errorf("safetensors: tensor %q is in %s and in %s", t.Name, old.Path(), m.Name())
		}
		s.byName[t.Name] = t
		s.tensors = append(s.tensors, t)
	}
	return nil
}

// Close closes all files of the checkpoint.
func (s *Set) Close() error {
	var err error
	for _, m := range s.files {
		err = errors.Join(err, m.Close())
	}
	return err
}

// Tensors returns all tensors in the order of their bytes. The slice is shared; do not change it.
func (s *Set) Tensors() []*Tensor { return s.tensors }

// Tensor returns the tensor with the given name.
func (s *Set) Tensor(name string) (*Tensor, bool) { t, ok := s.byName[name]; return t, ok }

// Metadata returns the value under key in the files' __metadata__; the first file that has it wins.
func (s *Set) Metadata(key string) (string, bool) { v, ok := s.metadata[key]; return v, ok }

// Paths returns the paths of all files.
func (s *Set) Paths() []string {
	paths := make([]string, len(s.files))
	for i, m := range s.files {
		paths[i] = m.Name()
	}
	return paths
}
