package seqnode_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/zktest"
)

// An impatient waiter gives up after 100 ms in which nobody ahead leaves: requests take
// no time here.
var impatient = seqnode.Request{StallTimeout: 100 * time.Millisecond}

// gaveUp checks that the stay ends after d, for a queue that stands still.
func (e *stay) gaveUp(d time.Duration) {
	e.t.Helper()
	e.waits(d - time.Millisecond)
	queuetest.Within(e.t, 2*time.Millisecond, e.done, "it waits on")
	require.ErrorIs(e.t, e.err, wait.ErrBusy)
}

func TestAStallEndsAWait(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		us.Nodes() // it has a session
		e := enter(bounded(t), us, impatient)
		e.gaveUp(100 * time.Millisecond)
		require.ErrorContains(t, e.err, "1 ahead, behind "+ahead)
		require.Equal(t, []string{ahead}, us.Nodes())
	})
}

// The one right ahead stays, and the waiter hears of nobody else: it has to look.
func TestAQueueThatMovesIsNoStall(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		first, second, last := other.Occupy(), other.Occupy(), other.Occupy()
		us.Nodes() // it has a session
		e := enter(bounded(t), us, impatient)
		for _, ahead := range []string{first, second} {
			e.waits(50 * time.Millisecond)
			other.Remove(ahead)
			e.waits(50 * time.Millisecond)
		}
		e.gaveUp(100 * time.Millisecond)
		require.Equal(t, []string{last}, us.Nodes())
	})
}

// Between two of one process too, where no watch is set.
func TestAStallBehindAnotherOfTheProcess(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		first := enter(bounded(t), us, seqnode.Request{}).held(patience)
		enter(bounded(t), us, impatient).gaveUp(100 * time.Millisecond)
		require.Equal(t, []string{first.Path}, us.Nodes())
	})
}

func TestAStallStartsOverWithAnotherZnode(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		us.Nodes() // it has a session
		e := enter(bounded(t), us, impatient)
		lost := queuetest.Within(t, time.Millisecond, e.queued, "it does not join")
		e.waits(60 * time.Millisecond)
		other.Remove(lost)
		queuetest.Within(t, 20*time.Millisecond, e.queued, "it does not join again")
		e.gaveUp(120 * time.Millisecond) // the create was held back for 10 ms
		require.Equal(t, []string{ahead}, us.Nodes())
	})
}

// Behind several a waiter does not watch its own znode at once, but after 20 ms. So the
// look itself can show that the znode is gone, which says nothing of the queue.
func TestAStallOfAWaiterWithoutItsZnode(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		first, last := other.Occupy(), other.Occupy()
		us.Nodes() // it has a session
		e := enter(bounded(t), us, seqnode.Request{StallTimeout: 10 * time.Millisecond})
		lost := queuetest.Within(t, time.Millisecond, e.queued, "it does not join")
		other.Remove(lost)
		queuetest.Within(t, 30*time.Millisecond, e.queued, "it does not join again")
		queuetest.Within(t, 50*time.Millisecond, e.done, "it waits on")
		require.ErrorIs(t, e.err, wait.ErrBusy)
		require.Equal(t, []string{first, last}, us.Nodes())
	})
}
