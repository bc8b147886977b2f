package recipes_test

import (
	"context"
	"slices"
	"strings"
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

// longIdle is for places that are given up for another reason.
const longIdle = time.Hour

// settle is enough, in virtual time, for all that is told and answered by then.
const settle = 100 * time.Millisecond

// A visit is one owner's use of a lock, from the call of Acquire to that of Release.
type visit struct {
	t    *testing.T
	ctx  context.Context
	lock recipes.InterProcessLock
	done <-chan error
}

// visitLock begins to acquire lock, for a new owner.
func visitLock(t *testing.T, lock recipes.InterProcessLock) *visit {
	t.Helper()
	ctx, cancel := context.WithTimeout(locktest.Owner(t), 10*time.Minute)
	t.Cleanup(cancel)
	v := &visit{t: t, ctx: ctx, lock: lock}
	v.done = locktest.Start(func() error { return lock.Acquire(ctx) })
	time.Sleep(settle)
	return v
}

// hold is what the visitor has got by now, nil if nothing.
func (v *visit) hold() *recipes.Hold {
	return v.lock.(interface {
		Hold(ctx context.Context) *recipes.Hold
	}).Hold(v.ctx)
}

func (v *visit) holds() bool { return v.hold() != nil }

// entered waits for the lock.
func (v *visit) entered() *recipes.Hold {
	v.t.Helper()
	require.NoError(v.t, <-v.done)
	return v.hold()
}

func (v *visit) leave() {
	v.t.Helper()
	require.NoError(v.t, v.lock.Release(v.ctx))
	time.Sleep(settle)
}

// use acquires lock and releases it again.
func use(t *testing.T, lock recipes.InterProcessLock) *recipes.Hold {
	t.Helper()
	v := visitLock(t, lock)
	hold := v.entered()
	v.leave()
	return hold
}

// znodes returns those in the queue.
func znodes(b *locktest.Bubble) (nodes []string) {
	for _, node := range b.Cluster.Znodes() {
		if strings.Contains(node, "_c_") {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func cachedRW(
	t *testing.T, client recipes.Conn, opts ...recipes.Option,
) *recipes.InterProcessReadWriteLock {
	t.Helper()
	lock, err := recipes.NewInterProcessReadWriteLock(client, "/lock", opts...)
	require.NoError(t, err)
	return lock
}

func TestAPlaceIsKeptForAsLongAsItMayBeIdle(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		const idle = 10 * time.Second
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(idle, 1))
		first := use(t, lock)
		require.NoError(t, first.Err(), "a release is no loss")
		time.Sleep(idle / 2)
		second := use(t, lock)
		require.Equal(t, first.Path(), second.Path())
		require.Equal(t, first.FencingToken(), second.FencingToken())
		require.NotSame(t, first, second)
		time.Sleep(idle - 2*settle)
		require.Equal(t, []string{first.Path()}, znodes(b))
		all, err := lock.Participants(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1, "it is in the queue while it is idle")
		require.False(t, lock.IsAcquiredInThisProcess())
		time.Sleep(2 * settle)
		require.Empty(t, znodes(b))

		third := use(t, lock)
		require.NotEqual(t, first.Path(), third.Path())
		require.Greater(t, third.FencingToken(), first.FencingToken())
		require.NoError(t, first.Err())
	})
}

func TestAnIdlePlaceIsGivenUpToWhoJoinsBehind(t *testing.T) {
	for name, ours := range map[string]bool{
		"in another process": false, "in this process, without the option": true,
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 1))
				kept := use(t, lock)
				require.Len(t, znodes(b), 1)
				rival := b.Other
				if ours {
					rival = b.Ours
				}
				other := visitLock(t, b.Mutex(t, rival, "/lock"))
				require.True(t, other.holds(), "it is given up at once")
				require.Greater(t, other.entered().FencingToken(), kept.FencingToken())
				require.NoError(t, kept.Err(), "it was released before")
				other.leave()
				require.Empty(t, znodes(b))
			})
		})
	}
}

