package zkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// A processHost runs a server as a child process.
type processHost struct {
	java string
	args []string
	dir  string // zoo.cfg, the data, the log
	proc *process
}

// A process is one run of a processHost. It takes a guard along, which kills it if this
// process ends without doing so.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the process is gone, and cmd.ProcessState says how
}

func (h *processHost) file(name string) string { return filepath.Join(h.dir, name) }
func (h *processHost) dataDir() string         { return h.file("data") }

func (h *processHost) write(id int, cfg, jaas string) error {
	if err := os.MkdirAll(h.dataDir(), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(
		h.file("data/myid"), []byte(strconv.Itoa(id)), 0o600,
	); err != nil {
		return err
	}
	if err := os.WriteFile(h.file("jaas.conf"), []byte(jaas), 0o600); err != nil {
		return err
	}
	return os.WriteFile(h.file("zoo.cfg"), []byte(cfg), 0o600)
}

func (h *processHost) start(context.Context) error {
	log, err := os.OpenFile(h.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(h.java, h.args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = h.dir, log, log
	dismiss, err := StartGuarded(p.cmd)
	if err != nil {
		return err
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // says no more than ProcessState
		dismiss()
	}()
	h.proc = p
	return nil
}

func (h *processHost) freeze(context.Context) error { return h.signal(sigStop) }
func (h *processHost) thaw(context.Context) error   { return h.signal(sigCont) }

func (h *processHost) kill(ctx context.Context) error {
	if err := h.signal(os.Kill); err != nil {
		return err
	}
	select {
	case <-h.proc.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *processHost) signal(sig os.Signal) error {
	if h.proc == nil {
		return os.ErrProcessDone
	}
	return h.proc.cmd.Process.Signal(sig)
}

func (h *processHost) ended(ctx context.Context) error {
	select {
	case <-h.proc.done:
	default:
		return nil
	}
	log := tail(h.log(ctx))
	err := fmt.Errorf(
		"its process ended (%s); its log ends:\n%s", h.proc.cmd.ProcessState, log,
	)
	if portTaken(log) {
		err = errors.Join(errPortTaken, err)
	}
	return err
}

func (h *processHost) remove(ctx context.Context) error {
	if err := h.kill(ctx); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (h *processHost) log(context.Context) string {
	text, err := os.ReadFile(h.file("log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
