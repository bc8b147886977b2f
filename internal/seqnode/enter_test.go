package seqnode_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/znode"
	"github.com/zkrecipes/recipes/zktest"
)

// The names by which the tests know what they share.
const (
	timeout  = queuetest.Timeout
	tick     = queuetest.Tick
	patience = queuetest.Patience
)

var (
	newPeer = queuetest.NewPeer
	bounded = queuetest.Bounded
	queue   = queuetest.Queue
	bubble  = queuetest.Bubble
)

// A stay is a call of Enter on a goroutine of its own.
type stay struct {
	t      *testing.T
	queued chan string // the znode, each time that the queue is joined
	ahead  chan int    // likewise, how many were ahead
	done   chan struct{}
	node   *znode.Node // set before done is closed
	err    error       // likewise
}

// Queued implements seqnode.Listener.
func (e *stay) Queued(node string, ahead int) { e.queued <- node; e.ahead <- ahead }

// DataChanged implements seqnode.Listener.
func (e *stay) DataChanged([]byte) {}

func enter(ctx context.Context, p *queuetest.Peer, r seqnode.Request) *stay {
	return enterIn(ctx, queue(), p, r)
}

func enterIn(
	ctx context.Context, q *seqnode.Queue, p *queuetest.Peer, r seqnode.Request,
) *stay {
	e := &stay{
		t: p.T, queued: make(chan string, 10), ahead: make(chan int, 10),
		done: make(chan struct{}),
	}
	r.Listener = e
	go func() {
		defer close(e.done)
		e.node, e.err = q.Enter(ctx, p.S, r)
	}()
	return e
}

// held waits for the stay to end with a held Node.
func (e *stay) held(d time.Duration) *znode.Node {
	e.t.Helper()
	queuetest.Within(e.t, d, e.done, "it is not held")
	require.NoError(e.t, e.err)
	require.NoError(e.t, e.node.Lost().Err())
	return e.node
}

// waits checks that the stay goes on.
func (e *stay) waits(d time.Duration) {
	e.t.Helper()
	select {
	case <-e.done:
		require.FailNow(e.t, "it does not wait", "%v", e.err)
	case <-time.After(d):
	}
}

func TestAFreePlaceIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		e := enter(bounded(t), us, seqnode.Request{})
		n := e.held(patience)
		require.Equal(t, 0, <-e.ahead)
		require.Equal(t, []string{n.Path}, us.Nodes())
		require.Equal(t, us.Czxid(n.Path), n.Token())

		require.NoError(t, n.StartLeaving()(bounded(t)))
		require.Empty(t, us.Nodes())
		require.NoError(t, n.Lost().Err(), "who leaves loses nothing")
	})
}

func TestBehindAStrangerOneWaitsUntilItGoes(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		e := enter(bounded(t), us, seqnode.Request{})
		e.waits(5 * time.Minute)
		require.Equal(t, 1, <-e.ahead)

		other.Remove(ahead)
		n := e.held(time.Second)
		require.Equal(t, []string{n.Path}, us.Nodes())
		require.Equal(t, us.Czxid(n.Path), n.Token())
	})
}

// Between two neighbours of one process nobody can come: the second has the lock as soon
// as the first leaves it, although ZooKeeper hears of nothing.
func TestInOneProcessTheLockIsHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		first := enter(bounded(t), us, seqnode.Request{}).held(patience)
		e := enter(bounded(t), us, seqnode.Request{})
		e.waits(time.Minute)

		us.Link.Stall(zktest.ToServer)
		first.Withdraw()
		second := e.held(time.Nanosecond)
		require.Greater(t, second.Token(), first.Token())

		us.Link.Heal()
		time.Sleep(timeout)
		require.Equal(t, []string{second.Path}, us.Nodes())
	})
}

