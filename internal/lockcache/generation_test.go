package lockcache_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/lockcache"
	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/zkconn"
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

// A blindConn does not answer who stands behind a place, until it may.
type blindConn struct {
	*zk.Conn
	sees chan struct{}
}

func (c *blindConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	<-c.sees
	return c.Conn.ChildrenW(path)
}

// A place whose turn comes by a notification does not know at first who stands behind it.
// How often it is passed on until then counts all the same.
func TestPassesCountBeforeItIsKnownWhoWaits(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		conn := &blindConn{us.Conn, make(chan struct{})}
		s := zkconn.Use(conn, zkconn.Config{
			Timeout: func() time.Duration { return timeout }, ServerTick: tick,
			InOrder: true,
		})
		defer s.Release()
		q := queue()
		policy := lockcache.Policy{Idle: time.Hour, MaxHandovers: 1}
		ahead := other.Occupy()
		var granted [4]chan *lockcache.Share
		for i := range granted {
			granted[i] = make(chan *lockcache.Share, 1)
			go func() {
				share, err := lockcache.Enter(bounded(t), s, q, policy, seqnode.Request{})
				if err != nil {
					t.Error(err)
				}
				granted[i] <- share
			}()
			time.Sleep(time.Second)
		}
		behind := other.Occupy()
		other.Remove(ahead)
		for _, share := range granted[:2] {
			queuetest.Within(t, patience, share, "it is not passed on").Withdraw()
		}
		time.Sleep(time.Minute)
		require.Empty(t, granted[2], "it is passed on although others may wait")
		close(conn.sees)
		time.Sleep(time.Minute)
		require.Empty(t, granted[2], "it is passed on for too long")
		other.Remove(behind)
		for _, share := range granted[2:] {
			queuetest.Within(t, patience, share, "it does not join anew").Withdraw()
		}
	})
}

// Where the first look shows nobody behind, nobody has waited meanwhile: the passes
// before it, as many as there may be, do not count for a later newcomer.
func TestPassesBeforeAnybodyWaitsDoNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		conn := &blindConn{us.Conn, make(chan struct{})}
		s := zkconn.Use(conn, zkconn.Config{
			Timeout: func() time.Duration { return timeout }, ServerTick: tick,
			InOrder: true,
		})
		defer s.Release()
		q, policy := queue(), lockcache.Policy{Idle: time.Hour, MaxHandovers: 1}
		ahead := other.Occupy()
		granted := make(chan *lockcache.Share, 4)
		for range cap(granted) {
			go func() {
				share, err := lockcache.Enter(bounded(t), s, q, policy, seqnode.Request{})
				if err != nil {
					t.Error(err)
				}
				granted <- share
			}()
		}
		time.Sleep(time.Second)
		other.Remove(ahead)
		for range 2 {
			queuetest.Within(t, patience, granted, "it is not passed on").Withdraw()
		}
		close(conn.sees)
		third := queuetest.Within(t, patience, granted, "it is not passed on")
		time.Sleep(time.Second)
		behind := other.Occupy()
		time.Sleep(time.Second)
		third.Withdraw()
		queuetest.Within(t, patience, granted, "earlier passes count").Withdraw()
		other.Remove(behind)
	})
}

// An owner that finds the entry free overtakes others that wait elsewhere, as one does
// that has waited, and waits like that one for the list if it is the next too many.
func TestWhoFindsTheEntryFreeCountsAsAHandover(t *testing.T) {
	for name, waits := range map[string]bool{"alone": false, "another waits": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
				us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
				conn := &blindConn{us.Conn, make(chan struct{})}
				s := zkconn.Use(conn, zkconn.Config{
					Timeout: func() time.Duration { return timeout }, ServerTick: tick,
					InOrder: true,
				})
				defer s.Release()
				q, policy := queue(), lockcache.Policy{Idle: time.Hour, MaxHandovers: 2}
				enter := func() *lockcache.Share {
					share, err := lockcache.Enter(
						bounded(t), s, q, policy, seqnode.Request{})
					if err != nil {
						t.Error(err)
					}
					return share
				}
				for range 1 + policy.MaxHandovers {
					enter().Withdraw()
				}
				next := make(chan *lockcache.Share, 1)
				go func() { next <- enter() }()
				var behind string
				if waits {
					behind = other.Occupy()
				}
				time.Sleep(time.Minute)
				require.Empty(t, next, "others may wait")
				close(conn.sees)
				if waits {
					time.Sleep(time.Minute)
					require.Empty(t, next, "another waits")
					other.Remove(behind)
				}
				queuetest.Within(t, patience, next, "it does not enter").Withdraw()
			})
		})
	}
}

// A watchingConn counts the looks at the queue.
type watchingConn struct {
	*zk.Conn
	looks atomic.Int32
}

func (c *watchingConn) ChildrenW(path string) (
	[]string, *zk.Stat, <-chan zk.Event, error,
) {
	c.looks.Add(1)
	return c.Conn.ChildrenW(path)
}

// The first others are noticed at once, and those who come and go fast are not looked at
// more often than every 100 ms.
func TestHowOftenAHeldEntryIsLookedAt(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		conn := &watchingConn{Conn: us.Conn}
		s := zkconn.Use(conn, zkconn.Config{
			Timeout: func() time.Duration { return timeout }, ServerTick: tick,
			InOrder: true,
		})
		defer s.Release()
		q := queue()
		q.Excludes = func(_, _ seqname.Name) bool { return false }
		share, err := lockcache.Enter(
			bounded(t), s, q, lockcache.Policy{Idle: time.Hour}, seqnode.Request{})
		require.NoError(t, err)
		synctest.Wait()
		require.EqualValues(t, 1, conn.looks.Load())
		for i := range 50 {
			other.Remove(other.Occupy())
			time.Sleep(time.Millisecond)
			require.LessOrEqual(t, conn.looks.Load(), int32(2))
			if i == 0 {
				require.EqualValues(t, 2, conn.looks.Load())
			}
		}
		time.Sleep(100 * time.Millisecond)
		require.EqualValues(t, 3, conn.looks.Load())
		share.Withdraw()
	})
}
