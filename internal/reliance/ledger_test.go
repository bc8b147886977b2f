package reliance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/reliance"
)

// znode is one that is told nothing here: a Ledger calls nobody.
type znode struct{ name string }

func (*znode) Lose(error) { panic("a Ledger tells nobody") }

const timeout = 10 * time.Second

// opened returns the Ledger of a connection in session 1, which can be changed.
func opened() (l *reliance.Ledger, session *int64) {
	session = new(int64)
	*session = 1
	ledger := reliance.New(reliance.Config{
		SessionID: func() int64 { return *session },
		Timeout:   func() time.Duration { return timeout }, Advice: "ask",
		Wall: func(now time.Time) time.Time { return now.Round(0) },
	})
	ledger.Resume()
	return &ledger, session
}

// contact is a request of which the leader heard, and its answer.
func contact(l *reliance.Ledger) {
	l.Asked()
	l.Heard(1, time.Now())
}

func TestALossIsNoticedAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := opened()
		held, early, waits := &znode{"held"}, &znode{"early"}, &znode{"waits"}
		l.Track("/held", 1, held)
		l.Track("/early", 1, early)
		l.Track("/waits", 1, waits)
		_, err := l.Hold("/held", 0)
		require.ErrorIs(t, err, outcome.ErrOutOfTouch, "nothing was heard")
		for range 100 { // in which it is learned how often contacts come
			contact(l)
			time.Sleep(100 * time.Millisecond)
		}
		contact(l)
		const margin = time.Second
		until, err := l.Hold("/held", 0)
		require.NoError(t, err)
		require.Zero(t, until, "no look is due before the usual one")
		until, err = l.Hold("/early", margin)
		require.NoError(t, err)

		next, ok := l.Next(1, l.Now())
		require.True(t, ok)
		require.Equal(t, until, next)
		require.Empty(t, l.SuspendedNotices())
		require.NoError(t, l.Judge("/early"))
		time.Sleep(next.Sub(l.Now()))
		require.Equal(t, []any{early}, told(l.SuspendedNotices()))
		require.ErrorIs(t, l.Judge("/early"), outcome.ErrOutOfTouch)
		require.NoError(t, l.Judge("/held"), "its margin is its own")
		next, ok = l.Next(1, l.Now())
		require.True(t, ok)
		require.Equal(t, until.Add(margin), next)
		time.Sleep(next.Sub(l.Now()))
		require.ElementsMatch(t, []any{early, held}, told(l.SuspendedNotices()))
		l.Untrack("/early", l.Ephemeral("/early"))
		require.Equal(t, []any{held}, told(l.SuspendedNotices()))
		contact(l)
		require.Empty(t, l.SuspendedNotices(), "a contact saves it")
	})
}

// Most of the time a waiter has no proof of its session, and each tick of the heartbeat
// asks for its notices.
func TestAWaiterWithoutProofCostsNoAllocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := opened()
		contact(l)
		l.Track("/waits", 1, &znode{"waits"})
		time.Sleep(timeout)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			l.EndedNotices()
			l.SuspendedNotices()
		}))
	})
}

func TestTheEndOfASessionAndOfAConnection(t *testing.T) {
	l, session := opened()
	a, b := &znode{"a"}, &znode{"b"}
	l.Track("/a", 1, a)
	l.Track("/b", 2, b)
	require.Equal(t, []any{b}, told(l.EndedNotices()))
	*session = 2
	require.Equal(t, []any{a}, told(l.EndedNotices()))
	l.Close()
	require.ElementsMatch(t, []any{a, b}, told(l.EndedNotices()))
	_, err := l.Hold("/b", 0)
	require.ErrorIs(t, err, outcome.ErrClosed)
	_, err = l.Hold("/c", 0)
	require.ErrorIs(t, err, outcome.ErrSessionEnded, "nobody has tracked it")
	require.ErrorIs(t, l.Judge("/b"), outcome.ErrClosed)
	require.ErrorIs(t, l.Judge("/c"), outcome.ErrSessionEnded, "nobody has tracked it")
}

func TestEphemeralsAreFoundByAPath(t *testing.T) {
	l, _ := opened()
	for _, path := range []string{"/a", "/a/b", "/ab"} {
		l.Track(path, 1, &znode{path})
	}
	for path, want := range map[string][]string{
		"/": {"/a", "/a/b", "/ab"}, "/a": {"/a", "/a/b"}, "/a/b": {"/a/b"}, "/b": nil,
	} {
		var found []string
		for _, e := range l.EphemeralsAt(path) {
			found = append(found, e.(*znode).name)
		}
		require.ElementsMatch(t, want, found, path)
	}
}

func TestALossSaysWhatItsMarginWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := opened()
		l.Track("/a", 1, &znode{"a"})
		for range 100 {
			contact(l)
			time.Sleep(100 * time.Millisecond)
		}
		contact(l)
		_, err := l.Hold("/a", time.Second)
		require.NoError(t, err)
		time.Sleep(timeout)
		require.Len(t, l.SuspendedNotices(), 1)
		suspended := l.SuspendedNotices()
		require.ErrorContains(t, suspended[0].Cause, "no response for 10s; the last "+
			"request that its leader confirmed is 12.8s old, and the session may end at "+
			"10s, of which the loss margin is 1s")
	})
}

func TestAMarginThatIsTooLong(t *testing.T) {
	l, _ := opened()
	require.NoError(t, l.CheckMargin(0))
	require.ErrorContains(t, l.CheckMargin(5*time.Second),
		"for a session timeout of 10s; shorten it, or request a session timeout of at "+
			"least 20s")
	for _, unknown := range []time.Duration{0, -1} {
		l := reliance.New(reliance.Config{
			SessionID: func() int64 { return 1 },
			Timeout:   func() time.Duration { return unknown }, Advice: "ask",
		})
		require.ErrorContains(
			t, l.CheckMargin(5*time.Second), "for an unknown session timeout: ask",
		)
	}
}

func TestAlarmsAreDueOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := opened()
		rung := 0
		a := l.Set(time.Second, func() { rung++ })
		l.Stop(l.Set(time.Millisecond, func() { t.Error("it was taken back") }))
		next, ok := l.Next(1, l.Now())
		require.True(t, ok)
		require.Equal(t, a.At(), next)
		require.Empty(t, l.Due(l.Now()))
		time.Sleep(time.Second)
		for range 2 {
			for _, f := range l.Due(l.Now()) {
				f()
			}
		}
		require.Equal(t, 1, rung)
	})
}

// told returns whom the notices are for.
func told(notices []reliance.Notice) (who []any) {
	for _, n := range notices {
		who = append(who, n.Of)
	}
	return who
}

// Contacts are asked for while somebody needs them: not by those who are far from their
// turn, but by one who is not, who holds, or who creates.
func TestThoseWhoAreFarFromTheirTurnAskForNothing(t *testing.T) {
	l, _ := opened()
	require.False(t, l.Rests(), "nobody has said so")
	l.Track("/a", 1, &znode{"a"})
	l.Track("/b", 1, &znode{"b"})
	l.Rest("/a")
	require.False(t, l.Rests(), "b may need some")
	l.Rest("/b")
	l.Rest("/b")
	require.True(t, l.Rests())
	l.BeginCreate()
	require.False(t, l.Rests())
	l.Track("/c", 1, &znode{"c"})
	l.EndCreate()
	require.False(t, l.Rests())
	l.Untrack("/c", l.Ephemeral("/c"))
	require.True(t, l.Rests())
	l.Approach("/a")
	require.False(t, l.Rests())
	l.Untrack("/a", l.Ephemeral("/a"))
	require.True(t, l.Rests())
	_, err := l.Hold("/b", 0)
	require.ErrorIs(t, err, outcome.ErrOutOfTouch, "nothing was heard")
	require.False(t, l.Rests())
	l.Rest("/b")
	l.Untrack("/b", l.Ephemeral("/b"))
	require.False(t, l.Rests())
	l.Rest("/b") // it has gone
	require.False(t, l.Rests())
}

// A turn that comes after a long rest is as an acquire on an idle connection: a contact
// proves the client's pings. If the process stood still meanwhile they may be late, and
// the turn waits for a proof.
func TestAHoldAfterARest(t *testing.T) {
	for name, c := range map[string]struct {
		late time.Duration // by which the last look is late
		held bool
	}{
		"looked after all the time": {timeout / 20, true},
		"stood still":               {timeout/20 + 1, false},
		"stood still for long":      {timeout * 9 / 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _ := opened()
				const every = timeout / 100
				l.LookBy(l.Now().Add(every))
				l.Track("/a", 1, &znode{"a"})
				contact(l)
				l.Rest("/a")
				for range 300 {
					time.Sleep(every)
					l.LookBy(l.Now().Add(every))
				}
				time.Sleep(every + c.late)
				l.Approach("/a")
				contact(l)
				_, err := l.Hold("/a", 0)
				require.Equal(t, c.held, err == nil, err)
				time.Sleep(timeout / 2)
				contact(l)
				_, err = l.Hold("/a", 0)
				require.NoError(t, err, "there is a proof")
			})
		})
	}
}

// A rest that was too short for a proof says nothing of the time before it, in which the
// pings may have been late.
func TestAHoldAfterAShortRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := opened()
		l.Track("/a", 1, &znode{"a"})
		contact(l)
		time.Sleep(timeout * 9 / 10) // and nothing is heard
		l.LookBy(l.Now().Add(timeout / 100))
		l.Rest("/a")
		time.Sleep(timeout / 100)
		l.Approach("/a")
		contact(l)
		_, err := l.Hold("/a", 0)
		require.ErrorIs(t, err, outcome.ErrOutOfTouch)
	})
}
