//go:build !purego

#include "textflag.h"

// func launder(p unsafe.Pointer) unsafe.Pointer
TEXT ·launder(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ AX, ret+8(FP)
	RET

// func prefetch(p *byte, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

next:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	SUBQ $64, CX
	JGT  next
	RET
