package zktest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

func TestTimeoutsAreNegotiated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			opts          []zktest.Option
			asked, wanted time.Duration
		}{
			{nil, 0, 4 * time.Second},
			{nil, 3999 * time.Millisecond, 4 * time.Second},
			{nil, 4001 * time.Millisecond, 4001 * time.Millisecond},
			{nil, 40 * time.Second, 40 * time.Second},
			{nil, time.Hour, 40 * time.Second},
			{[]zktest.Option{zktest.WithTick(50 * time.Millisecond)}, 0, 100 * time.Millisecond},
			{[]zktest.Option{zktest.WithTick(50 * time.Millisecond)}, time.Hour, time.Second},
			{[]zktest.Option{zktest.WithMaxSession(time.Minute)}, time.Hour, time.Minute},
			{[]zktest.Option{zktest.WithMinSessionTimeout(time.Second)}, 0, time.Second},
			{[]zktest.Option{zktest.WithMinSessionTimeout(time.Second)}, 1001 * time.Millisecond, 1001 * time.Millisecond},
			{[]zktest.Option{zktest.WithMinSessionTimeout(time.Minute), zktest.WithMaxSession(time.Hour)}, 0, time.Minute},
		} {
			s := zktest.Start(t, c.opts...)
			p := plugIn(t, s.Link(""), s.Peer(0)).open(c.asked)
			require.Equal(t, c.wanted, p.timeout)
			require.NotZero(t, p.session)
			require.Len(t, p.secret, 16)
			again := plugIn(t, s.Link(""), s.Peer(0))
			again.send(greeting(p, 0, 0))
			require.True(t, again.welcome())
			require.Equal(t, s.Sessions(), []int64{again.session})
			require.LessOrEqual(t, again.timeout, c.wanted, "it is negotiated at each connect")
		}
	})
}

// A session ends when nothing was heard for its timeout, never before, and up to a tick later; behind a follower up to half a
// tick more, until the next report of whom it has heard. Everything its end means comes together.
func TestExpiry(t *testing.T) {
	for _, timeout := range []time.Duration{beat + beat/4, 2 * beat, 2*beat + 700*time.Millisecond, term} {
		for idle := time.Duration(0); idle < beat; idle += 333 * time.Millisecond {
			for name, follower := range map[string]bool{"leader": false, "follower": true} {
				t.Run(fmt.Sprintf("%v after %v at a %s", timeout, idle, name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testExpiry(t, timeout, idle, follower) })
				})
			}
		}
	}
}

func testExpiry(t *testing.T, timeout, idle time.Duration, follower bool) {
	t.Helper()
	s, server, other := three(t, zktest.WithMinSessionTimeout(beat))
	latest := timeout + beat + beat/2
	if !follower {
		server, latest = s.Leader(), timeout+beat
	}
	watcher := at(t, s, other)
	p := plugIn(t, s.Link("mute"), server).open(timeout)
	p.send(creation(1, "/mine", zk.FlagEphemeral))
	require.Equal(t, outcome{1, 0}, p.answer())
	_, _, gone, err := watcher.ExistsW("/mine")
	require.NoError(t, err)
	pass(idle)
	p.send(ping())
	require.Equal(t, outcome{-2, 0}, p.answer())

	heard := time.Now()
	closed := later(p.closed)
	require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
	require.GreaterOrEqual(t, time.Since(heard), timeout)
	require.LessOrEqual(t, time.Since(heard), latest)
	require.Equal(t, []int64{watcher.SessionID()}, s.Sessions())
	require.Empty(t, s.Znodes())
	require.True(t, soon(t, closed))
	require.LessOrEqual(t, time.Since(heard), latest)
	require.False(t, plugIn(t, s.Link("mute"), server).reopen(p))
}

// Sessions end at ticks from the start, whenever between them the leader pings its followers.
func TestSessionsEndAtTicks(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s, _, _ := three(t, zktest.WithSeed(seed))
			pass(beat + time.Second)
			plugIn(t, s.Link("mute"), s.Leader()).open(2 * beat)
			for len(s.Sessions()) > 0 {
				pass(time.Millisecond)
			}
			require.Equal(t, 4*beat, time.Since(began).Truncate(10*time.Millisecond))
		})
	}
}

func TestPingsKeepASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		p := plugIn(t, s.Link(""), f1).open(2 * beat)
		g := at(t, s, f1)
		g.create("/mine", zk.FlagEphemeral)
		for range 1000 {
			pass(2*beat - time.Millisecond) // a report that comes half a tick late is in time
			p.send(ping())
			require.Equal(t, outcome{-2, 0}, p.answer())
		}
		require.Len(t, s.Sessions(), 2)
		require.Empty(t, g.told())
		require.Equal(t, []zk.State(nil), g.passed())
	})
}

func TestExpireSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		g, other := at(t, s, f1), at(t, s, f2)
		g.create("/mine", zk.FlagEphemeral)
		other.sync()
		_, _, gone, err := other.ExistsW("/mine")
		require.NoError(t, err)
		require.False(t, s.ExpireSession(12345), "no session")
		first := g.SessionID()
		require.Equal(t, []int64{first, other.SessionID()}, s.Sessions())
		now := time.Now()
		require.True(t, s.ExpireSession(first))
		require.False(t, s.ExpireSession(first), "it ends already, or has ended")
		require.Equal(t, []int64{other.SessionID()}, s.Sessions())
		require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
		require.Equal(t, now, time.Now(), "at once")
		g.until(zk.StateExpired)
		g.until(zk.StateHasSession)
		require.NotEqual(t, first, g.SessionID())

		s.Leader().Stop()
		s.ExpireSession(g.SessionID())
		require.Len(t, s.Sessions(), 2)
		g.until(zk.StateDisconnected)
		require.NotContains(t, g.passed(), zk.StateExpired)
		g.until(zk.StateHasSession)
		require.Len(t, s.Sessions(), 2, "there was no leader who could have done it")
	})
}

// After a reconnect a client hears of what it has missed, and only of that, and its other watches stand.
func TestReconnectKeepsSessionAndWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, f2 := three(t)
		link := s.Link("g")
		g, other := visit(t, link, s.HostProvider(), term), at(t, s, f2)
		for _, path := range []string{"/changed", "/deleted", "/same", "/dir", "/quiet"} {
			g.create(path, 0)
		}
		g.create("/mine", zk.FlagEphemeral)
		for _, path := range []string{"/changed", "/deleted", "/same", "/created", "/absent"} {
			_, _, _, err := g.ExistsW(path)
			require.NoError(t, err)
		}
		for _, path := range []string{"/dir", "/quiet"} {
			_, _, _, err := g.ChildrenW(path)
			require.NoError(t, err)
		}
		id := g.SessionID()
		link.Cut()
		g.until(zk.StateDisconnected)
		require.Zero(t, s.Watches(), "they are the connection's")
		_, err := other.Set("/changed", nil, -1)
		require.NoError(t, err)
		require.NoError(t, other.Delete("/deleted", -1))
		other.create("/created", 0)
		other.create("/dir/x", 0)
		link.Heal()
		g.until(zk.StateHasSession)
		require.Equal(t, id, g.SessionID())
		require.ElementsMatch(t,
			[]string{"EventNodeDataChanged /changed", "EventNodeDeleted /deleted", "EventNodeCreated /created", "EventNodeChildrenChanged /dir"},
			g.told())
		require.Equal(t, 3, s.Watches())
		_, err = other.Set("/same", nil, -1)
		require.NoError(t, err)
		other.create("/quiet/x", 0)
		other.create("/absent", 0)
		require.Equal(t, []string{"EventNodeDataChanged /same", "EventNodeChildrenChanged /quiet", "EventNodeCreated /absent"}, g.told())
		require.Zero(t, s.Watches())
		require.True(t, g.has("/mine"))
	})
}

func TestWrongPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		p := plugIn(t, s.Link(""), s.Peer(0)).open(term)
		for name, old := range map[string]*plug{
			"wrong password":  {session: p.session, secret: make([]byte, 16)},
			"no password":     {session: p.session},
			"unknown session": {session: p.session + 1, secret: p.secret},
		} {
			thief := plugIn(t, s.Link(""), s.Peer(0))
			require.False(t, thief.reopen(old), name)
			require.Zero(t, thief.session, name)
			require.Zero(t, thief.timeout, name)
			require.Equal(t, make([]byte, 16), thief.secret, name)
			require.True(t, thief.hungUp(), name)
		}
		require.Equal(t, []int64{p.session}, s.Sessions())
		require.True(t, plugIn(t, s.Link(""), s.Peer(0)).reopen(p))
	})
}

func TestSecondConnectionTakesTheSessionOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		first := plugIn(t, s.Link("first"), f1).open(term)
		second := plugIn(t, s.Link("second"), f1)
		require.True(t, second.reopen(first))
		require.Equal(t, first.session, second.session)
		require.True(t, first.hungUp(), "a server keeps one connection of a session")

		third := plugIn(t, s.Link("third"), f2)
		require.True(t, third.reopen(second))
		second.send(existence(1, "/"))
		require.Equal(t, outcome{1, 0}, second.answer(), "another server does not know yet, and answers what it can by itself")
		second.send(creation(2, "/a", 0))
		require.True(t, second.hungUp(), "the leader does")
		third.send(creation(1, "/b", 0))
		require.Equal(t, outcome{1, 0}, third.answer())
		require.Equal(t, []string{"/b"}, s.Znodes())

		fourth := plugIn(t, s.Link("fourth"), s.Leader())
		require.True(t, fourth.reopen(third))
		fifth := plugIn(t, s.Link("fifth"), f1)
		require.True(t, fifth.reopen(fourth))
		fourth.send(existence(1, "/"))
		require.True(t, fourth.hungUp(), "the leader answers not even reads")
	})
}

func TestSlowClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.WithTick(beat), zktest.WithSlowClose(10*time.Second))
		g := visit(t, s.Link("g"), s.HostProvider(), term)
		g.create("/mine", zk.FlagEphemeral)
		first, ended := g.SessionID(), time.Now()
		s.ExpireSession(first)
		require.Empty(t, s.Sessions())
		s.Link("g").Reset()
		g.until(zk.StateExpired)
		g.until(zk.StateHasSession)
		require.NotEqual(t, first, g.SessionID())
		found, stat, gone, err := g.ExistsW("/mine")
		require.NoError(t, err)
		require.True(t, found, "its client is told before its znodes go")
		require.Equal(t, first, stat.EphemeralOwner)
		require.Less(t, time.Since(ended), 10*time.Second)
		require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
		require.Equal(t, 10*time.Second, time.Since(ended))
		require.Equal(t, []int64{g.SessionID()}, s.Sessions())
	})
}

// What a client sends behind the end of its session is refused, also while that is on its
// way into the log (3.8.0 answers SessionExpired). So it leaves no znode that nobody would
// ever delete.
func TestACreateBehindTheEndOfItsSession(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := zktest.Start(t, zktest.WithServers(n), zktest.WithTick(beat),
				zktest.WithSlowCommit(300*time.Millisecond))
			p := plugIn(t, s.Link("a"), s.Peer(0)).open(term)
			p.send(creation(1, "/before", zk.FlagEphemeral), farewell(2),
				creation(3, "/behind", zk.FlagEphemeral))
			require.Equal(t, outcome{1, 0}, p.answer())
			pass(time.Second)
			require.Empty(t, s.Sessions())
			require.Empty(t, s.Znodes())
		})
	}
}

// A leader that comes after knows nothing of an end that was not committed.
func TestAnEndThatWasNotCommitted(t *testing.T) {
	for n := range 2 {
		synctest.Test(t, func(t *testing.T) {
			s := zktest.Start(t, zktest.WithServers(2*n+1), zktest.WithTick(beat), zktest.WithSlowClose(10*time.Second))
			g := visit(t, s.Link("g"), s.HostProvider(), term)
			g.create("/mine", zk.FlagEphemeral)
			id, old := g.SessionID(), s.Leader()
			s.ExpireSession(id)
			old.Stop()
			old.Start()
			g.until(zk.StateHasSession)
			pass(time.Minute)
			require.Equal(t, []int64{id}, s.Sessions())
			require.Equal(t, []string{"/mine"}, s.Znodes())
			require.NotContains(t, g.passed(), zk.StateExpired)
		})
	}
}

