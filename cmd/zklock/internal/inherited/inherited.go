// Package inherited knows which signals were ignored and blocked when this process was
// started.
//
// A program that starts another one hands both on (execve(2)), and so must zklock. But
// Go's runtime replaces what it finds by handlers of its own, and lifts the block of some
// signals, before any code of the program runs; it tells later only whether SIGHUP and
// SIGINT were ignored. So they are noted before: with cgo by a constructor (cgo.go); else
// by a function that the runtime calls when it needs memory, on Linux (hook.go).
// Elsewhere nothing but those two is known.
package inherited

import "syscall"

// Ignored returns the signals that were ignored when the process was started.
func Ignored() []syscall.Signal { return noted.ignored.all() }

// Blocked returns the signals that were blocked when the process was started.
func Blocked() []syscall.Signal { return noted.blocked.all() }

// last is the number of the last signal that a system can have.
const last = 64

// A set has a bit for each signal, from the lowest for signal 1 on.
type set uint64

func (of set) all() (signals []syscall.Signal) {
	for s := syscall.Signal(1); s <= last; s++ {
		if of&(1<<(s-1)) != 0 {
			signals = append(signals, s)
		}
	}
	return signals
}

var noted = atStart()

type state struct{ ignored, blocked set }
