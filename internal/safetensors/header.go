package safetensors

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

const (
	maxHeader = 100_000_000 // bytes, the format's own limit; indexes are held to it too
	maxDims   = 16
)

// ErrTruncated is wrapped by errors about a file that ends too early.
var ErrTruncated = errors.New("truncated, fetch it again")

type header struct {
	tensors  []*Tensor
	metadata map[string]string
}

// parseFile reads and checks the header of the file b. The tensors' offsets are absolute.
func parseFile(b []byte) (*header, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("safetensors: the file has %d bytes, so it is no model file: %w", len(b), ErrTruncated)
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxHeader {
		return nil, fmt.Errorf(
			"safetensors: the header has %d bytes, at most %d are allowed: it may not be a safetensors file",
			n,
			maxHeader,
		)
	}
	if n > uint64(len(b)-8) {
		return nil, fmt.Errorf(
			"safetensors: the header ends %d bytes past the file: %w",
			n-uint64(len(b)-8),
			ErrTruncated,
		)
	}
	text, start := b[8:8+n], 8+int(n)
	if n == 0 || text[0] != '{' {
		return nil, errors.New("safetensors: the header does not start with {: it is not a safetensors file")
	}
	h, err := parseHeader(text)
	if err != nil {
		return nil, err
	}
	if err := h.check(len(b) - start); err != nil {
		return nil, err
	}
	for _, t := range h.tensors {
		t.off += start
	}
	return h, nil
}

// parseHeader reads the JSON text. Ranges are relative to the data and not yet compared with it.
func parseHeader(text []byte) (*header, error) {
	h := &header{}
	seen := make(map[string]bool)
	s := &scanner{b: text}
	err := s.object(func(name string) error {
		if name == "__metadata__" {
			if h.metadata != nil {
				return errors.New("__metadata__ is there twice")
			}
			var err error
			h.metadata, err = s.stringMap()
			return err
		}
		if seen[name] {
			return fmt.Errorf("tensor %q is there twice", name)
		}
		seen[name] = true
		t, err := s.tensor(name)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		h.tensors = append(h.tensors, t)
		return nil
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	return h, nil
}

// tensor reads the object that describes one tensor.
func (s *scanner) tensor(name string) (*Tensor, error) {
	t := &Tensor{Name: name}
	var offsets []int
	var hasType, hasShape bool
	err := s.object(func(key string) (err error) {
		switch {
		case key == "dtype" && !hasType:
			hasType = true
			t.DType, err = s.str()
		case key == "shape" && !hasShape:
			hasShape = true
			t.Shape, err = s.ints(maxDims)
		case key == "data_offsets" && offsets == nil:
			offsets, err = s.ints(2)
		default:
			err = fmt.Errorf("the key %q is there twice or does not belong here", key)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !hasType || !hasShape || len(offsets) != 2:
		return nil, errors.New("dtype, shape and two data_offsets are needed")
	case offsets[0] > offsets[1]:
		return nil, fmt.Errorf("data_offsets %v run backwards", offsets)
	}
	t.off, t.size = offsets[0], offsets[1]-offsets[0]
	return t, t.checkSize()
}

// checkSize compares the range with what type and shape say.
func (t *Tensor) checkSize() error {
	size, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return err
	}
	if size != t.size {
		return fmt.Errorf("%s of shape %v takes %d bytes, not %d", t.DType, t.Shape, size, t.size)
	}
	return nil
}

// byteSize returns the bytes that a tensor takes. No dimension is negative.
func byteSize(dtype string, shape []int) (int, error) {
	width, ok := dtypes[dtype]
	if !ok {
		return 0, fmt.Errorf("the dtype %q is not known", dtype)
	}
	elements := uint64(1)
	for _, d := range shape {
		high, low := bits.Mul64(elements, uint64(d))
		if high != 0 || low > math.MaxInt {
			return 0, fmt.Errorf("the shape %v is more than can be addressed", shape)
		}
		elements = low
	}
	high, total := bits.Mul64(elements, uint64(width))
	if high != 0 || total/8 > math.MaxInt {
		return 0, fmt.Errorf("%s of shape %v is more than can be addressed", dtype, shape)
	}
	if total%8 != 0 {
		return 0, fmt.Errorf("%s of shape %v does not fill whole bytes", dtype, shape)
	}
	return int(total / 8), nil
}

// check compares the ranges with the size of the data: together they must cover it once, without gaps.
func (h *header) check(size int) error {
	order := slices.Clone(h.tensors)
	slices.SortFunc(order, func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(a.off, b.off), cmp.Compare(a.size, b.size))
	})
	end := 0
	for _, t := range order {
		switch {
		case t.off < end:
			return fmt.Errorf("safetensors: tensor %q overlaps the one before it", t.Name)
		case t.off > end:
			return fmt.Errorf("safetensors: %d bytes before tensor %q belong to no tensor", t.off-end, t.Name)
		case t.size > size-end:
			return fmt.Errorf(
				"safetensors: tensor %q ends %d bytes past the file: %w",
				t.Name,
				t.size-(size-end),
				ErrTruncated,
			)
		}
		end += t.size
	}
	if end != size {
		return fmt.Errorf("safetensors: %d bytes after the last tensor belong to no tensor", size-end)
	}
	return nil
}

// parseIndex reads an index: the map from tensors to file names under weight_map. Other members are skipped.
func parseIndex(text []byte) (map[string]string, error) {
	if len(text) > maxHeader {
		return nil, fmt.Errorf("safetensors: the index has %d bytes, at most %d are allowed", len(text), maxHeader)
	}
	var weights map[string]string
	s := &scanner{b: text}
	err := s.object(func(key string) (err error) {
		if key != "weight_map" {
			return s.skip(0)
		}
		if weights != nil {
			return errors.New("weight_map is there twice")
		}
		weights, err = s.stringMap()
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && len(weights) == 0 {
		err = errors.New("weight_map is missing or empty")
	}
	if err != nil {
		return nil, fmt.Errorf("safetensors: index: %w", err)
	}
	return weights, nil
}

// parseInt reads digits as an int that is not negative.
func parseInt(digits []byte) (int, error) {
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil || n > math.MaxInt || len(digits) > 1 && digits[0] == '0' {
		return 0, fmt.Errorf("%q is not a size", digits)
	}
	return int(n), nil
}
