package hold_test

import (
	"fmt"
	"slices"
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
	"github.com/zkrecipes/recipes/zktest"
)

// resetWithoutWatches resets the connection of a client. It asks once that its watches be
// set again, and goes on without them where a busy server turns that away.
func resetWithoutWatches(t *testing.T, link *zktest.Link, client recipes.Conn) {
	t.Helper()
	link.Throttle(zktest.OpSetWatches)
	link.Reset()
	time.Sleep(3 * time.Second)
	require.Equal(t, zk.StateHasSession, client.State())
	link.Spare()
}

// ofThree returns a plain connection to three servers, its link, and a client of theirs.
func ofThree(t *testing.T, timeout time.Duration) (
	bare *zk.Conn, link *zktest.Link, other *recipes.Client,
) {
	t.Helper()
	cluster := zktest.Start(t, zktest.WithServers(3))
	link = cluster.Link("bare")
	bare = locktest.ConnectBare(t, link, strings.Join(cluster.Names(), ","), timeout)
	return bare, link, locktest.ConnectThrough(t, cluster, "other")
}

func TestADeletedHoldWhoseWatchWasNotSetAgain(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := locktest.Owner(t)
		require.NoError(t, b.Lock.Acquire(ctx))
		hold := b.Lock.Hold(ctx)
		time.Sleep(locktest.Settle)
		resetWithoutWatches(t, b.Cluster.Link("ours"), b.Ours)
		require.NoError(t, hold.Err())
		require.NoError(t, b.Other.Delete(hold.Path(), -1))
		time.Sleep(locktest.Settle)
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted,
			"nobody has told the holder")
	})
}

// A wrapper can hide which server is used, and so a reconnect between two looks. Behind
// one that lost the watch, the holder learns of a deletion by its poll.
func TestADeletedHoldWhoseWatchWasNotSetAgainUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		bare, link, other := ofThree(t, timeout)
		lock := locktest.NewMutex(t, struct{ recipes.Conn }{bare}, "/lock",
			recipes.WithSessionTimeout(timeout))
		for range 5 {
			ctx := locktest.Owner(t)
			require.NoError(t, lock.Acquire(ctx))
			hold := lock.Hold(ctx)
			time.Sleep(5*time.Second + 7*time.Millisecond)
			resetWithoutWatches(t, link, bare)
			require.NoError(t, other.Delete(hold.Path(), -1))
			time.Sleep(time.Minute + locktest.Settle)
			require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted, "nobody looks")
			require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
		}
	})
}

// Behind several a waiter watches its own znode after a second: until it is its turn, the
// watch tells nothing that it needs to know at once.
func TestADeletedWaiterBehindSeveral(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		locktest.UseTimes(t, b.Lock, 1) // makes the directory
		nodes := locktest.Join(t, b, 2)
		locktest.VisitLock(t, b.Lock)
		own := waiterOf(t, b, nodes)
		require.NoError(t, b.Other.Delete(own, -1))
		time.Sleep(time.Second)
		again := waiterOf(t, b, nodes)
		require.NotEqual(t, own, again, "it does not join again")
		time.Sleep(2 * time.Second)
		require.NoError(t, b.Other.Delete(again, -1))
		time.Sleep(locktest.Settle)
		require.NotEqual(t, again, waiterOf(t, b, nodes), "its znode is not watched")
	})
}

// waiterOf returns the only znode of the lock that is not among nodes.
func waiterOf(t *testing.T, b *locktest.Bubble, nodes []string) string {
	t.Helper()
	children, _, err := b.Other.Children("/lock")
	require.NoError(t, err)
	require.Len(t, children, len(nodes)+1)
	i := slices.IndexFunc(children, func(c string) bool {
		return !slices.Contains(nodes, "/lock/"+c)
	})
	return "/lock/" + children[i]
}

// Once it holds the lock, the watch is worth more: it is set after 20 ms, also if the
// waiter had planned it for later.
func TestADeletedHoldThatHadWaitedBehindSeveral(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		locktest.UseTimes(t, b.Lock, 1) // makes the directory
		nodes := locktest.Join(t, b, 2)
		v := locktest.VisitLock(t, b.Lock)
		for _, node := range nodes {
			require.NoError(t, b.Other.Delete(node, -1))
		}
		hold := v.Entered()
		time.Sleep(30 * time.Millisecond)
		require.NoError(t, hold.Err())
		require.NoError(t, b.Other.Delete(hold.Path(), -1))
		time.Sleep(30 * time.Millisecond)
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted, "nobody told the holder")
	})
}

