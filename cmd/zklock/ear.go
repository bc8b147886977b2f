package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// earName is the argument with which a guard becomes an ear.
const earName = "ear"

// typedSignals are those by which a terminal ends what runs in its foreground.
var typedSignals = []os.Signal{syscall.SIGINT, syscall.SIGQUIT}

// An ear is a process in CMD's group that tells zklock when the group gets SIGINT or
// SIGQUIT. At a terminal CMD's group is the one in the foreground, so what is typed there
// reaches neither zklock nor the script that has started it. But both are meant, too.
type ear struct {
	cmd   *exec.Cmd
	line  *os.File            // to the process; at its end the process ends
	heard chan syscall.Signal // closed after the last
	ended <-chan syscall.WaitStatus
}

// startEar returns when the process listens; nil where none can be started. Then CMD's
// end by a signal has to do.
func startEar() *ear {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	stdin, line, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer stdin.Close()
	answers, stdout, err := os.Pipe()
	if err != nil {
		_ = line.Close()
		return nil
	}
	defer stdout.Close()
	e := &ear{line: line, heard: make(chan syscall.Signal, 16)}
	e.cmd = &exec.Cmd{
		Path: self, Args: []string{guardName, earName}, Dir: "/", Stdin: stdin,
		Stdout: stdout, Env: publicEnviron(),
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if e.ended, err = reaping.start(e.cmd); err != nil {
		_, _ = line.Close(), answers.Close()
		return nil
	}
	go e.hear(answers)
	if _, listens := <-e.heard; !listens {
		return nil
	}
	return e
}

// hear receives what the process says: 0 for each thing done that it was asked for, and
// each signal.
func (e *ear) hear(answers *os.File) {
	defer close(e.heard)
	defer answers.Close()
	for lines := bufio.NewScanner(answers); lines.Scan(); {
		n, _ := strconv.Atoi(lines.Text())
		e.heard <- syscall.Signal(n)
	}
}

// join puts the process into a group of zklock's session.
func (e *ear) join(group int) {
	if e == nil {
		return
	}
	_, _ = fmt.Fprintln(e.line, group)
	<-e.heard // it is in the group, or it has ended, as the group has
}

// signals is nil without an ear.
func (e *ear) signals() <-chan syscall.Signal {
	if e == nil {
		return nil
	}
	return e.heard
}

// dismiss ends the process, and calls f with the signals that it had still to tell of.
func (e *ear) dismiss(f func(syscall.Signal)) {
	if e == nil {
		return
	}
	_ = e.line.Close()
	_ = syscall.Kill(e.cmd.Process.Pid, syscall.SIGCONT) // the group may be stopped
	defer time.AfterFunc(time.Second, func() { _ = e.cmd.Process.Kill() }).Stop()
	for s := range e.heard {
		f(s)
	}
	for range e.ended {
	}
}

// The kernel gives a signal of the process to its first thread. When that one reads the
// end of the line, it has handled whatever was sent before.
func init() {
	if isEar() {
		runtime.LockOSThread() // the first thread runs this, and main
	}
}

func isEar() bool { return os.Args[0] == guardName && len(os.Args) > 1 }

// listen is the process.
func listen(in io.Reader, out io.Writer) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGTTIN,
		syscall.SIGTTOU, syscall.SIGPIPE)
	heard := make(chan os.Signal, 16)
	notify(heard, typedSignals)
	say := func(n int) { _, _ = fmt.Fprintln(out, n) } // who is gone asks no more
	say(0)
	group := 0
	if _, err := fmt.Fscanln(in, &group); err != nil || syscall.Setpgid(0, group) != nil {
		return
	}
	say(0)
	var telling sync.WaitGroup
	telling.Go(func() {
		for s := range heard {
			say(int(s.(syscall.Signal)))
		}
	})
	_, _ = io.Copy(io.Discard, in)
	signal.Stop(heard) // what came before is in the channel after that
	close(heard)
	telling.Wait()
}
