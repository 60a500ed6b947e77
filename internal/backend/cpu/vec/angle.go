package vec

import "math"

// The float64 functions behind the rotary tables and the temperature of attention. They use nothing but additions,
// multiplications and divisions that are rounded one by one (a conversion keeps the compiler from fusing them), so that
// they give the same bits on every platform, which math.Log and math.Sin do not promise.

// RopeAngles fills the table of position pos: cos[j] and sin[j] are those of the angle pos*invFreq[j], times scale,
// rounded to float32. The angle is rounded to float32 too, since models were trained with angles rounded so: at
// position 500 the exact one would be up to 15e-6 away from theirs. For that angle the results are less than 1 ulp of
// float32 off for positions up to 10 million and frequencies up to 1.
func RopeAngles(invFreq []float64, scale float64, pos int, cos, sin []float32) {
	for j, f := range invFreq {
		s, c := sincos(float64(float32(float64(pos) * f)))
		cos[j], sin[j] = float32(float64(c*scale)), float32(float64(s*scale))
	}
}

// pi/2 in parts of 30 bits and a rest: products with integers below 2^23 are exact.
const (
	halfPi1 = 1.570796325802803
	halfPi2 = 9.920935791635221e-10
	halfPi3 = 5.170182981794105e-19
)

// sincos is for |x| below 1e7 or so; beyond, it loses accuracy but stays the same everywhere.
func sincos(x float64) (sin, cos float64) {
	k := math.RoundToEven(float64(x * (2 / math.Pi)))
	r := x - float64(k*halfPi1)
	r -= float64(k * halfPi2)
	r -= float64(k * halfPi3)
	s, c := sinPoly(r), cosPoly(r)
	switch int64(k) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}

// Taylor polynomials on |r| <= pi/4: the first term left out is below 2^-53 of the result.
var sinTable = [...]float64{
	-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800,
	-1.0 / 1307674368000, 1.0 / 355687428096000,
}

var cosTable = [...]float64{
	-1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600,
	-1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000,
}

func horner(z float64, table []float64) float64 {
	p := table[len(table)-1]
	for i := len(table) - 2; i >= 0; i-- {
		p = float64(p*z) + table[i]
	}
	return p
}

func sinPoly(r float64) float64 {
	z := float64(r * r)
	return r + float64(float64(r*z)*horner(z, sinTable[:]))
}

func cosPoly(r float64) float64 {
	z := float64(r * r)
	return 1 + float64(z*horner(z, cosTable[:]))
}

// Log is the natural logarithm, within 2 ulp, the same on every platform.
func Log(x float64) float64 {
	switch {
	case x != x || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	m, e := math.Frexp(x) // m in [0.5, 1)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	const hi, lo = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	f := m - 1
	s := f / (2 + f)
	z := float64(s * s)
	p := 0.0
	for i := 21; i > 1; i -= 2 {
		p = float64(z*p) + 1/float64(i)
	}
	// log(1+f) = 2s + 2s*z*p; with 2s = f - s*f
	r := float64(float64(2*s*z) * p)
	k := float64(e)
	return float64(k*hi) + (f - (float64(s*f) - r - float64(k*lo)))
}
