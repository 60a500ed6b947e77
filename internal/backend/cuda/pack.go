package cuda

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/baleenrun/baleen/internal/quant"
)

// The packed form of weights, which kernels/matmul_quant.cu and matmul_float.cu read.
//
// Block-quantized: groups of 16 rows, a group in units of 256 weights of each row. A unit holds planes, each in the
// order of the
// tensor cores' A fragments: for a block of 32, lane 4g+t has 4 words of 4 weights, which are rows g, g+8, g, g+8 at
// 4t, 4t,
// 16+4t, 16+4t. Then comes a word of scales for each of 8 pairs of rows (g, g+8) and of 8 blocks, [8][8]; then minimums
// in the
// same order, or scales of scales and of minimums, a word for each pair of rows.
//
// Float: groups of 32 rows, [K/V][32][V] where V numbers are 16 bytes.

const (
	unitWeights = 256
	groupRows   = 16
	floatRows   = 32
)

// A packing describes a block format.
type packing struct {
	nibbles bool // planes: 4 bits
	pairs   int  // 2 bits, from this bit of a weight on; -1: none
	singles int  // 1 bit; -1: none
	bytes   bool // 8 bits
	source  int  // bytes of 256 weights of a row
	mins    bool // a word of minimums for each word of scales
	super   int  // words of scales of scales and of minimums: 0, 1, 2

	// expand writes the bits of the weights of a row's blocks, n of 32, one a byte.
	expand func(raw *[unitWeights]byte, src []byte, n int)
	// scales returns the scale of a block in a row and its minimum; of formats with a scale for 16 weights, both
	// scales.
	scales func(src []byte, block int) (scale, low uint16)
	// head returns the scales of scales and of minimums.
	head func(src []byte) (d, low uint16)
}

func (p *packing) planes() int {
	n := 0
	for _, have := range []struct {
		is    bool
		bytes int
	}{{p.nibbles, 2048}, {p.pairs >= 0, 1024}, {p.singles >= 0, 512}, {p.bytes, 4096}} {
		if have.is {
			n += have.bytes
		}
	}
	return n
}

// unitBytes is the size of a unit.
func (p *packing) unitBytes() int {
	n := p.planes() + 256 + 32*p.super
	if p.mins {
		n += 256
	}
	return n
}

var packings = map[quant.Type]*packing{
	quant.Q4_0: {
		nibbles: true, pairs: -1, singles: -1, source: 8 * 18, expand: expandNibbles(18, 2, -1), scales: blockScale(18,
			false),
	},
	quant.Q4_1: {
		nibbles: true, pairs: -1, singles: -1, source: 8 * 20, mins: true, expand: expandNibbles(20, 4, -1),
		scales: blockScale(20, true),
	},
	quant.Q5_0: {
		nibbles: true, pairs: -1, singles: 4, source: 8 * 22, expand: expandNibbles(22, 6, 2), scales: blockScale(22, false),
	},
	quant.Q5_1: {
		nibbles: true, pairs: -1, singles: 4, source: 8 * 24, mins: true, expand: expandNibbles(24, 8, 4),
		scales: blockScale(24, true),
	},
	quant.Q8_0: {
		bytes:   true,
		pairs:   -1,
		singles: -1,
		source:  8 * 34,
		expand:  expandBytes,
		scales:  blockScale(34, false),
	},
	quant.IQ4_NL: {
		nibbles: true, pairs: -1, singles: -1, source: 8 * 18, expand: expandNibbles(18, 2, -1), scales: blockScale(18,
			false),
	},
	quant.MXFP4: {
		nibbles: true, pairs: -1, singles: -1, source: 8 * 17, expand: expandNibbles(17, 1, -1),
		scales: scaleMXFP4,
	},
	quant.IQ4_XS: {
		nibbles: true, pairs: -1, singles: -1, source: 136, super: 1, expand: expandIQ4XS, scales: scalesIQ4XS,
		head: headAt(0, -1),
	},
	quant.Q2_K: {pairs: 0, singles: -1, source: 84, super: 2, expand: expandQ2K, scales: scalesQ2K, head: headAt(80,
		82)},
	quant.Q3_K: {pairs: 0, singles: 2, source: 110, super: 1, expand: expandQ3K, scales: scalesQ3K, head: headAt(108,
		-1)},
	quant.Q4_K: {
		nibbles: true, pairs: -1, singles: -1, source: 144, super: 2, expand: expandQ4K, scales: scalesQ4K,
		head: headAt(0, 2),
	},
	quant.Q5_K: {
		nibbles: true, pairs: -1, singles: 4, source: 176, super: 2, expand: expandQ5K, scales: scalesQ4K,
		head: headAt(0, 2),
	},
	quant.Q6_K: {
		nibbles: true, pairs: 4, singles: -1, source: 210, super: 1, expand: expandQ6K, scales: scalesQ6K,
		head: headAt(208, -1),
	},
}

