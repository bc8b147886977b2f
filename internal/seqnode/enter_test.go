package seqnode_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
	"github.com/zkrecipes/recipes/zktest"
)

// These tests run the queue on go-zookeeper's client against a simulated ensemble, in
// virtual time.

const (
	tick    = 2 * time.Second
	timeout = 12 * time.Second
	dir     = "/lock"
	// patience is far beyond what anything here takes, and below the shortest safety
	// poll: who gets on by that alone is found out.
	patience = 20 * time.Second
)

var anyone = zk.WorldACL(zk.PermAll)

type mute struct{}

func (mute) Printf(string, ...any) {}

// A peer is a process with a connection of its own.
type peer struct {
	*zk.Conn
	t    *testing.T
	s    *session.Session
	link *zktest.Link
}

// bubble runs a test in virtual time. Each wait in it must be bounded: the client's pings
// keep the time running for ever.
func bubble(t *testing.T, f func(t *testing.T, cluster *zktest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, zktest.Start(t, zktest.WithTick(tick)))
	})
}

// bounded is the ctx of whoever might wait for ever.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

func newPeer(t *testing.T, cluster *zktest.Cluster, name string) *peer {
	t.Helper()
	p := &peer{t: t, link: cluster.Link(name)}
	var err error
	p.Conn, _, err = zk.Connect([]string{"x"}, timeout,
		zk.WithDialer(p.link.Dial), zk.WithHostProvider(cluster.HostProvider()),
		zk.WithLogger(mute{}), zk.WithLogInfo(false))
	require.NoError(t, err)
	p.s = session.Use(p.Conn, session.Config{
		Timeout: func() time.Duration { return timeout }, ServerTick: tick, Plain: true,
		InOrder: true,
	})
	t.Cleanup(func() {
		p.link.Heal()
		time.Sleep(timeout)
		// A connection that breaks under the client's last request can answer that twice,
		// and hang.
		p.link.Cut()
		time.Sleep(timeout)
		p.Close()
		p.s.Release()
		time.Sleep(2 * timeout) // what goes on in the background ends with the session
	})
	return p
}

// queue is a mutex.
func queue() *seqnode.Queue {
	return &seqnode.Queue{
		Dir: dir, Kind: "lock-", Kinds: []string{"lock-"}, ACL: anyone,
		Rule: func(ahead []seqnode.Name, _ seqnode.Name) int { return len(ahead) - 1 },
		Log:  slog.New(slog.DiscardHandler),
	}
}

// A stay is a call of Enter on a goroutine of its own.
type stay struct {
	t      *testing.T
	queued chan string // the znode, each time that the queue is joined
	ahead  chan int    // likewise, how many were ahead
	done   chan struct{}
	node   *seqnode.Node // set before done is closed
	err    error         // likewise
}

func (p *peer) enter(ctx context.Context, r seqnode.Request) *stay {
	e := &stay{
		t: p.t, queued: make(chan string, 10), ahead: make(chan int, 10),
		done: make(chan struct{}),
	}
	r.OnQueued = func(node string, ahead int) { e.queued <- node; e.ahead <- ahead }
	go func() {
		defer close(e.done)
		e.node, e.err = queue().Enter(ctx, p.s, r)
	}()
	return e
}

// within fails the test where c has nothing for it, and is not closed, in time.
func within[T any](t *testing.T, d time.Duration, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(d):
		require.FailNow(t, what)
	}
	return v
}

