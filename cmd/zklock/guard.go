package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// guardName is what zklock calls itself as a guard.
const guardName = "zklock-guard"

// A watchman is zklock's end of a guard: a process that outlives zklock for a moment. The
// kernel ends no more than the command itself when zklock is killed; the guard, which
// sees its standard input end, kills what the command has started as well.
type watchman struct {
	cmd   *exec.Cmd
	line  *os.File
	ended <-chan syscall.WaitStatus
}

// startGuard returns nil where no process can be started: then the kernel has to do. The
// guard has a session of its own, so that no signal of the terminal reaches it, and none
// of zklock's files, so that nobody waits for it.
func startGuard() *watchman {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	stdin, line, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer stdin.Close()
	cmd := &exec.Cmd{
		Path: self, Args: []string{guardName}, Dir: "/", Stdin: stdin,
		Env:         publicEnviron(),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	ended, err := reaping.start(cmd)
	if err != nil {
		_ = line.Close()
		return nil
	}
	return &watchman{cmd: cmd, line: line, ended: ended}
}

// tell names the group to be killed.
func (w *watchman) tell(group int) {
	if w != nil {
		_, _ = fmt.Fprintln(w.line, group) // one that is gone is as good as none
	}
}

// dismiss ends the guard: what is left of the group may go on.
func (w *watchman) dismiss() {
	if w != nil {
		_ = w.cmd.Process.Kill()
		for range w.ended {
		}
		_ = w.line.Close()
	}
}

// guard kills the group that its standard input names, when that is at its end.
func guard(stdin io.Reader) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	group := 0
	_, _ = fmt.Fscanln(stdin, &group)
	_, _ = io.Copy(io.Discard, stdin)
	if group > 1 {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
	return 0
}