func floatBytes(t quant.Type) int {
	switch t {
	case quant.F32:
		return 4
	case quant.F16, quant.BF16:
		return 2
	}
	return 0
}

// groupShape returns the rows of a group of a format and its packed bytes, for rows of k weights.
func groupShape(t quant.Type, k int) (rows, bytes int, err error) {
	if size := floatBytes(t); size > 0 {
		per := 16 / size
		return floatRows, (k + per - 1) / per * floatRows * 16, nil
	}
	p := packings[t]
	switch {
	case p == nil:
		return 0, 0, fmt.Errorf("weights of the format %v cannot be multiplied", t)
	case k%t.BlockSize() != 0:
		return 0, 0, fmt.Errorf("rows of %d elements are no whole number of %v blocks of %d", k, t, t.BlockSize())
	}
	return groupRows, (k + unitWeights - 1) / unitWeights * p.unitBytes(), nil
}

// packedBytes is the size of a packed matrix.
func packedBytes(t quant.Type, rows, k int) (int, error) {
	n, bytes, err := groupShape(t, k)
	if err != nil {
		return 0, err
	}
	return (rows + n - 1) / n * bytes, nil
}

// packGroup packs the rows of src, at most those of a group, into dst.
func packGroup(t quant.Type, dst, src []byte, k int) {
	rowBytes, _ := t.RowBytes(k) // checked by groupShape
	if size := floatBytes(t); size > 0 {
		packFloats(dst, src, rowBytes)
		return
	}
	p := packings[t]
	rows := len(src) / rowBytes
	var raw [groupRows][unitWeights]byte
	for u := 0; u*unitWeights < k; u++ {
		n := min(8, k/32-8*u)
		unit := dst[u*p.unitBytes() : (u+1)*p.unitBytes()]
		clear(unit[p.planes():])
		for r := range groupRows {
			if r >= rows || n < 8 {
				clear(raw[r][:])
			}
			if r < rows {
				row := src[r*rowBytes+u*p.source : (r+1)*rowBytes]
				p.expand(&raw[r], row, n)
				p.packHead(unit[p.planes():], row, r, n)
			}
		}
		p.packPlanes(unit, &raw)
	}
}

func packFloats(dst, src []byte, rowBytes int) {
	if len(src) < floatRows*rowBytes || rowBytes%16 != 0 {
		clear(dst)
	}
	for r := 0; r*rowBytes < len(src); r++ {
		row := src[r*rowBytes : (r+1)*rowBytes]
		to := dst[r*16:]
		for len(row) > 0 {
			n := copy(to[:16], row)
			if row = row[n:]; len(row) > 0 {
				to = to[floatRows*16:]
			}
		}
	}
}

