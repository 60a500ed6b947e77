package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// values makes test inputs: ordinary ones, and with special also every kind that rounds, overflows or is no number.
type values struct {
	*rand.Rand
	special bool
	memory  func(bytes int) []byte // nil: the Go heap
}

func newValues(seed uint64, special bool) values {
	return values{Rand: rand.New(rand.NewPCG(seed, 77)), special: special}
}

// take returns n numbers of T in the values' memory.
func take[T uint16 | float32](v values, n int) []T {
	if v.memory == nil {
		return make([]T, n)
	}
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.memory(n*int(unsafe.Sizeof(one)))))), n)
}

func (v values) one() float32 {
	if v.special {
		switch v.IntN(24) {
		case 0:
			return float32(math.NaN())
		case 1:
			return float32(math.Inf(1 - 2*v.IntN(2)))
		case 2:
			return float32(math.Copysign(0, float64(1-2*v.IntN(2))))
		case 3:
			return math.Float32frombits(v.Uint32N(1<<23) | v.Uint32N(2)<<31) // subnormal
		case 4, 5, 6:
			return math.Float32frombits(v.Uint32())
		case 7, 8:
			return float32(v.NormFloat64() * 60) // where exp overflows and underflows
		}
	}
	return float32(v.NormFloat64() * 3)
}

func (v values) slice(n int) []float32 {
	x := take[float32](v, n)
	for i := range x {
		x[i] = v.one()
	}
	return x
}

func (v values) lanes() *[Lanes]float32 { return (*[Lanes]float32)(v.slice(Lanes)) }

func (v values) halves(x []float32) []uint16 {
	h := take[uint16](v, len(x))
	for i, f := range x {
		h[i] = Half(f)
	}
	return h
}

// kernelCases run every kernel of a table on n values (a multiple of Lanes) and return all that it wrote.
var kernelCases = []struct {
	name string
	run  func(o *ops, v values, n int) []float32
}{
	{"silu", unaryCase(uSiLU)},
	{"gelu", unaryCase(uGELU)},
	{"gelu_tanh", unaryCase(uGELUTanh)},
	{"relu", unaryCase(uReLU)},
	{"relu2", unaryCase(uReLU2)},
	{"sigmoid", unaryCase(uSigmoid)},
	{"tanh", unaryCase(uTanh)},
	{"softplus", unaryCase(uSoftplus)},
	{"exp", unaryCase(uExp)},
	{"scale", scalarCase(func(o *ops) func(d, x []float32, f float32) { return o.scale })},
	{"sub_const", scalarCase(func(o *ops) func(d, x []float32, f float32) { return o.subConst })},
	{"soft_cap", scalarCase(func(o *ops) func(d, x []float32, f float32) { return o.softCap })},
	{"axpy", scalarCase(func(o *ops) func(d, x []float32, f float32) { return o.axpy })},
	{"axpby", func(o *ops, v values, n int) []float32 {
		d := v.slice(n)
		o.axpby(d, v.slice(n), v.one(), v.one())
		return d
	}},
	{"add", pairCase(func(o *ops) func(d, a, b []float32) { return o.add })},
	{"mul", pairCase(func(o *ops) func(d, a, b []float32) { return o.mul })},
	{"mul_add", pairCase(func(o *ops) func(d, a, b []float32) { return o.mulAdd })},
	{"scale_mul", func(o *ops, v values, n int) []float32 {
		d := v.slice(n)
		o.scaleMul(d, v.slice(n), v.slice(n), v.one())
		return d
	}},
	{"scale_fma", func(o *ops, v values, n int) []float32 {
		d := v.slice(n)
		o.scaleFMA(d, v.slice(n), v.slice(n), v.slice(n), v.one())
		return d
	}},
	{"oai", func(o *ops, v values, n int) []float32 {
		d := v.slice(n)
		o.oai(d, v.slice(n), v.slice(n), v.one(), v.one())
		return d
	}},
	{"rotate", func(o *ops, v values, n int) []float32 {
		a, b := v.slice(n), v.slice(n)
		o.rotate(a, b, v.slice(n), v.slice(n))
		return append(a, b...)
	}},
	{"rotate_interleaved", func(o *ops, v values, n int) []float32 {
		x := v.slice(2 * n)
		o.rotateI(x, v.slice(n), v.slice(n))
		return x
	}},
	{"sum", sumCase(func(o *ops) func(x []float32, acc *[Lanes]float32) { return o.sum })},
	{"sum_sq", sumCase(func(o *ops) func(x []float32, acc *[Lanes]float32) { return o.sumSq })},
	{"max_of", sumCase(func(o *ops) func(x []float32, acc *[Lanes]float32) { return o.maxOf })},
	{"exp_sum", func(o *ops, v values, n int) []float32 {
		x, acc := v.slice(n), v.lanes()
		o.expSum(x, v.one(), v.one(), acc)
		return append(x, acc[:]...)
	}},
	{"to_half", func(o *ops, v values, n int) []float32 {
		h := take[uint16](v, n)
		o.toHalf(h, v.slice(n))
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(h[i]) // the bits: NaN payloads count here
		}
		return x
	}},
	{"from_half", func(o *ops, v values, n int) []float32 {
		h := take[uint16](v, n)
		for i := range h {
			h[i] = uint16(v.Uint32())
		}
		x := take[float32](v, n)
		o.fromHalf(x, h)
		return x
	}},
	{"delta_read", func(o *ops, v values, n int) []float32 {
		rows, stride := 1+v.IntN(40), n+v.IntN(3)
		t := v.slice(n)
		o.deltaRead(t, v.slice((rows-1)*stride+n), stride, v.slice(rows))
		return t
	}},
	{"delta_write", func(o *ops, v values, n int) []float32 {
		rows, stride := 1+v.IntN(40), n+v.IntN(3)
		t, s := v.slice(n), v.slice((rows-1)*stride+n)
		o.deltaWrite(t, s, stride, v.slice(rows), v.slice(rows), v.slice(rows), v.slice(n))
		return append(t, s...)
	}},
	{"qk_f16", qkCase(true)},
	{"qk_f32", qkCase(false)},
	{"pv_f16", pvCase(true)},
	{"pv_f32", pvCase(false)},
	{"turn_f16", turnCase(true)},
	{"turn_f32", turnCase(false)},
}

