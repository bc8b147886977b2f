package main

import "syscall"

// leash puts a child at the head of a group of its own, and lets the kernel kill it as
// soon as the thread that started it is gone.
func leash() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