// packHead writes a row's scales.
func (p *packing) packHead(head, src []byte, row, n int) {
	g, upper := row%8, row/8
	for b := range n {
		s, low := p.scales(src, b)
		w := head[g*32+b*4:]
		switch {
		case p.super > 0: // bytes: a scale and a minimum, or two scales
			w[upper], w[2+upper] = byte(s), byte(low)
		default:
			binary.LittleEndian.PutUint16(w[2*upper:], s)
			if p.mins {
				binary.LittleEndian.PutUint16(head[256+g*32+b*4+2*upper:], low)
			}
		}
	}
	if p.super > 0 {
		d, low := p.head(src)
		binary.LittleEndian.PutUint16(head[256+4*g+2*upper:], d)
		if p.super > 1 {
			binary.LittleEndian.PutUint16(head[288+4*g+2*upper:], low)
		}
	}
}

// packPlanes writes the bits of 16 rows in the order of the fragments.
func (p *packing) packPlanes(unit []byte, raw *[groupRows][unitWeights]byte) {
	put := binary.LittleEndian.PutUint32
	get := binary.LittleEndian.Uint32
	for lane := range 32 {
		g, t := lane/4, 4*(lane%4)
		upper, lower := &raw[g], &raw[g+8]
		var singles [4]uint32
		for b := range 8 {
			a := [4]uint32{get(upper[32*b+t:]), get(lower[32*b+t:]), get(upper[32*b+16+t:]), get(lower[32*b+16+t:])}
			at := 0
			if p.bytes {
				for r, v := range a {
					put(unit[b*512+lane*16+4*r:], v)
				}
				continue
			}
			if p.nibbles {
				w := unit[b/2*512+lane*16+b%2*8:]
				put(w, a[0]&0x0f0f0f0f|a[1]&0x0f0f0f0f<<4)
				put(w[4:], a[2]&0x0f0f0f0f|a[3]&0x0f0f0f0f<<4)
				at = 2048
			}
			if p.pairs >= 0 {
				var w uint32
				for r, v := range a {
					w |= v >> p.pairs & 0x03030303 << (2 * r)
				}
				put(unit[at+b/4*512+lane*16+b%4*4:], w)
				at += 1024
			}
			if p.singles >= 0 {
				for r, v := range a {
					singles[b/2] |= v >> p.singles & 0x01010101 << (4*(b%2) + r)
				}
				if b%2 == 1 {
					put(unit[at+lane*16+b/2*4:], singles[b/2])
				}
			}
		}
	}
}

// expandNibbles is for blocks of 32 whose low nibbles are the first half; fifth is where 4 bytes of fifth bits lie, or
// -1.
func expandNibbles(block, at, fifth int) func(raw *[unitWeights]byte, src []byte, n int) {
	return func(raw *[unitWeights]byte, src []byte, n int) {
		const low = 0x0f0f0f0f0f0f0f0f
		for b := range n {
			s, out := src[b*block:(b+1)*block], raw[32*b:32*b+32]
			for i := 0; i < 16; i += 8 {
				v := binary.LittleEndian.Uint64(s[at+i:])
				binary.LittleEndian.PutUint64(out[i:], v&low)
				binary.LittleEndian.PutUint64(out[16+i:], v>>4&low)
			}
			if fifth >= 0 {
				bits := binary.LittleEndian.Uint32(s[fifth:])
				for i := range out {
					out[i] |= byte(bits>>i&1) << 4
				}
			}
		}
	}
}

func expandBytes(raw *[unitWeights]byte, src []byte, n int) {
	for b := range n {
		copy(raw[32*b:32*b+32], src[34*b+2:])
	}
}

func expandIQ4XS(raw *[unitWeights]byte, src []byte, n int) {
	expandNibbles(16, 0, -1)(raw, src[8:], n)
}

func expandQ4K(raw *[unitWeights]byte, src []byte, _ int) { nibblesQ45K(raw, src[16:]) }

