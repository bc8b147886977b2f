package election_test

import (
	"context"
	"errors"
	"path"
	"runtime"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// kubernetes PR #139991: the lock was released at the end of the context, while what it
// protected still ran.
func TestLeadershipIsGivenUpOnceLeadHasReturned(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours := locktest.StartCampaign(t, b.Ours)
		other := locktest.StartCampaign(t, b.Other)
		first := ours.Leads()
		other.Waits()

		ours.Stop(locktest.ErrRetired)
		locktest.Within(t, first.Ctx.Done(), "lead's ctx does not end")
		require.Equal(t, locktest.ErrRetired, context.Cause(first.Ctx))
		time.Sleep(time.Minute)
		other.Waits()
		require.NoError(t, first.Hold.Err(), "and the leadership lasts")
		require.Len(t, locktest.Znodes(b), 2)

		first.End <- context.Cause(first.Ctx)
		second := other.Leads()
		require.Greater(t, second.Hold.FencingToken(), first.Hold.FencingToken())
		err := ours.Ended()
		require.EqualError(t, err, "recipes: run for /election: retired")
		require.ErrorIs(t, err, locktest.ErrRetired)
		require.Len(t, locktest.Znodes(b), 1)

		second.End <- nil
		other.Leads().End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, other.Ended(), "lead's error as it is")
		require.Empty(t, locktest.Znodes(b))
	})
}

// As far as this process knows, without requests.
func TestWhetherASelectorHasTheLeadership(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		require.False(t, locktest.NewSelector(t, b.Ours).HasLeadership())
		ours := locktest.StartCampaign(t, b.Ours)
		other := locktest.StartCampaign(t, b.Other)
		first := ours.Leads()
		require.True(t, ours.Selector.HasLeadership())
		require.False(t, other.Selector.HasLeadership(), "it waits")
		b.Lose(t, first.Hold)
		require.False(t, ours.Selector.HasLeadership(), "although lead has not returned")
		second := other.Leads()
		require.True(t, other.Selector.HasLeadership())
		first.End <- nil
		time.Sleep(locktest.Settle)
		require.False(t, ours.Selector.HasLeadership(), "it has rejoined")
		second.End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, other.Ended())
		require.False(t, other.Selector.HasLeadership())
		ours.Leads().End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, ours.Ended())
		require.False(t, ours.Selector.HasLeadership())
	})
}

// Requeue (Curator's #1038): a term that is over goes to the tail, and each candidate has
// its turn.
func TestATermThatIsOverGoesToTheTail(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours := locktest.StartCampaign(t, b.Ours)
		other := locktest.StartCampaign(t, b.Other)
		var last int64
		for range 3 {
			for _, c := range []*locktest.Campaign{ours, other} {
				now := c.Leads()
				require.Greater(t, now.Hold.FencingToken(), last)
				last = now.Hold.FencingToken()
				time.Sleep(locktest.Settle)
				require.Empty(t, ours.Terms)
				require.Empty(t, other.Terms)
				now.End <- nil
			}
		}
		ours.Leads().End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, ours.Ended())
		other.Leads().End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, other.Ended())
	})
}

// A lone candidate has a new znode for each term: the one of a term is given up first.
func TestALoneCandidateIsElectedAnew(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := locktest.StartCampaign(t, b.Ours)
		first := c.Leads()
		first.End <- nil
		second := c.Leads()
		require.NotEqual(t, first.Hold.Path(), second.Hold.Path())
		require.Greater(t, second.Hold.FencingToken(), first.Hold.FencingToken())
		require.Equal(t, []string{second.Hold.Path()}, locktest.Znodes(b))
		_, err := first.Hold.Multi(&zk.SetDataRequest{Path: "/election"})
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		second.End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, c.Ended())
	})
}

