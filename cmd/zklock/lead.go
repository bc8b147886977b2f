package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
)

const aboutLead = `CMD runs while this machine leads, and is ended, as by "zklock run",
when the leadership can no longer be relied on. This continues forever: when CMD has
ended, or the leadership was lost, zklock rejoins the election behind the others. Only a
signal ends zklock; CMD gets it too, and zklock returns CMD's exit code. If ZooKeeper is
unreachable zklock waits, and reports that.

The election is Curator's LeaderSelector.

`

// A candidate is one "zklock lead".
type candidate struct {
	runner
	connection *connection
	stderr     io.Writer
}

func leadCommand(c *connection, stderr io.Writer) *cli.Command {
	l := &candidate{connection: c, stderr: stderr}
	return &cli.Command{
		Name:         "lead",
		Usage:        "run CMD while this machine leads, forever",
		UsageText:    "zklock lead [FLAGS] PATH [--] CMD [ARG...]",
		Description:  aboutLead + exitCodes,
		StopOnNthArg: firstArg(),
		Flags:        l.flags(),
		Action:       l.run,
	}
}

func (l *candidate) run(ctx context.Context, cmd *cli.Command) (err error) {
	path, argv, err := command(cmd, "PATH")
	if err != nil {
		return err
	}
	defer within(cmd, path, &err)
	b, err := l.begin(ctx, cmd, l.connection)
	if err != nil {
		return err
	}
	defer b.end()
	client, err := l.connect(b.waiting, b.to, path)
	if err != nil {
		return signalled(b.waiting, err)
	}
	defer client.Close()
	if err := l.fits(client.SessionTimeout(), "the servers'"); err != nil {
		return err
	}
	selector, err := recipes.NewLeaderSelector(client, path,
		append(b.to.lock(cmd, l.options(cmd)), l.limit()...)...)
	if err != nil {
		return err
	}
	return l.stand(b, selector, &supervision{
		argv: argv, path: path, client: client, killAfter: l.killAfter, stderr: l.stderr,
		signals: b.signals, background: true,
	})
}

// stand stands for election until a signal comes. While no command runs, a signal ends
// that.
func (l *candidate) stand(
	b *beginning, selector *recipes.LeaderSelector, each *supervision,
) error {
	err := selector.Run(b.waiting, func(ctx context.Context, term *recipes.Hold) error {
		b.stop()
		if ctx.Err() != nil {
			return nil
		}
		s := *each
		s.held = &holding{whole: term, hold: term}
		err := l.term(&s)
		b.resume()
		return err
	})
	b.stop()
	return signalled(b.waiting, err)
}

// restPause keeps a command that ends at once from keeping all machines busy.
const restPause = time.Second

// term runs CMD while this machine leads. An error ends zklock.
func (l *candidate) term(s *supervision) error {
	say(l.stderr, fmt.Sprintf("lead %s: leading as %s", s.path, s.held.hold.Path()))
	code, lost, err := s.run()
	switch {
	case err != nil:
		return err
	case s.ending:
		return &exitError{code: code}
	case lost != nil:
		say(l.stderr, fmt.Sprintf("lead %s: CMD was ended: %v", s.path, whyEnded(lost)))
		return nil
	}
	say(l.stderr, fmt.Sprintf("lead %s: CMD has ended with exit code %d", s.path, code))
	select {
	case <-time.After(restPause):
	case <-s.held.whole.Lost():
	}
	return nil
}

// connect waits for ZooKeeper for as long as it takes.
func (l *candidate) connect(
	ctx context.Context, to *target, path string,
) (*recipes.Client, error) {
	for {
		client, err := to.connect(ctx)
		if err == nil || ctx.Err() != nil || codeOf(err) != exitUnavailable {
			return client, err
		}
		say(l.stderr, fmt.Sprintf("lead %s: still waiting: %v", path, err))
	}
}
