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

// A program is a process in another language that uses a library's locks as it is told;
// java/Peer.java has the protocol.
type program struct {
	language string
	cmd      *exec.Cmd
	stderr   string        // the path of the file that it goes to
	ended    chan struct{} // closed once the process is gone

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

// startProgram starts cmd.
func startProgram(language string, cmd *exec.Cmd) (*program, error) {
	stderr, err := os.CreateTemp(workDir, "stderr-")
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p := &program{
		language: language, cmd: cmd, stderr: stderr.Name(), ended: make(chan struct{}),
		waiting: map[string]chan<- answer{}, events: map[string]chan struct{}{},
	}
	p.cmd.Stderr = stderr
	in, inErr := p.cmd.StdinPipe()
	out, outErr := p.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, p.cmd.Start()); err != nil {
		return nil, fmt.Errorf("interop: start a %s process: %w", language, err)
	}
	p.in = in
	go p.listen(out)
	return p, nil
}

// listen hands out the answers until the process has ended; then all that is asked fails.
func (p *program) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		number, rest, _ := strings.Cut(lines.Text(), " ")
		if number == "event" {
			p.event(rest) <- struct{}{}
			continue
		}
		verdict, text, _ := strings.Cut(rest, " ")
		a := answer{values: strings.Fields(text)}
		if verdict != "ok" {
			a = answer{err: errors.New(text)}
		}
		p.answer(number, a)
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	for _, waiting := range p.waiting {
		waiting <- answer{
			err: fmt.Errorf("the %s process has ended: %w", p.language, err),
		}
	}
}

func (p *program) answer(number string, a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waiting, ok := p.waiting[number]; ok {
		waiting <- a
		delete(p.waiting, number)
	}
}

// event returns the channel that tells when a lock is asked back.
func (p *program) event(lock string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events[lock] == nil {
		p.events[lock] = make(chan struct{}, 100)
	}
	return p.events[lock]
}

// ask gives a command to a thread of the process. The channel tells once what it has come
// to.
func (p *program) ask(thread, verb string, arguments ...string) <-chan answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := make(chan answer, 1)
	select {
	case <-p.ended:
		told <- answer{err: fmt.Errorf("the %s process has ended", p.language)}
		return told
	default:
	}
	p.last++
	number := strconv.Itoa(p.last)
	p.waiting[number] = told
	line := strings.Join(append([]string{number, thread, verb}, arguments...), " ") + "\n"
	if _, err := io.WriteString(p.in, line); err != nil {
		delete(p.waiting, number)
		told <- answer{err: err}
	}
	return told
}

// do has a thread do a command that does not wait for others, and returns the values.
func (p *program) do(tb testing.TB, thread, verb string, arguments ...string) []string {
	tb.Helper()
	what := p.language + "'s " + verb + " " + strings.Join(arguments, " ")
	a := locktest.Within(tb, p.ask(thread, verb, arguments...), what)
	if a.err != nil {
		tb.Fatalf("%s: %v\nIts log ends:\n%s", what, a.err, p.log())
	}
	return a.values
}

// log is the end of what the process has said on its standard error.
func (p *program) log() string {
	text, err := os.ReadFile(p.stderr)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// kill ends the process as a crash does (SIGKILL): nobody closes its sessions.
func (p *program) kill(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, p.cmd.Process.Kill())
	locktest.Within(tb, p.ended, "the process ends")
}

// leave ends the process by the end of its standard input.
func (p *program) leave() error {
	if err := p.in.Close(); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(locktest.Patience):
		return errors.Join(
			fmt.Errorf("interop: the %s process does not end with its standard input",
				p.language),
			p.cmd.Process.Kill(),
		)
	}
}
