package hazards_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// The server may delete an empty container between any two calls: NoNode for the create
// reached the caller after one retry (CURATOR-180, CURATOR-435; kazoo 61, 563).
func TestHazardA1_16_DirectoryGoneBeforeTheCreate(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		const reaped = 5
		s := newScene(t)
		root := s.path
		s.path += "/a/b"
		s.use(t, s.Conn)
		left := reaped
		s.Tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			if p.Op != wiretap.Create || left == 0 {
				return wiretap.Pass
			}
			for dir := path.Dir(p.Path); dir != root; dir = path.Dir(dir) {
				err := s.other.Conn.Delete(dir, -1)
				if err == nil && dir == s.path {
					left--
				}
				if err != nil && !errors.Is(err, zk.ErrNoNode) {
					t.Error(err)
				}
			}
			return wiretap.Pass
		})
		s.acquired(t)
		require.Zero(t, left)
		require.Len(t, s.requests(wiretap.Create), 1+reaped+1)
		s.holdsAlone(t)
	})
}

// Another process makes the directory in between.
func TestHazardA1_16_DirectoryMadeMeanwhile(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.path += "/a"
		s.use(t, s.Conn)
		s.Tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			if p.Op == wiretap.CreateContainer {
				if _, err := s.other.Conn.CreateContainer(
					p.Path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll),
				); err != nil {
					t.Error(err)
				}
			}
			return wiretap.Pass
		})
		s.acquired(t)
		require.Len(t, s.requests(wiretap.CreateContainer), 1)
		s.holdsAlone(t)
	})
}

// The whole directory goes while one holds and another waits.
func TestHazardA1_16_DirectoryGoneWhileWaiting(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		holder, ctx := s.other.Mutex(s.path), locktest.Owner(t)
		require.NoError(t, holder.Acquire(ctx))
		hold := holder.Hold(ctx)
		done := s.acquire()
		first := s.steps.Nth(t, recipes.EventQueued, 1).Node
		_, err := s.other.Conn.Multi(&zk.DeleteRequest{
			Path: first, Version: -1,
		}, &zk.DeleteRequest{Path: hold.Path(), Version: -1},
			&zk.DeleteRequest{Path: s.path, Version: -1})
		require.NoError(t, err)
		locktest.Within(t, hold.Lost(), "the holder is not told")
		require.NoError(
			t, locktest.Within(t, done, "the waiter does not make the directory anew"),
		)
		require.ErrorIs(t, holder.Release(ctx), recipes.ErrLockLost)
		s.holdsAlone(t)
	})
}

// The directory is a container, by its own operation: Create with the same flag makes a
// persistent znode.
func TestHazardE20_DirectoriesAreContainers(t *testing.T) {
	zkserver.Real(t, "a shorter interval between its looks for empty containers")
	t.Parallel()
	p, dir := locktest.NewPeer(
		t,
		zkserver.Start(t, zkserver.JVM("-Dznode.container.checkIntervalMs=50")).Connect(),
		locktest.Lasting,
	), "/a/b"
	lock, ctx := p.Mutex(dir), locktest.Owner(t)
	for range 3 {
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
		locktest.Eventually(t, func() bool {
			exists, _, err := p.Conn.Exists("/a")
			require.NoError(t, err)
			return !exists
		}, "the server does not delete the empty directory")
	}
}

// The reply to createContainer is lost.
func TestHazardE19_ContainerReplyLost(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.path += "/a"
		s.use(t, s.Conn)
		lost := s.Tap.LoseReply(wiretap.CreateContainer, 1)
		s.acquired(t)
		locktest.Within(t, lost, "nothing was lost")
		s.holdsAlone(t)
	})
}

// A server that does not know containers says so and closes the connection: it is to be
// asked once.
func TestHazardE21_NoContainers(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		root := s.path
		s.path = root + "/a/b"
		s.use(t, s.Conn)
		refused := s.Tap.NthRequest(wiretap.CreateContainer, 1, wiretap.AnswerAndCut(-6))
		s.acquired(t)
		locktest.Within(t, refused, "no container was asked for")
		require.Equal(
			t, []string{root + "/a/b", root + "/a", root + "/a/b"},
			plainCreates(s.Tap.Requests()),
		)
		s.holdsAlone(t)
		s.path = root + "/c"
		s.use(t, s.Conn)
		s.acquired(t)
		s.holdsAlone(t)
		require.Equal(t, 1, s.Tap.Count(wiretap.CreateContainer), "it is remembered")
	})
}

// plainCreates returns the paths of the creates but for those of lock znodes.
func plainCreates(requests []wiretap.Packet) (paths []string) {
	for _, p := range requests {
		if p.Op == wiretap.Create && !strings.HasPrefix(path.Base(p.Path), "_c_") {
			paths = append(paths, p.Path)
		}
	}
	return paths
}
