package matmul

import (
	"encoding/binary"
	"math"
)

// An activation record: 32 signed bytes, then the float32 scale, scale times sum of the bytes, and as int32 -128 times
// the sum of all 32 and of the first 16 bytes. The last two correct a product with unsigned bytes, which the fast dot
// products of x86 want, into one with signed bytes.
const (
	recordBytes = 48
	recScale    = 32
	recSum      = 36
	recCorr     = 40
	recCorr16   = 44
)

// quantizeGo quantizes a row in blocks of 32; a last block that is not full is filled up with zeros.
func quantizeGo(dst []byte, x []float32) {
	for ; len(x) >= 32; dst, x = dst[recordBytes:], x[32:] {
		quantizeBlock((*[recordBytes]byte)(dst), (*[32]float32)(x))
	}
	if len(x) > 0 {
		var last [32]float32
		copy(last[:], x)
		quantizeBlock((*[recordBytes]byte)(dst), &last)
		dst = dst[recordBytes:]
	}
	clear(dst)
}

// quantizeBlock makes one record. The largest magnitude is found among the bits, where a NaN is larger than anything:
// a block that holds a NaN or an infinity gets zeros and a NaN for scale. A block so small that 127/max overflows is a
// block of zeros.
func quantizeBlock(dst *[recordBytes]byte, x *[32]float32) {
	var top uint32
	for _, v := range x {
		top = max(top, math.Float32bits(v)&^(1<<31))
	}
	*dst = [recordBytes]byte{}
	largest := math.Float32frombits(top)
	d, inv := largest/127, 127/largest
	if top >= 0x7f800000 {
		nan := uint32(0x7fc00000)
		binary.LittleEndian.PutUint32(dst[recScale:], nan)
		binary.LittleEndian.PutUint32(dst[recSum:], nan)
		return
	}
	if inv > math.MaxFloat32 {
		return
	}
	const magic = 3 << 22 // adding it rounds to a whole number, to nearest even
	var sum, first int32
	for i, v := range x {
		q := int32(math.Float32bits(float32(v*inv)+magic)) - 0x4b400000
		dst[i] = byte(q)
		sum += q
		if i == 15 {
			first = sum
		}
	}
	binary.LittleEndian.PutUint32(dst[recScale:], math.Float32bits(d))
	binary.LittleEndian.PutUint32(dst[recSum:], math.Float32bits(d*float32(sum)))
	binary.LittleEndian.PutUint32(dst[recCorr:], uint32(-128*sum))
	binary.LittleEndian.PutUint32(dst[recCorr16:], uint32(-128*first))
}
