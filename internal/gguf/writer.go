package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/baleenrun/baleen/internal/quant"
)

// Writer writes a GGUF file, version 3, in one pass: first all keys (Set) and all tensors (AddTensor), then the
// tensors' data in the same order (WriteTensor), then Close. It holds the header in memory and never any data. After an
// error every further call returns that error.
type Writer struct {
	out       *bufio.Writer
	alignment uint64
	keys      []byte // encoded pairs
	nKeys     uint64
	seen      map[string]bool
	tensors   []declared
	names     map[string]bool
	end       uint64 // of the declared data, padded
	next      int    // tensor whose data comes next; -1 before the header is written
	err       error
}

// declared is a tensor whose data will follow.
type declared struct {
	name string
	dims []int
	typ  quant.Type
	off  uint64
	size uint64
}

// NewWriter returns a Writer that writes to out, which Close leaves open. Tensors are aligned to 32 bytes unless the
// key general.alignment is set, as a uint32, before the first tensor.
func NewWriter(out io.Writer) *Writer {
	return &Writer{
		out:       bufio.NewWriterSize(out, 1<<20),
		alignment: defaultAlignment,
		seen:      make(map[string]bool),
		names:     make(map[string]bool),
		next:      -1,
	}
}

func (w *Writer) fail(format string, args ...any) error {
	if w.err == nil {
		w.err = fmt.Errorf("gguf: "+format, args...)
	}
	return w.err
}

// Set adds a key. value is a string, bool, float32 or float64, an integer of fixed width, a slice of any of these, or a
// Value read from another file.
func (w *Writer) Set(key string, value any) error {
	switch {
	case w.err != nil:
		return w.err
	case w.next >= 0:
		return w.fail("key %q comes after the first tensor's data", key)
	case key == "" || len(key) > maxName:
		return w.fail("a key's name has %d bytes, 1 to %d are possible", len(key), maxName)
	case w.seen[key]:
		return w.fail("key %q is set twice", key)
	case w.nKeys == maxKeys:
		return w.fail("more than %d keys", maxKeys)
	}
	if key == keyAlignment {
		a, ok := value.(uint32)
		if v, isValue := value.(Value); isValue && v.Type == Uint32 {
			a, ok = uint32(v.bits), true
		}
		if !ok || a == 0 || a&(a-1) != 0 || a > maxAlignment || len(w.tensors) > 0 {
			return w.fail(
				"key %q must be a uint32 that is a power of two up to %d, set before the first tensor",
				key,
				maxAlignment,
			)
		}
		w.alignment = uint64(a)
	}
	b := appendString(w.keys, key)
	b, ok := appendValue(b, value)
	if !ok {
		return w.fail("key %q: a %T cannot be stored", key, value)
	}
	w.keys, w.seen[key] = b, true
	w.nKeys++
	return nil
}

// AddTensor declares a tensor. dims are in ggml order, the fastest first.
func (w *Writer) AddTensor(name string, dims []int, typ quant.Type) error {
	switch {
	case w.err != nil:
		return w.err
	case w.next >= 0:
		return w.fail("tensor %q is declared after the first tensor's data", name)
	case name == "" || len(name) > maxTensor:
		return w.fail("a tensor's name has %d bytes, 1 to %d are possible", len(name), maxTensor)
	case w.names[name]:
		return w.fail("tensor %q is declared twice", name)
	case len(dims) < 1 || len(dims) > maxDims:
		return w.fail("tensor %q has %d dimensions, 1 to %d are possible", name, len(dims), maxDims)
	case len(w.tensors) == maxTensors:
		return w.fail("more than %d tensors", maxTensors)
	}
	row, err := typ.RowBytes(dims[0])
	if err != nil {
		return w.fail("tensor %q: %w", name, err)
	}
	size := uint64(row)
	for i, d := range dims {
		if d < 1 || i > 0 && uint64(d) > math.MaxInt64/2/size {
			return w.fail("tensor %q has the sizes %v: they must be positive and their product must fit", name, dims)
		}
		if i > 0 {
			size *= uint64(d)
		}
	}
	if size > math.MaxInt64/2-w.end {
		return w.fail("tensor %q makes the file too large", name)
	}
	w.names[name] = true
	w.tensors = append(w.tensors, declared{name, slices.Clone(dims), typ, w.end, size})
	w.end = w.padded(w.end + size)
	return nil
}

func (w *Writer) padded(n uint64) uint64 { return (n + w.alignment - 1) &^ (w.alignment - 1) }

// WriteTensor writes the data of the next declared tensor, which must be name.
func (w *Writer) WriteTensor(name string, data []byte) error {
	t, err := w.nextTensor(name)
	if err != nil {
		return err
	}
	if uint64(len(data)) != t.size {
		return w.fail("tensor %q takes %d bytes, %d were given", name, t.size, len(data))
	}
	if _, err := w.out.Write(data); err != nil {
		return w.fail("tensor %q: %w", name, err)
	}
	return w.pad(t.size)
}

