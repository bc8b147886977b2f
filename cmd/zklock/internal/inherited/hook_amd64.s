//go:build !cgo && linux

#include "go_asm.h"
#include "textflag.h"

// void *inherited_mmap(void *, size_t, int, int, int, off_t), by the calling convention of
// C. A result below 4096 is an error's number.
TEXT inherited_mmap(SB), NOSPLIT|NOFRAME, $0
	MOVQ $0, _cgo_mmap(SB)
	SUBQ $56, SP
	MOVQ DI, 0(SP)
	MOVQ SI, 8(SP)
	MOVQ DX, 16(SP)
	MOVQ CX, 24(SP)
	MOVQ R8, 32(SP)
	MOVQ R9, 40(SP)

	XORL DI, DI
	XORL SI, SI
	LEAQ ·blocked(SB), DX
	MOVL $8, R10
	MOVL $14, AX // rt_sigprocmask
	SYSCALL

	LEAQ ·seen(SB), DX
	MOVL $1, DI
next:
	XORL SI, SI
	MOVL $8, R10
	MOVL $13, AX // rt_sigaction
	SYSCALL
	ADDQ $handler__size, DX
	INCL DI
	CMPL DI, $const_last
	JLE  next

	MOVQ 0(SP), DI
	MOVQ 8(SP), SI
	MOVQ 16(SP), DX
	MOVQ 24(SP), R10
	MOVQ 32(SP), R8
	MOVQ 40(SP), R9
	ADDQ $56, SP
	MOVL $9, AX // mmap
	SYSCALL
	CMPQ AX, $-4096
	JLS  out
	NEGQ AX
out:
	RET
