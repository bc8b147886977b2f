package election_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

func newLatch(
	t *testing.T, conn recipes.Conn, opts ...recipes.Option,
) *recipes.LeaderLatch {
	t.Helper()
	return locktest.NewLatch(t, conn, "/election", opts...)
}

// An awaiting is an Await under way.
type awaiting struct {
	term chan *recipes.Hold
	err  <-chan error
	stop context.CancelCauseFunc
}

// await begins to Await, and lets it come as far as it comes.
func await(t *testing.T, latch *recipes.LeaderLatch) *awaiting {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	a := &awaiting{term: make(chan *recipes.Hold, 1), stop: stop}
	a.err = locktest.Start(func() error {
		term, err := latch.Await(ctx)
		a.term <- term
		return err
	})
	time.Sleep(locktest.Settle)
	return a
}

// leads waits for the leadership.
func (a *awaiting) leads(t *testing.T) *recipes.Hold {
	t.Helper()
	require.NoError(t, locktest.Within(t, a.err, "it does not lead"))
	return <-a.term
}

// fails returns Await's error.
func (a *awaiting) fails(t *testing.T) error {
	t.Helper()
	err := locktest.Within(t, a.err, "Await does not return")
	require.Nil(t, <-a.term)
	return err
}

func TestALatchLeadsUntilItIsClosed(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, other := newLatch(t, b.Ours), newLatch(t, b.Other)
		require.False(t, ours.HasLeadership())
		first := await(t, ours).leads(t)
		require.True(t, ours.HasLeadership())
		require.Regexp(t, `^/election/_c_[-0-9a-f]{36}-latch-\d{10}$`, first.Path())
		require.Equal(t, []string{"latch*"}, seen(t, b.Ours, "/election"))
		require.Same(t, first, await(t, ours).leads(t), "while it leads")

		waiting := await(t, other)
		require.Equal(t, []string{"latch*", "latch"}, seen(t, b.Ours, "/election"))
		time.Sleep(time.Minute)
		require.Empty(t, waiting.err)
		require.False(t, other.HasLeadership())

		require.NoError(t, ours.Close(t.Context()))
		require.False(t, ours.HasLeadership())
		second := waiting.leads(t)
		require.Greater(t, second.FencingToken(), first.FencingToken())
		require.NoError(t, first.Err(), "to step down is no loss")

		_, err := ours.Await(t.Context())
		require.EqualError(
			t, err, "recipes: await /election: the leader latch was closed",
		)
		require.NoError(t, ours.Close(t.Context()), "again")
		require.NoError(t, newLatch(t, b.Ours).Close(t.Context()), "never used")
		require.True(t, other.HasLeadership())
		require.NoError(t, other.Close(t.Context()))
		require.Empty(t, locktest.Znodes(b))
	})
}

// Its turn comes as it is closed: nobody is to take it for the leader.
func TestALatchThatIsClosedHasNoLeadership(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		const slow = 3 * time.Second
		latch := newLatch(t, b.Ours, recipes.WithObserver(
			func(_ context.Context, e recipes.Event) {
				if e.Kind == recipes.EventAcquired {
					time.Sleep(slow)
				}
			}))
		done := locktest.Start(func() error {
			_, err := latch.Await(t.Context())
			return err
		})
		time.Sleep(time.Second)
		require.True(t, latch.HasLeadership())
		require.ErrorContains(
			t, latch.Close(t.Context()), "close not confirmed", "the observer keeps it")
		require.False(t, latch.HasLeadership())
		require.ErrorContains(t, <-done, "the leader latch was closed")
		time.Sleep(slow)
		require.Empty(t, locktest.Znodes(b))
	})
}

// A Close that waited for its answer in an outage had another one fail, by an Await that
// there was not.
func TestALatchIsClosedTwiceInAnOutage(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		latch := newLatch(t, b.Ours)
		await(t, latch).leads(t)
		b.Cluster.Link("ours").Stall(zktest.Both)
		first := locktest.Start(func() error { return latch.Close(t.Context()) })
		synctest.Wait()
		began := time.Now()
		require.NoError(t, latch.Close(t.Context()))
		require.Zero(t, time.Since(began))
		b.Cluster.Link("ours").Heal()
		require.NoError(t, <-first)
		require.Empty(t, locktest.Znodes(b))
	})
}

