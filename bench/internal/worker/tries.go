package worker

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
)

var errGranted = errors.New("a try was granted what another one holds")

// tries has all users try in vain, with patience, and times each try.
func tries(ctx context.Context, t *team) (load.Result, error) {
	users, err := t.users(ctx, t.Sessions*t.Users)
	if err != nil {
		return load.Result{}, err
	}
	if _, can := users[0].lock.(peer.Trier); !can {
		return load.Result{}, peer.ErrUnsupported
	}
	holder, err := t.holder(ctx)
	if err != nil {
		return load.Result{}, err
	}
	began, from := time.Now(), t.startMeter()
	var over atomic.Bool
	timer := time.AfterFunc(t.Time, func() { over.Store(true) })
	defer timer.Stop()
	times := make([][]time.Duration, len(users))
	var g errgroup.Group
	for i, u := range users {
		g.Go(func() (err error) {
			for err == nil && !over.Load() {
				begin := time.Now()
				err = u.tryInVain(t.Patience)
				times[i] = append(times[i], time.Since(begin))
			}
			return err
		})
	}
	err = errors.Join(g.Wait(), holder.lock.Release(holder.ctx))
	all := slices.Sorted(slices.Values(slices.Concat(times...)))
	r := load.Result{
		Ops: int64(len(all)), Took: time.Since(began), Median: &all[len(all)/2],
	}
	from.stop(&r)
	return r, err
}

func (u user) tryInVain(patience time.Duration) error {
	granted, err := u.lock.(peer.Trier).AcquireTimeout(u.ctx, patience)
	if granted {
		return errGranted
	}
	return err
}
