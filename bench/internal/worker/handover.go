package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// handOver has two users, of a session each, hand the lock over to one another, and times
// it from the call of Release to the return of the Acquire that has waited.
func handOver(ctx context.Context, t *team) (load.Result, error) {
	users, err := t.users(ctx, 2)
	if err != nil {
		return load.Result{}, err
	}
	var times []time.Duration
	var sum time.Duration
	warm := time.Now().Add(t.WarmUp)
	for end := warm.Add(t.Time); time.Now().Before(end) || len(times) == 0; {
		began := time.Now()
		d, err := t.handOverOnce(ctx, users[0], users[1])
		if err != nil {
			return load.Result{}, err
		}
		if began.After(warm) {
			times, sum = append(times, d), sum+d
		}
		slices.Reverse(users)
	}
	slices.Sort(times)
	return load.Result{
		Ops: int64(len(times)), Took: sum, Median: &times[len(times)/2],
	}, nil
}

func (t *team) handOverOnce(
	ctx context.Context, from, to user,
) (time.Duration, error) {
	if err := from.lock.Acquire(from.ctx); err != nil {
		return 0, err
	}
	type grant struct {
		at  time.Time
		err error
	}
	granted := make(chan grant, 1)
	go func() {
		err := to.lock.Acquire(to.ctx)
		granted <- grant{time.Now(), err}
	}()
	const quiet = 20 // times as long as a waiter takes
	if err := t.awaitQueue(ctx, 2, quiet*t.Settle); err != nil {
		return 0, err
	}
	began := time.Now()
	released := from.lock.Release(from.ctx)
	g := <-granted
	if err := errors.Join(released, g.err); err != nil {
		return 0, err
	}
	return g.at.Sub(began), to.lock.Release(to.ctx)
}
