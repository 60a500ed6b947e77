package quant

import (
	"encoding/binary"
	"math"
)

// F16ToF32 returns the IEEE half-precision number with bits h; every half is exact in float32.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	rest := uint32(h & 0x7fff)
	switch {
	case rest >= 0x7c00: // infinity, or a NaN that keeps its payload
		return math.Float32frombits(sign | 0x7f800000 | rest<<13)
	case rest >= 0x0400:
		return math.Float32frombits(sign | (rest<<13 + (127-15)<<23))
	}
	return math.Float32frombits(sign | math.Float32bits(float32(rest)*0x1p-24))
}

// F32ToF16 returns the bits of the half nearest to f, ties to even. What is too large becomes infinity; NaN stays NaN.
func F32ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	abs := bits & 0x7fffffff
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00 | uint16(abs>>13&0x3ff)
	case abs >= 0x47800000: // 65536 and more
		return sign | 0x7c00
	case abs >= 0x38800000: // normal halves, from 2^-14
		abs += 0xfff + abs>>13&1
		return sign | uint16((abs-(127-15)<<23)>>13)
	}
	// Halves below 2^-14 are multiples of 2^-24: adding 0.5, whose last bit is 2^-24, lets the addition round.
	return sign | uint16(math.Float32bits(math.Float32frombits(abs)+0.5)-math.Float32bits(0.5))
}

// BF16ToF32 returns the bfloat16 number with bits b; it is exact in float32.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// F32ToBF16 returns the bits of the bfloat16 nearest to f, ties to even. NaN becomes a quiet NaN.
func F32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// E4M3ToF32 returns the 8-bit float with 4 exponent and 3 mantissa bits (the "fn" kind: no infinities, S.1111.111 is
// NaN).
func E4M3ToF32(b byte) float32 { return e4m3[b] }

var e4m3 = func() (t [256]float32) {
	for b := range t {
		t[b] = e4m3Value(byte(b))
	}
	return t
}()

func e4m3Value(b byte) float32 {
	sign := uint32(b&0x80) << 24
	rest := uint32(b & 0x7f)
	switch {
	case rest == 0x7f:
		return math.Float32frombits(sign | 0x7fc00000)
	case rest >= 8:
		return math.Float32frombits(sign | (rest<<20 + (127-7)<<23))
	}
	return math.Float32frombits(sign | math.Float32bits(float32(rest)*0x1p-9))
}

// E5M2ToF32 returns the 8-bit float with 5 exponent and 2 mantissa bits: the upper half of an IEEE half.
func E5M2ToF32(b byte) float32 { return F16ToF32(uint16(b) << 8) }

// E8M0ToF32 returns the power of two 2^(b-127) that scales an MX block; 255 is NaN.
func E8M0ToF32(b byte) float32 {
	switch b {
	case 0:
		return math.Float32frombits(0x00400000)
	case 0xff:
		return math.Float32frombits(0x7fc00000)
	}
	return math.Float32frombits(uint32(b) << 23)
}

// e8m0Half returns 2^(b-128) for every b, as ggml does: it goes with a table of doubled values.
func e8m0Half(b byte) float32 {
	if b < 2 {
		return math.Float32frombits(0x00200000 << b)
	}
	return math.Float32frombits(uint32(b-1) << 23)
}

// ue4m3Half returns half the unsigned E4M3 number b, as ggml does: the top bit is ignored and 0x7f counts as 0.
func ue4m3Half(b byte) float32 {
	if b == 0x7f {
		return 0
	}
	rest := uint32(b & 0x7f)
	if rest >= 8 {
		return math.Float32frombits(rest<<20 + (126-7)<<23)
	}
	return float32(rest) * 0x1p-10
}

// half reads the little-endian half at the start of b.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func decodeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = half(src[2*i:])
	}
}

func decodeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func decodeF64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func decodeI8(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int8(src[i]))
	}
}

func decodeI16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int16(binary.LittleEndian.Uint16(src[2*i:])))
	}
}

func decodeI32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int32(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

func decodeI64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int64(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func encodeF32(dst []byte, src []float32) error {
	for i, x := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
	return nil
}

func encodeF16(dst []byte, src []float32) error {
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToF16(x))
	}
	return nil
}

func encodeBF16(dst []byte, src []float32) error {
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(x))
	}
	return nil
}
