package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// realTime are the real-time signals that a Go program can catch: SIGRTMIN+1 and so on.
// SIGRTMIN itself is not among them.
func realTime() (all []os.Signal) {
	for s := syscall.Signal(35); s <= 64; s++ {
		all = append(all, s)
	}
	return all
}

// dropped are the signals that end a program, but not one of Go's that does not catch
// them. SIGXFSZ is not among them: like SIGPIPE it comes of a message that could not be
// written.
var dropped = []syscall.Signal{
	syscall.SIGVTALRM, syscall.SIGPROF, syscall.SIGIO, syscall.SIGPWR, syscall.SIGXCPU,
}

// restoreDefault gives a signal its default action. signal.Reset leaves the runtime's own
// in place, which answers SIGQUIT with a dump of all goroutines. A core file of zklock
// would help nobody, and has its credentials in it.
func restoreDefault(s syscall.Signal) {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // else there is a core file
	byDefault(s)
}

// plain gives signals their default action until somebody catches them. The runtime
// installs its handler again for that only if it believes that there is none, as it does
// of what is ignored.
func plain(signals ...syscall.Signal) {
	for _, s := range signals {
		if actsOn(s) {
			signal.Ignore(s)
			byDefault(s)
		}
	}
}

func byDefault(s syscall.Signal) {
	var byDefault [8]uintptr // the kernel's struct sigaction
	const maskSize = 8
	//nolint:gosec // a system call takes an address
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s),
		uintptr(unsafe.Pointer(&byDefault)), 0, maskSize, 0, 0)
}
