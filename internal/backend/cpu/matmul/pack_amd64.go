//go:build !purego

package matmul

// The parts of packing for amd64; every level has AVX2.
var (
	packHalfs      moveFunc = packHalfs_avx2
	packFifth      moveFunc = packFifth_avx2
	packExponents  moveFunc = packExponents_avx2
	packScales16   moveFunc = packScales16_avx2
	packScalesMinK moveFunc = packScalesMinK_avx2
	packWords16    moveFunc = packWords16_avx2
)

// planes packs chunks times 16 bytes; flip is the mask of bits to turn over.
func planes(chunks, flip int) moveFunc {
	return func(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
		packPlanes_avx2(dst, src, rowBytes, n, srcStep, dstStep, chunks, flip)
	}
}

// pairs packs two halfs, the second gap bytes after the first.
func pairs(gap int) moveFunc {
	return func(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
		packPairs_avx2(dst, src, rowBytes, n, srcStep, dstStep, gap)
	}
}
