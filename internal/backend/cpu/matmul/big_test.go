package matmul

import "math/big"

// bigFMA computes a*b+c exactly and rounds once.
func bigFMA(a, b, c float32) float32 {
	wide := func(v float32) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(float64(v)) }
	sum := wide(a)
	sum.Mul(sum, wide(b)).Add(sum, wide(c))
	v, _ := sum.Float32()
	return v
}
