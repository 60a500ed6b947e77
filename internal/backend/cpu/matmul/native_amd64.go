//go:build !purego

package matmul

import "github.com/baleenrun/baleen/internal/backend/cpu/isa"

// native puts the assembly kernels of the level in place.
func (k *Kernels) native() {
	switch k.level {
	case isa.AVX2:
		n := avx2()
		k.quant, k.float = n.mulQuant, n.mulFloat
		k.quantize = quantizeWith(quantize_avx2)
		k.packGroup = packGroupNative
	case isa.AVX512:
		n := avx512()
		k.quant, k.float = n.mulQuant, n.mulFloat
		k.quantize = quantizeWith(quantize_avx512)
		k.packGroup = packGroupNative
	}
}
