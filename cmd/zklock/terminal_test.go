package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// A typist sits at a terminal with an interactive shell in it.
type typist struct {
	t        *testing.T
	cluster  *zktest.Cluster
	terminal *os.File
	mu       sync.Mutex // guards shown
	shown    string
}

func newTypist(t *testing.T) *typist {
	t.Helper()
	cluster := zktest.Start(t)
	shell := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	shell.Env = append(os.Environ(), "PS1=$ ", "HISTFILE=", "TERM=dumb",
		"ZOOKEEPER_SERVERS="+cluster.ConnectString())
	terminal, err := pty.Start(shell)
	require.NoError(t, err)
	w := &typist{t: t, cluster: cluster, terminal: terminal}
	var reading sync.WaitGroup
	reading.Go(w.read)
	t.Cleanup(func() {
		// All that runs in the terminal, or it would stay open and reading never end.
		session := strconv.Itoa(shell.Process.Pid)
		killed := exec.Command("pkill", "-KILL", "-s", session).Run()
		_ = shell.Wait() // it was killed
		_ = terminal.Close()
		reading.Wait()
		require.NoError(t, killed)
	})
	return w
}

func (w *typist) read() {
	text := make([]byte, 4096)
	for {
		n, err := w.terminal.Read(text)
		w.mu.Lock()
		w.shown += string(text[:n])
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// types types, and waits until the terminal shows something after that.
func (w *typist) types(text, until string) {
	w.t.Helper()
	w.mu.Lock()
	before := len(w.shown)
	w.mu.Unlock()
	_, err := w.terminal.WriteString(text)
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return strings.Contains(w.shown[before:], until)
	}, patience, 10*time.Millisecond, "%q does not come after %q", until, text)
}

// What is in quotes is not shown by the echo of what was typed, but by who ran.
func TestJobControl(t *testing.T) {
	w := newTypist(t)
	w.types("zklock run /j sh -c 'echo \"re\"ady; cat; echo no'; echo rc=$?\n", "ready")
	w.types("to cat\n", "to cat\r\nto cat")
	w.types("\x1a", "Stopped")
	w.types("zklock run -n /j true; echo rc=$?\n", "rc=75")
	w.types("fg\n", "cat; echo no'\r\n")
	w.types("again\n", "again\r\nagain")
	w.types("\x03", "$ ")
	w.types("echo \"it\" was $?\n", "it was 130")
}

// A command that was stopped does not run again when the lock was lost meanwhile.
func TestStoppedAndLost(t *testing.T) {
	w := newTypist(t)
	w.types("zklock run /j sh -c 'trap \"echo al\"ive TERM CONT; echo \"re\"ady; cat'\n",
		"ready")
	// A shell that is stopped while it starts cat hangs (dash does that by vfork).
	w.types("to cat\n", "to cat\r\nto cat")
	w.types("\x1a", "Stopped")
	for _, session := range w.cluster.Sessions() {
		require.True(t, w.cluster.ExpireSession(session))
	}
	w.types("fg\n", "CMD was ended: the lock was lost")
	w.types("echo \"it\" was $?\n", "it was 76")
	w.mu.Lock()
	defer w.mu.Unlock()
	require.NotContains(t, w.shown, "alive")
}