// While others wait the place is passed on passes times, in the order in which its owners
// came; those for whom that is not enough queue behind the others.
func TestPassesAreBoundedWhileOthersWait(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		const passes = 3
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, passes))
		holder := visitLock(t, lock)
		first := holder.entered()
		var waiting []*visit
		for range 2 * passes {
			waiting = append(waiting, visitLock(t, lock))
		}
		require.Len(t, znodes(b), 1, "one znode for all")
		other := visitLock(t, b.Mutex(t, b.Other, "/lock"))
		require.Len(t, znodes(b), 3, "and a second for those who come too late")
		holder.leave()
		for i := range passes {
			require.True(t, waiting[i].holds(), "number %d", i)
			require.False(t, waiting[i+1].holds())
			require.False(t, other.holds())
			hold := waiting[i].entered()
			require.Equal(t, first.Path(), hold.Path())
			waiting[i].leave()
		}
		require.True(t, other.holds(), "the passes are used up")
		require.False(t, waiting[passes].holds())
		other.leave()
		for i := passes; i < len(waiting); i++ {
			require.True(t, waiting[i].holds(), "number %d", i)
			hold := waiting[i].entered()
			require.NotEqual(t, first.Path(), hold.Path())
			require.Greater(t, hold.FencingToken(), first.FencingToken())
			waiting[i].leave()
		}
	})
}

func TestPassesAreNotCountedWhileNobodyElseWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(0, 1))
		holder := visitLock(t, lock)
		node := holder.entered().Path()
		var waiting []*visit
		for range 20 {
			waiting = append(waiting, visitLock(t, lock))
		}
		for _, next := range waiting {
			holder.leave()
			require.True(t, next.holds())
			require.Equal(t, node, next.entered().Path())
			holder = next
		}
		require.Len(t, znodes(b), 1)
		holder.leave()
		require.Empty(t, znodes(b), "an idle time of 0 keeps nothing")
	})
}

// With nobody here who waits, a place in use goes to the others, however many passes are
// left.
func TestAPlaceInUseIsGivenUpWhereNobodyHereWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 100))
		holder := visitLock(t, lock)
		holder.entered()
		other := visitLock(t, b.Mutex(t, b.Other, "/lock"))
		require.False(t, other.holds())
		holder.leave()
		require.True(t, other.holds())
		other.leave()
	})
}

func TestReadersShareAPlaceUntilAWriterWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		caching := recipes.WithCaching(longIdle, 5)
		ours, other := cachedRW(t, b.Ours, caching), cachedRW(t, b.Other)
		first := visitLock(t, ours.ReadLock())
		second := visitLock(t, cachedRW(t, b.Ours, caching).ReadLock())
		stranger := visitLock(t, other.ReadLock())
		third := visitLock(t, ours.ReadLock())
		node := first.entered().Path()
		require.Equal(t, node, second.entered().Path())
		require.True(t, stranger.holds(), "readers do not wait for readers")
		require.Equal(t, node, third.entered().Path(), "nobody waits for it")
		third.leave()
		stranger.leave()

		writer := visitLock(t, other.WriteLock())
		late := visitLock(t, ours.ReadLock())
		require.False(t, writer.holds())
		require.False(t, late.holds(), "a reader is let in although a writer waits")
		ok, err := ours.ReadLock().AcquireTimeout(locktest.Owner(t), 0)
		require.NoError(t, err)
		require.False(t, ok)
		first.leave()
		require.False(t, writer.holds())
		second.leave()
		require.True(t, writer.holds())
		require.False(t, late.holds())
		writer.leave()
		require.NotEqual(t, node, late.entered().Path())
		late.leave()
		require.Len(t, znodes(b), 1, "the new place is kept")
	})
}

