package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestMain(m *testing.M) { os.Exit(zkserver.Main(m)) }

// Here is what concerns the recipes together: that they work, what they refuse, and what
// permissions they need. What holds for every lock, or for one of them, is in packages
// below internal/behaviour.

func TestBadInput(t *testing.T) {
	t.Parallel()
	p := locktest.SharedPeer(t)
	var none *zk.Conn
	for name, c := range map[string]struct {
		conn recipes.Conn
		path string
		opts []recipes.Option
		says string
	}{
		"nil conn":    {conn: nil, path: "/a", says: "conn is nil"},
		"nil pointer": {conn: none, path: "/a", says: "conn is nil"},
		"not comparable": {
			conn: uncomparable{p.Conn, nil}, path: "/a", says: "not comparable",
		},
		"empty path":     {conn: p.Conn, path: "", says: "is empty"},
		"relative":       {conn: p.Conn, path: "a/b", says: `begin with "/"`},
		"trailing slash": {conn: p.Conn, path: "/a/", says: `ends in "/"`},
		"double slash":   {conn: p.Conn, path: "/a//b", says: "empty name"},
		"dot":            {conn: p.Conn, path: "/./x", says: "relative paths"},
		"dot dot":        {conn: p.Conn, path: "/a/..", says: "relative paths"},
		"null":           {conn: p.Conn, path: "/a\x00b", says: "U+0000"},
		"control":        {conn: p.Conn, path: "/a\x1fb", says: "U+001F"},
		"private use":    {conn: p.Conn, path: "/a\ue000b", says: "U+E000"},
		"not UTF-8":      {conn: p.Conn, path: "/a\xffb", says: "U+FFFD"},
		"data too large": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithData(make([]byte, 1<<20))},
			says: "WithData: 1048576 bytes",
		},
		"data too large beside the ACL": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{
				recipes.WithData(make([]byte, 1047356)),
				recipes.WithACL([]zk.ACL{
					{Scheme: "scheme", ID: strings.Repeat("i", 1000)},
				}),
			},
			says: "1047356 bytes exceed the maximum of 1047355",
		},
		"empty ACL": {
			conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithACL(nil)},
			says: "WithACL",
		},
		"nil option": {
			conn: p.Conn, path: "/a", opts: []recipes.Option{nil}, says: "option 1 is",
		},
		"nil logger": {
			conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithLogger(nil)},
			says: "WithLogger",
		},
		"nil observer": {
			conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithObserver(nil)},
			says: "WithObserver",
		},
		"no session timeout": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithSessionTimeout(0)},
			says: "WithSessionTimeout: 0s",
		},
		"a negative one": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithSessionTimeout(-time.Second)},
			says: "WithSessionTimeout: -1s",
		},
		"no server tick": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithServerTick(0)}, says: "WithServerTick: 0s",
		},
		"a negative loss margin": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithLossMargin(-1)},
			says: "WithLossMargin: -1ns is negative",
		},
		"a session timeout that no server grants": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithSessionTimeout(math.MaxInt64)},
			says: "WithSessionTimeout: 2562047h47m16.854775807s exceeds 596h31m23.647s",
		},
		"a server tick that no server has": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithServerTick(math.MaxInt64)},
			says: "WithServerTick: 2562047h47m16.854775807s exceeds 596h31m23.647s",
		},
		"a loss margin that no session has": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithLossMargin(math.MaxInt64)},
			says: "WithLossMargin: 2562047h47m16.854775807s exceeds 596h31m23.647s",
		},
		"no time to hold": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithMaxHold(0)}, says: "WithMaxHold: 0s",
		},
		"an empty name": {
			conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithNames("a-", "")},
			says: "WithNames: a name is empty",
		},
		"a name with a slash": {
			conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithNames("a/")},
			says: `WithNames: "a/": a znode's name has no "/"`,
		},
		"a name of our own": {
			conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithNames("-lock-")},
			says: `WithNames: "-lock-": "lock-" is a name of this library's own`,
		},
		"path and data and ACL": {
			conn: p.Conn, path: "/" + strings.Repeat("a", 1<<19),
			opts: []recipes.Option{recipes.WithData(make([]byte, 1<<19))},
			says: "WithData",
		},
	} {
		t.Run(name, func(t *testing.T) {
			lock, err := recipes.NewInterProcessMutex(c.conn, c.path, c.opts...)
			require.Nil(t, lock)
			require.ErrorContains(t, err, c.says)
			if strings.Contains(c.says, "begin") || strings.Contains(c.says, "U+") {
				require.ErrorIs(t, err, zk.ErrInvalidPath)
			}
			where := " " + c.path + ": "
			if errors.Is(err, zk.ErrInvalidPath) { // a bad path is quoted, and told once
				where = fmt.Sprintf(": path %q ", c.path)
			}
			require.ErrorContains(t, err, "recipes: NewInterProcessMutex"+where)
		})
	}
	for _, path := range []string{"", "a", "/a/"} {
		err := recipes.AttemptRevoke(t.Context(), p.Conn, path)
		require.ErrorIs(t, err, zk.ErrInvalidPath)
		require.ErrorContains(t, err, fmt.Sprintf("recipes: revoke: path %q ", path))
	}
	require.ErrorContains(
		t, recipes.AttemptRevoke(t.Context(), nil, "/a"), "conn is nil",
	)
	require.Empty(t, p.Tap.Requests(), "a refused call asked something of ZooKeeper")
}

type uncomparable struct {
	recipes.Conn
	_ []int
}

