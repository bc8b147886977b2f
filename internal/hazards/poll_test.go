package hazards_test

import (
	"context"
	"errors"
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
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// deafConn sets watches of which nothing is ever heard.
type deafConn struct{ *recipes.Client }

func (c deafConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	data, stat, _, err := c.Client.GetW(path)
	return data, stat, make(chan zk.Event), err
}

// No watch is known to get lost. A waiter looks for itself all the same, now and then.
func TestHazardE17_WatchThatNeverFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		client := locktest.ConnectThrough(t, cluster, "ours")
		other := locktest.ConnectThrough(t, cluster, "other")
		held := locktest.NewMutex(t, other, "/lock")
		deaf := locktest.NewMutex(t, &deafConn{client}, "/lock")
		ctx, waiting := locktest.Owner(t), locktest.Owner(t)
		require.NoError(t, held.Acquire(ctx))
		acquired := locktest.Start(func() error { return deaf.Acquire(waiting) })
		time.Sleep(5 * time.Minute)
		require.NoError(t, held.Release(ctx))
		began := time.Now()
		require.NoError(t, <-acquired)
		require.LessOrEqual(t, time.Since(began), time.Minute)
		require.NoError(t, deaf.Release(waiting))
	})
}

// A waiter whose znode is deleted is at the tail again at once, although nothing in the
// queue moves for hours. A writer, which lists before each grant, found out at its next
// poll only, and so did who had several ahead when it joined.
func TestHazardA2_GhostBehindOneThatStays(t *testing.T) {
	for name, c := range map[string]struct {
		writers bool
		behind  int  // how many have left between the holder and the waiter
		foreign bool // these, and the holder
	}{
		"writer behind this process":    {true, 0, false},
		"writer behind another process": {true, 0, true},
		"a holder that took over":       {false, 1, false},
		"several of another process":    {false, 2, true},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			ours := locktest.ConnectThrough(t, cluster, "ours")
			other := locktest.ConnectThrough(t, cluster, "other")
			lockOn := func(conn recipes.Conn) *queued {
				return newQueued(t, conn, c.writers)
			}
			ahead := ours
			if c.foreign {
				ahead = other
			}
			var leave []*queued
			for range c.behind {
				l := lockOn(ahead)
				l.start()
				leave = append(leave, l)
			}
			holder, waiter := lockOn(ahead), lockOn(ours)
			holder.start()
			waiter.start()
			for _, l := range leave {
				l.leave()
			}
			require.NoError(t, <-holder.acquired)

			before := queueOf(cluster)
			require.Len(t, before, 2)
			require.NoError(t, other.Delete(before[1], -1))
			time.Sleep(time.Second)
			require.Len(t, queueOf(cluster), 2, "it has not joined anew")
			holder.release()
			require.NoError(t, <-waiter.acquired)
			waiter.release()
		})
	}
}

// A list that does not show the waiter's znode can be wrong. The znode stayed then until
// its session ended, and everybody waited behind it (Curator's
// testNodeDeletedCleanlyWithFaults).
func TestHazardA1_7_ZnodeThatAListDoesNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		other := locktest.ConnectThrough(t, cluster, "other")
		conn := &hidingConn{Client: locktest.ConnectThrough(t, cluster, "ours")}
		var all []*queued
		for range 3 {
			all = append(all, newQueued(t, other, false))
		}
		all = append(all, newQueued(t, conn, false))
		for _, q := range all {
			q.start()
		}
		before := queueOf(cluster)
		require.Len(t, before, 4)
		conn.hide.Store(&before[3])
		// So that the waiter lists again, since two are left ahead.
		require.NoError(t, other.Delete(before[2], -1))
		time.Sleep(time.Second)
		require.Nil(t, conn.hide.Load(), "it has not listed")
		require.NotContains(t, queueOf(cluster), before[3])
		require.Len(t, queueOf(cluster), 4, "both have joined anew")
		var left sync.WaitGroup
		for _, q := range all { // who comes first of those who have joined anew is open
			left.Go(func() {
				if err := errors.Join(<-q.acquired, q.lock.Release(q.ctx)); err != nil {
					t.Error(err)
				}
			})
		}
		left.Wait()
		require.Empty(t, queueOf(cluster))
	})
}

