//go:build !cgo && linux

#include "textflag.h"

// int inherited_sigaction(int sig, struct sigaction *new, struct sigaction *old), by the
// calling convention of C. It asks the kernel for the present handler.
TEXT inherited_sigaction(SB), NOSPLIT|NOFRAME, $0
	SUB  $48, RSP
	MOVD R0, R9
	MOVD ZR, R1
	ADD  $8, RSP, R2
	MOVD $8, R3
	MOVD $134, R8 // rt_sigaction
	SVC
	MOVD 8(RSP), R1
	CMP  $1, R1 // SIG_IGN
	BNE  out
	SUB  $1, R9, R9
	MOVD $1, R1
	LSL  R9, R1, R1
	MOVD $·seen(SB), R2
	MOVD (R2), R3
	ORR  R1, R3, R3
	MOVD R3, (R2)
out:
	ADD  $48, RSP
	MOVD $22, R0 // EINVAL
	RET
