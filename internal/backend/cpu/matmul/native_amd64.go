//go:build !purego

package matmul

import (
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// native puts the assembly kernels of the level in place.
func (k *Kernels) native() {
	switch k.level {
	case isa.AVX512:
		n := avx512()
		k.quant, k.float = n.mulQuant, n.mulFloat
		k.quantize = quantizeWith(quantize_avx512)
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

func avx512() *native {
	return &native{
		wide:      6,
		wideFloat: 12,
		expand: [len(formats)]expandFunc{expandQ4_0_avx512, expandQ4_1_avx512, expandQ5_0_avx512, expandQ5_1_avx512,
			expandQ8_0_avx512, expandIQ4_NL_avx512, expandMXFP4_avx512, expandIQ4_XS_avx512, expandQ2_K_avx512,
			expandQ3_K_avx512, expandQ4_K_avx512, expandQ5_K_avx512, expandQ6_K_avx512},
		tiles: [4][maxPair + 1][maxTile + 1]tileFunc{
			signed32: {
				1: {1: tileSigned32_1x1_avx512, 2: tileSigned32_1x2_avx512, 4: tileSigned32_1x4_avx512, 8: tileSigned32_1x8_avx512},
				2: {1: tileSigned32_2x1_avx512, 2: tileSigned32_2x2_avx512, 3: tileSigned32_2x3_avx512,
					4: tileSigned32_2x4_avx512, 5: tileSigned32_2x5_avx512, 6: tileSigned32_2x6_avx512},
			},
			min32: {
				1: {1: tileMin32_1x1_avx512, 2: tileMin32_1x2_avx512, 4: tileMin32_1x4_avx512, 8: tileMin32_1x8_avx512},
				2: {1: tileMin32_2x1_avx512, 2: tileMin32_2x2_avx512, 3: tileMin32_2x3_avx512,
					4: tileMin32_2x4_avx512, 5: tileMin32_2x5_avx512, 6: tileMin32_2x6_avx512},
			},
			signed16: {
				1: {1: tileSigned16_1x1_avx512, 2: tileSigned16_1x2_avx512, 4: tileSigned16_1x4_avx512, 8: tileSigned16_1x8_avx512},
				2: {1: tileSigned16_2x1_avx512, 2: tileSigned16_2x2_avx512, 3: tileSigned16_2x3_avx512,
					4: tileSigned16_2x4_avx512, 5: tileSigned16_2x5_avx512, 6: tileSigned16_2x6_avx512},
			},
			min16: {
				1: {1: tileMin16_1x1_avx512, 2: tileMin16_1x2_avx512, 4: tileMin16_1x4_avx512, 8: tileMin16_1x8_avx512},
				2: {1: tileMin16_2x1_avx512, 2: tileMin16_2x2_avx512, 3: tileMin16_2x3_avx512,
					4: tileMin16_2x4_avx512, 5: tileMin16_2x5_avx512, 6: tileMin16_2x6_avx512},
			},
		},
		floats: [3][maxPair + 1][maxTile + 1]floatFunc{
			{
				1: {1: mulF32_1x1_avx512, 2: mulF32_1x2_avx512, 4: mulF32_1x4_avx512, 8: mulF32_1x8_avx512},
				2: {1: mulF32_2x1_avx512, 2: mulF32_2x2_avx512, 3: mulF32_2x3_avx512, 4: mulF32_2x4_avx512, 5: mulF32_2x5_avx512,
					6: mulF32_2x6_avx512, 7: mulF32_2x7_avx512, 8: mulF32_2x8_avx512, 12: mulF32_2x12_avx512},
				4: {1: mulF32_4x1_avx512},
			},
			{
				1: {1: mulF16_1x1_avx512, 2: mulF16_1x2_avx512, 4: mulF16_1x4_avx512, 8: mulF16_1x8_avx512},
				2: {1: mulF16_2x1_avx512, 2: mulF16_2x2_avx512, 3: mulF16_2x3_avx512, 4: mulF16_2x4_avx512, 5: mulF16_2x5_avx512,
					6: mulF16_2x6_avx512, 7: mulF16_2x7_avx512, 8: mulF16_2x8_avx512, 12: mulF16_2x12_avx512},
				4: {1: mulF16_4x1_avx512},
			},
			{
				1: {1: mulBF16_1x1_avx512, 2: mulBF16_1x2_avx512, 4: mulBF16_1x4_avx512, 8: mulBF16_1x8_avx512},
				2: {1: mulBF16_2x1_avx512, 2: mulBF16_2x2_avx512, 3: mulBF16_2x3_avx512, 4: mulBF16_2x4_avx512, 5: mulBF16_2x5_avx512,
					6: mulBF16_2x6_avx512, 7: mulBF16_2x7_avx512, 8: mulBF16_2x8_avx512, 12: mulBF16_2x12_avx512},
				4: {1: mulBF16_4x1_avx512},
			},
		},
	}
}
