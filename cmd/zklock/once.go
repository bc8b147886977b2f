package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
)

const aboutOnce = `For cron: start it on any number of machines, and CMD runs on one of
them, once in each period. KEY is a path. The machine that runs CMD returns its exit code;
the others exit 0 as soon as they know that CMD has run.

A period of whole days begins at midnight in the machine's time zone (TZ), as cron has it;
days are counted from 1970 on. Other periods are counted from 1970 on by UTC: one of 1h
begins at each full hour of UTC, which is half past the hour in India. A machine whose
clock differs from ZooKeeper's by more than half a period does not take part (70). One
that cannot reach ZooKeeper waits for it as long as a period lasts, or for
--connect-timeout.

Without --retry a period is used up when CMD starts, so it starts at most once: if the
machine dies, the lock is lost, or CMD fails, nothing more happens in that period. A CMD
that cannot be started (126, 127) is another machine's turn. With
--retry it is used up when CMD has returned 0. After a failure another machine runs CMD
again at once, if one is waiting, otherwise the next one that comes in that period. A CMD
whose machine died in the middle has run in part, and is run again after the session
timeout. The record is in the znode KEY/once. If it cannot belong to this job, because it
is from the future or of another --per, zklock ends with an error (70) before CMD starts.

`

// An occasion is one "zklock once".
type occasion struct {
	runner
	connection *connection
	stderr     io.Writer
	per        time.Duration
	retry      bool
}

func onceCommand(c *connection, stderr io.Writer) *cli.Command {
	o := &occasion{connection: c, stderr: stderr}
	return &cli.Command{
		Name:         "once",
		Usage:        "run CMD once in each period, on one of many machines",
		UsageText:    "zklock once --per DURATION [FLAGS] KEY [--] CMD [ARG...]",
		Description:  aboutOnce + exitCodes,
		StopOnNthArg: firstArg(),
		Flags: append([]cli.Flag{
			&cli.DurationFlag{
				Name: "per", Destination: &o.per, HideDefault: true,
				Usage: "run once in each `DURATION`, of whole seconds",
			},
			&cli.BoolFlag{
				Name: "retry", Destination: &o.retry,
				Usage: "run CMD again, here or elsewhere, if it failed or was cut short",
			},
		}, o.flags()...),
		Action: o.run,
	}
}

func (o *occasion) run(ctx context.Context, cmd *cli.Command) (err error) {
	started := time.Now()
	key, argv, err := command(cmd, "KEY")
	if err != nil {
		return err
	}
	defer within(cmd, key, &err)
	if !cmd.IsSet("per") {
		return usage("--per is missing")
	}
	if !isPeriod(o.per) {
		return usage("--per %v: must be a whole number of seconds, 1s or more", o.per)
	}
	if isLocal(o.per) && errZone != nil {
		return errZone
	}
	b, err := o.begin(ctx, cmd, o.connection)
	if err != nil {
		return err
	}
	defer b.end()
	if !cmd.IsSet("connect-timeout") {
		b.to.connectTimeout = o.per
	}
	client, err := o.connect(b, key)
	if err != nil {
		return signalled(b.waiting, err)
	}
	defer client.Close()
	if err := o.fits(client.SessionTimeout(), "the servers'"); err != nil {
		return err
	}
	notes := &record{
		client: client, key: key, per: o.per, now: periodOf(started, o.per),
		acl: b.to.acl,
	}
	held, err := o.turn(b, cmd, notes)
	b.stop()
	switch {
	case errors.Is(err, errDone):
		return nil
	case err == nil && b.waiting.Err() != nil:
		err = context.Cause(b.waiting)
	}
	if err != nil {
		return signalled(b.waiting, err)
	}
	return o.take(notes, &supervision{
		argv: argv, path: key, held: held, client: client, killAfter: o.killAfter,
		signals: b.signals, stderr: o.stderr,
	})
}

// connect says that it waits, once, if it does so for longer than one would expect.
func (o *occasion) connect(b *beginning, key string) (*recipes.Client, error) {
	told := time.AfterFunc(defaultConnectTimeout, func() {
		say(o.stderr, fmt.Sprintf("once %s: still waiting for ZooKeeper", key))
	})
	defer told.Stop()
	return b.to.connect(b.waiting)
}

// errDone says that the period needs CMD no more.
var errDone = errors.New("CMD has run in this period")

// turn waits until it is this machine's turn to run CMD; errDone where it will not be.
func (o *occasion) turn(
	b *beginning, cmd *cli.Command, notes *record,
) (*holding, error) {
	ctx, cancel := context.WithCancelCause(b.waiting)
	defer cancel(nil)
	go notes.follow(ctx, func(m mark) {
		if !m.Starting && o.settled(m, notes.now) {
			cancel(errDone)
		}
	})
	before := time.Now()
	lock := &wanted{
		path: notes.key, kind: simple, options: b.to.lock(cmd, o.options(cmd)),
		limit: o.limit(),
	}
	held, err := lock.acquire(ctx, notes.client, noLimit)
	if err != nil {
		o.tellHolder(b, lock, notes.client)
		return nil, err
	}
	held.note(notes.client, before)
	if err := notes.checkClock(held.hold, before, o.per/2); err != nil {
		return nil, err
	}
	m, err := notes.read()
	if err == nil && o.settled(m, notes.now) {
		err = errDone
	}
	return held, err
}

// tellHolder says behind whom a run waited that a signal has ended.
func (o *occasion) tellHolder(b *beginning, lock *wanted, client *recipes.Client) {
	if by := (caught{}); errors.As(context.Cause(b.waiting), &by) {
		if who := lock.holder(context.Background(), client); who != "" {
			say(o.stderr, fmt.Sprintf("once %s: %v: %s", lock.path, errBusy, who))
		}
	}
}

// settled tells whether nobody has to run CMD in a period any more.
func (o *occasion) settled(m mark, period int64) bool {
	return m.Period > period || m.Period == period && (m.State == done || !o.retry)
}

// take runs CMD, and notes that it begins and how it ends. It begins when it was started:
// what could not be started is another machine's turn.
func (o *occasion) take(notes *record, s *supervision) error {
	takeBack, err := notes.begin(s.held.hold)
	if err != nil {
		return fmt.Errorf("record that CMD begins: %w", err)
	}
	var began sync.WaitGroup // until it is noted that CMD has begun
	begun := false
	note := func(what string, f func() error) {
		if err := f(); err != nil && s.held.whole.Err() == nil {
			say(s.stderr, fmt.Sprintf("once %s: %s, which could not be noted: %v",
				notes.key, what, err))
		}
	}
	s.begun = func() {
		begun = true
		began.Go(func() {
			note("CMD has begun", func() error {
				return notes.note(s.held.hold, mark{State: started})
			})
		})
	}
	code, lost, err := s.run()
	began.Wait()
	switch {
	case !begun:
		note("CMD has not begun", takeBack)
	case lost == nil:
		m := mark{State: done, Code: code}
		if code != 0 {
			m.State = failed
		}
		note(fmt.Sprintf("CMD has returned %d", code), func() error {
			return notes.note(s.held.hold, m)
		})
	}
	if gone := s.held.leave(); gone != nil && lost == nil {
		lost = gone
	}
	if err != nil {
		return err
	}
	return s.outcome(code, lost)
}
