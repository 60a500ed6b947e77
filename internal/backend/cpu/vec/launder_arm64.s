//go:build !purego

#include "textflag.h"

// func launder(p unsafe.Pointer) unsafe.Pointer
TEXT ·launder(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD R0, ret+8(FP)
	RET

// func prefetch(p *byte, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1

next:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $64, R1
	BGT  next
	RET
