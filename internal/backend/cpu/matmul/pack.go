package matmul

import (
	"encoding/binary"
	"math"

	"github.com/baleenrun/baleen/internal/quant"
)

// Packing in plain Go. src of the functions below is one row from the unit's first source block on.

// packGroup packs the rows of src, up to 16, of n blocks of 32. Lanes beyond them are left as they are.
func (f *format) packGroup(dst, src []byte, rowBytes, n int) {
	for lane := 0; lane*rowBytes < len(src); lane++ {
		row := src[lane*rowBytes : (lane+1)*rowBytes]
		for b := 0; b < n; b += f.blocks {
			unit, count := dst[f.unit(b):], min(f.blocks, n-b)
			f.packHead(unit, row, count, lane)
			f.packPlanes(unit, row, count, lane)
			if count == f.blocks {
				row = row[f.source:]
			}
		}
	}
}

// words copies n 32-bit words of a row into its lane of as many planes.
func words(planes, src []byte, n, lane int) {
	planes, src = planes[4*lane:], src[:4*n]
	for i := 0; i < len(src); i += 4 {
		binary.LittleEndian.PutUint32(planes[16*i:], binary.LittleEndian.Uint32(src[i:]))
	}
}

// planes4 packs source blocks of so many bytes with 16 bytes of nibbles at the given place.
func planes4(block, at, head int) func(unit, src []byte, count, lane int) {
	return func(unit, src []byte, count, lane int) {
		for b := range count {
			words(unit[head+b*256:], src[b*block+at:], 4, lane)
		}
	}
}

// planes5 is planes4 with 4 bytes of fifth bits before the nibbles.
func planes5(block, at, head int) func(unit, src []byte, count, lane int) {
	return func(unit, src []byte, count, lane int) {
		for b := range count {
			s := src[b*block:]
			words(unit[head+b*320:], s[at:], 4, lane)
			bits := spread(binary.LittleEndian.Uint32(s[at-4:]))
			binary.LittleEndian.PutUint32(unit[head+b*320+256+4*lane:], bits)
		}
	}
}

// spread moves bit 4j+i to bit j of byte i: byte i of quad j then finds its bit by a shift of j.
func spread(x uint32) (y uint32) {
	for i := range 4 {
		v := x >> i & 0x11111111 // bits 4j
		v = (v | v>>3) & 0x03030303
		v = (v | v>>6) & 0x000f000f
		v = (v | v>>12) & 0xff
		y |= v << (8 * i)
	}
	return y
}

func planesQ8(unit, src []byte, count, lane int) {
	for b := range count {
		planes, s := unit[64+b*512+4*lane:], src[b*34+2:b*34+34]
		for i := 0; i < len(s); i += 4 {
			binary.LittleEndian.PutUint32(planes[16*i:], binary.LittleEndian.Uint32(s[i:])^0x80808080)
		}
	}
}

// planesK packs n words from one place of the source block.
func planesK(at, head, n int) func(unit, src []byte, count, lane int) {
	return func(unit, src []byte, _, lane int) { words(unit[head:], src[at:], n, lane) }
}

func planesQ3K(unit, src []byte, _, lane int) {
	words(unit[320:], src[32:], 16, lane)
	words(unit[320+1024:], src, 8, lane)
}

func planesQ5K(unit, src []byte, _, lane int) {
	words(unit[320:], src[48:], 32, lane)
	words(unit[320+2048:], src[16:], 8, lane)
}

func headF16(block int) func(unit, src []byte, count, lane int) {
	return func(unit, src []byte, count, lane int) {
		for b := range count {
			copy(unit[32*b+2*lane:], src[b*block:b*block+2])
		}
	}
}

func headMinF16(block int) func(unit, src []byte, count, lane int) {
	return func(unit, src []byte, count, lane int) {
		for b := range count {
			copy(unit[32*b+2*lane:], src[b*block:b*block+2])
			copy(unit[64+32*b+2*lane:], src[b*block+2:b*block+4])
		}
	}
}

func headE8M0(unit, src []byte, count, lane int) {
	for b := range count {
		unit[16*b+lane] = src[17*b]
	}
}

