package election_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// A loop is one over an iterator, on a goroutine of its own.
type loop[T any] struct {
	seen chan T
	err  chan error // what was yielded last, if it was one
	done chan struct{}
	stop context.CancelFunc
}

// loopOver begins a loop, which ends behind n values if n is not 0.
func loopOver[T any](
	t *testing.T, over func(ctx context.Context) iter.Seq2[T, error], n int,
) *loop[T] {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context()) //nolint:gosec // see stop
	l := &loop[T]{
		seen: make(chan T, 100), err: make(chan error, 1), done: make(chan struct{}),
		stop: stop,
	}
	go func() {
		defer close(l.done)
		for v, err := range over(ctx) {
			if err != nil {
				l.err <- err
				continue
			}
			l.seen <- v
			if n--; n == 0 {
				break
			}
		}
	}()
	return l
}

// next returns what was yielded, which must be all by now.
func (l *loop[T]) next(t *testing.T) T {
	t.Helper()
	v := locktest.Within(t, l.seen, "nothing is yielded")
	time.Sleep(locktest.Settle)
	require.Empty(t, l.seen)
	return v
}

// ends waits for the end of the loop, which comes without an error.
func (l *loop[T]) ends(t *testing.T) {
	t.Helper()
	locktest.Within(t, l.done, "the loop does not end")
	require.Empty(t, l.seen)
	require.Empty(t, l.err)
}

// Candidates are told apart by their znodes: those of one process, or of one program on
// two hosts, may have equal data, and those of one connection have one session.
func TestCandidatesOfEqualData(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		same := recipes.WithData([]byte("same"))
		latches := []*recipes.LeaderLatch{
			newLatch(t, b.Ours, same), newLatch(t, b.Ours, same),
			newLatch(t, b.Other, same),
		}
		var waits []*awaiting
		for _, l := range latches {
			waits = append(waits, await(t, l))
		}
		leaders := loopOver(t, newLatch(t, b.Other, same).Leaders, 0)
		for i, l := range latches {
			term := waits[i].leads(t)
			require.Equal(t, term.Path(), leaders.next(t).Node)
			leader, led, err := l.Leader(t.Context())
			require.NoError(t, err)
			require.True(t, led)
			require.Equal(t, term.Path(), leader.Node)
			all, err := l.Participants(t.Context())
			require.NoError(t, err)
			require.Len(t, all, len(latches)-i)
			for j, p := range all {
				require.Equal(t, j == 0, p.Holding)
				require.Equal(t, j == 0, p.Node == term.Path())
				require.Equal(t, j == 0, latches[i+j].HasLeadership())
			}
			require.NoError(t, l.Close(t.Context()))
		}
		require.Equal(t, recipes.Participant{}, leaders.next(t))
		leaders.stop()
		leaders.ends(t)
	})
}

// etcd#18163: Observe never says that there is no leader. No znode is made for who looks,
// not even the directory.
func TestLeadersTellsThatNobodyLeads(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		latch := func(conn recipes.Conn, name string) *recipes.LeaderLatch {
			return locktest.NewLatch(
				t, conn, "/apps/reports/leader", recipes.WithData([]byte(name)),
			)
		}
		one, two := latch(b.Ours, "one"), latch(b.Other, "two")
		before := b.Cluster.Znodes()
		leaders := loopOver(t, two.Leaders, 0)
		require.Equal(t, recipes.Participant{}, leaders.next(t))
		require.Equal(t, before, b.Cluster.Znodes())
		_, err := b.Other.Create("/apps", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		time.Sleep(locktest.Settle)
		require.Empty(t, leaders.seen)

		first := await(t, one).leads(t)
		got := leaders.next(t)
		require.Equal(t, first.Path(), got.Node)
		require.Equal(t, "latch", got.Kind)
		require.Equal(t, "one", string(got.Data))
		require.Equal(t, b.Ours.SessionID(), got.Session)
		require.True(t, got.Holding)

		waiting := await(t, two)
		require.Empty(t, leaders.seen, "another candidate is no change")
		require.NoError(t, one.Close(t.Context()))
		waiting.leads(t)
		require.Equal(t, "two", string(leaders.next(t).Data))

		require.NoError(t, two.Close(t.Context()))
		require.Equal(t, recipes.Participant{}, leaders.next(t))
		require.NoError(t, b.Other.Delete("/apps/reports/leader", -1))
		require.NoError(t, b.Other.Delete("/apps/reports", -1))
		time.Sleep(locktest.Settle)
		require.Empty(t, leaders.seen)
		one = latch(b.Ours, "one")
		await(t, one).leads(t)
		require.Equal(t, "one", string(leaders.next(t).Data))
		leaders.stop()
		leaders.ends(t)
		require.NoError(t, one.Close(t.Context()))
	})
}

