package leases_test

import (
	"context"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/leases"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
	"github.com/zkrecipes/recipes/zktest"
)

// The names by which the tests know what they share.

var (
	newPeer = queuetest.NewPeer
	bounded = queuetest.Bounded
	queue   = queuetest.Queue
	bubble  = queuetest.Bubble
)

// enterGate goes through the queue in front of the leases.
func enterGate(t *testing.T, s *zkconn.Conn) *znode.Node {
	t.Helper()
	q := queue()
	q.Dir = "/gate"
	gate, err := q.Enter(bounded(t), s, seqnode.Request{})
	require.NoError(t, err)
	return gate
}

// request asks for n leases from the gate.
func request(gate *znode.Node, n int, maximum leases.Maximum) leases.Request {
	return leases.Request{
		Spec: &queue().Spec, Queue: queue().Observed(), Gate: gate, N: n,
		Maximum: maximum,
	}
}

// connOf returns the connection of a wrapped client, until the test ends.
func connOf(t *testing.T, client zkconn.Client) *zkconn.Conn {
	t.Helper()
	s := zkconn.Use(client, zkconn.Config{
		Timeout: func() time.Duration { return queuetest.Timeout }, InOrder: true,
		ServerTick: queuetest.Tick,
	})
	t.Cleanup(s.Release)
	return s
}

// Leases are taken all or none, and come back in any order.
func TestABatchWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		out := []string{other.Occupy(), other.Occupy(), other.Occupy()}
		gate := enterGate(t, us.S)

		var nodes []*znode.Node
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			nodes, err = leases.Enter(bounded(t), us.S, request(gate, 2, leases.Fixed(4)))
		}()
		time.Sleep(5 * time.Minute)
		require.Len(t, us.Nodes(), 5)
		require.NoError(t, gate.Cause(), "it keeps its place while it waits")
		other.Remove(out[1])
		queuetest.Within(t, time.Second, done, "they are not held")
		require.NoError(t, err)
		require.Len(t, nodes, 2)
		require.ErrorIs(t, gate.Cause(), znode.ErrLeft, "it keeps others waiting")
	})
}

// A batch that has not been admitted tells of the room that it has not found.
func TestABatchTellsOfTheRoomThereWas(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		for range 3 {
			other.Occupy()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := leases.Enter(ctx, us.S, request(enterGate(t, us.S), 2, leases.Fixed(4)))
		require.ErrorContains(t, err, "2 wanted, 3 of 4 taken")
	})
}

// A maximum of 0 is no reason to rejoin: see TestALimitIsWaitedFor for more leases.
func TestOneLeaseWaitsInTheDirectory(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		r := request(enterGate(t, us.S), 1, leases.Fixed(0))
		r.SingleAttempt = true
		_, err := leases.Enter(bounded(t), us.S, r)
		require.ErrorIs(t, err, wait.ErrBusy)
		require.ErrorContains(t, err, "1 wanted, 0 of 0 taken")
	})
}

// A listingConn does something before each list, and sends that behind the creates that
// were begun before it.
type listingConn struct {
	*zk.Conn
	do      func()
	creates atomic.Int32
	answer  func() // what waits before the second create is answered
}

func (c *listingConn) Create(p string, d []byte, f int32, a []zk.ACL) (string, error) {
	path, err := c.Conn.Create(p, d, f, a)
	if c.creates.Add(1) == 2 && c.answer != nil {
		c.answer()
	}
	return path, err
}

func (c *listingConn) Children(path string) ([]string, *zk.Stat, error) {
	time.Sleep(time.Millisecond)
	c.do()
	return c.Conn.Children(path)
}

// A batch takes one round trip.
func TestABatchListsBehindItsLastCreate(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		us.Remove(us.Occupy()) // the directory is there
		listed := make(chan struct{}, 10)
		conn := &listingConn{
			Conn: us.Conn, do: func() { listed <- struct{}{} },
			answer: func() {
				select {
				case <-listed:
				case <-time.After(time.Second):
					t.Error("the list waits for the answer to the create")
				}
			},
		}
		gate := enterGate(t, us.S)
		nodes, err := leases.Enter(
			bounded(t), connOf(t, conn), request(gate, 2, leases.Fixed(2)))
		require.NoError(t, err)
		require.Len(t, nodes, 2)
		require.Empty(t, listed, "it has listed twice")
	})
}

// The turn can come when the caller has gone.
func TestABatchThatComesTooLateIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		us.Remove(us.Occupy()) // the directory is there
		conn := &listingConn{Conn: us.Conn, do: func() {}}
		gate := enterGate(t, us.S)
		ctx, cancel := context.WithCancel(bounded(t))
		nodes, err := leases.Enter(ctx, connOf(t, conn), request(gate, 2, func(
			context.Context, bool,
		) (int, <-chan zk.Event, error) {
			time.Sleep(time.Second) // the list is answered
			cancel()
			return 2, nil, nil
		}))
		require.Equal(t, context.Canceled, outcome.Cancellation(err))
		require.ErrorContains(t, err, wait.Late.Text)
		require.Empty(t, nodes)
		require.Empty(t, us.Nodes())
		require.ErrorIs(t, gate.Cause(), znode.ErrLeft)
	})
}

