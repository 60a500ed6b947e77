package sample

import "math"

// The functions here use basic float64 operations only, each rounded on its own: the conversions keep the
// compiler from fusing a product into a sum, so every machine gets the same bits.

const (
	ln2Hi = 6.93147180369123816490e-01 // the upper 33 bits of ln 2: k*ln2Hi is exact for |k| < 2^20
	ln2Lo = 1.90821492927058770002e-10

	expSteps = 64        // steps of exp's table within a factor of two
	toInt    = 3.0 << 51 // adding this rounds to an integer, in the low bits
)

// expTable[j] is 2 to the j/expSteps.
var expTable = func() (t [expSteps]float64) {
	for j := range t {
		x := float64(float64(j)*(ln2Hi+ln2Lo)) / expSteps
		p := 1.0
		for d := 17.0; d >= 1; d-- { // Taylor: the remainder is below 1e-18
			p = 1 + float64(p*x)/d
		}
		t[j] = p
	}
	return t
}()

// exp returns e to the x for x <= 0, within a few units of the last place, and 0 below -700.
func exp(x float64) float64 {
	if !(x >= -700) {
		return 0
	}
	t := float64(x*(expSteps/(ln2Hi+ln2Lo))) + toInt
	k := int64(int32(math.Float64bits(t)))
	f := t - toInt
	r := x - float64(f*(ln2Hi/expSteps))
	r -= float64(f * (ln2Lo / expSteps))
	// Taylor to degree 5 on |r| <= 0.0055: the remainder is below 4e-17.
	q := float64(r*(1.0/120)) + 1.0/24
	q = float64(q*r) + 1.0/6
	q = float64(q*r) + 0.5
	q = float64(q*float64(r*r)) + r
	p := expTable[k&(expSteps-1)]
	p += float64(p * q)
	return math.Float64frombits(math.Float64bits(p) + uint64(k>>6)<<52)
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
