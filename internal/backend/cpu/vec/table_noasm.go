//go:build purego || !(amd64 || arm64)

package vec

import "github.com/baleenrun/baleen/internal/backend/cpu/isa"

func table(isa.Level) *ops { return &generic }
