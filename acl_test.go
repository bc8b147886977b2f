package recipes_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestACLOfZnodesAndParents(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	require.NoError(t, p.Conn.AddAuth("digest", []byte("user:secret")))
	acl := zk.DigestACL(zk.PermAll, "user", "secret")
	lock, ctx := p.Mutex(path+"/below", recipes.WithACL(acl)), locktest.Owner(t)
	require.NoError(t, lock.Acquire(ctx))
	for _, node := range []string{path, path + "/below", lock.LockPath(ctx)} {
		got, _, err := p.Conn.GetACL(node)
		require.NoError(t, err)
		require.Equal(t, acl, got, node)
	}

	other := locktest.SharedPeer(t)
	stranger := other.Mutex(path + "/below")
	err := stranger.Acquire(ctx)
	require.ErrorIs(t, err, zk.ErrNoAuth, "at once, not at the end of some timeout")
	require.ErrorContains(t, err, "acquire "+path+"/below")
	ok, err := stranger.AcquireTimeout(ctx, locktest.Patience)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.False(t, ok)
	_, err = stranger.ParticipantNodes(ctx)
	require.ErrorIs(t, err, zk.ErrNoAuth)

	require.NoError(t, other.Conn.AddAuth("digest", []byte("user:wrong")))
	require.ErrorIs(t, stranger.Acquire(ctx), zk.ErrNoAuth, "a wrong password")
	require.NoError(t, other.Conn.AddAuth("digest", []byte("user:secret")))
	ok, err = stranger.AcquireTimeout(ctx, 0)
	require.NoError(t, err)
	require.False(t, ok, "it is held")
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, stranger.Acquire(ctx))
	require.NoError(t, stranger.Release(ctx))
}

// What an ACL forbids ends each step at once, and leaves nothing behind that the permissions allow to delete.
func TestForbiddenSteps(t *testing.T) {
	t.Parallel()
	p := locktest.SharedPeer(t)
	require.NoError(t, p.Conn.AddAuth("digest", []byte("admin:secret")))
	dir := func(name string, perms int32) string {
		path := zkserver.Path(t) + name
		_, err := p.Conn.Create(path, nil, 0, append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(perms)...))
		require.NoError(t, err)
		return path
	}
	// refused checks which request is said to be refused, and for what.
	refused := func(t *testing.T, err error, request, lacks string) {
		t.Helper()
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Regexp(t, request+": zk: not authenticated "+
			`\(the session lacks `+lacks+`\)$`, err.Error())
	}
	const znode = `/_c_[0-9a-f-]{36}-lock-(\d{10})?`
	t.Run("create", func(t *testing.T) {
		path := dir("create", zk.PermRead|zk.PermDelete)
		err := locktest.SharedPeer(t).Mutex(path).Acquire(t.Context())
		refused(t, err, "^recipes: acquire "+path+": create "+path+znode, "CREATE on "+path)
		require.Empty(t, p.Children(path))
	})
	t.Run("create a parent", func(t *testing.T) {
		path := dir("parent", zk.PermRead|zk.PermDelete)
		err := locktest.SharedPeer(t).Mutex(path + "/a/b").Acquire(t.Context())
		refused(t, err, "^recipes: acquire "+path+"/a/b: create "+path+"/a", "CREATE on "+path)
		require.Empty(t, p.Children(path))
	})
	t.Run("list", func(t *testing.T) {
		path := dir("list", zk.PermCreate|zk.PermDelete)
		lock := locktest.SharedPeer(t).Mutex(path)
		refused(t, lock.Acquire(t.Context()), ": list "+path, "READ on "+path)
		p.AwaitChildren(path, 0)
		_, err := lock.ParticipantNodes(t.Context())
		refused(t, err, "^recipes: participants of "+path+": list "+path, "READ on "+path)
	})
	t.Run("read the znode ahead", func(t *testing.T) {
		path := dir("read", zk.PermCreate|zk.PermDelete|zk.PermRead)
		secret := p.Mutex(path, recipes.WithACL(zk.DigestACL(zk.PermAll, "admin", "secret")))
		ctx := locktest.Owner(t)
		require.NoError(t, secret.Acquire(ctx))
		ahead, other := secret.LockPath(ctx), locktest.SharedPeer(t)
		refused(t, other.Mutex(path).Acquire(t.Context()), ": read "+ahead, "READ on "+ahead)
		_, err := other.Mutex(path).Participants(t.Context())
		refused(t, err, ": read "+ahead, "READ on "+ahead)
		err = recipes.AttemptRevoke(t.Context(), other.Conn, ahead)
		refused(t, err, "^recipes: revoke "+ahead+": set "+ahead, "WRITE on "+ahead)
		p.AwaitChildren(path, 1)
		require.NoError(t, secret.Release(ctx))
	})
	t.Run("delete", func(t *testing.T) {
		path := dir("delete", zk.PermCreate|zk.PermRead)
		other := locktest.SharedPeer(t)
		lock, ctx := other.Mutex(path), locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		err := lock.Release(ctx)
		refused(t, err, "^recipes: release "+path+": delete "+path+znode, "DELETE on "+path)
		require.Len(t, p.Children(path), 1, "it stays until the session ends")
		other.Conn.Close()
		p.AwaitChildren(path, 0)
	})
	t.Run("read and set a count", func(t *testing.T) {
		path, other := dir("count", 0), locktest.SharedPeer(t)
		err := recipes.SetSharedCount(t.Context(), other.Conn, path, 1)
		refused(t, err, "^recipes: set shared count "+path+": set "+path, "WRITE on "+path)
		semaphore, err := recipes.NewInterProcessSemaphoreV2Shared(
			other.Conn, zkserver.Path(t)+"semaphore", path)
		require.NoError(t, err)
		_, err = semaphore.Acquire(t.Context())
		refused(t, err, ": shared count "+path+": read "+path, "READ on "+path)
	})
	t.Run("children of an ephemeral znode", func(t *testing.T) {
		path := zkserver.Path(t)
		_, err := p.Conn.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.ErrorIs(t, locktest.SharedPeer(t).Mutex(path).Acquire(t.Context()), zk.ErrNoChildrenForEphemerals)
	})
}

// Who may create below a path needs no permission above it.
func TestNoPermissionAboveTheParent(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	require.NoError(t, p.Conn.AddAuth("digest", []byte("admin:secret")))
	_, err := p.Conn.Create(path, nil, 0, zk.DigestACL(zk.PermAll, "admin", "secret"))
	require.NoError(t, err)
	_, err = p.Conn.Create(path+"/open", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	lock := locktest.SharedPeer(t).Mutex(path + "/open/a/lock")
	require.NoError(t, lock.Acquire(t.Context()))
	require.NoError(t, lock.Release(t.Context()))
}
