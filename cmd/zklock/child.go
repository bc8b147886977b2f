package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// A child is CMD: a process at the head of a group of its own. It ends with zklock,
// whatever ends that: see leash, and guard.
type child struct {
	pid int // and the group's
	// changes has each stop of the process and then its end.
	changes chan syscall.WaitStatus
	guard   *watchman
}

// findCommand refuses what cannot be started, as a shell would, before anything was asked
// of ZooKeeper. What stands before the command is called what.
func findCommand(argv []string, what string) error {
	if len(argv) == 0 || argv[0] == "" {
		return usage("no command: what is to be run?")
	}
	if _, err := lookPath(argv[0]); err != nil {
		switch {
		case argv[0] == "-c":
			return usage("-c: is no command; %s", shellHint)
		case strings.HasPrefix(argv[0], "-"):
			return usage("%s: is no command (flags go before %s)", echo(argv[0]), what)
		}
		return cannotStart(argv[0], err)
	}
	return nil
}

// shellHint is for those who expect a shell, as flock(1) -c and ssh(1) have one.
const shellHint = "zklock runs no shell by itself; give -- sh -c 'COMMANDS'"

// shellSyntax is what hardly any command has in its name.
const shellSyntax = " \t\n;|&<>()$`*=\"'"

func cannotStart(name string, err error) error {
	var path *fs.PathError
	_, missing := lookPath(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && missing == nil:
		return exit(exitNotExecutable, "%s: cannot be executed: its interpreter, "+
			"or loader, does not exist", echo(name))
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		what := "command not found"
		if strings.Contains(name, "/") {
			what = "no such file"
		}
		if strings.ContainsAny(name, shellSyntax) {
			what += "; " + shellHint
		}
		return exit(exitNotFound, "%s: %s", echo(name), what)
	case errors.As(err, &path):
		err = path.Err
	}
	if lookup := (&exec.Error{}); errors.As(err, &lookup) {
		err = lookup.Err
	}
	return exit(exitNotExecutable, "%s: cannot be executed: %w", echo(name), err)
}

// startChild starts a command with zklock's own files and terminal.
func startChild(argv, env []string) (*child, error) {
	path, err := lookPath(argv[0])
	if err != nil {
		return nil, cannotStart(argv[0], err)
	}
	c := &child{changes: make(chan syscall.WaitStatus, 1), guard: startGuard()}
	adoptOrphans()
	started := make(chan error)
	go func() {
		// The leash is held by the thread that started the child, for as long as the
		// child lives.
		runtime.LockOSThread()
		cmd := childCommand(path, argv, env)
		changes, err := startBlocked(cmd)
		if errors.Is(err, syscall.ENOEXEC) {
			cmd = childCommand(shell, append([]string{shell, path}, argv[1:]...), env)
			changes, err = startBlocked(cmd)
		}
		if err == nil {
			c.pid = cmd.Process.Pid
			c.guard.tell(c.pid)
		}
		started <- err
		if err != nil {
			return
		}
		for status := range changes {
			c.changes <- status
		}
		close(c.changes)
	}()
	if err := <-started; err != nil {
		c.guard.dismiss()
		return nil, cannotStart(argv[0], err)
	}
	return c, nil
}

func childCommand(path string, argv, env []string) *exec.Cmd {
	return &exec.Cmd{
		Path: path, Args: argv, Env: append(publicEnviron(), env...),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: leash(),
	}
}

// shell runs what the kernel does not know how to run, such as a script without "#!":
// execvp(3) has it so, and with it flock(1), env(1) and other shells.
const shell = "/bin/sh"

// defaultPath stands for PATH if that is not set, as in execvp(3) of glibc. The present
// directory is not in it.
const defaultPath = "/bin:/usr/bin"

// lookPath finds a program as execvp(3) does. What it returns has a slash in it, and is
// no option of a shell.
func lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		if dash(name) {
			name = "./" + name
		}
		return exec.LookPath(name)
	}
	path, set := os.LookupEnv("PATH")
	if !set {
		path = defaultPath
	}
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" || dash(dir) {
			dir = "./" + dir
		}
		if found, err := exec.LookPath(dir + "/" + name); err == nil {
			return found, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// send sends a signal to the command alone.
func (c *child) send(s syscall.Signal) { _ = syscall.Kill(c.pid, s) }

// sendAll sends a signal to all processes of the group.
func (c *child) sendAll(s syscall.Signal) { _ = syscall.Kill(-c.pid, s) }

// isForeign tells whether the command runs as another user, to whom zklock may send
// nothing: as one with sudo in it.
func (c *child) isForeign() bool {
	return errors.Is(syscall.Kill(c.pid, 0), syscall.EPERM)
}

// endGroup waits until nothing is left of the group, and kills what is after deadline. It
// returns false if something of another user is left. The command itself was waited for,
// and the reaper waits for its orphans on Linux. What was killed is not waited for:
// elsewhere nobody may do that, and the group never ends.
func (c *child) endGroup(deadline time.Time) (ended bool) {
	const pause = 20 * time.Millisecond
	for {
		switch err := syscall.Kill(-c.pid, 0); {
		case errors.Is(err, syscall.EPERM):
			return false
		case err != nil:
			return true
		case time.Now().After(deadline):
			c.sendAll(syscall.SIGKILL)
			return !errors.Is(syscall.Kill(-c.pid, 0), syscall.EPERM)
		}
		time.Sleep(pause)
	}
}

// exitCode is a shell's $?.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return status.ExitStatus()
}
