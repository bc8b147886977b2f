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
		share.Lose(errors.New("over"))
		<-share.generation.run.Done()
	})
	return share
}

// Those who wait for a generation are notified of its queue, each once if they stand
// behind another one meanwhile.
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
			w.reported, e.waiting = c.told, []*waiter{w}
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
	_, s := stubQueue(t)
	e := &entry{key: entryKey{conn: s}}
	g := &generation{entry: e}
	require.True(t, g.onDecision(seqnode.Position{}, false), "its ctx is done")

	given := error(nil)
	g.cancel = func(cause error) { given = cause }
	w := newWaiter(e, nil)
	w.request.SingleAttempt = true
	e.next, e.waiting = g, []*waiter{w}
	require.True(t, g.onDecision(seqnode.Position{}, false), "it may be its turn")
	g.run = new(calls.Pending[struct{}])
	require.False(t, g.onDecision(seqnode.Position{Ahead: 1, Behind: "/lock/a"}, false))
	require.True(t, w.isSettled())
	require.ErrorIs(t, w.err, wait.ErrBusy)
	require.ErrorIs(t, given, errNobodyWaits)
}

// An expiry that comes after the release changes nothing.
func TestAShareEndsOnce(t *testing.T) {
	q, s := stubQueue(t)
	q.Excludes = func(_, _ seqname.Name) bool { return false }
	share := use(t, q, s)
	e, g := share.generation.entry, share.generation
	other := g.admitLocked(seqnode.Request{})
	require.NotNil(t, other)
	e.mu.Unlock()
	other.Withdraw()
	other.expire()
	require.Equal(t, 1, g.users)
	require.False(t, g.closed)
	require.NoError(t, other.Lost().Err())
	e.mu.Lock()
}

// The last user of a generation that was replaced ends it, by its release or its expiry.
func TestTheLastUserEndsAReplacedGeneration(t *testing.T) {
	for name, end := range map[string]func(*Share){
		"release": (*Share).Withdraw, "expiry": (*Share).expire,
	} {
		t.Run(name, func(t *testing.T) {
			q, s := stubQueue(t)
			share := use(t, q, s)
			e, g := share.generation.entry, share.generation
			e.current = nil
			e.mu.Unlock()
			end(share)
			e.mu.Lock()
			require.NotNil(t, g.awaitDelete)
		})
	}
}