// camel#25529: what a process remembers of the leader is not what is.
func TestTheLeaderIsReadFromItsZnode(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := locktest.StartCampaign(t, b.Ours, recipes.WithData([]byte("ours")))
		now := c.Leads()
		looking := locktest.NewSelector(t, b.Other, recipes.WithData([]byte("other")))
		leaders := loopOver(t, looking.Leaders, 0)
		require.Equal(t, "ours", string(leaders.next(t).Data))
		for _, s := range []*recipes.LeaderSelector{looking, c.Selector} {
			leader, ok, err := s.Leader(t.Context())
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, "ours", string(leader.Data))
			require.Equal(t, now.Hold.Path(), leader.Node)
		}
		_, err := b.Other.Set(now.Hold.Path(), []byte("moved"), -1)
		require.NoError(t, err)
		leader, _, err := c.Selector.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "moved", string(leader.Data))
		require.Equal(t, "moved", string(leaders.next(t).Data))

		waiter := locktest.StartCampaign(t, b.Other, recipes.WithData([]byte("other")))
		all, err := looking.Participants(t.Context())
		require.NoError(t, err)
		require.Equal(t, "lock moved true, lock other false", fmt.Sprintf(
			"%s %s %v, %s %s %v", all[0].Kind, all[0].Data, all[0].Holding,
			all[1].Kind, all[1].Data, all[1].Holding,
		))
		waiter.Leaves()
		now.End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, c.Ended())
		_, ok, err := looking.Leader(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
		require.Empty(t, leaders.next(t).Node)
		leaders.stop()
		leaders.ends(t)
	})
}

// Of a leader's data only the beginning is kept: that it is longer now is told as well.
func TestLeadersTellsOfALongerEndOfTheData(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		data := func(size int) []byte { return bytes.Repeat([]byte("x"), size) }
		latch := locktest.NewLatch(
			t, b.Other, "/election", recipes.WithData(data(5000)))
		term, err := latch.Await(t.Context())
		require.NoError(t, err)
		l := loopOver(t, locktest.NewLatch(t, b.Ours, "/election").Leaders, 0)
		require.Equal(t, 5000, l.next(t).DataSize)
		_, err = b.Other.Set(term.Path(), data(6000), -1)
		require.NoError(t, err)
		require.Equal(t, 6000, l.next(t).DataSize)
		l.stop()
		l.ends(t)
	})
}

// A leader whose znode this session may not read is told of all the same.
func TestLeadersTellsOfOneWhoMayNotBeRead(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		_, err := b.Other.Create("/election", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		hidden := recipes.WithACL(zk.WorldACL(zk.PermAll &^ zk.PermRead))
		first := locktest.NewLatch(t, b.Other, "/election", hidden)
		term, err := first.Await(t.Context())
		require.NoError(t, err)
		l := loopOver(t, locktest.NewLatch(t, b.Ours, "/election").Leaders, 0)
		require.Equal(t, term.Path(), l.next(t).Node)
		require.NoError(t, first.Close(t.Context()))
		require.Empty(t, l.next(t).Node)
		second := locktest.NewLatch(t, b.Other, "/election")
		term, err = second.Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, term.Path(), l.next(t).Node)
		l.stop()
		l.ends(t)
	})
}

