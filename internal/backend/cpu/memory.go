package cpu

import "unsafe"

// align is the alignment of weights, pages and buffers: a cache line, and the width of the widest vector.
const align = 64

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// floats views n bytes of 64-byte aligned memory as float32 values.
func floats(b []byte) []float32 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
}

// bytesOf views float32 values as bytes.
func bytesOf(f []float32) []byte {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&f[0])), len(f)*4)
}

// An arena holds memory outside the Go heap, so that the collector neither scans nor copies nor counts it, and
// so that what is never touched costs nothing. Blocks are zero, aligned to a cache line and freed together.
type arena struct {
	blocks [][]byte
	total  int64
}

// alloc returns n zero bytes with 64 readable bytes after them: kernels load whole vectors.
func (a *arena) alloc(n int) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	b, err := mapMemory(n + align)
	if err != nil {
		return nil, err
	}
	a.blocks = append(a.blocks, b)
	a.total += int64(n)
	return b[:n:n], nil
}

func (a *arena) free() {
	for _, b := range a.blocks {
		unmapMemory(b)
	}
	a.blocks = nil
}