// Who comes behind another of the process does not ask who else is there; when that one
// leaves it has to.
func TestBetweenTwoOfAProcessAStrangerGoesFirst(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		first := enter(bounded(t), us, seqnode.Request{}).held(patience)
		between := other.Occupy()
		second := enter(bounded(t), us, seqnode.Request{})
		ahead := queuetest.Within(t, patience, second.ahead, "it does not join")
		require.Equal(t, 1, ahead)
		third := enter(bounded(t), us, seqnode.Request{})
		ahead = queuetest.Within(t, patience, third.ahead, "it does not join")
		require.Equal(t, 2, ahead)
		second.waits(time.Minute)

		first.Withdraw()
		second.waits(time.Minute)
		other.Remove(between)
		second.held(time.Second).Withdraw()
		third.held(time.Nanosecond)
	})
}

// Numbers tell who is a neighbour in one directory. This one was made anew, and there is
// nobody yet whom a watch has told.
func TestNeighboursOfTwoDirectoriesAreNone(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		first := enter(bounded(t), us, seqnode.Request{}).held(patience)
		other.Remove(first.Path)
		other.Remove(queuetest.Dir)
		stranger := other.Occupy()
		require.Contains(t, first.Path, "-lock-0000000000")
		require.Contains(t, stranger, "lock-0000000000")

		second := enter(bounded(t), us, seqnode.Request{})
		node := queuetest.Within(t, patience, second.queued, "it does not join")
		require.Contains(t, node, "-lock-0000000001")
		us.Link.Stall(zktest.ToServer)
		first.Withdraw()
		second.waits(time.Second)
		us.Link.Heal()
		second.waits(time.Minute)
		other.Remove(stranger)
		second.held(time.Second)
	})
}

// One list tells all whom it shows: of those who join behind it each sees who is ahead,
// and who has gone since it finds out by small reads.
func TestOneListTellsTheCrowd(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		strangers := []string{other.Occupy()}
		var ours []*stay
		for range 20 {
			e := enter(bounded(t), us, seqnode.Request{})
			queuetest.Within(t, patience, e.queued, "it does not join")
			ours = append(ours, e)
			strangers = append(strangers, other.Occupy(), other.Occupy())
		}
		time.Sleep(time.Second)
		for i, e := range ours {
			e.waits(time.Second)
			if i%2 == 1 { // the farther one first: the nearer one's end is not enough
				slices.Reverse(strangers[:2])
			}
			for range min(len(strangers), 1+min(i, 1)) {
				e.waits(time.Second)
				other.Remove(strangers[0])
				strangers = strangers[1:]
			}
			n := e.held(time.Second)
			require.Equal(t, us.Czxid(n.Path), n.Token())
			if i+1 < len(ours) {
				ours[i+1].waits(time.Second)
			}
			n.Withdraw()
		}
	})
}

// In a long queue a reader whose predecessor goes reads the few writers that are left
// ahead of it, and asks for no list: one that is there keeps it waiting, one that has
// gone does not.
func TestFewOfALongQueueAreRead(t *testing.T) {
	readers := queue()
	readers.Kind, readers.Kinds = "read-", []string{"read-", "lock-"}
	readers.Excludes = func(ahead, self seqname.Name) bool {
		return ahead.Kind == "lock-" || self.Kind == "lock-"
	}
	for name, atOnce := range map[string]int{"one goes": 1, "two go": 2} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
				us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
				writers := []string{other.Occupy(), other.Occupy(), other.Occupy()}
				for range 130 {
					other.OccupyAs("read-")
				}
				e := enterIn(bounded(t), readers, us, seqnode.Request{})
				e.waits(time.Second)

				epoch := us.S.Epoch()
				us.Link.LoseRequest(zktest.OpChildren) // and the connection with it
				left := len(writers) - atOnce
				for _, path := range writers[left:] {
					other.Remove(path)
				}
				for _, path := range slices.Backward(writers[:left]) {
					e.waits(time.Second)
					other.Remove(path)
				}
				e.held(time.Second).Withdraw()
				require.Equal(t, epoch, us.S.Epoch(), "it has asked for a list")
				us.Link.Spare()
			})
		})
	}
}

