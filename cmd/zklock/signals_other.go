//go:build !linux

package main

import (
	"os"
	"strconv"
	"syscall"
)

// realTime is empty: not all systems have real-time signals.
func realTime() []os.Signal { return nil }

// dropped is empty: plain does nothing here.
var dropped []syscall.Signal

// restoreDefault gives a signal its default action, and sends it, in a shell in place of
// zklock. signal.Reset leaves the runtime's own action, which answers SIGQUIT with a dump
// of all goroutines. Without a shell that has to do.
func restoreDefault(s syscall.Signal) {
	_ = syscall.Exec("/bin/sh",
		[]string{"sh", "-c", "ulimit -c 0; kill -" + strconv.Itoa(int(s)) + " $$"}, nil)
}

// plain leaves signals to the runtime.
func plain(...syscall.Signal) {}