// Nothing runs twice at once: while lead goes on after a loss there is no candidate.
func TestALossWinsOverLeadsError(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := locktest.StartCampaign(t, b.Ours)
		first := c.Leads()
		b.Lose(t, first.Hold)
		locktest.Within(t, first.Ctx.Done(), "lead's ctx does not end")
		require.ErrorIs(t, context.Cause(first.Ctx), recipes.ErrLockLost)
		require.Equal(t, first.Hold.Err(), context.Cause(first.Ctx))
		time.Sleep(time.Minute)
		c.Waits()
		require.Empty(t, locktest.Znodes(b))

		first.End <- locktest.ErrRetired
		second := c.Leads()
		require.Greater(t, second.Hold.FencingToken(), first.Hold.FencingToken())
		require.NoError(t, second.Ctx.Err())
		b.Lose(t, second.Hold)
		second.End <- nil
		third := c.Leads()

		// The loss is told at the end of ctx, beside what lead says, and once.
		b.Lose(t, third.Hold)
		c.Stop(locktest.ErrRetired)
		third.End <- third.Hold.Err()
		err := c.Ended()
		require.ErrorIs(t, err, locktest.ErrRetired)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.Equal(t, 1, locktest.Losses(err))
	})
}

// What no retry fixes is returned, although lead returned nil: a candidate cannot rejoin
// while it leads.
func TestRunEndsIfTheLeadershipCannotBeGivenUp(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := locktest.StartCampaign(t, b.Ours)
		term := c.Leads()
		_, err := b.Other.Unwrap().SetACL(path.Dir(term.Hold.Path()),
			zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
		require.NoError(t, err)
		term.End <- nil
		require.ErrorIs(t, c.Ended(), zk.ErrNoAuth)
	})
}

// What lead says of more than the end of its ctx is not lost.
func TestRunTellsWhatLeadSaysAtTheEnd(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		for said, want := range map[error]string{
			nil:              "",
			context.Canceled: "",
			zk.ErrNoNode:     "\n" + zk.ErrNoNode.Error(),
		} {
			c := locktest.StartCampaign(t, b.Ours)
			now := c.Leads()
			c.Stop(locktest.ErrRetired)
			now.End <- said
			require.EqualError(t, c.Ended(), "recipes: run for /election: retired"+want)
		}
	})
}

// errorsOf is a cause that cannot be compared.
type errorsOf []error

func (e errorsOf) Error() string { return errors.Join(e...).Error() }

func TestRunThatEndsByACauseThatIsNotComparable(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := locktest.StartCampaign(t, b.Ours)
		now := c.Leads()
		cause := errorsOf{locktest.ErrRetired}
		c.Stop(cause)
		now.End <- cause
		require.ErrorContains(t, c.Ended(), "recipes: run for /election: retired")
	})
}

// A loss is told also by a Run that ends for another reason.
func TestTheEndOfRunTellsOfALoss(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := locktest.StartCampaign(t, b.Ours)
		now := c.Leads()
		b.Lose(t, now.Hold)
		c.Stop(locktest.ErrRetired)
		now.End <- nil
		err := c.Ended()
		require.ErrorIs(t, err, locktest.ErrRetired)
		require.ErrorIs(t, err, recipes.ErrLockLost)
	})
}

func TestALeaderIsToldBeforeTheNextLeads(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours := locktest.StartCampaign(t, b.Ours)
		other := locktest.StartCampaign(t, b.Other)
		first := ours.Leads()
		b.Cluster.Link("ours").Stall(zktest.Both)
		second := other.Leads()
		require.ErrorIs(t, first.Hold.Err(), recipes.ErrLockLost)
		require.ErrorIs(t, context.Cause(first.Ctx), recipes.ErrLockLost)
		require.Greater(t, second.Hold.FencingToken(), first.Hold.FencingToken())
		b.Cluster.Link("ours").Heal()
		first.End <- first.Hold.Err()
		time.Sleep(time.Minute)
		ours.Waits()
		second.End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, other.Ended())
		third := ours.Leads()
		require.Greater(t, third.Hold.FencingToken(), second.Hold.FencingToken())
		third.End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, ours.Ended())
	})
}

