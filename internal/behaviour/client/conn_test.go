package client_test

import (
	"context"
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

// faultConn plays an outage: every call fails at once, as it does for a moment in a real
// one.
type faultConn struct {
	locktest.HookedConn
	away  atomic.Bool
	state zk.State // in an outage
}

func newFaultConn(bare *zk.Conn, state zk.State) *faultConn {
	f := &faultConn{HookedConn: locktest.HookedConn{Conn: bare}, state: state}
	f.Before = func(string, string) error {
		if f.away.Load() {
			return zk.ErrConnectionClosed
		}
		return nil
	}
	return f
}

func (f *faultConn) State() zk.State {
	if f.away.Load() {
		return f.state
	}
	return f.Conn.State()
}

// What goes through a wrapper that plays an outage goes on when that is over: a holder
// holds, a waiter waits, and what was released meanwhile is deleted.
func TestAPlayedOutageIsOne(t *testing.T) {
	for name, state := range map[string]zk.State{
		"state not told": zk.StateHasSession,
		"connecting":     zk.StateConnecting,
		"disconnected":   zk.StateDisconnected,
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			const timeout = 10 * time.Second
			cluster := zktest.Start(t)
			addr := cluster.Leader().Addr()
			other := locktest.Connect(t, cluster.Link("other"), addr, timeout)
			conn := newFaultConn(
				locktest.ConnectBare(t, cluster.Link("ours"), addr, timeout), state)
			mutex := func(path string) *recipes.InterProcessMutex {
				return locktest.NewMutex(t, conn, path,
					recipes.WithSessionTimeout(timeout))
			}
			taken := locktest.NewMutex(t, other, "/wanted")
			theirs, ours := locktest.Owner(t), locktest.Owner(t)
			require.NoError(t, taken.Acquire(theirs))
			held, released, wanted := mutex("/held"), mutex("/released"), mutex("/wanted")
			require.NoError(t, held.Acquire(ours))
			require.NoError(t, released.Acquire(ours))
			waiting := locktest.Start(func() error { return wanted.Acquire(ours) })
			time.Sleep(timeout)

			conn.away.Store(true)
			leaving := locktest.Start(func() error { return released.Release(ours) })
			time.Sleep(timeout * 4 / 10)
			require.Empty(t, waiting, "the waiter has given up")
			conn.away.Store(false)
			require.NoError(t, <-leaving)
			time.Sleep(time.Second)
			require.NoError(t, held.Hold(ours).Err())
			require.NoError(t, taken.Release(theirs))
			require.NoError(t, <-waiting)
			require.NoError(t, wanted.Release(ours))
			require.NoError(t, held.Release(ours))
			for _, path := range []string{"/held", "/released", "/wanted"} {
				children, _, err := other.Children(path)
				require.NoError(t, err)
				require.Empty(t, children, path)
			}
		})
	}
}

// The client says zk.ErrClosing to whoever waits, and a wrapper passes that on: also to
// who is far from its turn, and sends nothing meanwhile.
func TestAWrapperOfAClosedConnectionTellsWhoWaits(t *testing.T) {
	for name, ahead := range map[string]int{"next": 1, "at rest": 2} {
		t.Run(name, func(t *testing.T) { tellsWhoWaits(t, ahead) })
	}
}

func tellsWhoWaits(t *testing.T, ahead int) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		cluster := zktest.Start(t)
		addr := cluster.Leader().Addr()
		other := locktest.Connect(t, cluster.Link("other"), addr, timeout)
		taken := locktest.NewMutex(t, other, "/wanted")
		ours := locktest.Owner(t)
		require.NoError(t, taken.Acquire(locktest.Owner(t)))
		for range ahead - 1 {
			theirs, leave := context.WithCancel(locktest.Owner(t))
			waits := locktest.Start(func() error { return taken.Acquire(theirs) })
			defer func() { leave(); require.ErrorIs(t, <-waits, context.Canceled) }()
			time.Sleep(time.Second)
		}
		bare := locktest.ConnectBare(t, cluster.Link("ours"), addr, timeout)
		lock := locktest.NewMutex(t, newFaultConn(bare, zk.StateHasSession), "/wanted",
			recipes.WithSessionTimeout(timeout))
		waiting := locktest.Start(func() error { return lock.Acquire(ours) })
		time.Sleep(45 * time.Second)
		bare.Close()
		began := time.Now()
		require.ErrorIs(t, <-waiting, zk.ErrConnectionClosed)
		require.Less(t, time.Since(began), 300*time.Millisecond)
	})
}
