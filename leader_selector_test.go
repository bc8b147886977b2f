package recipes_test

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

// A campaign is a Run of a selector whose terms the test ends.
type campaign struct {
	t        *testing.T
	selector *recipes.LeaderSelector
	terms    chan *term
	result   <-chan error
	stop     context.CancelCauseFunc // of Run's ctx
}

// A term is a call of lead.
type term struct {
	ctx  context.Context
	hold *recipes.Hold
	end  chan error // what lead is to return
}

func newSelector(
	t *testing.T, conn recipes.Conn, opts ...recipes.Option,
) *recipes.LeaderSelector {
	t.Helper()
	s, err := recipes.NewLeaderSelector(conn, "/election", opts...)
	require.NoError(t, err)
	return s
}

// run begins to Run for /election, and lets it come as far as it comes.
func run(t *testing.T, conn recipes.Conn, opts ...recipes.Option) *campaign {
	t.Helper()
	return runFor(t, newSelector(t, conn, opts...))
}

func runFor(t *testing.T, selector *recipes.LeaderSelector) *campaign {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	c := &campaign{t: t, selector: selector, terms: make(chan *term, 10), stop: stop}
	c.result = locktest.Start(func() error { return selector.Run(ctx, c.lead) })
	time.Sleep(settle)
	return c
}

func (c *campaign) lead(ctx context.Context, hold *recipes.Hold) error {
	now := &term{ctx, hold, make(chan error, 1)}
	c.terms <- now
	return <-now.end
}

// leads waits for the next term.
func (c *campaign) leads() *term {
	c.t.Helper()
	now := locktest.Within(c.t, c.terms, "the candidate does not lead")
	require.NoError(c.t, now.hold.Err(), "it leads without leadership")
	return now
}

// waits requires that the candidate does not lead.
func (c *campaign) waits() {
	c.t.Helper()
	time.Sleep(settle)
	require.Empty(c.t, c.terms)
	require.Empty(c.t, c.result)
}

// ended returns what Run has returned.
func (c *campaign) ended() error {
	c.t.Helper()
	return locktest.Within(c.t, c.result, "Run does not return")
}

// leaves ends the campaign of a candidate that does not lead.
func (c *campaign) leaves() {
	c.t.Helper()
	c.stop(errRetired)
	require.ErrorIs(c.t, c.ended(), errRetired)
}

var errRetired = errors.New("retired")

// kubernetes PR #139991: the lock was released at the end of the context, while what it
// protected still ran.
func TestLeadershipIsGivenUpOnceLeadHasReturned(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, other := run(t, b.Ours), run(t, b.Other)
		first := ours.leads()
		other.waits()

		ours.stop(errRetired)
		locktest.Within(t, first.ctx.Done(), "lead's ctx does not end")
		require.Equal(t, errRetired, context.Cause(first.ctx))
		time.Sleep(time.Minute)
		other.waits()
		require.NoError(t, first.hold.Err(), "and the leadership lasts")
		require.Len(t, znodes(b), 2)

		first.end <- context.Cause(first.ctx)
		second := other.leads()
		require.Greater(t, second.hold.FencingToken(), first.hold.FencingToken())
		err := ours.ended()
		require.EqualError(t, err, "recipes: run for /election: retired")
		require.ErrorIs(t, err, errRetired)
		require.Len(t, znodes(b), 1)

		second.end <- nil
		other.leads().end <- errRetired
		require.Equal(t, errRetired, other.ended(), "lead's error as it is")
		require.Empty(t, znodes(b))
	})
}

// Requeue (Curator's #1038): a term that is over goes to the tail, and each candidate has
// its turn.
func TestATermThatIsOverGoesToTheTail(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, other := run(t, b.Ours), run(t, b.Other)
		var last int64
		for range 3 {
			for _, c := range []*campaign{ours, other} {
				now := c.leads()
				require.Greater(t, now.hold.FencingToken(), last)
				last = now.hold.FencingToken()
				time.Sleep(settle)
				require.Empty(t, ours.terms)
				require.Empty(t, other.terms)
				now.end <- nil
			}
		}
		ours.leads().end <- errRetired
		require.Equal(t, errRetired, ours.ended())
		other.leads().end <- errRetired
		require.Equal(t, errRetired, other.ended())
	})
}

