package zkconn_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// HAZARDS E12: the client cannot drop a watch, so ten thousand impatient callers must not
// set ten thousand.
func TestAllWhoWaitForAPathShareAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		conn.latency = 10 * time.Millisecond
		s := use(t, conn, time.Hour)
		const waiters = 50
		told := make(chan struct{}, waiters)
		for range waiters {
			go func() {
				events, err := s.Watch(t.Context(), "/a")
				if err == nil {
					<-events
					told <- struct{}{}
				}
			}()
		}
		time.Sleep(time.Second)
		for range 1000 { // one after the other
			_, err := s.Watch(t.Context(), "/a")
			require.NoError(t, err)
		}
		require.Equal(t, 1, conn.watchesSet())
		require.Empty(t, told)
		conn.fire("/a", zk.EventNodeDeleted)
		synctest.Wait()
		require.Len(t, told, waiters, "the event reaches one, the end of the channel all")

		_, err := s.Watch(t.Context(), "/a")
		require.NoError(t, err)
		_, err = s.Watch(t.Context(), "/b")
		require.NoError(t, err)
		require.Equal(t, 3, conn.watchesSet(),
			"the next for the same path, and one for another")
		conn.fire("/a", zk.EventNodeDeleted)
		conn.fire("/b", zk.EventNodeDeleted)
	})
}

func TestAWatchThatFailedIsSetAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour)
		for i, err := range []error{zk.ErrNoNode, zk.ErrConnectionClosed, nil} {
			conn.change(func() { conn.err = err })
			_, got := s.Watch(t.Context(), "/a")
			require.ErrorIs(t, got, err)
			require.Equal(t, i+1, conn.watchesSet())
		}
		conn.fire("/a", zk.EventNodeDeleted)
	})
}

func TestWhoLeavesAWatchBeingSetLeavesItToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		conn.latency = time.Minute
		s := use(t, conn, time.Hour)
		for range 10 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnough)
			_, err := s.Watch(ctx, "/a")
			cancel()
			require.Equal(t, errEnough, outcome.Cancellation(err))
		}
		events, err := s.Watch(t.Context(), "/a")
		require.NoError(t, err)
		require.Equal(t, 1, conn.watchesSet())
		conn.fire("/a", zk.EventNodeDataChanged)
		require.Equal(t, zk.EventNodeDataChanged, (<-events).Type)
	})
}

func TestAPendingWatchOutlivesTheLastUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := zkconn.Use(conn, config(time.Hour))
		_, err := s.Watch(t.Context(), "/a")
		require.NoError(t, err)
		s.Release()
		time.Sleep(time.Hour)

		s = zkconn.Use(conn, config(time.Hour))
		_, err = s.Watch(t.Context(), "/a")
		require.NoError(t, err)
		require.Equal(t, 1, conn.watchesSet(), "a new user would have set a second one")
		s.Release()

		conn.fire("/a", zk.EventNodeDeleted)
		time.Sleep(time.Minute)
		require.NotSame(t, s, use(t, conn, time.Hour), "nothing was left to be kept")
	})
}

// The client asks once that its watches be set again, and the server can turn that away.
func TestAWatchFromBeforeAReconnectIsNotShared(t *testing.T) {
	for name, tells := range map[string]bool{
		"of a connection that tells of handshakes": true, "of another": false,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, cfg := newFake(), config(time.Hour)
				if tells {
					cfg.LastHandshake = func(int64) (time.Time, bool) {
						return time.Time{}, false
					}
				}
				s := useWith(t, conn, cfg)
				for reconnects := range 2000 { // however many there were
					for range 3 {
						_, err := s.Watch(t.Context(), "/a")
						require.NoError(t, err)
						require.Equal(t, reconnects+1, conn.watchesSet())
						require.Equal(t, 1, s.KeptWatches())
					}
					conn.reconnect()
					time.Sleep(time.Second) // the next tick sees it
				}
				conn.fire("/a", zk.EventNodeDeleted)
			})
		})
	}
}

func TestWatchesOfManyPathsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := zkconn.Use(conn, config(time.Hour))
		for i := range 1000 {
			path := fmt.Sprint("/", i)
			_, err := s.Watch(t.Context(), path)
			require.NoError(t, err)
			conn.fire(path, zk.EventNodeDeleted)
			require.LessOrEqual(t, s.KeptWatches(), 20)
		}
		synctest.Wait()
		s.Release()
		require.NotSame(t, s, use(t, conn, time.Hour), "all of them are over")
	})
}

func TestAPathHasOneWatchOfItsDataAndOneOfItsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour)
		for range 3 {
			_, err := s.Watch(t.Context(), "/a")
			require.NoError(t, err)
			children, stat, events, err := s.WatchChildren(t.Context(), "/a")
			require.NoError(t, err)
			require.Equal(t, []string{"child"}, children)
			require.NotNil(t, stat)
			require.NotNil(t, events)
		}
		require.Equal(t, 2, conn.watchesSet())
		require.Equal(t, 2, conn.lists, "who shares a watch lists behind it")
		conn.fire("/a", zk.EventNodeDeleted)
		_, err := s.Watch(t.Context(), "/a")
		require.NoError(t, err)
		require.Equal(t, 3, conn.watchesSet(), "the other one is over")
		conn.fire("/a", zk.EventNodeDeleted)
		conn.fire("/a/children", zk.EventNodeDeleted)

		conn.change(func() { conn.err = zk.ErrNoNode })
		_, _, events, err := s.WatchChildren(t.Context(), "/b")
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.Nil(t, events)
	})
}

// What came with a watch that is shared may be old.
func TestWhoSharesAWatchOnDataReadsBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour)
		for _, expected := range []string{"watched", "read", "read"} {
			data, stat, events, err := s.WatchData(t.Context(), "/a")
			require.NoError(t, err)
			require.Equal(t, expected, string(data))
			require.NotNil(t, stat)
			require.NotNil(t, events)
		}
		require.Equal(t, 1, conn.watchesSet())
		conn.fire("/a", zk.EventNodeDataChanged)

		conn.change(func() { conn.err = zk.ErrNoNode })
		_, _, events, err := s.WatchData(t.Context(), "/a")
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.Nil(t, events)
	})
}

// Watches that are over are looked for once there are twice as many as were left.
func TestWhenWatchesAreLookedThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour)
		for i := range 16 {
			path := fmt.Sprint("/", i)
			_, err := s.Watch(t.Context(), path)
			require.NoError(t, err)
			conn.fire(path, zk.EventNodeDeleted)
			require.Equal(t, i+1, s.KeptWatches())
		}
		_, err := s.Watch(t.Context(), "/more")
		require.NoError(t, err)
		require.Equal(t, 1, s.KeptWatches())
		conn.fire("/more", zk.EventNodeDeleted)
	})
}
