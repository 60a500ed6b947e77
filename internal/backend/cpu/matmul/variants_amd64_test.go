//go:build !purego

package matmul

import (
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/cpu"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/quant"
)

// variants are kernels that the processor has but that its levels do not use.
func variants() (list []namedKernels) {
	if cpu.X86.HasAVXVNNI {
		k := &Kernels{level: isa.AVX2}
		k.useAVX2(false)
		list = append(list, namedKernels{"avx2-without-vnni", k})
	}
	return list
}

// TestFormatWithoutAssembly takes each format's assembly away, as of one that was just added: the plain code packs and
// multiplies it then, with the same bits.
func TestFormatWithoutAssembly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 14))
	for _, level := range []struct {
		level    isa.Level
		table    func() *native
		quantize func(x *float32, dst *byte, blocks int)
	}{{isa.AVX2, avx2, quantize_avx2}, {isa.AVX512, avx512, quantize_avx512}} {
		if !slices.Contains(isa.Levels(), level.level) {
			continue
		}
		for i := range formats {
			n := level.table()
			n.expand[i], n.few[i], n.tiles[i] = nil, [maxFew + 1]fewFunc{}, nil
			k := &Kernels{level: level.level}
			k.use(n, level.quantize)
			was := moves[i]
			moves[i] = nil
			typ := types[slices.IndexFunc(types, func(x struct {
				typ   quant.Type
				halfs []int
			},
			) bool {
				return x.typ == formats[i].typ
			})]
			for _, c := range cases(typ.typ)[:3] {
				checkCase(t, rng, For(isa.Generic), k, typ.typ, source(rng, typ.typ, typ.halfs, c[0], c[1]), c)
			}
			moves[i] = was
		}
	}
}
