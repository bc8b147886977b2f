package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestRevokeAHolder(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, a, other := zkserver.Path(t), locktest.NewAsked(), locktest.SharedPeer(t)
		p := locktest.SharedPeer(t)
		lock, ctx := p.Mutex(path, recipes.WithData([]byte("mine"))), locktest.Owner(t)
		lock.MakeRevocable(a.Listen)
		for range 2 { // it stays in force for later holds
			require.NoError(t, lock.Acquire(ctx))
			data, _, err := other.Conn.Get(lock.LockPath(ctx))
			require.NoError(t, err)
			require.Equal(t, "mine", string(data), "a revocable lock keeps its data")
			for range 2 { // each time that somebody asks
				require.NoError(
					t, recipes.AttemptRevoke(t.Context(), other.Conn, lock.LockPath(ctx)),
				)
				a.Once(t)
			}
			require.True(t, lock.IsOwned(ctx), "whether to release is up to the holder")
			require.NoError(t, lock.Release(ctx))
		}
		require.Zero(t, a.Count())
	})
}

func TestRevokeAWaiter(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, a, other := zkserver.Path(t), locktest.NewAsked(), locktest.SharedPeer(t)
		// Two znodes ahead, since a waiter behind one has reasons of its own to watch its
		// znode.
		require.NoError(t, other.Mutex(path).Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		locktest.Start(func() error {
			return other.Mutex(path).Acquire(recipes.WithOwner(ctx))
		})
		other.AwaitChildren(path, 2)

		lock := locktest.SharedPeer(t).Mutex(path)
		ended := locktest.Start(func() error { return lock.Acquire(ctx) })
		node := path + "/" + other.AwaitChildren(path, 3)[2]
		lock.MakeRevocable(func() { a.Listen(); cancel() })
		require.NoError(t, recipes.AttemptRevoke(t.Context(), other.Conn, node))
		a.Once(t)
		require.ErrorIs(t, locktest.Within(t, ended, "the waiter gives up"),
			context.Canceled)
	})
}

func TestRevokeBecomesPossibleLater(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, other := zkserver.Path(t), locktest.SharedPeer(t)
		p := locktest.SharedPeer(t)
		lock, ctx := p.Mutex(path), locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		before, after := locktest.NewAsked(), locktest.NewAsked()
		lock.MakeRevocable(before.Listen)
		lock.MakeRevocable(nil)
		node := lock.LockPath(ctx)
		locktest.AwaitOwnWatch(t, p) // set by the first MakeRevocable
		_, err := p.Conn.Sync(node)  // and answered
		require.NoError(t, err)
		read := p.Tap.NthReply(wiretap.GetData, 1, wiretap.Pass)
		require.NoError(t, recipes.AttemptRevoke(t.Context(), other.Conn, node))
		locktest.Within(t, read, "the request is read, while nobody listens")
		lock.MakeRevocable(after.Listen)
		after.Once(t)
		require.NoError(t, recipes.AttemptRevoke(t.Context(), other.Conn, node))
		after.Once(t)
		require.Zero(t, before.Count())
		require.Zero(t, after.Count())
		require.NoError(t, lock.Release(ctx))
	})
}

// Other data than the message is no request, and the message does not wake the next in
// the queue for good.
func TestRevokeMessage(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, a, other := zkserver.Path(t), locktest.NewAsked(), locktest.SharedPeer(t)
		lock, ctx := locktest.SharedPeer(t).Mutex(path), locktest.Owner(t)
		lock.MakeRevocable(a.Listen)
		require.NoError(t, lock.Acquire(ctx))
		next := other.Mutex(path)
		waiting := locktest.Start(func() error { return next.Acquire(ctx) })
		other.AwaitChildren(path, 2)
		_, err := other.Conn.Set(lock.LockPath(ctx), []byte("something else"), -1)
		require.NoError(t, err)
		require.NoError(t,
			recipes.AttemptRevoke(t.Context(), other.Conn, lock.LockPath(ctx)))
		a.Once(t)
		require.Zero(t, a.Count())
		require.False(t, next.IsAcquiredInThisProcess())
		require.NoError(t, lock.Release(ctx))
		require.NoError(t, locktest.Within(t, waiting, "the next one's turn"))

		data, _, err := other.Conn.Get(next.LockPath(ctx))
		require.NoError(t, err)
		require.NotEqual(t, "__REVOKE__", string(data))
		require.NoError(t, next.Release(ctx))
	})
}

