//go:build !linux

package main

import (
	"os/exec"
	"syscall"
)

// leash puts a child at the head of a group of its own. What ends it after a zklock that
// was killed is the guard alone.
func leash() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// adoptOrphans leaves them to init.
func adoptOrphans() {}

// startBlocked starts a command: what is blocked is known on Linux alone.
func startBlocked(cmd *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	return reaping.start(cmd)
}
