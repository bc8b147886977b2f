package zkserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// A guard is a shell that kills another process when ours is gone: it waits for the end
// of a pipe that only we hold open, and that the system closes however we end. (Linux
// could send a signal by itself, but when the thread that started the child ends, which
// Go's runtime decides.)
type guard struct {
	shell *exec.Cmd
	pipe  *os.File
}

func newGuard(pid int) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	const script = `read -r end; kill -KILL "$0"`
	g := &guard{shell: exec.Command("sh", "-c", script, strconv.Itoa(pid)), pipe: w}
	g.shell.Stdin = r
	g.shell.SysProcAttr = ownGroup()
	if err := g.shell.Start(); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("guard of process %d: %w", pid, err)
	}
	return g, nil
}

// StartGuarded starts a command of its own process group, which is killed when our
// process ends, however it does. The caller waits for the command's end, and then calls
// dismiss.
func StartGuarded(cmd *exec.Cmd) (dismiss func(), err error) {
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g, err := newGuard(cmd.Process.Pid)
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return g.dismiss, nil
}

// dismiss ends the guard before it sees the end of the pipe: the pid may be somebody
// else's by now.
func (g *guard) dismiss() {
	_ = g.shell.Process.Kill()
	_ = g.shell.Wait() // says only that it was killed
	_ = g.pipe.Close()
}
