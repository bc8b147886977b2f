//go:build unix

package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// processEnv makes the test binary a worker of the chaos test: its value is the
// processConfig.
const processEnv = "CHAOS_WORKER"

// A processConfig is what a worker with a process of its own needs to know.
type processConfig struct {
	Seed     uint64
	Worker   int
	Owners   int
	Timeout  time.Duration // of the session
	Servers  string
	Root     string
	Locks    []simulator.Lock
	Plain    bool          // the connection is go-zookeeper's own
	Epoch    time.Duration // what the clock of all processes calls 0
	Register string        // the address of the store
	Finish   time.Duration // what the end may take
}

func TestMain(m *testing.M) {
	if text := os.Getenv(processEnv); text != "" {
		if err := runProcess(text); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

// runProcess is the whole life of such a process: it works until its input ends, and then
// tells its history, a line of JSON for each event.
func runProcess(text string) error {
	var c processConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	store, err := rpc.Dial("tcp", c.Register)
	if err != nil {
		return err
	}
	world, err := newWorld(simulator.Config{
		Seed: c.Seed, Session: c.Timeout / pace, Root: c.Root, Locks: c.Locks,
		Owners: c.Owners, Workers: 1, First: c.Worker,
		Clock: clockSince(c.Epoch), Register: remoteRegister{store}, Trespass: true,
	}, dialerTo(func(int) string { return c.Servers }, c.Timeout, c.Plain))
	if err != nil {
		return err
	}
	world.Start()
	_, _ = io.Copy(io.Discard, os.Stdin) // ends also with the parent
	ctx, cancel := context.WithTimeout(context.Background(), c.Finish)
	defer cancel()
	err = world.Finish(ctx)
	out := json.NewEncoder(os.Stdout)
	for _, e := range world.History() {
		err = errors.Join(err, out.Encode(e))
	}
	return err
}

// A workerProcess is a worker with a process of its own, which can be stopped and made to
// go on.
type workerProcess struct {
	cmd    *exec.Cmd
	input  io.Closer
	stdout bytes.Buffer
	stderr bytes.Buffer
	rec    *simulator.Recorder // takes when it was stopped
	number int
}

func startProcess(c processConfig, rec *simulator.Recorder) (*workerProcess, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	p := &workerProcess{cmd: exec.Command(os.Args[0]), rec: rec, number: c.Worker}
	p.cmd.Env = append(os.Environ(), processEnv+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

// pause stops the process, and resume lets it go on. What is recorded is no longer than
// what happened.
func (p *workerProcess) pause() error {
	err := p.cmd.Process.Signal(syscall.SIGSTOP)
	p.rec.Record(simulator.Event{
		Kind: simulator.Paused, ID: simulator.ID{Worker: p.number},
	})
	return err
}

func (p *workerProcess) resume() error {
	p.rec.Record(simulator.Event{
		Kind: simulator.Resumed, ID: simulator.ID{Worker: p.number},
	})
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// finish ends the process and returns its history.
func (p *workerProcess) finish() (h simulator.History, err error) {
	_ = p.input.Close()
	if err = p.cmd.Wait(); err != nil {
		err = fmt.Errorf(
			"worker %d, a process of its own: %w\n%s", p.number, err, &p.stderr,
		)
	}
	for in := json.NewDecoder(&p.stdout); ; {
		var e simulator.Event
		switch failed := in.Decode(&e); {
		case errors.Is(failed, io.EOF):
			return h, err
		case failed != nil:
			return h, errors.Join(
				err, fmt.Errorf("history of worker %d: %w", p.number, failed),
			)
		}
		h = append(h, e)
	}
}

// monotonic is a clock that all processes of a machine share, and that nobody sets.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic("BUG: no monotonic clock: " + err.Error())
	}
	return time.Duration(now.Nano())
}

func clockSince(epoch time.Duration) func() time.Duration {
	return func() time.Duration { return monotonic() - epoch }
}

// storeName is what the store is called between processes.
const storeName = "Register"

// A store is a register that other processes can write to.
type store struct{ simulator.Register }

// A StoreCall is a write or a read, a StoreAnswer what comes of it.
type (
	StoreCall struct {
		Path  string
		Token int64
	}
	StoreAnswer struct {
		Version  int64
		Accepted bool
	}
)

// PutToken is Register.Write.
func (s store) PutToken(call StoreCall, answer *StoreAnswer) error {
	answer.Version, answer.Accepted = s.Write(call.Path, call.Token)
	return nil
}

// CheckToken is Register.Read.
func (s store) CheckToken(call StoreCall, answer *StoreAnswer) error {
	answer.Accepted = s.Read(call.Path, call.Token)
	return nil
}

// serveStore lets other processes write to a register until t ends. It returns where.
func serveStore(t *testing.T, r simulator.Register) (addr string, err error) {
	t.Helper()
	server := rpc.NewServer()
	if err := server.RegisterName(storeName, store{r}); err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", faults.LocalAddr(0))
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(conn)
		}
	}()
	return l.Addr().String(), nil
}

// A remoteRegister is the store as another process has it.
type remoteRegister struct{ client *rpc.Client }

func (r remoteRegister) Write(path string, token int64) (version int64, accepted bool) {
	answer := r.call("PutToken", path, token)
	return answer.Version, answer.Accepted
}

func (r remoteRegister) Read(path string, token int64) bool {
	return r.call("CheckToken", path, token).Accepted
}

func (r remoteRegister) call(method, path string, token int64) (answer StoreAnswer) {
	method = strings.Join([]string{storeName, method}, ".")
	if err := r.client.Call(method, StoreCall{path, token}, &answer); err != nil {
		// Without the store there is nothing to be shown.
		log.Fatalf("%s: %v", method, err)
	}
	return answer
}
