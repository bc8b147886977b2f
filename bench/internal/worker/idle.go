package worker

import (
	"context"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// idle measures what sessions cost that have one waiter each, while nothing happens.
func idle(ctx context.Context, t *team) (load.Result, error) {
	users, err := t.users(ctx, t.Sessions)
	if err != nil {
		return load.Result{}, err
	}
	if _, err := t.holder(ctx); err != nil {
		return load.Result{}, err
	}
	q := queueUp(users)
	if err := t.awaitCrowd(ctx, len(users)+1); err != nil {
		return load.Result{}, err
	}
	if err := sleep(ctx, t.WarmUp); err != nil {
		return load.Result{}, err
	}
	from := t.startMeter()
	if err := sleep(ctx, t.Time); err != nil {
		return load.Result{}, err
	}
	r := load.Result{
		Ops:  int64(len(users)) * int64(t.Time/time.Second),
		Took: time.Since(from.at),
	}
	from.stop(&r)
	return r, t.dismiss(q)
}
