package gguf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/quant"
)

// The limits of what is read. All are far above what any published model needs.
const (
	maxKeys      = 65_536
	maxTensors   = 1 << 20
	maxName      = 65_535 // bytes of a key
	maxTensor    = 1024   // bytes of a tensor's name
	maxString    = 16 << 20
	maxArray     = 64 << 20
	maxDepth     = 4      // arrays in arrays
	maxNested    = 65_536 // inner arrays of one file
	maxAlignment = 65_536
	maxDims      = 4

	defaultAlignment = 32

	keyAlignment    = "general.alignment"
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// ErrTruncated is wrapped by errors about a file that ends too early.
var ErrTruncated = errors.New("truncated, fetch it again")

// shard is one parsed file.
type shard struct {
	file      *mmap.File
	version   uint32
	alignment int
	keys      []string
	values    map[string]Value
	tensors   []*Tensor
}

func (s *shard) close() error { return s.file.Close() }

func openShard(path string) (*shard, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return parseShard(m)
}

// parseShard parses m, which the shard owns; it closes m when it fails.
func parseShard(m *mmap.File) (*shard, error) {
	s := &shard{file: m}
	if err := s.parse(m.Bytes()); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (in %s)", err, m.Name()), m.Close())
	}
	return s, nil
}

// reader walks the header. Errors are made where they occur; off never passes the end.
type reader struct {
	b      []byte
	off    int
	nested int // inner arrays so far
}

func (r *reader) left() int { return len(r.b) - r.off }

// take returns the next n bytes. what names them in the error.
func (r *reader) take(n uint64, what string) ([]byte, error) {
	if n > uint64(r.left()) {
		return nil, fmt.Errorf(
			"gguf: %s ends %s bytes past the file: %w",
			what,
			thousands(n-uint64(r.left())),
			ErrTruncated,
		)
	}
	b := r.b[r.off : r.off+int(n)]
	r.off += int(n)
	return b, nil
}

