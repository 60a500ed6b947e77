//go:build amd64 && !purego

package isa

import "golang.org/x/sys/cpu"

var detected = detect()

func detect() (ls []Level) {
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasFMA {
		return nil
	}
	ls = append(ls, AVX2) // every processor with AVX2 and FMA has F16C
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI {
		ls = append(ls, AVX512)
	}
	return ls
}
