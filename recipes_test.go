package recipes_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A guarded counter lies in ZooKeeper and is not safe by itself: it is read, and written without a version.
type counter struct{ path string }

func newCounter(t *testing.T, p *locktest.Peer) counter {
	t.Helper()
	c := counter{zkserver.Path(t) + "-counter"}
	_, err := p.Conn.Create(c.path, make([]byte, 8), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return c
}

func (c counter) value(conn *zk.Conn) (uint64, error) {
	data, _, err := conn.Get(c.path)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(data), nil
}

func (c counter) increment(conn *zk.Conn) error {
	n, err := c.value(conn)
	if err != nil {
		return err
	}
	_, err = conn.Set(c.path, binary.BigEndian.AppendUint64(nil, n+1), -1)
	return err
}

// grants is the order in which owners got a lock, as they saw it while they held it.
type grants struct {
	mu  sync.Mutex
	got []*recipes.Hold
}

func (g *grants) add(h *recipes.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.got = append(g.got, h)
}

func sequence(node string) string { return node[len(node)-10:] }

func TestExclusionAndOrder(t *testing.T) {
	t.Parallel()
	const sessions, owners, increments = 8, 2, 200
	path := zkserver.Path(t)
	first := locktest.SharedPeer(t)
	count := newCounter(t, first)
	var all grants
	var workers []<-chan error
	for range sessions {
		p := locktest.SharedPeer(t)
		lock := p.Mutex(path)
		for range owners {
			ctx := locktest.Owner(t)
			workers = append(workers, locktest.Start(func() error {
				for range increments {
					if err := recipes.Do(ctx, lock, func(ctx context.Context, _ *recipes.Hold) error {
						all.add(lock.Hold(ctx))
						return count.increment(p.Conn)
					}); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
	for _, w := range workers {
		select {
		case err := <-w:
			require.NoError(t, err)
		case <-t.Context().Done():
			t.Fatal("interrupted")
		}
	}
	n, err := count.value(first.Conn)
	require.NoError(t, err)
	require.EqualValues(t, sessions*owners*increments, n)
	require.Len(t, all.got, sessions*owners*increments)
	for i, h := range all.got[1:] {
		require.Less(t, sequence(all.got[i].Path()), sequence(h.Path()), "granted out of the order of the queue")
		require.Less(t, all.got[i].FencingToken(), h.FencingToken(), "the token did not grow")
		require.NoError(t, h.Err())
	}
	require.Empty(t, first.Children(path))
}

func TestReentryByGoroutine(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	lock := p.Mutex(path)
	ctx := t.Context()
	for range 3 {
		require.NoError(t, lock.Acquire(ctx))
	}
	ok, err := lock.AcquireTimeout(ctx, 0)
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, p.Children(path), 1, "a re-entry made a znode")
	for range 3 {
		require.NoError(t, lock.Release(ctx))
		require.True(t, lock.IsOwned(ctx))
	}
	require.NoError(t, lock.Release(ctx))
	require.False(t, lock.IsOwned(ctx))
	require.Empty(t, p.Children(path))
	require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
}

func TestReentryByContext(t *testing.T) {
	t.Parallel()
	lock := locktest.SharedPeer(t).Mutex(zkserver.Path(t))
	ctx := locktest.Owner(t)
	require.NoError(t, lock.Acquire(ctx))
	type key struct{}
	derived, cancel := context.WithCancel(context.WithValue(ctx, key{}, "value"))
	defer cancel()
	require.NoError(t, locktest.Within(t, locktest.Start(func() error { return lock.Acquire(derived) }), "re-entry on another goroutine"))
	require.NoError(t, locktest.Within(t, locktest.Start(func() error { return lock.Release(derived) }), "release on another goroutine"))
	require.True(t, lock.IsOwned(ctx))

	require.False(t, lock.IsOwned(t.Context()), "the goroutine is not the owner that its ctx had carried")
	require.ErrorIs(t, lock.Release(t.Context()), recipes.ErrNotOwner)
	require.ErrorIs(t, lock.Release(recipes.WithOwner(ctx)), recipes.ErrNotOwner, "an owner within an owner is another one")
	require.NoError(t, lock.Release(ctx))
}

func TestOneOwnerOnTwoGoroutinesAtOnce(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	other, lock := locktest.SharedPeer(t).Mutex(path), p.Mutex(path)
	require.NoError(t, other.Acquire(t.Context()))
	ctx := locktest.Owner(t)
	one := locktest.Start(func() error { return lock.Acquire(ctx) })
	p.AwaitChildren(path, 2)
	two := locktest.Start(func() error { return lock.Acquire(ctx) })
	impatient, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, lock.Acquire(impatient), context.DeadlineExceeded)
	require.NoError(t, other.Release(t.Context()))
	require.NoError(t, locktest.Within(t, one, "first acquire"))
	require.NoError(t, locktest.Within(t, two, "second acquire, a re-entry"))
	require.Len(t, p.Children(path), 1)
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, lock.Release(ctx))
	require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
}

func TestGoroutinesOnOneValueExcludeEachOther(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	lock := p.Mutex(path)
	require.NoError(t, lock.Acquire(t.Context()))
	ok, err := lock.AcquireTimeout(locktest.Owner(t), 0)
	require.NoError(t, err)
	require.False(t, ok)

	require.ErrorIs(t, locktest.Within(t, locktest.Start(func() error { return lock.Release(t.Context()) }), "release"), recipes.ErrNotOwner)
	got := make(chan struct{})
	done := locktest.Start(func() error {
		if err := lock.Acquire(t.Context()); err != nil {
			return err
		}
		close(got)
		return lock.Release(t.Context())
	})
	p.AwaitChildren(path, 2)
	select {
	case <-got:
		t.Fatal("two goroutines hold the lock")
	default:
	}
	require.NoError(t, lock.Release(t.Context()))
	require.NoError(t, locktest.Within(t, done, "the other goroutine's turn"))
}

func TestDo(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	lock := p.Mutex(path)

	t.Run("nested, also on another goroutine", func(t *testing.T) {
		err := recipes.Do(t.Context(), lock, func(ctx context.Context, _ *recipes.Hold) error {
			return locktest.Within(t, locktest.Start(func() error {
				return recipes.Do(ctx, lock, func(ctx context.Context, _ *recipes.Hold) error {
					require.True(t, lock.IsOwned(ctx))
					return nil
				})
			}), "nested Do")
		})
		require.NoError(t, err)
		require.False(t, lock.IsAcquiredInThisProcess())
	})
	t.Run("the goroutine is the owner", func(t *testing.T) {
		require.NoError(t, lock.Acquire(t.Context()))
		require.NoError(t, recipes.Do(t.Context(), lock, func(context.Context, *recipes.Hold) error { return lock.Release(t.Context()) }))
		require.False(t, lock.IsAcquiredInThisProcess())
	})
	t.Run("fn's error comes back as it is", func(t *testing.T) {
		failed := errors.New("failed")
		require.Equal(t, failed, recipes.Do(t.Context(), lock, func(context.Context, *recipes.Hold) error { return failed }))
		require.False(t, lock.IsAcquiredInThisProcess())
	})
	t.Run("a panic releases", func(t *testing.T) {
		require.PanicsWithValue(t, "oh", func() {
			_ = recipes.Do(t.Context(), lock, func(context.Context, *recipes.Hold) error { panic("oh") })
		})
		require.False(t, lock.IsAcquiredInThisProcess())
		require.Empty(t, p.Children(path))
	})
	t.Run("a ctx that ends during fn does not keep the lock", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, recipes.Do(ctx, lock, func(context.Context, *recipes.Hold) error { cancel(); return nil }))
		require.Empty(t, p.Children(path))
	})
	t.Run("a loss cancels fn and is in the result", func(t *testing.T) {
		failed := errors.New("failed")
		err := recipes.Do(t.Context(), lock, func(ctx context.Context, _ *recipes.Hold) error {
			if err := p.Conn.Delete(lock.LockPath(ctx), -1); err != nil {
				return err
			}
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), recipes.ErrLockLost)
			return failed
		})
		require.ErrorIs(t, err, failed)
		require.ErrorIs(t, err, recipes.ErrLockLost)
	})
	t.Run("not acquired, not run", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, recipes.Do(ctx, lock, func(context.Context, *recipes.Hold) error { t.Error("run"); return nil }), context.Canceled)
	})
}

