package worker

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// A tally is how often one user has had the lock. It fills a line of the processor's
// cache, so that users do not slow one another down by counting.
type tally struct {
	atomic.Int64
	_ [56]byte
}

// cycle has all users acquire and release until the time is up.
func cycle(ctx context.Context, t *team) (load.Result, error) {
	users, err := t.users(ctx, t.Sessions*t.Users)
	if err != nil {
		return load.Result{}, err
	}
	var over atomic.Bool
	tallies := make([]tally, len(users))
	g, ctx := errgroup.WithContext(ctx)
	for i, u := range users {
		g.Go(func() error {
			for !over.Load() {
				if err := u.once(t.Reads); err != nil {
					return err
				}
				tallies[i].Add(1)
			}
			return nil
		})
	}
	var r load.Result
	g.Go(func() (err error) {
		defer over.Store(true)
		r, err = t.observe(ctx, tallies)
		return err
	})
	return r, g.Wait()
}

// once has a user get the lock once, or, reads times in a thousand, the read lock.
func (u user) once(reads int) error {
	lock := u.lock
	if reads > 0 && rand.IntN(1000) < reads {
		lock = u.read
	}
	if err := lock.Acquire(u.ctx); err != nil {
		return err
	}
	return lock.Release(u.ctx)
}

// observe counts what is done between the end of the warm-up and that of the time.
func (t *team) observe(ctx context.Context, tallies []tally) (load.Result, error) {
	if err := sleep(ctx, t.WarmUp); err != nil {
		return load.Result{}, err
	}
	count := func() (sum int64) {
		for i := range tallies {
			sum += tallies[i].Load()
		}
		return sum
	}
	begin, from := t.readTogether(count)
	if err := sleep(ctx, t.Time); err != nil {
		return load.Result{}, err
	}
	for count()-begin < t.Least {
		if err := sleep(ctx, time.Millisecond); err != nil {
			return load.Result{}, err
		}
	}
	end, to := t.readTogether(count)
	r := load.Result{Ops: end - begin, Took: to.at.Sub(from.at)}
	from.until(to, &r)
	return r, nil
}
