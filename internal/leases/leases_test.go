package leases_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/leases"
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

// Leases are taken all or none, and come back in any order.
func TestABatchWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		out := []string{other.Occupy(), other.Occupy(), other.Occupy()}
		gateQueue := queue()
		gateQueue.Dir = "/gate"
		gate, err := gateQueue.Enter(bounded(t), us.S, seqnode.Request{})
		require.NoError(t, err)
		limit := func(context.Context, bool) (int, <-chan zk.Event, error) {
			return 4, nil, nil
		}

		var nodes []*znode.Node
		done := make(chan struct{})
		go func() {
			defer close(done)
			nodes, err = leases.Enter(bounded(t), us.S, leases.Request{
				Spec: &queue().Spec, Queue: queue().Observed(), Gate: gate, N: 2,
				Maximum: limit,
			})
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
		gateQueue := queue()
		gateQueue.Dir = "/gate"
		gate, err := gateQueue.Enter(bounded(t), us.S, seqnode.Request{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = leases.Enter(ctx, us.S, leases.Request{
			Spec: &queue().Spec, Queue: queue().Observed(), Gate: gate, N: 2,
			Maximum: func(context.Context, bool) (int, <-chan zk.Event, error) {
				return 4, nil, nil
			},
		})
		require.ErrorContains(t, err, "2 wanted, 3 of 4 taken")
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
		conn := &behindChildren{Conn: us.Conn, n: 2}
		s := zkconn.Use(conn, zkconn.Config{
			Timeout: func() time.Duration { return queuetest.Timeout }, InOrder: true,
			ServerTick: queuetest.Tick,
		})
		defer s.Release()
		gateQueue := queue()
		gateQueue.Dir = "/gate"
		gate, err := gateQueue.Enter(bounded(t), s, seqnode.Request{})
		require.NoError(t, err)
		time.Sleep(time.Second) // it is watched
		lists := 0
		conn.do = func() {
			lists++
			other.Remove(gate.Path)
			<-gate.Ended().Done()
		}
		nodes, err := leases.Enter(bounded(t), s, leases.Request{
			Spec: &queue().Spec, Queue: queue().Observed(), Gate: gate, N: 2,
			Maximum: func(context.Context, bool) (int, <-chan zk.Event, error) {
				return 4, nil, nil
			},
		})
		require.ErrorIs(t, err, znode.ErrGone)
		require.Empty(t, nodes)
		require.Equal(t, 1, lists)
		require.Empty(t, us.Nodes())
	})
}