// WriteTensorFrom copies the data of the next declared tensor, which must be name, from r, which must have enough.
func (w *Writer) WriteTensorFrom(name string, r io.Reader) error {
	t, err := w.nextTensor(name)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(w.out, r, int64(t.size)); err != nil {
		return w.fail("tensor %q: %w", name, err)
	}
	return w.pad(t.size)
}

func (w *Writer) nextTensor(name string) (*declared, error) {
	if w.err != nil {
		return nil, w.err
	}
	if err := w.writeHeader(); err != nil {
		return nil, err
	}
	if w.next >= len(w.tensors) {
		return nil, w.fail("data for tensor %q, but all %d tensors are written", name, len(w.tensors))
	}
	t := &w.tensors[w.next]
	if t.name != name {
		return nil, w.fail("data for tensor %q, but %q comes next", name, t.name)
	}
	w.next++
	return t, nil
}

// pad fills up to the alignment after size bytes of data; data starts aligned.
func (w *Writer) pad(size uint64) error {
	for range w.padded(size) - size {
		if err := w.out.WriteByte(0); err != nil {
			return w.fail("padding: %w", err)
		}
	}
	return nil
}

// writeHeader writes everything before the data, once.
func (w *Writer) writeHeader() error {
	if w.next >= 0 {
		return nil
	}
	w.next = 0
	b := append([]byte(nil), "GGUF"...)
	b = binary.LittleEndian.AppendUint32(b, 3)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.tensors)))
	b = binary.LittleEndian.AppendUint64(b, w.nKeys)
	b = append(b, w.keys...)
	for _, t := range w.tensors {
		b = appendString(b, t.name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.dims)))
		for _, d := range t.dims {
			b = binary.LittleEndian.AppendUint64(b, uint64(d))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.typ))
		b = binary.LittleEndian.AppendUint64(b, t.off)
	}
	w.keys = nil
	if _, err := w.out.Write(b); err != nil {
		return w.fail("header: %w", err)
	}
	return w.pad(uint64(len(b)))
}

// Close finishes the file and reports data that is missing. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if err := w.writeHeader(); err != nil {
		return err
	}
	if w.next < len(w.tensors) {
		return w.fail(
			"%d of %d tensors have no data, the first is %q",
			len(w.tensors)-w.next,
			len(w.tensors),
			w.tensors[w.next].name,
		)
	}
	if err := w.out.Flush(); err != nil {
		return w.fail("%w", err)
	}
	w.err = errors.New("gguf: the writer is closed")
	return nil
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// appendValue adds the type and the value; false if Go's type has no counterpart.
func appendValue(b []byte, value any) ([]byte, bool) {
	if v, ok := value.(Value); ok {
		b = binary.LittleEndian.AppendUint32(b, uint32(v.Type))
		return v.appendBody(b), true
	}
	if s, ok := value.([]string); ok {
		b = appendArrayHead(b, String, len(s))
		for _, x := range s {
			b = appendString(b, x)
		}
		return b, true
	}
	if s, ok := value.(string); ok {
		return appendString(binary.LittleEndian.AppendUint32(b, uint32(String)), s), true
	}
	scalar, elem := typeOf(value)
	switch {
	case scalar != Array:
		b = binary.LittleEndian.AppendUint32(b, uint32(scalar))
	case elem != Array:
		b = appendArrayHead(b, elem, binary.Size(value)/elem.size())
	default:
		return b, false
	}
	b, err := binary.Append(b, binary.LittleEndian, value)
	return b, err == nil
}

func appendArrayHead(b []byte, elem ValueType, n int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(Array))
	b = binary.LittleEndian.AppendUint32(b, uint32(elem))
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

// typeOf returns the type of a scalar, or Array and the type of a slice's elements; Array and Array for anything else.
func typeOf(value any) (t, elem ValueType) {
	switch value.(type) {
	case uint8:
		return Uint8, 0
	case int8:
		return Int8, 0
	case uint16:
		return Uint16, 0
	case int16:
		return Int16, 0
	case uint32:
		return Uint32, 0
	case int32:
		return Int32, 0
	case float32:
		return Float32, 0
	case bool:
		return Bool, 0
	case uint64:
		return Uint64, 0
	case int64:
		return Int64, 0
	case float64:
		return Float64, 0
	case []uint8:
		return Array, Uint8
	case []int8:
		return Array, Int8
	case []uint16:
		return Array, Uint16
	case []int16:
		return Array, Int16
	case []uint32:
		return Array, Uint32
	case []int32:
		return Array, Int32
	case []float32:
		return Array, Float32
	case []bool:
		return Array, Bool
	case []uint64:
		return Array, Uint64
	case []int64:
		return Array, Int64
	case []float64:
		return Array, Float64
	}
	return Array, Array
}

// appendBody adds the value as in the file, without its type.
func (v Value) appendBody(b []byte) []byte {
	switch {
	case v.Type == String:
		return appendString(b, v.str)
	case v.Type != Array:
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], v.bits)
		return append(b, word[:v.Type.size()]...)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(v.Elem))
	b = binary.LittleEndian.AppendUint64(b, uint64(v.entries))
	b = append(b, v.raw...)
	for _, s := range v.strs {
		b = appendString(b, s)
	}
	for _, n := range v.nested {
		b = n.appendBody(b)
	}
	return b
}
