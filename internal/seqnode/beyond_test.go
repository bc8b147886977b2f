package seqnode_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/zktest"
)

// A distant is a waiter behind five of another process, far from the servers.
type distant struct {
	us, other *queuetest.Peer
	ahead     []string // the blocker is the last one
	wait      *stay
}

const (
	oneWay = 10 * time.Millisecond
	// Each case ends within a second: then the waiter's own znode is watched anyway.
	settled = 10 * oneWay
	// The list that follows an event was made, and has not arrived.
	listing = 2*oneWay + oneWay/2
)

// newDistant returns once the waiter's create and its list are answered: its watches are
// on their way, and arrive oneWay later.
func newDistant(
	t *testing.T, cluster *zktest.Cluster, delay time.Duration,
) *distant {
	t.Helper()
	d := &distant{us: newPeer(t, cluster, "us"), other: newPeer(t, cluster, "other")}
	moveAway(d.us, delay)
	for range 5 {
		d.ahead = append(d.ahead, d.other.Occupy())
	}
	d.wait = enter(bounded(t), d.us, seqnode.Request{})
	<-d.wait.queued
	return d
}

// moveAway takes a process away from the servers, and lets it learn how far it is.
func moveAway(p *queuetest.Peer, oneWay time.Duration) {
	p.T.Helper()
	p.Link.Delay(oneWay, oneWay)
	for range 50 {
		require.NoError(p.T, p.S.Sync("/"))
	}
}

// leave has some of those ahead leave, from the first to the last of them.
func (d *distant) leave(first, last int) {
	for _, path := range d.ahead[first : last+1] {
		d.other.Remove(path)
	}
}

// Once the one beyond the blocker has gone, a waiter that is far from the servers asks
// what it would have to ask later: so the event alone grants.
func TestAWaiterFarFromTheServersLooksBeyondItsBlocker(t *testing.T) {
	for what, c := range map[string]struct {
		before func(d *distant)
		pause  time.Duration // then the blocker leaves
		delay  time.Duration
		takes  time.Duration
	}{
		"all leave, and their list is on its way": {func(d *distant) {
			time.Sleep(settled)
			d.leave(0, 3)
		}, listing, oneWay, oneWay},
		"all have left before the one beyond is watched": {func(d *distant) {
			d.leave(0, 3)
		}, listing + oneWay, oneWay, oneWay},
		"those left are found by the next watch": {func(d *distant) {
			time.Sleep(settled)
			d.leave(1, 3)
			time.Sleep(settled)
			d.leave(0, 0)
		}, listing, oneWay, oneWay},
		"the data of the one beyond changes": {func(d *distant) {
			time.Sleep(settled)
			_, err := d.other.Set(d.ahead[3], []byte("x"), -1)
			require.NoError(d.us.T, err)
			time.Sleep(settled)
			d.leave(0, 3)
		}, listing, oneWay, oneWay},
		"the one beyond becomes the blocker": {func(d *distant) {
			time.Sleep(settled)
			d.leave(0, 2)
			d.leave(4, 4)
			d.ahead[4] = d.ahead[3]
		}, settled, oneWay, oneWay},
		"near servers": {func(d *distant) {
			time.Sleep(settled)
			d.leave(0, 3)
		}, settled, time.Millisecond / 4, 3 * time.Millisecond / 4},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
				d := newDistant(t, cluster, c.delay)
				c.before(d)
				time.Sleep(c.pause)
				began := time.Now()
				d.leave(4, 4)
				d.wait.held(time.Minute)
				require.Equal(t, c.takes, time.Since(began))
			})
		})
	}
}

// A watch that was set before the connection was away may be dead: the servers may have
// refused to set it again.
func TestABlockerIsWatchedAgainAfterAReconnect(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.Occupy()
		e := enter(bounded(t), us, seqnode.Request{})
		e.waits(time.Second)
		us.Link.Throttle(zktest.OpSetWatches)
		us.Link.Cut()
		e.waits(timeout / 4)
		us.Link.Heal()
		e.waits(timeout / 4)
		other.Remove(ahead)
		e.held(tick)
	})
}

// The blocker can go before it is known what became of the next one beyond: its event
// does not wait for that.
func TestABlockerGoesWhileTheNextOneBeyondIsBeingWatched(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		d := newDistant(t, cluster, oneWay)
		time.Sleep(settled)
		d.leave(3, 3)
		time.Sleep(2*oneWay + time.Millisecond)
		began := time.Now()
		d.leave(0, 2)
		d.leave(4, 4)
		d.wait.held(time.Minute)
		require.Equal(t, 3*oneWay, time.Since(began), "the event, and a list")
	})
}

// Two of this process would share the one event of the watch, and one of them learn
// nothing: so only the first of them looks beyond its blocker.
func TestNobodyTakesTheEventOfAnothersBlocker(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		moveAway(us, oneWay)
		writer := other.OccupyAs("W-")
		first := enterIn(bounded(t), side("R-"), us, seqnode.Request{})
		<-first.queued
		other.OccupyAs("W-")
		second := enterIn(bounded(t), side("R-"), us, seqnode.Request{})
		<-second.queued
		time.Sleep(2 * time.Minute) // each has polled, and sleeps in any order
		began := time.Now()
		other.Remove(writer)
		first.held(time.Minute)
		require.Equal(t, oneWay, time.Since(began))
		second.waits(time.Second)
	})
}
