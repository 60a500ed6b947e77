package quant

import (
	"encoding/binary"
	"math"
)

// The decoders of 256-element super-blocks with scales of their own for every 16 or 32 elements. A product that
// something is added to or taken from is converted to float32 first: the language lets a compiler fuse the two
// operations otherwise, even across statements, and some processors would give other bits.

// scaleMin6 unpacks the 8 scales and 8 minimums of Q4_K and Q5_K, 6 bits each, from 12 bytes: the first four of each
// lie in the low 6 bits of bytes 0-3 and 4-7; the last four have their low 4 bits in bytes 8-11 (scale low, minimum
// high) and their upper 2 bits on top of bytes 0-3 and 4-7.
func scaleMin6(p []byte) (scales, mins [8]uint8) {
	p = p[:12]
	for j := range 4 {
		scales[j] = p[j] & 63
		mins[j] = p[j+4] & 63
		scales[j+4] = p[j+8]&15 | p[j]>>6<<4
		mins[j+4] = p[j+8]>>4 | p[j+4]>>6<<4
	}
	return scales, mins
}

// Q2_K: 0 sixteen scales (low nibble) and minimums (high), 16 pairs of bits (byte j of a 32-byte half holds elements j,
// j+32, j+64, j+96 of its 128), 80 scale of scales, 82 scale of minimums.
func decodeQ2K(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[84:] {
		d, dmin := half(src[80:]), half(src[82:])
		for g := range 16 {
			dl, ml := d*float32(src[g]&15), float32(dmin*float32(src[g]>>4))
			qs, shift := src[16+g/8*32+g%2*16:], g%8/2*2
			y := dst[16*g : 16*g+16]
			for j := range y {
				y[j] = float32(dl*float32(qs[j]>>shift&3)) - ml
			}
		}
	}
}

// scales6 unpacks the 16 signed scales of Q3_K, 6 bits each with offset 32, from 12 bytes: low nibbles in bytes 0-7
// (0-7 low, 8-15 high), upper pairs in bytes 8-11.
func scales6(p []byte) (scales [16]int8) {
	p = p[:12]
	for j := range scales {
		low := p[j%8] >> (j / 8 * 4) & 15
		high := p[8+j%4] >> (j / 4 * 2) & 3
		scales[j] = int8(low|high<<4) - 32
	}
	return scales
}

// Q3_K: 0 third bits (bit k of byte j belongs to element 32k+j; clear subtracts 4), 32 pairs of bits as in Q2_K, 96
// scales, 108 scale of scales.
func decodeQ3K(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[110:] {
		d, scales := half(src[108:]), scales6(src[96:])
		for g := range 16 {
			dl := d * float32(scales[g])
			qs, shift := src[32+g/8*32+g%2*16:], g%8/2*2
			hs, bit := src[g%2*16:], g/2
			y := dst[16*g : 16*g+16]
			for j := range y {
				q := int(qs[j]>>shift&3) + int(hs[j]>>bit&1)<<2 - 4
				y[j] = dl * float32(q)
			}
		}
	}
}

// Q4_K: 0 scale of scales, 2 scale of minimums, 4 scales and minimums, 16 nibbles: 32 bytes for each 64 elements, the
// low nibbles first.
func decodeQ4K(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[144:] {
		d, dmin := half(src), half(src[2:])
		scales, mins := scaleMin6(src[4:])
		for g := range 4 {
			d0, m0 := d*float32(scales[2*g]), float32(dmin*float32(mins[2*g]))
			d1, m1 := d*float32(scales[2*g+1]), float32(dmin*float32(mins[2*g+1]))
			y := dst[64*g : 64*g+64]
			for j, q := range src[16+32*g : 48+32*g] {
				y[j] = float32(d0*float32(q&15)) - m0
				y[j+32] = float32(d1*float32(q>>4)) - m1
			}
		}
	}
}

// Q5_K: 0, 2, 4 as Q4_K, 16 fifth bits (bit k of byte j belongs to element 32k+j), 48 nibbles as Q4_K.
func decodeQ5K(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[176:] {
		d, dmin := half(src), half(src[2:])
		scales, mins := scaleMin6(src[4:])
		qh := src[16:48]
		for g := range 4 {
			d0, m0 := d*float32(scales[2*g]), float32(dmin*float32(mins[2*g]))
			d1, m1 := d*float32(scales[2*g+1]), float32(dmin*float32(mins[2*g+1]))
			y := dst[64*g : 64*g+64]
			for j, q := range src[48+32*g : 80+32*g] {
				y[j] = float32(d0*float32(q&15|qh[j]>>(2*g)&1<<4)) - m0
				y[j+32] = float32(d1*float32(q>>4|qh[j]>>(2*g+1)&1<<4)) - m1
			}
		}
	}
}

// Q6_K: 0 low nibbles (64 bytes for each 128 elements: bytes j and j+32 hold elements j, j+32 low and j+64, j+96 high),
// 128 upper pairs (32 bytes for each 128 elements, as Q2_K), 192 sixteen signed scales, 208 scale of scales; offset 32.
func decodeQ6K(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[210:] {
		d := half(src[208:])
		for g := range 16 {
			dl := d * float32(int8(src[192+g]))
			n, k, part := g/8, g%8/2, g%2*16 // half, quarter of the half, first or second 16
			ql, lowShift := src[64*n+k%2*32+part:], k/2*4
			qh, highShift := src[128+32*n+part:], 2*k
			y := dst[16*g : 16*g+16]
			for j := range y {
				q := ql[j]>>lowShift&15 | qh[j]>>highShift&3<<4
				y[j] = dl * float32(int(q)-32)
			}
		}
	}
}

// Q8_K: 0 scale (float32), 4 signed bytes, 260 sums of 16 (not needed here).
func decodeQ8K(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[292:] {
		d := math.Float32frombits(binary.LittleEndian.Uint32(src))
		for j, q := range src[4:260] {
			dst[j] = d * float32(int8(q))
		}
	}
}

// IQ4_XS: 0 scale of scales, 2 upper pairs of the 8 scales, 4 their low nibbles, 8 nibbles (low, high) into iq4Values,
// 16 bytes for each 32 elements; scales have offset 32.
func decodeIQ4XS(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[136:] {
		d, high := half(src), binary.LittleEndian.Uint16(src[2:])
		for g := range 8 {
			scale := int(src[4+g/2]>>(g%2*4)&15) | int(high>>(2*g)&3)<<4
			dl := d * float32(scale-32)
			y := dst[32*g : 32*g+32]
			for j, q := range src[8+16*g : 24+16*g] {
				y[j] = dl * iq4Values[q&15]
				y[j+16] = dl * iq4Values[q>>4]
			}
		}
	}
}
