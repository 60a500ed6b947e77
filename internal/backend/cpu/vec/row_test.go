package vec

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/plan"
)

// ulps returns how far got is from want in units of want's last place in float32.
func ulps(got float32, want float64) float64 {
	w := math.Abs(want)
	unit := math.Ldexp(1, -149)
	if w > math.Ldexp(1, -126) {
		_, e := math.Frexp(w)
		unit = math.Ldexp(1, e-24)
	}
	return math.Abs(float64(got)-want) / unit
}

func TestFunctionAccuracy(t *testing.T) {
	phi := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, c := range []struct {
		name     string
		f        func(float32) float32
		want     func(float64) float64
		from, to float64
		limit    float64 // ulps
	}{
		{"exp", expf, math.Exp, -104, 88.7, 1},
		{"tanh", tanhf, math.Tanh, -12, 12, 1.6},
		{"sigmoid", sigmoidf, sigmoid, -88, 88, 2.5},
		{"silu", siluf, func(x float64) float64 { return x * sigmoid(x) }, -88, 88, 2.5},
		{"gelu", geluf, func(x float64) float64 { return x * phi(x) }, -13, 13, 6},
		{"gelu_tanh", geluTanhf, func(x float64) float64 {
			return x * sigmoid(2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))
		}, -3, 10, 12}, // rounding the exponent costs more the further x is below zero
		{"softplus", softplusf, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, -100, 100, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			worst, at := 0.0, float32(0)
			const steps = 200000
			for i := range steps {
				x := float32(c.from + (c.to-c.from)*float64(i)/steps)
				if u := ulps(c.f(x), c.want(float64(x))); u > worst {
					worst, at = u, x
				}
			}
			if worst > c.limit {
				t.Errorf("%.2f ulp off at %g: %g, want %g", worst, at, c.f(at), c.want(float64(at)))
			}
		})
	}
}

func TestFunctionLimits(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		name      string
		got, want float32
	}{
		{"exp(-inf)", expf(-inf), 0},
		{"exp(inf)", expf(inf), inf},
		{"exp(-104)", expf(-104), 0},
		{"exp(-103.9)", expf(-103.9), math.SmallestNonzeroFloat32},
		{"exp(89)", expf(89), inf},
		{"exp(0)", expf(0), 1},
		{"exp(nan)", expf(nan), nan},
		{"tanh(inf)", tanhf(inf), 1},
		{"tanh(-inf)", tanhf(-inf), -1},
		{"tanh(nan)", tanhf(nan), nan},
		{"sigmoid(-inf)", sigmoidf(-inf), 0},
		{"silu(nan)", siluf(nan), nan},
		{"gelu(-1e30)", geluf(-1e30), float32(math.Copysign(0, -1))},
		{"gelu(1e30)", geluf(1e30), 1e30},
		{"gelu(nan)", geluf(nan), nan},
		{"softplus(-inf)", softplusf(-inf), 0},
		{"softplus(inf)", softplusf(inf), inf},
		{"relu(nan)", reluf(nan), nan},
		{"max(-0, 0)", maxf(float32(math.Copysign(0, -1)), 0), 0},
		{"max(1, nan)", maxf(1, nan), nan},
		{"max(nan, 1)", maxf(nan, 1), 1},
	} {
		if _, bad := differ([]float32{c.got}, []float32{c.want}); bad {
			t.Errorf("%s is %g, want %g", c.name, c.got, c.want)
		}
	}
}

func TestHalfRoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		f := FromHalf(uint16(h))
		if f == f && Half(f) != uint16(h) {
			t.Fatalf("%04x widens to %g, which rounds to %04x", h, f, Half(f))
		}
	}
	for x, want := range map[float32]uint16{
		65519.996: 0x7bff, 65520: 0x7c00, 1e30: 0x7c00, -65520: 0xfc00,
		1 + 1.0/2048: 0x3c00, 1 + 3.0/2048: 0x3c02, // halfway: to even
		1.0 / (1 << 25): 0, 3.0 / (1 << 25): 2, 1.0000001 / (1 << 25): 1,
		0x1.ffcp-15: 0x03ff + 1, 0x1.ff8p-15: 0x03fe + 1,
	} {
		if got := Half(x); got != want {
			t.Errorf("Half(%g) is %04x, want %04x", x, got, want)
		}
	}
}