func TestHold(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	lock, ctx := p.Mutex(path), locktest.Owner(t)
	require.Nil(t, lock.Hold(ctx))
	require.Empty(t, lock.LockPath(ctx))
	require.False(t, lock.IsOwned(ctx))
	require.False(t, lock.IsAcquiredInThisProcess())

	require.NoError(t, lock.Acquire(ctx))
	hold := lock.Hold(ctx)
	require.Equal(t, lock.LockPath(ctx), hold.Path())
	require.Equal(t, []string{strings.TrimPrefix(hold.Path(), path+"/")}, p.Children(path))
	require.Regexp(t, path+`/_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-0000000000$`, hold.Path())
	require.Nil(t, lock.Hold(locktest.Owner(t)), "another owner's")
	require.True(t, lock.IsAcquiredInThisProcess())
	_, stat, err := p.Conn.Get(hold.Path())
	require.NoError(t, err)
	require.Equal(t, p.Conn.SessionID(), stat.EphemeralOwner)
	require.GreaterOrEqual(t, hold.FencingToken(), stat.Czxid)

	require.NoError(t, lock.Acquire(ctx))
	require.Same(t, hold, lock.Hold(ctx), "a re-entry is the same hold")
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, lock.Release(ctx))
	select {
	case <-hold.Lost():
		t.Fatal("a normal release closed Lost")
	default:
	}
	require.NoError(t, hold.Err())
	require.Nil(t, lock.Hold(ctx))
}