func TestALatchIsElectedAnewAfterALoss(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		latch := newLatch(t, b.Ours)
		first := await(t, latch).leads(t)
		b.Lose(t, first)
		require.False(t, latch.HasLeadership())
		time.Sleep(time.Minute)
		require.Empty(t, locktest.Znodes(b), "it waits until it is told to")
		second := await(t, latch).leads(t)
		require.NotSame(t, first, second)
		require.Greater(t, second.FencingToken(), first.FencingToken())
		require.True(t, latch.HasLeadership())
		require.ErrorIs(t, first.Err(), recipes.ErrLockLost)

		b.Lose(t, second)
		err := latch.Close(t.Context())
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorContains(t, err, "close /election")
		require.NoError(t, latch.Close(t.Context()))
	})
}

func TestALatchIsToldBeforeTheNextLeads(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, other := newLatch(t, b.Ours), newLatch(t, b.Other)
		first := await(t, ours).leads(t)
		waiting := await(t, other)
		b.Cluster.Link("ours").Stall(zktest.Both)
		second := waiting.leads(t)
		require.ErrorIs(t, first.Err(), recipes.ErrLockLost)
		require.False(t, ours.HasLeadership())
		again := await(t, ours)
		b.Cluster.Link("ours").Heal()
		time.Sleep(time.Minute)
		require.Empty(t, again.err)
		require.NoError(t, other.Close(t.Context()))
		require.Greater(t, again.leads(t).FencingToken(), second.FencingToken())
		require.NoError(t, ours.Close(t.Context()))
	})
}

func TestACancelledAwaitLeavesTheQueue(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, other := newLatch(t, b.Ours), newLatch(t, b.Other)
		leader := await(t, other).leads(t)
		waiting := await(t, ours)
		require.Len(t, locktest.Znodes(b), 2)
		second := await(t, ours)
		require.Len(t, locktest.Znodes(b), 2, "one candidate, however many wait")

		waiting.stop(locktest.ErrRetired)
		err := waiting.fails(t)
		require.ErrorIs(t, err, locktest.ErrRetired)
		require.ErrorContains(t, err, "1 ahead, behind "+leader.Path())
		time.Sleep(locktest.Settle)
		require.Len(t, locktest.Znodes(b), 2, "the other who waits has joined anew")
		third := await(t, ours)
		third.stop(locktest.ErrRetired)
		require.ErrorIs(t, third.fails(t), locktest.ErrRetired)
		second.stop(locktest.ErrRetired)
		require.ErrorIs(t, second.fails(t), locktest.ErrRetired)
		require.Equal(t, []string{leader.Path()}, locktest.Znodes(b))

		waiting = await(t, ours)
		require.NoError(t, other.Close(t.Context()))
		waiting.leads(t)
		done, cancel := context.WithCancelCause(t.Context())
		cancel(locktest.ErrRetired)
		_, err = ours.Await(done)
		require.ErrorIs(t, err, locktest.ErrRetired, "also while it leads")
		require.True(t, ours.HasLeadership())
		require.NoError(t, ours.Close(done))
		require.Empty(t, locktest.Znodes(b))
	})
}

func TestCloseEndsEveryAwait(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, other := newLatch(t, b.Ours), newLatch(t, b.Other)
		leader := await(t, other).leads(t)
		first, second := await(t, ours), await(t, ours)
		require.NoError(t, ours.Close(t.Context()))
		require.Equal(t, []string{leader.Path()}, locktest.Znodes(b))
		for _, a := range []*awaiting{first, second} {
			require.ErrorContains(t, a.fails(t), "the leader latch was closed")
		}

		// In an outage the znode goes when it is over.
		ours = newLatch(t, b.Ours)
		waiting := await(t, ours)
		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(2 * time.Second)
		began := time.Now()
		require.NoError(t, ours.Close(t.Context()))
		require.Less(t, time.Since(began), locktest.Grace)
		require.ErrorContains(t, waiting.fails(t), "the leader latch was closed")
		b.Cluster.Link("ours").Heal()
		time.Sleep(time.Minute)
		require.Equal(t, []string{leader.Path()}, locktest.Znodes(b))
		require.NoError(t, other.Close(t.Context()))
	})
}

