package fma32

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exact computes a*b+c with enough bits and rounds once.
func exact(a, b, c float32) float32 {
	x := new(big.Float).SetPrec(2000).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetFloat64(float64(c)))
	f, _ := x.Float32()
	return f
}

func check(t *testing.T, a, b, c float32) {
	t.Helper()
	got := FMA(a, b, c)
	if want := exact(a, b, c); got != want {
		t.Fatalf("FMA(%x, %x, %x) is %x, want %x", a, b, c, got, want)
	}
}

func finite(r *rand.Rand) float32 {
	for {
		if f := math.Float32frombits(r.Uint32()); f-f == 0 {
			return f
		}
	}
}

func TestExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		a, b := finite(r), finite(r)
		check(t, a, b, finite(r))
		// an addend of about the product's size
		p := math.Float32bits(a * b)
		if c := math.Float32frombits(p ^ r.Uint32N(1<<26)); c-c == 0 {
			check(t, a, b, c)
		}
	}
}

// TestHalfway makes sums that lie just beside the middle of two float32 values, further off than float64 can tell.
func TestHalfway(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200000 {
		e := r.IntN(200) - 100
		c := float32(math.Ldexp(1+float64(r.Uint32N(1<<23))/(1<<23), e))
		// a*b = half a unit in c's last place, times (1+2^-22)(1-2^-22) or the like
		a := float32(math.Ldexp(1+float64(r.IntN(3)-1)/(1<<23), e/2-12))
		b := float32(math.Ldexp(1+float64(r.IntN(3)-1)/(1<<22), e-e/2-12))
		if r.IntN(2) == 0 {
			a = -a
		}
		if r.IntN(2) == 0 {
			c = -c
		}
		check(t, a, b, c)
	}
}

func TestSubnormal(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200000 {
		a := float32(math.Ldexp(r.Float64()+1, -70-r.IntN(8)))
		b := float32(math.Ldexp(r.Float64()+1, -60-r.IntN(20)))
		c := math.Float32frombits(r.Uint32N(1<<24) | r.Uint32N(2)<<31)
		check(t, a, b, c)
		check(t, a, -b, c)
		check(t, a, b, 0)
	}
}

func TestSpecial(t *testing.T) {
	inf, zero := float32(math.Inf(1)), float32(math.Copysign(0, -1))
	if got := FMA(inf, 1, -inf); got == got {
		t.Errorf("inf-inf is %g", got)
	}
	if got := FMA(inf, 1, 1); got != inf {
		t.Errorf("inf*1+1 is %g", got)
	}
	if got := FMA(1, zero, zero); got != 0 || !math.Signbit(float64(got)) {
		t.Errorf("1*-0 + -0 is %g", got)
	}
	if got := FMA(1, 0, zero); got != 0 || math.Signbit(float64(got)) {
		t.Errorf("1*0 + -0 is %g", got)
	}
	if got := FMA(math.MaxFloat32, 2, -math.MaxFloat32); got != math.MaxFloat32 {
		t.Errorf("2*max-max is %g", got)
	}
}

func BenchmarkFMA(b *testing.B) {
	x := float32(1)
	for b.Loop() {
		x = FMA(x, 0.999, 0.001)
	}
	if x != x {
		b.Fatal(x)
	}
}
