// Package mmap owns read-only views of files: one mapping (or, where the system has none, one copy) per open file.
// It knows bytes and offsets, not containers, tensors or models.
//
// A mapped file must not be shortened while it is open: reading a page past the new end faults. Positioned reads
// through ReadAt report an error in that case instead, and Guard makes one of the fault.
package mmap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
)

// ErrClosed is what ReadAt and Close return after Close.
var ErrClosed = errors.New("mmap: file is closed")

// File is a read-only file whose contents can be seen as one byte slice. Its methods may be called from several
// goroutines, except that nobody may touch Bytes during or after Close.
type File struct {
	name   string
	source source
	data   []byte
	mapped bool
	closed atomic.Bool

	fd       int // of the file; -1: there is none
	identity Identity
}

// source is what stands behind the bytes.
type source interface {
	io.ReaderAt
	io.Closer
}

// FromBytes returns a File over data, which is not copied, under a name for errors.
func FromBytes(name string, data []byte) *File {
	return &File{name: name, source: memory{bytes.NewReader(data)}, data: data, fd: -1}
}

type memory struct{ io.ReaderAt }

func (memory) Close() error { return nil }

// Open maps the whole regular file at path for reading.
func Open(path string) (*File, error) {
	// Opening a named pipe would wait for a writer, so what it is comes first.
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("mmap: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	identity, err := identify(f.Stat)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("mmap: %w", err)
	}
	if !identity.info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("mmap: %s is not a regular file", path)
	}
	size := identity.info.Size()
	if size < 0 || size > math.MaxInt {
		f.Close()
		return nil, fmt.Errorf("mmap: %s has %d bytes, more than this machine can address", path, size)
	}
	m := &File{name: path, source: f, fd: int(f.Fd()), identity: identity}
	if size == 0 {
		return m, nil
	}
	m.data, m.mapped, err = mapFile(f, int(size))
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("mmap: %s: %w", path, err)
	}
	return m, nil
}

// Bytes returns the whole file. The slice must not be written to and is gone after Close.
func (m *File) Bytes() []byte { return m.data }

// Identity returns the identity of the file when it was opened.
func (m *File) Identity() Identity { return m.identity }

// Len returns the size of the file in bytes at the time of Open.
func (m *File) Len() int { return len(m.data) }

// Name returns the path that was given to Open, or the name given to FromBytes.
func (m *File) Name() string { return m.name }

// ReadAt reads by a positioned read of the file, not through the mapping, so a shortened file or a failing drive gives
// an error and not a fault. It is ErrShortened where the file had these bytes when it was opened.
func (m *File) ReadAt(p []byte, off int64) (int, error) {
	if m.closed.Load() {
		return 0, ErrClosed
	}
	n, err := m.source.ReadAt(p, off)
	if n < len(p) && errors.Is(err, io.EOF) && off >= 0 && off <= int64(len(m.data)-len(p)) {
		return n, ErrShortened
	}
	return n, err
}

// Release tells the system that the n bytes from off will not be needed soon, so their pages may be dropped from
// memory. They stay readable. Only whole pages inside the range are given up. It does nothing where the system has no
// such call.
func (m *File) Release(off, n int) error {
	if off < 0 || n < 0 || off > len(m.data) || n > len(m.data)-off {
		return fmt.Errorf("mmap: release of %d bytes at %d lies outside the file of %d bytes", n, off, len(m.data))
	}
	if !m.mapped || m.closed.Load() {
		return nil
	}
	page := os.Getpagesize()
	start := (off + page - 1) / page * page
	end := off + n
	if end != len(m.data) { // the last page of the file ends with the file
		end = end / page * page
	}
	if start >= end {
		return nil
	}
	return release(m.data[start:end])
}

// Close drops the mapping and closes the file. Slices from Bytes must not be used afterwards.
func (m *File) Close() error {
	if m.closed.Swap(true) {
		return ErrClosed
	}
	var err error
	if m.mapped {
		err = unmapFile(m.data)
	}
	m.data = nil
	return errors.Join(err, m.source.Close())
}
