package main

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The help, which is the man page too, and the README name each signal that is passed on.
func TestPassedSignalsAreNamed(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var names []string
	for _, one := range slices.Concat(ending, forwarded) {
		name := unix.SignalName(one.(syscall.Signal))
		names = append(names, strings.TrimPrefix(name, "SIG"))
	}
	last := len(names) - 1
	list := strings.Join(names[:last], ", ") + " and " + names[last]
	for where, text := range map[string]string{
		"help": aboutRun, "README": string(readme),
	} {
		flat := strings.Join(strings.Fields(text), " ")
		require.Contains(t, flat, "The signals "+list, where)
	}
}

// Of what comes before zklock's own signal nothing is lost, and its own is not heard
// again.
func TestAwaitOwn(t *testing.T) {
	s := &supervision{signals: make(chan os.Signal, 16)}
	for _, one := range []os.Signal{
		syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGCONT,
	} {
		s.signals <- one
	}
	require.Equal(t, []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM},
		s.awaitOwn(syscall.SIGTSTP))
	require.Equal(t, syscall.SIGCONT, <-s.signals)
	require.Empty(t, s.signals)
}

// Nor is it heard after CMD's end.
func TestAwaitItself(t *testing.T) {
	s := &supervision{
		signals:  make(chan os.Signal, 16),
		ofItself: map[syscall.Signal]bool{syscall.SIGINT: true, syscall.SIGQUIT: true},
	}
	for _, one := range []os.Signal{syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGINT} {
		s.signals <- one
	}
	s.awaitItself()
	require.Equal(t, syscall.SIGTERM, <-s.signals)
	require.Empty(t, s.signals)
}
