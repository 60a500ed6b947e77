//go:build !purego

package matmul

import "github.com/baleenrun/baleen/internal/backend/cpu/isa"

// native puts the assembly kernels of the level in place.
func (k *Kernels) native() {
	switch k.level {
	case isa.NEON, isa.NEONI8MM:
		n := neon()
		k.quant, k.float = n.mulQuant, n.mulFloat
		k.quantize = quantizeWith(quantize_neon)
		k.packGroup = packGroupNative
	}
}

// neon returns the table of NEON kernels, which want the dot product instruction. Formats stand in the order of the
// table formats.
func neon() *native {
	return &native{
		pair: 1, wide: 4, pairFloat: 1, wideFloat: 4, pairOne: 1,
		expand: [len(formats)]expandFunc{
			expandQ4_0_neon,
			expandQ4_1_neon,
			expandQ5_0_neon,
			expandQ5_1_neon,
			expandQ8_0_neon,
			expandIQ4_NL_neon,
			expandMXFP4_neon,
			expandIQ4_XS_neon,
			expandQ2_K_neon,
			expandQ3_K_neon,
			expandQ4_K_neon,
			expandQ5_K_neon,
			expandQ6_K_neon,
		},
		tiles: [len(formats)]*tileSet{
			&tilesSigned32NEON, &tilesMin32NEON, &tilesSigned32NEON, &tilesMin32NEON, &tilesSigned32NEON, &tilesSigned32NEON, &tilesSigned32NEON, &tilesSigned32NEON, &tilesMin16NEON, &tilesSigned16NEON, &tilesMin32NEON, &tilesMin32NEON, &tilesSigned16NEON,
		},
		floats: [3][maxPair + 1][maxTile + 1]floatFunc{
			{1: {1: mulF32_1_neon, 2: mulF32_2_neon, 4: mulF32_4_neon}},
			{1: {1: mulF16_1_neon, 2: mulF16_2_neon, 4: mulF16_4_neon}},
			{1: {1: mulBF16_1_neon, 2: mulBF16_2_neon, 4: mulBF16_4_neon}},
		},
	}
}

var (
	tilesSigned32NEON = tileSet{1: {1: tileSigned32_1_neon, 2: tileSigned32_2_neon, 4: tileSigned32_4_neon}}
	tilesMin32NEON    = tileSet{1: {1: tileMin32_1_neon, 2: tileMin32_2_neon, 4: tileMin32_4_neon}}
	tilesSigned16NEON = tileSet{1: {1: tileSigned16_1_neon, 2: tileSigned16_2_neon, 4: tileSigned16_4_neon}}
	tilesMin16NEON    = tileSet{1: {1: tileMin16_1_neon, 2: tileMin16_2_neon, 4: tileMin16_4_neon}}
)
