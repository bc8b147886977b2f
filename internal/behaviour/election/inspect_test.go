package election_test

import (
	"bytes"
	"context"
	"fmt"
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

// seen is what Inspect finds, each "kind", with a star where it holds.
func seen(t *testing.T, client *recipes.Client, path string) (found []string) {
	t.Helper()
	queue, err := recipes.Inspect(t.Context(), client, path)
	require.NoError(t, err)
	for _, p := range queue {
		require.True(t, strings.HasPrefix(p.Node, path+"/"), p.Node)
		require.NotZero(t, p.Session)
		require.NotEmpty(t, p.Data)
		if p.Holding {
			p.Kind += "*"
		}
		found = append(found, p.Kind)
	}
	return found
}

// acquiring calls Acquire for an owner of its own, and lets it come as far as it comes.
func acquiring(t *testing.T, acquire func(ctx context.Context) error) {
	t.Helper()
	ctx := locktest.Owner(t)
	go func() { _ = acquire(ctx) }()
	time.Sleep(time.Second) // virtual
	synctest.Wait()
}

func TestInspectLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := locktest.ConnectThrough(t, zktest.Start(t), "ours")
		require.Empty(t, seen(t, client, "/never"))

		mutex := locktest.NewMutex(t, client, "/mutex")
		acquiring(t, mutex.Acquire)
		acquiring(t, mutex.Acquire)
		require.Equal(t, []string{"lock*", "lock"}, seen(t, client, "/mutex"))
		all, err := mutex.Participants(t.Context())
		require.NoError(t, err)
		queue, err := recipes.Inspect(t.Context(), client, "/mutex")
		require.NoError(t, err)
		require.Equal(t, all, queue)

		rw := locktest.NewReadWriteLock(t, client, "/rw")
		acquiring(t, rw.ReadLock().Acquire)
		acquiring(t, rw.ReadLock().Acquire)
		acquiring(t, rw.WriteLock().Acquire)
		acquiring(t, rw.ReadLock().Acquire)
		require.Equal(
			t, []string{"read*", "read*", "write", "read"}, seen(t, client, "/rw"),
		)
		all, err = rw.WriteLock().Participants(t.Context())
		require.NoError(t, err)
		queue, err = recipes.Inspect(t.Context(), client, "/rw")
		require.NoError(t, err)
		require.Equal(t, all, queue)

		ctx := locktest.Owner(t)
		down := locktest.NewReadWriteLock(t, client, "/down")
		require.NoError(t, down.WriteLock().Acquire(ctx))
		require.NoError(t, down.ReadLock().Acquire(ctx))
		require.ElementsMatch(t, []string{"write*", "read*"}, seen(t, client, "/down"))
		client.Close()
	})
}

// Each participant is judged among its own kind; strangers are none.
func TestInspectOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := locktest.ConnectThrough(t, zktest.Start(t), "ours")
		_, err := client.Create("/mixed", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		for i, name := range []string{
			"_c_x-latch-", "_c_x-latch-", "lock-", "__WRIT__", "config",
		} {
			path, flags := "/mixed/"+name, int32(zk.FlagEphemeral|zk.FlagSequence)
			if name == "config" {
				flags = 0
			}
			_, err := client.Create(
				path, fmt.Append(nil, i), flags, zk.WorldACL(zk.PermAll),
			)
			require.NoError(t, err)
		}
		require.Equal(
			t, []string{"latch*", "latch", "lock*", "write*"}, seen(t, client, "/mixed"),
		)

		_, err = recipes.Inspect(t.Context(), client, "bad")
		require.ErrorIs(t, err, zk.ErrInvalidPath)
		require.ErrorContains(t, err, `inspect: path "bad"`)
		_, err = recipes.Inspect(t.Context(), nil, "/mixed")
		require.ErrorContains(t, err, "nil")
		client.Close()
		_, err = recipes.Inspect(t.Context(), client, "/mixed")
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.ErrorContains(t, err, "inspect /mixed")
	})
}

func TestInspectSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := locktest.ConnectThrough(t, zktest.Start(t), "ours")
		s := locktest.NewSemaphore(t, client, "/semaphore", 2)
		var leases []*recipes.Lease
		for range 4 {
			acquiring(t, func(ctx context.Context) error {
				lease, err := s.Acquire(ctx)
				leases = append(leases, lease)
				return err
			})
		}
		require.Equal(t, []string{
			"lease*", "lease*", "lease", "lock", "lock",
		}, seen(t, client, "/semaphore"),
			"two are granted, one waits for room, and both who wait stand at the gate")
		require.Equal(
			t, []string{"lease*", "lease*", "lease*"},
			seen(t, client, "/semaphore/leases"),
		)

		require.NoError(t, leases[0].Release(t.Context()))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(
			t, []string{"lease*", "lease*", "lease", "lock"},
			seen(t, client, "/semaphore"),
		)
		client.Close()
	})
}