// A lock at the root of the tree is odd but legal: the chroot of a Client may be all that
// there is for it.
func TestAtTheRoot(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p := locktest.NewPeer(t, zkserver.Start(t).Connect(), 4*time.Second)
		lock, ctx := p.Mutex("/"), locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		require.Regexp(t, `^/_c_.*-lock-\d{10}$`, lock.LockPath(ctx))
		require.NoError(t, lock.Release(ctx))
	})
}

// TestSmoke is short enough to be run on every kind of server that there is.
func TestSmoke(t *testing.T) {
	t.Parallel()
	cluster, path := zkserver.Shared(t), zkserver.Path(t)
	t.Log("on", cluster.Kind())
	var clients []*recipes.Client
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), locktest.Patience)
		defer cancel()
		client, err := recipes.Connect(
			ctx, cluster.Connect()+path, locktest.Lasting)
		require.NoError(t, err)
		defer client.Close()
		clients = append(clients, client)
	}
	one, err := recipes.NewInterProcessMutex(clients[0], "/lock")
	require.NoError(t, err)
	two, err := recipes.NewInterProcessMutex(clients[1], "/lock")
	require.NoError(t, err)

	ctx := locktest.Owner(t)
	require.NoError(t, one.Acquire(ctx))
	first := one.Hold(ctx)
	ok, err := two.AcquireTimeout(ctx, 200*time.Millisecond)
	require.NoError(t, err)
	require.False(t, ok)
	waiting := locktest.Start(func() error { return two.Acquire(ctx) })
	locktest.Eventually(t, func() bool {
		nodes, err := one.ParticipantNodes(ctx)
		require.NoError(t, err)
		return len(nodes) == 2
	}, "nobody waits")
	require.NoError(t, one.Release(ctx))
	require.NoError(t, locktest.Within(t, waiting, "the waiter's turn"))
	second := two.Hold(ctx)
	require.Greater(t, second.FencingToken(), first.FencingToken())
	require.NoError(t, first.Err())

	_, err = clients[1].Unwrap().Multi(second.CheckOp())
	require.NoError(
		t, err, "the check has the path that the server sees, with the chroot",
	)
	clients[1].Close()
	locktest.Within(t, second.Lost(), "a closed connection loses its holds")
	require.ErrorIs(t, two.Release(ctx), recipes.ErrLockLost)
	require.NoError(t, one.Acquire(ctx))
	require.NoError(t, one.Release(ctx))
}

func TestACLOfZnodesAndParents(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
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
	})
}

// What an ACL forbids ends each step at once, and leaves nothing behind that the
// permissions allow to delete.
func TestForbiddenSteps(t *testing.T) {
	t.Parallel()
	p := locktest.SharedPeer(t)
	require.NoError(t, p.Conn.AddAuth("digest", []byte("admin:secret")))
	dir := func(name string, perms int32) string {
		path := zkserver.Path(t) + name
		_, err := p.Conn.Create(
			path, nil, 0,
			append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(perms)...),
		)
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
		refused(
			t, err, "^recipes: acquire "+path+": create "+path+znode, "CREATE on "+path,
		)
		require.Empty(t, p.Children(path))
	})
	t.Run("create a parent", func(t *testing.T) {
		path := dir("parent", zk.PermRead|zk.PermDelete)
		err := locktest.SharedPeer(t).Mutex(path + "/a/b").Acquire(t.Context())
		refused(
			t, err, "^recipes: acquire "+path+"/a/b: create "+path+"/a",
			"CREATE on "+path,
		)
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
		secret := p.Mutex(
			path, recipes.WithACL(zk.DigestACL(zk.PermAll, "admin", "secret")),
		)
		ctx := locktest.Owner(t)
		require.NoError(t, secret.Acquire(ctx))
		ahead, other := secret.LockPath(ctx), locktest.SharedPeer(t)
		refused(
			t, other.Mutex(path).Acquire(t.Context()), ": read "+ahead, "READ on "+ahead,
		)
		all, err := other.Mutex(path).Participants(t.Context())
		require.NoError(t, err)
		require.Equal(t, []recipes.Participant{
			{Node: ahead, Kind: "lock", Holding: true},
		}, all, "nothing of it can be read")
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
		refused(
			t, err, "^recipes: release "+path+": delete "+path+znode, "DELETE on "+path,
		)
		require.Len(t, p.Children(path), 1, "it stays until the session ends")
		other.Conn.Close()
		p.AwaitChildren(path, 0)
	})
	t.Run("read and set a count", func(t *testing.T) {
		path, other := dir("count", 0), locktest.SharedPeer(t)
		err := recipes.SetSharedCount(t.Context(), other.Conn, path, 1)
		refused(
			t, err, "^recipes: set shared count "+path+": set "+path, "WRITE on "+path,
		)
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
		require.ErrorIs(
			t, locktest.SharedPeer(t).Mutex(path).Acquire(t.Context()),
			zk.ErrNoChildrenForEphemerals,
		)
	})
}

// Who may create below a path needs no permission above it.
func TestNoPermissionAboveTheParent(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		require.NoError(t, p.Conn.AddAuth("digest", []byte("admin:secret")))
		_, err := p.Conn.Create(path, nil, 0, zk.DigestACL(zk.PermAll, "admin", "secret"))
		require.NoError(t, err)
		_, err = p.Conn.Create(path+"/open", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		lock := locktest.SharedPeer(t).Mutex(path + "/open/a/lock")
		require.NoError(t, lock.Acquire(t.Context()))
		require.NoError(t, lock.Release(t.Context()))
	})
}
