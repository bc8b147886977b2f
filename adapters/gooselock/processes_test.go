package gooselock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// patience bounds a wait for what must happen; nothing is shown by its length.
const patience = 20 * time.Second

// A fleet is hosts that share a ZooKeeper and a database.
type fleet struct {
	t        *testing.T
	cluster  *zktest.Cluster
	database string
	lines    chan line // of all hosts
}

// A host is a process.
type host struct {
	*exec.Cmd
	stdin io.Writer
}

// A line is what a host has reported: a step, the id of its session, and more.
type line struct {
	by      *host
	step    string
	session int64
	rest    string
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	t.Parallel()
	return &fleet{
		t, zktest.Start(t), filepath.Join(t.TempDir(), "test.db"), make(chan line, 100),
	}
}

// start starts a host, and waits until it is about to migrate.
func (f *fleet) start(env ...string) *host {
	f.t.Helper()
	h := &host{Cmd: exec.CommandContext(f.t.Context(), os.Args[0])}
	h.Env = append(os.Environ(), append(env,
		serversOfHost+"="+f.cluster.ConnectString(), databaseOfHost+"="+f.database)...)
	h.Stderr = os.Stderr
	in, err := h.StdinPipe()
	require.NoError(f.t, err)
	h.stdin = in
	out, err := h.StdoutPipe()
	require.NoError(f.t, err)
	require.NoError(f.t, h.Start())
	read, started := make(chan bool), make(chan bool)
	go func() {
		defer close(read)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			l := line{by: h}
			_, _ = fmt.Sscan(scan.Text(), &l.step, &l.session)
			_, l.rest, _ = strings.Cut(scan.Text(), fmt.Sprint(l.session, " "))
			if l.step == "starts" {
				close(started)
				continue
			}
			f.lines <- l
		}
	}()
	f.t.Cleanup(func() {
		_ = h.Process.Kill()
		<-read
		_ = h.Wait() // it was killed, or has ended
	})
	select {
	case <-started:
	case <-time.After(patience):
		f.t.Fatal("a host does not start")
	}
	return h
}

// await returns the next line, which must be of the given step.
func (f *fleet) await(step string) line {
	f.t.Helper()
	select {
	case l := <-f.lines:
		require.Equal(f.t, step, l.step, "%+v", l)
		return l
	case <-time.After(patience):
		f.t.Fatalf("no host reports %q", step)
		return line{}
	}
}

func (f *fleet) goOn(h *host) {
	f.t.Helper()
	_, err := io.WriteString(h.stdin, "\n")
	require.NoError(f.t, err)
}

// suspend returns when the host stands still.
func (h *host) suspend(t *testing.T) {
	t.Helper()
	require.NoError(t, h.Process.Signal(syscall.SIGSTOP))
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(h.Process.Pid, &status, syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			require.NoError(t, err)
			require.True(t, status.Stopped())
			return
		}
	}
}

func TestOneHostMigratesAndTheOthersWait(t *testing.T) {
	f := newFleet(t)
	for range 3 {
		f.start()
	}
	first := f.await("begins")
	f.goOn(first.by)
	for range 3 {
		done, migrations := f.await("done"), "0"
		if done.by == first.by {
			migrations = "1"
		}
		require.Equal(t, migrations, done.rest)
	}
}

func TestAHostSkipsWhileAnotherMigrates(t *testing.T) {
	f := newFleet(t)
	first := f.start()
	f.await("begins")
	second := f.start(hostSkips + "=yes")
	require.Equal(t, second, f.await("skips").by)
	f.goOn(first)
	require.Equal(t, "1", f.await("done").rest)
	f.start(hostSkips + "=yes")
	require.Equal(t, "0", f.await("done").rest)
}

func TestAHostKilledInTheMiddleBlocksNoLongerThanItsSession(t *testing.T) {
	f := newFleet(t)
	first := f.start()
	session := f.await("begins").session
	second := f.start()
	require.NoError(t, first.Process.Kill())
	require.Empty(t, f.lines, "nobody else has begun before")
	require.True(t, f.cluster.ExpireSession(session))
	require.Equal(t, second, f.await("begins").by)
	f.goOn(second)
	require.Equal(t, "1", f.await("done").rest)
}

func TestALossEndsTheMigration(t *testing.T) {
	f := newFleet(t)
	f.start()
	session := f.await("begins").session
	require.True(t, f.cluster.ExpireSession(session))
	f.await("ends")
	require.Contains(t, f.await("lost").rest, "the lock was lost")
}

// A host that was suspended for longer than its session learns of the loss when it
// resumes, and does not go on.
func TestASuspendedHostDoesNotGoOn(t *testing.T) {
	f := newFleet(t)
	first := f.start()
	session := f.await("begins").session
	second := f.start()
	first.suspend(t)
	require.True(t, f.cluster.ExpireSession(session))
	require.Equal(t, second, f.await("begins").by)
	f.goOn(second)
	require.Equal(t, "1", f.await("done").rest)
	require.NoError(t, first.Process.Signal(syscall.SIGCONT))
	require.Equal(t, first, f.await("ends").by)
	require.Equal(t, first, f.await("lost").by)
}
