package hold_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A multi lock's Release took a second in an outage for each member beyond the first.
func TestAnOutageCostsAReleaseOneSecondInAll(t *testing.T) {
	for name, c := range map[string]struct {
		end     time.Duration // when ctx is done; 0: before
		atLeast time.Duration
	}{
		"done before": {0, 0},
		"done midway": {300 * time.Millisecond, 300 * time.Millisecond},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			client := locktest.ConnectThrough(t, cluster, "ours")
			nested := locktest.NewMultiLock(t, client, []string{
				"/a", "/b", "/c",
			})
			mutex := locktest.NewSemaphoreMutex(t, client, "/d")
			lock := recipes.NewInterProcessMultiLockOf(nested, mutex)
			owner := locktest.Owner(t)
			require.NoError(t, lock.Acquire(owner))
			cluster.Link("ours").Stall(zktest.ToServer | zktest.ToClient)

			ctx, cancel := context.WithTimeoutCause(owner, c.end, locktest.ErrChangedMind)
			defer cancel()
			if c.end == 0 {
				<-ctx.Done()
			}
			began := time.Now()
			err := lock.Release(ctx)
			took := time.Since(began)
			require.ErrorIs(t, err, locktest.ErrChangedMind)
			for _, path := range []string{"/a", "/b", "/c", "/d/leases"} {
				require.ErrorContains(t, err, "release not confirmed; "+path)
			}
			require.LessOrEqual(t, took, time.Second)
			require.GreaterOrEqual(t, took, c.atLeast)
			require.False(t, lock.IsAcquiredInThisProcess())
			cluster.Link("ours").Heal()
			time.Sleep(5 * time.Second)
			for _, node := range cluster.Znodes() {
				require.NotContains(t, node, "_c_", "it is deleted in the background")
			}
		})
	}
}

// The client keeps a delete that it could not send, and sends it in the next session:
// that the znode is gone then proves nothing.
func TestAReleaseThatOutlivesItsSessionIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t, zktest.WithServers(3))
		client := locktest.ConnectThrough(t, cluster, "ours")
		lock := locktest.NewMutex(t, client, "/lock")
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		session := client.SessionID()
		cluster.Link("ours").Stall(zktest.ToServer)
		released := locktest.Start(func() error { return lock.Release(ctx) })
		synctest.Wait()
		cluster.Link("ours").Reset()       // the delete is lost
		time.Sleep(100 * time.Millisecond) // it tries again, and the client to connect
		cluster.ExpireSession(session)
		time.Sleep(100 * time.Millisecond)
		cluster.Link("ours").Heal()
		require.ErrorIs(t, <-released, recipes.ErrLockLost)
	})
}

// A member whose delete was answered is released, whatever becomes of another: the answer
// that is in wins over a ctx that is done.
func TestAReleaseThatWasAnsweredIsConfirmed(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var events locktest.Recorder
		for range 20 {
			ctx := locktest.Owner(t)
			answered := b.Mutex(t, b.Ours, "/a", recipes.WithObserver(events.Observe))
			unanswered := b.Mutex(t, b.Other, "/b")
			lock := recipes.NewInterProcessMultiLockOf(answered, unanswered)
			require.NoError(t, lock.Acquire(ctx))
			b.Cluster.Link("other").Stall(zktest.Both)
			within, cancel := context.WithTimeout(ctx, time.Second)
			err := lock.Release(within)
			cancel()
			require.ErrorContains(t, err, "release /b: release not confirmed")
			require.NotContains(t, err.Error(), "release /a")
			b.Cluster.Link("other").Heal()
			time.Sleep(time.Minute)
		}
	})
}

// A member whose Lost has closed while it was being released is lost, even if its delete
// is confirmed later, while the release waits for another member.
func TestAReleaseThatIsConfirmedAfterALoss(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var events locktest.Recorder
		lost := b.Mutex(t, b.Ours, "/lost", recipes.WithObserver(events.Observe),
			recipes.WithLossMargin(2*time.Second))
		slow := b.Mutex(t, b.Other, "/slow")
		both := recipes.NewInterProcessMultiLockOf(lost, slow)
		hold := locktest.Acquire(t.Context(), t, both)
		time.Sleep(time.Minute)
		b.Cluster.Link("ours").Stall(zktest.Both)
		b.Cluster.Link("other").Stall(zktest.Both)
		released := locktest.Start(func() error { return hold.Release(t.Context()) })
		<-hold.Lost()
		b.Cluster.Link("ours").Heal()
		time.Sleep(time.Second / 2)
		require.Len(t, locktest.Znodes(b), 1, "of the slow one")
		b.Cluster.Link("other").Heal()
		err := <-released
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorContains(t, err, "release /lost: while it was being released")
		require.NotContains(t, err.Error(), "release /slow")
		require.Equal(t, []recipes.EventKind{
			recipes.EventQueued, recipes.EventAcquired, recipes.EventLost,
		}, events.Kinds())
	})
}

// A conn whose first delete fails with an unknown outcome. Before the second one somebody
// deletes the znode and, if ends is set, the client goes on to another session, of which
// nobody else has heard yet.
type unansweredDelete struct {
	recipes.Conn
	other   recipes.Conn
	ends    bool
	deletes int
	moved   atomic.Bool
}

func (c *unansweredDelete) Unwrap() recipes.Conn { return c.Conn }

func (c *unansweredDelete) Delete(path string, version int32) error {
	switch c.deletes++; c.deletes {
	case 1:
		return zk.ErrConnectionClosed
	case 2:
		if err := c.other.Delete(path, -1); err != nil {
			return err
		}
		c.moved.Store(c.ends)
	}
	return c.Conn.Delete(path, version)
}

func (c *unansweredDelete) SessionID() int64 {
	id := c.Conn.SessionID()
	if c.moved.Load() {
		id++
	}
	return id
}

// A delete that finds nothing proves that the one before has done it, but not if the
// session has ended between the two.
func TestAReleaseWhoseSessionEndsBetweenItsDeletes(t *testing.T) {
	for _, ends := range []bool{false, true} {
		locktest.Run(t, fmt.Sprint("the session ends: ", ends), func(
			t *testing.T, b *locktest.Bubble,
		) {
			conn := &unansweredDelete{Conn: b.Ours, other: b.Other, ends: ends}
			lock := locktest.NewMutex(t, conn, "/lock")
			ctx := locktest.Owner(t)
			require.NoError(t, lock.Acquire(ctx))
			err := lock.Release(ctx)
			synctest.Wait()
			if ends {
				require.ErrorIs(t, err, recipes.ErrSessionEnded)
				require.Equal(t, 3, conn.deletes, "the znode may have outlived it")
			} else {
				require.NoError(t, err)
				require.Equal(t, 2, conn.deletes)
			}
		})
	}
}
