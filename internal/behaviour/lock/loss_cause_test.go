package lock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// causes are those of which every loss has exactly one.
var causes = []error{
	recipes.ErrSessionEnded, recipes.ErrOutOfTouch, recipes.ErrNodeDeleted,
	recipes.ErrHoldExpired, zk.ErrConnectionClosed,
}

// requireCause requires that a hold was lost by one cause and no other; nil: by any one.
func requireCause(t *testing.T, want, err error) {
	t.Helper()
	require.ErrorIs(t, err, recipes.ErrLockLost)
	if want == nil {
		others := slices.DeleteFunc(slices.Clone(causes), func(cause error) bool {
			return !errors.Is(err, cause)
		})
		require.Len(t, others, 1, "%v", err)
		return
	}
	for _, cause := range causes {
		if cause == want { //nolint:errorlint // this very value
			require.ErrorIs(t, err, cause)
		} else {
			require.NotErrorIs(t, err, cause)
		}
	}
}

// A victim is a lock that is held, and about to be lost.
type victim struct {
	*locktest.Bubble
	ctx      context.Context
	kind     locktest.Kind
	lock     recipes.InterProcessLock
	holds    []*recipes.Hold
	released <-chan error // its release, if that was begun
}

// deleteAll deletes the znodes of all holds.
func (v *victim) deleteAll(t *testing.T) {
	t.Helper()
	var gone []string
	for _, hold := range v.holds {
		if !slices.Contains(gone, hold.Path()) {
			require.NoError(t, v.Other.Delete(hold.Path(), -1))
			gone = append(gone, hold.Path())
		}
	}
}

// ways are those in which a hold can be lost.
var ways = map[string]struct {
	cause   error
	options []recipes.Option
	lose    func(t *testing.T, v *victim)
	spares  func(k locktest.Kind) bool // kinds that are not lost so; nil: none
}{
	"the session ended in an outage": {
		cause: recipes.ErrSessionEnded,
		lose: func(_ *testing.T, v *victim) {
			v.Cluster.Link("ours").Cut()
			v.Cluster.ExpireSession(v.Ours.SessionID())
			v.Cluster.Link("ours").Heal()
		},
	},
	"the session was ended": {
		cause: recipes.ErrSessionEnded,
		lose: func(_ *testing.T, v *victim) {
			v.Cluster.ExpireSession(v.Ours.SessionID())
		},
	},
	"an outage": {
		cause: recipes.ErrOutOfTouch,
		lose:  func(_ *testing.T, v *victim) { v.Cluster.Link("ours").Cut() },
	},
	"silence": {
		cause: recipes.ErrOutOfTouch,
		lose: func(_ *testing.T, v *victim) {
			v.Cluster.Link("ours").Stall(zktest.Both)
		},
	},
	"an outage, with a margin": {
		cause:   recipes.ErrOutOfTouch,
		options: []recipes.Option{recipes.WithLossMargin(time.Second)},
		lose:    func(_ *testing.T, v *victim) { v.Cluster.Link("ours").Cut() },
	},
	"an outage during the release": {
		cause: recipes.ErrOutOfTouch,
		lose: func(_ *testing.T, v *victim) {
			v.Cluster.Link("ours").Stall(zktest.Both)
			time.Sleep(3 * time.Second)
			v.released = locktest.Start(func() error { return v.lock.Release(v.ctx) })
		},
	},
	"a deleted znode": {
		cause: recipes.ErrNodeDeleted,
		lose:  func(t *testing.T, v *victim) { v.deleteAll(t) },
	},
	"a deleted znode that the release finds": {
		cause: recipes.ErrNodeDeleted,
		lose: func(t *testing.T, v *victim) {
			v.deleteAll(t)
			v.released = locktest.Start(func() error { return v.lock.Release(v.ctx) })
		},
		spares: func(k locktest.Kind) bool { return k.Cached }, // it asks for nothing
	},
	"a deleted znode that a transaction finds": {
		cause: recipes.ErrNodeDeleted,
		lose: func(t *testing.T, v *victim) {
			v.deleteAll(t)
			for _, hold := range v.holds {
				_, err := hold.Multi()
				requireCause(t, recipes.ErrNodeDeleted, err)
			}
		},
	},
	"a closed client": {
		cause: zk.ErrConnectionClosed,
		lose:  func(_ *testing.T, v *victim) { v.Ours.Close() },
	},
	"a limit of its own": {
		cause:   recipes.ErrHoldExpired,
		options: []recipes.Option{recipes.WithMaxHold(time.Minute)},
		lose:    func(*testing.T, *victim) {},
	},
}

