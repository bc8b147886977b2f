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
		for _, tc := range []struct {
			opts          []zktest.Option
			asked, wanted time.Duration
		}{
			{nil, 0, 4 * time.Second},
			{nil, 3999 * time.Millisecond, 4 * time.Second},
			{nil, 4001 * time.Millisecond, 4001 * time.Millisecond},
			{nil, 40 * time.Second, 40 * time.Second},
			{nil, time.Hour, 40 * time.Second},
			{
				[]zktest.Option{zktest.WithTick(50 * time.Millisecond)},
				0,
				100 * time.Millisecond,
			},
			{
				[]zktest.Option{zktest.WithTick(50 * time.Millisecond)},
				time.Hour,
				time.Second,
			},
			{[]zktest.Option{zktest.WithMaxSession(time.Minute)}, time.Hour, time.Minute},
			{[]zktest.Option{zktest.WithMinSessionTimeout(time.Second)}, 0, time.Second},
			{
				[]zktest.Option{zktest.WithMinSessionTimeout(time.Second)},
				1001 * time.Millisecond, 1001 * time.Millisecond,
			},
			{[]zktest.Option{
				zktest.WithMinSessionTimeout(time.Minute),
				zktest.WithMaxSession(time.Hour),
			}, 0, time.Minute},
		} {
			c := zktest.Start(t, tc.opts...)
			raw := dialRaw(t, c.Link(""), c.Server(0)).open(tc.asked)
			require.Equal(t, tc.wanted, raw.timeout)
			require.NotZero(t, raw.session)
			require.Len(t, raw.secret, 16)
			again := dialRaw(t, c.Link(""), c.Server(0))
			again.send(greeting(raw, 0, 0))
			require.True(t, again.welcome())
			require.Equal(t, c.Sessions(), []int64{again.session})
			require.LessOrEqual(
				t, again.timeout, tc.wanted, "it is negotiated at each connect",
			)
		}
	})
}

// A session ends when nothing was heard for its timeout, never before, and up to a tick
// later; behind a follower up to half a tick more, until the next report of whom it has
// heard. Everything its end means comes together.
func TestExpiry(t *testing.T) {
	for _, timeout := range []time.Duration{
		tickTime + tickTime/4, 2 * tickTime, 2*tickTime + 700*time.Millisecond,
		sessionTimeout,
	} {
		for idle := time.Duration(0); idle < tickTime; idle += 333 * time.Millisecond {
			for name, follower := range map[string]bool{
				"leader": false, "follower": true,
			} {
				name := fmt.Sprintf("%v after %v at a %s", timeout, idle, name)
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						testExpiry(t, timeout, idle, follower)
					})
				})
			}
		}
	}
}

func testExpiry(t *testing.T, timeout, idle time.Duration, follower bool) {
	t.Helper()
	c, server, other := three(t, zktest.WithMinSessionTimeout(tickTime))
	latest := timeout + tickTime + tickTime/2
	if !follower {
		server, latest = c.Leader(), timeout+tickTime
	}
	watcher := connectTo(t, c, other)
	raw := dialRaw(t, c.Link("mute"), server).open(timeout)
	raw.send(creation(1, "/mine", zk.FlagEphemeral))
	require.Equal(t, outcome{1, 0}, raw.answer())
	_, _, gone, err := watcher.ExistsW("/mine")
	require.NoError(t, err)
	pass(idle)
	raw.send(ping())
	require.Equal(t, outcome{-2, 0}, raw.answer())

	heard := time.Now()
	closed := later(raw.closed)
	require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
	require.GreaterOrEqual(t, time.Since(heard), timeout)
	require.LessOrEqual(t, time.Since(heard), latest)
	require.Equal(t, []int64{watcher.SessionID()}, c.Sessions())
	require.Empty(t, c.Znodes())
	require.True(t, soon(t, closed))
	require.LessOrEqual(t, time.Since(heard), latest)
	require.False(t, dialRaw(t, c.Link("mute"), server).reopen(raw))
}

// Sessions end at ticks from the start, whenever between them the leader pings its
// followers.
func TestSessionsEndAtTicks(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			c, _, _ := three(t, zktest.WithSeed(seed))
			pass(tickTime + time.Second)
			dialRaw(t, c.Link("mute"), c.Leader()).open(2 * tickTime)
			for len(c.Sessions()) > 0 {
				pass(time.Millisecond)
			}
			require.Equal(t, 4*tickTime, time.Since(began).Truncate(10*time.Millisecond))
		})
	}
}

func TestPingsKeepASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		raw := dialRaw(t, c.Link(""), f1).open(2 * tickTime)
		cl := connectTo(t, c, f1)
		cl.create("/mine", zk.FlagEphemeral)
		for range 1000 {
			// A report that comes half a tick late is in time.
			pass(2*tickTime - time.Millisecond)
			raw.send(ping())
			require.Equal(t, outcome{-2, 0}, raw.answer())
		}
		require.Len(t, c.Sessions(), 2)
		require.Empty(t, cl.told())
		require.Equal(t, []zk.State(nil), cl.passed())
	})
}

func TestExpireSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		cl, other := connectTo(t, c, f1), connectTo(t, c, f2)
		cl.create("/mine", zk.FlagEphemeral)
		other.sync()
		_, _, gone, err := other.ExistsW("/mine")
		require.NoError(t, err)
		require.False(t, c.ExpireSession(12345), "no session")
		first := cl.SessionID()
		require.Equal(t, []int64{first, other.SessionID()}, c.Sessions())
		now := time.Now()
		require.True(t, c.ExpireSession(first))
		require.False(t, c.ExpireSession(first), "it ends already, or has ended")
		require.Equal(t, []int64{other.SessionID()}, c.Sessions())
		require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
		require.Equal(t, now, time.Now(), "at once")
		cl.until(zk.StateExpired)
		cl.until(zk.StateHasSession)
		require.NotEqual(t, first, cl.SessionID())

		c.Leader().Stop()
		c.ExpireSession(cl.SessionID())
		require.Len(t, c.Sessions(), 2)
		cl.until(zk.StateDisconnected)
		require.NotContains(t, cl.passed(), zk.StateExpired)
		cl.until(zk.StateHasSession)
		require.Len(t, c.Sessions(), 2, "there was no leader who could have done it")
	})
}

func TestSecondConnectionTakesTheSessionOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		first := dialRaw(t, c.Link("first"), f1).open(sessionTimeout)
		second := dialRaw(t, c.Link("second"), f1)
		require.True(t, second.reopen(first))
		require.Equal(t, first.session, second.session)
		require.True(t, first.hungUp(), "a server keeps one connection of a session")

		third := dialRaw(t, c.Link("third"), f2)
		require.True(t, third.reopen(second))
		second.send(existence(1, "/"))
		require.Equal(
			t, outcome{1, 0}, second.answer(),
			"another server does not know yet, and answers what it can by itself",
		)
		second.send(creation(2, "/a", 0))
		require.True(t, second.hungUp(), "the leader does")
		third.send(creation(1, "/b", 0))
		require.Equal(t, outcome{1, 0}, third.answer())
		require.Equal(t, []string{"/b"}, c.Znodes())

		fourth := dialRaw(t, c.Link("fourth"), c.Leader())
		require.True(t, fourth.reopen(third))
		fifth := dialRaw(t, c.Link("fifth"), f1)
		require.True(t, fifth.reopen(fourth))
		fourth.send(existence(1, "/"))
		require.True(t, fourth.hungUp(), "the leader answers not even reads")
	})
}

func TestSlowClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(
			t, zktest.WithTick(tickTime), zktest.WithSlowClose(10*time.Second),
		)
		cl := connect(t, c.Link("g"), c.HostProvider(), sessionTimeout)
		cl.create("/mine", zk.FlagEphemeral)
		first, ended := cl.SessionID(), time.Now()
		c.ExpireSession(first)
		require.Empty(t, c.Sessions())
		c.Link("g").Reset()
		cl.until(zk.StateExpired)
		cl.until(zk.StateHasSession)
		require.NotEqual(t, first, cl.SessionID())
		found, stat, gone, err := cl.ExistsW("/mine")
		require.NoError(t, err)
		require.True(t, found, "its client is told before its znodes go")
		require.Equal(t, first, stat.EphemeralOwner)
		require.Less(t, time.Since(ended), 10*time.Second)
		require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
		require.Equal(t, 10*time.Second, time.Since(ended))
		require.Equal(t, []int64{cl.SessionID()}, c.Sessions())
	})
}

// What a client sends behind the end of its session is refused, also while that is on its
// way into the log (3.8.0 answers SessionExpired). So it leaves no znode that nobody
// would ever delete.
func TestACreateBehindTheEndOfItsSession(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			c := zktest.Start(
				t, zktest.WithServers(n), zktest.WithTick(tickTime),
				zktest.WithSlowCommit(300*time.Millisecond),
			)
			raw := dialRaw(t, c.Link("a"), c.Server(0)).open(sessionTimeout)
			raw.send(creation(1, "/before", zk.FlagEphemeral), farewell(2),
				creation(3, "/behind", zk.FlagEphemeral))
			require.Equal(t, outcome{1, 0}, raw.answer())
			pass(time.Second)
			require.Empty(t, c.Sessions())
			require.Empty(t, c.Znodes())
		})
	}
}

// What a leader has taken before it ends a session comes before that end in the log, also
// if both have waited for followers, and a sync behind that end comes to it first.
func TestACreateAheadOfTheEndOfItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, follower, _ := three(t, zktest.WithSlowCommit(300*time.Millisecond))
		raw := dialRaw(t, c.Link("a"), follower).open(sessionTimeout)
		raw.send(creation(1, "/ahead", zk.FlagEphemeral))
		pass(100 * time.Millisecond)
		c.Leader().Isolate()
		raw.send(synchrony(2))
		require.True(t, c.ExpireSession(raw.session))
		pass(time.Second)
		c.Leader().Rejoin()
		pass(time.Second)
		require.Empty(t, c.Sessions())
		require.Empty(t, c.Znodes())
	})
}