func TestAttemptRevoke(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		require.NoError(
			t, recipes.AttemptRevoke(t.Context(), p.Conn, path+"/gone-lock-0000000007"),
			"a znode that is gone is no error",
		)
		path += "-lock-0000000007"
		_, err := p.Conn.Create(
			path, nil, 0,
			[]zk.ACL{{Perms: zk.PermRead | zk.PermDelete, Scheme: "world", ID: "anyone"}},
		)
		require.NoError(t, err)
		err = recipes.AttemptRevoke(t.Context(), p.Conn, path)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, "revoke "+path)

		node := path + "-lock-0000000008"
		_, err = p.Conn.Create(node, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		cut := p.Tap.LoseReply("setData", 1)
		require.NoError(
			t, recipes.AttemptRevoke(t.Context(), p.Conn, node),
			"an outage is waited out",
		)
		locktest.Within(t, cut, "the fault")
		data, _, err := p.Conn.Get(node)
		require.NoError(t, err)
		require.Equal(t, "__REVOKE__", string(data))

		p.Tap.Refuse(true)
		p.Tap.Cut()
		ctx, cancel := context.WithCancel(t.Context())
		ended := locktest.Start(func() error {
			return recipes.AttemptRevoke(ctx, p.Conn, node)
		})
		cancel()
		require.ErrorIs(t, locktest.Within(t, ended, "revoke"), context.Canceled)
		p.Tap.Refuse(false)
	})
}

// It overwrote what is no lock's, and returned nil.
func TestAttemptRevokeOverwritesNothingElse(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		_, err := b.Other.Create("/config", []byte("x=1"), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		for _, path := range []string{
			"/config", "/", "/config-0000000007", "/a/lock-", "/lock-0000000007/a",
			"/_c_1-lock-000000007", "/_c_1-lock-00000000071", "/_c_1-LOCK-0000000007",
		} {
			err := recipes.AttemptRevoke(t.Context(), b.Ours, path)
			require.ErrorContains(t, err, "revoke "+path+": this is not the path")
		}
		data, _, err := b.Other.Get("/config")
		require.NoError(t, err)
		require.Equal(t, "x=1", string(data))
		for _, name := range []string{
			"lock-0000000007", "_c_1-lock-0000000007", "_c_1-__READ__0000000007",
			"_c_1-__WRIT__0000000007", "_c_1-lease-0000000007", "_c_1-latch-0000000007",
			"1__lock__0000000007", "_c_1-lock--2147483648",
		} {
			node, err := b.Other.Create("/"+name, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			require.NoError(t, recipes.AttemptRevoke(t.Context(), b.Ours, node))
			data, _, err := b.Other.Get(node)
			require.NoError(t, err)
			require.Equal(t, "__REVOKE__", string(data))
		}
	})
}

// Whoever has WRITE on the holder's znode could start a goroutine here with each request,
// as long as the listener has work to do. Requests beyond 16 calls at once are merged
// into one, which follows.
func TestManyRevocationsAreBounded(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock, ctx := b.Mutex(t, b.Ours, "/lock"), locktest.Owner(t)
		var calls atomic.Int32
		returns := make(chan struct{})
		lock.MakeRevocable(func() { calls.Add(1); <-returns })
		require.NoError(t, lock.Acquire(ctx))
		ask := func(times int) {
			for range times {
				err := recipes.AttemptRevoke(ctx, b.Other, lock.LockPath(ctx))
				require.NoError(t, err)
				synctest.Wait()
			}
		}
		ask(10)
		require.EqualValues(t, 10, calls.Load(), "each is a call")
		ask(1000)
		require.EqualValues(t, 16, calls.Load())
		returns <- struct{}{}
		synctest.Wait()
		require.EqualValues(t, 17, calls.Load(), "none is lost")
		returns <- struct{}{}
		synctest.Wait()
		require.EqualValues(t, 17, calls.Load(), "one stands for all")
		ask(1)
		require.EqualValues(t, 18, calls.Load())

		// Whoever has released is not asked for what came before.
		ask(1)
		require.NoError(t, lock.Release(ctx))
		close(returns)
		synctest.Wait()
		require.EqualValues(t, 18, calls.Load())
		require.NoError(t, lock.Acquire(ctx))
		ask(1)
		require.EqualValues(t, 19, calls.Load())
	})
}
