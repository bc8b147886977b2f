package hazards_test

import (
	"context"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A scene is a mutex under test, its connection's mishaps, and another process that looks
// on. The directory exists.
type scene struct {
	*locktest.Peer
	other *locktest.Peer
	path  string
	lock  *recipes.InterProcessMutex
	steps *locktest.Recorder // of lock
	ctx   context.Context    // carries the owner
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return newSceneWith(t, locktest.NewPeer(t, locktest.ManyNames(t), locktest.Lasting))
}

func newSceneWith(t *testing.T, p *locktest.Peer) *scene {
	t.Helper()
	other := locktest.NewPeer(t, zkserver.Shared(t).Connect(), locktest.Lasting)
	s := &scene{
		Peer: p, other: other, path: zkserver.Path(t), steps: new(locktest.Recorder),
		ctx: locktest.Owner(t),
	}
	s.makeDir(t)
	s.use(t, p.Conn)
	return s
}

func (s *scene) makeDir(t *testing.T) {
	t.Helper()
	_, err := s.other.Conn.CreateContainer(
		s.path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll),
	)
	require.NoError(t, err)
}

// use makes the lock anew, on conn.
func (s *scene) use(t *testing.T, conn recipes.Conn) {
	t.Helper()
	lock := locktest.NewMutex(t, conn, s.path,
		recipes.WithSessionTimeout(s.Timeout), recipes.WithObserver(s.steps.Observe))
	s.lock = lock
}

// acquire lets the owner of s.ctx acquire the lock, and reports on the channel.
func (s *scene) acquire() <-chan error {
	return locktest.Start(func() error { return s.lock.Acquire(s.ctx) })
}

// acquired is acquire for when nobody is ahead.
func (s *scene) acquired(t *testing.T) {
	t.Helper()
	require.NoError(t, locktest.Within(t, s.acquire(), "the lock is not acquired"))
}

// occupy lets the other process hold the lock until the returned function is called.
func (s *scene) occupy(t *testing.T) (release func()) {
	t.Helper()
	lock, ctx := s.other.Mutex(s.path), locktest.Owner(t)
	acquired := locktest.Start(func() error { return lock.Acquire(ctx) })
	require.NoError(
		t, locktest.Within(t, acquired, "the other process does not get the lock"),
	)
	return func() {
		t.Helper()
		require.NoError(t, lock.Release(ctx))
	}
}

// holdsAlone checks that the owner of s.ctx holds the lock by the only znode that there
// is, which lives in the present session, that others are kept out, and that nothing
// stays after the release.
func (s *scene) holdsAlone(t *testing.T) {
	t.Helper()
	node := s.path + "/" + s.other.AwaitChildren(s.path, 1)[0]
	require.Equal(t, node, s.lock.LockPath(s.ctx))
	_, stat, err := s.other.Conn.Get(node)
	require.NoError(t, err)
	require.Equal(t, s.Conn.SessionID(), stat.EphemeralOwner)
	require.False(
		t, locktest.Try(t, s.other, s.path), "another process holds the lock, too",
	)
	require.NoError(t, s.lock.Hold(s.ctx).Err())
	require.NoError(t, s.lock.Release(s.ctx))
	s.other.AwaitChildren(s.path, 0)
}

// delete deletes a znode behind its owner's back.
func (s *scene) delete(t *testing.T, node string) {
	t.Helper()
	require.NoError(t, s.other.Conn.Delete(node, -1))
}

// requests returns the paths of the requests with an operation that concern the lock's
// directory or what is in it.
func (s *scene) requests(op wiretap.Op) (paths []string) {
	for _, p := range s.RequestsBelow(s.path) {
		if p.Op == op {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// watches counts the watches on a znode that were asked for.
func (s *scene) watches(node string) int {
	paths := s.Watching()
	others := slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return p == node
	})
	return len(paths) - len(others)
}

// dropEvents lets the client hear of nothing any more.
func (s *scene) dropEvents() {
	s.Tap.OnReply(func(_, reply wiretap.Packet) wiretap.Verdict {
		if reply.Op == wiretap.Event {
			return wiretap.Drop
		}
		return wiretap.Pass
	})
}

// awaitWatch waits until a watch on a znode was asked for n times, and the last one is
// set.
func (s *scene) awaitWatch(t *testing.T, node string, n int) {
	t.Helper()
	locktest.Eventually(
		t, func() bool { return s.watches(node) == n },
		"%s is not watched for the %dth time", node, n,
	)
	_, err := s.Conn.Sync("/") // is answered behind
	require.NoError(t, err)
}

// tellExpired makes the client believe that its session has expired, while the server
// still has it. It returns when the client has a new one.
func (s *scene) tellExpired(t *testing.T) {
	t.Helper()
	old := s.Conn.SessionID()
	told := s.Tap.NthRequest(wiretap.Connect, 1, wiretap.Answer(locktest.SessionExpired))
	s.Tap.Cut()
	locktest.Within(t, told, "the client is not told that its session has expired")
	locktest.Eventually(t, func() bool {
		return s.Conn.SessionID() != old && s.Conn.State() == zk.StateHasSession
	}, "no new session")
}

// expire cuts the connection off until the server has ended the session, and is seen to
// have deleted its znode, then heals it.
func (s *scene) expire(t *testing.T, node string) {
	t.Helper()
	s.Tap.Partition()
	locktest.Eventually(t, func() bool {
		exists, _, err := s.other.Conn.Exists(node)
		require.NoError(t, err)
		return !exists
	}, "the session does not expire")
	s.Tap.Heal()
}

// outages are the ways in which ZooKeeper is away, and how it comes back.
var outages = map[string]struct{ begin, end func(tap *wiretap.Tap) }{
	"partition":     {(*wiretap.Tap).Partition, (*wiretap.Tap).Heal},
	"partition out": {(*wiretap.Tap).PartitionOut, (*wiretap.Tap).Heal},
	"partition in":  {(*wiretap.Tap).PartitionIn, (*wiretap.Tap).Heal},
	"refused": {
		func(tap *wiretap.Tap) { tap.Refuse(true); tap.Cut() },
		func(tap *wiretap.Tap) { tap.Refuse(false) },
	},
	"frozen handshake": {func(tap *wiretap.Tap) {
		tap.NthRequest(wiretap.Connect, 1, wiretap.Drop)
		tap.Cut()
	}, (*wiretap.Tap).Cut},
}
