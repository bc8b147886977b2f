package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
)

const aboutLead = `CMD runs while this machine leads, and is ended, as by "zklock run",
when the leadership can no longer be relied on. This continues forever: when CMD has
ended, or the leadership was lost, zklock rejoins the election behind the others. A signal
ends zklock; CMD gets it too, and zklock returns CMD's exit code, or ends by the signal if
that has ended CMD. If CMD cannot be started (because its file is being replaced, for
instance), zklock steps down, says so once, and stands again after 1 s, 2 s, 4 s and so
on, up to a minute; with --exit-on-error it exits (126, 127). If ZooKeeper is unreachable
zklock waits, and says so, and when it is back.

The election is Curator's LeaderSelector.

`

// A candidate is one "zklock lead".
type candidate struct {
	service
	exitOnError bool
}

func leadCommand(c *connection, stderr io.Writer) *cli.Command {
	l := &candidate{service: service{name: "lead", connection: c, stderr: stderr}}
	return &cli.Command{
		Name:         l.name,
		Usage:        "run CMD while this machine leads, forever",
		UsageText:    "zklock lead [FLAGS] PATH [--] CMD [ARG...]",
		Description:  aboutLead + exitCodes,
		StopOnNthArg: firstArg(),
		Flags: append([]cli.Flag{
			&cli.BoolFlag{
				Name: "exit-on-error", Destination: &l.exitOnError,
				Usage: "exit if CMD cannot be started, instead of trying again",
			},
		}, l.flags()...),
		Action: l.run,
	}
}

func (l *candidate) run(ctx context.Context, cmd *cli.Command) error {
	return l.under(ctx, cmd, func(b *beginning, each *supervision) error {
		selector, err := recipes.NewLeaderSelector(each.client, each.path,
			append(b.to.lock(cmd, l.options(cmd)), l.limit()...)...)
		if err != nil {
			return err
		}
		each.background = true
		return l.stand(b, selector, each)
	})
}

// stand stands for election until a signal comes. While no command runs, a signal ends
// that. A machine that cannot start CMD steps down, and stands again after a while.
func (l *candidate) stand(
	b *beginning, selector *recipes.LeaderSelector, each *supervision,
) error {
	pause := restPause
	var final error // of a term that a signal has ended
	for {
		err := selector.Run(b.waiting, func(
			ctx context.Context, term *recipes.Hold,
		) error {
			b.stop()
			defer b.resume()
			if ctx.Err() != nil {
				return nil
			}
			s := *each
			s.held = &holding{whole: term, hold: term}
			err := l.term(&s)
			if s.ending {
				final = err
				b.cancel(err)
			} else if err == nil {
				pause = restPause
			}
			return err
		})
		switch {
		case final != nil:
			return final
		case l.exitOnError || !unable(err):
			b.stop()
			return signalled(b.waiting, err)
		case pause == restPause:
			l.say(each.path, "stepped down, and trying again from time to time: %v", err)
		}
		select {
		case <-b.waiting.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, restMost)
	}
}

// unable tells whether an error says that CMD could not be started.
func unable(err error) bool {
	told := &exitError{}
	return errors.As(err, &told) &&
		(told.code == exitNotExecutable || told.code == exitNotFound)
}

// restPause keeps a command that ends at once from keeping all machines busy. A machine
// that cannot start it rests for longer and longer, up to restMost.
const (
	restPause = time.Second
	restMost  = time.Minute
)

// term runs CMD while this machine leads. An error ends the term, and zklock unless CMD
// could not be started.
func (l *candidate) term(s *supervision) error {
	l.say(s.path, "leading as %s", s.held.hold.Path())
	code, lost, err := s.run()
	switch {
	case err != nil:
		return err
	case s.ending && s.raise != 0:
		return endedBy(s.raise)
	case s.ending:
		return &exitError{code: code}
	case lost != nil:
		l.say(s.path, "%s", s.end(lost))
		return nil
	}
	l.say(s.path, "CMD has ended with exit code %d", code)
	select {
	case <-time.After(restPause):
	case <-s.held.whole.Lost():
	}
	return nil
}
