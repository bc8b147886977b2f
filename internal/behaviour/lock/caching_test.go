package lock_test

import (
	"context"
	"slices"
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

func TestAPlaceIsKeptForAsLongAsItMayBeIdle(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		const idle = 10 * time.Second
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(idle, 1))
		first := locktest.Use(t, lock)
		require.NoError(t, first.Err(), "a release is no loss")
		time.Sleep(idle / 2)
		second := locktest.Use(t, lock)
		require.Equal(t, first.Path(), second.Path())
		require.Equal(t, first.FencingToken(), second.FencingToken())
		require.NotSame(t, first, second)
		time.Sleep(idle - 2*locktest.Settle)
		require.Equal(t, []string{first.Path()}, locktest.Znodes(b))
		all, err := lock.Participants(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1, "it is in the queue while it is idle")
		require.False(t, lock.IsAcquiredInThisProcess())
		time.Sleep(2 * locktest.Settle)
		require.Empty(t, locktest.Znodes(b))

		third := locktest.Use(t, lock)
		require.NotEqual(t, first.Path(), third.Path())
		require.Greater(t, third.FencingToken(), first.FencingToken())
		require.NoError(t, first.Err())
	})
}

func TestAnIdlePlaceIsGivenUpToWhoJoinsBehind(t *testing.T) {
	for name, ours := range map[string]bool{
		"in another process": false, "in this process, without the option": true,
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 1))
			kept := locktest.Use(t, lock)
			require.Len(t, locktest.Znodes(b), 1)
			rival := b.Other
			if ours {
				rival = b.Ours
			}
			other := locktest.VisitLock(t, b.Mutex(t, rival, "/lock"))
			require.True(t, other.Holds(), "it is given up at once")
			require.Greater(t, other.Entered().FencingToken(), kept.FencingToken())
			require.NoError(t, kept.Err(), "it was released before")
			other.Leave()
			require.Empty(t, locktest.Znodes(b))
		})
	}
}

// While others wait the place is passed on passes times, in the order in which its owners
// came; those for whom that is not enough queue behind the others.
func TestPassesAreBoundedWhileOthersWait(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		const passes = 3
		lock := b.Mutex(
			t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, passes),
		)
		holder := locktest.VisitLock(t, lock)
		first := holder.Entered()
		var waiting []*locktest.Visit
		for range 2 * passes {
			waiting = append(waiting, locktest.VisitLock(t, lock))
		}
		require.Len(t, locktest.Znodes(b), 1, "one znode for all")
		other := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
		require.Len(t, locktest.Znodes(b), 3, "and a second for those who come too late")
		holder.Leave()
		for i := range passes {
			require.True(t, waiting[i].Holds(), "number %d", i)
			require.False(t, waiting[i+1].Holds())
			require.False(t, other.Holds())
			hold := waiting[i].Entered()
			require.Equal(t, first.Path(), hold.Path())
			waiting[i].Leave()
		}
		require.True(t, other.Holds(), "the passes are used up")
		require.False(t, waiting[passes].Holds())
		other.Leave()
		for i := passes; i < len(waiting); i++ {
			require.True(t, waiting[i].Holds(), "number %d", i)
			hold := waiting[i].Entered()
			require.NotEqual(t, first.Path(), hold.Path())
			require.Greater(t, hold.FencingToken(), first.FencingToken())
			waiting[i].Leave()
		}
	})
}

func TestPassesAreNotCountedWhileNobodyElseWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(0, 1))
		holder := locktest.VisitLock(t, lock)
		node := holder.Entered().Path()
		var waiting []*locktest.Visit
		for range 20 {
			waiting = append(waiting, locktest.VisitLock(t, lock))
		}
		for _, next := range waiting {
			holder.Leave()
			require.True(t, next.Holds())
			require.Equal(t, node, next.Entered().Path())
			holder = next
		}
		require.Len(t, locktest.Znodes(b), 1)
		holder.Leave()
		require.Empty(t, locktest.Znodes(b), "an idle time of 0 keeps nothing")
	})
}