// Leases are granted before the delete of the gate's znode is answered. Until then
// nothing in ZooKeeper tells them from leases that wait for room.
func TestInspectALeaseWhoseGateIsNotLeftYet(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		s := locktest.NewSemaphore(t, b.Ours, "/semaphore", 2)
		link := b.Cluster.Link("ours")
		link.Delay(100*time.Millisecond, 100*time.Millisecond)
		leases, err := s.AcquireN(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(
			t, []string{"lease*", "lease", "lock"}, seen(t, b.Other, "/semaphore"),
		)
		time.Sleep(time.Second)
		require.NoError(t, leases[0].Err())
		require.Equal(t, []string{"lease*", "lease*"}, seen(t, b.Other, "/semaphore"))
	})
}

// stand creates a znode in a queue.
func stand(t *testing.T, client *recipes.Client, node string) {
	t.Helper()
	_, err := client.Create(node, []byte("us"), zk.FlagEphemeral|zk.FlagSequence,
		zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

// Recipes that share a path do not hinder each other: kazoo's lock is no latch and no
// semaphore.
func TestInspectDecidesWithinEachRecipe(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		_, err := b.Ours.Create("/path", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		for _, name := range []string{"__lock__", "lease-", "latch-", "lock-", "latch-"} {
			stand(t, b.Ours, "/path/"+name)
		}
		require.Equal(
			t, []string{"lock*", "lease*", "latch*", "lock", "latch"},
			seen(t, b.Other, "/path"),
		)
	})
}

// A session that waits at the gate holds the leases that it was granted before.
func TestInspectALeaseOfWhoWaitsForMore(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		for _, dir := range []string{"/s", "/s/locks", "/s/leases"} {
			_, err := b.Ours.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
		stand(t, b.Ours, "/s/leases/lease-")
		stand(t, b.Ours, "/s/locks/lock-")
		stand(t, b.Other, "/s/leases/lease-")
		require.Equal(t, []string{"lease*", "lease*", "lock"}, seen(t, b.Other, "/s"))
		stand(t, b.Ours, "/s/leases/lease-")
		require.Equal(
			t, []string{"lease*", "lease*", "lease", "lock"}, seen(t, b.Other, "/s"),
		)
	})
}

// A hundred participants with a megabyte each, whoever created them, cost a hundred
// megabytes for each look.
func TestParticipantsHaveTheBeginningOfTheirData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := locktest.ConnectThrough(t, zktest.Start(t), "ours")
		for size, want := range map[int]int{
			0: 0, 1: 1, 4096: 4096, 4097: 4096, 1e6: 4096,
		} {
			path := fmt.Sprint("/lock", size)
			data := bytes.Repeat([]byte("x"), size)
			lock := locktest.NewMutex(t, client, path, recipes.WithData(data))
			ctx := locktest.Owner(t)
			require.NoError(t, lock.Acquire(ctx))
			all, err := lock.Participants(ctx)
			require.NoError(t, err)
			inspected, err := recipes.Inspect(ctx, client, path)
			require.NoError(t, err)
			require.Equal(t, all, inspected)
			require.Len(t, all, 1)
			require.Equal(t, data[:want], append([]byte{}, all[0].Data...))
			require.LessOrEqual(t, cap(all[0].Data), 2*4096, "the rest stays in memory")
			require.Equal(t, size, all[0].DataSize)
		}
	})
}

// One participant that this session may not read made the whole queue invisible.
func TestAParticipantThatMayNotBeReadIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		other := locktest.ConnectThrough(t, cluster, "other")
		lock := locktest.NewMutex(t, client, "/lock")
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		secret := locktest.NewMutex(t, other, "/lock",
			recipes.WithACL(zk.DigestACL(zk.PermAll, "user", "secret")))
		acquiring(t, secret.Acquire)

		all, err := lock.Participants(ctx)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.NotZero(t, all[0].Session)
		require.True(t, all[0].Holding)
		require.Equal(t, recipes.Participant{Node: all[1].Node, Kind: "lock"}, all[1])
	})
}

// A number that a participant has made up puts it before the holder, who keeps the lock;
// whoever looks at the queue sees it otherwise, as docs/security.md says.
func TestAMadeUpNumberIsShownFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		eve := locktest.ConnectThrough(t, cluster, "eve")
		latch := locktest.NewLatch(t, client, "/latch")
		term, err := latch.Await(locktest.Owner(t))
		require.NoError(t, err)
		forged, err := eve.Create("/latch/eve-latch--000000001", nil, zk.FlagEphemeral,
			zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.NoError(t, term.Err())
		require.True(t, latch.HasLeadership())
		all, err := latch.Participants(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, forged, all[0].Node)
		require.True(t, all[0].Holding)
		require.Equal(t, term.Path(), all[1].Node)
		require.False(t, all[1].Holding)
		leader, leads, err := latch.Leader(t.Context())
		require.NoError(t, err)
		require.True(t, leads)
		require.Equal(t, forged, leader.Node)
	})
}
