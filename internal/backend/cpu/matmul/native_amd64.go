//go:build !purego

package matmul

import (
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// native puts the assembly kernels of the level in place.
func (k *Kernels) native() {
	switch k.level {
	case isa.AVX2:
		n := avx2()
		k.quant, k.float = n.mulQuant, n.mulFloat
		k.quantize = quantizeWith(quantize_avx2)
		k.packGroup = packGroupAMD64
	case isa.AVX512:
		n := avx512()
		k.quant, k.float = n.mulQuant, n.mulFloat
		k.quantize = quantizeWith(quantize_avx512)
		k.packGroup = packGroupAMD64
	}
}

// quantizeWith makes a quantizer of rows from one of whole blocks.
func quantizeWith(blocks func(x *float32, dst *byte, blocks int)) func(dst []byte, x []float32) {
	return func(dst []byte, x []float32) {
		if n := len(x) / 32; n > 0 {
			blocks(&x[0], unsafe.SliceData(dst), n)
			dst, x = dst[n*recordBytes:], x[32*n:]
		}
		quantizeGo(dst, x)
	}
}