// headMinK: 16 scales of scales, 16 scales of minimums, 8x16 scales, 8x16 minimums.
func headMinK(unit, src []byte, _, lane int) {
	copy(unit[2*lane:], src[:2])
	copy(unit[32+2*lane:], src[2:4])
	s := src[4:16]
	for j := range 4 {
		unit[64+16*j+lane] = s[j] & 63
		unit[192+16*j+lane] = s[j+4] & 63
		unit[128+16*j+lane] = s[j+8]&15 | s[j]>>6<<4
		unit[256+16*j+lane] = s[j+8]>>4 | s[j+4]>>6<<4
	}
}

func headQ2K(unit, src []byte, _, lane int) {
	copy(unit[2*lane:], src[80:82])
	copy(unit[32+2*lane:], src[82:84])
	for j, s := range src[:16] {
		unit[64+16*j+lane] = s
	}
}

func headQ3K(unit, src []byte, _, lane int) {
	copy(unit[2*lane:], src[108:110])
	p := src[96:108]
	for j := range 16 {
		low := p[j%8] >> (j / 8 * 4) & 15
		high := p[8+j%4] >> (j / 4 * 2) & 3
		unit[64+16*j+lane] = (low | high<<4) - 32
	}
}

func headQ6K(unit, src []byte, _, lane int) {
	copy(unit[2*lane:], src[208:210])
	for j, s := range src[192:208] {
		unit[64+16*j+lane] = s
	}
}

func headIQ4XS(unit, src []byte, _, lane int) {
	copy(unit[2*lane:], src[:2])
	high := binary.LittleEndian.Uint16(src[2:])
	for j := range 8 {
		unit[64+16*j+lane] = src[4+j/2]>>(j%2*4)&15 | byte(high>>(2*j)&3)<<4 - 32
	}
}

func half(b []byte) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(b)) }

func scaleF16(unit []byte, block, _, lane int) (d, min float32) {
	return half(unit[32*block+2*lane:]), 0
}

func scaleMinF16(unit []byte, block, _, lane int) (d, min float32) {
	return half(unit[32*block+2*lane:]), half(unit[64+32*block+2*lane:])
}

// scaleE8M0: half of two to the power of the byte less 127, since the values are doubled.
func scaleE8M0(unit []byte, block, _, lane int) (d, min float32) {
	e := uint32(unit[16*block+lane])
	if e < 2 {
		return math.Float32frombits(0x00200000 << e), 0
	}
	return math.Float32frombits((e - 1) << 23), 0
}

func scaleMinK(unit []byte, block, _, lane int) (d, min float32) {
	d, min = half(unit[2*lane:]), half(unit[32+2*lane:])
	return d * float32(unit[64+16*block+lane]), -(min * float32(unit[192+16*block+lane]))
}

func scaleQ2K(unit []byte, block, sub, lane int) (d, min float32) {
	d, min = half(unit[2*lane:]), half(unit[32+2*lane:])
	s := unit[64+16*(2*block+sub)+lane]
	return d * float32(s&15), -(min * float32(s>>4))
}

func scaleSigned(subs int) func(unit []byte, block, sub, lane int) (d, min float32) {
	return func(unit []byte, block, sub, lane int) (float32, float32) {
		return half(unit[2*lane:]) * float32(int8(unit[64+16*(subs*block+sub)+lane])), 0
	}
}

// packFloat interleaves up to 16 rows of numbers of size bytes.
func packFloat(dst, src []byte, rowBytes, size int) {
	for lane := 0; lane*rowBytes < len(src); lane++ {
		row := src[lane*rowBytes : (lane+1)*rowBytes]
		to := dst[lane*size:]
		if size == 4 {
			for i := 0; i < len(row); i += 4 {
				binary.LittleEndian.PutUint32(to[16*i:], binary.LittleEndian.Uint32(row[i:]))
			}
			continue
		}
		for i := 0; i < len(row); i += 2 {
			binary.LittleEndian.PutUint16(to[16*i:], binary.LittleEndian.Uint16(row[i:]))
		}
	}
}
