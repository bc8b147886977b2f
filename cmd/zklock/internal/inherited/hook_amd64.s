//go:build !cgo && linux

#include "textflag.h"

// int inherited_sigaction(int sig, struct sigaction *new, struct sigaction *old), by the
// calling convention of C. It asks the kernel for the present handler.
TEXT inherited_sigaction(SB), NOSPLIT|NOFRAME, $0
	SUBQ $40, SP
	MOVQ SP, DX
	XORL SI, SI
	MOVL $8, R10
	MOVL $13, AX // rt_sigaction
	SYSCALL
	CMPQ 0(SP), $1 // SIG_IGN
	JNE  out
	MOVQ DI, CX
	DECQ CX
	MOVL $1, AX
	SHLQ CX, AX
	ORQ  AX, ·seen(SB)
out:
	ADDQ $40, SP
	MOVL $22, AX // EINVAL
	RET
