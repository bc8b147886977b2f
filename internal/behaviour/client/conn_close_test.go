package client_test

import (
	"fmt"
	"iter"
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

// waitersAtClose is how many wait through a connection that is closed.
const waitersAtClose = 32

// A watcher is somebody whom a watch wakes when the znodes of a closed connection go. It
// begins to wait, and has to end with the connection.
type watcher func(t *testing.T, conn recipes.Conn, number int) error

var watchers = map[string]watcher{
	"mutex": func(t *testing.T, conn recipes.Conn, _ int) error {
		lock := locktest.NewMutex(t, conn, "/lock", bareTimeout)
		return lock.Acquire(locktest.Owner(t))
	},
	"semaphore": func(t *testing.T, conn recipes.Conn, _ int) error {
		sem := locktest.NewSemaphore(t, conn, "/lock", 1, bareTimeout)
		_, err := sem.Acquire(t.Context())
		return err
	},
	"kept places": func(t *testing.T, conn recipes.Conn, number int) error {
		lock := locktest.NewReadWriteLock(t, conn,
			fmt.Sprint("/kept", number), bareTimeout,
			recipes.WithCaching(locktest.LongIdle, 1))
		locktest.Use(t, lock.ReadLock())
		return zk.ErrConnectionClosed // nobody waits
	},
	"participants": func(t *testing.T, conn recipes.Conn, number int) error {
		lock := locktest.NewMutex(t, conn, "/lock", bareTimeout)
		if number%2 == 0 {
			return lock.Acquire(locktest.Owner(t))
		}
		return last(lock.WatchParticipants(t.Context()))
	},
	"leaders": func(t *testing.T, conn recipes.Conn, number int) error {
		latch := locktest.NewLatch(t, conn, fmt.Sprint("/latch", number/2), bareTimeout)
		if number%2 == 0 {
			_, err := latch.Await(t.Context())
			if err == nil {
				err = zk.ErrConnectionClosed // nobody waits
			}
			return err
		}
		return last(latch.Leaders(t.Context()))
	},
}

// last returns the error that ends a sequence.
func last[T any](seq iter.Seq2[T, error]) (err error) {
	seq(func(_ T, e error) bool {
		err = e
		return true
	})
	return err
}

var bareTimeout = recipes.WithSessionTimeout(10 * time.Second)

// The server tells of the deletion of our znodes before it answers the close, and a
// request in between can leave the client's loop stuck forever.
func TestClosingABareConnectionLeavesNoLoopStuck(t *testing.T) {
	closeOften(t, 200, func(bare *zk.Conn) (recipes.Conn, func() int32) {
		return bare, func() int32 { return 0 }
	})
}

// Most of those requests would do no harm. None is sent, also where the recipes have a
// wrapper.
func TestNoRequestFollowsTheCloseOfABareConnection(t *testing.T) {
	closeOften(t, 20, func(bare *zk.Conn) (recipes.Conn, func() int32) {
		asked := new(atomic.Int32)
		return &locktest.HookedConn{Conn: bare, Before: func(string, string) error {
			asked.Add(1)
			return nil
		}}, asked.Load
	})
}

// closeOften closes n connections for each kind of watcher, who wait through what wrap
// makes of them. asked tells how many requests that was asked for up to now.
func closeOften(
	t *testing.T, n int, wrap func(bare *zk.Conn) (_ recipes.Conn, asked func() int32),
) {
	t.Helper()
	const inABubble = 10
	for name, wait := range watchers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range n / inABubble {
				synctest.Test(t, func(t *testing.T) {
					cluster := zktest.Start(t)
					other := locktest.ConnectThrough(t, cluster, "other")
					go func() { _ = wait(t, other, 0) }() // it has what they wait for
					synctest.Wait()
					for i := range inABubble {
						link := cluster.Link(fmt.Sprint(i))
						bare, events := locktest.OpenBare(
							t, link, cluster.Names()[0], 10*time.Second)
						conn, asked := wrap(bare)
						ended := make(chan error, waitersAtClose)
						for number := range waitersAtClose {
							go func() { ended <- wait(t, conn, number) }()
						}
						time.Sleep(1050 * time.Millisecond) // nothing is under way
						before := asked()
						bare.Close()
						awaitClosed(t, events)
						require.Equal(t, before, asked())
						for range waitersAtClose {
							require.ErrorIs(t, <-ended, zk.ErrConnectionClosed)
						}
					}
				})
			}
		})
	}
}

// awaitClosed waits for the end of the client's loop.
func awaitClosed(t *testing.T, events <-chan zk.Event) {
	t.Helper()
	ended := locktest.Start(func() error {
		for open := true; open; {
			_, open = <-events
		}
		return nil
	})
	require.NoError(t, locktest.Within(t, ended, "the client's loop is stuck"))
}