// TestRowsRagged runs the row operations at lengths around the lanes and segments, and wants every level to give the
// bits of the definition.
func TestRowsRagged(t *testing.T) {
	type result map[string][]float32
	run := func(k *Kernels, n int, special bool) result {
		v := newValues(uint64(n), special)
		x, y, w, b := v.slice(n), v.slice(n), v.slice(n), v.slice(n)
		out := result{}
		keep := func(name string, f func(dst []float32)) {
			dst := slices.Clone(y)
			f(dst)
			out[name] = dst
		}
		keep("rmsnorm", func(d []float32) { k.RMSNorm(d, x, w, 1e-5) })
		keep("rmsnorm bare", func(d []float32) { k.RMSNorm(d, x, nil, 1e-5) })
		keep("layernorm", func(d []float32) { k.LayerNorm(d, x, w, b, 1e-5) })
		keep("layernorm w", func(d []float32) { k.LayerNorm(d, x, w, nil, 1e-5) })
		keep("layernorm b", func(d []float32) { k.LayerNorm(d, x, nil, b, 1e-5) })
		keep("layernorm in place", func(d []float32) { k.LayerNorm(d, d, nil, nil, 1e-5) })
		keep("l2norm", func(d []float32) { k.L2Norm(d, x, 1e-5) })
		keep("add", func(d []float32) { k.Add(d, x, 1) })
		keep("add scaled", func(d []float32) { k.Add(d, x, 0.3) })
		keep("mul", func(d []float32) { k.Mul(d, d, x) })
		keep("scale", func(d []float32) { k.ScaleBy(d, 1.7) })
		keep("softcap", func(d []float32) { k.SoftCap(d, 2) })
		for kind := plan.ActNone; kind <= plan.ActExp; kind++ {
			keep(fmt.Sprintf("act %d", kind), func(d []float32) { k.Act(kind, d, x) })
			keep(fmt.Sprintf("glu %d", kind), func(d []float32) { k.GLU(kind, d, x, d, 7, 1.702) })
		}
		keep("gate", func(d []float32) { k.Gate(plan.ActSigmoid, d, d, x) })
		keep("decay", func(d []float32) { k.Decay(d, x, w, b, false) })
		keep("softmax", func(d []float32) { k.Softmax(d) })
		h := make([]uint16, n)
		k.F32ToF16(h, x)
		keep("f16", func(d []float32) { k.F16ToF32(d, h) })
		for _, inter := range []bool{false, true} {
			keep(fmt.Sprintf("rope %t", inter), func(d []float32) { k.Rope(d[:n/2*2], w[:n/2], b[:n/2], inter) })
		}
		return out
	}
	lengths := []int{1, 2, 3, 15, 16, 17, 31, 33, 64, 100, 255, 256, 257, 300, 8191, 8192, 8193, 20000}
	for _, n := range lengths {
		for _, special := range []bool{false, true} {
			want := run(For(isa.Generic), n, special)
			for _, l := range isa.Levels() {
				for name, got := range run(For(l), n, special) {
					if i, bad := differ(got, want[name]); bad {
						t.Errorf("%s of %d values, %s: value %d is %x, want %x", name, n, l, i, got[i], want[name][i])
					}
				}
			}
		}
	}
}