// What a waiter watches goes after an outage of seconds, behind which its watch was not
// set again. The next poll is half a minute away.
func TestAWaiterWhoseWatchWasNotSetAgain(t *testing.T) {
	const timeout = 10 * time.Second
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprint("bare: ", bare), func(t *testing.T) {
			locktest.ForAllInBubbles(t, func(
				t *testing.T, b *locktest.Bubble, k locktest.Kind,
			) {
				link, ours := b.Cluster.Link("ours"), recipes.Conn(b.Ours)
				if bare {
					link = b.Cluster.Link("bare")
					ours = locktest.ConnectBare(t, link, b.Cluster.Names()[0], timeout)
				}
				theirs := k.MustMakeRival(t, b.Other, "/lock")
				lock := k.MustMake(t, ours, "/lock", recipes.WithSessionTimeout(timeout))
				owner := locktest.Owner(t)
				require.NoError(t, theirs.Acquire(owner))
				waiting := locktest.Start(func() error {
					return lock.Acquire(locktest.Owner(t))
				})
				time.Sleep(5 * time.Second)
				link.Throttle(zktest.OpSetWatches)
				link.Cut()
				time.Sleep(2 * time.Second)
				link.Heal()
				time.Sleep(3 * time.Second)
				link.Spare()
				require.NoError(t, theirs.Release(owner))
				time.Sleep(locktest.Settle)
				require.Len(t, waiting, 1, "it relies on the client's watch")
				require.NoError(t, <-waiting)
			})
		})
	}
}

// With several servers a plain connection is back within moments, between two looks at
// its state. That it uses another server shows that it was away.
func TestAWaiterWhoseWatchWasNotSetAgainUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		bare, link, other := ofThree(t, timeout)
		theirs := locktest.NewMutex(t, other, "/lock")
		lock := locktest.NewMutex(t, bare, "/lock", recipes.WithSessionTimeout(timeout))
		for range 20 { // each at another time between two looks
			owner := locktest.Owner(t)
			require.NoError(t, theirs.Acquire(owner))
			waiting := locktest.Start(func() error {
				return recipes.Do(locktest.Owner(t), lock, locktest.Nothing)
			})
			time.Sleep(5*time.Second + 7*time.Millisecond)
			resetWithoutWatches(t, link, bare)
			require.NoError(t, theirs.Release(owner))
			time.Sleep(locktest.Settle)
			require.Len(t, waiting, 1, "it relies on the client's watch")
			require.NoError(t, <-waiting)
		}
	})
}

// The waiter knows that one other is ahead, and watches that. When it goes it is the
// waiter's turn, if its own znode is there.
func TestADeletedWaiterWhoseWatchWasNotSetAgain(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		locktest.UseTimes(t, b.Lock, 1)
		ahead := locktest.Join(t, b, 2)
		acquired := locktest.Start(func() error {
			return b.Lock.Acquire(locktest.Owner(t))
		})
		time.Sleep(locktest.Settle)
		own := slices.DeleteFunc(locktest.Znodes(b), func(node string) bool {
			return slices.Contains(ahead, node)
		})
		require.Len(t, own, 1)
		resetWithoutWatches(t, b.Cluster.Link("ours"), b.Ours)
		require.NoError(t, b.Other.Delete(ahead[1], -1))
		time.Sleep(2 * time.Minute) // it polls
		behind := locktest.Join(t, b, 1)[0]
		require.NoError(t, b.Other.Delete(own[0], -1))
		time.Sleep(locktest.Settle)
		require.NoError(t, b.Other.Delete(ahead[0], -1))
		time.Sleep(locktest.Settle)
		require.Empty(t, acquired, "granted without %s, beside %s", own[0], behind)
		require.NoError(t, b.Other.Delete(behind, -1))
		require.NoError(t, <-acquired)
	})
}

// The watch on the directory, which tells that somebody else wants a kept place, is that
// of one stay after the other.
func TestAKeptPlaceWhoseWatchWasNotSetAgain(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		kept := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 1))
		locktest.UseTimes(t, kept, 1)
		time.Sleep(locktest.Settle)
		resetWithoutWatches(t, b.Cluster.Link("ours"), b.Ours)
		for range 2 {
			locktest.UseTimes(t, kept, 1)
			time.Sleep(locktest.Settle)
			visit := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
			require.True(t, visit.Holds(), "the place is not given up")
			visit.Leave()
		}
	})
}