// A lone candidate has a new znode for each term: the one of a term is given up first.
func TestALoneCandidateIsElectedAnew(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := run(t, b.Ours)
		first := c.leads()
		first.end <- nil
		second := c.leads()
		require.NotEqual(t, first.hold.Path(), second.hold.Path())
		require.Greater(t, second.hold.FencingToken(), first.hold.FencingToken())
		require.Equal(t, []string{second.hold.Path()}, znodes(b))
		_, err := first.hold.Multi(&zk.SetDataRequest{Path: "/election"})
		require.ErrorIs(t, err, recipes.ErrNotOwner)
		second.end <- errRetired
		require.Equal(t, errRetired, c.ended())
	})
}

// Nothing runs twice at once: while lead goes on after a loss there is no candidate.
func TestALossWinsOverLeadsError(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := run(t, b.Ours)
		first := c.leads()
		b.Lose(t, first.hold)
		locktest.Within(t, first.ctx.Done(), "lead's ctx does not end")
		require.ErrorIs(t, context.Cause(first.ctx), recipes.ErrLockLost)
		require.Equal(t, first.hold.Err(), context.Cause(first.ctx))
		time.Sleep(time.Minute)
		c.waits()
		require.Empty(t, znodes(b))

		first.end <- errRetired
		second := c.leads()
		require.Greater(t, second.hold.FencingToken(), first.hold.FencingToken())
		require.NoError(t, second.ctx.Err())
		b.Lose(t, second.hold)
		second.end <- nil
		third := c.leads()

		// The loss is told at the end of ctx, beside what lead says, and once.
		b.Lose(t, third.hold)
		c.stop(errRetired)
		third.end <- third.hold.Err()
		err := c.ended()
		require.ErrorIs(t, err, errRetired)
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.Equal(t, 1, losses(err))
	})
}

// What no retry fixes is returned, although lead returned nil: a candidate cannot rejoin
// while it leads.
func TestRunEndsIfTheLeadershipCannotBeGivenUp(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := run(t, b.Ours)
		term := c.leads()
		_, err := b.Other.Unwrap().SetACL(path.Dir(term.hold.Path()),
			zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
		require.NoError(t, err)
		term.end <- nil
		require.ErrorIs(t, c.ended(), zk.ErrNoAuth)
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
			c := run(t, b.Ours)
			now := c.leads()
			c.stop(errRetired)
			now.end <- said
			require.EqualError(t, c.ended(), "recipes: run for /election: retired"+want)
		}
	})
}

func TestALeaderIsToldBeforeTheNextLeads(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, other := run(t, b.Ours), run(t, b.Other)
		first := ours.leads()
		b.Cluster.Link("ours").Stall(zktest.Both)
		second := other.leads()
		require.ErrorIs(t, first.hold.Err(), recipes.ErrLockLost)
		require.ErrorIs(t, context.Cause(first.ctx), recipes.ErrLockLost)
		require.Greater(t, second.hold.FencingToken(), first.hold.FencingToken())
		b.Cluster.Link("ours").Heal()
		first.end <- first.hold.Err()
		time.Sleep(time.Minute)
		ours.waits()
		second.end <- errRetired
		require.Equal(t, errRetired, other.ended())
		third := ours.leads()
		require.Greater(t, third.hold.FencingToken(), second.hold.FencingToken())
		third.end <- errRetired
		require.Equal(t, errRetired, ours.ended())
	})
}

func TestACandidateOutlastsAnOutageAndItsSession(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other := run(t, b.Other)
		now := other.leads()
		ours := run(t, b.Ours)
		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(time.Minute)
		require.Len(t, znodes(b), 1, "the session of the candidate is over")
		b.Cluster.Link("ours").Heal()
		time.Sleep(time.Minute)
		ours.waits()
		require.Len(t, znodes(b), 2)
		now.end <- errRetired
		require.Equal(t, errRetired, other.ended())
		ours.leads().end <- errRetired
		require.Equal(t, errRetired, ours.ended())
	})
}

func TestACancelledCandidateLeavesNothing(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		other := run(t, b.Other)
		now := other.leads()
		ours := run(t, b.Ours)
		require.Len(t, znodes(b), 2)
		ours.stop(errRetired)
		err := ours.ended()
		require.ErrorIs(t, err, errRetired)
		require.ErrorContains(t, err, "run for /election: retired: 1 ahead, behind "+
			now.hold.Path())
		require.Equal(t, []string{now.hold.Path()}, znodes(b))

		ours = run(t, b.Ours)
		b.Cluster.Link("ours").Stall(zktest.Both)
		time.Sleep(2 * time.Second)
		began := time.Now()
		ours.stop(errRetired)
		require.ErrorIs(t, ours.ended(), recipes.ErrUnavailable)
		require.Less(t, time.Since(began), grace/2)
		b.Cluster.Link("ours").Heal()
		time.Sleep(time.Minute)
		require.Equal(t, []string{now.hold.Path()}, znodes(b))
		now.end <- errRetired
		require.Equal(t, errRetired, other.ended())
	})
}

