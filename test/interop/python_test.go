package interop_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/recipes/internal/locktest"
)

var errNoKazoo = errors.New("interop: no kazoo to be had: install Python 3 with kazoo " +
	"(Debian: apt-get install python3-kazoo; elsewhere pip install kazoo, and set " +
	"KAZOO_PYTHON to that Python)")

// findPython returns a Python that has kazoo.
var findPython = sync.OnceValues(func() (string, error) {
	candidates := []string{"python3", "/usr/bin/python3"} // the latter is Debian's
	if python := os.Getenv("KAZOO_PYTHON"); python != "" {
		candidates = []string{python}
	}
	var why []error
	for _, python := range candidates {
		try := exec.Command(python, "-c", "import kazoo.recipe.lock")
		out, err := try.CombinedOutput()
		if err == nil {
			return python, nil
		}
		why = append(why, fmt.Errorf("%s: %w\n%s", python, err, out))
	}
	return "", errors.Join(append([]error{errNoKazoo}, why...)...)
})

// startPython starts a Python process with kazoo, for one test.
func startPython(tb testing.TB) *program {
	tb.Helper()
	needsOthers(tb)
	python, err := findPython()
	mustHave(tb, err)
	p, err := startProgram("Python", exec.Command(python, "python/peer.py"))
	mustHave(tb, err)
	tb.Cleanup(func() { _ = p.leave() }) // it may have been killed
	return p
}

// A pythonPeer is a kazoo client, with its ZooKeeper session, in a process of its own.
type pythonPeer struct {
	t       testing.TB
	program *program
	name    string
	session int64
}

func newPython(tb testing.TB, timeout time.Duration) *pythonPeer {
	tb.Helper()
	p := &pythonPeer{t: tb, program: startPython(tb), name: newName("client")}
	millis := strconv.FormatInt(timeout.Milliseconds(), 10)
	opened := p.do("open", p.name, serversOf(tb), millis)
	session, err := strconv.ParseInt(opened[0], 10, 64)
	mustHave(tb, err)
	p.session = session
	return p
}

// do is program.do by a thread of the client's own.
func (p *pythonPeer) do(verb string, arguments ...string) []string {
	p.t.Helper()
	return p.program.do(p.t, p.name, verb, arguments...)
}

// A pythonLock is a contender. kazoo's locks are for one owner each.
type pythonLock struct {
	peer *pythonPeer
	name string
}

// lock makes one of a kind that peer.py knows.
func (p *pythonPeer) lock(kind, path string) *pythonLock {
	p.t.Helper()
	l := &pythonLock{p, newName(kind)}
	p.do("make", l.name, kind, p.name, path)
	return l
}

// ask has a thread of the lock's own do a command that may wait for others.
func (l *pythonLock) ask(verb string, arguments ...string) <-chan error {
	arguments = append([]string{l.name}, arguments...)
	asked := l.peer.program.ask(l.name, verb, arguments...)
	return locktest.Start(func() error { return (<-asked).err })
}

func (l *pythonLock) acquire() <-chan error { return l.ask("acquire") }

// try does not wait: kazoo has no wait that ends without an error.
func (l *pythonLock) try(time.Duration) bool {
	l.peer.t.Helper()
	return l.peer.program.do(l.peer.t, l.name, "try", l.name)[0] == "true"
}

func (l *pythonLock) release() {
	l.peer.t.Helper()
	l.peer.program.do(l.peer.t, l.name, "release", l.name)
}

func (l *pythonLock) increment(times int, paths ...string) <-chan error {
	return l.ask("increment",
		append([]string{l.peer.name, strconv.Itoa(times)}, paths...)...)
}
