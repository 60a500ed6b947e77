package vec

import (
	"fmt"
	"testing"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/plan"
)

// BenchmarkRow runs the row-wise kernels on rows as wide as those of a 1B model.
func BenchmarkRow(b *testing.B) {
	v := newValues(1, false)
	x, y, w, z := v.slice(8192), v.slice(8192), v.slice(8192), make([]float32, 8192)
	cos, sin := v.slice(32), v.slice(32)
	half := make([]uint16, 8192)
	var acc [Lanes]float32
	for _, c := range []struct {
		name string
		n    int
		run  func(k *Kernels)
	}{
		{"exp", 4096, func(k *Kernels) { k.Act(plan.ActExp, z[:4096], x) }},
		{"exp_sum", 512, func(k *Kernels) { k.ops.expSum(z[:512], 1, 3, &acc) }},
		{"rmsnorm", 2048, func(k *Kernels) { k.RMSNorm(z[:2048], x[:2048], w[:2048], 1e-5) }},
		{"silu_mul", 8192, func(k *Kernels) { k.GLU(plan.ActSiLU, z, x, y, 0, 0) }},
		{"gelu_mul", 8192, func(k *Kernels) { k.GLU(plan.ActGELUTanh, z, x, y, 0, 0) }},
		{"gelu_erf", 8192, func(k *Kernels) { k.Act(plan.ActGELU, z, x) }},
		{"add", 2048, func(k *Kernels) { k.Add(z[:2048], x[:2048], 1) }},
		{"rope_32_heads", 2048, func(k *Kernels) {
			for h := range 32 {
				k.Rope(z[h*64:][:64], cos, sin, false)
			}
		}},
		{"rope_32_heads_interleaved", 2048, func(k *Kernels) {
			for h := range 32 {
				k.Rope(z[h*64:][:64], cos, sin, true)
			}
		}},
		{"to_half", 8192, func(k *Kernels) { k.F32ToF16(half, x) }},
	} {
		for _, l := range isa.Levels() {
			b.Run(fmt.Sprintf("%s/%s", c.name, l), func(b *testing.B) {
				k := For(l)
				for b.Loop() {
					c.run(k)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.n), "ns/value")
			})
		}
	}
}
