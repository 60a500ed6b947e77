//go:build !purego

package matmul

// avx512 returns the table of AVX-512 kernels. Formats stand in the order of the table formats.
func avx512() *native {
	return &native{
		pair: 2, wide: 6, pairFloat: 2, wideFloat: 12, pairOne: 4,
		expand: [len(formats)]expandFunc{
			expandQ4_0_avx512,
			expandQ4_1_avx512,
			expandQ5_0_avx512,
			expandQ5_1_avx512,
			expandQ8_0_avx512,
			expandIQ4_NL_avx512,
			expandMXFP4_avx512,
			expandIQ4_XS_avx512,
			expandQ2_K_avx512,
			expandQ3_K_avx512,
			expandQ4_K_avx512,
			expandQ5_K_avx512,
			expandQ6_K_avx512,
		},
		few: [len(formats)][maxFew + 1]fewFunc{
			0:  {nil, fewQ4_0_1_avx512, fewQ4_0_2_avx512, fewQ4_0_3_avx512, fewQ4_0_4_avx512, fewQ4_0_5_avx512, fewQ4_0_6_avx512, fewQ4_0_7_avx512, fewQ4_0_8_avx512, fewQ4_0_9_avx512, fewQ4_0_10_avx512, fewQ4_0_11_avx512, fewQ4_0_12_avx512},
			1:  {nil, fewQ4_1_1_avx512, fewQ4_1_2_avx512, fewQ4_1_3_avx512, fewQ4_1_4_avx512, fewQ4_1_5_avx512, fewQ4_1_6_avx512, fewQ4_1_7_avx512, fewQ4_1_8_avx512, fewQ4_1_9_avx512, fewQ4_1_10_avx512, fewQ4_1_11_avx512, fewQ4_1_12_avx512},
			2:  {nil, fewQ5_0_1_avx512, fewQ5_0_2_avx512, fewQ5_0_3_avx512, fewQ5_0_4_avx512, fewQ5_0_5_avx512, fewQ5_0_6_avx512, fewQ5_0_7_avx512, fewQ5_0_8_avx512, fewQ5_0_9_avx512, fewQ5_0_10_avx512, fewQ5_0_11_avx512, fewQ5_0_12_avx512},
			3:  {nil, fewQ5_1_1_avx512, fewQ5_1_2_avx512, fewQ5_1_3_avx512, fewQ5_1_4_avx512, fewQ5_1_5_avx512, fewQ5_1_6_avx512, fewQ5_1_7_avx512, fewQ5_1_8_avx512, fewQ5_1_9_avx512, fewQ5_1_10_avx512, fewQ5_1_11_avx512, fewQ5_1_12_avx512},
			4:  {nil, fewQ8_0_1_avx512, fewQ8_0_2_avx512, fewQ8_0_3_avx512, fewQ8_0_4_avx512, fewQ8_0_5_avx512, fewQ8_0_6_avx512, fewQ8_0_7_avx512, fewQ8_0_8_avx512, fewQ8_0_9_avx512, fewQ8_0_10_avx512, fewQ8_0_11_avx512, fewQ8_0_12_avx512},
			6:  {nil, fewMXFP4_1_avx512, fewMXFP4_2_avx512, fewMXFP4_3_avx512, fewMXFP4_4_avx512, fewMXFP4_5_avx512, fewMXFP4_6_avx512, fewMXFP4_7_avx512, fewMXFP4_8_avx512, fewMXFP4_9_avx512, fewMXFP4_10_avx512, fewMXFP4_11_avx512, fewMXFP4_12_avx512},
			10: {nil, fewQ4_K_1_avx512, fewQ4_K_2_avx512, fewQ4_K_3_avx512, fewQ4_K_4_avx512, fewQ4_K_5_avx512, fewQ4_K_6_avx512, fewQ4_K_7_avx512, fewQ4_K_8_avx512, fewQ4_K_9_avx512, fewQ4_K_10_avx512, fewQ4_K_11_avx512, fewQ4_K_12_avx512},
			11: {nil, fewQ5_K_1_avx512, fewQ5_K_2_avx512, fewQ5_K_3_avx512, fewQ5_K_4_avx512, fewQ5_K_5_avx512, fewQ5_K_6_avx512, fewQ5_K_7_avx512, fewQ5_K_8_avx512, fewQ5_K_9_avx512, fewQ5_K_10_avx512, fewQ5_K_11_avx512, fewQ5_K_12_avx512},
			12: {nil, fewQ6_K_1_avx512, fewQ6_K_2_avx512, fewQ6_K_3_avx512, fewQ6_K_4_avx512, fewQ6_K_5_avx512, fewQ6_K_6_avx512, fewQ6_K_7_avx512, fewQ6_K_8_avx512, fewQ6_K_9_avx512, fewQ6_K_10_avx512, fewQ6_K_11_avx512, fewQ6_K_12_avx512},
		},
		tiles: [len(formats)]*tileSet{
			&tilesSigned32AVX512, &tilesMin32AVX512, &tilesSigned32AVX512, &tilesMin32AVX512, &tilesSigned32AVX512, &tilesSigned32AVX512, &tilesSigned32AVX512, &tilesSigned32AVX512, &tilesMin16AVX512, &tilesSigned16AVX512, &tilesMin32AVX512, &tilesMin32AVX512, &tilesSigned16AVX512,
		},
		floats: [3][maxPair + 1][maxTile + 1]floatFunc{
			{
				1: {1: mulF32_1x1_avx512, 2: mulF32_1x2_avx512, 4: mulF32_1x4_avx512, 8: mulF32_1x8_avx512},
				2: {1: mulF32_2x1_avx512, 2: mulF32_2x2_avx512, 3: mulF32_2x3_avx512, 4: mulF32_2x4_avx512, 5: mulF32_2x5_avx512, 6: mulF32_2x6_avx512, 7: mulF32_2x7_avx512, 8: mulF32_2x8_avx512, 12: mulF32_2x12_avx512},
				4: {1: mulF32_4x1_avx512},
			},
			{
				1: {1: mulF16_1x1_avx512, 2: mulF16_1x2_avx512, 4: mulF16_1x4_avx512, 8: mulF16_1x8_avx512},
				2: {1: mulF16_2x1_avx512, 2: mulF16_2x2_avx512, 3: mulF16_2x3_avx512, 4: mulF16_2x4_avx512, 5: mulF16_2x5_avx512, 6: mulF16_2x6_avx512, 7: mulF16_2x7_avx512, 8: mulF16_2x8_avx512, 12: mulF16_2x12_avx512},
				4: {1: mulF16_4x1_avx512},
			},
			{
				1: {1: mulBF16_1x1_avx512, 2: mulBF16_1x2_avx512, 4: mulBF16_1x4_avx512, 8: mulBF16_1x8_avx512},
				2: {1: mulBF16_2x1_avx512, 2: mulBF16_2x2_avx512, 3: mulBF16_2x3_avx512, 4: mulBF16_2x4_avx512, 5: mulBF16_2x5_avx512, 6: mulBF16_2x6_avx512, 7: mulBF16_2x7_avx512, 8: mulBF16_2x8_avx512, 12: mulBF16_2x12_avx512},
				4: {1: mulBF16_4x1_avx512},
			},
		},
	}
}

