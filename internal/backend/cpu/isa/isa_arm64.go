//go:build arm64 && !purego

package isa

import "golang.org/x/sys/cpu"

var detected = detect()

func detect() (ls []Level) {
	if !cpu.ARM64.HasASIMDDP || !cpu.ARM64.HasASIMDHP {
		return nil
	}
	ls = append(ls, NEON)
	if cpu.ARM64.HasI8MM {
		ls = append(ls, NEONI8MM)
	}
	return ls
}
