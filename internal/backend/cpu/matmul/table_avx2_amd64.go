//go:build !purego

package matmul

// avx2 returns the table of AVX2 kernels. Formats stand in the order of the table formats.
func avx2() *native {
	return &native{
		pair: 1, wide: 3, pairFloat: 1, wideFloat: 6, pairOne: 2,
		expand: [len(formats)]expandFunc{
			expandQ4_0_avx2,
			expandQ4_1_avx2,
			expandQ5_0_avx2,
			expandQ5_1_avx2,
			expandQ8_0_avx2,
			expandIQ4_NL_avx2,
			expandMXFP4_avx2,
			expandIQ4_XS_avx2,
			expandQ2_K_avx2,
			expandQ3_K_avx2,
			expandQ4_K_avx2,
			expandQ5_K_avx2,
			expandQ6_K_avx2,
		},
		tiles: [len(formats)]*tileSet{
			&tilesSigned4AVX2, &tilesMin4AVX2, &tilesSigned5AVX2, &tilesMin5AVX2, &tilesSigned8AVX2, &tilesSigned8AVX2, &tilesSigned8AVX2, &tilesSigned8AVX2, &tilesMin2x16AVX2, &tilesSigned3x16AVX2, &tilesMin4AVX2, &tilesMin5AVX2, &tilesSigned6x16AVX2,
		},
		floats: [3][maxPair + 1][maxTile + 1]floatFunc{
			{
				1: {nil, mulF32_1x1_avx2, mulF32_1x2_avx2, mulF32_1x3_avx2, mulF32_1x4_avx2, mulF32_1x5_avx2, mulF32_1x6_avx2},
				2: {1: mulF32_2x1_avx2},
			},
			{
				1: {nil, mulF16_1x1_avx2, mulF16_1x2_avx2, mulF16_1x3_avx2, mulF16_1x4_avx2, mulF16_1x5_avx2, mulF16_1x6_avx2},
				2: {1: mulF16_2x1_avx2},
			},
			{
				1: {nil, mulBF16_1x1_avx2, mulBF16_1x2_avx2, mulBF16_1x3_avx2, mulBF16_1x4_avx2, mulBF16_1x5_avx2, mulBF16_1x6_avx2},
				2: {1: mulBF16_2x1_avx2},
			},
		},
	}
}

var (
	tilesSigned4AVX2    = tileSet{1: {nil, tileSigned4_1_avx2, tileSigned4_2_avx2, tileSigned4_3_avx2}}
	tilesSigned5AVX2    = tileSet{1: {nil, tileSigned5_1_avx2, tileSigned5_2_avx2}}
	tilesSigned8AVX2    = tileSet{1: {nil, tileSigned8_1_avx2, tileSigned8_2_avx2}}
	tilesMin4AVX2       = tileSet{1: {nil, tileMin4_1_avx2, tileMin4_2_avx2, tileMin4_3_avx2}}
	tilesMin5AVX2       = tileSet{1: {nil, tileMin5_1_avx2, tileMin5_2_avx2}}
	tilesSigned6x16AVX2 = tileSet{1: {nil, tileSigned6x16_1_avx2, tileSigned6x16_2_avx2}}
	tilesSigned3x16AVX2 = tileSet{1: {nil, tileSigned3x16_1_avx2, tileSigned3x16_2_avx2, tileSigned3x16_3_avx2}}
	tilesMin2x16AVX2    = tileSet{1: {nil, tileMin2x16_1_avx2, tileMin2x16_2_avx2, tileMin2x16_3_avx2}}
)

// tilesAVXVNNI are the tiles for processors with AVX-VNNI, in the order of the table formats.
var tilesAVXVNNI = [len(formats)]*tileSet{
	&tilesSigned4AVXVNNI, &tilesMinAVXVNNI, &tilesSigned5AVXVNNI, &tilesMinAVXVNNI, &tilesSigned8AVXVNNI, &tilesSigned8AVXVNNI, &tilesSigned8AVXVNNI, &tilesSigned8AVXVNNI, &tilesMin2x16AVXVNNI, &tilesSigned3x16AVXVNNI, &tilesMinAVXVNNI, &tilesMinAVXVNNI, &tilesSigned6x16AVXVNNI,
}

var (
	tilesSigned4AVXVNNI    = tileSet{1: {nil, tileSigned4_1_avxvnni, tileSigned4_2_avxvnni, tileSigned4_3_avxvnni}}
	tilesSigned5AVXVNNI    = tileSet{1: {nil, tileSigned5_1_avxvnni, tileSigned5_2_avxvnni, tileSigned5_3_avxvnni}}
	tilesSigned8AVXVNNI    = tileSet{1: {nil, tileSigned8_1_avxvnni, tileSigned8_2_avxvnni, tileSigned8_3_avxvnni}}
	tilesMinAVXVNNI        = tileSet{1: {nil, tileMin_1_avxvnni, tileMin_2_avxvnni, tileMin_3_avxvnni}}
	tilesSigned6x16AVXVNNI = tileSet{1: {nil, tileSigned6x16_1_avxvnni, tileSigned6x16_2_avxvnni, tileSigned6x16_3_avxvnni}}
	tilesSigned3x16AVXVNNI = tileSet{1: {nil, tileSigned3x16_1_avxvnni, tileSigned3x16_2_avxvnni, tileSigned3x16_3_avxvnni}}
	tilesMin2x16AVXVNNI    = tileSet{1: {nil, tileMin2x16_1_avxvnni, tileMin2x16_2_avxvnni, tileMin2x16_3_avxvnni}}
)