// With nobody here who waits, a place in use goes to the others, however many passes are
// left.
func TestAPlaceInUseIsGivenUpWhereNobodyHereWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 100))
		holder := locktest.VisitLock(t, lock)
		holder.Entered()
		other := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
		require.False(t, other.Holds())
		holder.Leave()
		require.True(t, other.Holds())
		other.Leave()
	})
}

func TestReadersShareAPlaceUntilAWriterWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		caching := recipes.WithCaching(locktest.LongIdle, 5)
		ours := locktest.ReadWriteLock(t, b.Ours, caching)
		other := locktest.ReadWriteLock(t, b.Other)
		first := locktest.VisitLock(t, ours.ReadLock())
		again := locktest.ReadWriteLock(t, b.Ours, caching)
		second := locktest.VisitLock(t, again.ReadLock())
		stranger := locktest.VisitLock(t, other.ReadLock())
		third := locktest.VisitLock(t, ours.ReadLock())
		node := first.Entered().Path()
		require.Equal(t, node, second.Entered().Path())
		require.True(t, stranger.Holds(), "readers do not wait for readers")
		require.Equal(t, node, third.Entered().Path(), "nobody waits for it")
		third.Leave()
		stranger.Leave()

		writer := locktest.VisitLock(t, other.WriteLock())
		late := locktest.VisitLock(t, ours.ReadLock())
		require.False(t, writer.Holds())
		require.False(t, late.Holds(), "a reader is let in although a writer waits")
		ok, err := ours.ReadLock().AcquireTimeout(locktest.Owner(t), 0)
		require.NoError(t, err)
		require.False(t, ok)
		first.Leave()
		require.False(t, writer.Holds())
		second.Leave()
		require.True(t, writer.Holds())
		require.False(t, late.Holds())
		writer.Leave()
		require.NotEqual(t, node, late.Entered().Path())
		late.Leave()
		require.Len(t, locktest.Znodes(b), 1, "the new place is kept")
	})
}

// A reader that came through a place which a writer has closed does not come back into it
// once the writer has given up.
func TestAClosedPlaceOfReadersIsLeftToThoseInIt(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours := locktest.ReadWriteLock(
			t, b.Ours, recipes.WithCaching(locktest.LongIdle, 5),
		)
		first := locktest.VisitLock(t, ours.ReadLock())
		node := first.Entered().Path()
		writing, giveUp := context.WithCancel(locktest.Owner(t))
		writer := locktest.ReadWriteLock(t, b.Other).WriteLock()
		waiting := locktest.Start(func() error { return writer.Acquire(writing) })
		time.Sleep(locktest.Settle)
		late := locktest.VisitLock(t, ours.ReadLock())
		require.False(t, late.Holds())
		giveUp()
		require.ErrorIs(t, <-waiting, context.Canceled)
		require.NotEqual(t, node, late.Entered().Path())
		require.True(t, first.Holds())
		first.Leave()
		require.Equal(t, []string{late.Hold().Path()}, locktest.Znodes(b))
		late.Leave()
	})
}

// What stands beside a write lock's znode is its owner's: nobody else may come by the
// same znode.
func TestNoPassUnderAReadLock(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours := locktest.ReadWriteLock(
			t, b.Ours, recipes.WithCaching(locktest.LongIdle, 5),
		)
		writer := locktest.VisitLock(t, ours.WriteLock())
		node := writer.Entered().Path()
		next := locktest.VisitLock(t, ours.WriteLock())
		require.NoError(t, ours.ReadLock().Acquire(writer.Ctx))
		require.Equal(t, writer.Hold().FencingToken(),
			ours.ReadLock().Hold(writer.Ctx).FencingToken())
		writer.Leave()
		require.False(t, next.Holds(), "a writer gets in beside the reader")
		require.NoError(t, ours.ReadLock().Release(writer.Ctx))
		time.Sleep(locktest.Settle)
		require.NotEqual(t, node, next.Entered().Path())
		next.Leave()
	})
}

