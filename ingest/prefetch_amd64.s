#include "textflag.h"

// func prefetch(p unsafe.Pointer, step, n uintptr)
TEXT ·prefetch(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), AX
	MOVQ step+8(FP), BX
	MOVQ n+16(FP), CX
loop:
	PREFETCHT0 (AX)
	ADDQ BX, AX
	DECQ CX
	JNZ  loop
	RET
