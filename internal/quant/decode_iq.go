package quant

import (
	_ "embed"
	"encoding/binary"
	"math/bits"
)

// The decoders of the IQ1, IQ2 and IQ3 formats, which store groups of 8 or 4 magnitudes as an index into a codebook,
// and signs beside them. Their super-blocks have 256 elements.

// codebooks holds the books one after the other, as testdata/make_codebooks.py describes.
//
//go:embed codebooks.bin
var codebooks string

// book is one codebook: where it starts in codebooks, and what its level numbers stand for.
type book struct {
	start  int // in entries
	levels [8]float32
}

var (
	bookIQ2XXS = book{0, levelsIQ2}
	bookIQ2XS  = book{256, levelsIQ2}
	bookIQ2S   = book{768, levelsIQ2}
	bookIQ3XXS = book{1792, [8]float32{4, 12, 20, 28, 36, 44, 52, 62}}
	bookIQ3S   = book{2048, [8]float32{1, 3, 5, 7, 9, 11, 13, 15}}
	bookIQ1    = book{2560, [8]float32{-1, 0, 1}}
	levelsIQ2  = [8]float32{8, 25, 43}
)

// entry returns the level numbers of entry i.
func (b *book) entry(i int) uint {
	at := 2 * (b.start + i)
	return uint(codebooks[at]) | uint(codebooks[at+1])<<8
}

// signed8 writes scale times the eight magnitudes of entry i, negated where signs has a bit.
func (b *book) signed8(y []float32, i int, scale float32, signs uint8) {
	y = y[:8]
	e := b.entry(i)
	for j := range y {
		y[j] = flip(scale*b.levels[e>>(2*j)&3], signs>>j)
	}
}

// signed4 is signed8 for the books with entries of four.
func (b *book) signed4(y []float32, i int, scale float32, signs uint8) {
	y = y[:4]
	e := b.entry(i)
	for j := range y {
		y[j] = flip(scale*b.levels[e>>(3*j)&7], signs>>j)
	}
}

// flip negates x if the lowest bit of sign is set.
func flip(x float32, sign uint8) float32 {
	if sign&1 != 0 {
		return -x
	}
	return x
}

// evenSigns adds the eighth sign bit to the seven that are stored: the number of minus signs is even.
func evenSigns(seven uint32) uint8 {
	seven &= 127
	return uint8(seven | uint32(bits.OnesCount32(seven)&1)<<7)
}

// IQ2_XXS: 0 scale, 2 for each 32 elements four indices and a word of four times seven signs and, on top, a 4-bit
// scale.
func decodeIQ2XXS(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[66:] {
		d := half(src)
		for g := range 8 {
			indices, word := src[2+8*g:6+8*g], binary.LittleEndian.Uint32(src[6+8*g:])
			scale := d * (0.5 + float32(word>>28)) * 0.25
			for k, i := range indices {
				bookIQ2XXS.signed8(dst[32*g+8*k:], int(i), scale, evenSigns(word>>(7*k)))
			}
		}
	}
}

// IQ2_XS: 0 scale, 2 for each 8 elements a word of a 9-bit index and seven signs, 66 4-bit scales for each 16 elements.
func decodeIQ2XS(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[74:] {
		d := half(src)
		for k := range 32 {
			word := binary.LittleEndian.Uint16(src[2+2*k:])
			scale := d * (0.5 + float32(src[66+k/4]>>(k/2%2*4)&15)) * 0.25
			bookIQ2XS.signed8(dst[8*k:], int(word&511), scale, evenSigns(uint32(word>>9)))
		}
	}
}

// IQ2_S: 0 scale, 2 low bytes of the indices, 34 signs, 66 upper pairs of the indices, 74 4-bit scales for each 16
// elements.
func decodeIQ2S(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[82:] {
		d := half(src)
		for k := range 32 {
			i := int(src[2+k]) | int(src[66+k/4]>>(k%4*2)&3)<<8
			scale := d * (0.5 + float32(src[74+k/4]>>(k/2%2*4)&15)) * 0.25
			bookIQ2S.signed8(dst[8*k:], i, scale, src[34+k])
		}
	}
}

// IQ3_XXS: 0 scale, 2 an index for each 4 elements, 66 for each 32 a word of signs and scale as in IQ2_XXS.
func decodeIQ3XXS(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[98:] {
		d := half(src)
		for k := range 64 {
			word := binary.LittleEndian.Uint32(src[66+k/8*4:])
			scale := d * (0.5 + float32(word>>28)) * 0.5
			signs := evenSigns(word >> (k % 8 / 2 * 7))
			bookIQ3XXS.signed4(dst[4*k:], int(src[2+k]), scale, signs>>(k%2*4))
		}
	}
}

// IQ3_S: 0 scale, 2 low bytes of the indices, 66 their ninth bits, 74 signs, 106 4-bit scales for each 32 elements.
func decodeIQ3S(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[110:] {
		d := half(src)
		for k := range 64 {
			i := int(src[2+k]) | int(src[66+k/8]>>(k%8)&1)<<8
			scale := d * float32(1+2*(src[106+k/16]>>(k/8%2*4)&15))
			bookIQ3S.signed4(dst[4*k:], i, scale, src[74+k/2]>>(k%2*4))
		}
	}
}

// shifted8 writes scale times the eight values of entry i, each moved by delta.
func (b *book) shifted8(y []float32, i int, scale, delta float32) {
	y = y[:8]
	e := b.entry(i)
	for j := range y {
		y[j] = scale * (b.levels[e>>(2*j)&3] + delta)
	}
}

// deltaIQ1 is by how much IQ1 moves a group's values up, or down where the bit is set.
func deltaIQ1(down bool) float32 {
	if down {
		return -0.125
	}
	return 0.125
}

// IQ1_S: 0 scale, 2 low bytes of the indices, 34 for each 32 elements a word of four times three upper bits of the
// indices, a 3-bit scale and the direction of the shift.
func decodeIQ1S(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[50:] {
		d := half(src)
		for k := range 32 {
			word := int(binary.LittleEndian.Uint16(src[34+k/4*2:]))
			i := int(src[2+k]) | word>>(k%4*3)&7<<8
			scale := d * float32(2*(word>>12&7)+1)
			bookIQ1.shifted8(dst[8*k:], i, scale, deltaIQ1(word>>15 != 0))
		}
	}
}

// IQ1_M: 0 low bytes of the indices, 32 for each 8 elements three upper bits of the index and the direction of the
// shift, 48 four words of four times a 3-bit scale for 16 elements, whose upper nibbles together are the super-block's
// scale.
func decodeIQ1M(dst []float32, src []byte) {
	for ; len(dst) >= superBlock; dst, src = dst[superBlock:], src[56:] {
		var words [4]uint16
		var packed uint16
		for n := range words {
			words[n] = binary.LittleEndian.Uint16(src[48+2*n:])
			packed |= words[n] >> 12 << (4 * n)
		}
		d := F16ToF32(packed)
		for k := range 32 {
			high := int(src[32+k/2] >> (k % 2 * 4) & 15)
			scale := d * float32(2*(words[k/8]>>(k/2%4*3)&7)+1)
			bookIQ1.shifted8(dst[8*k:], int(src[k])|high&7<<8, scale, deltaIQ1(high&8 != 0))
		}
	}
}
