#include "textflag.h"

// func prefetch(p unsafe.Pointer, step, n uintptr)
TEXT ·prefetch(SB), NOSPLIT, $0-24
	MOVD p+0(FP), R0
	MOVD step+8(FP), R1
	MOVD n+16(FP), R2
loop:
	PRFM (R0), PLDL1KEEP
	ADD  R1, R0
	SUBS $1, R2
	BNE  loop
	RET
