package hold_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// A multiScene is a lock below a chroot that is held, and a znode to write to.
type multiScene struct {
	*locktest.ChrootScene
	t    *testing.T
	lock *recipes.InterProcessMutex
	ctx  context.Context
	hold *recipes.Hold
}

func newMultiScene(t *testing.T, wrap func(*recipes.Client) recipes.Conn) *multiScene {
	t.Helper()
	s := &multiScene{
		ChrootScene: locktest.NewChrootScene(t), t: t, ctx: locktest.Owner(t),
	}
	lock := locktest.NewMutex(t, wrap(s.Client), "/lock")
	require.NoError(t, lock.Acquire(s.ctx))
	s.lock, s.hold = lock, lock.Hold(s.ctx)
	_, err := s.Client.Create("/config", []byte("old"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return s
}

func notWrapped(c *recipes.Client) recipes.Conn { return c }

// write is what the scene's transactions do.
func (s *multiScene) write() error {
	_, err := s.hold.Multi(locktest.SetConfig())
	return err
}

// written tells whether the write was done, also where the scene's client is cut off.
func (s *multiScene) written() bool {
	s.t.Helper()
	_, err := s.Beside.Sync("/")
	require.NoError(s.t, err)
	data, _, err := s.Beside.Get(locktest.Chroot + "/config")
	require.NoError(s.t, err)
	return string(data) == "new"
}

func TestHoldMulti(t *testing.T) {
	for name, wrap := range locktest.ClientWrappers {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			s := newMultiScene(t, wrap)
			create := &zk.CreateRequest{
				Path: "/config/n-", Flags: zk.FlagSequence,
				Acl: zk.WorldACL(zk.PermAll),
			}
			number := &zk.CreateRequest{
				Path: "/", Flags: zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll),
			}
			responses, err := s.hold.Multi(locktest.SetConfig(), create, number,
				&zk.DeleteRequest{Path: "/config/n-0000000000", Version: 0})
			require.NoError(t, err)
			require.Len(t, responses, 4)
			require.Equal(t, int32(1), responses[0].Stat.Version)
			require.Equal(t, "/config/n-0000000000", responses[1].String)
			require.Equal(t, "/0000000002", responses[2].String)
			require.True(t, s.written())
			require.Equal(t, "/config/n-", create.Path, "the caller's")
			require.Equal(t, "/", number.Path, "the caller's")

			responses, err = s.hold.Multi()
			require.NoError(t, err)
			require.Empty(t, responses)
		})
	}
}

func TestHoldMultiWithAnOperationThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMultiScene(t, notWrapped)
		for _, c := range []struct {
			op   any
			says string
			err  error
		}{
			{
				&zk.CheckVersionRequest{Path: "/config", Version: 7}, "check /config",
				zk.ErrBadVersion,
			},
			{&zk.DeleteRequest{Path: "/none", Version: -1}, "delete /none", zk.ErrNoNode},
			{&zk.SetDataRequest{Path: "/none", Version: -1}, "set /none", zk.ErrNoNode},
			{&zk.CreateRequest{
				Path: "/config", Acl: zk.WorldACL(zk.PermAll),
			}, "create /config", zk.ErrNodeExists},
		} {
			responses, err := s.hold.Multi(
				locktest.SetConfig(), c.op, locktest.SetConfig())
			require.ErrorIs(t, err, c.err)
			require.EqualError(t, err, "recipes: multi under "+s.hold.Path()+
				": operation 1, "+c.says+": "+c.err.Error())
			require.Len(t, responses, 3)
			require.NoError(t, responses[0].Error)
			require.ErrorIs(t, responses[1].Error, c.err)
			require.EqualError(t, responses[2].Error, "unknown error: -2") // not tried
			require.False(t, s.written())
			require.NoError(t, s.hold.Err(), "that is no loss")
		}
		_, err := s.hold.Multi(&zk.DeleteRequest{Path: "/none", Version: -1})
		require.ErrorContains(t, err, "operation 0, delete /none: ")
	})
}

