package matmul

import (
	"math/rand/v2"
	"testing"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// FuzzMul multiplies matrices of any format, size and content, at every level, and wants the bits of the plain kernels.
func FuzzMul(f *testing.F) {
	f.Add(uint8(0), uint8(33), uint8(3), uint8(9), uint64(1), false)
	f.Add(uint8(10), uint8(16), uint8(2), uint8(1), uint64(2), true)
	f.Add(uint8(12), uint8(49), uint8(5), uint8(70), uint64(3), false)
	f.Add(uint8(13), uint8(17), uint8(200), uint8(13), uint64(4), true)
	f.Fuzz(func(t *testing.T, kind, rows, blocks, n uint8, seed uint64, wild bool) {
		tt := types[int(kind)%len(types)]
		c := [3]int{1 + int(rows)%80, (1 + int(blocks)%40) * tt.typ.BlockSize(), 1 + int(n)%80}
		if tt.typ.BlockSize() == 256 {
			c[1] = (1 + int(blocks)%6) * 256
		} else if tt.typ.BlockSize() == 1 {
			c[1] = 1 + int(blocks)*5
		}
		rng := rand.New(rand.NewPCG(seed, uint64(kind)))
		src := source(rng, tt.typ, tt.halfs, c[0], c[1])
		if wild { // any bits at all: infinite and NaN scales, subnormal weights
			for i := range src {
				src[i] = byte(rng.Uint32())
			}
		}
		plain := For(isa.Generic)
		for _, k := range underTest()[1:] {
			checkCase(t, rng, plain, k.Kernels, tt.typ, src, c)
		}
	})
}

// TestMulAllocatesNothing keeps a step free of garbage.
func TestMulAllocatesNothing(t *testing.T) {
	for _, kernels := range underTest()[1:] {
		for _, tt := range types {
			for _, n := range []int{1, 5, 80} {
				k, rng := kernels.Kernels, rand.New(rand.NewPCG(5, 5))
				m := packed(t, k, tt.typ, 40, 512, source(rng, tt.typ, tt.halfs, 40, 512))
				x, act, stride := activations(rng, k, m.Act(), n, 512)
				y := make([]float32, n*40)
				if got := testing.AllocsPerRun(20, func() {
					k.Quantize(m.Act(), act, x[0])
					k.Mul(m, 0, m.Groups, act, stride, n, y, 40, DefaultAhead)
				}); got != 0 {
					t.Errorf("%v, %v, %d rows: %v allocations", kernels.name, tt.typ, n, got)
				}
			}
		}
	}
}