func TestASecondRunIsRefused(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := run(t, b.Ours)
		now := c.leads()
		again := runFor(t, c.selector)
		require.EqualError(t, again.ended(), "recipes: run for /election: "+
			"Run is already in progress on this LeaderSelector")
		require.Empty(t, again.terms)
		require.NoError(t, now.hold.Err())
		now.end <- errRetired
		require.Equal(t, errRetired, c.ended())

		again = runFor(t, c.selector)
		again.leads().end <- errRetired
		require.Equal(t, errRetired, again.ended(), "the value is of use after that")
		require.ErrorContains(t, c.selector.Run(t.Context(), nil), "lead is nil")
	})
}

// etcd calls it phantom leadership; client-go #1187: what is to stop was never started.
func TestLeadIsNotCalledWithALostTerm(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var lost []string
		c := run(t, b.Ours, recipes.WithObserver(
			func(_ context.Context, e recipes.Event) {
				if e.Kind == recipes.EventAcquired && len(lost) == 0 {
					lost = append(lost, e.Node)
					_ = b.Other.Delete(e.Node, -1)
					time.Sleep(settle)
				}
			},
		))
		now := c.leads()
		require.NotContains(t, lost, now.hold.Path())
		require.Len(t, lost, 1)
		now.end <- errRetired
		require.Equal(t, errRetired, c.ended())
		require.Empty(t, c.terms)
	})
}

func TestALeadThatDoesNotReturnGivesUpTheLeadership(t *testing.T) {
	for name, end := range map[string]func(){
		"a panic": func() { panic(errRetired) }, "Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
				s := newSelector(t, b.Ours)
				other := run(t, b.Other)
				now := other.leads()
				ended := make(chan any, 1)
				go func() {
					defer func() { ended <- recover() }()
					_ = s.Run(t.Context(), func(context.Context, *recipes.Hold) error {
						end()
						return nil
					})
				}()
				time.Sleep(settle)
				now.end <- nil
				switch p := locktest.Within(t, ended, "Run"); name {
				case "a panic":
					require.Equal(t, errRetired, p)
				default:
					require.Nil(t, p)
				}
				other.leads().end <- errRetired
				require.Equal(t, errRetired, other.ended())
				again := runFor(t, s)
				again.leads().end <- errRetired
				require.Equal(t, errRetired, again.ended())
			})
		})
	}
}

// etcd#22123: a resignation whose request was lost was forgotten.
func TestALeaderStepsDownAlthoughRequestsAreLost(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, other := run(t, b.Ours), run(t, b.Other)
		for _, lose := range []func(zktest.Op){
			b.Cluster.Link("ours").LoseRequest, b.Cluster.Link("ours").LoseReply,
		} {
			now := ours.leads()
			lose(zktest.OpDelete)
			now.end <- nil
			next := other.leads()
			require.Greater(t, next.hold.FencingToken(), now.hold.FencingToken())
			time.Sleep(time.Minute)
			require.Len(t, znodes(b), 2)
			next.end <- nil
		}
		now := ours.leads()
		b.Cluster.Link("ours").LoseRequest(zktest.OpDelete)
		ours.stop(errRetired)
		now.end <- nil
		require.ErrorIs(t, ours.ended(), errRetired)
		other.leads().end <- errRetired
		require.Equal(t, errRetired, other.ended())
		require.Empty(t, znodes(b))
	})
}

func TestRunEndsWithItsConnection(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		leader := run(t, b.Ours)
		now := leader.leads()
		waiter := runFor(t, newSelector(t, b.Ours))
		b.Ours.Close()
		locktest.Within(t, now.ctx.Done(), "the loss is not told")
		now.end <- now.hold.Err()
		for _, c := range []*campaign{leader, waiter} {
			err := c.ended()
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
		c := run(t, b.Ours, observer)
		c.leads().end <- errRetired
		require.Equal(t, errRetired, c.ended())
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
		require.ErrorContains(t, create(nil, "/election"), "conn: is nil")
		err = create(&zk.Conn{}, "/election", recipes.WithCaching(time.Second, 1))
		require.ErrorContains(t, err, name+" /election: WithCaching: ")
		require.NoError(t, create(&zk.Conn{}, "/election"))
	}
}
