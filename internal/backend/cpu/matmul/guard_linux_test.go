package matmul

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"
)

// guarded returns n bytes that end where memory ends: touching the byte behind them crashes.
func guarded(t *testing.T, n int) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	size := roundUp(n, page)
	b, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mprotect(b[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	return b[size-n : size : size]
}

// TestKernelsStayInside puts everything that kernels read and write at the end of memory.
func TestKernelsStayInside(t *testing.T) {
	for _, kernels := range underTest() {
		for _, tt := range types {
			for _, c := range [][3]int{{32, 256, 1}, {48, 512, 9}, {17, 768, 70}, {32, 96, 4}, {48, 13, 5}} {
				if c[1]%tt.typ.BlockSize() != 0 {
					continue
				}
				rows, cols, n := c[0], c[1], c[2]
				k, rng := kernels.Kernels, rand.New(rand.NewPCG(6, 6))
				random := source(rng, tt.typ, tt.halfs, rows, cols)
				src := guarded(t, len(random))
				copy(src, random)
				size, err := PackedBytes(tt.typ, rows, cols)
				if err != nil {
					t.Fatal(err)
				}
				m, err := New(tt.typ, rows, cols, guarded(t, size))
				if err != nil {
					t.Fatal(err)
				}
				k.Pack(&m, src, 0, m.Groups)
				stride := m.Act().Bytes(cols)
				act := guarded(t, n*stride)
				x := guarded(t, 4*cols)
				row := unsafe.Slice((*float32)(unsafe.Pointer(&x[0])), cols)
				for r := range n {
					for i := range row {
						row[i] = float32(rng.NormFloat64())
					}
					k.Quantize(m.Act(), act[r*stride:(r+1)*stride], row)
				}
				out := guarded(t, 4*n*rows)
				y := unsafe.Slice((*float32)(unsafe.Pointer(&out[0])), n*rows)
				k.Mul(&m, 0, m.Groups, act, stride, n, y, rows, DefaultAhead)
				k.Mul(&m, m.Groups-1, m.Groups, act, stride, n, y, rows, DefaultAhead)
			}
		}
	}
}
