package hold_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// soon is far below the session timeout on a Keeper, and enough to connect again.
const soon = 3 * time.Second

// onKeepers runs a test for each kind of lock on ClickHouse Keeper: with a process that
// it is about, and another one.
func onKeepers(t *testing.T, test func(
	t *testing.T, cluster *zktest.Cluster, lock, others recipes.InterProcessLock,
),
) {
	t.Helper()
	for _, kind := range locktest.Kinds {
		for version, unknown := range map[string][]zktest.Op{
			"new": nil, "old": {zktest.OpSetWatches, zktest.OpCreateContainer},
		} {
			locktest.RunVirtual(t, kind.Name+" on a Keeper that is "+version, func(
				t *testing.T,
			) {
				cluster := zktest.Start(t, zktest.WithKeeper(unknown...))
				lock := kind.MustMake(
					t, locktest.ConnectThrough(t, cluster, "ours"), "/lock",
				)
				others := kind.MustMakeRival(
					t, locktest.ConnectThrough(t, cluster, "other"), "/lock",
				)
				test(t, cluster, lock, others)
			})
		}
	}
}

// A waiter that has to reconnect does not queue behind the znode of its former session.
func TestAWaiterOnAKeeperThatReconnects(t *testing.T) {
	onKeepers(t, func(
		t *testing.T, cluster *zktest.Cluster, lock, others recipes.InterProcessLock,
	) {
		theirs := locktest.VisitLock(t, others)
		theirs.Entered()
		ours := locktest.VisitLock(t, lock)
		require.False(t, ours.Holds())
		cluster.Link("ours").Reset()
		time.Sleep(soon)
		theirs.Leave()
		require.NotNil(t, ours.Hold(), "it waits behind itself")
		ours.Entered()
		ours.Leave()
	})
}

// A holder that has to reconnect has lost the lock, and is told so. Nobody else gets it
// before the holder has released it, or the session has timed out.
func TestAHolderOnAKeeperThatReconnects(t *testing.T) {
	onKeepers(t, func(
		t *testing.T, cluster *zktest.Cluster, lock, others recipes.InterProcessLock,
	) {
		ours := locktest.VisitLock(t, lock)
		hold := ours.Entered()
		theirs := locktest.VisitLock(t, others)
		cluster.Link("ours").Reset()
		select {
		case <-hold.Lost():
		case <-time.After(soon):
			t.Fatal("no notification of the loss")
		}
		time.Sleep(soon)
		require.Nil(t, theirs.Hold(), "the holder has not stopped")
		require.ErrorIs(t, lock.Release(ours.Ctx), recipes.ErrLockLost)
		time.Sleep(locktest.Settle)
		require.NotNil(t, theirs.Hold(), "it waits for the session's timeout")
		theirs.Entered()
		theirs.Leave()
	})
}

// The margin of a hold that was lost with its session lasts for as long as any other.
func TestALossMarginOnAKeeperThatReconnects(t *testing.T) {
	for name, caching := range map[string][]recipes.Option{
		"alone": nil, "of a kept place": {recipes.WithCaching(time.Hour, 100)},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			const margin = 2 * time.Second
			cluster := zktest.Start(t, zktest.WithKeeper())
			lock := locktest.NewMutex(
				t, locktest.ConnectThrough(t, cluster, "ours"), "/lock",
				append(caching, recipes.WithLossMargin(margin))...,
			)
			others := locktest.NewMutex(
				t, locktest.ConnectThrough(t, cluster, "other"), "/lock",
			)
			ours := locktest.VisitLock(t, lock)
			hold := ours.Entered()
			theirs := locktest.VisitLock(t, others)
			cluster.Link("ours").Reset()
			<-hold.Lost()
			require.ErrorIs(t, lock.Release(ours.Ctx), recipes.ErrLockLost)
			time.Sleep(margin - time.Millisecond)
			require.Nil(t, theirs.Hold(), "the holder may not have stopped")
			time.Sleep(locktest.Settle)
			require.NotNil(t, theirs.Hold())
			theirs.Entered()
			theirs.Leave()
		})
	}
}

