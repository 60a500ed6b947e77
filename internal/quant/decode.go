package quant

import "encoding/binary"

// The decoders of formats with one scale per block. Offsets in comments are bytes inside the block; "low, high" means
// that byte j's low nibble is element j and its high nibble element j plus half a block.

// e2m1Doubled holds twice the 4-bit floats of the MX formats, so that they are whole; both zeros are +0.
var e2m1Doubled = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// iq4Values is the non-linear 4-bit scale of IQ4_NL and IQ4_XS.
var iq4Values = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// Q4_0: 0 scale, 2 nibbles (low, high), offset 8.
func decodeQ4_0(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[18:] {
		d, qs, y := half(src), src[2:18], dst[:32]
		for j, q := range qs {
			y[j] = d * float32(int(q&15)-8)
			y[j+16] = d * float32(int(q>>4)-8)
		}
	}
}

// Q4_1: 0 scale, 2 minimum, 4 nibbles (low, high).
func decodeQ4_1(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[20:] {
		d, m, qs, y := half(src), half(src[2:]), src[4:20], dst[:32]
		for j, q := range qs {
			y[j] = float32(d*float32(q&15)) + m
			y[j+16] = float32(d*float32(q>>4)) + m
		}
	}
}

// Q5_0: 0 scale, 2 fifth bits (bit i for element i), 6 nibbles (low, high), offset 16.
func decodeQ5_0(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[22:] {
		d, qh, qs, y := half(src), binary.LittleEndian.Uint32(src[2:]), src[6:22], dst[:32]
		for j, q := range qs {
			y[j] = d * float32(int(q&15)|int(qh>>j&1)<<4-16)
			y[j+16] = d * float32(int(q>>4)|int(qh>>(j+16)&1)<<4-16)
		}
	}
}

// Q5_1: 0 scale, 2 minimum, 4 fifth bits, 8 nibbles (low, high).
func decodeQ5_1(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[24:] {
		d, m, qh := half(src), half(src[2:]), binary.LittleEndian.Uint32(src[4:])
		qs, y := src[8:24], dst[:32]
		for j, q := range qs {
			y[j] = float32(d*float32(uint32(q&15)|qh>>j&1<<4)) + m
			y[j+16] = float32(d*float32(uint32(q>>4)|qh>>(j+16)&1<<4)) + m
		}
	}
}

// Q8_0: 0 scale, 2 signed bytes.
func decodeQ8_0(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[34:] {
		d, qs, y := half(src), src[2:34], dst[:32]
		for j, q := range qs {
			y[j] = float32(int8(q)) * d
		}
	}
}

// Q8_1: 0 scale, 2 scale times the sum of the bytes (not needed here), 4 signed bytes.
func decodeQ8_1(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[36:] {
		d, qs, y := half(src), src[4:36], dst[:32]
		for j, q := range qs {
			y[j] = float32(int8(q)) * d
		}
	}
}

// IQ4_NL: 0 scale, 2 nibbles (low, high) into iq4Values.
func decodeIQ4NL(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[18:] {
		d, qs, y := half(src), src[2:18], dst[:32]
		for j, q := range qs {
			y[j] = d * iq4Values[q&15]
			y[j+16] = d * iq4Values[q>>4]
		}
	}
}

// MXFP4: 0 power-of-two scale, 1 nibbles (low, high) into e2m1Doubled.
func decodeMXFP4(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[17:] {
		d, qs, y := e8m0Half(src[0]), src[1:17], dst[:32]
		for j, q := range qs {
			y[j] = d * e2m1Doubled[q&15]
			y[j+16] = d * e2m1Doubled[q>>4]
		}
	}
}

// NVFP4: 0 four unsigned E4M3 scales, 4 nibbles: 8 bytes (low, high) for each 16 elements.
func decodeNVFP4(dst []float32, src []byte) {
	for ; len(dst) >= 64; dst, src = dst[64:], src[36:] {
		for s := range 4 {
			d, qs, y := ue4m3Half(src[s]), src[4+8*s:12+8*s], dst[16*s:16*s+16]
			for j, q := range qs {
				y[j] = d * e2m1Doubled[q&15]
				y[j+8] = d * e2m1Doubled[q>>4]
			}
		}
	}
}

// Q1_0: 0 scale, 2 signs: bit set is +scale, clear is -scale.
func decodeQ1_0(dst []float32, src []byte) {
	for ; len(dst) >= 128; dst, src = dst[128:], src[18:] {
		d, qs, y := half(src), src[2:18], dst[:128]
		for j := range y {
			y[j] = -d
			if qs[j/8]>>(j%8)&1 != 0 {
				y[j] = d
			}
		}
	}
}

// Q2_0: 0 scale, 2 pairs of bits in order, offset 1.
func decodeQ2_0(dst []float32, src []byte) {
	for ; len(dst) >= 64; dst, src = dst[64:], src[18:] {
		d, qs, y := half(src), src[2:18], dst[:64]
		for j := range y {
			y[j] = float32(int(qs[j/4]>>(2*(j%4))&3)-1) * d
		}
	}
}

// TQ2_0: 0 pairs of bits (byte j of a 32-byte half holds elements j, j+32, j+64, j+96), 64 scale, offset 1.
func decodeTQ2(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[66:] {
		d := half(src[64:])
		for i := range superBlock {
			q := src[i/128*32+i%32] >> (2 * (i / 32 % 4)) & 3
			dst[i] = d * float32(int(q)-1)
		}
	}
}

// TQ1_0: 0 five base-3 digits a byte (32 bytes for 160 elements, 16 for 80), 48 four digits a byte (4 for 16), 52
// scale. A byte holds the digits as a fraction of 256: multiplying by 3 moves the next digit above the byte.
func decodeTQ1(dst []float32, src []byte) {
	powers := [5]uint8{1, 3, 9, 27, 81}
	parts := [3]struct{ bytes, digits int }{{32, 5}, {16, 5}, {4, 4}}
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[54:] {
		d, y, qs := half(src[52:]), dst[:superBlock], src[:52]
		for _, p := range parts {
			for n := range p.digits {
				for j, q := range qs[:p.bytes] {
					digit := uint16(q*powers[n]) * 3 >> 8
					y[n*p.bytes+j] = d * float32(int(digit)-1)
				}
			}
			y, qs = y[p.bytes*p.digits:], qs[p.bytes:]
		}
	}
}
