package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/zkpath"
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
	skip   func(path string, err error) // of each that cannot be read
	most   int                          // how many znodes are looked at
	each   int                          // how many of them in one directory
	looked int
	left   int // how many were not, and what is below them
}

// down walks from path downwards, in order.
func (w *walk) down(ctx context.Context, path string) error {
	w.looked++
	children, _, err := w.client.Children(path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return w.without(path, unreadable(path, err))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if lock := queues.LockAt(path, children); lock != "" {
		if err := w.visit(lock); err != nil {
			if err := w.without(path, err); err != nil {
				return err
			}
		}
	}
	below, more := cut(queues.Below(path, children), w.each)
	w.left += more
	for i, child := range below {
		if w.looked >= w.most {
			w.left += len(below) - i
			return nil
		}
		if err := w.down(ctx, zkpath.Join(path, "/"+child)); err != nil {
			return err
		}
	}
	return nil
}

// without skips a directory that may not be read, or whose list cannot be: one that is
// too long for the client, or for a server, which hangs up. What is no error of the
// directory alone is returned.
func (w *walk) without(path string, err error) error {
	if !errors.Is(err, zk.ErrNoAuth) && !outcome.IsReplyTooLong(outcome.Named(err)) {
		if codeOf(err) != exitUnavailable {
			return err
		}
		_, _, away := w.client.Unwrap().Exists(w.client.ServerPath(path))
		if away != nil {
			return err
		}
	}
	w.skip(path, err)
	return nil
}
