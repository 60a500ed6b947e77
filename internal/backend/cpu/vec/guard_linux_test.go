package vec

import (
	"syscall"
	"testing"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// guarded returns memory for one kernel after another: everything that is taken ends where memory ends, so that
// touching the byte behind it crashes.
func guarded(t *testing.T) func(n int) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	var taken [][]byte
	t.Cleanup(func() {
		for _, b := range taken {
			if err := syscall.Munmap(b); err != nil {
				t.Error(err)
			}
		}
	})
	return func(n int) []byte {
		size := (n + page - 1) / page * page
		b, err := syscall.Mmap(
			-1,
			0,
			size+page,
			syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_ANON|syscall.MAP_PRIVATE,
		)
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, b)
		if err := syscall.Mprotect(b[size:], syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
		return b[size-n : size : size]
	}
}

// TestKernelsStayInside puts everything that kernels read and write at the end of memory.
func TestKernelsStayInside(t *testing.T) {
	for _, c := range kernelCases {
		for _, l := range isa.Levels() {
			t.Run(c.name+"/"+l.String(), func(t *testing.T) {
				for seed := range uint64(20) {
					v := newValues(seed, false)
					v.memory = guarded(t)
					c.run(table(l), v, Lanes*(1+int(seed)%9))
				}
			})
		}
	}
}