func TestLeadersOutlastOutagesAndSessions(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other := newLatch(t, b.Other, recipes.WithData([]byte("one")))
		first := await(t, other).leads(t)
		leaders := loopOver(t, newLatch(t, b.Ours).Leaders, 0)
		require.Equal(t, first.Path(), leaders.next(t).Node)
		session := b.Ours.SessionID()

		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(2 * time.Second)
		b.Cluster.Link("ours").Heal()
		time.Sleep(10 * time.Second)
		require.Empty(t, leaders.seen, "nothing has changed")

		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(time.Minute)
		b.Lose(t, first)
		b.Cluster.Link("ours").Heal()
		require.Empty(t, leaders.next(t).Node)
		require.NotEqual(t, session, b.Ours.SessionID())
		second := await(t, other).leads(t)
		require.Equal(t, second.Path(), leaders.next(t).Node)

		for _, s := range b.Cluster.Servers() {
			s.Stop()
		}
		time.Sleep(time.Minute)
		for _, s := range b.Cluster.Servers() {
			s.Start()
		}
		time.Sleep(time.Minute)
		require.ErrorIs(t, other.Close(t.Context()), recipes.ErrLockLost)
		require.Empty(t, leaders.next(t).Node)
		leaders.stop()
		leaders.ends(t)
	})
}

func TestALoopEndsWithWhatNoRetryMends(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		leaders := loopOver(t, newLatch(t, b.Ours).Leaders, 0)
		queue := loopOver(t, b.Lock.WatchParticipants, 0)
		leaders.next(t)
		require.Empty(t, queue.next(t))
		b.Ours.Close()
		require.ErrorIs(t, locktest.Within(t, leaders.err, "no error"),
			zk.ErrConnectionClosed)
		require.ErrorIs(t, locktest.Within(t, queue.err, "no error"),
			zk.ErrConnectionClosed)
		<-leaders.done
		<-queue.done

		_, err := b.Other.Create(
			"/election", nil, 0, zk.DigestACL(zk.PermAll, "nobody", "knows"),
		)
		require.NoError(t, err)
		latch := newLatch(t, b.Other)
		leaders = loopOver(t, latch.Leaders, 0)
		err = locktest.Within(t, leaders.err, "no error")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, "leaders of /election")
		<-leaders.done
		_, _, err = latch.Leader(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth)

		done, cancel := context.WithCancel(t.Context())
		cancel()
		for leader, err := range latch.Leaders(done) {
			t.Error("ctx was done", leader, err)
		}
	})
}

// Breaking out leaves no goroutine, which the bubble would tell, no znode, and no watch
// behind the next change.
func TestALoopThatIsLeftLeavesNothing(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		latch := newLatch(t, b.Other)
		term := await(t, latch).leads(t)
		looking := newLatch(t, b.Ours)
		lock := b.Mutex(t, b.Ours, "/election")
		before := b.Cluster.Znodes()
		watches := b.Cluster.Watches()
		for range 20 {
			loopOver(t, looking.Leaders, 1).next(t)
			loopOver(t, lock.WatchParticipants, 1).next(t)
			l := loopOver(t, looking.Leaders, 0)
			l.next(t)
			l.stop()
			l.ends(t)
		}
		require.Equal(t, before, b.Cluster.Znodes())
		require.LessOrEqual(t, b.Cluster.Watches(), watches+2)
		require.NoError(t, latch.Close(t.Context()))
		time.Sleep(locktest.Settle)
		require.Zero(t, b.Cluster.Watches(), term.Path())

		require.PanicsWithValue(t, "enough", func() {
			for leader, err := range looking.Leaders(t.Context()) {
				require.NoError(t, err)
				require.Empty(t, leader.Node)
				panic("enough")
			}
		})
		require.Len(t, loopOver(t, looking.Leaders, 1).next(t).Node, 0)
	})
}

// A conn that does something before it lists a directory with a watch.
type beforeChildrenW struct {
	recipes.Conn
	do func()
}

func (c *beforeChildrenW) ChildrenW(
	path string,
) ([]string, *zk.Stat, <-chan zk.Event, error) {
	c.do()
	return c.Conn.ChildrenW(path)
}

func (c *beforeChildrenW) Unwrap() recipes.Conn { return c.Conn }

