package simulator

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/recipes"
)

// A delayedLock is one whose caller is held up, now and then, right behind the call
// that has acquired it. What is acquired through it is recorded.
type delayedLock struct {
	recipes.InterProcessLock
	u     *use
	side  side
	parts []part
}

// errNotHeld says that the lock was not acquired. Why is recorded.
var errNotHeld = errors.New("not acquired")

func (l *delayedLock) Acquire(ctx context.Context) error {
	if !l.u.as(ctx).acquire(l.side, l.parts, forEver) {
		return errNotHeld
	}
	l.u.rest(l.u.step.lag)
	l.u.pass()
	return nil
}

func (l *delayedLock) Release(ctx context.Context) error {
	return l.u.as(ctx).release(l.side, l.parts, 1)
}

func (l *delayedLock) Hold(ctx context.Context) *recipes.Hold {
	lock, ok := l.InterProcessLock.(interface {
		Hold(ctx context.Context) *recipes.Hold
	})
	if !ok {
		return nil
	}
	return lock.Hold(ctx)
}

// errLossNotTold says that fn's ctx did not tell of the loss.
var errLossNotTold = errors.New("fn goes on although the lock was lost")

// as is the use by the owner that ctx carries.
func (u *use) as(ctx context.Context) *use {
	o, other := *u.owner, *u
	o.ctx = ctx
	other.owner = &o
	return &other
}

// toldWithin is what passes at the most between the end of a hold and that of fn's ctx:
// one goroutine has to run.
const toldWithin = time.Millisecond

// do is a use by way of Do. It reports whether the lock was held.
func (u *use) do(s side) (held bool) {
	lock := &delayedLock{u.lock(s), u, s, u.parts(s, false)}
	err := recipes.Do(u.ctx, lock, func(ctx context.Context, _ *recipes.Hold) error {
		held = true
		within := u.as(ctx)
		within.step.ignoreLoss = true // so that fn sees what comes of ctx
		for range 2 {
			within.step.hold = u.step.hold / 2
			within.hold(lock.parts)
			if ctx.Err() == nil && anyLost(lock.parts) {
				time.Sleep(toldWithin)
				if ctx.Err() == nil {
					u.unexpected("do", errLossNotTold)
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
