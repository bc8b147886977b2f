package hazards_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A timed acquire blocked for the connection's timeouts instead of its own
// (spring-integration 1863, 1868, 11244). The client's calls take no ctx, and hang for as
// long as two thirds of the session timeout, in a handshake for ten times that.
func TestHazardA1_18_TimeoutInAnOutage(t *testing.T) {
	t.Parallel()
	for name, outage := range outages {
		zkserver.Run(t, name, func(t *testing.T) {
			s := newScene(t)
			t.Cleanup(func() { outage.end(s.Tap) })
			outage.begin(s.Tap)
			// more than the client's queue has room for
			const callers, timeout = 24, 200 * time.Millisecond
			tries := make([]<-chan error, callers)
			for i := range tries {
				tries[i] = locktest.Start(func() error {
					began := time.Now()
					ok, err := s.lock.AcquireTimeout(locktest.Owner(t), timeout)
					// The client alone would need twice patience.
					took := time.Since(began)
					inTime := timeout <= took && took <= locktest.Patience/2
					if ok || !errors.Is(err, recipes.ErrUnavailable) || !inTime {
						return fmt.Errorf(
							"AcquireTimeout: %v, %w after %v", ok, err, took,
						)
					}
					return nil
				})
			}
			for _, try := range tries {
				require.NoError(
					t, locktest.Within(t, try, "AcquireTimeout waits for ZooKeeper"),
				)
			}
			tried := locktest.Start(func() error {
				_, err := s.lock.AcquireTimeout(locktest.Owner(t), 0)
				return err
			})
			err := locktest.Within(t, tried, "a single try does not end within seconds")
			require.ErrorIs(t, err, recipes.ErrUnavailable)
			outage.end(s.Tap)
			s.acquired(t)
			s.holdsAlone(t) // of the others no znode came late
		})
	}
}

// A watchedConn tells when it was seen to be away.
type watchedConn struct {
	*zk.Conn
	once sync.Once
	away chan struct{} // closed then
}

func (c *watchedConn) State() zk.State {
	state := c.Conn.State()
	if state != zk.StateHasSession {
		c.once.Do(func() { close(c.away) })
	}
	return state
}

// The watch could not be set again after a reconnect, and what it waited for happened in
// between: a waiter looks for itself, with a sync before, since the server that it came
// back to may lag behind (E18).
func TestHazardE17_WatchLostInAnOutage(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		zkserver.Resuming(t)
		s := newScene(t)
		conn := &watchedConn{Conn: s.Conn, away: make(chan struct{})}
		s.use(t, conn)
		leave := s.occupy(t)
		holder := s.path + "/" + s.other.Children(s.path)[0]
		done := s.acquire()
		own := s.steps.Nth(t, recipes.EventQueued, 1).Node
		s.awaitWatch(t, own, 1)
		s.awaitWatch(t, holder, 1)
		s.Tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			if p.Op == wiretap.SetWatches {
				return wiretap.Drop
			}
			return wiretap.Pass
		})
		release := make(chan struct{})
		dialled := s.Tap.NthRequest(wiretap.Connect, 1, wiretap.Hold(release))
		s.Tap.Cut()
		locktest.Within(t, dialled, "the client does not dial")
		locktest.Within(t, conn.away, "nobody looks at the connection")
		leave()
		s.Tap.Reset()
		close(release)
		require.NoError(
			t, locktest.Within(t, done, "a waiter relies on the client's watches"),
		)
		asked := slices.DeleteFunc(s.Tap.Requests(), func(p wiretap.Packet) bool {
			return p.Path != s.path
		})
		require.Equal(t, wiretap.Sync, asked[0].Op)
		require.Equal(t, wiretap.GetChildren2, asked[1].Op)
		s.holdsAlone(t)
	})
}

// A watch on data fires for a change of the data, too: it is no hand-over.
func TestHazardE32_DataOfTheZnodeAheadChanges(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		leave := s.occupy(t)
		holder := s.path + "/" + s.other.Children(s.path)[0]
		done := s.acquire()
		for n := 1; n <= 3; n++ {
			s.awaitWatch(t, holder, n)
			require.NotContains(t, s.steps.Kinds(), recipes.EventAcquired)
			_, err := s.other.Conn.Set(holder, []byte("hello"), -1)
			require.NoError(t, err)
		}
		leave()
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
		require.Len(t, s.requests(wiretap.Create), 1)
		s.holdsAlone(t)
	})
}

// With AddAuth a failed resend leaves the client's loop stuck for ever (go-zookeeper PR
// 163): nothing is told, all calls hang.
func TestHazardE26_ClientStuckForEver(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		ctx, unstick := context.WithCancel(context.Background())
		defer unstick()
		var stuck atomic.Bool
		s.Timeout = locktest.Short
		s.use(t, &locktest.HookedConn{Conn: s.Conn, Before: func(string, string) error {
			if stuck.Load() { // and the state stays what it was
				<-ctx.Done()
			}
			return nil
		}})
		s.acquired(t)
		hold := s.lock.Hold(s.ctx)
		stuck.Store(true)
		ok, err := s.lock.AcquireTimeout(locktest.Owner(t), 50*time.Millisecond)
		require.ErrorIs(t, err, recipes.ErrUnavailable)
		require.False(t, ok)
		s.isLost(t, hold, 1)
		unstick()
		s.other.AwaitChildren(s.path, 0)
	})
}