// Of many who wait for one place, anyone may leave; it is given up with the last.
func TestWhoGivesUpLeavesThePlaceToTheOthers(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		held := locktest.VisitLock(t, b.Lock)
		other := b.Mutex(t, b.Other, "/lock", recipes.WithCaching(locktest.LongIdle, 5))
		var waiting []<-chan error
		var giveUp []context.CancelFunc
		for range 3 {
			ctx, cancel := context.WithCancel(locktest.Owner(t))
			giveUp = append(giveUp, cancel)
			waiting = append(waiting, locktest.Start(func() error {
				if err := other.Acquire(ctx); err != nil {
					return err
				}
				return other.Release(ctx)
			}))
			time.Sleep(locktest.Settle)
		}
		before := locktest.Znodes(b)
		require.Len(t, before, 2)
		for i := range 2 {
			began := time.Now()
			giveUp[i]()
			err := <-waiting[i]
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, " ahead, behind /lock/_c_")
			require.Less(t, time.Since(began), locktest.Grace)
			time.Sleep(locktest.Settle)
			require.Equal(t, before, locktest.Znodes(b))
		}
		giveUp[2]()
		require.ErrorIs(t, <-waiting[2], context.Canceled)
		require.Len(t, locktest.Znodes(b), 1, "nothing is left")
		held.Leave()
		locktest.Use(t, other)
	})
}

// A try does not wait for another owner of this process, and asks nothing to know that.
func TestATryAtAPlaceInUse(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5))
		ctx := locktest.Owner(t)
		ok, err := lock.AcquireTimeout(ctx, 0)
		require.NoError(t, err)
		require.True(t, ok, "of a free lock, which has no place yet")
		began := time.Now()
		ok, err = lock.AcquireTimeout(locktest.Owner(t), 0)
		require.NoError(t, err)
		require.False(t, ok)
		require.Zero(t, time.Since(began))
		err = recipes.Do(
			locktest.Owner(t), lock, locktest.Nothing, recipes.WaitAtMost(time.Second))
		require.ErrorIs(t, err, recipes.ErrBusy)
		require.ErrorContains(t, err, "1 ahead, behind "+lock.LockPath(ctx)+
			", of this process")
		require.NoError(t, lock.Release(ctx))
		ok, err = lock.AcquireTimeout(ctx, 0)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, lock.Release(ctx))
	})
}

// What the last list has shown says nothing of a lock by now, seconds into an outage.
func TestATryAtAPlaceInAnOutage(t *testing.T) {
	for name, acquire := range map[string]func(
		t *testing.T, b *locktest.Bubble, ours recipes.InterProcessLock,
	) (free func()){
		"behind another process": func(
			t *testing.T, b *locktest.Bubble, ours recipes.InterProcessLock,
		) func() {
			t.Helper()
			theirs := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
			theirs.Entered()
			waiting := locktest.VisitLock(t, ours)
			return func() {
				theirs.Leave()
				waiting.Entered()
				waiting.Leave()
			}
		},
		"behind this process": func(
			t *testing.T, _ *locktest.Bubble, ours recipes.InterProcessLock,
		) func() {
			t.Helper()
			holds := locktest.VisitLock(t, ours)
			holds.Entered()
			return holds.Leave
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5))
			free := acquire(t, b, lock)
			b.Cluster.Link("ours").Cut()
			time.Sleep(3 * time.Second)
			for _, d := range []time.Duration{0, 100 * time.Millisecond} {
				ok, err := lock.AcquireTimeout(locktest.Owner(t), d)
				require.ErrorIs(t, err, recipes.ErrUnavailable, d)
				require.ErrorContains(t, err, "ahead, behind /lock/", d)
				require.False(t, ok)
			}
			b.Cluster.Link("ours").Heal()
			free()
		})
	}
}

// A place that was lost while it was idle is nobody's, from the moment at which another
// process can have the lock.
func TestALostPlaceIsNotUsed(t *testing.T) {
	for name, lose := range map[string]func(*locktest.Bubble){
		"the session was ended": func(b *locktest.Bubble) {
			b.Cluster.ExpireSession(b.Ours.SessionID())
		},
		"the znode was deleted": func(b *locktest.Bubble) {
			_ = b.Other.Delete(locktest.Znodes(b)[0], -1)
		},
		"out of touch": func(b *locktest.Bubble) {
			b.Cluster.Link("ours").Stall(zktest.Both)
			time.Sleep(9600 * time.Millisecond) // of 10 s
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5))
			kept := locktest.Use(t, lock)
			time.Sleep(5 * time.Second)
			lose(b)
			time.Sleep(locktest.Settle)
			ctx := locktest.Owner(t)
			waiting := locktest.Start(func() error { return lock.Acquire(ctx) })
			time.Sleep(locktest.Settle)
			if h := lock.Hold(ctx); h != nil {
				require.NotEqual(t, kept.Path(), h.Path(), "it is lost")
			}
			b.Cluster.Link("ours").Heal()
			require.NoError(t, <-waiting)
			require.Greater(t, lock.Hold(ctx).FencingToken(), kept.FencingToken())
			require.NoError(t, kept.Err(), "it was released before")
			require.NoError(t, lock.Release(ctx))
		})
	}
}

