package gocronlock_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// patience bounds a wait for what must happen; nothing is shown by its length.
const patience = 20 * time.Second

// A process is a host of its own.
type process struct {
	*exec.Cmd
	name string
}

// A line is what a process has reported: a step, the id of its session, and more.
type line struct {
	by      *process
	step    string
	session int64
	rest    string
}

// startProcesses starts hosts whose lines come on the channel.
func startProcesses(
	t *testing.T, servers string, n int, env ...string,
) <-chan line {
	t.Helper()
	lines := make(chan line, 1000)
	for i := range n {
		p := &process{exec.CommandContext(t.Context(), os.Args[0]), fmt.Sprint(i + 1)}
		p.Env = append(os.Environ(), append(env, serversOfHost+"="+servers)...)
		p.Stderr = os.Stderr
		out, err := p.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.Start())
		read := make(chan bool)
		go func() {
			defer close(read)
			for scan := bufio.NewScanner(out); scan.Scan(); {
				l := line{by: p}
				_, _ = fmt.Sscan(scan.Text(), &l.step, &l.session)
				_, l.rest, _ = strings.Cut(scan.Text(), fmt.Sprint(l.session, " "))
				lines <- l
			}
		}()
		t.Cleanup(func() {
			_ = p.Process.Kill()
			<-read
			_ = p.Wait() // it was killed
		})
	}
	return lines
}

// await returns the next line, which must be of the given step.
func await(t *testing.T, lines <-chan line, step string) line {
	t.Helper()
	select {
	case l := <-lines:
		require.Equal(t, step, l.step, "%+v", l)
		return l
	case <-time.After(patience):
		t.Fatalf("no process reports %q", step)
		return line{}
	}
}

// forBoth runs a test with lockers and with electors.
func forBoth(t *testing.T, test func(t *testing.T, env ...string)) {
	t.Helper()
	t.Parallel()
	t.Run("locker", func(t *testing.T) {
		t.Parallel()
		test(t)
	})
	t.Run("elector", func(t *testing.T) {
		t.Parallel()
		test(t, electorOfHost+"=yes")
	})
}

func TestAHostThatIsKilledBlocksTheJobNoLongerThanItsSession(t *testing.T) {
	forBoth(t, func(t *testing.T, env ...string) {
		cluster := zktest.Start(t)
		lines := startProcesses(t, cluster.ConnectString(), 3, env...)
		first := await(t, lines, "begins")
		require.NoError(t, first.by.Process.Kill())
		require.Empty(t, lines, "nobody else has begun before")
		require.True(t, cluster.ExpireSession(first.session))
		second := await(t, lines, "begins")
		require.NotEqual(t, first.by.name, second.by.name)
	})
}

func TestALossInTheMiddleEndsTheJobAndIsReportedToGocron(t *testing.T) {
	forBoth(t, func(t *testing.T, env ...string) {
		cluster := zktest.Start(t)
		lines := startProcesses(t, cluster.ConnectString(), 1, env...)
		first := await(t, lines, "begins")
		require.True(t, cluster.ExpireSession(first.session))
		await(t, lines, "ends")
		failed := await(t, lines, "failed")
		require.Contains(t, failed.rest, "the lock was lost")
		again := await(t, lines, "begins") // with a new session
		require.NotEqual(t, first.session, again.session)
	})
}

func TestAHostThatStopsHandsTheJobOver(t *testing.T) {
	forBoth(t, func(t *testing.T, env ...string) {
		cluster := zktest.Start(t)
		lines := startProcesses(t, cluster.ConnectString(), 2, env...)
		first := await(t, lines, "begins")
		require.NoError(t, first.by.Process.Signal(os.Interrupt))
		await(t, lines, "ends")
		second := await(t, lines, "begins")
		require.NotEqual(t, first.by.name, second.by.name)
	})
}