// One that was lost while it was held hands nothing over: the others are asked first.
func TestALostHoldIsNotHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		first := enter(bounded(t), us, seqnode.Request{}).held(patience)
		e := enter(bounded(t), us, seqnode.Request{})
		e.waits(time.Minute)

		us.Link.Stall(zktest.ToServer)
		first.Lose(znode.ErrGone)
		require.ErrorIs(t, context.Cause(first.Lost()), znode.ErrGone)
		e.waits(time.Second)
		us.Link.Heal()
	})
}

// A transaction that the former's znode guards may still be done after the former has
// left: the next waits until the znode is gone.
func TestAnOpenTransactionIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		first := enter(bounded(t), us, seqnode.Request{}).held(patience)
		settled, ok := first.Guard()
		require.True(t, ok)
		e := enter(bounded(t), us, seqnode.Request{})
		e.waits(time.Minute)

		us.Link.Stall(zktest.ToServer)
		first.Withdraw()
		e.waits(time.Second)
		us.Link.Heal()
		second := e.held(time.Second)
		settled()

		settled, ok = second.Guard()
		require.True(t, ok)
		e = enter(bounded(t), us, seqnode.Request{})
		e.waits(time.Minute)
		settled()
		us.Link.Stall(zktest.ToServer)
		second.Withdraw()
		e.held(time.Nanosecond)
		_, ok = second.Guard()
		require.False(t, ok, "it has left")
		us.Link.Heal()
	})
}

func TestWhoseZnodeIsDeletedJoinsAtTheTail(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		e := enter(bounded(t), us, seqnode.Request{})
		lost := queuetest.Within(t, patience, e.queued, "it does not join")
		e.waits(time.Minute)
		later := other.Occupy()

		other.Remove(lost)
		removed := time.Now()
		anew := queuetest.Within(t, patience, e.queued, "it does not join again")
		require.GreaterOrEqual(t, time.Since(removed), 10*time.Millisecond,
			"it would send a create behind a Close, by which the znode has gone")
		require.Equal(t, []string{ahead, later, anew}, us.Nodes())
		require.Equal(t, 1, <-e.ahead)
		require.Equal(t, 2, <-e.ahead)

		other.Remove(ahead)
		e.waits(time.Minute)
		other.Remove(later)
		require.Equal(t, anew, e.held(time.Second).Path)
	})
}

// It is somebody's turn, but the session cannot be relied on: each answer is too old when
// it comes. Meanwhile its znode is deleted. It does not hold the lock by what it knew.
func TestARefusedHoldIsGrantedAnew(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := queuetest.NewBarePeer(t, cluster, "us"), newPeer(t, cluster, "other")
		us.Nodes() // it has a session
		us.Link.Delay(600*time.Millisecond, 600*time.Millisecond)
		e := enter(bounded(t), us, seqnode.Request{})
		lost := queuetest.Within(t, patience, e.queued, "it does not join")
		e.waits(3 * time.Second)

		other.Remove(lost)
		us.Link.Delay(0, 0)
		n := e.held(patience)
		require.NotEqual(t, lost, n.Path)
		require.Equal(t, []string{n.Path}, us.Nodes())
	})
}

// Only a deletion that is not this process's own holds requests back.
func TestAReleaseHoldsNothingBack(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		enter(bounded(t), us, seqnode.Request{}).held(patience).Withdraw()
		began := time.Now()
		for range 10 {
			held := enter(bounded(t), us, seqnode.Request{}).held(patience)
			held.WatchSelf()
			synctest.Wait()
			followed := enter(bounded(t), us, seqnode.Request{})
			synctest.Wait()
			held.Withdraw()
			followed.held(patience).Withdraw()
			synctest.Wait()
		}
		require.Zero(t, time.Since(began))
	})
}

var errChangedMind = errors.New("changed my mind")

func TestWhoGivesUpLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		ctx, cancel := context.WithCancelCause(bounded(t))
		e := enter(ctx, us, seqnode.Request{})
		e.waits(time.Minute)
		cancel(errChangedMind)
		queuetest.Within(t, 250*time.Millisecond, e.done, "it does not return")
		require.ErrorIs(t, outcome.WithCause(e.err), errChangedMind)
		require.ErrorContains(t, e.err, "1 ahead, behind "+ahead)
		require.Equal(t, []string{ahead}, us.Nodes())
	})
}

