package gguf

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/quant"
)

// File is an open GGUF model: one file, or all the files of a split one. Reading from several goroutines is safe; Close
// ends the life of every tensor's bytes.
type File struct {
	version   uint32
	alignment int
	keys      []string
	values    map[string]Value
	tensors   []*Tensor
	byName    map[string]*Tensor
	shards    []*mmap.File
}

// Tensor is one tensor of the file.
type Tensor struct {
	Name string
	Dims []int // ggml order: Dims[0] varies fastest; 1 to 4 of them, all at least 1
	Type quant.Type

	shard *mmap.File
	off   int // of the first byte in the shard
	size  int
}

// Elements returns the number of elements. It fits: the reader checked the product.
func (t *Tensor) Elements() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Size returns the number of bytes.
func (t *Tensor) Size() int { return t.size }

// Bytes returns the tensor's bytes as a view of the mapping, valid until the file is closed. Do not write to it.
func (t *Tensor) Bytes() []byte { return t.shard.Bytes()[t.off : t.off+t.size : t.off+t.size] }

// File returns the file that holds the tensor, for positioned reads, and the offset of its first byte.
func (t *Tensor) File() (f *mmap.File, off int64) { return t.shard, int64(t.off) }

// Path returns the path of the file that holds the tensor.
func (t *Tensor) Path() string { return t.shard.Name() }

// Release tells the system that the tensor's pages may be dropped from memory; they stay readable.
func (t *Tensor) Release() error { return t.shard.Release(t.off, t.size) }

// splitName matches the name that every shard of a split model must have.
var splitName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// maxShards bounds the files of one model; the name's five digits would allow more than a process may open.
const maxShards = 1024

// Open opens the model at path. If the file is one of several shards, any of them, all are opened; they must lie side
// by side under the names that the format prescribes (PREFIX-00001-of-00003.gguf).
func Open(path string) (*File, error) {
	first, err := openShard(path)
	if err != nil {
		return nil, err
	}
	no, count, err := first.split()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (in %s)", err, path), first.close())
	}
	if count <= 1 {
		return assemble([]*shard{first})
	}
	m := splitName.FindStringSubmatch(filepath.Base(path))
	if m == nil || m[3] != fmt.Sprintf("%05d", count) || m[2] != fmt.Sprintf("%05d", no+1) {
		err := fmt.Errorf("gguf: %s is shard %d of %d but is not named PREFIX-%05d-of-%05d.gguf: "+
			"rename the shards, or open them by their paths", path, no+1, count, no+1, count)
		return nil, errors.Join(err, first.close())
	}
	if err := first.close(); err != nil {
		return nil, err
	}
	paths := make([]string, count)
	for i := range paths {
		paths[i] = filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i+1, m[3]))
	}
	return OpenShards(paths)
}

// OpenShards opens a split model whose files are listed in order, under whatever names. One path that is not a shard is
// a whole model.
func OpenShards(paths []string) (*File, error) {
	if len(paths) == 0 || len(paths) > maxShards {
		return nil, fmt.Errorf("gguf: %d shards: from 1 to %d are possible", len(paths), maxShards)
	}
	var shards []*shard
	fail := func(err error) (*File, error) {
		for _, s := range shards {
			err = errors.Join(err, s.close())
		}
		return nil, err
	}
	for i, path := range paths {
		s, err := openShard(path)
		if err != nil {
			return fail(err)
		}
		shards = append(shards, s)
		no, count, err := s.split()
		if err != nil {
			return fail(fmt.Errorf("%w (in %s)", err, path))
		}
		if max(count, 1) != len(paths) || no != i {
			return fail(
				fmt.Errorf(
					"gguf: %s says it is shard %d of %d, expected shard %d of %d",
					path,
					no+1,
					max(count, 1),
					i+1,
					len(paths),
				),
			)
		}
	}
	return assemble(shards)
}

// split returns the shard's place: no counts from 0, count is 0 or 1 for a whole model.
func (s *shard) split() (no, count int, err error) {
	countValue, isSplit := s.values[keySplitCount]
	noValue, hasNo := s.values[keySplitNo]
	if !isSplit {
		return 0, 0, nil
	}
	c, ok1 := countValue.Uint()
	n, ok2 := noValue.Uint()
	if c <= 1 && ok1 {
		return 0, int(c), nil
	}
	if !ok1 || !ok2 || !hasNo || c > maxShards || n >= c {
		return 0, 0, fmt.Errorf(
			"gguf: the keys %s and %s do not name a shard of up to %d",
			keySplitNo,
			keySplitCount,
			maxShards,
		)
	}
	return int(n), int(c), nil
}

