package simulator

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/recipes"
)

// errLossNotTold says that fn's ctx did not tell of the loss.
var errLossNotTold = errors.New("fn goes on although the lock was lost")

// as is the use by the owner that ctx carries.
func (u *use) as(ctx context.Context) *use {
	o, other := *u.owner, *u
	o.ctx = ctx
	other.owner = &o
	return &other
}

// untold reports whether ctx goes on although one of the parts was lost. Between the end
// of a hold and that of fn's ctx one goroutine has to run.
func (w *World) untold(ctx context.Context, parts []part) bool {
	if !anyLost(parts) {
		return false
	}
	for looks := max(w.Looks, 1); looks > 0 && ctx.Err() == nil; looks-- {
		time.Sleep(time.Millisecond)
	}
	return ctx.Err() == nil
}

// do is a use by way of Do. It reports whether the lock was held.
func (u *use) do(s side) (held bool) {
	parts := u.parts(s, false)
	u.record(parts, Event{Kind: Called})
	ctx, cancel := context.WithCancelCause(context.WithValue(u.ctx, partsKey{}, parts))
	defer cancel(nil)
	err := recipes.Do(ctx, u.lock(s), func(
		within context.Context, _ *recipes.Hold,
	) error {
		held = true
		u.as(within).granted(s, parts)
		u.rest(u.step.lag) // as a caller may be delayed
		u.pass()
		u.as(within).fn(parts)
		u.releasing(parts, cancel)
		return nil
	})
	if !held {
		u.record(parts, u.failure(ctx, false, err))
		return false
	}
	u.released(ctx, parts, err)
	return true
}

// fn is what Do runs. It goes on after a loss, so that it sees what comes of its ctx.
func (u *use) fn(parts []part) {
	u.step.ignoreLoss = true
	hold := u.step.hold
	for range 2 {
		u.step.hold = hold / 2
		u.hold(parts)
		if u.p.w.untold(u.ctx, parts) {
			u.unexpected("do", errLossNotTold)
		}
	}
}
