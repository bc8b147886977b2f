package lockcache

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

var policy = Policy{Idle: 24 * time.Hour, MaxHandovers: 1}

func newWaiter(e *entry, q *seqnode.Queue) *waiter {
	return &waiter{
		entry: e, q: q, policy: policy,
		queued: make(chan queuedAt, 1), settled: make(chan struct{}),
	}
}

// use enters, and returns the Share with the entry locked until the test ends.
func use(t *testing.T, q *seqnode.Queue, s *zkconn.Conn) *Share {
	t.Helper()
	share, err := Enter(t.Context(), s, q, policy, seqnode.Request{})
	require.NoError(t, err)
	e := share.generation.entry
	e.mu.Lock()
	share.generation.doubtful = false // or not: its first look is under way
	t.Cleanup(func() {
		e.waiting = nil
		e.mu.Unlock()
		share.Node.SessionEnded(errors.New("over"))
		<-share.generation.run.Done()
	})
	return share
}

// One whose margin is in the way is passed over by those who have the entry together, and
// by nobody else.
func TestWhoIsAdmittedPastAMarginThatIsInTheWay(t *testing.T) {
	for name, together := range map[string]bool{"readers": true, "writers": false} {
		t.Run(name, func(t *testing.T) {
			q, s := stubQueue(t)
			q.Excludes = func(_, _ seqname.Name) bool { return !together }
			share := use(t, q, s)
			e, g := share.generation.entry, share.generation
			g.users = 0
			tooMuch := *q
			tooMuch.LossMargin = time.Hour
			first, second := newWaiter(e, q), newWaiter(e, q)
			early, third := newWaiter(e, &tooMuch), newWaiter(e, q)
			e.waiting = []*waiter{first, early, second, third}
			if together {
				require.Equal(t, 3, e.letIn())
				require.Equal(t, []*waiter{early}, e.waiting)
				require.True(t, second.isSettled())
				require.True(t, third.isSettled())
			} else {
				require.Equal(t, 1, e.letIn())
				require.Zero(t, e.letIn())
				require.Equal(t, []*waiter{early, second, third}, e.waiting)
			}
			require.True(t, early.early)
			require.False(t, early.isSettled())
			require.True(t, first.isSettled())
			require.False(t, first.early)
		})
	}
}

// Those who wait for a generation are told of its queue, each once if they stand behind
// another one meanwhile.
func TestWhoIsToldOfTheQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ next, current, told, want bool }{
		"the first time":             {next: true, want: true},
		"again":                      {next: true, told: true, want: true},
		"behind another":             {next: true, current: true, want: true},
		"behind another again":       {next: true, current: true, told: true},
		"of one that was given up":   {},
		"of one that has been given": {current: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &entry{}
			g := &generation{entry: e}
			if c.next {
				e.next = g
			}
			if c.current {
				e.current = held(1)
			}
			w := newWaiter(e, nil)
			w.told, e.waiting = c.told, []*waiter{w}
			g.Queued("/lock/a", 1)
			require.Equal(t, c.want, len(w.queued) == 1)
			if c.want && c.current {
				<-w.queued
				g.Queued("/lock/b", 2)
				require.Empty(t, w.queued, "it was told")
			}
		})
	}
}

// A generation for which nobody waits any more ends its own wait, once it knows that.
func TestALookForThoseWhoDoNotWait(t *testing.T) {
	t.Parallel()
	e := &entry{}
	g := &generation{entry: e}
	require.True(t, g.looked(seqnode.Position{}, false), "its ctx is done")

	given := error(nil)
	g.giveUp = func(cause error) { given = cause }
	w := newWaiter(e, nil)
	w.request.TryOnce = true
	e.next, e.waiting = g, []*waiter{w}
	require.True(t, g.looked(seqnode.Position{}, false), "it may be its turn")
	g.run = new(calls.Pending[struct{}])
	require.False(t, g.looked(seqnode.Position{Ahead: 1, Behind: "/lock/a"}, false))
	require.True(t, w.isSettled())
	require.ErrorIs(t, w.err, wait.ErrBusy)
	require.ErrorIs(t, given, errNobodyWaits)
}

// What a Share is told of after its end changes nothing.
func TestAShareEndsOnce(t *testing.T) {
	q, s := stubQueue(t)
	q.Excludes = func(_, _ seqname.Name) bool { return false }
	share := use(t, q, s)
	e, g := share.generation.entry, share.generation
	other, err := g.admit(q, seqnode.Request{})
	require.NoError(t, err)
	e.mu.Unlock()
	other.Withdraw()
	other.SessionEnded(errors.New("over"))
	require.Equal(t, 1, g.users)
	require.False(t, g.closed)
	require.NoError(t, other.Lost().Err())
	e.mu.Lock()
}
