package main

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

const aboutRevoke = `It sends the request that Curator's Revoker sends. Only programs that
made their lock revocable receive it. "zklock run" does not: end it with a signal. NODE is
a znode from "zklock ls"; its data become __REVOKE__. A missing znode is no error.

`

func revokeCommand(c *connection) *cli.Command {
	return &cli.Command{
		Name:        "revoke",
		Usage:       "ask the holder or waiter whose znode is NODE to release or leave",
		UsageText:   "zklock revoke [FLAGS] NODE",
		Description: aboutRevoke + exitCodes,
		Metadata:    map[string]any{"argument": "NODE"},
		Action: onPath(c, func(
			ctx context.Context, client *recipes.Client, node string,
		) error {
			ctx, cancel := context.WithTimeoutCause(
				ctx, answerLimit, recipes.ErrUnavailable,
			)
			defer cancel()
			return revoke(ctx, client, node)
		}),
	}
}

// revoke refuses to overwrite what is no znode of a lock.
func revoke(ctx context.Context, client *recipes.Client, node string) error {
	refused := usage("that is no znode of a lock; \"zklock ls\" lists them")
	if _, name := zkpath.Split(node); !standsInQueue(name) {
		return refused
	}
	switch _, stat, err := client.Get(node); {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return err
	case !owned(stat):
		return refused
	}
	return recipes.AttemptRevoke(ctx, client, node)
}
