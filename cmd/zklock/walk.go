package main

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// participant matches the names of znodes that stand in a queue: those that Inspect
// shows. They are ephemeral, and have no children. A sequence number that has wrapped is
// negative.
var participant = regexp.MustCompile(
	`(lock-|__READ__|__WRIT__|lease-|latch-|__lock__)([0-9]{10}|-[0-9]{9,10})$`,
)

// owned tells whether a znode lives in a session.
func owned(stat *zk.Stat) bool {
	const container = math.MinInt64
	return stat.EphemeralOwner != 0 && stat.EphemeralOwner != container
}

// walk calls visit for each directory at path and below that can be a lock's, in order.
func walk(
	ctx context.Context, client *recipes.Client, path string,
	visit func(path string) error,
) error {
	children, _, err := client.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	has := func(child string) bool { return slices.Contains(children, child) }
	semaphore := has("leases") && has("locks")
	queue := slices.ContainsFunc(children, participant.MatchString)
	if path != "/" && (semaphore || queue) {
		if err := visit(path); err != nil {
			return err
		}
	}
	slices.Sort(children)
	for _, child := range children {
		inside := semaphore && (child == "leases" || child == "locks")
		system := path == "/" && child == "zookeeper"
		if inside || system || participant.MatchString(child) {
			continue
		}
		if err := walk(ctx, client, zkpath.Join(path, "/"+child), visit); err != nil {
			return err
		}
	}
	return nil
}