// hidingConn hides a znode from one list.
type hidingConn struct {
	*recipes.Client
	hide atomic.Pointer[string]
}

func (c *hidingConn) Children(path string) ([]string, *zk.Stat, error) {
	children, stat, err := c.Client.Children(path)
	if hide := c.hide.Swap(nil); hide != nil {
		children = slices.DeleteFunc(children, func(child string) bool {
			return path+"/"+child == *hide
		})
	}
	return children, stat, err
}

// A queued is an owner of the lock at /lock, in a bubble.
type queued struct {
	t        *testing.T
	lock     recipes.InterProcessLock
	ctx      context.Context
	acquired <-chan error
}

func newQueued(t *testing.T, conn recipes.Conn, writer bool) *queued {
	t.Helper()
	q := &queued{t: t, ctx: locktest.Owner(t)}
	rw := locktest.NewReadWriteLock(t, conn, "/lock")
	q.lock = rw.WriteLock()
	if !writer {
		q.lock = locktest.NewMutex(t, conn, "/lock")
	}
	return q
}

// start joins the queue, behind all that have joined before.
func (q *queued) start() {
	q.acquired = locktest.Start(func() error { return q.lock.Acquire(q.ctx) })
	time.Sleep(time.Second)
}

func (q *queued) release() { require.NoError(q.t, q.lock.Release(q.ctx)) }

// leave waits for the lock and releases it.
func (q *queued) leave() {
	require.NoError(q.t, <-q.acquired)
	q.release()
}

// queueOf returns the znodes of the lock at /lock, in order.
func queueOf(cluster *zktest.Cluster) []string {
	nodes := cluster.Znodes()[1:]
	slices.SortFunc(nodes, locktest.BySequence)
	return nodes
}

// A connection can be away and back between two looks at it, with nothing under way that
// could tell, and the client's watches can miss what happened meanwhile: its request to
// set them again is lost here.
func TestHazardE17_ReconnectThatNobodySees(t *testing.T) {
	for name, newLock := range map[string]constructor{
		"mutex": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
			return recipes.NewInterProcessMutex(conn, "/lock")
		},
		"semaphore": func(conn recipes.Conn) (recipes.InterProcessLock, error) {
			sem, err := recipes.NewInterProcessSemaphoreV2(conn, "/lock", 1)
			if err != nil {
				return nil, err
			}
			return sem.AsLock(1), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			for offset := range 10 {
				synctest.Test(t, func(t *testing.T) {
					reconnectUnseen(t, newLock, offset)
				})
			}
		})
	}
}

type constructor func(conn recipes.Conn) (recipes.InterProcessLock, error)

func reconnectUnseen(t *testing.T, newLock constructor, offset int) {
	t.Helper()
	cluster := zktest.Start(t, zktest.WithServers(3)) // with one, the client pauses
	tap := wiretap.New(cluster.Dial)
	client, err := recipes.Connect(t.Context(), strings.Join(cluster.Names(), ","),
		10*time.Second, recipes.WithDialer(tap.Dial))
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		time.Sleep(time.Minute) // virtual: what is under way ends by itself
	})
	held, err := newLock(locktest.ConnectThrough(t, cluster, "other"))
	require.NoError(t, err)
	wanted, err := newLock(client)
	require.NoError(t, err)
	ctx, waiting := locktest.Owner(t), locktest.Owner(t)
	require.NoError(t, held.Acquire(ctx))
	acquired := locktest.Start(func() error { return wanted.Acquire(waiting) })
	time.Sleep(5*time.Second + time.Duration(offset)*10*time.Millisecond)

	tap.NthRequest(wiretap.SetWatches, 1, wiretap.Drop)
	back := make(chan struct{})
	tap.NthRequest(wiretap.Connect, 1, wiretap.Hold(back))
	tap.Cut()
	require.NoError(t, held.Release(ctx))
	time.Sleep(time.Millisecond)
	close(back)
	began := time.Now()
	require.NoError(t, <-acquired)
	require.LessOrEqual(t, time.Since(began), time.Second)
	require.NoError(t, wanted.Release(waiting))
}