// A reader that came through a place which a writer has closed does not come back into it
// once the writer has given up.
func TestAClosedPlaceOfReadersIsLeftToThoseInIt(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours := cachedRW(t, b.Ours, recipes.WithCaching(longIdle, 5))
		first := visitLock(t, ours.ReadLock())
		node := first.entered().Path()
		writing, giveUp := context.WithCancel(locktest.Owner(t))
		writer := cachedRW(t, b.Other).WriteLock()
		waiting := locktest.Start(func() error { return writer.Acquire(writing) })
		time.Sleep(settle)
		late := visitLock(t, ours.ReadLock())
		require.False(t, late.holds())
		giveUp()
		require.ErrorIs(t, <-waiting, context.Canceled)
		require.NotEqual(t, node, late.entered().Path())
		require.True(t, first.holds())
		first.leave()
		require.Equal(t, []string{late.hold().Path()}, znodes(b))
		late.leave()
	})
}

// What stands beside a write lock's znode is its owner's: nobody else may come by the
// same znode.
func TestNoPassUnderAReadLock(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours := cachedRW(t, b.Ours, recipes.WithCaching(longIdle, 5))
		writer := visitLock(t, ours.WriteLock())
		node := writer.entered().Path()
		next := visitLock(t, ours.WriteLock())
		require.NoError(t, ours.ReadLock().Acquire(writer.ctx))
		require.Equal(t, writer.hold().FencingToken(),
			ours.ReadLock().Hold(writer.ctx).FencingToken())
		writer.leave()
		require.False(t, next.holds(), "a writer gets in beside the reader")
		require.NoError(t, ours.ReadLock().Release(writer.ctx))
		time.Sleep(settle)
		require.NotEqual(t, node, next.entered().Path())
		next.leave()
	})
}

// Of many who wait for one place, anyone may leave; it is given up with the last.
func TestWhoGivesUpLeavesThePlaceToTheOthers(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		held := visitLock(t, b.Lock)
		other := b.Mutex(t, b.Other, "/lock", recipes.WithCaching(longIdle, 5))
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
			time.Sleep(settle)
		}
		before := znodes(b)
		require.Len(t, before, 2)
		for i := range 2 {
			began := time.Now()
			giveUp[i]()
			err := <-waiting[i]
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, " ahead, behind /lock/_c_")
			require.Less(t, time.Since(began), grace)
			time.Sleep(settle)
			require.Equal(t, before, znodes(b))
		}
		giveUp[2]()
		require.ErrorIs(t, <-waiting[2], context.Canceled)
		require.Len(t, znodes(b), 1, "nothing is left")
		held.leave()
		use(t, other)
	})
}

// A try does not wait for another owner of this process, and asks nothing to know that.
func TestATryAtAPlaceInUse(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5))
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
			locktest.Owner(t), lock, nothing, recipes.WaitAtMost(time.Second))
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
			theirs := visitLock(t, b.Mutex(t, b.Other, "/lock"))
			theirs.entered()
			waiting := visitLock(t, ours)
			return func() {
				theirs.leave()
				waiting.entered()
				waiting.leave()
			}
		},
		"behind this process": func(
			t *testing.T, _ *locktest.Bubble, ours recipes.InterProcessLock,
		) func() {
			t.Helper()
			holds := visitLock(t, ours)
			holds.entered()
			return holds.leave
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5))
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
		})
	}
}

func nothing(context.Context, *recipes.Hold) error { return nil }

