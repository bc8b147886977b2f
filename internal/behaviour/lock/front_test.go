package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// waits demands that the lock is not to be had while a znode is there that is ahead.
func waits(t *testing.T, b *locktest.Bubble, ahead []string) {
	t.Helper()
	acquired := locktest.Start(func() error { return b.Lock.Acquire(locktest.Owner(t)) })
	for _, node := range ahead {
		time.Sleep(time.Second)
		require.Empty(t, acquired, "granted beside %s", node)
		require.NoError(t, b.Other.Delete(node, -1))
	}
	require.NoError(t, <-acquired)
}

func TestWhoCameInBetweenIsNotOverlooked(t *testing.T) {
	locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
		waits(t, b, locktest.Join(t, b, 1))
	})
}

// replace deletes the directory and makes it anew, with as many znodes of the other
// process as there were of ours: the next number is the same as before.
func replace(t *testing.T, b *locktest.Bubble) (nodes []string) {
	t.Helper()
	require.NoError(t, b.Other.Delete("/lock", -1))
	_, err := b.Other.Create("/lock", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return locktest.Join(t, b, locktest.FrontUses)
}

// Numbers tell who is next in one directory only.
func TestTheNextNumberInAnotherDirectory(t *testing.T) {
	locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
		waits(t, b, replace(t, b))
	})
}

// The watch on the directory does not tell in time of what happened while the connection
// was away.
func TestTheNextNumberInADirectoryThatWasReplacedUnseen(t *testing.T) {
	locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
		link := b.Cluster.Link("ours")
		link.Cut()
		nodes := replace(t, b)
		link.Heal()
		waits(t, b, nodes)
	})
}

// It tells of what happened while nobody used the connection not at all, where the client
// had an answer that was newer before it could set its watches again.
func TestTheNextNumberInADirectoryThatWasReplacedInAnIdleTime(t *testing.T) {
	locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
		time.Sleep(10 * time.Second)
		link := b.Cluster.Link("ours")
		link.Cut()
		time.Sleep(7 * time.Second)
		nodes := replace(t, b)
		go func() { _, _, _ = b.Ours.Get("/") }() // kept, and asked first
		time.Sleep(time.Millisecond)
		link.LoseRequest(zktest.OpSetWatches)
		link.Heal()
		time.Sleep(3 * time.Second)
		link.Spare()
		time.Sleep(time.Minute)
		require.Equal(t, zk.StateHasSession, b.Ours.State())
		waits(t, b, nodes)
	})
}

func TestAFreeLockInASessionAfterTheOther(t *testing.T) {
	locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
		session, link := b.Ours.SessionID(), b.Cluster.Link("ours")
		link.Cut()
		time.Sleep(time.Minute)
		link.Heal()
		locktest.UseTimes(t, b.Lock, locktest.FrontUses)
		require.NotEqual(t, session, b.Ours.SessionID())
	})
}

// The head of the answer to a create has its zxid, whoever else writes at the time, and
// whichever server answers.
func TestTheTokenOfAClientIsTheCzxid(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		servers := zkserver.Start(t, zkserver.Servers(3)).Servers
		const clients, owners, uses = 6, 3, 40
		paths := []string{zkserver.Path(t), zkserver.Path(t), zkserver.Path(t)}
		var all sync.WaitGroup
		for i := range clients {
			client, err := locktest.Open(t.Context(), t, servers[i%len(servers)].Addr,
				locktest.Lasting)
			require.NoError(t, err)
			defer client.Close()
			for j := range owners {
				lock := locktest.NewMutex(t, client, paths[j])
				ctx := locktest.Owner(t)
				isCzxid := func(_ context.Context, h *recipes.Hold) error {
					_, stat, err := client.Get(h.Path())
					if token := h.FencingToken(); err == nil && stat.Czxid != token {
						return fmt.Errorf("token %#x, czxid %#x", token, stat.Czxid)
					}
					return err
				}
				all.Go(func() {
					for range uses {
						if err := recipes.Do(ctx, lock, isCzxid); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		all.Wait()
	})
}