// A loss has one cause, whoever is told of it, and one line in the log.
func TestEveryLossHasOneCause(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for _, k := range slices.Concat(locktest.Kinds, locktest.Elections) {
				if way.spares != nil && way.spares(k) {
					continue
				}
				locktest.Run(t, k.Name, func(t *testing.T, b *locktest.Bubble) {
					var log bytes.Buffer
					var seen locktest.Recorder
					v := &victim{Bubble: b, ctx: locktest.Owner(t), kind: k}
					v.take(t, b.Ours, append(slices.Clip(way.options),
						recipes.WithObserver(seen.Observe), recipes.WithLogger(
							slog.New(slog.NewJSONHandler(&log, nil)))))
					way.lose(t, v)
					v.isLost(t, way.cause)
					synctest.Wait()
					requireLogged(t, seen.All(), lossesIn(t, log.Bytes()))
				})
			}
		})
	}
}

func (v *victim) take(t *testing.T, conn recipes.Conn, options []recipes.Option) {
	t.Helper()
	v.lock = v.kind.MustMake(t, conn, "/lock", options...)
	require.NoError(t, v.lock.Acquire(v.ctx))
	v.holds = locktest.HoldsOf(v.ctx, v.lock)
	if multi, ok := v.lock.(*recipes.InterProcessMultiLock); ok {
		v.holds = append(v.holds, multi.Hold(v.ctx))
	}
	require.NotEmpty(t, v.holds)
}

// isLost requires that all who are told of the loss are told its cause.
func (v *victim) isLost(t *testing.T, cause error) {
	t.Helper()
	for _, hold := range v.holds {
		<-hold.Lost()
		requireCause(t, cause, hold.Err())
		within := hold.Context(t.Context())
		<-within.Done()
		requireCause(t, cause, context.Cause(within))
	}
	if v.released == nil {
		synctest.Wait() // a candidate that is told leaves the election
		v.released = locktest.Start(func() error { return v.lock.Release(v.ctx) })
	}
	v.Cluster.Link("ours").Heal() // a selector may have rejoined
	released := <-v.released
	if cause == nil { // each member's loss has its own, and all of them are joined
		require.ErrorIs(t, released, recipes.ErrLockLost)
		return
	}
	requireCause(t, cause, released)
}

// A plain connection does not say how long its session lasts. (One that is closed while
// it is in use can leave its client stuck: see HoldBack in internal/zkconn.)
func TestEveryLossOfAPlainConnectionHasOneCause(t *testing.T) {
	for name, way := range map[string]struct {
		cause error
		lose  func(*zk.Conn, *zktest.Cluster)
	}{
		"an outage": {recipes.ErrOutOfTouch, func(_ *zk.Conn, c *zktest.Cluster) {
			c.Link("bare").Stall(zktest.Both)
		}},
		// The client is back after about a second, and that is how long an unknown
		// timeout lasts: either may be first.
		"the session was ended": {nil, func(conn *zk.Conn, c *zktest.Cluster) {
			c.ExpireSession(conn.SessionID())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, k := range slices.Concat(locktest.Kinds, locktest.Elections) {
				locktest.Run(t, k.Name, func(t *testing.T, b *locktest.Bubble) {
					bare := locktest.ConnectBare(t, b.Cluster.Link("bare"),
						b.Cluster.Names()[0], 10*time.Second)
					v := &victim{Bubble: b, ctx: locktest.Owner(t), kind: k}
					v.take(t, bare, nil)
					way.lose(bare, b.Cluster)
					v.isLost(t, way.cause)
				})
			}
		})
	}
}

// The servers' tick, which another lock's option tells, can show that no session with
// them can be relied on. The loss of a shared entry had that cause alone.
func TestALossByALongTickHasACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := locktest.ConnectThrough(t, zktest.Start(t), "ours")
		lock := locktest.NewReadWriteLock(
			t, client, "/lock", recipes.WithCaching(time.Minute, 5))
		ctx := locktest.Owner(t)
		require.NoError(t, lock.ReadLock().Acquire(ctx))
		hold := lock.ReadLock().Hold(ctx)
		other := locktest.NewMutex(
			t, client, "/other", recipes.WithServerTick(time.Minute))
		ok, err := other.AcquireTimeout(locktest.Owner(t), time.Second)
		require.ErrorContains(t, err, "the session timeout is too short")
		require.False(t, ok)
		_, err = lock.ReadLock().AcquireTimeout(locktest.Owner(t), time.Second)
		require.ErrorContains(t, err, "the session timeout is too short")
		<-hold.Lost()
		requireCause(t, recipes.ErrOutOfTouch, hold.Err())
	})
}