// held waits for the stay to end with a held Node.
func (e *stay) held(d time.Duration) *seqnode.Node {
	e.t.Helper()
	within(e.t, d, e.done, "it is not held")
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

// occupy makes a znode in the queue as another library would, and returns it.
func (p *peer) occupy() (path string) {
	p.t.Helper()
	_, err := p.Create(dir, nil, zk.FlagPersistent, anyone)
	if !errors.Is(err, zk.ErrNodeExists) {
		require.NoError(p.t, err)
	}
	path, err = p.Create(dir+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, anyone)
	require.NoError(p.t, err)
	return path
}

func (p *peer) remove(path string) {
	p.t.Helper()
	require.NoError(p.t, p.Delete(path, -1))
}

// nodes returns the paths of what is in the directory.
func (p *peer) nodes() []string {
	p.t.Helper()
	members, err := queue().Members(bounded(p.t), p.s)
	require.NoError(p.t, err)
	paths := []string{}
	for _, m := range members {
		paths = append(paths, queue().Path(m))
	}
	return paths
}

func (p *peer) czxid(path string) int64 {
	p.t.Helper()
	_, stat, err := p.Get(path)
	require.NoError(p.t, err)
	return stat.Czxid
}

func TestAFreePlaceIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		e := us.enter(bounded(t), seqnode.Request{})
		n := e.held(patience)
		require.Equal(t, 0, <-e.ahead)
		require.Equal(t, []string{n.Path}, us.nodes())
		require.Equal(t, us.czxid(n.Path), n.Token())

		require.NoError(t, n.StartLeaving()(bounded(t)))
		require.Empty(t, us.nodes())
		require.NoError(t, n.Lost().Err(), "who leaves loses nothing")
	})
}

func TestBehindAStrangerOneWaitsUntilItGoes(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.occupy()
		e := us.enter(bounded(t), seqnode.Request{})
		e.waits(5 * time.Minute)
		require.Equal(t, 1, <-e.ahead)

		other.remove(ahead)
		n := e.held(time.Second)
		require.Equal(t, []string{n.Path}, us.nodes())
		require.Equal(t, us.czxid(n.Path), n.Token())
	})
}

// Between two neighbours of one process nobody can come: the second has the lock as soon
// as the first leaves it, although ZooKeeper hears of nothing.
func TestInOneProcessTheLockIsHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		first := us.enter(bounded(t), seqnode.Request{}).held(patience)
		e := us.enter(bounded(t), seqnode.Request{})
		e.waits(time.Minute)

		us.link.Stall(zktest.ToServer)
		first.Withdraw()
		second := e.held(time.Nanosecond)
		require.Greater(t, second.Token(), first.Token())

		us.link.Heal()
		time.Sleep(timeout)
		require.Equal(t, []string{second.Path}, us.nodes())
	})
}

// Who comes behind another of the process does not ask who else is there; when that one
// leaves it has to.
func TestBetweenTwoOfAProcessAStrangerGoesFirst(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		first := us.enter(bounded(t), seqnode.Request{}).held(patience)
		between := other.occupy()
		second := us.enter(bounded(t), seqnode.Request{})
		require.Equal(t, 1, within(t, patience, second.ahead, "it does not join"))
		third := us.enter(bounded(t), seqnode.Request{})
		require.Equal(t, 2, within(t, patience, third.ahead, "it does not join"))
		second.waits(time.Minute)

		first.Withdraw()
		second.waits(time.Minute)
		other.remove(between)
		second.held(time.Second).Withdraw()
		third.held(time.Nanosecond)
	})
}

// Numbers tell who is a neighbour in one directory. This one was made anew, and there is
// nobody yet whom a watch has told.
func TestNeighboursOfTwoDirectoriesAreNone(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		first := us.enter(bounded(t), seqnode.Request{}).held(patience)
		other.remove(first.Path)
		other.remove(dir)
		stranger := other.occupy()
		require.Contains(t, first.Path, "-lock-0000000000")
		require.Contains(t, stranger, "lock-0000000000")

		second := us.enter(bounded(t), seqnode.Request{})
		node := within(t, patience, second.queued, "it does not join")
		require.Contains(t, node, "-lock-0000000001")
		us.link.Stall(zktest.ToServer)
		first.Withdraw()
		second.waits(time.Second)
		us.link.Heal()
		second.waits(time.Minute)
		other.remove(stranger)
		second.held(time.Second)
	})
}

