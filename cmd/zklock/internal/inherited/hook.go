//go:build !cgo && linux && (amd64 || arm64)

package inherited

import (
	"syscall"
	"unsafe"
)

// The runtime calls _cgo_sigaction, which is nil unless cgo is linked in, in place of the
// system call, and makes the system call itself if the answer is EINVAL. The function
// here always says EINVAL, after it has noted in seen whether the signal is ignored.
//
//go:linkname _cgo_sigaction _cgo_sigaction
var _cgo_sigaction = &inherited_sigaction

//go:linkname inherited_sigaction inherited_sigaction
var inherited_sigaction byte // of hook_*.s

// seen has the signals that the runtime looked at while they were ignored. What it looks
// at later was ignored by the program itself: see noted.
var seen uint64

// A handler is the kernel's struct sigaction.
type handler struct {
	is, flags, restorer uintptr
	mask                uint64
}

// atStart adds those at which the runtime looks only when the program asks for them.
func atStart() uint64 {
	set := seen | byRuntime()
	for s := syscall.Signal(1); s <= last; s++ {
		var now handler
		_, _, err := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), 0,
			uintptr(unsafe.Pointer(&now)), unsafe.Sizeof(now.mask), 0, 0)
		if err == 0 && now.is == 1 { // SIG_IGN
			set |= 1 << (s - 1)
		}
	}
	return set
}