func (r *reader) u32(what string) (uint32, error) {
	b, err := r.take(4, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (r *reader) u64(what string) (uint64, error) {
	b, err := r.take(8, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// text reads a length and that many bytes, at most limit.
func (r *reader) text(what string, limit uint64) ([]byte, error) {
	n, err := r.u64(what)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("gguf: %s has %s bytes, at most %s are allowed", what, thousands(n), thousands(limit))
	}
	return r.take(n, what)
}

func (s *shard) parse(b []byte) error {
	r := &reader{b: b}
	nTensors, nKeys, err := s.parseStart(r)
	if err != nil {
		return err
	}
	if err := s.parseKeys(r, int(nKeys)); err != nil {
		return err
	}
	s.alignment = defaultAlignment
	if v, ok := s.values[keyAlignment]; ok {
		a, _ := v.Uint()
		if v.Type != Uint32 || a == 0 || a&(a-1) != 0 || a > maxAlignment {
			return fmt.Errorf(
				"gguf: key %q is %s, expected a uint32 that is a power of two up to %s",
				keyAlignment,
				v.describe(),
				thousands(maxAlignment),
			)
		}
		s.alignment = int(a)
	}
	if err := s.parseTensors(r, int(nTensors)); err != nil {
		return err
	}
	return s.placeTensors(r)
}

func (s *shard) parseStart(r *reader) (nTensors, nKeys uint64, err error) {
	if r.left() < 4 {
		return 0, 0, fmt.Errorf("gguf: the file has %d bytes, so it is no model file: %w", r.left(), ErrTruncated)
	}
	magic, err := r.take(4, "the file's magic")
	if err != nil {
		return 0, 0, err
	}
	if !bytes.Equal(magic, []byte("GGUF")) {
		if slices.ContainsFunc(
			[]string{"lmgg", "fmgg", "tjgg", "algg"},
			func(old string) bool { return string(magic) == old },
		) {
			return 0, 0, errors.New("gguf: this is a GGML file from before GGUF: fetch the model as GGUF")
		}
		return 0, 0, fmt.Errorf("gguf: the file starts with %q, not with \"GGUF\": it is no model file", magic)
	}
	s.version, err = r.u32("the version")
	switch {
	case err != nil:
		return 0, 0, err
	case s.version&0xffff == 0 && s.version != 0:
		return 0, 0, fmt.Errorf(
			"gguf: the file is big-endian (version %d): convert it to little-endian first",
			bits.ReverseBytes32(s.version),
		)
	case s.version != 2 && s.version != 3:
		return 0, 0, fmt.Errorf("gguf: version %d is not supported, 2 and 3 are", s.version)
	}
	if nTensors, err = r.u64("the number of tensors"); err != nil {
		return 0, 0, err
	}
	if nKeys, err = r.u64("the number of keys"); err != nil {
		return 0, 0, err
	}
	if nTensors > maxTensors || nKeys > maxKeys {
		return 0, 0, fmt.Errorf("gguf: %s tensors and %s keys, at most %s and %s are allowed",
			thousands(nTensors), thousands(nKeys), thousands(maxTensors), thousands(maxKeys))
	}
	return nTensors, nKeys, nil
}

func (s *shard) parseKeys(r *reader, n int) error {
	const least = 8 + 1 + 4 + 1 // bytes of the shortest pair: allocate for no more than the file can hold
	s.values = make(map[string]Value, min(n, r.left()/least))
	for i := range n {
		name, err := r.text("the name of key "+strconv.Itoa(i), maxName)
		if err != nil {
			return err
		}
		key := string(name)
		if key == "" {
			return fmt.Errorf("gguf: key %d has no name", i)
		}
		if _, ok := s.values[key]; ok {
			return fmt.Errorf("gguf: key %q is there twice", key)
		}
		what := fmt.Sprintf("key %q", key)
		t, err := r.u32(what)
		if err != nil {
			return err
		}
		v, err := r.value(ValueType(t), what, 0)
		if err != nil {
			return err
		}
		s.keys = append(s.keys, key)
		s.values[key] = v
	}
	return nil
}

// value reads a value of type t; depth counts the arrays around it.
func (r *reader) value(t ValueType, what string, depth int) (Value, error) {
	switch {
	case !t.known():
		return Value{}, fmt.Errorf("gguf: %s has %v, which does not exist", what, t)
	case t == String:
		b, err := r.text(what, maxString)
		return Value{Type: t, str: string(b)}, err
	case t == Array:
		return r.array(what, depth)
	}
	b, err := r.take(uint64(t.size()), what)
	if err != nil {
		return Value{}, err
	}
	if t == Bool && b[0] > 1 {
		return Value{}, fmt.Errorf("gguf: %s is a boolean with the value %d", what, b[0])
	}
	return Value{Type: t, bits: scalarBits(t, b)}, nil
}

func (r *reader) array(what string, depth int) (Value, error) {
	if depth >= maxDepth {
		return Value{}, fmt.Errorf("gguf: %s nests arrays more than %d deep", what, maxDepth)
	}
	elem, err := r.u32(what)
	if err != nil {
		return Value{}, err
	}
	n, err := r.u64(what)
	if err != nil {
		return Value{}, err
	}
	v := Value{Type: Array, Elem: ValueType(elem)}
	if !v.Elem.known() {
		return Value{}, fmt.Errorf("gguf: %s is an array of %v, which does not exist", what, v.Elem)
	}
	if n > maxArray {
		return Value{}, fmt.Errorf(
			"gguf: %s has %s elements, at most %s are allowed",
			what,
			thousands(n),
			thousands(maxArray),
		)
	}
	v.entries = int(n)
	switch v.Elem {
	case String:
		v.strs, err = r.strings(n, what)
	case Array:
		v.nested, err = r.arrays(n, what, depth)
	default:
		var b []byte
		if b, err = r.take(n*uint64(v.Elem.size()), what); err != nil {
			break
		}
		if i := slices.IndexFunc(b, func(x byte) bool { return x > 1 }); v.Elem == Bool && i >= 0 {
			err = fmt.Errorf("gguf: %s: element %d is a boolean with the value %d", what, i, b[i])
		}
		v.raw = bytes.Clone(b)
	}
	return v, err
}

// strings reads n strings. They are views of one copy of the file's bytes, so a vocabulary costs two allocations.
func (r *reader) strings(n uint64, what string) ([]string, error) {
	if n > uint64(r.left()/8) {
		return nil, fmt.Errorf("gguf: %s ends past the file: %w", what, ErrTruncated)
	}
	start := r.off
	for i := range n {
		at := r.off
		if _, err := r.text(what, maxString); err != nil {
			r.off = at // again, for an error that says which
			_, err = r.text(fmt.Sprintf("element %d of %s", i, what), maxString)
			return nil, err
		}
	}
	arena := string(r.b[start:r.off])
	out := make([]string, n)
	at := 0
	for i := range out {
		size := int(binary.LittleEndian.Uint64(r.b[start+at:]))
		out[i] = arena[at+8 : at+8+size]
		at += 8 + size
	}
	return out, nil
}

func (r *reader) arrays(n uint64, what string, depth int) ([]Value, error) {
	if n > uint64(maxNested-r.nested) {
		return nil, fmt.Errorf("gguf: %s has more than %s arrays in arrays", what, thousands(maxNested))
	}
	r.nested += int(n)
	var out []Value // grows with what is really there
	for range n {
		v, err := r.array(what, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (s *shard) parseTensors(r *reader, n int) error {
	const least = 8 + 1 + 4 + 8 + 4 + 8
	if n > r.left()/least {
		return fmt.Errorf("gguf: the list of %s tensors ends past the file: %w", thousands(uint64(n)), ErrTruncated)
	}
	s.tensors = make([]*Tensor, 0, n)
	seen := make(map[string]bool, n)
	for i := range n {
		name, err := r.text("the name of tensor "+strconv.Itoa(i), maxTensor)
		if err != nil {
			return err
		}
		t := &Tensor{Name: string(name), shard: s.file}
		if t.Name == "" {
			return fmt.Errorf("gguf: tensor %d has no name", i)
		}
		if seen[t.Name] {
			return fmt.Errorf("gguf: tensor %q is there twice", t.Name)
		}
		seen[t.Name] = true
		if err := t.parse(r, s.alignment); err != nil {
			return err
		}
		s.tensors = append(s.tensors, t)
	}
	return nil
}

// parse reads the rest of a tensor's entry. off stays relative to the data.
func (t *Tensor) parse(r *reader, alignment int) error {
	what := fmt.Sprintf("the entry of tensor %q", t.Name)
	nDims, err := r.u32(what)
	if err != nil {
		return err
	}
	if nDims < 1 || nDims > maxDims {
		return fmt.Errorf("gguf: tensor %q has %d dimensions, 1 to %d are possible", t.Name, nDims, maxDims)
	}
	t.Dims = make([]int, nDims)
	elements := 1
	for i := range t.Dims {
		d, err := r.u64(what)
		if err != nil {
			return err
		}
		if d < 1 || d > uint64(math.MaxInt/elements) {
			return fmt.Errorf(
				"gguf: tensor %q: dimension %d is %d: sizes must be positive and their product must fit",
				t.Name,
				i,
				d,
			)
		}
		t.Dims[i] = int(d)
		elements *= int(d)
	}
	id, err := r.u32(what)
	if err != nil {
		return err
	}
	if t.Type = quant.Type(id); !t.Type.Known() {
		return fmt.Errorf(
			"gguf: tensor %q has the format %s: use a file in a format of llama.cpp such as Q4_K_M",
			t.Name,
			foreignType(id),
		)
	}
	row, err := t.Type.RowBytes(t.Dims[0])
	if err != nil {
		return fmt.Errorf("gguf: tensor %q: %w", t.Name, err)
	}
	rows := elements / t.Dims[0]
	if rows > math.MaxInt/row {
		return fmt.Errorf("gguf: tensor %q has %d rows of %d bytes: more than can be addressed", t.Name, rows, row)
	}
	t.size = rows * row
	off, err := r.u64(what)
	if err != nil {
		return err
	}
	if off%uint64(alignment) != 0 {
		return fmt.Errorf(
			"gguf: tensor %q starts at %d, which is not a multiple of the alignment %d",
			t.Name,
			off,
			alignment,
		)
	}
	if off > math.MaxInt-maxAlignment {
		return fmt.Errorf("gguf: tensor %q starts at %s: %w", t.Name, thousands(off), ErrTruncated)
	}
	t.off = int(off)
	return nil
}

// placeTensors makes offsets absolute and checks that tensors lie in the file and do not overlap.
func (s *shard) placeTensors(r *reader) error {
	data := (r.off + s.alignment - 1) / s.alignment * s.alignment
	for _, t := range s.tensors {
		// data is at most the file's size and an alignment, so neither sum below can overflow once off was checked.
		if t.off > math.MaxInt-data-t.size || data+t.off+t.size > len(r.b) {
			past := uint64(data) + uint64(t.off) + uint64(t.size) - uint64(len(r.b))
			return fmt.Errorf("gguf: tensor %q ends %s bytes past the file: %w", t.Name, thousands(past), ErrTruncated)
		}
		t.off += data
	}
	order := slices.Clone(s.tensors)
	slices.SortFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.off, b.off) })
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; a.off+a.size > b.off {
			return fmt.Errorf("gguf: tensors %q and %q overlap", a.Name, b.Name)
		}
	}
	return nil
}

// describe says in words what a value is, for errors.
func (v Value) describe() string {
	switch {
	case v.Type == String:
		return "a string"
	case v.Type == Array:
		return fmt.Sprintf("an array of %d %v", v.entries, v.Elem)
	case v.Type == Float32 || v.Type == Float64:
		f, _ := v.Float()
		return fmt.Sprintf("the %v %g", v.Type, f)
	case v.Type.signed():
		return fmt.Sprintf("the %v %d", v.Type, int64(v.bits))
	}
	return fmt.Sprintf("the %v %d", v.Type, v.bits)
}

// thousands writes n with commas.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
