package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// Entry is a tensor to write: its data is Data, or, where Data is nil, what From yields, read once to its end.
type Entry struct {
	Name  string
	DType string
	Shape []int
	Data  []byte
	From  io.Reader
}

// Write writes a whole file: the entries in the given order, and metadata if there is any. The data starts at a
// multiple of eight bytes. Nothing is written if an entry's description is wrong.
func Write(w io.Writer, entries []Entry, metadata map[string]string) error {
	h, sizes, err := encodeHeader(entries, metadata)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if _, err := w.Write(h); err != nil {
		return fmt.Errorf("safetensors: header: %w", err)
	}
	for i, e := range entries {
		if e.From != nil && e.Data == nil {
			_, err = io.CopyN(w, e.From, int64(sizes[i]))
		} else {
			_, err = w.Write(e.Data)
		}
		if err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", e.Name, err)
		}
	}
	return nil
}

// encodeHeader returns the header with its length, and the sizes of the entries' data.
func encodeHeader(entries []Entry, metadata map[string]string) (h []byte, sizes []int, err error) {
	h = append(make([]byte, 8), '{')
	for k, v := range metadata {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, nil, fmt.Errorf("the metadata %q: %q is not UTF-8", k, v)
		}
	}
	if len(metadata) > 0 {
		text, err := json.Marshal(metadata)
		if err != nil {
			return nil, nil, err
		}
		h = append(append(h, `"__metadata__":`...), text...)
	}
	seen := map[string]bool{"__metadata__": true}
	off := 0
	for _, e := range entries {
		if seen[e.Name] {
			return nil, nil, fmt.Errorf("the name %q is used twice or reserved", e.Name)
		}
		if !utf8.ValidString(e.Name) {
			return nil, nil, fmt.Errorf("the name %q is not UTF-8", e.Name)
		}
		seen[e.Name] = true
		size, err := e.size()
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", e.Name, err)
		}
		if size > math.MaxInt-off {
			return nil, nil, fmt.Errorf("tensor %q makes the file too large", e.Name)
		}
		name, err := json.Marshal(e.Name)
		if err != nil {
			return nil, nil, err
		}
		shape, err := json.Marshal(append([]int{}, e.Shape...))
		if err != nil {
			return nil, nil, err
		}
		if len(h) > 9 {
			h = append(h, ',')
		}
		h = fmt.Appendf(h, `%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, e.DType, shape, off, off+size)
		off += size
		sizes = append(sizes, size)
	}
	h = append(h, '}')
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	if len(h)-8 > maxHeader {
		return nil, nil, fmt.Errorf("the header has %d bytes, at most %d are allowed", len(h)-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(h, uint64(len(h)-8))
	return h, sizes, nil
}

// size returns the bytes that type and shape need and checks them against Data.
func (e *Entry) size() (int, error) {
	if slices.ContainsFunc(e.Shape, func(d int) bool { return d < 0 }) {
		return 0, fmt.Errorf("the shape %v is not possible", e.Shape)
	}
	size, err := byteSize(e.DType, e.Shape)
	switch {
	case err != nil:
		return 0, err
	case e.From == nil && len(e.Data) != size:
		return 0, fmt.Errorf("%s of shape %v takes %d bytes, %d were given", e.DType, e.Shape, size, len(e.Data))
	case e.From != nil && e.Data != nil:
		return 0, errors.New("data comes from a slice or from a reader, not from both")
	}
	return size, nil
}