// A cached entry is kept behind a transaction that has failed, or that was not sent.
func TestACachedEntryAfterATransactionThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMultiScene(t, notWrapped)
		lock := locktest.NewMutex(
			t, s.Client, "/cached", recipes.WithCaching(time.Minute, 10))
		first := locktest.Acquire(t.Context(), t, lock)
		_, err := first.Multi(&zk.DeleteRequest{Path: "/none", Version: -1})
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.NoError(t, first.Release(t.Context()))
		second := locktest.Acquire(t.Context(), t, lock)
		require.Equal(t, first.Path(), second.Path())

		s.Cluster.Link("ours").Cut()
		time.Sleep(100 * time.Millisecond)
		_, err = second.Multi(locktest.SetConfig())
		require.ErrorIs(t, err, zk.ErrNoServer)
		s.Cluster.Link("ours").Heal()
		time.Sleep(2 * time.Second)
		require.NoError(t, second.Release(t.Context()))
		third := locktest.Acquire(t.Context(), t, lock)
		require.Equal(t, first.Path(), third.Path())
		require.NoError(t, third.Release(t.Context()))
	})
}

func TestHoldMultiRefusesWhatIsNoOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMultiScene(t, notWrapped)
		for name, c := range map[string]struct {
			op  any
			err error
		}{
			"nil":         {nil, zk.ErrBadArguments},
			"nil pointer": {(*zk.DeleteRequest)(nil), zk.ErrBadArguments},
			"value":       {zk.DeleteRequest{Path: "/config"}, zk.ErrBadArguments},
			"relative":    {&zk.DeleteRequest{Path: "config"}, zk.ErrInvalidPath},
			"dots":        {&zk.DeleteRequest{Path: "/../x"}, zk.ErrInvalidPath},
			"slash":       {&zk.CreateRequest{Path: "/x/"}, zk.ErrInvalidPath},
			"no path":     {&zk.CheckVersionRequest{}, zk.ErrInvalidPath},
			"slashes": {
				&zk.CreateRequest{Path: "/x//", Flags: zk.FlagSequence},
				zk.ErrInvalidPath,
			},
		} {
			responses, err := s.hold.Multi(locktest.SetConfig(), c.op)
			require.ErrorIs(t, err, c.err, name)
			require.ErrorContains(t, err, "operation 1, ", name)
			require.Nil(t, responses)
			_, err = s.Client.Multi(locktest.SetConfig(), c.op)
			require.ErrorIs(t, err, c.err, name)
		}
		require.False(t, s.written())
	})
}

// An expiringConn is in another session by the time that a transaction is answered, and
// nobody knows that yet.
type expiringConn struct {
	*recipes.Client
	moved atomic.Bool
}

func (c *expiringConn) SessionID() int64 {
	if c.moved.Load() {
		return c.Client.SessionID() + 1
	}
	return c.Client.SessionID()
}

func (c *expiringConn) Multi(ops ...any) ([]zk.MultiResponse, error) {
	responses := make([]zk.MultiResponse, len(ops))
	responses[0].Error = zk.ErrNoNode
	c.moved.Store(true)
	return responses, zk.ErrNoNode
}

// A znode that is missing in the next session has gone with the one before.
func TestHoldMultiInTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMultiScene(t, func(c *recipes.Client) recipes.Conn {
			return &expiringConn{Client: c}
		})
		err := s.write()
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorIs(t, err, recipes.ErrSessionEnded)
		require.ErrorIs(t, s.hold.Err(), recipes.ErrSessionEnded)
	})
}

