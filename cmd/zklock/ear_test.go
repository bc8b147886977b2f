package main

import (
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// An ear that is dismissed when a signal has ended CMD tells of the signal.
func TestEarTellsWhatWasTyped(t *testing.T) {
	var all sync.WaitGroup
	for range 8 { // one after the other would leave the ear a processor of its own
		all.Go(func() {
			for range 50 {
				if told := endByInterrupt(t); len(told) != 1 {
					t.Errorf("the ear tells of %v, not of one interrupt", told)
				}
			}
		})
	}
	all.Wait()
}

func endByInterrupt(t *testing.T) (told []syscall.Signal) {
	t.Helper()
	listener := startEar()
	cmd := &exec.Cmd{Path: "/bin/cat", SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	changes, err := reaping.start(cmd)
	require.NoError(t, err)
	listener.join(cmd.Process.Pid)
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT))
	<-changes
	listener.dismiss(func(s syscall.Signal) { told = append(told, s) })
	return told
}
