//go:build !purego

package matmul

import (
	"golang.org/x/sys/cpu"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// variants are kernels that the processor has but that its levels do not use.
func variants() (list []namedKernels) {
	if cpu.X86.HasAVXVNNI {
		k := &Kernels{level: isa.AVX2}
		k.useAVX2(false)
		list = append(list, namedKernels{"avx2-without-vnni", k})
	}
	return list
}
