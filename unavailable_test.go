package recipes_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// everyLock makes one of each kind at /lock.
var everyLock = map[string]func(conn recipes.Conn) (recipes.InterProcessLock, error){
	"mutex": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
		return recipes.NewInterProcessMutex(conn, "/lock")
	},
	"semaphore mutex": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
		return recipes.NewInterProcessSemaphoreMutex(conn, "/lock")
	},
	"semaphore": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
		sem, err := recipes.NewInterProcessSemaphoreV2(conn, "/lock", 1)
		return locktest.NewLeaseLock(sem, 1), err
	},
	"write lock": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
		rw, err := recipes.NewInterProcessReadWriteLock(conn, "/lock")
		return rw.WriteLock(), err
	},
	"multi lock": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
		return recipes.NewInterProcessMultiLock(conn, []string{"/free", "/lock"})
	},
	"multi lock of a multi lock": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
		one, err := recipes.NewInterProcessMultiLock(conn, []string{"/free", "/lock"})
		return recipes.NewInterProcessMultiLockOf(one), err
	},
}

// A rivalry is a lock that another process holds, and one who wants it, behind a link.
type rivalry struct {
	ours   *zktest.Link
	client *recipes.Client
	wanted recipes.InterProcessLock
	ctx    context.Context
}

func forEveryLock(t *testing.T, test func(t *testing.T, r rivalry)) {
	t.Helper()
	for name, newLock := range everyLock {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := zktest.Start(t)
				r := rivalry{ours: server.Link("ours"), ctx: locktest.Owner(t)}
				r.client = locktest.ConnectThrough(t, server, "ours")
				newRival := newLock
				if strings.HasPrefix(name, "multi") { // of which one member is free
					newRival = everyLock["mutex"]
				}
				held, err := newRival(locktest.ConnectThrough(t, server, "other"))
				require.NoError(t, err)
				require.NoError(t, held.Acquire(r.ctx))
				r.wanted, err = newLock(r.client)
				require.NoError(t, err)
				test(t, r)
			})
		})
	}
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
		"no outage":                {func(*zktest.Link) {}, 0, true},
		"cut before":               {(*zktest.Link).Cut, 0, false},
		"silent before":            {stallBoth, 0, false},
		"cut at the end":           {(*zktest.Link).Cut, timeout - time.Millisecond, false},
		"silent for 3 s":           {stallBoth, timeout - 3*time.Second, false},
		"silent for half a second": {stallBoth, timeout - time.Second/2, true},
	} {
		t.Run(name, func(t *testing.T) {
			forEveryLock(t, func(t *testing.T, r rivalry) {
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
					require.ErrorContains(t, err, "no answer from ZooKeeper for ")
				}
				require.NotErrorIs(t, err, recipes.ErrBusy)
				require.LessOrEqual(t, time.Since(began), timeout+grace)
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
			forEveryLock(t, func(t *testing.T, r rivalry) {
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
	forEveryLock(t, func(t *testing.T, r rivalry) {
		ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
		defer cancel()
		err := r.wanted.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, recipes.ErrUnavailable)
		require.NotErrorIs(t, err, recipes.ErrBusy)
		require.Regexp(t, `^recipes: acquire /lock: context deadline exceeded: `+
			`(1 ahead, behind /lock/_c_[-0-9a-f]{36}-(lock-|__WRIT__)\d{10}|`+
			`no room in /lock/leases: 1 wanted, 1 of 1 taken)$`, err.Error())

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
		require.Regexp(t,
			`context deadline exceeded: no answer from ZooKeeper for 3m\S+, since \S+$`, err.Error())
		r.ours.Heal()
	})
}

// Nor does it become known by when the time runs out: who waits for a lease loses its place
// in an outage, begins anew, and has nobody ahead whom an answer has shown.
func TestNotToKnowAtAnyMomentOfAnOutage(t *testing.T) {
	for after := 5 * time.Second; after < 6*time.Second; after += 20 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			forEveryLock(t, func(t *testing.T, r rivalry) {
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

// An errgroup cancels its ctx with the error of the first of its workers. Where that is
// ErrBusy, of another lock, nobody knows of this one.
func TestACtxCancelledForABusyLockIsNoTimeout(t *testing.T) {
	forEveryLock(t, func(t *testing.T, r rivalry) {
		ctx, cancel := context.WithCancelCause(r.ctx)
		busy := recipes.Do(ctx, r.wanted, func(context.Context, *recipes.Hold) error {
			return nil
		}, recipes.WaitAtMost(time.Second))
		require.ErrorIs(t, busy, recipes.ErrBusy)
		time.AfterFunc(time.Second, func() { cancel(busy) })
		for range 2 { // while it waits, and before
			ok, err := r.wanted.AcquireTimeout(ctx, time.Minute)
			require.False(t, ok)
			require.ErrorIs(t, err, busy)
		}
	})
}
