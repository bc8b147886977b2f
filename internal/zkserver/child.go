package zkserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// A child is a server that runs as a child process.
type child struct {
	java string
	args []string
	dir  string // zoo.cfg, the data, the log
	proc *process
}

// A process is one run of a child. It takes a guard along, which kills it if this process ends without doing so.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the process is gone, and cmd.ProcessState says how
}

func (c *child) file(name string) string { return filepath.Join(c.dir, name) }
func (c *child) dataDir() string         { return c.file("data") }

func (c *child) write(id int, cfg string) error {
	if err := os.MkdirAll(c.dataDir(), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("data/myid"), []byte(strconv.Itoa(id)), 0o600); err != nil {
		return err
	}
	return os.WriteFile(c.file("zoo.cfg"), []byte(cfg), 0o600)
}

func (c *child) start(context.Context) error {
	log, err := os.OpenFile(c.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(c.java, c.args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.dir, log, log
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	g, err := newGuard(p.cmd.Process.Pid)
	if err != nil {
		return errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // says no more than ProcessState
		g.dismiss()
	}()
	c.proc = p
	return nil
}

func (c *child) freeze(context.Context) error { return c.signal(sigStop) }
func (c *child) thaw(context.Context) error   { return c.signal(sigCont) }

func (c *child) kill(ctx context.Context) error {
	if err := c.signal(os.Kill); err != nil {
		return err
	}
	select {
	case <-c.proc.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *child) signal(sig os.Signal) error {
	if c.proc == nil {
		return os.ErrProcessDone
	}
	return c.proc.cmd.Process.Signal(sig)
}

func (c *child) ended(ctx context.Context) error {
	select {
	case <-c.proc.done:
	default:
		return nil
	}
	log := c.log(ctx)
	err := fmt.Errorf("its process ended (%s); its log ends:\n%s", c.proc.cmd.ProcessState, log)
	if portTaken(log) {
		err = errors.Join(errPortTaken, err)
	}
	return err
}

func (c *child) remove(ctx context.Context) error {
	if err := c.kill(ctx); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (c *child) log(context.Context) string {
	text, err := os.ReadFile(c.file("log"))
	if err != nil {
		return err.Error()
	}
	return tail(text)
}

// tail is the end of a log, enough of it to show a Java exception with its causes.
func tail(text []byte) string {
	const most = 4000
	if len(text) > most {
		text = text[len(text)-most:]
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	return string(text)
}