// The directory's pzxid is a token only of those who have nobody behind them.
func TestTheTokensOfABatchAreBelowThoseBehind(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		us.Remove(us.Occupy()) // the directory is there
		gate := enterGate(t, us.S)
		conn := &listingConn{Conn: us.Conn, do: func() { other.Occupy() }}
		nodes, err := leases.Enter(
			bounded(t), connOf(t, conn), request(gate, 2, leases.Fixed(3)))
		require.NoError(t, err)
		for _, n := range nodes {
			require.Equal(t, us.Czxid(n.Path), n.Token())
		}
	})
}

// A readingConn takes a second to read a znode with a watch.
type readingConn struct{ zkconn.Client }

func (c readingConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	defer time.Sleep(time.Second)
	return c.Client.GetW(path)
}

// However long the tokens take, the longest hold counts from the grant, for each lease.
func TestTheLongestHoldOfABatchCountsFromItsGrant(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		us.Remove(us.Occupy()) // the directory is there
		gate := enterGate(t, us.S)
		conn := readingConn{&listingConn{Conn: us.Conn, do: func() { other.Occupy() }}}
		r := request(gate, 2, leases.Fixed(3))
		r.Spec.MaxHold = 2 * time.Second
		nodes, err := leases.Enter(bounded(t), connOf(t, conn), r)
		require.NoError(t, err)
		for _, n := range nodes {
			require.Equal(t, r.Spec.MaxHold, time.Until(n.Until()))
		}
	})
}

// A gate of another session than the connection's can be gone already.
func TestABatchWithAGateOfAnotherSession(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		_, err := leases.Enter(
			bounded(t), us.S, request(enterGate(t, other.S), 2, leases.Fixed(2)))
		require.ErrorIs(t, err, znode.ErrGone)
		require.Empty(t, us.Nodes())
	})
}

// A deletingConn takes its time to delete what is no gate, and notes what was deleted.
type deletingConn struct {
	*zk.Conn
	mu      sync.Mutex // guards deleted
	deleted []string   // the directories
}

func (c *deletingConn) Delete(name string, version int32) error {
	dir := path.Dir(name)
	if dir != "/gate" {
		time.Sleep(10 * time.Millisecond)
	}
	c.mu.Lock()
	c.deleted = append(c.deleted, dir)
	c.mu.Unlock()
	return c.Conn.Delete(name, version)
}

// Whoever comes through the gate next counts the znodes: those that are given up go
// first.
func TestABusyTryGoesBeforeItsGate(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		taken := other.Occupy()
		conn := &deletingConn{Conn: us.Conn}
		s := connOf(t, conn)
		r := request(enterGate(t, s), 2, leases.Fixed(2))
		r.SingleAttempt = true
		_, err := leases.Enter(bounded(t), s, r)
		require.ErrorIs(t, err, wait.ErrBusy)
		dir := path.Dir(taken)
		require.Equal(t, []string{dir, dir, "/gate"}, conn.deleted)
	})
}

// What changed in an outage has perhaps no event: whoever is back looks.
func TestALimitIsLookedAtAfterAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		var most atomic.Int64
		limit := leases.Maximum(func(
			context.Context, bool,
		) (int, <-chan zk.Event, error) {
			return int(most.Load()), make(chan zk.Event), nil
		})
		done := make(chan error, 1)
		go func() { done <- limit.Await(bounded(t), us.S, 2, false) }()
		time.Sleep(time.Second)
		us.Link.Cut()
		time.Sleep(time.Second)
		most.Store(2)
		us.Link.Heal()
		require.NoError(t, queuetest.Within(t, 5*time.Second, done, "it waits on"))
	})
}

// A maximum that is too low is waited for without znodes.
func TestALimitIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		var most atomic.Int64
		most.Store(1)
		changed := make(chan zk.Event)
		limit := leases.Maximum(func(
			_ context.Context, watch bool,
		) (int, <-chan zk.Event, error) {
			if !watch {
				return int(most.Load()), nil, nil
			}
			return int(most.Load()), changed, nil
		})
		require.ErrorIs(t, limit.Await(bounded(t), us.S, 2, true), wait.ErrBusy)
		done := make(chan error, 1)
		go func() { done <- limit.Await(bounded(t), us.S, 2, false) }()
		time.Sleep(time.Second)
		require.Empty(t, us.Nodes())
		most.Store(2)
		close(changed)
		require.NoError(t, queuetest.Within(t, time.Second, done, "it waits on"))
	})
}

// A conn that does something behind a list that shows n children.
type behindChildren struct {
	*zk.Conn
	n  int
	do func()
}

func (c *behindChildren) Children(path string) ([]string, *zk.Stat, error) {
	children, stat, err := c.Conn.Children(path)
	if len(children) == c.n {
		c.do()
	}
	return children, stat, err
}

// If the gate is lost once the list was made, others may have come through it, and have
// greater tokens: nothing is held, and nothing is left.
func TestABatchWhoseGateIsLostBehindTheList(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		us.Remove(us.Occupy()) // the directory is there: else there are two lists
		conn := &behindChildren{Conn: us.Conn, n: 2}
		s := connOf(t, conn)
		gate := enterGate(t, s)
		time.Sleep(time.Second) // it is watched
		lists := 0
		conn.do = func() {
			lists++
			other.Remove(gate.Path)
			<-gate.Ended().Done()
		}
		nodes, err := leases.Enter(bounded(t), s, request(gate, 2, leases.Fixed(4)))
		require.ErrorIs(t, err, znode.ErrGone)
		require.Empty(t, nodes)
		require.Equal(t, 1, lists)
		require.Empty(t, us.Nodes())
	})
}
