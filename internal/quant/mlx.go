package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DequantizeMLX turns groups of MLX's affine format into numbers. src packs len(dst) unsigned numbers of bits bits (2,
// 3, 4, 5, 6 or 8), the first in the lowest bits, as a stream that is the same whether it is read as bytes or as
// little-endian 32-bit words. Each group of 32, 64 or 128 has a scale and a bias of type scaleType (F32, F16 or BF16),
// and an element is q*scale+bias, where, as in MLX, both the product and the sum are rounded to scaleType.
func DequantizeMLX(dst []float32, src, scales, biases []byte, scaleType Type, bits, group int) error {
	switch bits {
	case 2, 3, 4, 5, 6, 8:
	default:
		return fmt.Errorf("quant: mlx format with %d bits: 2, 3, 4, 5, 6 or 8 are possible", bits)
	}
	if group != 32 && group != 64 && group != 128 {
		return fmt.Errorf("quant: mlx format with groups of %d: 32, 64 or 128 are possible", group)
	}
	round, width, err := rounding(scaleType)
	if err != nil {
		return err
	}
	groups, groupBytes := len(dst)/group, group*bits/8
	if len(dst)%group != 0 || !isProduct(len(src), groups, groupBytes) {
		return fmt.Errorf(
			"quant: %d numbers of %d bits in groups of %d do not fit %d bytes",
			len(dst),
			bits,
			group,
			len(src),
		)
	}
	if !isProduct(len(scales), groups, width) || len(biases) != len(scales) {
		return fmt.Errorf("quant: %d groups need %d bytes of scales and biases each, there are %d and %d",
			groups, groups*width, len(scales), len(biases))
	}
	for g := range groups {
		s, b := number(scaleType, scales[g*width:]), number(scaleType, biases[g*width:])
		packed, out := src[g*groupBytes:(g+1)*groupBytes], dst[g*group:(g+1)*group]
		value := func(q uint32) float32 { return round(round(float32(float32(q)*s)) + b) }
		if bits == 4 { // the usual ones: 16 values for 32 elements or more
			var values [16]float32
			for q := range values {
				values[q] = value(uint32(q))
			}
			for i, two := range packed {
				out[2*i], out[2*i+1] = values[two&15], values[two>>4]
			}
			continue
		}
		var word uint32
		have := 0
		for i := range out {
			if have < bits {
				word |= uint32(packed[0]) << have
				packed = packed[1:]
				have += 8
			}
			q := word & (1<<bits - 1)
			word >>= bits
			have -= bits
			out[i] = value(q)
		}
	}
	return nil
}

// number reads the number of type t at the start of b; t is one that rounding accepts.
func number(t Type, b []byte) float32 {
	switch t {
	case F16:
		return half(b)
	case BF16:
		return BF16ToF32(binary.LittleEndian.Uint16(b))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

// rounding returns the function that rounds to t's precision, and t's size in bytes.
func rounding(t Type) (func(float32) float32, int, error) {
	switch t {
	case F16:
		return func(x float32) float32 { return F16ToF32(F32ToF16(x)) }, 2, nil
	case BF16:
		return func(x float32) float32 { return BF16ToF32(F32ToBF16(x)) }, 2, nil
	case F32:
		return func(x float32) float32 { return x }, 4, nil
	}
	return nil, 0, fmt.Errorf("quant: mlx scales are F32, F16 or BF16, not %v", t)
}