// The token must lie below the czxid of whoever joins later, although it may be the parent's pzxid: also where somebody joined, or
// left, between our create and our list.
func TestTokenWhenSomebodySlippedIn(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	p, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
	_, err := other.Conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	created := p.Tap.NthReply(wiretap.Create, 1, wiretap.Pass)
	var node string
	var once sync.Once
	p.Tap.OnRequest(func(request wiretap.Packet) wiretap.Verdict {
		if request.Op == wiretap.GetChildren2 {
			once.Do(func() {
				<-created
				node, err = other.Conn.CreateProtectedEphemeralSequential(path+"/lock-", nil, zk.WorldACL(zk.PermAll))
			})
		}
		return wiretap.Pass
	})
	lock, ctx := p.Mutex(path), locktest.Owner(t)
	require.NoError(t, lock.Acquire(ctx))
	require.NoError(t, err)
	_, mine, err := p.Conn.Get(lock.LockPath(ctx))
	require.NoError(t, err)
	_, theirs, err := p.Conn.Get(node)
	require.NoError(t, err)
	require.Less(t, mine.Czxid, theirs.Czxid)
	require.Equal(t, mine.Czxid, lock.Hold(ctx).FencingToken())
	require.NoError(t, lock.Release(ctx))
}

func TestCheckGuardsAMulti(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	lock, ctx := p.Mutex(path), locktest.Owner(t)
	count := newCounter(t, p)
	set := &zk.SetDataRequest{Path: count.path, Data: binary.BigEndian.AppendUint64(nil, 7), Version: -1}
	require.NoError(t, lock.Acquire(ctx))
	hold := lock.Hold(ctx)
	_, err := p.Conn.Multi(hold.Check(), set)
	require.NoError(t, err)
	require.NoError(t, lock.Release(ctx))
	set.Data = binary.BigEndian.AppendUint64(nil, 8)
	_, err = p.Conn.Multi(hold.Check(), set)
	require.ErrorIs(t, err, zk.ErrNoNode)
	n, err := count.value(p.Conn)
	require.NoError(t, err)
	require.EqualValues(t, 7, n)
}

