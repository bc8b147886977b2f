//go:build !cgo && linux

#include "go_asm.h"
#include "textflag.h"

// void *inherited_mmap(void *, size_t, int, int, int, off_t), by the calling convention of
// C. A result below 4096 is an error's number. The kernel keeps all registers but R0.
TEXT inherited_mmap(SB), NOSPLIT|NOFRAME, $0
	MOVD ZR, _cgo_mmap(SB)
	MOVD R0, R9
	MOVD R1, R10
	MOVD R2, R11
	MOVD R3, R12

	MOVD ZR, R0
	MOVD ZR, R1
	MOVD $·blocked(SB), R2
	MOVD $8, R3
	MOVD $135, R8 // rt_sigprocmask
	SVC

	MOVD $·seen(SB), R2
	MOVD $1, R13
next:
	MOVD R13, R0
	MOVD ZR, R1
	MOVD $134, R8 // rt_sigaction
	SVC
	ADD  $handler__size, R2
	ADD  $1, R13
	CMP  $const_last, R13
	BLE  next

	MOVD R9, R0
	MOVD R10, R1
	MOVD R11, R2
	MOVD R12, R3
	MOVD $222, R8 // mmap
	SVC
	CMN  $4095, R0
	BCC  out
	NEG  R0, R0
out:
	RET