// Where nobody led the directory is watched, which tells nothing of a leader's data: one
// who joined just before that is watched, too.
func TestALeaderWhoJoinsWhileNobodyIsSeenIsWatched(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other := newLatch(t, b.Other, recipes.WithData([]byte("one")))
		var term *recipes.Hold
		conn := &beforeChildrenW{b.Ours, func() {
			if term == nil {
				term = await(t, other).leads(t)
			}
		}}
		_, err := b.Other.Create("/election", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		leaders := loopOver(t, newLatch(t, conn).Leaders, 0)
		require.Equal(t, "one", string(leaders.next(t).Data))
		_, err = b.Other.Set(term.Path(), []byte("moved"), -1)
		require.NoError(t, err)
		time.Sleep(locktest.Settle)
		require.Len(t, leaders.seen, 1, "the change is not told")
		require.Equal(t, "moved", string(leaders.next(t).Data))
		leaders.stop()
		leaders.ends(t)
		require.NoError(t, other.Close(t.Context()))
	})
}

// The watch could not be set again after a reconnect, and what it waited for happened in
// between (docs/appendix/hazards.md, E17).
func TestLeadersLookForThemselvesAfterAReconnect(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path, other := zkserver.Path(t), locktest.SharedPeer(t)
		leader := locktest.NewLatch(
			t, other.Conn, path, recipes.WithSessionTimeout(other.Timeout),
		)
		_, err := leader.Await(t.Context())
		require.NoError(t, err)

		tap := wiretap.New(zkserver.Dial(t))
		client, err := locktest.Open(t.Context(), t, zkserver.Shared(t).Connect(),
			locktest.Lasting, recipes.WithDialer(tap.Dial))
		require.NoError(t, err)
		defer client.Close()
		looking := locktest.NewLatch(t, client, path)
		leaders := loopOver(t, looking.Leaders, 0)
		require.NotEmpty(t, locktest.Within(t, leaders.seen, "no leader").Node)

		tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			if p.Op == wiretap.SetWatches {
				return wiretap.Drop
			}
			return wiretap.Pass
		})
		release := make(chan struct{})
		dialled := tap.NthRequest(wiretap.Connect, 1, wiretap.Hold(release))
		tap.Cut()
		locktest.Within(t, dialled, "the client does not dial")
		require.NoError(t, leader.Close(t.Context()))
		close(release)
		require.Empty(t, locktest.Within(t, leaders.seen, "it relies on its watch").Node)
		leaders.stop()
		leaders.ends(t)
	})
}

func TestWatchParticipants(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		queue := loopOver(t, b.Lock.WatchParticipants, 0)
		require.Empty(t, queue.next(t))
		first := locktest.VisitLock(t, b.Lock)
		now := queue.next(t)
		require.Len(t, now, 1)
		require.Equal(t, first.Hold().Path(), now[0].Node)
		require.True(t, now[0].Holding)
		second := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
		now = queue.next(t)
		all, err := b.Lock.Participants(t.Context())
		require.NoError(t, err)
		require.Equal(t, all, now)
		require.Len(t, now, 2)
		now[1].Kind = "" // it is the caller's
		first.Leave()
		second.Entered()
		all, err = b.Lock.Participants(t.Context())
		require.NoError(t, err)
		now = queue.next(t)
		require.Equal(t, all, now)
		require.Equal(t, []bool{true}, []bool{now[0].Holding})

		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(time.Minute)
		second.Leave()
		b.Cluster.Link("ours").Heal()
		require.Empty(t, queue.next(t))
		queue.stop()
		queue.ends(t)
	})
}

// A conn that does something before it reads a znode.
type beforeGet struct {
	recipes.Conn
	do func(path string)
}

func (c *beforeGet) Get(path string) ([]byte, *zk.Stat, error) {
	c.do(path)
	return c.Conn.Get(path)
}

func (c *beforeGet) Unwrap() recipes.Conn { return c.Conn }

// A holder that leaves between the list and the read is not shown, and the one behind it
// waits for nobody: that is told.
func TestAHolderThatLeavesWhileTheQueueIsRead(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		first := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
		ahead := first.Entered().Path()
		second := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
		conn := &beforeGet{b.Ours, func(path string) {
			if path == ahead && second.Hold() == nil {
				first.Leave()
			}
		}}
		lock := locktest.NewMutex(t, conn, "/lock")
		queue := loopOver(t, lock.WatchParticipants, 0)
		time.Sleep(time.Second)
		var last []recipes.Participant
		for len(queue.seen) > 0 {
			last = <-queue.seen
		}
		require.Len(t, last, 1)
		require.Equal(t, second.Entered().Path(), last[0].Node)
		require.True(t, last[0].Holding, "it is said to wait")
		queue.stop()
		queue.ends(t)
		second.Leave()
	})
}