// What a server knows to be over it does not serve. It does not say so either: the connection closes with the session.
func TestRequestsOfAnEndingSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t, zktest.WithSlowClose(10*time.Second))
		near := plugIn(t, s.Link("near"), s.Leader()).open(term)
		far := plugIn(t, s.Link("far"), f1).open(term)
		for _, p := range []*plug{near, far} {
			s.ExpireSession(p.session)
			p.send(existence(1, "/"), synchrony(2), creation(3, "/a", 0), ping())
		}
		ended := time.Now()
		require.Equal(t, outcome{1, 0}, far.answer())
		require.Equal(t, outcome{2, 0}, far.answer(), "a follower's sync does not depend on a session")
		require.Equal(t, outcome{3, -112}, far.answer(), "what a follower does not know its leader tells it")
		require.Equal(t, outcome{-2, 0}, far.answer())
		require.Equal(t, ended, time.Now())
		require.True(t, near.closed())
		require.True(t, far.closed())
		require.Equal(t, ended.Add(10*time.Second), time.Now())
		require.Empty(t, s.Znodes())
	})
}

func TestCloseOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		p := plugIn(t, s.Link(""), f1).open(term)
		p.send(creation(1, "/mine", zk.FlagEphemeral), farewell(2))
		require.Equal(t, outcome{1, 0}, p.answer())
		require.Equal(t, outcome{2, 0}, p.answer())
		require.True(t, p.hungUp())
		require.Empty(t, s.Znodes())
		require.Empty(t, s.Sessions())

		f1.Lag(time.Second)
		p = plugIn(t, s.Link(""), f1).open(term)
		p.send(farewell(1), ping())
		require.Equal(t, outcome{1, 0}, p.answer())
		require.True(t, p.hungUp(), "nothing is answered behind it")
		f1.Lag(0)
		pass(time.Second)

		// An old connection may end a session that has moved.
		first := plugIn(t, s.Link("first"), f1).open(term)
		second := plugIn(t, s.Link("second"), f2)
		require.True(t, second.reopen(first))
		first.send(farewell(1))
		require.Equal(t, outcome{1, 0}, first.answer())
		require.True(t, second.hungUp())
		require.Empty(t, s.Sessions())
	})
}

func TestNothingIsTakenBehindAHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		p := plugIn(t, s.Link(""), s.Peer(0)).open(term)
		p.send(ask(1, 100, func(b *buffer) {
			b.int32(0)
			b.bytes([]byte("no such scheme"))
			b.bytes(nil)
		}), creation(2, "/a", 0))
		require.Equal(t, outcome{1, -115}, p.answer())
		require.True(t, p.hungUp())
		require.Empty(t, s.Znodes())
	})
}

// The Java client sends its first requests right behind the greeting.
func TestRequestsBehindTheGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		f1.Lag(100 * time.Millisecond)
		p := plugIn(t, s.Link("p"), f1)
		sent := later(func() bool {
			p.send(greeting(&plug{}, term, 0), creation(1, "/a", 0), existence(2, "/a"))
			return true
		})
		require.True(t, p.welcome())
		require.Equal(t, outcome{1, 0}, p.answer())
		require.Equal(t, outcome{2, 0}, p.answer())
		require.True(t, soon(t, sent))

		again := plugIn(t, s.Link("again"), f1)
		sent = later(func() bool {
			again.send(greeting(p, term, 0), existence(1, "/a"))
			return true
		})
		require.True(t, again.welcome())
		require.Equal(t, outcome{1, 0}, again.answer())
		require.True(t, soon(t, sent))
	})
}

// A server hangs up on a client that is silent for longer than its session may last, also where nobody ends the session.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t, zktest.WithSlowClose(time.Hour))
		mute := plugIn(t, s.Link("mute"), f1).open(2 * beat)
		began := time.Now()
		require.True(t, mute.closed())
		require.Greater(t, time.Since(began), 2*beat)
		require.LessOrEqual(t, time.Since(began), 3*beat)
	})
}