// Who does not lead has nothing to give up: its Close does not wait for ZooKeeper.
func TestCloseOfACandidateThatWaits(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		first := newLatch(t, b.Other)
		await(t, first).leads(t)
		second := newLatch(t, b.Ours)
		waiting := await(t, second)
		locktest.AwaitChildren(t, b.Other, "/election", 2)
		b.Cluster.Link("ours").Stall(zktest.Both)
		began := time.Now()
		require.NoError(t, second.Close(t.Context()))
		require.Less(t, time.Since(began), locktest.Grace)
		require.ErrorContains(t, waiting.fails(t), "closed")
		require.Len(t, locktest.Children(t, b.Other, "/election"), 2)
		b.Cluster.Link("ours").Heal()
		locktest.AwaitChildren(t, b.Other, "/election", 1)
	})
}

// An observer may call any method: Close then cannot wait for the Await that tells.
func TestALatchIsClosedByItsObserver(t *testing.T) {
	for kind := recipes.EventQueued; kind <= recipes.EventReleased; kind++ {
		locktest.Run(t, kind.String(), func(t *testing.T, b *locktest.Bubble) {
			var latch *recipes.LeaderLatch
			latch = newLatch(t, b.Ours, recipes.WithObserver(
				func(_ context.Context, e recipes.Event) {
					if e.Kind == kind {
						_ = latch.Close(t.Context())
						if latch.HasLeadership() {
							t.Error("Close was called")
						}
					}
				},
			))
			_ = await(t, latch)
			require.NoError(t, latch.Close(t.Context()))
			time.Sleep(time.Minute)
			require.False(t, latch.HasLeadership())
			require.Empty(t, locktest.Znodes(b))
		})
	}
}

// Its observer is told that it would wait for the Await that calls it.
func TestALatchIsAwaitedByItsObserver(t *testing.T) {
	for _, kind := range []recipes.EventKind{
		recipes.EventQueued, recipes.EventAcquired,
	} {
		locktest.Run(t, kind.String(), func(t *testing.T, b *locktest.Bubble) {
			var latch *recipes.LeaderLatch
			var within error
			latch = locktest.NewLatch(t, b.Ours, "/election", recipes.WithObserver(func(
				ctx context.Context, e recipes.Event,
			) {
				if e.Kind == kind {
					ctx, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					_, within = latch.Await(ctx)
				}
			}))
			_, err := latch.Await(t.Context())
			require.NoError(t, err)
			require.ErrorContains(t, within, "would wait for itself")
			require.NoError(t, latch.Close(t.Context()))
		})
	}
}

func TestALatchAndItsConnection(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		latch := newLatch(t, b.Ours)
		term := await(t, latch).leads(t)
		waiting := await(t, newLatch(t, b.Ours))
		b.Ours.Close()
		<-term.Lost()
		require.False(t, latch.HasLeadership())
		require.ErrorContains(t, waiting.fails(t), "closed by its owner")
		require.ErrorContains(t, await(t, latch).fails(t), "closed by its owner")
		require.NoError(t, latch.Close(t.Context()), "the Await has told")
	})
}

// The ctx of a hold ends with its release, with a cause that matches ErrNotOwner: Close
// took that for nothing to leave.
func TestALatchIsClosedWithTheCtxOfAReleasedHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		latch := newLatch(t, b.Ours)
		await(t, latch).leads(t)
		within, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("another lock: %w", recipes.ErrNotOwner))
		b.Cluster.Link("ours").Stall(zktest.Both)
		require.ErrorContains(t, latch.Close(within), "release not confirmed")
	})
}

func TestALatchIsClosedAgainByItsObserver(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var latch *recipes.LeaderLatch
		var again, awaited error
		latch = newLatch(t, b.Ours, recipes.WithObserver(
			func(_ context.Context, e recipes.Event) {
				if e.Kind == recipes.EventReleased {
					again = latch.Close(t.Context())
					_, awaited = latch.Await(t.Context())
				}
			}))
		await(t, latch).leads(t)
		began := time.Now()
		require.NoError(t, latch.Close(t.Context()))
		require.Zero(t, time.Since(began))
		require.NoError(t, again)
		require.ErrorContains(t, awaited, "was closed")
		require.Empty(t, locktest.Znodes(b))
	})
}
