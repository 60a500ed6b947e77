package matmul

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/quant"
)

// benchTypes are the formats that benchmarks run; the rest follows from them.
var benchTypes = []quant.Type{
	quant.Q4_0,
	quant.Q5_0,
	quant.Q8_0,
	quant.Q4_K,
	quant.Q6_K,
	quant.MXFP4,
	quant.F32,
	quant.BF16,
}

// BenchmarkMul multiplies by 1, 4, 8 and 512 rows: with few rows the weights come from memory (96 MB of them), with
// many they are 4 MB. It prints how fast packed weights are read and how many billion multiplications and additions are
// done.
func BenchmarkMul(b *testing.B) {
	level := isa.Levels()[len(isa.Levels())-1]
	for _, l := range isa.Levels() {
		for _, t := range benchTypes {
			for _, n := range []int{1, 2, 4, 8, 16, 32, 64, 512} {
				if l != level && (n == 2 || n == 4 || n == 32 || n == 64) || l == isa.Generic && n > 1 {
					continue
				}
				b.Run(fmt.Sprintf("%v/%v/rows=%d", l, t, n), func(b *testing.B) { benchMul(b, l, t, 2048, n) })
			}
		}
	}
}

// BenchmarkShapes multiplies by the shapes of a model with 896 inputs and by a long one.
func BenchmarkShapes(b *testing.B) {
	for _, t := range []quant.Type{quant.Q4_0, quant.Q5_0, quant.Q8_0} {
		for _, cols := range []int{896, 4864, 14336} {
			for _, n := range []int{1, 8, 512} {
				b.Run(fmt.Sprintf("%v/k=%d/rows=%d", t, cols, n), func(b *testing.B) {
					benchMul(b, isa.Levels()[len(isa.Levels())-1], t, cols, n)
				})
			}
		}
	}
}

func benchMul(b *testing.B, l isa.Level, t quant.Type, cols, n int) {
	size := 96 << 20
	if l == isa.Generic {
		size = 4 << 20
	}
	if n > 64 {
		size = 4 << 20
	}
	perRow, err := PackedBytes(t, 16, cols)
	if err != nil {
		b.Fatal(err)
	}
	rows := size / perRow * 16
	k := For(l)
	m, err := New(t, rows, cols, aligned(rows/16*perRow))
	if err != nil {
		b.Fatal(err)
	}
	fillPacked(&m, k)
	rng := rand.New(rand.NewPCG(1, 1))
	_, act, stride := activations(rng, k, m.Act(), n, cols)
	y := make([]float32, n*rows)
	const chunk = 64 // groups a call, as the executor does
	k.Mul(&m, 0, m.Groups, act, stride, n, y, rows, DefaultAhead)
	b.ResetTimer()
	times := make([]float64, (m.Groups+chunk-1)/chunk) // the best of each call: the machine is rarely quiet
	for i := range b.N {
		for j := range times {
			start := time.Now()
			k.Mul(&m, j*chunk, min((j+1)*chunk, m.Groups), act, stride, n, y, rows, DefaultAhead)
			if t := time.Since(start).Seconds(); i == 0 || t < times[j] {
				times[j] = t
			}
		}
	}
	best := 0.0
	for _, t := range times {
		best += t
	}
	b.ReportMetric(float64(len(m.Data))/best/1e9, "GB/s")
	b.ReportMetric(2*float64(rows)*float64(cols)*float64(n)/best/1e9, "GOP/s")
	b.ReportMetric(0, "ns/op")
}

// fillPacked packs random weights: one group, copied to all others.
func fillPacked(m *Matrix, k *Kernels) {
	halfs := []int(nil)
	for _, tt := range types {
		if tt.typ == m.Type {
			halfs = tt.halfs
		}
	}
	k.Pack(m, source(rand.New(rand.NewPCG(1, 2)), m.Type, halfs, Lanes, m.K), 0, 1)
	for g := 1; g < m.Groups; g++ {
		copy(m.group(g), m.group(0))
	}
}

// BenchmarkPack packs rows from the second-level cache.
func BenchmarkPack(b *testing.B) {
	for _, l := range isa.Levels() {
		for _, t := range types {
			b.Run(fmt.Sprintf("%v/%v", l, t.typ), func(b *testing.B) {
				const rows, cols = 64, 2048
				k := For(l)
				src := source(rand.New(rand.NewPCG(1, 2)), t.typ, t.halfs, rows, cols)
				n, _ := PackedBytes(t.typ, rows, cols)
				m, err := New(t.typ, rows, cols, aligned(n))
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(src)))
				for range b.N {
					k.Pack(&m, src, 0, m.Groups)
				}
			})
		}
	}
}

// BenchmarkQuantize quantizes a row of 4096.
func BenchmarkQuantize(b *testing.B) {
	for _, l := range isa.Levels() {
		b.Run(l.String(), func(b *testing.B) {
			x := make([]float32, 4096)
			for i := range x {
				x[i] = rand.Float32()
			}
			dst := aligned(ActQ8.Bytes(len(x)))
			b.SetBytes(int64(4 * len(x)))
			for range b.N {
				For(l).Quantize(ActQ8, dst, x)
			}
		})
	}
}