func unaryCase(u int) func(o *ops, v values, n int) []float32 {
	return func(o *ops, v values, n int) []float32 {
		d := v.slice(n)
		o.unary[u](d, v.slice(n))
		x := v.slice(n)
		o.unary[u](x, x)
		return append(d, x...)
	}
}

func scalarCase(f func(o *ops) func(d, x []float32, f float32)) func(o *ops, v values, n int) []float32 {
	return func(o *ops, v values, n int) []float32 {
		d := v.slice(n)
		f(o)(d, v.slice(n), v.one())
		return d
	}
}

func pairCase(f func(o *ops) func(d, a, b []float32)) func(o *ops, v values, n int) []float32 {
	return func(o *ops, v values, n int) []float32 {
		d := v.slice(n)
		f(o)(d, v.slice(n), v.slice(n))
		return d
	}
}

func sumCase(f func(o *ops) func(x []float32, acc *[Lanes]float32)) func(o *ops, v values, n int) []float32 {
	return func(o *ops, v values, n int) []float32 {
		acc := v.lanes()
		f(o)(v.slice(n), acc)
		return acc[:]
	}
}

func qkCase(half bool) func(o *ops, v values, n int) []float32 {
	return func(o *ops, v values, n int) []float32 {
		dims, kdim := n-v.IntN(Lanes), n+v.IntN(5)
		k := v.slice((backend.PageTokens-Lanes)*kdim + Lanes*dims)
		kb, elem, qk := asBytes(k), 4, o.qk32
		if half {
			kb, elem, qk = asBytes(v.halves(k)), 2, o.qk16
		}
		var out []float32
		for rows := 1; rows <= qkRows; rows++ {
			s := v.slice((rows-1)*40 + backend.PageTokens)
			q := v.slice(rows * dims)
			for add := range 2 {
				ahead, pace := v.IntN(1<<20)-1<<19, v.IntN(129) // what is fetched changes nothing
				qk(&q[0], rows, dims, &kb[0], kdim*Lanes*elem, &s[0], 4*40, add, ahead, pace)
				out = append(out, s...)
			}
		}
		return out
	}
}

