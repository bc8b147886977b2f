package main

import (
	"os/exec"
	"syscall"
	"unsafe"

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

// startBlocked starts a command with the signals blocked that were so when zklock was
// started. The runtime gives a new process the mask of the thread that has started it,
// which is the calling goroutine's own: nobody else misses the signals.
func startBlocked(cmd *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	var mask, before unix.Sigset_t
	for _, s := range blockedAtStart {
		bits := int(unsafe.Sizeof(mask.Val[0])) * 8
		mask.Val[(int(s)-1)/bits] |= 1 << ((int(s) - 1) % bits)
	}
	// Neither fails: it is the kernel that has named the signals.
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &mask, &before)
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }()
	return reaping.start(cmd)
}
