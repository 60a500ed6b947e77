package sample

import "math"

// The functions here use basic float64 operations only, each rounded on its own: the conversions keep the
// compiler from fusing a product into a sum, so every machine gets the same bits.

const (
	log2e = 1.44269504088896338700
	ln2Hi = 6.93147180369123816490e-01 // the upper 33 bits of ln 2: k*ln2Hi is exact for |k| < 2^20
	ln2Lo = 1.90821492927058770002e-10
)

// exp returns e to the x for x <= 0, within a few units of the last place, and 0 below -700.
func exp(x float64) float64 {
	if !(x >= -700) {
		return 0
	}
	k := math.Floor(float64(x*log2e) + 0.5)
	r := x - float64(k*ln2Hi)
	r -= float64(k * ln2Lo)
	// Taylor to degree 13 on |r| <= 0.347: the remainder is below 5e-18.
	p := 1.0 / 6227020800
	p = float64(p*r) + 1.0/479001600
	p = float64(p*r) + 1.0/39916800
	p = float64(p*r) + 1.0/3628800
	p = float64(p*r) + 1.0/362880
	p = float64(p*r) + 1.0/40320
	p = float64(p*r) + 1.0/5040
	p = float64(p*r) + 1.0/720
	p = float64(p*r) + 1.0/120
	p = float64(p*r) + 1.0/24
	p = float64(p*r) + 1.0/6
	p = float64(p*r) + 0.5
	p = float64(p*r) + 1
	p = float64(p*r) + 1
	return math.Float64frombits(math.Float64bits(p) + uint64(int64(k))<<52)
}

// log returns the natural logarithm of a positive, normal x.
func log(x float64) float64 {
	b := math.Float64bits(x)
	e := int64(b>>52) - 1023
	m := math.Float64frombits(b&(1<<52-1) | 1023<<52) // in [1, 2)
	if m > math.Sqrt2 {
		m /= 2
		e++
	}
	// log m = 2 atanh(s), s = (m-1)/(m+1), |s| <= 0.172
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	p := 0.0
	for d := 21.0; d >= 3; d -= 2 {
		p = float64(p*z) + 1/d
	}
	l := float64(2*s) + float64(float64(float64(2*s)*z)*p)
	return l + float64(float64(e)*ln2Lo) + float64(float64(e)*ln2Hi)
}