func TestHoldMultiOfALostHold(t *testing.T) {
	for name, lose := range map[string]func(s *multiScene){
		"deleted": func(s *multiScene) {
			require.NoError(s.t, s.Beside.Delete(locktest.Chroot+s.hold.Path(), -1))
		},
		"expired": func(s *multiScene) { s.Cluster.ExpireSession(s.Client.SessionID()) },
		"out of touch": func(s *multiScene) {
			s.Cluster.Link("ours").Cut()
			time.Sleep(time.Minute)
		},
		"closed": func(s *multiScene) { s.Client.Close() },
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			s := newMultiScene(t, notWrapped)
			lose(s)
			err := s.write()
			for range 50 { // until the client is connected again
				if errors.Is(err, recipes.ErrLockLost) {
					break
				}
				time.Sleep(100 * time.Millisecond)
				err = s.write()
			}
			require.ErrorIs(t, err, recipes.ErrLockLost)
			require.NotErrorIs(t, err, recipes.ErrNotOwner)
			require.ErrorIs(t, s.hold.Err(), recipes.ErrLockLost, "told at once")
			require.False(t, s.written())
		})
	}
}

func TestHoldMultiAfterRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMultiScene(t, notWrapped)
		require.NoError(t, s.lock.Release(s.ctx))
		err := s.write()
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		require.NotErrorIs(t, err, recipes.ErrLockLost)
		require.False(t, s.written())
	})
}

// What counts is which of the two reaches the leader first.
func TestHoldMultiUnderARelease(t *testing.T) {
	locktest.RunVirtual(t, "first", func(t *testing.T) {
		s := newMultiScene(t, notWrapped)
		s.Cluster.Link("ours").Stall(zktest.ToServer)
		written := locktest.Start(s.write)
		synctest.Wait()
		released := locktest.Start(func() error { return s.lock.Release(s.ctx) })
		synctest.Wait()
		s.Cluster.Link("ours").Heal()
		require.NoError(t, <-written)
		require.NoError(t, <-released)
		require.True(t, s.written())
	})
	locktest.RunVirtual(t, "last", func(t *testing.T) {
		slow := &locktest.SlowMultiConn{Released: make(chan struct{})}
		s := newMultiScene(t, func(c *recipes.Client) recipes.Conn {
			slow.Client = c
			return slow
		})
		written := locktest.Start(s.write)
		synctest.Wait()
		require.NoError(t, s.lock.Release(s.ctx))
		close(slow.Released)
		err := <-written
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		require.NotErrorIs(t, err, recipes.ErrLockLost)
		require.NoError(t, s.hold.Err(), "a release is no loss")
		require.False(t, s.written())
	})
}

// The next owner in the process does not wait for the delete of a znode that was
// released, but for what may still be done under it.
func TestHoldMultiUnderAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &locktest.SlowMultiConn{
			Released: make(chan struct{}), Deletes: make(chan struct{}),
		}
		s := newMultiScene(t, func(c *recipes.Client) recipes.Conn {
			slow.Client = c
			return slow
		})
		next := locktest.Owner(t)
		granted := locktest.Start(func() error { return s.lock.Acquire(next) })
		time.Sleep(time.Second)
		written := locktest.Start(s.write)
		synctest.Wait()
		released := locktest.Start(func() error { return s.lock.Release(s.ctx) })
		time.Sleep(time.Second)
		require.Empty(t, granted, "a transaction of the former owner's is under way")
		close(slow.Released)
		require.NoError(t, <-written, "the znode is still there")
		time.Sleep(time.Second)
		require.Empty(t, granted)
		close(slow.Deletes)
		require.NoError(t, <-released)
		require.NoError(t, <-granted)
		_, err := s.lock.Hold(next).Multi(locktest.SetConfig())
		require.NoError(t, err)
	})
}