func TestNormAccuracy(t *testing.T) {
	k := For(isa.Levels()[len(isa.Levels())-1])
	for _, n := range []int{5, 64, 576, 2048, 20000} {
		v := newValues(uint64(n), false)
		x, w, b := v.slice(n), v.slice(n), v.slice(n)
		var sum, sq, dev float64
		for _, f := range x {
			sum += float64(f)
			sq += float64(f) * float64(f)
		}
		mean := sum / float64(n)
		for _, f := range x {
			dev += (float64(f) - mean) * (float64(f) - mean)
		}
		const eps = 1e-5
		rms, l2, ln := make([]float32, n), make([]float32, n), make([]float32, n)
		k.RMSNorm(rms, x, w, eps)
		k.L2Norm(l2, x, eps)
		k.LayerNorm(ln, x, w, b, eps)
		for i := range x {
			xi, wi, bi := float64(x[i]), float64(w[i]), float64(b[i])
			check := func(name string, got float32, want float64) {
				if math.Abs(float64(got)-want) > 2e-6*(1+math.Abs(want)) {
					t.Fatalf("%s of %d values: value %d is %g, want %g", name, n, i, got, want)
				}
			}
			check("rmsnorm", rms[i], xi/math.Sqrt(sq/float64(n)+eps)*wi)
			check("l2norm", l2[i], xi/math.Sqrt(sq+eps))
			check("layernorm", ln[i], (xi-mean)/math.Sqrt(dev/float64(n)+eps)*wi+bi)
		}
	}
}

func TestGatePerSlice(t *testing.T) {
	for _, l := range isa.Levels() {
		k := For(l)
		v := newValues(9, false)
		x, g := v.slice(300*5), v.slice(300)
		dst := make([]float32, len(x))
		k.Gate(plan.ActSigmoid, dst, x, g)
		for i := range x {
			if want := float32(x[i] * sigmoidf(g[i/5])); dst[i] != want {
				t.Fatalf("%s: value %d is %g, want %g", l, i, dst[i], want)
			}
		}
	}
}

func TestAngles(t *testing.T) {
	cos, sin := make([]float32, 1), make([]float32, 1)
	for _, f := range []float64{1, 0.9, 0.0173, 1e-5} {
		for pos := 0; pos <= 10_000_000; pos += 9973 {
			RopeAngles([]float64{f}, 1, pos, cos, sin)
			s, c := math.Sincos(float64(float32(float64(pos) * f)))
			if ulps(cos[0], c) >= 1 || ulps(sin[0], s) >= 1 {
				t.Fatalf("angle %d*%g: %g, %g, want %g, %g", pos, f, cos[0], sin[0], c, s)
			}
		}
	}
	RopeAngles([]float64{0.5}, 1.25, 3, cos, sin)
	if ulps(cos[0], 1.25*math.Cos(1.5)) >= 1 || ulps(sin[0], 1.25*math.Sin(1.5)) >= 1 {
		t.Errorf("scaled: %g, %g", cos[0], sin[0])
	}
}

// TestMath64 compares with package math, and pins bits that must be the same on every platform.
func TestMath64(t *testing.T) {
	for i := range 20000 {
		x := math.Exp(float64(i-10000) / 100)
		if d := math.Abs(Log(x) - math.Log(x)); d > 5e-16*max(math.Abs(math.Log(x)), 1e-3) {
			t.Fatalf("Log(%g) is %g, want %g", x, Log(x), math.Log(x))
		}
	}
	for _, c := range []struct{ got, want float64 }{
		{Log(0), math.Inf(-1)}, {Log(math.Inf(1)), math.Inf(1)}, {Log(1), 0},
	} {
		if c.got != c.want {
			t.Errorf("%g, want %g", c.got, c.want)
		}
	}
	var h uint64
	for i := range 5000 {
		s, c := sincos(float64(float64(i) * 1.7))
		for _, f := range []float64{s, c, Log(float64(c*c) + 0.01)} {
			h = (h ^ math.Float64bits(f)) * 0x100000001b3
		}
	}
	if want := uint64(0xf2179898aa79dc0c); h != want {
		t.Errorf("the results' digest is %#x, want %#x: this platform computes differently", h, want)
	}
}