var tilesSigned32AVX512 = tileSet{
	1: {1: tileSigned32_1x1_avx512, 2: tileSigned32_1x2_avx512, 4: tileSigned32_1x4_avx512, 8: tileSigned32_1x8_avx512},
	2: {nil, tileSigned32_2x1_avx512, tileSigned32_2x2_avx512, tileSigned32_2x3_avx512, tileSigned32_2x4_avx512, tileSigned32_2x5_avx512, tileSigned32_2x6_avx512},
}

var tilesMin32AVX512 = tileSet{
	1: {1: tileMin32_1x1_avx512, 2: tileMin32_1x2_avx512, 4: tileMin32_1x4_avx512, 8: tileMin32_1x8_avx512},
	2: {nil, tileMin32_2x1_avx512, tileMin32_2x2_avx512, tileMin32_2x3_avx512, tileMin32_2x4_avx512, tileMin32_2x5_avx512, tileMin32_2x6_avx512},
}

var tilesSigned16AVX512 = tileSet{
	1: {1: tileSigned16_1x1_avx512, 2: tileSigned16_1x2_avx512, 4: tileSigned16_1x4_avx512, 8: tileSigned16_1x8_avx512},
	2: {nil, tileSigned16_2x1_avx512, tileSigned16_2x2_avx512, tileSigned16_2x3_avx512, tileSigned16_2x4_avx512, tileSigned16_2x5_avx512, tileSigned16_2x6_avx512},
}

var tilesMin16AVX512 = tileSet{
	1: {1: tileMin16_1x1_avx512, 2: tileMin16_1x2_avx512, 4: tileMin16_1x4_avx512, 8: tileMin16_1x8_avx512},
	2: {nil, tileMin16_2x1_avx512, tileMin16_2x2_avx512, tileMin16_2x3_avx512, tileMin16_2x4_avx512, tileMin16_2x5_avx512, tileMin16_2x6_avx512},
}
