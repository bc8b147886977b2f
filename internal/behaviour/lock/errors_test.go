package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A rivalry is a lock that another process holds, and one who wants it, behind a link.
type rivalry struct {
	kind   locktest.Kind
	ours   *zktest.Link
	client *recipes.Client
	wanted recipes.InterProcessLock
	ctx    context.Context
}

func forEveryRivalry(t *testing.T, test func(t *testing.T, r rivalry)) {
	t.Helper()
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		r := rivalry{
			kind: k, ours: b.Cluster.Link("ours"), client: b.Ours, ctx: locktest.Owner(t),
		}
		held := k.MustMakeRival(t, b.Other, "/lock")
		require.NoError(t, held.Acquire(r.ctx))
		r.wanted = k.MustMake(t, b.Ours, "/lock")
		test(t, r)
	})
}

// (false, nil) is for others that are known to be ahead: five hosts said "somebody else
// is busy" through an outage, and nobody did the work. The session lasts 10 s: there is a
// heartbeat every second, and one that has no answer for a second tells that ZooKeeper is
// out of touch.
func TestNotToKnowIsNotToBeBusy(t *testing.T) {
	const timeout = 8 * time.Second
	for name, c := range map[string]struct {
		fault func(*zktest.Link)
		after time.Duration // of the 8 s
		known bool
	}{
		"no outage":     {func(*zktest.Link) {}, 0, true},
		"cut before":    {(*zktest.Link).Cut, 0, false},
		"silent before": {stallBoth, 0, false},
		"cut at the end": {
			(*zktest.Link).Cut, timeout - time.Millisecond, false,
		},
		"silent for 3 s":           {stallBoth, timeout - 3*time.Second, false},
		"silent for half a second": {stallBoth, timeout - time.Second/2, true},
	} {
		t.Run(name, func(t *testing.T) {
			forEveryRivalry(t, func(t *testing.T, r rivalry) {
				began := time.Now()
				if c.after == 0 {
					c.fault(r.ours)
				} else {
					time.AfterFunc(c.after, func() { c.fault(r.ours) })
				}
				ok, err := r.wanted.AcquireTimeout(r.ctx, timeout)
				require.False(t, ok)
				if c.known {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, recipes.ErrUnavailable)
					require.ErrorContains(t, err, "no response from ZooKeeper for ")
				}
				require.NotErrorIs(t, err, recipes.ErrBusy)
				require.LessOrEqual(t, time.Since(began), timeout+locktest.Grace)
				r.ours.Heal()
			})
		})
	}
}

func stallBoth(l *zktest.Link) { l.Stall(zktest.Both) }

// It took six seconds, or as long as a session lasts for each member.
func TestATryTakesASecondAtMost(t *testing.T) {
	for name, fault := range map[string]func(*zktest.Link){
		"no outage": func(*zktest.Link) {},
		"cut":       (*zktest.Link).Cut, "silent": stallBoth,
		"slow": func(l *zktest.Link) { l.Delay(time.Second/4, time.Second/4) },
	} {
		t.Run(name, func(t *testing.T) {
			forEveryRivalry(t, func(t *testing.T, r rivalry) {
				fault(r.ours)
				began := time.Now()
				ok, err := r.wanted.AcquireTimeout(r.ctx, 0)
				require.LessOrEqual(t, time.Since(began), time.Second)
				require.False(t, ok)
				switch name {
				case "no outage":
					require.NoError(t, err)
				case "cut", "silent":
					require.ErrorIs(t, err, recipes.ErrUnavailable)
				}
				r.ours.Heal()
				r.ours.Delay(0, 0)
			})
		})
	}
}

// Who gives up is told behind which znode it stood, or since when nobody has answered.
func TestWhereAWaiterStood(t *testing.T) {
	forEveryRivalry(t, func(t *testing.T, r rivalry) {
		ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
		defer cancel()
		err := r.wanted.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_ = requireBusy(t, err)
		require.Regexp(t, `^recipes: acquire /lock(/[ab])?: context deadline exceeded: `+
			r.kind.Stands+`$`, err.Error())

		user, err := recipes.NewInterProcessMutex(r.client, "/another") // keeps asking
		require.NoError(t, err)
		require.NoError(t, user.Acquire(r.ctx))
		r.ours.Cut()
		time.Sleep(2 * time.Minute)
		ctx, cancel = context.WithTimeout(r.ctx, time.Minute)
		defer cancel()
		err = r.wanted.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, recipes.ErrUnavailable)
		require.NotErrorIs(t, err, recipes.ErrBusy)
		require.Regexp(t,
			`context deadline exceeded: no response from ZooKeeper for 3m\S+, since \S+$`,
			err.Error())
		r.ours.Heal()
	})
}

// Nor does it become known by when the time runs out: who waits for a lease loses its
// place in an outage, begins anew, and has nobody ahead whom an answer has shown.
func TestNotToKnowAtAnyMomentOfAnOutage(t *testing.T) {
	for after := 5 * time.Second; after < 6*time.Second; after += 40 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			forEveryRivalry(t, func(t *testing.T, r rivalry) {
				const before = 5 * time.Second
				time.AfterFunc(before, func() { stallBoth(r.ours) })
				ok, err := r.wanted.AcquireTimeout(r.ctx, before+after)
				require.False(t, ok)
				require.ErrorIs(t, err, recipes.ErrUnavailable)
				r.ours.Heal()
			})
		})
	}
}

// Who may not release is told whether somebody else may.
func TestErrNotOwnerTellsWhetherAnybodyHoldsTheLock(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		holder, stranger := locktest.Owner(t), locktest.Owner(t)
		const nobody = "nobody holds it through this value"
		const another = "another owner acquired it through this value"
		says := func(lock recipes.InterProcessLock, text string) {
			err := lock.Release(stranger)
			require.ErrorIs(t, err, recipes.ErrNotOwner)
			require.ErrorContains(t, err, text)
		}
		says(s.Lock, nobody)
		require.NoError(t, s.Lock.Acquire(holder))
		says(s.Lock, another)
		says(s.Mutex(t, s.Ours, "/lock"), nobody)
		s.Lose(t, s.Lock.Hold(holder))
		says(s.Lock, another)
		require.ErrorIs(t, s.Lock.Release(holder), recipes.ErrLockLost)
		says(s.Lock, nobody)
		mutex := locktest.NewSemaphoreMutex(t, s.Ours, "/s")
		says(mutex, nobody)
	})
}