// A place that was lost while it was idle is nobody's, from the moment at which another
// process can have the lock.
func TestALostPlaceIsNotUsed(t *testing.T) {
	for name, lose := range map[string]func(*locktest.Bubble){
		"the session was ended": func(b *locktest.Bubble) {
			b.Cluster.ExpireSession(b.Ours.SessionID())
		},
		"the znode was deleted": func(b *locktest.Bubble) {
			_ = b.Other.Delete(znodes(b)[0], -1)
		},
		"out of touch": func(b *locktest.Bubble) {
			b.Cluster.Link("ours").Stall(zktest.Both)
			time.Sleep(9600 * time.Millisecond) // of 10 s
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5))
				kept := use(t, lock)
				time.Sleep(5 * time.Second)
				lose(b)
				time.Sleep(settle)
				ctx := locktest.Owner(t)
				waiting := locktest.Start(func() error { return lock.Acquire(ctx) })
				time.Sleep(settle)
				if h := lock.Hold(ctx); h != nil {
					require.NotEqual(t, kept.Path(), h.Path(), "it is lost")
				}
				b.Cluster.Link("ours").Heal()
				require.NoError(t, <-waiting)
				require.Greater(t, lock.Hold(ctx).FencingToken(), kept.FencingToken())
				require.NoError(t, kept.Err(), "it was released before")
				require.NoError(t, lock.Release(ctx))
			})
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
		lock, err := recipes.NewInterProcessMutex(
			conn, "/lock", recipes.WithCaching(longIdle, 5))
		require.NoError(t, err)
		kept := use(t, lock)
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
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5),
			recipes.WithObserver(told.Observe))
		former := use(t, lock)
		holder := visitLock(t, lock)
		hold := holder.entered()
		next := visitLock(t, lock)
		b.Lose(t, hold)
		time.Sleep(settle)
		require.NoError(t, former.Err())
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		require.False(t, lock.IsOwned(holder.ctx))
		require.Greater(t, next.entered().FencingToken(), hold.FencingToken())
		require.NoError(t, next.hold().Err())
		require.ErrorIs(t, lock.Release(holder.ctx), recipes.ErrLockLost)
		next.leave()
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
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5),
			recipes.WithObserver(told.Observe))
		for i := range 3 {
			use(t, lock)
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
		holder := visitLock(t, lock)
		told.Forget()
		next := visitLock(t, lock)
		queued := told.Await(t, recipes.EventQueued)
		require.Equal(t, 1, queued.Ahead)
		require.Equal(t, holder.entered().Path(), queued.Node)
		holder.leave()
		next.entered()
		next.leave()
	})
}

// Somebody who asks for the lock back gets it, whether anybody listens or not.
func TestAPlaceThatIsAskedBackIsGivenUp(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5))
		idle := use(t, lock)
		require.NoError(t, recipes.AttemptRevoke(t.Context(), b.Other, idle.Path()))
		time.Sleep(settle)
		require.Empty(t, znodes(b), "one that nobody uses, at once")

		asked := newAsked()
		lock.MakeRevocable(asked.listen)
		holder := visitLock(t, lock)
		hold := holder.entered()
		next := visitLock(t, lock)
		require.NoError(t, recipes.AttemptRevoke(t.Context(), b.Other, hold.Path()))
		time.Sleep(settle)
		require.Equal(t, 1, asked.count(), "of the holder, and not of those who wait")
		require.NoError(t, hold.Err())
		holder.leave()
		require.NotEqual(t, hold.Path(), next.entered().Path(), "it is passed on")
		next.leave()
	})
}

func TestAnOwnerWhoWaitsForAPlaceIsAskedToGiveUp(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		held := visitLock(t, b.Mutex(t, b.Other, "/lock"))
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5))
		asked := newAsked()
		lock.MakeRevocable(asked.listen)
		waiting := visitLock(t, lock)
		nodes, err := lock.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Len(t, nodes, 2)
		require.NoError(t, recipes.AttemptRevoke(t.Context(), b.Other, nodes[1]))
		time.Sleep(settle)
		require.Equal(t, 1, asked.count())
		held.leave()
		waiting.entered()
		waiting.leave()
		require.Empty(t, znodes(b), "what was asked back is not kept")
	})
}

