package simulator

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/recipes"
)

// A hesitant lock is one whose caller is held up, now and then, right behind the call
// that has acquired it. What is acquired through it is recorded.
type hesitant struct {
	recipes.InterProcessLock
	u      *use
	side   side
	stakes []stake
}

// errNotHeld says that the lock was not acquired. Why is recorded.
var errNotHeld = errors.New("not acquired")

func (h *hesitant) Acquire(ctx context.Context) error {
	if !h.u.as(ctx).acquire(h.side, h.stakes, forEver) {
		return errNotHeld
	}
	h.u.rest(h.u.step.lag)
	h.u.pass()
	return nil
}

func (h *hesitant) Release(ctx context.Context) error {
	return h.u.as(ctx).release(h.side, h.stakes, 1)
}

func (h *hesitant) Hold(ctx context.Context) *recipes.Hold {
	lock, ok := h.InterProcessLock.(interface {
		Hold(ctx context.Context) *recipes.Hold
	})
	if !ok {
		return nil
	}
	return lock.Hold(ctx)
}

// errDeaf says that fn's ctx did not tell of the loss.
var errDeaf = errors.New("fn goes on although the lock was lost")

// as is the use by the owner that ctx carries.
func (u *use) as(ctx context.Context) *use {
	o, other := *u.owner, *u
	o.ctx = ctx
	other.owner = &o
	return &other
}

// heard is what passes at the most between the end of a hold and that of fn's ctx: one
// goroutine has to run.
const heard = time.Millisecond

// do is a use by way of Do. It reports whether the lock was held.
func (u *use) do(s side) (held bool) {
	lock := &hesitant{u.v.of(s), u, s, u.claim(s, false)}
	err := recipes.Do(u.ctx, lock, func(ctx context.Context, _ *recipes.Hold) error {
		held = true
		within := u.as(ctx)
		within.step.deaf = true // so that fn sees what comes of ctx
		for range 2 {
			within.step.hold = u.step.hold / 2
			within.hold(lock.stakes)
			if ctx.Err() == nil && anyLost(lock.stakes) {
				time.Sleep(heard)
				if ctx.Err() == nil {
					u.unexpected("do", errDeaf)
				}
			}
		}
		return nil
	})
	if held == errors.Is(err, errNotHeld) {
		u.unexpected("do", err)
	}
	return held
}