// A place that is kept for nobody is no owner's.
func TestAKeptPlaceOnAKeeperThatReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t, zktest.WithKeeper())
		kept := locktest.NewMutex(
			t, locktest.ConnectThrough(t, cluster, "ours"), "/lock",
			recipes.WithCaching(time.Hour, 100),
		)
		visit := locktest.VisitLock(t, kept)
		visit.Entered()
		visit.Leave()
		require.Len(t, cluster.Znodes(), 2)
		cluster.Link("ours").Reset()
		time.Sleep(soon)
		require.Equal(t, []string{"/lock"}, cluster.Znodes())
	})
}

// A znode of a former session that may not be deleted is told of, since others wait
// behind it, and is deleted once that is allowed.
func TestAZnodeThatOutlivesItsSessionAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		cluster := zktest.Start(t, zktest.WithKeeper())
		lock := locktest.NewMutex(
			t, locktest.ConnectThrough(t, cluster, "ours"), "/lock",
			recipes.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))),
		)
		ours := locktest.VisitLock(t, lock)
		hold := ours.Entered()
		admin := locktest.ConnectBare(
			t, cluster.Link("admin"), cluster.Names()[0], 10*time.Second,
		)
		_, err := admin.SetACL("/lock", zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
		require.NoError(t, err)
		cluster.Link("ours").Reset()
		<-hold.Lost()
		require.ErrorIs(t, lock.Release(ours.Ctx), recipes.ErrLockLost)
		time.Sleep(soon)
		synctest.Wait() // so that what was logged may be read
		require.Equal(t, 1, strings.Count(logged.String(), "level=ERROR"), &logged)
		require.Contains(t, logged.String(), "is still being deleted")
		require.Contains(t, logged.String(), "node=/lock/_c_")
		_, err = admin.SetACL("/lock", zk.WorldACL(zk.PermAll), -1)
		require.NoError(t, err)
		time.Sleep(4 * time.Second) // less than the former session has left
		require.Equal(t, []string{"/lock"}, cluster.Znodes())
	})
}

// A container that a Keeper does not know costs one session, and no other.
func TestAContainerThatAKeeperDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t, zktest.WithKeeper(zktest.OpCreateContainer))
		sessions := 0
		client, err := recipes.Connect(t.Context(), cluster.Names()[0], 10*time.Second,
			recipes.WithDialer(cluster.Link("ours").Dial),
			recipes.WithClientObserver(func(e recipes.SessionEvent) {
				if e.Kind == recipes.SessionConnected {
					sessions++
				}
			}))
		require.NoError(t, err)
		defer client.Close()
		for _, path := range []string{"/a/b/c", "/d", "/e/f"} {
			lock := locktest.NewMutex(t, client, path)
			ctx, cancel := context.WithTimeout(locktest.Owner(t), time.Minute)
			defer cancel()
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
		}
		client.Close() // waits for the observer
		require.Equal(t, 2, sessions)
	})
}

// A Keeper without a leader gives no session, and the client waits for one that has.
func TestAKeeperWithoutALeaderGivesNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t, zktest.WithKeeper(), zktest.WithServers(3))
		client := locktest.ConnectThrough(t, cluster, "ours")
		lock := locktest.NewMutex(t, client, "/lock")
		ours := locktest.VisitLock(t, lock)
		hold := ours.Entered()
		before := client.SessionID()
		for _, s := range cluster.Servers()[1:] {
			s.Stop()
		}
		for range 50 { // far beyond the session timeout
			time.Sleep(time.Second)
			require.Equal(t, before, client.SessionID(), "it has no other one")
		}
		<-hold.Lost()
		for _, s := range cluster.Servers() {
			s.Start()
		}
		require.ErrorIs(t, lock.Release(ours.Ctx), recipes.ErrLockLost)
		again := locktest.VisitLock(t, lock)
		again.Entered()
		require.NotEqual(t, before, client.SessionID())
		again.Leave()
	})
}