// Somebody who has given up has left a watch on the maximum. Who comes as the connection
// is back, and nobody has looked at it yet, must not rely on that.
func TestASharedMaximumWhoseWatchWasNotSetAgain(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := locktest.Owner(t)
		require.NoError(t, recipes.SetSharedCount(ctx, b.Other, "/count", 1))
		s := locktest.NewSharedSemaphore(t, b.Ours, "/s", "/count")
		require.NoError(t, b.Lock.Acquire(ctx), "so that somebody uses the connection")
		leases, err := s.AcquireTimeout(ctx, 2, time.Second)
		require.NoError(t, err)
		require.Empty(t, leases)
		link := b.Cluster.Link("ours")
		link.Throttle(zktest.OpSetWatches)
		link.Reset()
		for b.Ours.State() == zk.StateHasSession {
			time.Sleep(time.Millisecond)
		}
		for b.Ours.State() != zk.StateHasSession {
			time.Sleep(time.Millisecond)
		}
		acquired := locktest.Start(func() error {
			_, err := s.AcquireN(ctx, 2)
			return err
		})
		time.Sleep(locktest.Settle)
		link.Spare()
		require.NoError(t, recipes.SetSharedCount(ctx, b.Other, "/count", 2))
		time.Sleep(locktest.Settle)
		require.NotEmpty(t, acquired, "nobody has told the waiter")
		require.NoError(t, <-acquired)
	})
}

// A conn whose client goes on to another session just before it reads a znode: the znode
// went with the former, and nobody else has heard of that yet.
type movedConn struct {
	recipes.Conn
	other recipes.Conn
	armed atomic.Bool
	moved atomic.Bool
}

func (c *movedConn) Unwrap() recipes.Conn { return c.Conn }

func (c *movedConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	if c.armed.CompareAndSwap(true, false) {
		if err := c.other.Delete(path, -1); err != nil {
			return nil, nil, nil, err
		}
		c.moved.Store(true)
	}
	return c.Conn.GetW(path)
}

func (c *movedConn) SessionID() int64 {
	id := c.Conn.SessionID()
	if c.moved.Load() {
		id++
	}
	return id
}

// A znode that is not there was deleted in its own session, and went with it in another.
func TestTheCauseOfAZnodeThatItsWatchDoesNotFind(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		conn := &movedConn{Conn: b.Ours, other: b.Other}
		lock := locktest.NewMutex(t, conn, "/lock")
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		hold := lock.Hold(ctx)
		time.Sleep(locktest.Settle) // it is watched
		conn.armed.Store(true)
		_, err := b.Other.Set(hold.Path(), []byte("x"), -1) // so that it is read again
		require.NoError(t, err)
		<-hold.Lost()
		require.True(t, conn.moved.Load(), "it was not read")
		require.ErrorIs(t, hold.Err(), recipes.ErrSessionEnded)
	})
}

// A conn that refuses the next sync of each path that it is told to, and takes note of
// what is asked for there.
type refusingConn struct {
	locktest.HookedConn
	mu     sync.Mutex
	refuse bool
	asked  map[string][]string // by path, from refuse on
}

func newRefusingConn(client *recipes.Client) *refusingConn {
	c := &refusingConn{
		HookedConn: locktest.HookedConn{Conn: client}, asked: map[string][]string{},
	}
	c.Before = func(method, path string) error {
		switch method {
		case "Children", "ChildrenW":
			c.ask(path, "list")
		case "Sync":
			if c.ask(path, "sync") {
				return zk.ErrConnectionClosed
			}
		}
		return nil
	}
	return c
}

func (c *refusingConn) Unwrap() recipes.Conn { return c.Conn }

// ask takes note of a request; refused: it is the first sync of the path.
func (c *refusingConn) ask(path, what string) (refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.refuse || path == "/" {
		return false
	}
	if refused = what == "sync" && c.asked[path] == nil; refused {
		what = "refused"
	}
	c.asked[path] = append(c.asked[path], what)
	return refused
}

// Behind a reconnect the server may lag, until it has answered a sync: one that failed is
// not enough for a list to count.
func TestAWaiterWhoseSyncIsRefusedAfterAReconnect(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		conn := newRefusingConn(b.Ours)
		rival := k.MustMakeRival(t, b.Other, "/lock")
		lock := k.MustMake(t, conn, "/lock")
		theirs, ours := locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, rival.Acquire(theirs))
		acquired := locktest.Start(func() error { return lock.Acquire(ours) })
		time.Sleep(time.Second)
		conn.mu.Lock()
		conn.refuse = true
		conn.mu.Unlock()
		b.Cluster.Link("ours").Reset()
		time.Sleep(5 * time.Second)
		require.NoError(t, rival.Release(theirs))
		require.NoError(t, <-acquired)
		require.NoError(t, lock.Release(ours))
		conn.mu.Lock()
		defer conn.mu.Unlock()
		refused := 0
		for path, asked := range conn.asked {
			if asked[0] == "refused" {
				refused++
				require.Equal(t, []string{"refused", "sync", "list"},
					asked[:min(3, len(asked))], path)
			}
		}
		require.NotZero(t, refused, "%v", conn.asked)
	})
}