// An impatientConn can be told that its session timeout has become shorter: the loss
// clock runs out at once, and nobody has looked yet, as in a process that was stopped.
type impatientConn struct {
	*recipes.Client
	timeout atomic.Int64 // 0: the client's
}

func (c *impatientConn) SessionTimeout() time.Duration {
	if d := c.timeout.Load(); d > 0 {
		return time.Duration(d)
	}
	return c.Client.SessionTimeout()
}

// Whoever finds a place that is kept asks the clock before it uses it.
func TestAPlaceWhoseClockHasRunOutIsNotUsed(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		conn := &impatientConn{Client: b.Ours}
		lock := locktest.NewMutex(
			t, conn, "/lock", recipes.WithCaching(locktest.LongIdle, 5))
		kept := locktest.Use(t, lock)
		time.Sleep(time.Minute)
		ctx := locktest.Owner(t)
		conn.timeout.Store(int64(time.Second / 2))
		acquired := locktest.Start(func() error { return lock.Acquire(ctx) })
		synctest.Wait() // no time has passed
		conn.timeout.Store(0)
		require.NoError(t, <-acquired)
		require.NotEqual(t, kept.Path(), lock.Hold(ctx).Path())

		time.Sleep(time.Minute)
		conn.timeout.Store(int64(time.Second / 2))
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
		conn.timeout.Store(0)
	})
}

// The holder is told, those who came before it are not, and those who wait queue anew.
func TestALossIsTheHoldersAlone(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var told locktest.Recorder
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5),
			recipes.WithObserver(told.Observe))
		former := locktest.Use(t, lock)
		holder := locktest.VisitLock(t, lock)
		hold := holder.Entered()
		next := locktest.VisitLock(t, lock)
		b.Lose(t, hold)
		time.Sleep(locktest.Settle)
		require.NoError(t, former.Err())
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		require.False(t, lock.IsOwned(holder.Ctx))
		require.Greater(t, next.Entered().FencingToken(), hold.FencingToken())
		require.NoError(t, next.Hold().Err())
		require.ErrorIs(t, lock.Release(holder.Ctx), recipes.ErrLockLost)
		next.Leave()
		lost := slices.DeleteFunc(told.Kinds(), func(k recipes.EventKind) bool {
			return k != recipes.EventLost
		})
		require.Len(t, lost, 1)
	})
}

// Two events for a use of a place that is found, and none of them tells of a queue.
func TestEventsOfAKeptPlace(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var told locktest.Recorder
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5),
			recipes.WithObserver(told.Observe))
		for i := range 3 {
			locktest.Use(t, lock)
			if i > 0 {
				require.Equal(t, []recipes.EventKind{
					recipes.EventAcquired, recipes.EventReleased,
				}, told.Kinds())
			} else {
				require.Equal(t, []recipes.EventKind{
					recipes.EventQueued, recipes.EventAcquired, recipes.EventReleased,
				}, told.Kinds())
			}
			told.Forget()
		}
		holder := locktest.VisitLock(t, lock)
		told.Forget()
		next := locktest.VisitLock(t, lock)
		queued := told.Await(t, recipes.EventQueued)
		require.Equal(t, 1, queued.Ahead)
		require.Equal(t, holder.Entered().Path(), queued.Node)
		holder.Leave()
		next.Entered()
		next.Leave()
	})
}

