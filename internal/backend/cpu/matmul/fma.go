package matmul

import "math"

// fma returns a*b+c rounded once to float32, as the hardware's fused multiply-add does. The product is exact in float64;
// the sum is rounded there first, which changes the result only where it falls exactly halfway between two float32
// values: then, and only then, its low 28 bits are all zero (also where the result is subnormal).
func fma(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	if math.Float64bits(s)&(1<<28-1) == 0 {
		return fmaHalfway(p, float64(c), s)
	}
	return float32(s)
}

// fmaHalfway rounds p+c, whose nearest float64 is s, to odd before it rounds to float32.
func fmaHalfway(p, c, s float64) float32 {
	t := s - p
	e := (p - (s - t)) + (c - t) // the sum's rounding error, exactly
	bits := math.Float64bits(s)
	if bits&1 == 0 && s-s == 0 { // finite
		switch {
		case e == 0:
		case e > 0 == (s > 0):
			bits++
		default:
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