func nibblesQ45K(raw *[unitWeights]byte, qs []byte) {
	const low = 0x0f0f0f0f0f0f0f0f
	for i := 0; i < 128; i += 8 {
		v := binary.LittleEndian.Uint64(qs[i:])
		at := i/32*64 + i%32
		binary.LittleEndian.PutUint64(raw[at:], v&low)
		binary.LittleEndian.PutUint64(raw[at+32:], v>>4&low)
	}
}

// orBits adds bit `bit` of 32 bytes to the 32 values of a block, at position `to`.
func orBits(raw, high []byte, bit, to int) {
	const one = 0x0101010101010101
	for i := 0; i < 32; i += 8 {
		v := binary.LittleEndian.Uint64(raw[i:]) | binary.LittleEndian.Uint64(high[i:])>>bit&one<<to
		binary.LittleEndian.PutUint64(raw[i:], v)
	}
}

func expandQ5K(raw *[unitWeights]byte, src []byte, _ int) {
	nibblesQ45K(raw, src[48:])
	for b := range 8 {
		orBits(raw[32*b:], src[16:48], b, 4)
	}
}

func expandQ2K(raw *[unitWeights]byte, src []byte, _ int) { pairsQ23K(raw, src[16:]) }

func pairsQ23K(raw *[unitWeights]byte, qs []byte) {
	const low = 0x0303030303030303
	for i := 0; i < 64; i += 8 {
		v := binary.LittleEndian.Uint64(qs[i:])
		for j := range 4 {
			binary.LittleEndian.PutUint64(raw[i/32*128+32*j+i%32:], v>>(2*j)&low)
		}
	}
}

func expandQ3K(raw *[unitWeights]byte, src []byte, _ int) {
	pairsQ23K(raw, src[32:])
	for b := range 8 {
		orBits(raw[32*b:], src[:32], b, 2)
	}
}

func expandQ6K(raw *[unitWeights]byte, src []byte, _ int) {
	const low, two = 0x0f0f0f0f0f0f0f0f, 0x0303030303030303
	for h := range 2 {
		for i := 0; i < 32; i += 8 {
			a := binary.LittleEndian.Uint64(src[64*h+i:])
			b := binary.LittleEndian.Uint64(src[64*h+32+i:])
			q := binary.LittleEndian.Uint64(src[128+32*h+i:])
			out := raw[128*h+i:]
			binary.LittleEndian.PutUint64(out, a&low|q&two<<4)
			binary.LittleEndian.PutUint64(out[32:], b&low|q>>2&two<<4)
			binary.LittleEndian.PutUint64(out[64:], a>>4&low|q>>4&two<<4)
			binary.LittleEndian.PutUint64(out[96:], b>>4&low|q>>6&two<<4)
		}
	}
}

func blockScale(block int, low bool) func(src []byte, b int) (scale, low uint16) {
	return func(src []byte, b int) (uint16, uint16) {
		d := binary.LittleEndian.Uint16(src[b*block:])
		if low {
			return d, binary.LittleEndian.Uint16(src[b*block+2:])
		}
		return d, 0
	}
}

// scaleMXFP4 returns the upper half of a float32, which holds all of it: half of two to the power of the byte less 127.
func scaleMXFP4(src []byte, b int) (scale, low uint16) {
	e := uint32(src[17*b])
	if e < 2 {
		return uint16(uint32(0x00200000) << e >> 16), 0
	}
	return uint16((e - 1) << 23 >> 16), 0
}

func headAt(d, low int) func(src []byte) (uint16, uint16) {
	return func(src []byte) (uint16, uint16) {
		if low < 0 {
			return binary.LittleEndian.Uint16(src[d:]), 0
		}
		return binary.LittleEndian.Uint16(src[d:]), binary.LittleEndian.Uint16(src[low:])
	}
}

func scalesQ4K(src []byte, b int) (scale, low uint16) {
	s := src[4:16]
	if b < 4 {
		return uint16(s[b] & 63), uint16(s[b+4] & 63)
	}
	j := b - 4
	return uint16(s[j+8]&15 | s[j]>>6<<4), uint16(s[j+8]>>4 | s[j+4]>>6<<4)
}

