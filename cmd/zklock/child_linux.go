package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// leash puts a child at the head of a group of its own, and lets the kernel kill it as
// soon as the thread that started it is gone.
func leash() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes this process the parent of all descendants whose own parent ends.
// Else that is init's part: a container without one has nobody who waits for them, and a
// group with a zombie in it never ends. An error leaves it to init.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