// A leader that comes after knows nothing of an end that was not committed.
func TestAnEndThatWasNotCommitted(t *testing.T) {
	for n := range 2 {
		synctest.Test(t, func(t *testing.T) {
			c := zktest.Start(
				t, zktest.WithServers(2*n+1), zktest.WithTick(tickTime),
				zktest.WithSlowClose(10*time.Second),
			)
			cl := connect(t, c.Link("g"), c.HostProvider(), sessionTimeout)
			cl.create("/mine", zk.FlagEphemeral)
			id, old := cl.SessionID(), c.Leader()
			c.ExpireSession(id)
			old.Stop()
			old.Start()
			cl.until(zk.StateHasSession)
			pass(time.Minute)
			require.Equal(t, []int64{id}, c.Sessions())
			require.Equal(t, []string{"/mine"}, c.Znodes())
			require.NotContains(t, cl.passed(), zk.StateExpired)
		})
	}
}

// What a server knows to be over it does not serve. It does not say so either: the
// connection closes with the session.
func TestRequestsOfAnEndingSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t, zktest.WithSlowClose(10*time.Second))
		near := dialRaw(t, c.Link("near"), c.Leader()).open(sessionTimeout)
		far := dialRaw(t, c.Link("far"), f1).open(sessionTimeout)
		for _, raw := range []*rawClient{near, far} {
			c.ExpireSession(raw.session)
			raw.send(existence(1, "/"), creation(2, "/a", 0), ping(), synchrony(3))
		}
		ended := time.Now()
		require.Equal(t, outcome{1, 0}, far.answer())
		require.Equal(
			t, outcome{2, -112}, far.answer(),
			"what a follower does not know its leader tells it",
		)
		require.Equal(t, outcome{-2, 0}, far.answer())
		require.Equal(t, ended, time.Now())
		require.True(t, near.closed())
		require.True(t, far.closed())
		require.Equal(t, ended.Add(10*time.Second), time.Now())
		require.Empty(t, c.Znodes())
	})
}

func TestCloseOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		raw := dialRaw(t, c.Link(""), f1).open(sessionTimeout)
		raw.send(creation(1, "/mine", zk.FlagEphemeral), farewell(2))
		require.Equal(t, outcome{1, 0}, raw.answer())
		require.Equal(t, outcome{2, 0}, raw.answer())
		require.True(t, raw.hungUp())
		require.Empty(t, c.Znodes())
		require.Empty(t, c.Sessions())

		f1.Lag(time.Second)
		raw = dialRaw(t, c.Link(""), f1).open(sessionTimeout)
		raw.send(farewell(1), ping())
		require.Equal(t, outcome{1, 0}, raw.answer())
		require.True(t, raw.hungUp(), "nothing is answered behind it")
		f1.Lag(0)
		pass(time.Second)

		// An old connection may end a session that has moved.
		first := dialRaw(t, c.Link("first"), f1).open(sessionTimeout)
		second := dialRaw(t, c.Link("second"), f2)
		require.True(t, second.reopen(first))
		first.send(farewell(1))
		require.Equal(t, outcome{1, 0}, first.answer())
		require.True(t, second.hungUp())
		require.Empty(t, c.Sessions())
	})
}

func TestNothingIsTakenBehindAHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		raw := dialRaw(t, c.Link(""), c.Server(0)).open(sessionTimeout)
		raw.send(ask(1, 100, func(b *buffer) {
			b.int32(0)
			b.bytes([]byte("no such scheme"))
			b.bytes(nil)
		}), creation(2, "/a", 0))
		require.Equal(t, outcome{1, -115}, raw.answer())
		require.True(t, raw.hungUp())
		require.Empty(t, c.Znodes())
	})
}

// The Java client sends its first requests right behind the greeting.
func TestRequestsBehindTheGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		f1.Lag(100 * time.Millisecond)
		raw := dialRaw(t, c.Link("p"), f1)
		sent := later(func() bool {
			raw.send(
				greeting(&rawClient{}, sessionTimeout, 0), creation(1, "/a", 0),
				existence(2, "/a"),
			)
			return true
		})
		require.True(t, raw.welcome())
		require.Equal(t, outcome{1, 0}, raw.answer())
		require.Equal(t, outcome{2, 0}, raw.answer())
		require.True(t, soon(t, sent))

		again := dialRaw(t, c.Link("again"), f1)
		sent = later(func() bool {
			again.send(greeting(raw, sessionTimeout, 0), existence(1, "/a"))
			return true
		})
		require.True(t, again.welcome())
		require.Equal(t, outcome{1, 0}, again.answer())
		require.True(t, soon(t, sent))
	})
}

// A server hangs up on a client that is silent for longer than its session may last, also
// where nobody ends the session.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t, zktest.WithSlowClose(time.Hour))
		mute := dialRaw(t, c.Link("mute"), f1).open(2 * tickTime)
		began := time.Now()
		require.True(t, mute.closed())
		require.Greater(t, time.Since(began), 2*tickTime)
		require.LessOrEqual(t, time.Since(began), 3*tickTime)
	})
}
