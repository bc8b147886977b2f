package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// drain lets a queue build up behind a holder, and times how it drains.
func drain(ctx context.Context, t *team) (load.Result, error) {
	users, err := t.users(ctx, t.Users)
	if err != nil {
		return load.Result{}, err
	}
	holder, err := t.holder(ctx)
	if err != nil {
		return load.Result{}, err
	}
	q := queueUp(users)
	if err := t.awaitCrowd(ctx, len(users)+1); err != nil {
		return load.Result{}, err
	}
	from, began := t.startMeter(), time.Since(q.began)
	released := holder.lock.Release(holder.ctx)
	if err := errors.Join(released, q.all.Wait()); err != nil {
		return load.Result{}, err
	}
	r := load.Result{
		Ops: int64(len(users)), Took: time.Duration(q.last.Load()) - began,
	}
	from.stop(&r)
	return r, nil
}

// A queue is users who wait.
type queue struct {
	all   errgroup.Group // done once each has had the lock and released it
	began time.Time
	last  atomic.Int64 // when the latest of them got it, in nanoseconds since then
}

// queueUp has all users acquire at once, and release as soon as they hold it.
func queueUp(users []user) *queue {
	q := &queue{began: time.Now()}
	for _, u := range users {
		q.all.Go(func() error {
			if err := u.lock.Acquire(u.ctx); err != nil {
				return err
			}
			q.last.Store(int64(time.Since(q.began)))
			return u.lock.Release(u.ctx)
		})
	}
	return q
}