func TestParticipants(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	one, two := locktest.SharedPeer(t), locktest.SharedPeer(t)
	a, b := one.Mutex(path, recipes.WithData([]byte("one"))), two.Mutex(path)
	nodes, err := a.ParticipantNodes(t.Context())
	require.NoError(t, err)
	require.Empty(t, nodes, "of a lock that was never used")
	all, err := a.Participants(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)

	require.NoError(t, a.Acquire(t.Context()))
	waiting := locktest.Start(func() error { return b.Acquire(t.Context()) })
	one.AwaitChildren(path, 2)
	_, err = one.Conn.Create(path+"/config", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	nodes, err = b.ParticipantNodes(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	require.Equal(t, a.LockPath(t.Context()), nodes[0])

	all, err = b.Participants(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, nodes, []string{all[0].Node, all[1].Node})
	require.Equal(t, "one", string(all[0].Data))
	require.Regexp(t, `^[0-9a-f.:]+$`, string(all[1].Data), "by default an address")
	require.Equal(t, []bool{true, false}, []bool{all[0].Holding, all[1].Holding})
	require.Equal(t, []int64{one.Conn.SessionID(), two.Conn.SessionID()}, []int64{all[0].Session, all[1].Session})
	require.WithinDuration(t, time.Now(), all[0].Since, time.Minute)
	require.False(t, all[1].Since.Before(all[0].Since))
	require.NoError(t, a.Release(t.Context()))
	require.NoError(t, locktest.Within(t, waiting, "b's turn"))
}

func TestManyParticipants(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	lock := p.Mutex(path)
	require.NoError(t, lock.Acquire(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	var waiting []<-chan error
	for range 100 {
		waiting = append(waiting, locktest.Start(func() error { return lock.Acquire(recipes.WithOwner(ctx)) }))
	}
	p.AwaitChildren(path, 101)
	all, err := lock.Participants(t.Context())
	require.NoError(t, err)
	nodes, err := lock.ParticipantNodes(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 101)
	for i, participant := range all {
		require.Equal(t, nodes[i], participant.Node)
		require.Equal(t, i == 0, participant.Holding)
	}
	cancel()
	for _, w := range waiting {
		require.ErrorIs(t, locktest.Within(t, w, "cancelled"), context.Canceled)
	}
	require.Equal(t, nodes[0], path+"/"+p.AwaitChildren(path, 1)[0])
	require.NoError(t, lock.Release(t.Context()))
}

func TestObserver(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	var one, two locktest.Recorder
	a, b := p.Mutex(path, recipes.WithObserver(one.Observe)), locktest.SharedPeer(t).Mutex(path, recipes.WithObserver(two.Observe))
	ctx := locktest.Owner(t)
	require.NoError(t, a.Acquire(ctx))
	require.NoError(t, a.Acquire(ctx))
	hold := a.Hold(ctx)
	ok, err := b.AcquireTimeout(t.Context(), 200*time.Millisecond)
	require.NoError(t, err)
	require.False(t, ok)
	cancelled, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	waiting := locktest.Start(func() error { return b.Acquire(cancelled) })
	locktest.Eventually(t, func() bool { return len(two.Kinds()) == 3 }, "not queued") // before that, a cancelled Acquire only fails
	cancel(why)
	require.ErrorIs(t, locktest.Within(t, waiting, "cancelled"), why)
	require.NoError(t, a.Release(ctx))
	require.NoError(t, a.Release(ctx))
	require.NoError(t, b.Acquire(ctx))
	require.NoError(t, p.Conn.Delete(b.LockPath(ctx), -1))
	two.Await(t, recipes.EventLost)
	require.ErrorIs(t, b.Release(ctx), recipes.ErrLockLost)

	require.Equal(t, []recipes.EventKind{recipes.EventQueued, recipes.EventAcquired, recipes.EventReleased}, one.Kinds())
	require.Equal(t, []recipes.EventKind{
		recipes.EventQueued, recipes.EventTimedOut,
		recipes.EventQueued, recipes.EventFailed,
		recipes.EventQueued, recipes.EventAcquired, recipes.EventLost,
	}, two.Kinds())
	acquired := one.Await(t, recipes.EventAcquired)
	require.Equal(t, path, acquired.Path)
	require.Equal(t, hold.Path(), acquired.Node)
	require.Equal(t, hold.FencingToken(), acquired.Token)
	require.Positive(t, acquired.Elapsed)
	require.Equal(t, 1, two.Await(t, recipes.EventQueued).Ahead)
	require.GreaterOrEqual(t, two.Await(t, recipes.EventTimedOut).Elapsed, 30*time.Millisecond)
	require.ErrorIs(t, two.Await(t, recipes.EventFailed).Err, why)
	require.ErrorIs(t, two.Await(t, recipes.EventLost).Err, recipes.ErrLockLost)
	for _, kind := range append(two.Kinds(), one.Kinds()...) {
		require.NotEqual(t, "unknown", kind.String())
	}
}

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
		"nil conn":           {conn: nil, path: "/a", says: "conn: is nil"},
		"nil pointer":        {conn: none, path: "/a", says: "conn: is nil"},
		"not comparable":     {conn: uncomparable{p.Conn, nil}, path: "/a", says: "not comparable"},
		"empty path":         {conn: p.Conn, path: "", says: "is empty"},
		"relative":           {conn: p.Conn, path: "a/b", says: `begin with "/"`},
		"trailing slash":     {conn: p.Conn, path: "/a/", says: `ends in "/"`},
		"double slash":       {conn: p.Conn, path: "/a//b", says: "empty name"},
		"dot":                {conn: p.Conn, path: "/./x", says: "relative paths"},
		"dot dot":            {conn: p.Conn, path: "/a/..", says: "relative paths"},
		"null":               {conn: p.Conn, path: "/a\x00b", says: "U+0000"},
		"control":            {conn: p.Conn, path: "/a\x1fb", says: "U+001F"},
		"private use":        {conn: p.Conn, path: "/a\ue000b", says: "U+E000"},
		"not UTF-8":          {conn: p.Conn, path: "/a\xffb", says: "U+FFFD"},
		"data too large":     {conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithData(make([]byte, 1<<20))}, says: "WithData: 1048576 bytes"},
		"empty ACL":          {conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithACL(nil)}, says: "WithACL"},
		"nil option":         {conn: p.Conn, path: "/a", opts: []recipes.Option{nil}, says: "options"},
		"nil logger":         {conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithLogger(nil)}, says: "WithLogger"},
		"nil observer":       {conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithObserver(nil)}, says: "WithObserver"},
		"no session timeout": {conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithSessionTimeout(0)}, says: "WithSessionTimeout: 0s"},
		"a negative one":     {conn: p.Conn, path: "/a", opts: []recipes.Option{recipes.WithSessionTimeout(-time.Second)}, says: "WithSessionTimeout: -1s"},
		"no server tick": {
			conn: p.Conn, path: "/a",
			opts: []recipes.Option{recipes.WithServerTick(0)}, says: "WithServerTick: 0s",
		},
		"path and data and ACL": {conn: p.Conn, path: "/" + strings.Repeat("a", 1<<19), opts: []recipes.Option{recipes.WithData(make([]byte, 1<<19))}, says: "WithData"},
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
	require.ErrorContains(t, recipes.AttemptRevoke(t.Context(), nil, "/a"), "conn: is nil")
	require.Empty(t, p.Tap.Requests(), "a refused call asked something of ZooKeeper")
}