func TestWatchParticipantsOfAReadWriteLock(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		rw := locktest.ReadWriteLock(t, b.Ours)
		for _, over := range []func(context.Context) iter.Seq2[
			[]recipes.Participant, error,
		]{rw.ReadLock().WatchParticipants, rw.WriteLock().WatchParticipants} {
			queue := loopOver(t, over, 0)
			require.Empty(t, queue.next(t))
			reader := locktest.VisitLock(t, rw.ReadLock())
			queue.next(t)
			writer := locktest.VisitLock(t, rw.WriteLock())
			now := queue.next(t)
			require.Equal(t, "read", now[0].Kind)
			require.Equal(t, "write", now[1].Kind)
			require.Equal(t, []bool{true, false}, []bool{now[0].Holding, now[1].Holding})
			second := locktest.VisitLock(t, rw.ReadLock())
			require.False(t, queue.next(t)[2].Holding)
			reader.Leave()
			require.True(t, queue.next(t)[0].Holding)
			writer.Entered()
			writer.Leave()
			require.True(t, queue.next(t)[0].Holding)
			second.Entered()
			second.Leave()
			require.Empty(t, queue.next(t))
			queue.stop()
			queue.ends(t)
		}
	})
}

// Names without an id, as other programs make them, come again in a directory that is
// created again. The znodes are others, also where no list was ever without the name.
func TestNamesThatComeAgainAreOthers(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		join := func(dir string) (node string) {
			t.Helper()
			_, err := b.Other.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			node, err = b.Other.Create(dir+"/lock-", nil,
				zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			return node
		}
		selector := locktest.NewSelector(t, b.Ours)
		member, candidate := join("/lock"), join("/election")
		queue := loopOver(t, b.Lock.WatchParticipants, 0)
		leaders := loopOver(t, selector.Leaders, 0)
		queue.next(t)
		leaders.next(t)

		b.Cluster.Link("ours").Stall(zktest.Both)
		for _, path := range []string{member, "/lock", candidate, "/election"} {
			require.NoError(t, b.Other.Delete(path, -1))
		}
		time.Sleep(time.Second)
		require.Equal(t, member, join("/lock"))
		require.Equal(t, candidate, join("/election"))
		b.Cluster.Link("ours").Heal()

		all, err := b.Lock.Participants(t.Context())
		require.NoError(t, err)
		require.Equal(t, all, queue.next(t))
		leader, _, err := selector.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, leader, leaders.next(t))
		queue.stop()
		queue.ends(t)
		leaders.stop()
		leaders.ends(t)
	})
}

// Who joins and leaves behind the leader wakes nobody who waits for another leader.
func TestCostOfLeaders(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path := zkserver.Path(t)
		looking, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
		latch := func(p *locktest.Peer) *recipes.LeaderLatch {
			return locktest.NewLatch(
				t, p.Conn, path, recipes.WithSessionTimeout(p.Timeout))
		}
		leader, next := latch(other), latch(other)
		_, err := leader.Await(t.Context())
		require.NoError(t, err)
		leaders := loopOver(t, latch(looking).Leaders, 0)
		locktest.Within(t, leaders.seen, "no leader")

		looking.Tap.Reset()
		ctx, cancel := context.WithCancel(t.Context())
		waiting := locktest.Start(func() error { _, err := next.Await(ctx); return err })
		other.AwaitChildren(path, 2)
		cancel()
		require.ErrorIs(t, locktest.Within(t, waiting, "Await"), context.Canceled)
		looking.AwaitHeartbeat()
		require.Empty(t, looking.Asked(path))

		waiting = locktest.Start(func() error {
			_, err := next.Await(t.Context())
			return err
		})
		other.AwaitChildren(path, 2)
		looking.Tap.Reset()
		require.NoError(t, leader.Close(t.Context()))
		require.NoError(t, locktest.Within(t, waiting, "the next"))
		locktest.Within(t, leaders.seen, "no leader")
		require.Len(t, looking.Asked(path), 3, "a list, a watch and a read")
		require.NoError(t, next.Close(t.Context()))
		leaders.stop()
		<-leaders.done
	})
}