// A transaction whose outcome is known keeps nobody waiting, even if the connection was
// away in between. One whose outcome is unknown does, until the znode is gone: it may
// still be on its way to the leader.
func TestHoldMultiUnderAHandOverAfterAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*zktest.Link, zktest.Op)
		waits bool
	}{
		"outcome unknown": {(*zktest.Link).LoseRequest, true},
		"outcome known": {func(link *zktest.Link, _ zktest.Op) {
			link.LoseRequest(zktest.OpGet) // of another read
		}, false},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			slow := &locktest.SlowMultiConn{
				Released: make(chan struct{}), Deletes: make(chan struct{}),
			}
			close(slow.Released)
			deleted := sync.OnceFunc(func() { close(slow.Deletes) })
			defer deleted()
			s := newMultiScene(t, func(c *recipes.Client) recipes.Conn {
				slow.Client = c
				return slow
			})
			granted := locktest.Start(func() error {
				return s.lock.Acquire(locktest.Owner(t))
			})
			time.Sleep(time.Second)
			c.fault(s.Cluster.Link("ours"), zktest.OpMulti)
			err := s.write()
			_, _, _ = s.Client.Get("/config")
			require.Equal(t, c.waits, err != nil, "%v", err)
			time.Sleep(5 * time.Second) // connected again
			released := locktest.Start(func() error { return s.lock.Release(s.ctx) })
			time.Sleep(time.Second)
			require.Equal(t, c.waits, len(granted) == 0)
			deleted()
			require.NoError(t, <-released)
			require.NoError(t, <-granted)
		})
	}
}

// The owner of a hold that was lost may not have heard of it yet. While its znode is
// there a transaction that checks it passes, so the next in the process does not hold the
// lock.
func TestCheckOfALostHoldUnderAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &locktest.SlowMultiConn{Deletes: make(chan struct{})}
		s := newMultiScene(t, func(c *recipes.Client) recipes.Conn {
			slow.Client = c
			return slow
		})
		next := locktest.Owner(t)
		granted := locktest.Start(func() error { return s.lock.Acquire(next) })
		time.Sleep(time.Second)
		check := func() error {
			_, err := s.Client.Unwrap().Multi(s.hold.CheckOp(), &zk.SetDataRequest{
				Path: locktest.Chroot + "/config", Data: []byte("new"), Version: -1,
			})
			return err
		}
		link := s.Cluster.Link("ours")
		link.Stall(zktest.Both)
		<-s.hold.Lost()
		link.Heal()
		time.Sleep(10 * time.Second)
		require.NoError(t, check(), "the session was to survive, and the znode with it")
		require.Empty(t, granted, "the lost hold's owner can still write")
		close(slow.Deletes)
		require.NoError(t, <-granted)
		require.ErrorIs(t, check(), zk.ErrNoNode)
		require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrLockLost)
	})
}

func TestHoldMultiWhoseConnectionBreaks(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*zktest.Link, zktest.Op)
		done  bool
	}{
		"the request is lost": {(*zktest.Link).LoseRequest, false},
		"the answer is lost":  {(*zktest.Link).LoseReply, true},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			s := newMultiScene(t, notWrapped)
			c.fault(s.Cluster.Link("ours"), zktest.OpMulti)
			err := s.write()
			require.ErrorIs(t, err, zk.ErrConnectionClosed)
			require.ErrorContains(t, err, "outcome unknown")
			require.NoError(t, s.hold.Err())
			require.Equal(t, c.done, s.written())
			time.Sleep(2 * time.Second)
			require.NoError(t, s.write(), "the lock is still held")
		})
	}
	locktest.RunVirtual(t, "it is not sent", func(t *testing.T) {
		s := newMultiScene(t, notWrapped)
		s.Cluster.Link("ours").Cut()
		time.Sleep(100 * time.Millisecond)
		err := s.write()
		require.ErrorIs(t, err, zk.ErrNoServer)
		require.NotContains(t, err.Error(), "unknown")
	})
}

func TestHoldMultiOfAMultiLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMultiScene(t, notWrapped)
		lock := locktest.NewMultiLock(t, s.Client, []string{
			"/a", "/b", "/c",
		})
		outer := recipes.NewInterProcessMultiLockOf(s.lock, lock)
		require.NoError(t, outer.Acquire(s.ctx))
		hold := outer.Hold(s.ctx)
		responses, err := hold.Multi(locktest.SetConfig())
		require.NoError(t, err)
		require.Len(t, responses, 1)

		first := lock.Holds(s.ctx)[0]
		require.NoError(t, s.Beside.Delete(locktest.Chroot+first.Path(), -1))
		_, err = hold.Multi(&zk.DeleteRequest{Path: "/config", Version: -1})
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorIs(t, first.Err(), recipes.ErrLockLost)
		synctest.Wait()
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		require.True(t, s.written(), "it is still there")

		foreign := locktest.NewMutex(t, s.Beside, "/foreign")
		mixed := recipes.NewInterProcessMultiLockOf(s.lock, foreign)
		require.NoError(t, mixed.Acquire(s.ctx))
		_, err = mixed.Hold(s.ctx).Multi(locktest.SetConfig())
		require.ErrorContains(t, err, "several connections")
	})
}

