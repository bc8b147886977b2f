package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
)

const aboutRevoke = `It sends the request that Curator's Revoker sends. Only programs that
made their lock revocable receive it. "zklock run" does not: end it with a signal. NODE is
a znode from "zklock ls". A missing znode is no error.

Its data become __REVOKE__, whether its program listens or not: who it is, is printed
before, and cannot be read there any more. zklock then waits for it to leave, at most for
--wait; if it stays, the exit code is 1.

`

// A request is one "zklock revoke".
type request struct {
	wait   time.Duration
	stdout io.Writer
}

func revokeCommand(c *connection, stdout io.Writer) *cli.Command {
	r := &request{stdout: stdout}
	return &cli.Command{
		Name:        "revoke",
		Usage:       "ask the holder or waiter whose znode is NODE to release or leave",
		UsageText:   "zklock revoke [FLAGS] NODE",
		Description: aboutRevoke + exitCodes,
		Flags: []cli.Flag{&cli.DurationFlag{
			Name: "wait", Destination: &r.wait, Value: 10 * time.Second,
			Usage: "wait at most `DURATION` for it to leave; 0: do not wait",
		}},
		Metadata: map[string]any{"argument": "NODE"},
		Action:   onPath(c, r.run),
	}
}

func (r *request) run(ctx context.Context, client *recipes.Client, node string) error {
	if r.wait < 0 {
		return usage("--wait %v: is negative", r.wait)
	}
	asking, cancel := context.WithTimeoutCause(ctx, answerLimit, recipes.ErrUnavailable)
	defer cancel()
	m, err := findMember(asking, client, node)
	switch {
	case err != nil:
		return err
	case m == nil:
		return r.say(node, "it has gone")
	case m.row.Session == queues.NoSession:
		return usage("it belongs to no session, so nobody can release it: zklock evict " +
			"deletes it")
	}
	if err := r.say(node, m.String()); err != nil {
		return err
	}
	if err := recipes.AttemptRevoke(asking, client, node); err != nil || r.wait == 0 {
		return err
	}
	return r.await(ctx, m)
}

// await waits until the znode has gone.
func (r *request) await(ctx context.Context, m *member) error {
	over := time.After(r.wait)
	for {
		_, _, changed, err := m.client.Unwrap().ExistsW(m.client.ServerPath(m.node))
		if err != nil {
			return err
		}
		stat, err := m.isThere()
		switch {
		case err != nil:
			return err
		case stat == nil:
			return r.say(m.node, "it has left")
		}
		select {
		case <-changed:
		case <-over:
			return exit(exitFindings, "after %v it is still there: its program does not "+
				"listen, or takes its time; its data are %s now", r.wait, revokeRequest)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *request) say(node, what string) error {
	_, err := fmt.Fprintf(r.stdout, "%s: %s\n", text.Printable(node),
		text.Printable(what))
	return err
}
