// Package fma32 owns the plain Go twin of the hardware's fused multiply-add on float32. Kernels are defined
// with it, so that their assembly can be compared bit for bit. It knows nothing else.
package fma32

import "math"

// FMA returns a*b+c rounded once to float32, to nearest even, subnormals included. The payload of a NaN is
// not defined.
//
// The product of two float32 values is exact in float64; the sum is rounded to 53 bits. Rounding that again to
// 24 bits goes wrong only where the 53 bits lie halfway between two float32 values, or where the result is
// subnormal and keeps fewer than 24 bits; these cases go the slow way.
func FMA(a, b, c float32) float32 {
	s := float64(float64(a)*float64(b)) + float64(c)
	u := math.Float64bits(s)
	if u&(1<<29-1) == 1<<28 || u>>52&0x7ff < 1023-126 {
		return slow(a, b, c)
	}
	return float32(s)
}

// slow rounds the exact sum to odd in float64 first, after which the second rounding is right: the error of
// the first (found exactly by the two-sum) moves an even last bit towards the true value.
func slow(a, b, c float32) float32 {
	p, d := float64(float64(a)*float64(b)), float64(c)
	s := p + d
	t := s - p
	e := (p - (s - t)) + (d - t)
	u := math.Float64bits(s)
	if e != 0 && u&1 == 0 && s != 0 {
		if (e > 0) == (s > 0) {
			u++
		} else {
			u--
		}
		s = math.Float64frombits(u)
	}
	return float32(s)
}