func pvCase(half bool) func(o *ops, v values, n int) []float32 {
	return func(o *ops, v values, n int) []float32 {
		stride := n + v.IntN(5)
		x := v.slice((backend.PageTokens-1)*stride + n)
		vb, elem, pv := asBytes(x), 4, o.pv32
		if half {
			vb, elem, pv = asBytes(v.halves(x)), 2, o.pv16
		}
		var out []float32
		for rows := 1; rows <= pvRows; rows++ {
			keys := 1 + v.IntN(backend.PageTokens)
			acc, p := v.slice((rows-1)*(n+3)+n), v.slice((rows-1)*50+keys)
			pv(&acc[0], 4*(n+3), rows, n, &p[0], 4*50, keys, &vb[0], stride*elem, 0)
			out = append(out, acc...)
		}
		return out
	}
}

func turnCase(half bool) func(o *ops, v values, n int) []float32 {
	return func(o *ops, v values, n int) []float32 {
		var out []float32
		for _, kdim := range []int{n, n + 5, n - 3} {
			k := v.slice(backend.PageTokens * kdim)
			dst := v.slice(backend.PageTokens * n)
			if half {
				o.turn16(&dst[0], &asBytes(v.halves(k))[0], kdim, n)
			} else {
				o.turn32(&dst[0], &asBytes(k)[0], kdim, n)
			}
			out = append(out, dst...)
		}
		return out
	}
}

func differ(a, b []float32) (int, bool) {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) && (a[i] == a[i] || b[i] == b[i]) {
			return i, true
		}
	}
	return 0, false
}

func TestKernels(t *testing.T) {
	for _, c := range kernelCases {
		for _, l := range isa.Levels() {
			t.Run(fmt.Sprintf("%s/%s", c.name, l), func(t *testing.T) {
				for seed := range uint64(60) {
					n := Lanes * (1 + int(seed)%11)
					special := seed%3 > 0
					got := c.run(table(l), newValues(seed, special), n)
					want := c.run(&generic, newValues(seed, special), n)
					if i, bad := differ(got, want); bad {
						t.Fatalf("seed %d, n %d: value %d is %x, the definition gives %x", seed, n, i, got[i], want[i])
					}
				}
			})
		}
	}
}

// TestLevelsHaveKernels fails when a level falls back to plain Go without saying so.
func TestLevelsHaveKernels(t *testing.T) {
	for _, l := range isa.Levels() {
		if l != isa.Generic && table(l) == &generic {
			t.Errorf("%s has no kernels of its own", l)
		}
	}
}

// TestUnaryEverywhere compares the functions on one in 2039 of all float32 bit patterns.
func TestUnaryEverywhere(t *testing.T) {
	const step, size = 2039, 1 << 12
	levels := slices.DeleteFunc(isa.Levels(), func(l isa.Level) bool { return l == isa.Generic })
	if len(levels) == 0 {
		t.Skip("no level but the definition")
	}
	x, got, want := make([]float32, size), make([]float32, size), make([]float32, size)
	const stride = uint64(step)
	for u := range numUnary {
		for next := uint64(0); next < 1<<32; {
			for i := range x {
				x[i] = math.Float32frombits(uint32(next))
				next += stride
			}
			generic.unary[u](want, x)
			for _, l := range levels {
				table(l).unary[u](got, x)
				if i, bad := differ(got, want); bad {
					t.Fatalf("%s, function %d of %x (%x): %x, the definition gives %x", l, u, x[i],
						math.Float32bits(x[i]), got[i], want[i])
				}
			}
		}
	}
}

func FuzzKernels(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(0))
	f.Add(uint64(9), uint8(40), uint8(33))
	f.Fuzz(func(t *testing.T, seed uint64, size, kernel uint8) {
		c := kernelCases[int(kernel)%len(kernelCases)]
		n := Lanes * (1 + int(size)%40)
		want := c.run(&generic, newValues(seed, true), n)
		for _, l := range isa.Levels() {
			if i, bad := differ(c.run(table(l), newValues(seed, true), n), want); bad {
				t.Errorf("%s on %s, seed %d, n %d: value %d differs", c.name, l, seed, n, i)
			}
		}
	})
}