// A prefixConn changes paths, and tells so.
type prefixConn struct {
	recipes.SessionConn
	multis int
}

func (c *prefixConn) Unwrap() recipes.Conn { return c.SessionConn }

func (c *prefixConn) ServerPath(path string) string {
	return c.SessionConn.ServerPath("/below" + path)
}

func (c *prefixConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	created, err := c.SessionConn.Create("/below"+path, data, flags, acl)
	return strings.TrimPrefix(created, "/below"), err
}

func (c *prefixConn) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	return c.SessionConn.CreateContainer("/below"+path, data, flags, acl)
}

func (c *prefixConn) Children(path string) ([]string, *zk.Stat, error) {
	return c.SessionConn.Children("/below" + path)
}

func (c *prefixConn) Delete(path string, version int32) error {
	return c.SessionConn.Delete("/below"+path, version)
}

func (c *prefixConn) Get(path string) ([]byte, *zk.Stat, error) {
	return c.SessionConn.Get("/below" + path)
}

func (c *prefixConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	return c.SessionConn.GetW("/below" + path)
}

func (c *prefixConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	return c.SessionConn.ChildrenW("/below" + path)
}

func (c *prefixConn) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	return c.SessionConn.Set("/below"+path, data, version)
}

func (c *prefixConn) Multi(ops ...any) ([]zk.MultiResponse, error) {
	c.multis++
	below := make([]any, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case *zk.CheckVersionRequest:
			below[i] = &zk.CheckVersionRequest{Path: "/below" + op.Path, Version: -1}
		default:
			below[i] = op // the tests' own, which are not below
		}
	}
	return c.SessionConn.Multi(below...)
}

// A transaction goes through the connection of the lock, whatever that wraps.
func TestHoldMultiIsTheConns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &prefixConn{}
		s := newMultiScene(t, func(c *recipes.Client) recipes.Conn {
			_, err := c.Create("/below", nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			conn.SessionConn = c
			return conn
		})
		require.NoError(t, s.write())
		require.True(t, s.written())
		require.Equal(t, 1, conn.multis)
	})
}

// What real servers answer, to a *zk.Conn.
func TestHoldMultiOnAServer(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, other, path := locktest.SharedPeer(t), locktest.SharedPeer(t), zkserver.Path(t)
		lock, ctx := p.Mutex(path), locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		hold := lock.Hold(ctx)
		write := &zk.SetDataRequest{Path: path, Data: []byte("new"), Version: -1}

		responses, err := hold.Multi(write)
		require.NoError(t, err)
		require.Len(t, responses, 1)
		require.Equal(t, int32(1), responses[0].Stat.Version)

		stale := &zk.CheckVersionRequest{Path: path, Version: 0}
		responses, err = hold.Multi(write, stale, write)
		require.ErrorIs(t, err, zk.ErrBadVersion)
		require.ErrorContains(t, err, "operation 1")
		require.Len(t, responses, 3)
		require.NoError(t, hold.Err())

		require.NoError(t, other.Conn.Delete(hold.Path(), -1))
		_, err = hold.Multi(write)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)

		require.NoError(t, lock.Acquire(ctx))
		hold = lock.Hold(ctx)
		require.NoError(t, lock.Release(ctx))
		_, err = hold.Multi(write)
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		_, stat, err := p.Conn.Get(path)
		require.NoError(t, err)
		require.Equal(t, int32(1), stat.Version, "written once")
	})
}