// One list tells all whom it shows: of those who join behind it each sees who is ahead,
// and who has gone since it finds out by small reads.
func TestOneListTellsTheCrowd(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		strangers := []string{other.occupy()}
		var ours []*stay
		for range 20 {
			e := us.enter(bounded(t), seqnode.Request{})
			within(t, patience, e.queued, "it does not join")
			ours = append(ours, e)
			strangers = append(strangers, other.occupy(), other.occupy())
		}
		time.Sleep(time.Second)
		for i, e := range ours {
			e.waits(time.Second)
			if i%2 == 1 { // the farther one first: the nearer one's end is not enough
				slices.Reverse(strangers[:2])
			}
			for range min(len(strangers), 1+min(i, 1)) {
				e.waits(time.Second)
				other.remove(strangers[0])
				strangers = strangers[1:]
			}
			n := e.held(time.Second)
			require.Equal(t, us.czxid(n.Path), n.Token())
			if i+1 < len(ours) {
				ours[i+1].waits(time.Second)
			}
			n.Withdraw()
		}
	})
}

// One that was lost while it was held hands nothing over: the others are asked first.
func TestALostHoldIsNotHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		first := us.enter(bounded(t), seqnode.Request{}).held(patience)
		e := us.enter(bounded(t), seqnode.Request{})
		e.waits(time.Minute)

		us.link.Stall(zktest.ToServer)
		first.Lose(seqnode.ErrGone)
		require.ErrorIs(t, context.Cause(first.Lost()), seqnode.ErrGone)
		e.waits(time.Second)
		us.link.Heal()
	})
}

// A transaction that the former's znode guards may still be done after the former has
// left: the next waits until the znode is gone.
func TestAnOpenTransactionIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		first := us.enter(bounded(t), seqnode.Request{}).held(patience)
		settled, ok := first.Guard()
		require.True(t, ok)
		e := us.enter(bounded(t), seqnode.Request{})
		e.waits(time.Minute)

		us.link.Stall(zktest.ToServer)
		first.Withdraw()
		e.waits(time.Second)
		us.link.Heal()
		second := e.held(time.Second)
		settled()

		settled, ok = second.Guard()
		require.True(t, ok)
		e = us.enter(bounded(t), seqnode.Request{})
		e.waits(time.Minute)
		settled()
		us.link.Stall(zktest.ToServer)
		second.Withdraw()
		e.held(time.Nanosecond)
		_, ok = second.Guard()
		require.False(t, ok, "it has left")
		us.link.Heal()
	})
}

func TestWhoseZnodeIsDeletedJoinsAtTheTail(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.occupy()
		e := us.enter(bounded(t), seqnode.Request{})
		lost := within(t, patience, e.queued, "it does not join")
		e.waits(time.Minute)
		later := other.occupy()

		other.remove(lost)
		removed := time.Now()
		anew := within(t, patience, e.queued, "it does not join again")
		require.GreaterOrEqual(t, time.Since(removed), 10*time.Millisecond,
			"it would send a create behind a Close, by which the znode has gone")
		require.Equal(t, []string{ahead, later, anew}, us.nodes())
		require.Equal(t, 1, <-e.ahead)
		require.Equal(t, 2, <-e.ahead)

		other.remove(ahead)
		e.waits(time.Minute)
		other.remove(later)
		require.Equal(t, anew, e.held(time.Second).Path)
	})
}

// Only a deletion that is not this process's own holds requests back.
func TestAReleaseHoldsNothingBack(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		us.enter(bounded(t), seqnode.Request{}).held(patience).Withdraw()
		began := time.Now()
		for range 10 {
			held := us.enter(bounded(t), seqnode.Request{}).held(patience)
			held.WatchSelf()
			synctest.Wait()
			followed := us.enter(bounded(t), seqnode.Request{})
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
		ahead := other.occupy()
		ctx, cancel := context.WithCancelCause(bounded(t))
		e := us.enter(ctx, seqnode.Request{})
		e.waits(time.Minute)
		cancel(errChangedMind)
		within(t, 250*time.Millisecond, e.done, "it does not return")
		require.ErrorIs(t, e.err, errChangedMind)
		require.ErrorContains(t, e.err, "1 ahead, behind "+ahead)
		require.Equal(t, []string{ahead}, us.nodes())
	})
}

