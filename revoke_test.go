package recipes_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// asked counts the calls of a listener.
type asked chan struct{}

func newAsked() asked      { return make(asked, 100) }
func (a asked) listen()    { a <- struct{}{} }
func (a asked) count() int { return len(a) }
func (a asked) once(t *testing.T) {
	t.Helper()
	within(t, a, "the listener is called")
}

func TestRevokeAHolder(t *testing.T) {
	t.Parallel()
	path, a, other := zkserver.Path(t), newAsked(), sharedPeer(t)
	p := sharedPeer(t)
	lock, ctx := p.mutex(path, recipes.WithData([]byte("mine"))), ownerContext(t)
	lock.MakeRevocable(a.listen)
	for range 2 { // it stays in force for later holds
		require.NoError(t, lock.Acquire(ctx))
		data, _, err := other.conn.Get(lock.LockPath(ctx))
		require.NoError(t, err)
		require.Equal(t, "mine", string(data), "a revocable lock keeps its data")
		for range 2 { // each time that somebody asks
			require.NoError(t, recipes.AttemptRevoke(t.Context(), other.conn, lock.LockPath(ctx)))
			a.once(t)
		}
		require.True(t, lock.IsOwned(ctx), "whether to release is up to the holder")
		require.NoError(t, lock.Release(ctx))
	}
	require.Zero(t, a.count())
}

func TestRevokeAWaiter(t *testing.T) {
	t.Parallel()
	path, a, other := zkserver.Path(t), newAsked(), sharedPeer(t)
	// Two znodes ahead, since a waiter behind one has reasons of its own to watch its znode.
	require.NoError(t, other.mutex(path).Acquire(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start(func() error { return other.mutex(path).Acquire(recipes.WithOwner(ctx)) })
	other.awaitChildren(path, 2)

	lock := sharedPeer(t).mutex(path)
	ended := start(func() error { return lock.Acquire(ctx) })
	node := path + "/" + other.awaitChildren(path, 3)[2]
	lock.MakeRevocable(func() { a.listen(); cancel() })
	require.NoError(t, recipes.AttemptRevoke(t.Context(), other.conn, node))
	a.once(t)
	require.ErrorIs(t, within(t, ended, "the waiter gives up"), context.Canceled)
}

func TestRevokeBecomesPossibleLater(t *testing.T) {
	t.Parallel()
	path, other := zkserver.Path(t), sharedPeer(t)
	p := sharedPeer(t)
	lock, ctx := p.mutex(path), ownerContext(t)
	require.NoError(t, lock.Acquire(ctx))
	before, after := newAsked(), newAsked()
	lock.MakeRevocable(before.listen)
	lock.MakeRevocable(nil)
	node := lock.LockPath(ctx)
	awaitOwnWatch(t, p)         // set by the first MakeRevocable
	_, err := p.conn.Sync(node) // and answered
	require.NoError(t, err)
	read := p.tap.NthReply(wiretap.GetData, 1, wiretap.Pass)
	require.NoError(t, recipes.AttemptRevoke(t.Context(), other.conn, node))
	within(t, read, "the request is read, while nobody listens")
	lock.MakeRevocable(after.listen)
	after.once(t)
	require.NoError(t, recipes.AttemptRevoke(t.Context(), other.conn, node))
	after.once(t)
	require.Zero(t, before.count())
	require.Zero(t, after.count())
	require.NoError(t, lock.Release(ctx))
}

// Other data than the message is no request, and the message does not wake the next in the queue for good.
func TestRevokeMessage(t *testing.T) {
	t.Parallel()
	path, a, other := zkserver.Path(t), newAsked(), sharedPeer(t)
	lock, ctx := sharedPeer(t).mutex(path), ownerContext(t)
	lock.MakeRevocable(a.listen)
	require.NoError(t, lock.Acquire(ctx))
	next := other.mutex(path)
	waiting := start(func() error { return next.Acquire(ctx) })
	other.awaitChildren(path, 2)
	_, err := other.conn.Set(lock.LockPath(ctx), []byte("something else"), -1)
	require.NoError(t, err)
	require.NoError(t, recipes.AttemptRevoke(t.Context(), other.conn, lock.LockPath(ctx)))
	a.once(t)
	require.Zero(t, a.count())
	require.False(t, next.IsAcquiredInThisProcess())
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, within(t, waiting, "the next one's turn"))

	data, _, err := other.conn.Get(next.LockPath(ctx))
	require.NoError(t, err)
	require.NotEqual(t, "__REVOKE__", string(data))
	require.NoError(t, next.Release(ctx))
}

func TestAttemptRevoke(t *testing.T) {
	t.Parallel()
	p, path := sharedPeer(t), zkserver.Path(t)
	require.NoError(t, recipes.AttemptRevoke(t.Context(), p.conn, path+"/gone"), "a znode that is gone is no error")
	_, err := p.conn.Create(path, nil, 0, []zk.ACL{{Perms: zk.PermRead | zk.PermDelete, Scheme: "world", ID: "anyone"}})
	require.NoError(t, err)
	err = recipes.AttemptRevoke(t.Context(), p.conn, path)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.ErrorContains(t, err, "revoke "+path)

	node := path + "-node"
	_, err = p.conn.Create(node, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	cut := p.tap.LoseReply("setData", 1)
	require.NoError(t, recipes.AttemptRevoke(t.Context(), p.conn, node), "an outage is waited out")
	within(t, cut, "the fault")
	data, _, err := p.conn.Get(node)
	require.NoError(t, err)
	require.Equal(t, "__REVOKE__", string(data))

	p.tap.Refuse(true)
	p.tap.Cut()
	ctx, cancel := context.WithCancel(t.Context())
	ended := start(func() error { return recipes.AttemptRevoke(ctx, p.conn, node) })
	cancel()
	require.ErrorIs(t, within(t, ended, "revoke"), context.Canceled)
	p.tap.Refuse(false)
}