// Somebody who asks for the lock back gets it, whether anybody listens or not.
func TestAPlaceThatIsAskedBackIsGivenUp(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5))
		idle := locktest.Use(t, lock)
		require.NoError(t, recipes.AttemptRevoke(t.Context(), b.Other, idle.Path()))
		time.Sleep(locktest.Settle)
		require.Empty(t, locktest.Znodes(b), "one that nobody uses, at once")

		asked := locktest.NewAsked()
		lock.MakeRevocable(asked.Listen)
		holder := locktest.VisitLock(t, lock)
		hold := holder.Entered()
		next := locktest.VisitLock(t, lock)
		require.NoError(t, recipes.AttemptRevoke(t.Context(), b.Other, hold.Path()))
		time.Sleep(locktest.Settle)
		require.Equal(t, 1, asked.Count(), "of the holder, and not of those who wait")
		require.NoError(t, hold.Err())
		holder.Leave()
		require.NotEqual(t, hold.Path(), next.Entered().Path(), "it is passed on")
		next.Leave()
	})
}

func TestAnOwnerWhoWaitsForAPlaceIsAskedToGiveUp(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		held := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5))
		asked := locktest.NewAsked()
		lock.MakeRevocable(asked.Listen)
		waiting := locktest.VisitLock(t, lock)
		nodes, err := lock.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Len(t, nodes, 2)
		require.NoError(t, recipes.AttemptRevoke(t.Context(), b.Other, nodes[1]))
		time.Sleep(locktest.Settle)
		require.Equal(t, 1, asked.Count())
		held.Leave()
		waiting.Entered()
		waiting.Leave()
		require.Empty(t, locktest.Znodes(b), "what was asked back is not kept")
	})
}

// Hold.Multi is judged by the hold, and not by the znode, which outlasts it.
func TestAReleasedHoldOfAKeptPlaceGuardsNothing(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5))
		_, err := b.Ours.Create("/config", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		former := locktest.Use(t, lock)
		holder := locktest.VisitLock(t, lock)
		hold := holder.Entered()
		require.Equal(t, former.Path(), hold.Path())
		_, err = former.Multi(locktest.SetConfig())
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		_, err = hold.Multi(locktest.SetConfig())
		require.NoError(t, err)
		holder.Leave()
		require.Len(
			t, locktest.Znodes(b), 1, "a transaction that was answered is no reason",
		)
		_, err = hold.Multi(locktest.SetConfig())
		require.ErrorIs(t, err, recipes.ErrNotOwner)
	})
}

// A transaction that is under way at the release can still be done while its znode is
// there. So the next owner waits until that has gone.
func TestNoPassUnderATransactionThatIsUnderWay(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		conn := &locktest.SlowMultiConn{
			Client: b.Ours, Released: make(chan struct{}), Deletes: make(chan struct{}),
		}
		lock := locktest.NewMutex(t, conn, "/lock",
			recipes.WithCaching(locktest.LongIdle, 5))
		_, err := b.Ours.Create("/config", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		holder := locktest.VisitLock(t, lock)
		hold := holder.Entered()
		next := locktest.VisitLock(t, lock)
		written := locktest.Start(func() error {
			_, err := hold.Multi(locktest.SetConfig())
			return err
		})
		time.Sleep(locktest.Settle)
		released := locktest.Start(func() error { return lock.Release(holder.Ctx) })
		time.Sleep(locktest.Settle)
		require.False(t, next.Holds(), "it can still be done")
		close(conn.Released)
		require.NoError(t, <-written, "the znode is still there")
		time.Sleep(locktest.Settle)
		require.False(t, next.Holds())
		close(conn.Deletes)
		require.NoError(t, <-released)
		require.NotEqual(t, hold.Path(), next.Entered().Path())
		next.Leave()
	})
}

// The place is that of the connection and the path: it follows the settings of the value
// for which it was made.
func TestValuesShareAPlace(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		long := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5),
			recipes.WithData([]byte("long")))
		short := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(time.Second, 1))
		first := locktest.Use(t, long)
		require.Equal(t, first.Path(), locktest.Use(t, short).Path())
		time.Sleep(locktest.LongIdle / 2)
		require.Equal(t, first.Path(), locktest.Use(t, short).Path())
		data, _, err := b.Ours.Get(first.Path())
		require.NoError(t, err)
		require.Equal(t, "long", string(data))
	})
}

