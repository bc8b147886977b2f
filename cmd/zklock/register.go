package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
)

const aboutRegister = `CMD runs while the ephemeral znode PATH exists, so others find at
PATH what CMD offers, for as long as it runs. The znode is Curator's PersistentNode, and a
member of the group that PATH is in, as of Curator's GroupMember. If another process has
PATH, zklock says who, and waits for its end. When CMD has ended, the znode is deleted,
and zklock returns CMD's exit code. Signals are as in "zklock run".

When the znode can no longer be relied on (because of an outage, or because somebody has
deleted it), CMD's group gets SIGTERM, and SIGKILL --kill-after later. As soon as the
znode exists again, CMD is started again: this continues forever. If ZooKeeper is
unreachable zklock waits, and says so, and when it is back. In an outage SIGTERM comes
before the servers can delete the znode, but CMD can end later than that. So for one CMD
at a time use "zklock run" or "zklock lead".

With --keep, CMD continues without the znode, which is created again in the background:
for a service that can serve while ZooKeeper is unreachable. ZKLOCK_TOKEN is then that of
the znode with which CMD was started.

`

// A registrant is one "zklock register".
type registrant struct {
	service
	keep bool
}

func registerCommand(c *connection, stderr io.Writer) *cli.Command {
	r := &registrant{service: service{
		runner: runner{noMargin: true}, name: "register", connection: c, stderr: stderr,
	}}
	return &cli.Command{
		Name:         r.name,
		Usage:        "run CMD while the znode PATH says so",
		UsageText:    "zklock register [FLAGS] PATH [--] CMD [ARG...]",
		Description:  aboutRegister + exitCodes,
		StopOnNthArg: firstArg(),
		Flags: []cli.Flag{
			&cli.BoolFlag{
				Name: "keep", Destination: &r.keep,
				Usage: "let CMD continue if the znode is lost",
			},
			r.killFlag("znode"), r.dataFlag(),
		},
		Action: r.run,
	}
}

func (r *registrant) run(ctx context.Context, cmd *cli.Command) error {
	return r.under(ctx, cmd, func(b *beginning, each *supervision) error {
		data := holderData(each.argv)
		if cmd.IsSet("data") {
			data = []byte(r.data)
		}
		each.outlasts = r.keep
		return r.stay(b, data, each)
	})
}

// stay runs CMD each time that the znode is there, until CMD has ended while it was, or a
// signal comes.
func (r *registrant) stay(b *beginning, data []byte, each *supervision) error {
	for {
		s := *each
		lost, err := r.serve(b, data, &s)
		if lost == nil {
			return signalled(b.waiting, err)
		}
		r.say(s.path, "%s", s.end(lost))
		select {
		case <-b.waiting.Done():
		case <-time.After(restPause):
		}
	}
}

// serve runs CMD while a znode is there. lost is why it was ended for that.
func (r *registrant) serve(
	b *beginning, data []byte, s *supervision,
) (lost error, err error) {
	node, err := recipes.NewPersistentNode(s.client, s.path, data,
		recipes.WithACL(b.to.acl))
	if err != nil {
		return nil, err
	}
	defer leave(node)
	hold, err := r.await(b.waiting, node)
	if err != nil {
		return nil, err
	}
	b.stop()
	defer b.resume()
	if b.waiting.Err() != nil {
		return nil, context.Cause(b.waiting)
	}
	r.say(s.path, "registered")
	over, end := context.WithCancel(context.Background())
	defer end()
	go r.follow(over, node, hold)
	s.held = &holding{whole: hold, hold: hold}
	code, lost, err := s.run()
	switch {
	case err != nil:
		return nil, err
	case lost != nil && !s.ending:
		return lost, nil
	}
	return nil, s.outcome(code, nil)
}

// busyAfter is for how long nothing is said of another's znode at the path.
const busyAfter = time.Second

// await waits until the znode is there, and says who has the path, once.
func (r *registrant) await(
	ctx context.Context, node *recipes.PersistentNode,
) (*recipes.Hold, error) {
	for first := true; ; first = false {
		within, cancel := ctx, context.CancelFunc(func() {})
		if first {
			within, cancel = context.WithTimeout(ctx, busyAfter)
		}
		err := node.Await(within)
		over := within.Err() != nil
		cancel()
		switch hold := node.Hold(); {
		case err == nil && hold != nil:
			return hold, nil
		case err == nil: // it was lost again meanwhile
		case !over || ctx.Err() != nil:
			return nil, err
		case errors.Is(err, recipes.ErrBusy):
			r.say(node.Path(), "still waiting: %v", err)
		}
	}
}

// follow takes note of losses while CMD runs. With the znode CMD ends, or the znode comes
// back.
func (r *registrant) follow(
	ctx context.Context, node *recipes.PersistentNode, hold *recipes.Hold,
) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hold.Lost():
		}
		if !r.keep {
			leave(node) // nobody is to find a CMD that is being ended
			return
		}
		r.say(node.Path(), "creating the znode again: %v", hold.Err())
		if hold = r.again(ctx, node); hold == nil {
			return
		}
		r.say(node.Path(), "registered again")
	}
}

// again waits until the znode is there again; nil: CMD has ended before. What no retry
// mends may be mended by somebody.
func (r *registrant) again(
	ctx context.Context, node *recipes.PersistentNode,
) *recipes.Hold {
	for {
		hold, err := r.await(ctx, node)
		if err == nil || ctx.Err() != nil {
			return hold
		}
		r.say(node.Path(), "CMD runs on without the znode: %v", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restMost):
		}
	}
}

// leave deletes the znode. If ZooKeeper is out of reach, it goes with the session.
func leave(node *recipes.PersistentNode) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = node.Close(ctx)
}
