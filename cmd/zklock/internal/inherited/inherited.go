// Package inherited knows which signals were ignored when this process was started.
//
// A program that starts another one hands its ignored signals on (execve(2)), and so must
// zklock. But Go's runtime replaces what it finds by handlers of its own, before any code
// of the program runs, and tells later only of SIGHUP and SIGINT. So they are noted
// before the runtime replaces them: with cgo by a constructor (cgo.go); else by a
// function that the runtime calls, on Linux, each time it is about to look at a signal's
// handler (hook.go). Elsewhere, nothing but SIGHUP and SIGINT is known.
package inherited

import (
	"os/signal"
	"syscall"
)

// Ignored returns the signals that were ignored when the process was started.
func Ignored() []syscall.Signal {
	var all []syscall.Signal
	for s := syscall.Signal(1); s <= last; s++ {
		if noted&(1<<(s-1)) != 0 {
			all = append(all, s)
		}
	}
	return all
}

// last is the number of the last signal that a system can have.
const last = 64

// noted has a bit for each signal, from the lowest for signal 1 on.
var noted = atStart()

// byRuntime is what the runtime itself tells.
func byRuntime() (set uint64) {
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			set |= 1 << (s - 1)
		}
	}
	return set
}
