package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A terminal is the controlling terminal, for the sake of job control. CMD is a group of
// its own, so zklock does for it what a shell does for its jobs. All methods of nil do
// nothing: there is no terminal.
type terminal struct {
	file  *os.File
	modes *term.State // as they were before CMD
}

// openTerminal returns nil where there is no controlling terminal.
func openTerminal() *terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	modes, err := term.GetState(int(file.Fd()))
	if err != nil {
		_ = file.Close()
		return nil
	}
	return &terminal{file: file, modes: modes}
}

func (t *terminal) close() {
	if t != nil {
		_ = t.file.Close()
	}
}

// isOf tells whether a group is the one in the foreground.
func (t *terminal) isOf(group int) bool {
	if t == nil {
		return false
	}
	now, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	return err == nil && now == group
}

// give puts a group in the foreground.
func (t *terminal) give(group int) {
	if t == nil {
		return
	}
	// Whoever does this from the background is stopped for it, if it does not ignore the
	// signal: see supervision.run.
	_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group)
}

// takeBack takes the foreground from a child that has it.
func (t *terminal) takeBack(c *child) {
	if t.isOf(c.pid) {
		t.give(syscall.Getpgrp())
	}
}

// mend puts the modes back that a child which was killed has left behind.
func (t *terminal) mend() {
	if t != nil {
		_ = term.Restore(int(t.file.Fd()), t.modes)
	}
}

// piped tells whether standard output is a pipe. Then somebody else of zklock's group,
// such as a pager, may need the terminal.
func piped() bool {
	info, err := os.Stdout.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// jobControlled tells whether somebody outside of zklock's group, in its session, can let
// the group go on after a stop: a shell, which may have started zklock by way of a script
// in the group. The kernel calls a group without one orphaned.
func jobControlled() bool {
	parent := os.Getppid()
	for {
		group, err := unix.Getpgid(parent)
		if err != nil {
			return false
		}
		if group != syscall.Getpgrp() {
			break
		}
		if parent = parentOf(parent); parent == 0 {
			return false
		}
	}
	theirs, err := unix.Getsid(parent)
	ours, _ := unix.Getsid(0) // that of oneself is always known
	return err == nil && theirs == ours
}

// parentOf returns 0 where it is not known: there is no /proc.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// the name, in parentheses, may have anything in it
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1]) // else 0
	return parent
}
