package interop_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A jvm is a Java process that uses Curator's recipes as it is told; java/Peer.java has
// the protocol.
type jvm struct {
	cmd    *exec.Cmd
	stderr string        // the path of the file that it goes to
	ended  chan struct{} // closed once the process is gone

	mu      sync.Mutex // guards what follows, and keeps the commands apart
	in      io.WriteCloser
	last    int
	waiting map[string]chan<- answer // by the number of the command
	events  map[string]chan struct{} // by the name of the lock
}

// An answer is what a command has come to.
type answer struct {
	values []string
	err    error
}

// startJVM starts a Java process with Curator.
func startJVM() (*jvm, error) {
	home, err := findJavaHome()
	if err != nil {
		return nil, err
	}
	stderr, err := os.CreateTemp(workDir, "stderr-")
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	// Quick to start and small, as the servers are.
	j := &jvm{
		cmd: exec.Command(home.java, "-Xmx256m", "-XX:+UseSerialGC",
			"-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
			home.classes+":"+home.classpath, "Peer"),
		stderr: stderr.Name(), ended: make(chan struct{}),
		waiting: map[string]chan<- answer{}, events: map[string]chan struct{}{},
	}
	j.cmd.Stderr = stderr
	in, inErr := j.cmd.StdinPipe()
	out, outErr := j.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, j.cmd.Start()); err != nil {
		return nil, fmt.Errorf("interop: start a Java process: %w", err)
	}
	j.in = in
	go j.listen(out)
	return j, nil
}

// listen hands out the answers until the process has ended; then all that is asked fails.
func (j *jvm) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		number, rest, _ := strings.Cut(lines.Text(), " ")
		if number == "event" {
			j.event(rest) <- struct{}{}
			continue
		}
		verdict, text, _ := strings.Cut(rest, " ")
		a := answer{values: strings.Fields(text)}
		if verdict != "ok" {
			a = answer{err: errors.New(text)}
		}
		j.answer(number, a)
	}
	err := j.cmd.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.ended)
	for _, waiting := range j.waiting {
		waiting <- answer{err: fmt.Errorf("the Java process has ended: %w", err)}
	}
}

func (j *jvm) answer(number string, a answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if waiting, ok := j.waiting[number]; ok {
		waiting <- a
		delete(j.waiting, number)
	}
}

// event returns the channel that tells when a lock is asked back.
func (j *jvm) event(lock string) chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.events[lock] == nil {
		j.events[lock] = make(chan struct{}, 100)
	}
	return j.events[lock]
}

// ask gives a command to a thread of the process. The channel tells once what it has come
// to.
func (j *jvm) ask(thread, verb string, arguments ...string) <-chan answer {
	j.mu.Lock()
	defer j.mu.Unlock()
	told := make(chan answer, 1)
	select {
	case <-j.ended:
		told <- answer{err: errors.New("the Java process has ended")}
		return told
	default:
	}
	j.last++
	number := strconv.Itoa(j.last)
	j.waiting[number] = told
	line := strings.Join(append([]string{number, thread, verb}, arguments...), " ") + "\n"
	if _, err := io.WriteString(j.in, line); err != nil {
		delete(j.waiting, number)
		told <- answer{err: err}
	}
	return told
}

// do has a thread do a command that does not wait for others, and returns the values.
func (j *jvm) do(tb testing.TB, thread, verb string, arguments ...string) []string {
	tb.Helper()
	what := "Java's " + verb + " " + strings.Join(arguments, " ")
	a := locktest.Within(tb, j.ask(thread, verb, arguments...), what)
	if a.err != nil {
		tb.Fatalf("%s: %v\nIts log ends:\n%s", what, a.err, j.log())
	}
	return a.values
}

// log is the end of what the process has said on its standard error.
func (j *jvm) log() string {
	text, err := os.ReadFile(j.stderr)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// kill ends the process as a crash does (SIGKILL): nobody closes its sessions.
func (j *jvm) kill(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, j.cmd.Process.Kill())
	locktest.Within(tb, j.ended, "the Java process ends")
}

// shared is the process that the tests share, each with clients of its own.
var shared struct {
	once sync.Once
	jvm  *jvm
	err  error
}

// sharedJVM returns the process that the tests share. Nobody may kill it.
func sharedJVM(tb testing.TB) *jvm {
	tb.Helper()
	shared.once.Do(func() { shared.jvm, shared.err = startJVM() })
	mustHave(tb, shared.err)
	return shared.jvm
}

// ownJVM starts a process for one test.
func ownJVM(tb testing.TB) *jvm {
	tb.Helper()
	j, err := startJVM()
	mustHave(tb, err)
	tb.Cleanup(func() { _ = j.leave() }) // most likely it was killed
	return j
}

// leave ends the process by the end of its standard input.
func (j *jvm) leave() error {
	if err := j.in.Close(); err != nil {
		return err
	}
	select {
	case <-j.ended:
		return nil
	case <-time.After(locktest.Patience):
		return errors.Join(
			errors.New("interop: the Java process does not end with its standard input"),
			j.cmd.Process.Kill(),
		)
	}
}

// leaveShared ends what sharedJVM has started.
func leaveShared() error {
	if shared.jvm == nil {
		return nil
	}
	return shared.jvm.leave()
}
