package main

import (
	"context"
	"errors"
	"fmt"
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

// container is the owner of a container znode, as the servers tell it.
const container = math.MinInt64

// owned tells whether a znode lives in a session.
func owned(stat *zk.Stat) bool {
	return stat.EphemeralOwner != 0 && stat.EphemeralOwner != container
}

// isSemaphore tells by what is in a directory whether it is a semaphore's.
func isSemaphore(children []string) bool {
	return slices.Contains(children, leasesDir) && slices.Contains(children, gateDir)
}

// isLock tells by what is in a directory whether it is a lock's.
func isLock(children []string) bool {
	return isSemaphore(children) || slices.ContainsFunc(children, participant.MatchString)
}

// The directories of a semaphore: for its leases, and for who stands at the gate.
const (
	leasesDir = "leases"
	gateDir   = "locks"
)

// unreadable says which permission is missing, where that is what err says.
func unreadable(path string, err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		return fmt.Errorf("%w (the session lacks READ on %s)", err, path)
	}
	return err
}

// A walk goes through the znodes for what can be locks.
type walk struct {
	client *recipes.Client
	visit  func(path string) error      // of each directory that can be a lock's
	skip   func(path string, err error) // of each that may not be read
}

// down walks from path downwards, in order.
func (w *walk) down(ctx context.Context, path string) error {
	children, _, err := w.client.Children(path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case errors.Is(err, zk.ErrNoAuth):
		w.skip(path, unreadable(path, err))
		return nil
	case err != nil:
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if path != "/" && isLock(children) {
		switch err := w.visit(path); {
		case errors.Is(err, zk.ErrNoAuth):
			w.skip(path, err)
		case err != nil:
			return err
		}
	}
	slices.Sort(children)
	semaphore := isSemaphore(children)
	for _, child := range children {
		inside := semaphore && (child == leasesDir || child == gateDir)
		system := path == "/" && child == "zookeeper"
		if inside || system || participant.MatchString(child) {
			continue
		}
		if err := w.down(ctx, zkpath.Join(path, "/"+child)); err != nil {
			return err
		}
	}
	return nil
}