// Values that set another margin, or another longest hold, have an entry of their own,
// and queue behind one another as two processes do. A margin of one entry could not be
// that of each of its owners.
func TestValuesWithOtherBoundsDoNotShareAPlace(t *testing.T) {
	for name, other := range map[string]recipes.Option{
		"a margin": recipes.WithLossMargin(time.Second),
		"a bound":  recipes.WithMaxHold(time.Hour),
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			caching := recipes.WithCaching(locktest.LongIdle, 5)
			plain := b.Mutex(t, b.Ours, "/lock", caching)
			bounded := b.Mutex(t, b.Ours, "/lock", caching, other)
			same := b.Mutex(t, b.Ours, "/lock",
				recipes.WithCaching(time.Second, 1), other)
			first := locktest.Use(t, plain)
			second := locktest.Use(t, bounded)
			require.NotEqual(t, first.Path(), second.Path())
			require.Equal(t, second.Path(), locktest.Use(t, same).Path())
			held := locktest.VisitLock(t, bounded)
			next := locktest.VisitLock(t, plain)
			require.False(t, next.Holds())
			held.Leave()
			next.Entered()
			next.Leave()
		})
	}
}

func TestClosingAClientGivesItsPlacesUp(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(locktest.LongIdle, 5))
		locktest.Use(t, lock)
		held := b.Mutex(t, b.Ours, "/held", recipes.WithCaching(locktest.LongIdle, 5))
		hold := locktest.VisitLock(t, held).Entered()
		waiting := locktest.Start(func() error { return held.Acquire(t.Context()) })
		time.Sleep(locktest.Settle)
		b.Ours.Close()
		synctest.Wait()
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		require.ErrorIs(t, <-waiting, zk.ErrConnectionClosed)
		require.ErrorIs(t, lock.Acquire(t.Context()), zk.ErrConnectionClosed)
		require.Empty(t, locktest.Znodes(b))
	})
}

func TestWithCachingIsRefused(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		for says, opt := range map[string]recipes.Option{
			"WithCaching: idle: -1s is negative":    recipes.WithCaching(-time.Second, 1),
			"WithCaching: passes: 0 is less than 1": recipes.WithCaching(time.Second, 0),
		} {
			_, err := recipes.NewInterProcessMutex(b.Ours, "/lock", opt)
			require.ErrorContains(t, err, says)
		}
		fine := recipes.WithCaching(0, 1)
		_, err := recipes.NewInterProcessSemaphoreV2(b.Ours, "/lock", 1, fine)
		require.ErrorContains(t, err, "WithCaching: semaphores do not cache")
		_, err = recipes.NewInterProcessSemaphoreMutex(b.Ours, "/lock", fine)
		require.ErrorContains(t, err, "WithCaching: semaphores do not cache")
	})
}

// Readers whose place lets in no more do not stand in the way of others: a try is told
// by who is ahead of the next place.
func TestATryBesideAPlaceThatLetsInNoMore(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *locktest.Bubble, held string){
		"a writer has given up": func(t *testing.T, b *locktest.Bubble, _ string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(locktest.Owner(t), time.Second)
			defer cancel()
			writer := locktest.ReadWriteLock(t, b.Other).WriteLock()
			require.ErrorIs(t, writer.Acquire(ctx), context.DeadlineExceeded)
		},
		"its data was changed": func(t *testing.T, b *locktest.Bubble, held string) {
			t.Helper()
			_, err := b.Other.Set(held, []byte("x"), -1)
			require.NoError(t, err)
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			lock := locktest.ReadWriteLock(
				t, b.Ours, recipes.WithCaching(locktest.LongIdle, 5),
			).ReadLock()
			first := locktest.VisitLock(t, lock)
			hold := first.Entered()
			time.Sleep(time.Minute)
			end(t, b, hold.Path())
			time.Sleep(time.Minute)
			ctx := locktest.Owner(t)
			ok, err := lock.AcquireTimeout(ctx, 0)
			require.NoError(t, err)
			require.True(t, ok, "nobody but a reader is there")
			require.NoError(t, lock.Release(ctx))
			first.Leave()
		})
	}
}
