//go:build !purego

package matmul

import (
	"golang.org/x/sys/cpu"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// native puts the assembly kernels of the level in place.
func (k *Kernels) native() {
	switch k.level {
	case isa.AVX2:
		k.useAVX2(cpu.X86.HasAVXVNNI)
	case isa.AVX512:
		k.use(avx512(), quantize_avx512)
	}
}

// useAVX2 puts the AVX2 kernels in place, with the dot product instruction of AVX-VNNI if vnni says that there is one.
func (k *Kernels) useAVX2(vnni bool) {
	n := avx2()
	if vnni {
		n.tiles = tilesAVXVNNI
	}
	k.use(n, quantize_avx2)
}

func (k *Kernels) use(n *native, quantize func(x *float32, dst *byte, blocks int)) {
	k.quant, k.float = n.mulQuant, n.mulFloat
	k.quantize = quantizeWith(quantize)
	k.packGroup = packGroupNative
}