type uncomparable struct {
	recipes.Conn
	_ []int
}

// The largest data that the constructor takes is not refused by the server, which would close the connection.
func TestLargestData(t *testing.T) {
	t.Parallel()
	p, path := locktest.SharedPeer(t), zkserver.Path(t)
	size := 1 << 20
	for {
		if _, err := recipes.NewInterProcessMutex(p.Conn, path, recipes.WithData(make([]byte, size))); err == nil {
			break
		}
		size--
	}
	lock := p.Mutex(path, recipes.WithData(bytes.Repeat([]byte("x"), size)))
	require.NoError(t, lock.Acquire(t.Context()))
	require.NoError(t, lock.Release(t.Context()))
	require.Equal(t, 1, p.Tap.Count("connect"))
}

// A lock at the root of the tree is odd but legal: the chroot of a Client may be all that there is for it.
func TestAtTheRoot(t *testing.T) {
	t.Parallel()
	p := locktest.NewPeer(t, zkserver.Start(t).Connect(), 4*time.Second)
	lock, ctx := p.Mutex("/"), locktest.Owner(t)
	require.NoError(t, lock.Acquire(ctx))
	require.Regexp(t, `^/_c_.*-lock-\d{10}$`, lock.LockPath(ctx))
	require.NoError(t, lock.Release(ctx))
}

func TestMain(m *testing.M) { os.Exit(zkserver.Main(m)) }