func TestACandidateOutlastsAnOutageAndItsSession(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other := locktest.StartCampaign(t, b.Other)
		now := other.Leads()
		ours := locktest.StartCampaign(t, b.Ours)
		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(time.Minute)
		require.Len(t, locktest.Znodes(b), 1, "the session of the candidate is over")
		b.Cluster.Link("ours").Heal()
		time.Sleep(time.Minute)
		ours.Waits()
		require.Len(t, locktest.Znodes(b), 2)
		now.End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, other.Ended())
		ours.Leads().End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, ours.Ended())
	})
}

func TestACancelledCandidateLeavesNothing(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other := locktest.StartCampaign(t, b.Other)
		now := other.Leads()
		ours := locktest.StartCampaign(t, b.Ours)
		require.Len(t, locktest.Znodes(b), 2)
		ours.Stop(locktest.ErrRetired)
		err := ours.Ended()
		require.ErrorIs(t, err, locktest.ErrRetired)
		require.ErrorContains(t, err, "run for /election: retired: 1 ahead, behind "+
			now.Hold.Path())
		require.Equal(t, []string{now.Hold.Path()}, locktest.Znodes(b))

		ours = locktest.StartCampaign(t, b.Ours)
		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(2 * time.Second)
		began := time.Now()
		ours.Stop(locktest.ErrRetired)
		require.ErrorIs(t, ours.Ended(), recipes.ErrUnavailable)
		require.Less(t, time.Since(began), locktest.Grace/2)
		b.Cluster.Link("ours").Heal()
		time.Sleep(time.Minute)
		require.Equal(t, []string{now.Hold.Path()}, locktest.Znodes(b))
		now.End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, other.Ended())
	})
}

func TestASecondRunIsRefused(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := locktest.StartCampaign(t, b.Ours)
		now := c.Leads()
		again := locktest.StartCampaignOf(t, c.Selector)
		require.EqualError(t, again.Ended(), "recipes: run for /election: "+
			"Run is already in progress on this LeaderSelector")
		require.Empty(t, again.Terms)
		require.NoError(t, now.Hold.Err())
		now.End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, c.Ended())

		again = locktest.StartCampaignOf(t, c.Selector)
		again.Leads().End <- locktest.ErrRetired
		require.Equal(
			t, locktest.ErrRetired, again.Ended(), "the value is of use after that",
		)
		require.ErrorContains(t, c.Selector.Run(t.Context(), nil), "lead is nil")
	})
}

// etcd calls it phantom leadership; client-go #1187: what is to stop was never started.
func TestLeadIsNotCalledWithALostTerm(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var lost []string
		c := locktest.StartCampaign(t, b.Ours, recipes.WithObserver(
			func(_ context.Context, e recipes.Event) {
				if e.Kind == recipes.EventAcquired && len(lost) == 0 {
					lost = append(lost, e.Node)
					_ = b.Other.Delete(e.Node, -1)
					time.Sleep(locktest.Settle)
				}
			},
		))
		now := c.Leads()
		require.NotContains(t, lost, now.Hold.Path())
		require.Len(t, lost, 1)
		now.End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, c.Ended())
		require.Empty(t, c.Terms)
	})
}

// A term that begins when Run is to end is given up at once.
func TestLeadIsNotCalledByARunThatIsToEnd(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx, stop := context.WithCancelCause(t.Context())
		s := locktest.NewSelector(t, b.Ours, recipes.WithObserver(
			func(_ context.Context, e recipes.Event) {
				if e.Kind == recipes.EventAcquired {
					stop(locktest.ErrRetired)
				}
			},
		))
		require.ErrorIs(t, s.Run(ctx, func(context.Context, *recipes.Hold) error {
			t.Error("lead is called")
			return nil
		}), locktest.ErrRetired)
		time.Sleep(locktest.Settle)
		require.Empty(t, locktest.Znodes(b))
	})
}

