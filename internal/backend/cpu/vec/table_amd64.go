//go:build !purego

package vec

import "github.com/baleenrun/baleen/internal/backend/cpu/isa"

func table(l isa.Level) *ops {
	switch l {
	case isa.AVX512:
		return &opsAVX512
	case isa.AVX2:
		return &opsAVX2
	}
	return &generic
}
