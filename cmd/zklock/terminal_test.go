package main

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/go-zookeeper/zk"
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
		return strings.Contains(w.all()[before:], until)
	}, patience, 10*time.Millisecond, "%q does not come after %q, but %v", until, text,
		&after{w, before})
}

// after is what a typist has been shown since then, when it is printed.
type after struct {
	w    *typist
	from int
}

func (a *after) String() string { return strconv.Quote(a.w.all()[a.from:]) }

// all is what the terminal has shown.
func (w *typist) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shown
}

// attempt is a line that makes a single attempt, and again if the machine has let it
// stand still for its second: then zklock rightly says that it knows nothing.
func attempt(path string) string {
	return "until zklock run -n " + path + " true; r=$?; [ $r != 69 ]; do :; done; " +
		"echo rc=$r\n"
}

// What is in quotes is not shown by the echo of what was typed, but by who ran.
func TestJobControl(t *testing.T) {
	w := newTypist(t)
	// A session that the stop does not end, however slow the machine is.
	w.types("zklock run --session-timeout 40s /j "+
		"sh -c 'echo \"re\"ady; cat; echo no'; echo rc=$?\n", "ready")
	w.types("to cat\n", "to cat\r\nto cat")
	w.types("\x1a", "Stopped")
	w.types(attempt("/j"), "rc=75")
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

// Ctrl-C ends the script around zklock, wherever zklock is, as it does with flock(1).
func TestInterruptEndsTheScript(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and does not answer
	require.NoError(t, err)
	defer silent.Close()
	// Not one long sleep: of a Ctrl-C that comes while dash starts a program, the program
	// does not learn, and dash acts on it when the program has ended.
	const work = `echo re\"\"ady; while :; do sleep 0.1; done"`
	const ready = `sh -c "` + work
	for name, at := range map[string]struct {
		script string
		when   string // it is seen; or else there is a znode more; or a connection
	}{
		"waiting":    {"for i in 1 2 3; do zklock run /busy echo got; done", ""},
		"once":       {"zklock once --per 24h /busy echo got", ""},
		"lead waits": {"zklock lead /busy echo got", ""},
		"lead":       {"zklock lead /lead " + ready, "ready"},
		"CMD runs":   {"zklock run /l " + ready, "ready"},
		"pipeline":   {"zklock run /l " + ready + " | cat", "ready"},
		"connecting": {
			"zklock --servers " + silent.Addr().String() + " run /l echo got",
			"connected",
		},
		"CMD traps it": {
			`zklock run /l sh -c "trap \"exit 20\" INT; ` + work, "ready",
		},
	} {
		for _, shell := range []string{"bash", "dash", "zsh"} {
			t.Run(name+"/"+shell, func(t *testing.T) {
				need(t, shell, shell)
				w := newTypist(t)
				w.types("zklock run /busy sh -c 'echo \"re\"ady; sleep 1000' &\n",
					"ready")
				held := len(w.cluster.Znodes())
				line := shell + " -c '" + at.script + "; echo go\"\"es on'\n"
				switch at.when {
				case "":
					w.types(line, "\n")
					require.Eventually(t, func() bool {
						return len(w.cluster.Znodes()) > held
					}, patience, 10*time.Millisecond)
				case "connected":
					w.types(line, "\n")
					conn, err := silent.Accept()
					require.NoError(t, err)
					defer conn.Close()
				default:
					w.types(line, at.when)
				}
				w.types("\x03", "$ ")
				w.types("echo \"it\" was $?\n", "it was 130")
				require.NotContains(t, w.all(), "goes on")
				require.NotContains(t, w.all(), "got\r")
			})
		}
	}
}

// Ctrl-\ ends zklock without a word of Go's runtime.
func TestQuitIsQuiet(t *testing.T) {
	w := newTypist(t)
	w.types("zklock run /busy sh -c 'echo \"re\"ady; sleep 1000' &\n", "ready")
	before := len(w.cluster.Znodes())
	w.types("zklock run /busy true; echo rc=$?\n", "\n")
	require.Eventually(t, func() bool { return len(w.cluster.Znodes()) > before },
		patience, 10*time.Millisecond)
	w.types("\x1c", "rc=131")
	require.NotContains(t, w.all(), "goroutine")
	require.NotContains(t, w.all(), "core dumped")
	w.types("zklock run /l sh -c 'echo \"re\"ady; sleep 1000'; echo rc=$?\n", "ready")
	w.types("\x1c", "rc=131")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and does not answer
	require.NoError(t, err)
	defer silent.Close()
	w.types("zklock --servers "+silent.Addr().String()+" ls /l; echo rc=$?\n", "\n")
	conn, err := silent.Accept()
	require.NoError(t, err)
	defer conn.Close()
	w.types("\x1c", "rc=131")
	require.NotContains(t, w.all(), "goroutine")
}

// A shell that reads commands, a pager or an editor takes Ctrl-C as a command, and zklock
// goes on as long as it does.
func TestCommandMayUseInterrupts(t *testing.T) {
	w := newTypist(t)
	w.types("zklock run /l bash --norc --noediting -i; echo rc=$?\n", "$ ")
	w.types("echo in \"$ZKLOCK_PATH\"\n", "in /l\r\n")
	w.types("\x03", "$ ")
	w.types("echo still in \"$ZKLOCK_PATH\"\n", "in /l\r\n")
	w.types("exit 0\n", "rc=0")
	w.types("bash -c 'zklock run /l env PS1=ask bash --norc --noediting -i; "+
		"echo ne\"\"xt'\n", "\nask")
	w.types("\x03", "\nask")
	w.types("echo in \"$ZKLOCK_PATH\"\n", "in /l\r\n")
	w.types("exit 0\n", "next")
}

// What was typed for CMD may reach zklock only when CMD has ended: here the process that
// tells it stands still until then. It does not end zklock.
func TestAnInterruptThatIsToldLate(t *testing.T) {
	w := newTypist(t)
	for range 10 {
		w.types("zklock run /l env PS1=in\"\"side bash --norc --noediting -i; "+
			"echo rc=$?\n", "inside")
		w.types("pkill -STOP -g $$ -f ear; echo sto\"\"pped $?\n", "stopped 0\r\ninside")
		w.types("\x03", "inside")
		w.types("exit 0\n", "rc=0")
	}
}

// By kill -TTIN, at a terminal, zklock does not stop while CMD runs on.
func TestNothingButStopStopsZklockAlone(t *testing.T) {
	w := newTypist(t)
	w.types("zklock run /l sh -c 'echo \"re\"ady; while :; do sleep 0.1; done' &\n",
		"ready")
	for _, s := range []string{"TTIN", "TTOU"} {
		w.types("kill -"+s+" $!; sleep 0.3; ps -o stat= -p $!; echo do\"\"ne\n", "done")
	}
	require.NotRegexp(t, `(?m)^T`, w.all())
	w.types(attempt("/l"), "rc=75")
	w.types("kill $!; wait $!; echo rc=$?\n", "rc=143")
}

// A dumb terminal shows lines, and none of what moves a cursor.
func TestWatchOnADumbTerminal(t *testing.T) {
	w := newTypist(t)
	w.types("zklock run /l sh -c 'echo \"re\"ady; sleep 1000' &\n", "ready")
	w.types("zklock watch /l\n", "holds")
	w.types("\x03", "$ ")
	require.NotContains(t, w.all(), "\x1b")
}

// A leader whose CMD has ended can be stopped by Ctrl-Z, as before.
func TestStandbyCanBeStopped(t *testing.T) {
	w := newTypist(t)
	w.types("zklock lead /s sh -c 'echo on\"\"ce; sleep 0.1'\n", "ended with exit code 0")
	w.types("\x1a", "Stopped")
	w.types("kill -KILL %1; wait; echo do\"\"ne\n", "done")
}

// evict asks, and what it shows does nothing to a terminal, nor does its question.
func TestEvictAsks(t *testing.T) {
	w := newTypist(t)
	conn := connectTo(t, w.cluster).Unwrap()
	world := zk.WorldACL(zk.PermAll)
	_, err := conn.Create("/e", nil, 0, world)
	require.NoError(t, err)
	node := "/e/\u202ex-lock-0000000001"
	_, err = conn.Create(node, []byte("\x1b[2J"), 0, world)
	require.NoError(t, err)
	evict := `zklock evict "$(printf '/e/\342\200\256x-lock-0000000001')"; ` +
		"echo rc=$?\n"
	w.types(evict, `delete /e/\u202ex-lock-0000000001? [y/N] `)
	w.types("n\n", "rc=1")
	require.Contains(t, w.cluster.Znodes(), node)
	w.types(evict, "[y/N] ") // and meanwhile it becomes another one
	require.NoError(t, conn.Delete(node, -1))
	_, err = conn.Create(node, []byte("\x1b[2J"), 0, world)
	require.NoError(t, err)
	w.types("y\n", "nothing was deleted: the znode has gone meanwhile")
	require.Contains(t, w.cluster.Znodes(), node)
	w.types(evict, "[y/N] ")
	w.types("y\n", "rc=0")
	require.NotContains(t, w.cluster.Znodes(), node)
	require.Contains(t, w.all(), `with the data "\x1b[2J"`)
	require.NotContains(t, w.all(), "\x1b")
	require.NotContains(t, w.all(), "\u202e")
}