// Formats with a scale for 16 weights have that of the second half in place of a minimum.

func scalesQ6K(src []byte, b int) (first, second uint16) {
	return uint16(src[192+2*b]), uint16(src[192+2*b+1])
}

func scalesQ2K(src []byte, b int) (first, second uint16) { return uint16(src[2*b]), uint16(src[2*b+1]) }

func scalesQ3K(src []byte, b int) (first, second uint16) {
	p := src[96:108]
	one := func(j int) uint16 {
		low := p[j%8] >> (j / 8 * 4) & 15
		high := p[8+j%4] >> (j / 4 * 2) & 3
		return uint16((low | high<<4) - 32)
	}
	return one(2 * b), one(2*b + 1)
}

func scalesIQ4XS(src []byte, b int) (scale, low uint16) {
	high := binary.LittleEndian.Uint16(src[2:])
	return uint16(src[4+b/2]>>(b%2*4)&15 | byte(high>>(2*b)&3)<<4 - 32), 0
}

// The way back, in plain Go: what kernels make of a packed matrix. Tests compare it with the source.

// unpacked returns weight k of row r of a packed group: the whole number that is multiplied, and its scale and minimum.
func unpacked(t quant.Type, group []byte, r, k int) (w int, scale, low float32) {
	p := packings[t]
	unit := group[k/unitWeights*p.unitBytes():]
	b, i := k%unitWeights/32, k%32
	g, reg := r%8, r/8+i/16*2
	lane, shift := 4*g+i%16/4, i%4*8
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(unit[at:]) >> shift & 255 }
	var bits uint32
	at := 0
	if p.bytes {
		bits = word(b*512 + lane*16 + 4*reg)
	}
	if p.nibbles {
		bits = word(b/2*512+lane*16+b%2*8+reg/2*4) >> (reg % 2 * 4) & 15
		at = 2048
	}
	if p.pairs >= 0 {
		bits |= word(at+b/4*512+lane*16+b%4*4) >> (2 * reg) & 3 << p.pairs
		at += 1024
	}
	if p.singles >= 0 {
		bits |= word(at+lane*16+b/2*4) >> (4*(b%2) + reg) & 1 << p.singles
	}
	head := unit[p.planes():]
	s := head[g*32+b*4:]
	half := func(at int) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(head[at+2*(r/8):])) }
	switch t {
	case quant.MXFP4:
		scale = math.Float32frombits(uint32(binary.LittleEndian.Uint16(s[2*(r/8):])) << 16)
	case quant.Q4_K, quant.Q5_K:
		scale, low = half(256+4*g)*float32(s[r/8]), -(half(288+4*g) * float32(s[2+r/8]))
	case quant.Q2_K:
		v := s[r/8+i/16*2]
		scale, low = half(256+4*g)*float32(v&15), -(half(288+4*g) * float32(v>>4))
	case quant.Q3_K, quant.Q6_K:
		scale = half(256+4*g) * float32(int8(s[r/8+i/16*2]))
	case quant.IQ4_XS:
		scale = half(256+4*g) * float32(int8(s[r/8]))
	default:
		scale = half(g*32 + b*4)
		if p.mins {
			low = half(256 + g*32 + b*4)
		}
	}
	return value(t, byte(bits)), scale, low
}

var (
	iq4Values   = [16]int{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	mxfp4Values = [16]int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

func value(t quant.Type, bits byte) int {
	switch t {
	case quant.Q4_0:
		return int(bits) - 8
	case quant.Q5_0:
		return int(bits) - 16
	case quant.Q8_0:
		return int(int8(bits))
	case quant.Q3_K:
		return int(bits) - 4
	case quant.Q6_K:
		return int(bits) - 32
	case quant.IQ4_NL, quant.IQ4_XS:
		return iq4Values[bits]
	case quant.MXFP4:
		return mxfp4Values[bits]
	}
	return int(bits)
}
