package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
)

const aboutRun = `CMD runs in its own process group, with zklock's standard input, output
and error and the terminal, and zklock returns CMD's exit code. CMD's environment has
ZKLOCK_PATH, ZKLOCK_NODE and ZKLOCK_TOKEN: the lock, the znode that stands for it, and its
fencing token, which grows with each holder; and ZKLOCK_SESSION. The signals HUP, INT,
QUIT, TERM, USR1, USR2, ALRM, WINCH, TSTP, CONT, TTIN and TTOU are forwarded, and on Linux
RTMIN+1 to RTMAX: HUP, INT, QUIT, TERM, WINCH, TSTP and CONT to CMD's group, the others to
CMD alone. HUP, INT, QUIT and TERM also wake a stopped CMD. At a terminal TTIN and TTOU
have no effect. Nor do PIPE and XFSZ: zklock continues if its messages cannot be written.
Any other signal acts on zklock itself. If a forwarded signal, or Ctrl-C, ends CMD, zklock
ends by it, too; also if CMD catches Ctrl-C, and fails. Signals that were ignored or
blocked when zklock was started have no effect on it, and stay so in CMD.

If CMD runs as another user (sudo), zklock cannot end it when the lock is lost: it says
so, and CMD goes on without the lock.

When CMD ends, the lock is released. Processes that CMD leaves behind in the background
continue without it (with flock(1) they would keep the lock): let CMD wait for them.

When the lock can no longer be relied on, CMD's group gets SIGTERM, and SIGKILL
--kill-after later: both before anybody else can have the lock, provided that zklock
itself is running. This requires a session timeout of at least 4 times (--kill-after +
1s).

The lock is Curator's: the write lock of InterProcessReadWriteLock and, once that is held,
InterProcessMutex (two znodes; ZKLOCK_NODE is the write lock's). It excludes programs that
use either, and runs with -s. With -s it is the read lock, which programs that use a mutex
do not see. Runs with and without -s get the lock in the order in which they came. A
program that uses a mutex can overtake a run that waits for the write lock, and its
fencing token is then greater than the run's. A program that uses several of these locks
must acquire the mutex last, as zklock does, or it can deadlock with a run. With
--semaphore the lock is InterProcessSemaphoreV2, which excludes none of these.

`

// A job is one "zklock run".
type job struct {
	runner
	connection  *connection
	stderr      io.Writer
	nonBlocking bool
	wait        time.Duration
	shared      bool
	exclusive   bool
	semaphore   int
	busyCode    int
	holdAtLeast time.Duration
}

func runCommand(c *connection, stderr io.Writer) *cli.Command {
	j := &job{connection: c, stderr: stderr}
	return &cli.Command{
		Name:         "run",
		Usage:        "run CMD under the lock at PATH",
		UsageText:    "zklock run [FLAGS] PATH [--] CMD [ARG...]",
		Description:  aboutRun + exitCodes,
		StopOnNthArg: firstArg(),
		Flags: append([]cli.Flag{
			&cli.BoolFlag{
				Name: "n", Aliases: []string{"nonblock", "nb"},
				Destination: &j.nonBlocking, Usage: "do not wait if the lock is busy",
			},
			&secondsFlag{
				Name: "w", Aliases: []string{"wait", "timeout"}, Destination: &j.wait,
				HideDefault: true, Usage: "wait at most `SECONDS` for the lock, or " +
					"a duration such as 1m30s",
			},
			&cli.BoolFlag{
				Name: "s", Aliases: []string{"shared"}, Destination: &j.shared,
				Usage: "share the lock with other shared runs: a read lock",
			},
			&cli.BoolFlag{
				Name: "x", Aliases: []string{"e", "exclusive"}, Destination: &j.exclusive,
				Usage: "do not share the lock: the default",
			},
			&cli.IntFlag{
				Name: "semaphore", Destination: &j.semaphore, HideDefault: true,
				Usage: "let `N` runs hold it at a time",
			},
			&cli.IntFlag{
				Name: "E", Aliases: []string{"conflict-exit-code"},
				Destination: &j.busyCode, Value: exitNotAcquired,
				Usage: "exit `CODE` if the lock is busy; with 0 print nothing",
			},
			&cli.DurationFlag{
				Name: "hold-at-least", Destination: &j.holdAtLeast, HideDefault: true,
				Usage: "keep the lock for `DURATION` even if CMD ends before: " +
					"for machines whose clocks differ",
			},
		}, j.flags()...),
		Action: j.run,
	}
}