// assemble joins parsed shards into a file, which owns them; it closes them when it fails.
func assemble(shards []*shard) (*File, error) {
	f := &File{
		version:   shards[0].version,
		alignment: shards[0].alignment,
		keys:      shards[0].keys,
		values:    shards[0].values,
		byName:    make(map[string]*Tensor),
	}
	for _, s := range shards {
		f.shards = append(f.shards, s.file)
	}
	for _, s := range shards {
		for _, t := range s.tensors {
			if old, ok := f.byName[t.Name]; ok {
				return nil, errors.Join(
					fmt.Errorf("gguf: tensor %q is in %s and in %s", t.Name, old.Path(), t.Path()),
					f.Close(),
				)
			}
			f.byName[t.Name] = t
			f.tensors = append(f.tensors, t)
		}
	}
	if want, ok := f.Uint(keySplitTensors); ok && len(shards) > 1 && want != uint64(len(f.tensors)) {
		err := fmt.Errorf(
			"gguf: the shards hold %d tensors, %s says %s: a shard belongs to another model, fetch them again",
			len(f.tensors),
			keySplitTensors,
			strconv.FormatUint(want, 10),
		)
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close closes all files of the model.
func (f *File) Close() error {
	var err error
	for _, s := range f.shards {
		err = errors.Join(err, s.Close())
	}
	return err
}

// Version returns the container's version, 2 or 3.
func (f *File) Version() int { return int(f.version) }

// Alignment returns what the offsets of tensors are multiples of.
func (f *File) Alignment() int { return f.alignment }

// Paths returns the paths of all files of the model, in order.
func (f *File) Paths() []string {
	paths := make([]string, len(f.shards))
	for i, s := range f.shards {
		paths[i] = s.Name()
	}
	return paths
}

// Identities returns what the files were when they were opened, in the order of Paths.
func (f *File) Identities() []mmap.Identity {
	ids := make([]mmap.Identity, len(f.shards))
	for i, s := range f.shards {
		ids[i] = s.Identity()
	}
	return ids
}

// Keys returns the metadata keys in file order (of the first shard). The slice is shared; do not change it.
func (f *File) Keys() []string { return f.keys }

// Tensors returns all tensors in file order. The slice is shared; do not change it.
func (f *File) Tensors() []*Tensor { return f.tensors }

// Tensor returns the tensor with the given name.
func (f *File) Tensor(name string) (*Tensor, bool) { t, ok := f.byName[name]; return t, ok }

// Get returns the value of key.
func (f *File) Get(key string) (Value, bool) { v, ok := f.values[key]; return v, ok }

// String returns the string under key; false if there is none or it is of another type.
func (f *File) String(key string) (string, bool) { return f.values[key].Text() }

// Uint returns the integer under key, of any integer type, if it is not negative.
func (f *File) Uint(key string) (uint64, bool) {
	v, ok := f.values[key]
	if !ok {
		return 0, false
	}
	return v.Uint()
}

// Int returns the integer under key, of any integer type.
func (f *File) Int(key string) (int64, bool) {
	v, ok := f.values[key]
	if !ok {
		return 0, false
	}
	return v.Int()
}

// Float returns the float under key, of either width.
func (f *File) Float(key string) (float64, bool) { return f.values[key].Float() }

// Bool returns the boolean under key.
func (f *File) Bool(key string) (bool, bool) { return f.values[key].Bool() }

// Strings returns the array of strings under key. The slice is shared; do not change it.
func (f *File) Strings(key string) ([]string, bool) { return f.values[key].Strings() }

// Ints returns the array of integers under key.
func (f *File) Ints(key string) ([]int64, bool) { return f.values[key].Ints() }

// Floats returns the array of floats under key.
func (f *File) Floats(key string) ([]float32, bool) { return f.values[key].Floats() }

// Bools returns the array of booleans under key.
func (f *File) Bools(key string) ([]bool, bool) { return f.values[key].Bools() }

// IntsOrInt returns n integers from key: an array of exactly n, or one integer n times. Many keys may be either, one
// value for the model or one per layer. A boolean counts as 0 or 1. The error says what was found instead; it wraps
// ErrMissing if the key is not there.
func (f *File) IntsOrInt(key string, n int) ([]int64, error) {
	v, ok := f.values[key]
	if !ok {
		return nil, fmt.Errorf("gguf: key %q: %w", key, ErrMissing)
	}
	if n < 0 || n > maxArray {
		return nil, fmt.Errorf("gguf: key %q: asked for %d numbers", key, n)
	}
	if bools, ok := v.Bools(); ok && len(bools) == n {
		out := make([]int64, n)
		for i, b := range bools {
			if b {
				out[i] = 1
			}
		}
		return out, nil
	}
	if ints, ok := v.Ints(); ok {
		if len(ints) != n {
			return nil, fmt.Errorf("gguf: key %q has %d numbers, expected %d", key, len(ints), n)
		}
		return ints, nil
	}
	one, ok := v.Int()
	if b, isBool := v.Bool(); isBool {
		ok, one = true, 0
		if b {
			one = 1
		}
	}
	if !ok {
		return nil, fmt.Errorf("gguf: key %q is %s, expected an integer or %d of them", key, v.describe(), n)
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = one
	}
	return out, nil
}

// ErrMissing is wrapped by errors about a key that is not in the file.
var ErrMissing = errors.New("not in the file")
