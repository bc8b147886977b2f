//go:build unix

package zkserver

import "syscall"

const (
	canFreeze = true
	sigStop   = syscall.SIGSTOP
	sigCont   = syscall.SIGCONT
)

// ownGroup keeps the terminal's Ctrl-C from a child: the program that started it may
// still need it to clean up.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
