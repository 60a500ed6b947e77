package vec

import (
	"math"

	"github.com/baleenrun/baleen/internal/backend/cpu/fma32"
)

// The functions of one value. Each is a fixed sequence of float32 operations, every one of them rounded to
// nearest even; the assembly performs the same. Polynomials are minimax fits made for these intervals, lowest
// power first in the tables.

func fma(a, b, c float32) float32 { return fma32.FMA(a, b, c) }

const (
	log2e  = 0x3fb8aa3b // bits of 1/ln 2
	ln2Hi  = 0x3f317218 // ln 2 rounded to float32
	ln2Lo  = 0xb102e308 // ln 2 - ln2Hi
	magic  = 0x4b400000 // 1.5*2^23: adding it rounds to an integer, which stands in the low bits
	expMax = 89         // exp is infinite from here on
	expMin = -104       // exp is zero from here on
)

// expPoly is exp(r) on |r| <= ln(2)/2, 3e-9 off.
var expPoly = [7]float32{1, 1, 0.5, 0.166665122, 0.0416661873, 0.00836959761, 0.00139517034}

// expf is exp(x), at most 1 ulp off, subnormal results included; exp(-Inf) is 0.
func expf(x float32) float32 {
	x = maxf(expMin, minf(expMax, x))
	t := fma(x, math.Float32frombits(log2e), math.Float32frombits(magic))
	n := t - math.Float32frombits(magic)
	r := fma(-n, math.Float32frombits(ln2Hi), x)
	r = fma(-n, math.Float32frombits(ln2Lo), r)
	p := expPoly[6]
	for i := 5; i >= 0; i-- {
		p = fma(p, r, expPoly[i])
	}
	// Two factors, so that neither overflows and a subnormal result is rounded once, by the second.
	k := int32(math.Float32bits(t)) - magic
	h := k >> 1
	p *= math.Float32frombits(uint32(h+127) << 23)
	return float32(p * math.Float32frombits(uint32(k-h+127)<<23))
}

// tanhPoly is (tanh(x)/x-1)/x² in x² for |x| < 0.625, 4e-9 off.
var tanhPoly = [5]float32{-0.333332837, 0.133314908, -0.0537434965, 0.0206505843, -0.0057170419}

// tanhf is a polynomial below 0.625 and 1 - 2/(exp(2|x|)+1) above.
func tanhf(x float32) float32 {
	a := absf(x)
	if a < 0.625 {
		z := x * x
		p := tanhPoly[4]
		for i := 3; i >= 0; i-- {
			p = fma(p, z, tanhPoly[i])
		}
		return fma(float32(p*z), x, x)
	}
	r := 1 - 2/(expf(a+a)+1)
	return math.Float32frombits(math.Float32bits(r) | math.Float32bits(x)&(1<<31))
}

// sigmoidf is 1/(1+exp(-x)); it is 0 below -89.
func sigmoidf(x float32) float32 { return 1 / (1 + expf(-x)) }

// siluf is x/(1+exp(-x)).
func siluf(x float32) float32 { return x / (1 + expf(-x)) }

// phiPoly is exp(a²/2)*Phi(-a)/t in t = 1/(1+0.3a) for 0 <= a <= 14.5, 4e-9 off (relative).
var phiPoly = [10]float32{
	0.119686693, 0.119571812, 0.110235423, 0.0783896521, 0.0961568281, -0.0794234946,
	0.191784561, -0.228213638, 0.112435639, -0.0206234753,
}

const (
	phiSlope = float32(0.3)
	phiMax   = float32(14.5) // Phi(-phiMax) is below the smallest subnormal
)

// geluf is x*Phi(x) with Phi the normal distribution function (the exact GELU).
func geluf(x float32) float32 {
	a := minf(phiMax, absf(x))
	t := 1 / fma(phiSlope, a, 1)
	p := phiPoly[9]
	for i := 8; i >= 0; i-- {
		p = fma(p, t, phiPoly[i])
	}
	// exp(-a²/2) with the square's rounding error put right
	hi := a * a
	lo := fma(a, a, -hi)
	e := expf(hi * -0.5)
	e = fma(float32(e*-0.5), lo, e)
	q := float32(p*t) * e // Phi(-a)
	y := float32(x * q)
	if x > 0 {
		return x - y
	}
	return y
}

var (
	geluA = float32(2 * 0.79788456080286535588 * 0.044715)
	geluB = float32(2 * 0.79788456080286535588)
)

// geluTanhf is the tanh approximation of GELU, written as x*sigmoid(2u), u = sqrt(2/pi)*(x+0.044715x³).
func geluTanhf(x float32) float32 {
	z := x * x
	u := fma(z, geluA, geluB) * x
	return x / (1 + expf(-u))
}

// atanhPoly is (atanh(s)/s-1)/s² in s² for 0 <= s <= 1/3, 1e-10 off.
var atanhPoly = [5]float32{0.333333373, 0.199994385, 0.143084422, 0.107138306, 0.121504612}

// softplusf is max(x,0) + log1p(exp(-|x|)), the logarithm by 2*atanh(y/(2+y)).
func softplusf(x float32) float32 {
	y := expf(-absf(x))
	s := y / (2 + y)
	z := s * s
	p := atanhPoly[4]
	for i := 3; i >= 0; i-- {
		p = fma(p, z, atanhPoly[i])
	}
	s += s
	return maxf(0, x) + fma(float32(p*z), s, s)
}

func reluf(x float32) float32 { return maxf(0, x) }

func relu2f(x float32) float32 {
	x = maxf(0, x)
	return float32(x * x)
}

func softCapf(x, c float32) float32 { return float32(c * tanhf(x/c)) }

// oaif is the SwiGLU of gpt-oss.
func oaif(g, u, limit, alpha float32) float32 {
	g = minf(limit, g)
	u = maxf(-limit, minf(limit, u))
	s := g / (1 + expf(-float32(alpha*g)))
	return float32((u + 1) * s)
}

func absf(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// Half rounds x to a float16, to nearest even; a NaN stays one, quiet.
func Half(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 1<<31 - 1
	switch {
	case b > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x477ff000: // rounds to 2^16 or more
		return sign | 0x7c00
	case b < 0x38800000: // subnormal: add at the place of its last bit, where the adder rounds
		f := math.Float32frombits(b) + 0.5
		return sign | uint16(math.Float32bits(f)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

// FromHalf widens a float16; it is exact. A NaN becomes quiet.
func FromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	e, m := uint32(h>>10&31), uint32(h&0x3ff)
	switch {
	case e == 31 && m != 0:
		return math.Float32frombits(sign | 0x7fc00000 | m<<13)
	case e == 31:
		return math.Float32frombits(sign | 0x7f800000)
	case e == 0:
		f := float32(m) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(f))
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}