// Hold.Multi is judged by the hold, and not by the znode, which outlasts it.
func TestAReleasedHoldOfAKeptPlaceGuardsNothing(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5))
		_, err := b.Ours.Create("/config", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		former := use(t, lock)
		holder := visitLock(t, lock)
		hold := holder.entered()
		require.Equal(t, former.Path(), hold.Path())
		_, err = former.Multi(setConfig())
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		_, err = hold.Multi(setConfig())
		require.NoError(t, err)
		holder.leave()
		require.Len(t, znodes(b), 1, "a transaction that was answered is no reason")
		_, err = hold.Multi(setConfig())
		require.ErrorIs(t, err, recipes.ErrNotOwner)
	})
}

// A transaction that is under way at the release can still be done while its znode is
// there. So the next owner waits until that has gone.
func TestNoPassUnderATransactionThatIsUnderWay(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		conn := &slowMultiConn{
			Client: b.Ours, released: make(chan struct{}), deletes: make(chan struct{}),
		}
		lock, err := recipes.NewInterProcessMutex(conn, "/lock",
			recipes.WithCaching(longIdle, 5))
		require.NoError(t, err)
		_, err = b.Ours.Create("/config", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		holder := visitLock(t, lock)
		hold := holder.entered()
		next := visitLock(t, lock)
		written := locktest.Start(func() error {
			_, err := hold.Multi(setConfig())
			return err
		})
		time.Sleep(settle)
		released := locktest.Start(func() error { return lock.Release(holder.ctx) })
		time.Sleep(settle)
		require.False(t, next.holds(), "it can still be done")
		close(conn.released)
		require.NoError(t, <-written, "the znode is still there")
		time.Sleep(settle)
		require.False(t, next.holds())
		close(conn.deletes)
		require.NoError(t, <-released)
		require.NotEqual(t, hold.Path(), next.entered().Path())
		next.leave()
	})
}

// The place is that of the connection and the path: it follows the settings of the value
// for which it was made.
func TestValuesShareAPlace(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		long := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5),
			recipes.WithData([]byte("long")))
		short := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(time.Second, 1))
		first := use(t, long)
		require.Equal(t, first.Path(), use(t, short).Path())
		time.Sleep(longIdle / 2)
		require.Equal(t, first.Path(), use(t, short).Path())
		data, _, err := b.Ours.Get(first.Path())
		require.NoError(t, err)
		require.Equal(t, "long", string(data))
	})
}

func TestClosingAClientGivesItsPlacesUp(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithCaching(longIdle, 5))
		use(t, lock)
		held := b.Mutex(t, b.Ours, "/held", recipes.WithCaching(longIdle, 5))
		hold := visitLock(t, held).entered()
		waiting := locktest.Start(func() error { return held.Acquire(t.Context()) })
		time.Sleep(settle)
		b.Ours.Close()
		synctest.Wait()
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		require.ErrorIs(t, <-waiting, zk.ErrConnectionClosed)
		require.ErrorIs(t, lock.Acquire(t.Context()), zk.ErrConnectionClosed)
		require.Empty(t, znodes(b))
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
		require.ErrorContains(t, err, "WithCaching: a semaphore keeps no place")
		_, err = recipes.NewInterProcessSemaphoreMutex(b.Ours, "/lock", fine)
		require.ErrorContains(t, err, "WithCaching: a semaphore keeps no place")
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
			require.Error(t, cachedRW(t, b.Other).WriteLock().Acquire(ctx))
		},
		"its data was changed": func(t *testing.T, b *locktest.Bubble, held string) {
			t.Helper()
			_, err := b.Other.Set(held, []byte("x"), -1)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				lock := cachedRW(t, b.Ours, recipes.WithCaching(longIdle, 5)).ReadLock()
				first := visitLock(t, lock)
				hold := first.entered()
				time.Sleep(time.Minute)
				end(t, b, hold.Path())
				time.Sleep(time.Minute)
				ctx := locktest.Owner(t)
				ok, err := lock.AcquireTimeout(ctx, 0)
				require.NoError(t, err)
				require.True(t, ok, "nobody but a reader is there")
				require.NoError(t, lock.Release(ctx))
				first.leave()
			})
		})
	}
}
