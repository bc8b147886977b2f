//go:build !cgo && linux && (amd64 || arm64)

package inherited

import _ "unsafe" // for linkname

// The runtime calls _cgo_mmap, which is nil unless cgo is linked in, in place of the
// system call. It needs memory before it touches any signal. So the function here is
// called in time; it takes itself out again, notes what it finds, and makes the call.
//
//go:linkname _cgo_mmap _cgo_mmap
var _cgo_mmap = &inherited_mmap

//go:linkname inherited_mmap inherited_mmap
var inherited_mmap byte // of hook_*.s

var (
	seen    [last]handler // of signal 1, and so on
	blocked set
)

// A handler is the kernel's struct sigaction.
type handler struct {
	is, flags, restorer uintptr
	mask                uint64
}

func atStart() (now state) {
	now.blocked = blocked
	for i, one := range seen {
		if one.is == 1 { // SIG_IGN
			now.ignored |= 1 << i
		}
	}
	return now
}
