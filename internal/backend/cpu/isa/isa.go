// Package isa tells which instruction set the processor offers and how far the user limits it. It decides
// nothing else: kernel packages keep a table per level.
package isa

import (
	"fmt"
	"strings"
)

// Level is an instruction set that kernels are written for. Every level gives the same bits.
// RATIONALE: Why is no BF16 dot product instruction used?
type Level uint8

const (
	Generic  Level = iota // plain Go: the definition of every kernel
	AVX2                  // AVX2, FMA, F16C
	AVX512                // AVX-512 F, BW, DQ, VL and VNNI
	NEON                  // arm64 with dot product (SDOT)
	NEONI8MM              // arm64 with int8 matrix multiply (SMMLA) as well
)

var names = [...]string{"generic", "avx2", "avx512", "neon", "neon-i8mm"}

func (l Level) String() string { return names[l] }

// Levels lists what this processor can run, Generic first, best last.
func Levels() []Level { return append([]Level{Generic}, detected...) }

// Best returns the best level of this processor that limit allows. An empty limit allows all. A limit that is
// unknown, or that this processor cannot run, is an error: the user asked for it by name.
func Best(limit string) (Level, error) {
	all := Levels()
	if limit == "" {
		return all[len(all)-1], nil
	}
	for _, l := range all {
		if l.String() == strings.ToLower(limit) {
			return l, nil
		}
	}
	for _, n := range names {
		if n == strings.ToLower(limit) {
			return 0, fmt.Errorf("cpu: this processor has no %s; it has %s", n, list(all))
		}
	}
	return 0, fmt.Errorf("cpu: unknown instruction set %q; this processor has %s", limit, list(all))
}

func list(ls []Level) string {
	s := make([]string, len(ls))
	for i, l := range ls {
		s[i] = l.String()
	}
	return strings.Join(s, ", ")
}
