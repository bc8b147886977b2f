package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/zkrecipes/recipes/cmd/zklock/internal/inherited"
)

// ending are the signals that end zklock while no command runs.
var ending = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// forwarded are the others that go on to the command, and so do those of realTime.
var forwarded = []os.Signal{
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGTSTP,
	syscall.SIGCONT, syscall.SIGTTIN, syscall.SIGTTOU,
}

// ofTerminal are the signals of forwarded that a terminal sends to those in the
// background who use it.
var ofTerminal = []os.Signal{syscall.SIGTTIN, syscall.SIGTTOU}

// ignoredAtStart are the signals that zklock was told to ignore, as by nohup(1). They
// stay ignored, and CMD ignores the same.
var ignoredAtStart = inherited.Ignored()

// blockedAtStart are the signals that were blocked when zklock was started. They have no
// effect on zklock, and CMD is started with the same: see startBlocked.
var blockedAtStart = inherited.Blocked()

// settle is called before anything else. The runtime has replaced what zklock has
// inherited. SIGCHLD is zklock's own: without it nobody can wait for a child. SIGURG is
// the runtime's, and who does not catch it ignores it anyway. The runtime ignores neither
// SIGPROF nor the signals of a fault, such as SIGSEGV: CMD does not ignore them either.
//
// SIGPIPE is caught, and nothing is done about it: Go ends a program that writes where
// nobody reads, and a leader is not to end because nobody reads its messages. Whether it
// comes of that or of kill(1), nobody can tell. So are the signals that were blocked,
// since the runtime does not leave all of them so. What the runtime drops silently ends
// zklock, as it would end flock(1).
func settle() {
	for _, s := range ignoredAtStart {
		if s != syscall.SIGCHLD && s != syscall.SIGURG {
			signal.Ignore(s)
		}
	}
	nobody := make(chan os.Signal, 1)
	for _, s := range blockedAtStart {
		signal.Notify(nobody, s)
	}
	notify(nobody, []os.Signal{syscall.SIGPIPE})
	plain(syscall.SIGQUIT)
	plain(dropped...)
}

// release catches no more for those who have called notify.
func release(to chan<- os.Signal) {
	signal.Stop(to)
	plain(syscall.SIGQUIT)
}

// notify catches signals, but for those that were ignored or blocked when zklock was
// started.
func notify(to chan<- os.Signal, signals []os.Signal) {
	for _, s := range signals {
		if actsOn(s.(syscall.Signal)) {
			signal.Notify(to, s)
		}
	}
}

// actsOn tells whether a signal was left to zklock by who has started it.
func actsOn(s syscall.Signal) bool {
	return !slices.Contains(ignoredAtStart, s) && !slices.Contains(blockedAtStart, s)
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

// withSignals returns a ctx that ends when a signal comes, for a command that has nobody
// to pass it on to. stop ends that, and the ctx.
func withSignals(parent context.Context) (
	ctx context.Context, cancel context.CancelCauseFunc, stop func(),
) {
	signals := make(chan os.Signal, 1)
	notify(signals, ending)
	ctx, cancel = context.WithCancelCause(parent)
	unheard := untilSignal(cancel, signals)
	return ctx, cancel, func() {
		unheard()
		cancel(nil)
		release(signals)
	}
}

// signalled is err, or the end by the signal that has ended ctx.
func signalled(ctx context.Context, err error) error {
	if by := (caught{}); errors.As(context.Cause(ctx), &by) {
		return endedBy(by.signal)
	}
	return err
}

// endedBy ends zklock by a signal, without a word.
func endedBy(s syscall.Signal) error {
	return &exitError{code: exitSignal + int(s), raise: s}
}

// die ends zklock by a signal: a shell goes on with a script after a command that merely
// returned 130, and so would not see that Ctrl-C was meant for all of it. It returns if
// the signal has no effect, as on the first process of a container.
func die(s syscall.Signal) {
	if os.Getpid() == 1 {
		return
	}
	restoreDefault(s)
	_ = syscall.Kill(syscall.Getpid(), s)
	time.Sleep(time.Second) // another thread may be the one that gets it
}