// A create whose caller has left is followed up, though its answer comes late.
func TestWhoGivesUpInAnOutageLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		us.Nodes() // it has a session
		us.Link.Stall(zktest.ToClient)
		ctx, cancel := context.WithCancelCause(bounded(t))
		e := enter(ctx, us, seqnode.Request{})
		e.waits(time.Second)
		require.Len(t, other.Nodes(), 2, "the create is not done")
		cancel(errChangedMind)
		queuetest.Within(t, 250*time.Millisecond, e.done, "it does not return")
		require.ErrorIs(t, outcome.WithCause(e.err), errChangedMind)

		us.Link.Heal()
		time.Sleep(time.Second)
		require.Equal(t, []string{ahead}, other.Nodes())
	})
}

func TestATryWaitsForNobody(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		e := enter(bounded(t), us, seqnode.Request{SingleAttempt: true})
		queuetest.Within(t, time.Second, e.done, "it waits")
		require.ErrorIs(t, e.err, wait.ErrBusy)
		require.ErrorContains(t, e.err, "1 ahead, behind "+ahead)
		require.Equal(t, []string{ahead}, us.Nodes())

		other.Remove(ahead)
		enter(bounded(t), us, seqnode.Request{SingleAttempt: true}).held(time.Second)
	})
}

func TestBesideTheWriterOneWaitsForNobody(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		writer := enter(bounded(t), us, seqnode.Request{}).held(patience)
		later := other.Occupy()
		n, err := queue().EnterUnder(bounded(t), us.S, writer, seqnode.Request{})
		require.NoError(t, err)
		require.Equal(t, writer.Token(), n.Token())
		require.ElementsMatch(t, []string{writer.Path, n.Path}, us.Nodes()[:2])

		// Under one who has left there is no place: it queues like anybody, behind those
		// who are there.
		writer.Withdraw()
		ctx, cancel := context.WithTimeout(bounded(t), time.Minute)
		defer cancel()
		_, err = queue().EnterUnder(ctx, us.S, writer, seqnode.Request{})
		require.ErrorIs(t, outcome.WithCause(err), context.DeadlineExceeded)
		require.ErrorContains(t, err, " ahead, behind "+n.Path)
		n.Withdraw()
		ctx, cancel = context.WithTimeout(bounded(t), time.Minute)
		defer cancel()
		_, err = queue().EnterUnder(ctx, us.S, writer, seqnode.Request{})
		require.ErrorContains(t, err, " ahead, behind "+later)
	})
}

// A watch on the own znode that is asked for ends no sleep.
func TestAWatchThatIsAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		asked, decisions := make(chan struct{}), 0
		e := enter(bounded(t), us, seqnode.Request{
			WatchSelf: asked,
			OnDecision: func(seqnode.Position, bool) bool {
				decisions++
				return decisions < 10
			},
		})
		close(asked)
		e.waits(patience)
		other.Remove(ahead)
		e.held(time.Second).Withdraw()
		// the second once a read has shown what is ahead, since no library has named that
		require.Equal(t, 3, decisions)
	})
}

// A connection that does not tell of its close needs a watch on each znode before long.
func TestWhoseZnodeIsDeletedBehindSeveralLearnsOfItSoon(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		other.Occupy()
		other.Occupy()
		e := enter(bounded(t), us, seqnode.Request{})
		lost := queuetest.Within(t, time.Second, e.queued, "it does not join")
		e.waits(100 * time.Millisecond)
		other.Remove(lost)
		queuetest.Within(t, 100*time.Millisecond, e.queued, "it does not join again")
	})
}

// The turn can come when the caller has gone: that is no hold, and no znode stays.
func TestWhoIsCancelledAsItJoinsLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		ctx, cancel := context.WithCancel(bounded(t))
		defer cancel()
		n, err := queue().Enter(ctx, us.S, seqnode.Request{Listener: onQueued(cancel)})
		require.Equal(t, context.Canceled, outcome.Cancellation(err))
		require.Nil(t, n)
		require.Empty(t, us.Nodes())
	})
}
