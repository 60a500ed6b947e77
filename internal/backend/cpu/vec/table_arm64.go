//go:build !purego

package vec

import "github.com/baleenrun/baleen/internal/backend/cpu/isa"

func table(l isa.Level) *ops {
	if l == isa.NEON || l == isa.NEONI8MM {
		return &opsNEON
	}
	return &generic
}
