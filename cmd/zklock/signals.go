package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// ending are the signals that end zklock while no command runs.
var ending = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// passed are the others that go on to the command.
var passed = []os.Signal{
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGTSTP,
	syscall.SIGCONT,
}

// notify catches signals, but for those that zklock was told to ignore (nohup). The
// command ignores the same.
func notify(to chan<- os.Signal, signals []os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}

// A caught is the cause of a ctx that a signal ended.
type caught struct{ signal syscall.Signal }

func (c caught) Error() string { return fmt.Sprintf("signal: %v", c.signal) }

// untilSignal calls cancel when a signal comes, until stop is called. What comes after
// that is left in the channel.
func untilSignal(
	cancel context.CancelCauseFunc, signals <-chan os.Signal,
) (stop func()) {
	stopped := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		select {
		case s := <-signals:
			cancel(caught{s.(syscall.Signal)})
		case <-stopped:
		}
	})
	return sync.OnceFunc(func() {
		close(stopped)
		running.Wait()
	})
}

// signalled is err, or where a signal has ended ctx its exit code.
func signalled(ctx context.Context, err error) error {
	if by := (caught{}); errors.As(context.Cause(ctx), &by) {
		return exitWith(exitSignal + int(by.signal))
	}
	return err
}

// die ends zklock as the same signal has ended its command: a shell goes on with a script
// after a command that merely returned 130, and so would not see that Ctrl-C was meant
// for all of it.
func die(s syscall.Signal) {
	signal.Reset(s)
	_ = syscall.Kill(0, s)
	time.Sleep(time.Second) // another thread may be the one that gets it
}
