package seqnode_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/znode"
	"github.com/zkrecipes/recipes/zktest"
)

// enterGate goes through the queue in front of the one at queue().
func enterGate(t *testing.T, us *queuetest.Peer) *znode.Node {
	t.Helper()
	q := queue()
	q.Dir = "/gate"
	gate, err := q.Enter(bounded(t), us.S, seqnode.Request{})
	require.NoError(t, err)
	return gate
}

// through begins an EnterThrough, and waits until it stands behind the others.
func through(
	ctx context.Context, us *queuetest.Peer, gate *znode.Node,
) (nodes <-chan *znode.Node, errs <-chan error) {
	entered, failed := make(chan *znode.Node, 1), make(chan error, 1)
	go func() {
		n, err := queue().EnterThrough(ctx, us.S, gate, seqnode.Request{})
		if err != nil {
			failed <- err
			return
		}
		entered <- n
	}()
	time.Sleep(time.Second)
	return entered, failed
}

func TestTheGateIsKeptUntilTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		gate := enterGate(t, us)
		entered, _ := through(bounded(t), us, gate)
		require.NoError(t, gate.Cause())
		other.Occupy() // as one that came past the gate: it is behind
		other.Remove(ahead)
		n := queuetest.Within(t, time.Second, entered, "it is not held")
		require.NoError(t, n.Lost().Err())
		require.ErrorIs(t, gate.Cause(), znode.ErrLeft)
		n.Withdraw()
	})
}

// A znode that waits without its gate can wait for one that waits for it: Curator counts
// all leases, also those behind its own.
func TestNobodyWaitsWithoutItsGate(t *testing.T) {
	for what, lose := range map[string]func(c *zktest.Cluster, gate *znode.Node){
		"left": func(_ *zktest.Cluster, gate *znode.Node) { gate.Withdraw() },
		"lost": func(_ *zktest.Cluster, gate *znode.Node) { gate.Lose(znode.ErrGone) },
		"session ended": func(c *zktest.Cluster, gate *znode.Node) {
			c.ExpireSession(gate.Session())
		},
	} {
		for _, when := range []string{"before", "while it waits"} {
			t.Run(what+" "+when, func(t *testing.T) {
				bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
					us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
					ahead := other.Occupy()
					gate := enterGate(t, us)
					if when == "before" {
						lose(cluster, gate)
						time.Sleep(time.Minute) // it is connected again
					}
					entered, failed := through(bounded(t), us, gate)
					if when != "before" {
						lose(cluster, gate)
					}
					err := queuetest.Within(t, time.Minute, failed, "it waits on")
					require.ErrorIs(t, err, znode.ErrGone)
					require.Empty(t, entered)
					require.Equal(t, []string{ahead}, other.Nodes())
				})
			})
		}
	}
}

// A gate of another session than the znode's can be gone already.
func TestAGateOfAnotherSession(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		_, err := queue().EnterThrough(
			bounded(t), us.S, enterGate(t, other), seqnode.Request{})
		require.ErrorIs(t, err, znode.ErrGone)
		require.Empty(t, us.Nodes())
	})
}

// An onQueued is called when the queue was joined.
type onQueued func()

func (f onQueued) Queued(string, int) { f() }

func (onQueued) DataChanged([]byte) {}

// If the gate ends just as the turn comes, the znode is about to be withdrawn: nobody may
// hold it.
func TestAGateThatEndsWithTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		for range 20 {
			gate := enterGate(t, us)
			_, err := queue().EnterThrough(bounded(t), us.S, gate, seqnode.Request{
				Listener: onQueued(gate.Withdraw),
			})
			require.ErrorIs(t, err, znode.ErrGone)
			require.Empty(t, us.Nodes())
		}
	})
}

// What ends a wait leaves nothing behind, and no gate that keeps others waiting.
func TestWhoGivesUpBehindTheGateLeavesBoth(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		gate := enterGate(t, us)
		_, err := queue().EnterThrough(
			bounded(t), us.S, gate, seqnode.Request{SingleAttempt: true})
		require.ErrorIs(t, err, wait.ErrBusy)
		require.ErrorContains(t, err, "1 ahead, behind "+ahead)
		require.ErrorIs(t, gate.Cause(), znode.ErrLeft)
		require.Equal(t, []string{ahead}, other.Nodes())

		gate = enterGate(t, us)
		ctx, cancel := context.WithCancel(bounded(t))
		_, failed := through(ctx, us, gate)
		cancel()
		err = queuetest.Within(t, time.Second, failed, "it waits on")
		require.Equal(t, context.Canceled, outcome.Cancellation(err))
		require.ErrorIs(t, gate.Cause(), znode.ErrLeft)
		require.Equal(t, []string{ahead}, other.Nodes())
	})
}

// The turn can come when the caller has gone.
func TestWhoComesThroughTooLateLeavesBoth(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		gate := enterGate(t, us)
		ctx, cancel := context.WithCancel(bounded(t))
		defer cancel()
		n, err := queue().EnterThrough(ctx, us.S, gate, seqnode.Request{
			Listener: onQueued(cancel),
		})
		require.Equal(t, context.Canceled, outcome.Cancellation(err))
		require.ErrorContains(t, err, wait.Late.Text)
		require.Nil(t, n)
		require.ErrorIs(t, gate.Cause(), znode.ErrLeft)
		require.Empty(t, us.Nodes())
	})
}