func TestALeadThatDoesNotReturnGivesUpTheLeadership(t *testing.T) {
	for name, end := range map[string]func(){
		"a panic": func() { panic(locktest.ErrRetired) }, "Goexit": runtime.Goexit,
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			s := locktest.NewSelector(t, b.Ours)
			other := locktest.StartCampaign(t, b.Other)
			now := other.Leads()
			ended := make(chan any, 1)
			go func() {
				defer func() { ended <- recover() }()
				_ = s.Run(t.Context(), func(context.Context, *recipes.Hold) error {
					end()
					return nil
				})
			}()
			time.Sleep(locktest.Settle)
			now.End <- nil
			switch p := locktest.Within(t, ended, "Run"); name {
			case "a panic":
				require.Equal(t, locktest.ErrRetired, p)
			default:
				require.Nil(t, p)
			}
			other.Leads().End <- locktest.ErrRetired
			require.Equal(t, locktest.ErrRetired, other.Ended())
			again := locktest.StartCampaignOf(t, s)
			again.Leads().End <- locktest.ErrRetired
			require.Equal(t, locktest.ErrRetired, again.Ended())
		})
	}
}

// etcd#22123: a resignation whose request was lost was forgotten.
func TestALeaderStepsDownAlthoughRequestsAreLost(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours := locktest.StartCampaign(t, b.Ours)
		other := locktest.StartCampaign(t, b.Other)
		for _, lose := range []func(zktest.Op){
			b.Cluster.Link("ours").LoseRequest, b.Cluster.Link("ours").LoseReply,
		} {
			now := ours.Leads()
			lose(zktest.OpDelete)
			now.End <- nil
			next := other.Leads()
			require.Greater(t, next.Hold.FencingToken(), now.Hold.FencingToken())
			time.Sleep(time.Minute)
			require.Len(t, locktest.Znodes(b), 2)
			next.End <- nil
		}
		now := ours.Leads()
		b.Cluster.Link("ours").LoseRequest(zktest.OpDelete)
		ours.Stop(locktest.ErrRetired)
		now.End <- nil
		require.ErrorIs(t, ours.Ended(), locktest.ErrRetired)
		other.Leads().End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, other.Ended())
		require.Empty(t, locktest.Znodes(b))
	})
}

func TestRunEndsWithItsConnection(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		leader := locktest.StartCampaign(t, b.Ours)
		now := leader.Leads()
		waiter := locktest.StartCampaignOf(t, locktest.NewSelector(t, b.Ours))
		b.Ours.Close()
		locktest.Within(t, now.Ctx.Done(), "the loss is not told")
		now.End <- now.Hold.Err()
		for _, c := range []*locktest.Campaign{leader, waiter} {
			err := c.Ended()
			require.ErrorIs(t, err, zk.ErrConnectionClosed)
			require.ErrorContains(t, err, "run for /election")
		}
	})
}

func TestCandidatesTellTheirSteps(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var told []string
		observer := recipes.WithObserver(func(_ context.Context, e recipes.Event) {
			told = append(told, e.Recipe+" "+e.Kind.String())
		})
		c := locktest.StartCampaign(t, b.Ours, observer)
		c.Leads().End <- locktest.ErrRetired
		require.Equal(t, locktest.ErrRetired, c.Ended())
		latch := newLatch(t, b.Ours, observer)
		_, err := latch.Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, latch.Close(t.Context()))
		require.Equal(t, []string{
			"leader selector queued", "leader selector acquired",
			"leader selector released",
			"leader latch queued", "leader latch acquired", "leader latch released",
		}, told)
	})
}

func TestElectionsRefuse(t *testing.T) {
	for name, create := range map[string]func(
		recipes.Conn, string, ...recipes.Option,
	) error{
		"NewLeaderSelector": func(
			c recipes.Conn, path string, opts ...recipes.Option,
		) error {
			_, err := recipes.NewLeaderSelector(c, path, opts...)
			return err
		},
		"NewLeaderLatch": func(
			c recipes.Conn, path string, opts ...recipes.Option,
		) error {
			_, err := recipes.NewLeaderLatch(c, path, opts...)
			return err
		},
	} {
		err := create(&zk.Conn{}, "bad")
		require.ErrorIs(t, err, zk.ErrInvalidPath)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, create(nil, "/election"), "conn is nil")
		err = create(&zk.Conn{}, "/election", recipes.WithCaching(time.Second, 1))
		require.ErrorContains(t, err, name+" /election: WithCaching: ")
		require.NoError(t, create(&zk.Conn{}, "/election"))
	}
}
