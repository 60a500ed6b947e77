//go:build !purego && (amd64 || arm64)

package matmul

import "github.com/baleenrun/baleen/internal/quant"

// moveFunc packs one part of n source blocks of 16 rows; the steps are bytes from one to the next.
type moveFunc func(dst, src *byte, rowBytes, n, srcStep, dstStep int)

// move is one part of a format's packed form and where it lies: at src in the source block; in the unit at dst, and for
// the unit's second source block each bytes further on, and so on.
type move struct {
	run      moveFunc
	src, dst int
	each     int
}

// moves lists the parts of each format, in the order of the table formats. Formats without scales among them get these
// from the plain code.
var moves = [len(formats)][]move{
	0:  {{packHalfs, 0, 0, 32}, {planes(1, 0), 2, 64, 256}},                                        // Q4_0
	1:  {{pairs(64), 0, 0, 32}, {planes(1, 0), 4, 128, 256}},                                       // Q4_1
	2:  {{packHalfs, 0, 0, 32}, {planes(1, 0), 6, 64, 320}, {packFifth, 2, 64 + 256, 320}},         // Q5_0
	3:  {{pairs(64), 0, 0, 32}, {planes(1, 0), 8, 128, 320}, {packFifth, 4, 128 + 256, 320}},       // Q5_1
	4:  {{packHalfs, 0, 0, 32}, {planes(2, 0x80808080), 2, 64, 512}},                               // Q8_0
	5:  {{packHalfs, 0, 0, 32}, {planes(1, 0), 2, 64, 256}},                                        // IQ4_NL
	6:  {{packExponents, 0, 0, 16}, {planes(1, 0), 1, 64, 256}},                                    // MXFP4
	7:  {{planes(8, 0), 8, 192, 0}},                                                                // IQ4_XS
	8:  {{pairs(32), 80, 0, 0}, {packScales16, 0, 64, 0}, {planes(4, 0), 16, 320, 0}},              // Q2_K
	9:  {{planes(4, 0), 32, 320, 0}, {planes(2, 0), 0, 320 + 1024, 0}},                             // Q3_K
	10: {{packScalesMinK, 0, 0, 0}, {planes(8, 0), 16, 320, 0}},                                    // Q4_K
	11: {{packScalesMinK, 0, 0, 0}, {planes(8, 0), 48, 320, 0}, {planes(2, 0), 16, 320 + 2048, 0}}, // Q5_K
	12: {{packHalfs, 208, 0, 0}, {packScales16, 192, 64, 0}, {planes(12, 0), 0, 320, 0}},           // Q6_K
}

// plainHead holds the formats whose heads the plain code packs.
var plainHead = map[quant.Type]bool{quant.IQ4_XS: true, quant.Q3_K: true}

// packGroupNative packs 16 whole rows, one segment after another, so that their source stays in the cache.
func packGroupNative(m *Matrix, dst, src []byte, rowBytes int) bool {
	f := m.form
	if f == nil {
		packFloatNative(dst, src, rowBytes, floatBytes(m.Type))
		return true
	}
	if moves[f.index()] == nil { // a format that has only the plain code yet
		return false
	}
	per := m.Type.BlockSize() / 32 // blocks of 32 in a source block
	size := m.Type.BlockBytes()
	inUnit := f.blocks / per // source blocks in a unit
	unitBytes := f.head + f.blocks*f.body
	total := m.K / 32
	for b := 0; b < total; b += segmentBlocks {
		n := min(segmentBlocks, total-b) / per
		to, from := f.unit(b), b/per*size
		for _, mv := range moves[f.index()] {
			for i := range min(inUnit, n) {
				mv.run(
					&dst[to+mv.dst+i*mv.each],
					&src[from+i*size+mv.src],
					rowBytes,
					(n-i+inUnit-1)/inUnit,
					inUnit*size,
					unitBytes,
				)
			}
		}
	}
	if plainHead[m.Type] {
		for lane := range Lanes {
			for u := range total / 8 {
				f.packHead(dst[u*unitBytes:], src[lane*rowBytes+u*size:], 8, lane)
			}
		}
	}
	return true
}

// packFloatNative packs 16 rows of numbers of size bytes.
func packFloatNative(dst, src []byte, rowBytes, size int) {
	chunks := rowBytes / 16
	if chunks > 0 && size == 4 {
		planes(chunks, 0)(&dst[0], &src[0], rowBytes, 1, 0, 0)
	} else if chunks > 0 {
		packWords16(&dst[0], &src[0], rowBytes, chunks, 16, 256)
	}
	for lane := range Lanes {
		rest := src[lane*rowBytes+chunks*16 : (lane+1)*rowBytes]
		for i, b := range rest {
			k, at := (chunks*16+i)/size, i%size
			dst[(k*Lanes+lane)*size+at] = b
		}
	}
}