func (j *job) run(ctx context.Context, cmd *cli.Command) (err error) {
	path, argv, err := command(cmd, "PATH")
	if err != nil {
		return err
	}
	defer within(cmd, path, &err)
	if err := j.check(cmd); err != nil {
		return err
	}
	b, err := j.begin(ctx, cmd, j.connection)
	if err != nil {
		return err
	}
	defer b.end()
	client, held, err := j.acquire(b.waiting, cmd, b.to, path)
	b.stop()
	if err == nil && b.waiting.Err() != nil {
		err = context.Cause(b.waiting)
	}
	if client != nil {
		defer client.Close()
	}
	if err != nil {
		return j.notAcquired(b.waiting, err)
	}
	began := time.Now()
	s := &supervision{
		argv: argv, path: path, held: held, client: client, killAfter: j.killAfter,
		signals: b.signals, stderr: j.stderr,
	}
	code, lost, err := s.run()
	if err == nil && lost == nil && s.raise == 0 {
		s.raise = j.keep(began, held.whole, b.signals)
	}
	if gone := held.leave(); gone != nil && lost == nil {
		lost = gone
	}
	if err != nil {
		return err
	}
	return s.outcome(code, lost)
}

func (j *job) check(cmd *cli.Command) error {
	switch {
	case j.nonBlocking && cmd.IsSet("w"):
		return usage("-n and -w exclude each other")
	case cmd.IsSet("w") && j.wait < 0:
		return usage("-w %v: is negative", j.wait)
	case cmd.IsSet("semaphore") && j.semaphore < 1:
		return usage("--semaphore %d: must be 1 or more", j.semaphore)
	case j.exclusive && (j.shared || j.semaphore > 0):
		return usage("-x excludes -s and --semaphore")
	case j.shared && j.semaphore > 0:
		return usage("-s and --semaphore exclude each other")
	case j.busyCode < 0 || j.busyCode > 255:
		return usage("-E %d: must be from 0 to 255", j.busyCode)
	case j.holdAtLeast < 0:
		return usage("--hold-at-least %v: is negative", j.holdAtLeast)
	case j.maxHold > 0 && j.holdAtLeast > j.maxHold:
		return usage("--hold-at-least %v: is above --max-hold %v", j.holdAtLeast,
			j.maxHold)
	}
	return nil
}

// acquire connects and acquires. The client is to be closed also where err is not nil.
func (j *job) acquire(
	ctx context.Context, cmd *cli.Command, to *target, path string,
) (client *recipes.Client, held *holding, err error) {
	began, wait := time.Now(), noLimit
	dialing := ctx
	if cmd.IsSet("w") {
		var cancel context.CancelFunc
		dialing, cancel = context.WithTimeoutCause(ctx, max(j.wait, time.Second),
			recipes.ErrUnavailable)
		defer cancel()
	}
	client, err = to.connect(dialing)
	if err != nil {
		return nil, nil, err
	}
	if err := j.fits(client.SessionTimeout(), "the servers'"); err != nil {
		return client, nil, err
	}
	switch {
	case j.nonBlocking:
		wait = 0
	case cmd.IsSet("w"):
		wait = max(0, j.wait-time.Since(began))
	}
	lock := &wanted{
		path: path, leases: j.semaphore, options: to.lock(cmd, j.options(cmd)),
		limit: j.limit(),
	}
	switch {
	case j.shared:
		lock.kind = shared
	case j.semaphore > 0:
		lock.kind = leased
	}
	held, err = lock.acquire(ctx, client, wait)
	if err == nil && held == nil {
		err = lock.busy(ctx, client)
	}
	held.note(client, began)
	return client, held, err
}

// notAcquired is what zklock returns where it has not got as far as CMD.
func (j *job) notAcquired(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errBusy) && j.busyCode == 0:
		return nil
	case errors.Is(err, errBusy):
		return exit(j.busyCode, "%w", err)
	}
	return signalled(ctx, err)
}

// keep holds the lock until it was held for as long as was asked for, or a signal comes,
// or it is lost. What was typed at the terminal is meant for more than the lock: it is
// returned. Another signal leaves CMD's exit code, which is known.
func (j *job) keep(
	began time.Time, hold *recipes.Hold, signals <-chan os.Signal,
) syscall.Signal {
	select {
	case <-time.After(j.holdAtLeast - time.Since(began)):
	case <-hold.Lost():
	case one := <-signals:
		if slices.Contains(typedSignals, one) {
			return one.(syscall.Signal)
		}
	}
	return 0
}