// A create whose caller has left is followed up, though its answer comes late.
func TestWhoGivesUpInAnOutageLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.occupy()
		us.nodes() // it has a session
		us.link.Stall(zktest.ToClient)
		ctx, cancel := context.WithCancelCause(bounded(t))
		e := us.enter(ctx, seqnode.Request{})
		e.waits(time.Second)
		require.Len(t, other.nodes(), 2, "the create is not done")
		cancel(errChangedMind)
		within(t, 250*time.Millisecond, e.done, "it does not return")
		require.ErrorIs(t, e.err, errChangedMind)

		us.link.Heal()
		time.Sleep(time.Second)
		require.Equal(t, []string{ahead}, other.nodes())
	})
}

func TestATryWaitsForNobody(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		ahead := other.occupy()
		e := us.enter(bounded(t), seqnode.Request{TryOnce: true})
		within(t, time.Second, e.done, "it waits")
		require.ErrorIs(t, e.err, seqnode.ErrBusy)
		require.ErrorContains(t, e.err, "1 ahead, behind "+ahead)
		require.Equal(t, []string{ahead}, us.nodes())

		other.remove(ahead)
		us.enter(bounded(t), seqnode.Request{TryOnce: true}).held(time.Second)
	})
}

func TestBesideTheWriterOneWaitsForNobody(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		writer := us.enter(bounded(t), seqnode.Request{}).held(patience)
		later := other.occupy()
		n, err := queue().EnterBeside(bounded(t), us.s, writer, seqnode.Request{})
		require.NoError(t, err)
		require.Equal(t, writer.Token(), n.Token())
		require.ElementsMatch(t, []string{writer.Path, n.Path}, us.nodes()[:2])

		// Beside one who has left there is no place: it queues like anybody.
		writer.Withdraw()
		ctx, cancel := context.WithTimeout(bounded(t), time.Minute)
		defer cancel()
		_, err = queue().EnterBeside(ctx, us.s, writer, seqnode.Request{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, " ahead, behind "+later)
	})
}

// leases are the znodes of a semaphore.
func leases() *seqnode.Queue {
	q := queue()
	q.Rule = nil
	return q
}

// Leases are taken all or none, and come back in any order.
func TestABatchWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us, other := newPeer(t, cluster, "us"), newPeer(t, cluster, "other")
		out := []string{other.occupy(), other.occupy(), other.occupy()}
		gateQueue := queue()
		gateQueue.Dir = "/gate"
		gate, err := gateQueue.Enter(bounded(t), us.s, seqnode.Request{})
		require.NoError(t, err)
		limit := func(context.Context, bool) (int, <-chan zk.Event, error) {
			return 4, nil, nil
		}

		var nodes []*seqnode.Node
		done := make(chan struct{})
		go func() {
			defer close(done)
			nodes, err = leases().EnterN(bounded(t), us.s, gate, 2, limit, false)
		}()
		time.Sleep(5 * time.Minute)
		require.Len(t, us.nodes(), 5)
		require.NoError(t, gate.Cause(), "it keeps its place while it waits")
		other.remove(out[1])
		within(t, time.Second, done, "they are not held")
		require.NoError(t, err)
		require.Len(t, nodes, 2)
		require.Error(t, gate.Cause(), "it keeps others waiting")
	})
}

// A maximum that is too low is waited for without znodes.
func TestALimitIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		us := newPeer(t, cluster, "us")
		var most atomic.Int64
		most.Store(1)
		changed := make(chan zk.Event)
		limit := seqnode.Limit(func(
			_ context.Context, watch bool,
		) (int, <-chan zk.Event, error) {
			if !watch {
				return int(most.Load()), nil, nil
			}
			return int(most.Load()), changed, nil
		})
		require.ErrorIs(t, limit.Await(bounded(t), us.s, 2, true), seqnode.ErrBusy)
		done := make(chan error, 1)
		go func() { done <- limit.Await(bounded(t), us.s, 2, false) }()
		time.Sleep(time.Second)
		require.Empty(t, us.nodes())
		most.Store(2)
		close(changed)
		require.NoError(t, within(t, time.Second, done, "it waits on"))
	})
}
