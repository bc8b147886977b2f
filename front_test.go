package recipes_test

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

// useTimes acquires and releases a lock so many times.
func useTimes(t *testing.T, lock recipes.InterProcessLock, times int) {
	t.Helper()
	for range times {
		require.NoError(t, recipes.Do(locktest.Owner(t), lock, nothing))
	}
}

// A frontBubble is one whose process ours has used the lock so often that it asks nobody
// whether the lock is free.
type frontBubble struct{ *locktest.Bubble }

const frontUses = 3

func inFrontBubble(t *testing.T, test func(t *testing.T, b *frontBubble)) {
	t.Helper()
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		useTimes(t, b.Lock, frontUses)
		test(t, &frontBubble{b})
	})
}

// join makes znodes of the other process, who hold the lock and wait.
func (b *frontBubble) join(t *testing.T, times int) (nodes []string) {
	t.Helper()
	for range times {
		node, err := b.Other.Create("/lock/_c_0b2d2e5c-3b0b-4a0f-8f0b-1e6f1e7a9c55-lock-",
			nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		nodes = append(nodes, node)
	}
	return nodes
}

// waits demands that the lock is not to be had while a znode is there that is ahead.
func (b *frontBubble) waits(t *testing.T, ahead []string) {
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
	inFrontBubble(t, func(t *testing.T, b *frontBubble) {
		b.waits(t, b.join(t, 1))
	})
}

// replace deletes the directory and makes it anew, with as many znodes of the other
// process as there were of ours: the next number is the same as before.
func (b *frontBubble) replace(t *testing.T) (nodes []string) {
	t.Helper()
	require.NoError(t, b.Other.Delete("/lock", -1))
	_, err := b.Other.Create("/lock", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return b.join(t, frontUses)
}

// Numbers tell who is next in one directory only.
func TestTheNextNumberInAnotherDirectory(t *testing.T) {
	inFrontBubble(t, func(t *testing.T, b *frontBubble) {
		b.waits(t, b.replace(t))
	})
}

// The watch on the directory does not tell in time of what happened while the connection
// was away.
func TestTheNextNumberInADirectoryThatWasReplacedUnseen(t *testing.T) {
	inFrontBubble(t, func(t *testing.T, b *frontBubble) {
		link := b.Cluster.Link("ours")
		link.Cut()
		nodes := b.replace(t)
		link.Heal()
		b.waits(t, nodes)
	})
}

// It tells of what happened while nobody used the connection not at all, where the client
// had an answer that was newer before it could set its watches again.
func TestTheNextNumberInADirectoryThatWasReplacedInAnIdleTime(t *testing.T) {
	inFrontBubble(t, func(t *testing.T, b *frontBubble) {
		time.Sleep(10 * time.Second)
		link := b.Cluster.Link("ours")
		link.Cut()
		time.Sleep(7 * time.Second)
		nodes := b.replace(t)
		go func() { _, _, _ = b.Ours.Get("/") }() // kept, and asked first
		time.Sleep(time.Millisecond)
		link.LoseRequest(zktest.OpSetWatches)
		link.Heal()
		time.Sleep(3 * time.Second)
		link.Spare()
		time.Sleep(time.Minute)
		require.Equal(t, zk.StateHasSession, b.Ours.State())
		b.waits(t, nodes)
	})
}

func TestAFreeLockInASessionAfterTheOther(t *testing.T) {
	inFrontBubble(t, func(t *testing.T, b *frontBubble) {
		session, link := b.Ours.SessionID(), b.Cluster.Link("ours")
		link.Cut()
		time.Sleep(time.Minute)
		link.Heal()
		useTimes(t, b.Lock, frontUses)
		require.NotEqual(t, session, b.Ours.SessionID())
	})
}

// The head of the answer to a create has its zxid, whoever else writes at the time, and
// whichever server answers.
func TestTheTokenOfAClientIsTheCzxid(t *testing.T) {
	t.Parallel()
	servers := zkserver.Start(t, zkserver.Servers(3)).Servers
	const clients, owners, uses = 6, 3, 40
	paths := []string{zkserver.Path(t), zkserver.Path(t), zkserver.Path(t)}
	var all sync.WaitGroup
	for i := range clients {
		client, err := recipes.Connect(t.Context(), servers[i%len(servers)].Addr,
			locktest.Lasting)
		require.NoError(t, err)
		defer client.Close()
		for j := range owners {
			lock, err := recipes.NewInterProcessMutex(client, paths[j])
			require.NoError(t, err)
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
}
