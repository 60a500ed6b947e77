// Package exactmath owns the few functions that turn a configuration into rotary frequencies. Its results have the same
// bits on every machine, which package math does not promise: there the compiler may fuse multiplications with
// additions and some functions are assembly on some machines. Here every product is rounded before it is added to
// anything. Results are within a few units in the last place of the exact ones. It knows nothing but numbers.
package exactmath

import "math"

// ln2 in two parts: the first has 20 trailing zero bits, so that its product with an exponent is exact.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// Log returns the natural logarithm of x, which must be positive and finite.
func Log(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = m*2, e-1
	}
	// log m = 2 artanh((m-1)/(m+1)); |s| < 0.172, so 13 terms of the series suffice.
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	sum := 0.0
	for k := 27; k >= 3; k -= 2 {
		sum = float64(sum*z) + 1/float64(k)
	}
	small := 2 * float64(s*float64(z*sum))
	return float64(float64(e)*ln2High) + (2*s + (small + float64(float64(e)*ln2Low)))
}

// Exp returns e to the power of x.
func Exp(x float64) float64 {
	switch {
	case x > 709:
		return math.Inf(1)
	case x < -745:
		return 0
	}
	k := math.Floor(float64(x/math.Ln2) + 0.5)
	r := (x - float64(k*ln2High)) - float64(k*ln2Low)
	sum := 1.0
	for n := 18; n >= 1; n-- { // |r| < 0.347: Horner's scheme of the Taylor series
		sum = 1 + float64(r*sum)/float64(n)
	}
	return math.Ldexp(sum, int(k))
}

// Pow returns base, which must be positive and finite, to the power of x.
func Pow(base, x float64) float64 { return Exp(float64(x * Log(base))) }

// Sqrt is exactly rounded everywhere.
func Sqrt(x float64) float64 { return math.Sqrt(x) }
