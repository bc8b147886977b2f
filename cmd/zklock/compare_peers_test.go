package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A peerKind is a library whose locks stand in the queues of all.
type peerKind struct {
	name, open, recipe string
	command            []string
}

// peerKinds are all, with the programs of test/interop for other languages.
func peerKinds(t *testing.T) []peerKind {
	t.Helper()
	need(t, "javac", "default-jdk-headless")
	const curator, python = "/usr/share/java/curator-recipes.jar", "/usr/bin/python3"
	if _, err := os.Stat(curator); err != nil {
		skip(t, "Curator is missing: on Debian, as root, apt-get install "+
			"libcurator-recipes-java")
	}
	if exec.Command(python, "-c", "import kazoo").Run() != nil {
		skip(t, "kazoo is missing: on Debian, as root, apt-get install python3-kazoo")
	}
	const interop = "../../test/interop/"
	classes := curator + ":/usr/share/java/slf4j-simple.jar"
	dir := t.TempDir()
	sources, err := filepath.Glob(interop + "java/*.java")
	require.NoError(t, err)
	built(t, "javac", append([]string{"-d", dir, "-cp", classes}, sources...)...)
	inGo := filepath.Join(dir, "peer")
	built(t, "go", "build", "-o", inGo, "./testdata/peer")
	return []peerKind{
		{"Curator", "open", "mutex", []string{
			"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", dir + ":" + classes,
			"Peer",
		}},
		{"kazoo", "open", "curatorlock", []string{python, interop + "python/peer.py"}},
		{"zk.Lock", "openzk", "lock", []string{inGo}},
		{"Go", "open", "mutex", []string{inGo}},
	}
}

func built(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// A peerProcess is a program with one session, which does what it is told.
type peerProcess struct {
	kind    peerKind
	cmd     *exec.Cmd
	session string        // as "zklock ls" writes it
	ended   chan struct{} // closed when the process is gone

	mu      sync.Mutex // guards what follows, and keeps the commands apart
	in      io.Writer
	last    int
	waiting map[string]chan<- peerAnswer
}

type peerAnswer struct {
	text string
	err  error
}

var errEnded = errors.New("the process has ended")

// startPeer starts a program, with a lock for each path that is named as the path.
func startPeer(kind peerKind, servers string, paths []string) (*peerProcess, error) {
	p := &peerProcess{
		kind: kind, cmd: exec.Command(kind.command[0], kind.command[1:]...),
		ended: make(chan struct{}), waiting: map[string]chan<- peerAnswer{},
	}
	in, inErr := p.cmd.StdinPipe()
	out, outErr := p.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, p.cmd.Start()); err != nil {
		return nil, err
	}
	p.in = in
	go p.listen(out)
	millis := strconv.FormatInt(comparedTimeout.Milliseconds(), 10)
	text, err := p.ask("main", kind.open, "client", servers, millis)
	if err != nil {
		return p, fmt.Errorf("%s: open a session: %w", kind.name, err)
	}
	session, err := strconv.ParseInt(text, 10, 64)
	p.session = fmt.Sprintf("0x%x", uint64(session))
	for _, path := range paths {
		_, makes := p.ask("main", "make", path, kind.recipe, "client", path)
		err = errors.Join(err, makes)
	}
	return p, err
}

// listen hands out the answers until the process has ended; then all that is asked fails.
func (p *peerProcess) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		number, rest, _ := strings.Cut(lines.Text(), " ")
		verdict, text, _ := strings.Cut(rest, " ")
		a := peerAnswer{text: text}
		if verdict != "ok" {
			a.err = errors.New(text)
		}
		p.mu.Lock()
		if waiting := p.waiting[number]; waiting != nil {
			waiting <- a
			delete(p.waiting, number)
		}
		p.mu.Unlock()
	}
	_ = p.cmd.Wait() // it was killed
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	for _, waiting := range p.waiting {
		waiting <- peerAnswer{err: errEnded}
	}
}

// ask has a thread of the process do a command, and waits for the answer.
func (p *peerProcess) ask(thread, verb string, arguments ...string) (string, error) {
	told := make(chan peerAnswer, 1)
	p.mu.Lock()
	select {
	case <-p.ended:
		p.mu.Unlock()
		return "", errEnded
	default:
	}
	p.last++
	number := strconv.Itoa(p.last)
	p.waiting[number] = told
	line := strings.Join(append([]string{number, thread, verb}, arguments...), " ")
	_, err := fmt.Fprintln(p.in, line)
	p.mu.Unlock()
	if err != nil {
		return "", err
	}
	a := <-told
	return a.text, a.err
}

func (p *peerProcess) kill() {
	_ = p.cmd.Process.Kill() // else it has ended
	<-p.ended
}
