package zktest_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// syncLimit is how long a server and its leader wait for each other.
const syncLimit = 5 * tickTime

func TestALaggingFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		slow, quick := connectTo(t, c, f1), connectTo(t, c, f2)
		const lag = time.Second
		f1.Lag(lag)
		began := time.Now()
		for i := range 3 {
			quick.create(fmt.Sprintf("/%d", i), 0)
		}
		require.Equal(t, began, time.Now())
		require.False(t, slow.has("/0"), "it answers from the past")
		require.Less(t, f1.Zxid(), f2.Zxid())
		slow.sync()
		require.Equal(t, 2*lag, time.Since(began), "there and back")
		require.True(t, slow.has("/2"))

		began = time.Now()
		written := later(func() string { return slow.create("/slow", 0) })
		synctest.Wait()
		read := later(func() bool { return slow.has("/slow") })
		pass(lag - 1)
		require.NotContains(t, c.Znodes(), "/slow")
		pass(1)
		require.Contains(t, c.Znodes(), "/slow", "its writes take effect later")
		require.True(t, quick.has("/slow"))
		require.Equal(t, "/slow", soon(t, written))
		require.Equal(t, 2*lag, time.Since(began))
		require.True(t, soon(t, read), "a client reads what it wrote")

		f1.Lag(0)
		pass(lag) // nothing overtakes what is under way
		began = time.Now()
		slow.create("/quick", 0)
		require.Equal(t, began, time.Now())
		c.Leader().Lag(time.Hour)
		connectTo(t, c, c.Leader()).create("/leader", 0)
		require.Less(t, time.Since(began), 2*time.Second, "a leader has no lag")
	})
}

func TestReportsLag(t *testing.T) {
	for lag, kept := range map[time.Duration]bool{
		tickTime - tickTime/4: true, tickTime + tickTime/4: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, f1, _ := three(t)
			raw := dialRaw(t, c.Link("p"), f1).open(2 * tickTime)
			f1.Lag(lag)
			pass(2*tickTime - tickTime/4)
			raw.send(ping())
			require.Equal(t, outcome{-2, 0}, raw.answer())
			pass(tickTime + tickTime/2)
			require.Equal(t, kept, len(c.Sessions()) == 1)
		})
	}
}

// What was heard right before a ping of the leader is reported by it, and dies with the
// follower before.
func TestNextPing(t *testing.T) {
	for before, lives := range map[time.Duration]bool{
		time.Millisecond:  false,
		-time.Millisecond: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, f1, _ := three(t, zktest.WithSeed(1))
			raw := dialRaw(t, c.Link("p"), f1).open(2 * tickTime)
			for range 3 {
				pass(time.Until(c.NextPing()))
			}
			pass(time.Until(c.NextPing()) - 10*time.Millisecond)
			raw.send(ping())
			require.Equal(t, outcome{-2, 0}, raw.answer())
			pass(time.Until(c.NextPing()) - before)
			f1.Stop()
			pass(tickTime + 3*tickTime/4)
			require.Equal(t, lives, len(c.Sessions()) == 1)
		})
	}
}

// A real leader waits for half a tick at least, and then works before it waits again.
func TestPingsComeLate(t *testing.T) {
	for seed := range uint64(3) { // 0 is none
		synctest.Test(t, func(t *testing.T) {
			c, _, _ := three(t, zktest.WithSeed(seed))
			pass(time.Until(c.NextPing()))
			var late []time.Duration
			for range 50 {
				began := time.Now()
				pass(time.Until(c.NextPing()))
				late = append(late, time.Since(began)-tickTime/2)
			}
			slices.Sort(late)
			if seed == 0 {
				require.Equal(t, make([]time.Duration, 50), late)
				return
			}
			require.GreaterOrEqual(t, late[0], time.Duration(0))
			require.Less(t, late[0], tickTime/100)
			require.Less(t, late[49], tickTime/20)
			require.Greater(t, late[49], tickTime/25)
		})
	}
}

func TestAServerBehindItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		f1.Lag(time.Second)
		raw := dialRaw(t, c.Link(""), f2).open(sessionTimeout)
		raw.send(creation(1, "/a", 0))
		require.Equal(t, outcome{1, 0}, raw.answer())
		for _, try := range []struct {
			seen int64
			want bool
		}{{f2.Zxid(), false}, {f1.Zxid() + 1, false}, {f1.Zxid(), true}} {
			again := dialRaw(t, c.Link(""), f1)
			again.send(greeting(raw, sessionTimeout, try.seen))
			require.Equal(t, try.want, again.welcome())
		}
		pass(time.Second)
		again := dialRaw(t, c.Link(""), f1)
		again.send(greeting(raw, sessionTimeout, f2.Zxid()))
		require.True(t, again.welcome())
	})
}

func TestEventsComeInTheOrderOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		f1.Lag(300 * time.Millisecond)
		slow, quick := connectTo(t, c, f1), connectTo(t, c, f2)
		var want []string
		for i := range 20 {
			path := fmt.Sprintf("/%02d", 19-i)
			_, _, _, err := slow.ExistsW(path)
			require.NoError(t, err)
			want = append(want, "EventNodeCreated "+path)
		}
		for i := range 20 {
			quick.create(fmt.Sprintf("/%02d", 19-i), 0)
		}
		require.Empty(t, slow.told())
		slow.sync()
		require.Equal(t, want, slow.told(), "and all before the answer to the sync")
	})
}

// An answer to a read never shows what the events ahead of it do not.
func TestAnEventComesBeforeWhatItTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		raw := dialRaw(t, c.Link(""), c.Server(0)).open(sessionTimeout)
		raw.send(ask(1, 3, func(b *buffer) {
			b.bytes([]byte("/a"))
			b.bool(true)
		}), creation(2, "/a", 0))
		require.Equal(t, outcome{1, -101}, raw.answer())
		require.Equal(t, outcome{-1, 0}, raw.answer())
		require.Equal(t, outcome{2, 0}, raw.answer())
	})
}

// A request that is under way through a server when its session moves to another one is
// refused.
func TestSessionMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		old := dialRaw(t, c.Link("old"), f1).open(sessionTimeout)
		f1.Lag(time.Second)
		old.send(creation(1, "/late", 0))
		moved := dialRaw(t, c.Link("new"), f2)
		require.True(t, moved.reopen(old))
		began := time.Now()
		require.True(t, old.closed())
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Empty(t, c.Znodes())
		moved.send(creation(1, "/new", 0))
		require.Equal(t, outcome{1, 0}, moved.answer())
		require.Equal(t, []string{"/new"}, c.Znodes())

		// One that arrives first has its effect, though nobody hears of it.
		moved.send(creation(2, "/early", 0))
		synctest.Wait()
		f1.Lag(0)
		require.True(t, dialRaw(t, c.Link("old"), f1).reopen(moved))
		require.Equal(t, []string{"/early", "/new"}, c.Znodes())
	})
}

// A sync through a follower is not answered in a session that the leader is about to end,
// however long that takes.
func TestASyncBehindTheEndOfItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t, zktest.WithSlowClose(2*time.Second))
		raw := dialRaw(t, c.Link(""), f1).open(sessionTimeout)
		raw.send(synchrony(1))
		require.Equal(t, outcome{1, 0}, raw.answer())
		c.ExpireSession(raw.session)
		began := time.Now()
		raw.send(synchrony(2))
		require.True(t, raw.closed())
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

// The answer to a write has its own zxid, also where it has to wait for what came through
// the server that the session has left.
func TestTheAnswerToAWriteHasItsZxid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t, zktest.WithSlowCommit(2*time.Second))
		cl := connectTo(t, c, f2)
		old := dialRaw(t, c.Link("old"), f1).open(sessionTimeout)
		f1.Lag(time.Second)
		old.send(creation(1, "/late", 0))
		moved := dialRaw(t, c.Link("new"), c.Leader())
		require.True(t, moved.reopen(old))
		moved.send(creation(1, "/new", 0))
		answer := moved.frame()
		require.EqualValues(t, 1, answer.getInt32())
		zxid := answer.getInt64()
		require.Greater(t, c.Leader().Zxid(), zxid, "it has waited")
		_, err := cl.Sync("/new")
		require.NoError(t, err)
		_, stat, err := cl.Get("/new")
		require.NoError(t, err)
		require.Equal(t, stat.Czxid, zxid)
	})
}

func TestAnIsolatedFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		near := dialRaw(t, c.Link("near"), f1).open(syncLimit - 2*tickTime)
		cl := connectTo(t, c, f2)
		near.send(creation(1, "/mine", zk.FlagEphemeral))
		require.Equal(t, outcome{1, 0}, near.answer())
		f1.Isolate()
		began := time.Now()
		for time.Since(began) < syncLimit-tickTime {
			near.send(existence(2, "/mine"), ping())
			require.Equal(t, outcome{2, 0}, near.answer())
			require.Equal(t, outcome{-2, 0}, near.answer())
			pass(tickTime / 2)
		}
		near.send(existence(3, "/mine"))
		require.Equal(t, outcome{3, 0}, near.answer(), "what it knows")
		require.Empty(t, c.Znodes(), "the leader has ended the session meanwhile")
		require.Equal(t, []int64{cl.SessionID()}, c.Sessions())
		near.send(synchrony(4), creation(5, "/a", 0))
		require.True(
			t, near.closed(), "what needs the leader hangs until the server gives up",
		)
		require.GreaterOrEqual(t, time.Since(began), syncLimit-tickTime/2)
		require.LessOrEqual(t, time.Since(began), syncLimit+tickTime/2)
		greeted := dialRaw(t, c.Link("near"), f1)
		greeted.send(greeting(&rawClient{}, sessionTimeout, 0))
		require.False(t, greeted.welcome(), "and it takes no clients")
		f1.Rejoin()
		require.True(t, connectTo(t, c, f1).State() == zk.StateHasSession)
		require.Empty(t, c.Znodes())
		require.NotContains(t, cl.passed(), zk.StateDisconnected)
	})
}

// A follower that is cut off refuses by itself what it knows to be forbidden, and what
// else needs the leader hangs; what was refused keeps nobody's session.
func TestAnIsolatedFollowerRefusesEagerly(t *testing.T) {
	for eager, want := range map[bool][]outcome{
		true:  {{2, -102}, {3, -114}, {}},
		false: {{}},
	} {
		t.Run(fmt.Sprint(eager), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts []zktest.Option
				if eager {
					opts = append(opts, zktest.WithEagerACLCheck())
				}
				c, f1, f2 := three(t, opts...)
				cl := connectTo(t, c, f2)
				_, err := cl.Create(
					"/ro", nil, zk.FlagPersistent, zk.WorldACL(zk.PermRead),
				)
				require.NoError(t, err)
				near := dialRaw(t, c.Link("near"), f1).open(syncLimit - 2*tickTime)
				pass(tickTime)
				f1.Isolate()
				for range 4 {
					pass(tickTime)
					near.send(ping())
					require.Equal(t, outcome{-2, 0}, near.answer())
				}
				require.Equal(t, []int64{cl.SessionID()}, c.Sessions())
				withoutACL := ask(3, 1, func(b *buffer) {
					b.bytes([]byte("/no-acl"))
					b.bytes(nil)
					b.acl(nil)
					b.int32(0)
				})
				near.send(creation(1, "/ok", 0), creation(2, "/ro/a", 0), withoutACL)
				for _, o := range want {
					require.Equal(t, o, near.answer())
				}
			})
		})
	}
}

func TestAFollowerRejoinsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		near, far := connectTo(t, c, f1), connectTo(t, c, f2)
		near.create("/mine", zk.FlagEphemeral)
		far.sync()
		_, _, _, err := near.ExistsW("/far")
		require.NoError(t, err)
		f1.Isolate()
		written := later(func() string { return near.create("/near", 0) })
		synced := later(func() string { path, _ := near.Sync("/"); return path })
		far.create("/far", 0)
		hangs(t, written, syncLimit-3*tickTime)
		hangs(t, synced, 1)
		require.NotContains(t, c.Znodes(), "/near")
		require.Empty(t, near.told())
		f1.Rejoin()
		require.Equal(t, "/near", soon(t, written))
		require.Equal(t, "/", soon(t, synced))
		require.Equal(t, []string{"EventNodeCreated /far"}, near.told())
		require.True(t, far.has("/mine"))
		require.Equal(t, []zk.State(nil), near.passed())
	})
}

// The leader's ping waits where a path is broken, and is answered with the contact, not
// only at its next ping. A follower that dies takes with it whom it has heard since.
func TestReportsComeWithTheContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		raw := dialRaw(t, c.Link("p"), f1).open(2 * tickTime)
		for _, step := range []struct {
			kept   bool
			rejoin func()
		}{{true, f1.Rejoin}, {false, func() {}}} {
			f1.Isolate()
			pass(2*tickTime - tickTime/4)
			raw.send(ping())
			require.Equal(t, outcome{-2, 0}, raw.answer())
			pass(tickTime)
			step.rejoin()
			pass(tickTime / 8)
			f1.Stop()
			pass(tickTime)
			require.Equal(t, step.kept, len(c.Sessions()) == 1)
			f1.Rejoin()
			f1.Start()
			again := dialRaw(t, c.Link("p"), f1)
			require.Equal(t, step.kept, again.reopen(raw))
			raw = again
		}
	})
}

func TestAnIsolatedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		old := c.Leader()
		near := dialRaw(t, c.Link("near"), old).open(20 * tickTime)
		other := dialRaw(t, c.Link("other"), old).open(20 * tickTime)
		far := connect(t, c.Link("far"), c.HostProvider(), 20*tickTime)
		old.Isolate()
		began := time.Now()
		near.send(creation(1, "/pending", 0))
		far.until(zk.StateDisconnected)
		require.Equal(t, syncLimit, time.Since(began).Round(tickTime))
		require.Nil(t, c.Leader())
		require.False(t, old.Leading())
		far.until(zk.StateHasSession)
		require.Contains(t, []*zktest.Server{f1, f2}, c.Leader())
		require.True(t, near.closed())
		require.True(t, other.closed())
		require.LessOrEqual(t, time.Since(began), syncLimit+2*tickTime)
		far.create("/new", 0)
		old.Rejoin()
		require.True(t, connectTo(t, c, old).has("/new"))
		require.False(t, old.Leading())
		pass(time.Minute)
		require.Equal(
			t, []string{"/new"}, c.Znodes(), "what was pending never took effect",
		)
	})
}

// What a leader knows by himself he goes on to tell.
func TestWhatAnIsolatedLeaderAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		old := c.Leader()
		near := dialRaw(t, c.Link("near"), old).open(sessionTimeout)
		other := dialRaw(t, c.Link("other"), old).open(sessionTimeout)
		old.Isolate()
		near.send(creation(1, "/pending", 0))
		other.send(synchrony(1), existence(2, "/pending"), ping())
		require.Equal(
			t, outcome{1, 0}, other.answer(), "a sync is nothing but a read there",
		)
		require.Equal(t, outcome{2, -101}, other.answer())
		require.Equal(t, outcome{-2, 0}, other.answer())
		again := dialRaw(t, c.Link("again"), old)
		require.True(t, again.reopen(other), "he asks nobody about a session")
		behind := dialRaw(t, c.Link("behind"), f1)
		behind.send(greeting(other, sessionTimeout, 0))
		welcomed := later(behind.welcome)
		hangs(t, welcomed, tickTime)
		old.Rejoin()
		require.Equal(t, outcome{1, 0}, near.answer(), "and in time, all goes on")
		require.True(t, soon(t, welcomed))
		require.Equal(t, []string{"/pending"}, c.Znodes())
	})
}

// A leader ends the sessions that he does not hear of, though it is he who is cut off.
func TestAnIsolatedLeaderEndsSessions(t *testing.T) {
	for name, rejoins := range map[string]bool{
		"and is back": true, "and is replaced": false,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f1, _ := three(t)
				leader := oneServer(c.Leader().Addr())
				near := connect(t, c.Link("near"), leader, 2*tickTime)
				far := connect(t, c.Link("far"), oneServer(f1.Addr()), 2*tickTime)
				near.create("/near", zk.FlagEphemeral)
				far.create("/far", zk.FlagEphemeral)
				c.Leader().Isolate()
				pass(syncLimit - tickTime)
				require.Equal(t, []int64{near.SessionID()}, c.Sessions())
				require.Equal(
					t, []string{"/far", "/near"}, c.Znodes(),
					"the end cannot be committed",
				)
				require.Equal(t, []zk.State(nil), far.passed())
				if rejoins {
					c.Leader().Rejoin()
					require.Equal(t, []string{"/near"}, c.Znodes())
					far.until(zk.StateExpired)
					return
				}
				far.until(zk.StateDisconnected)
				far.until(zk.StateHasSession)
				require.Contains(
					t, c.Sessions(), far.SessionID(),
					"the new leader knows nothing of it",
				)
				require.Contains(t, c.Znodes(), "/far")
			})
		})
	}
}

func TestTheLeaderDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		old := c.Leader()
		a := connect(t, c.Link("a"), c.HostProvider(), 20*tickTime)
		b := connect(t, c.Link("b"), oneServer(f2.Addr()), 20*tickTime)
		gone := connect(t, c.Link("gone"), oneServer(f2.Addr()), 20*tickTime)
		a.create("/mine", zk.FlagEphemeral)
		gone.create("/gone", zk.FlagEphemeral)
		f1.Lag(time.Minute)
		last := b.create("/last", 0)
		require.Equal(t, int64(1), old.Zxid()>>32)
		gone.sync()
		c.Link("gone").Cut()
		pass(10 * tickTime) // of its timeout
		ids := c.Sessions()

		a.passed()
		old.Stop()
		require.Contains(
			t, a.passed(), zk.StateDisconnected, "all clients lose their connections",
		)
		pass(200*time.Millisecond - 1)
		require.Nil(t, c.Leader())
		pass(1)
		require.Same(t, f2, c.Leader(), "the one that has the longest log")
		require.Equal(t, int64(2)<<32, f2.Zxid(), "an epoch of its own")
		require.Equal(
			t, int64(1), f1.Zxid()>>32, "the others have it with its first transaction",
		)
		elected := time.Now()
		f1.Lag(0)
		a.until(zk.StateHasSession)
		b.until(zk.StateHasSession)
		require.Equal(t, ids, c.Sessions())
		require.True(t, a.has(last))
		require.True(t, a.has("/mine"))
		a.create("/new", 0)
		require.Equal(t, int64(2)<<32+1, f2.Zxid())

		for len(c.Sessions()) == len(ids) && time.Since(elected) < time.Hour {
			pass(tickTime / 4)
		}
		require.GreaterOrEqual(
			t, time.Since(elected), 20*tickTime, "a whole timeout from then on",
		)
		require.LessOrEqual(t, time.Since(elected), 22*tickTime)
		old.Start()
		require.Equal(t, []string{"/last", "/mine", "/new"}, c.Znodes())
		require.Equal(t, f2.Zxid(), old.Zxid())
		require.False(t, old.Leading())
	})
}

func TestTheLongestLogLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		f2.Lag(time.Minute)
		connectTo(t, c, f1).create("/a", 0)
		c.Leader().Stop()
		pass(time.Second)
		require.Same(t, f1, c.Leader())
		require.Equal(t, []string{"/a"}, c.Znodes())
	})
}

func TestTheHighestIDLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t, zktest.WithServers(5))
		for i := range 3 {
			require.Same(t, c.Server(4-i), c.Leader())
			require.True(t, c.Server(4-i).Leading())
			c.Leader().Stop()
			pass(time.Second)
		}
		require.Nil(t, c.Leader())
	})
}

func TestNoQuorum(t *testing.T) {
	faults := map[string]struct {
		happens, ends func(*zktest.Server)
		within        time.Duration
	}{
		"stop": {(*zktest.Server).Stop, (*zktest.Server).Start, 0},
		"isolate": {
			(*zktest.Server).Isolate, (*zktest.Server).Rejoin, syncLimit + tickTime,
		},
		"freeze": {(*zktest.Server).Freeze, (*zktest.Server).Thaw, syncLimit + tickTime},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f1, f2 := three(t)
				leader := c.Leader()
				cl := connect(t, c.Link("g"), oneServer(leader.Addr()), 20*tickTime)
				cl.create("/mine", zk.FlagEphemeral)
				cl.passed()
				fault.happens(f1)
				fault.happens(f2)
				pass(fault.within)
				require.Contains(t, cl.passed(), zk.StateDisconnected)
				require.Nil(t, c.Leader())
				pass(time.Hour)
				require.NotContains(
					t, cl.passed(), zk.StateHasSession, "nobody is served",
				)
				fault.ends(f1)
				cl.until(zk.StateHasSession)
				require.True(t, cl.has("/mine"))
				cl.create("/new", 0)
				fault.ends(f2)
				require.True(t, connectTo(t, c, f2).has("/new"))
			})
		})
	}
}

func TestAFrozenFollower(t *testing.T) {
	for _, tc := range []struct {
		frozen time.Duration
		stays  bool
	}{{syncLimit - tickTime, true}, {syncLimit + tickTime, false}} {
		t.Run(tc.frozen.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f1, f2 := three(t)
				raw, far := dialRaw(
					t, c.Link("p"), f1,
				).open(20*tickTime), connectTo(t, c, f2)
				f1.Freeze()
				raw.send(existence(1, "/a"))
				answer := later(raw.answer)
				far.create("/a", 0)
				hangs(t, answer, tc.frozen)
				f1.Thaw()
				if !tc.stays {
					require.Equal(
						t, outcome{}, soon(t, answer), "the others have given it up",
					)
					require.True(t, connectTo(t, c, f1).has("/a"))
					return
				}
				require.Equal(
					t, outcome{1, 0}, soon(t, answer), "what it missed arrives first",
				)
			})
		})
	}
}

func TestAFrozenLeader(t *testing.T) {
	for _, tc := range []struct {
		frozen time.Duration
		stays  bool
	}{{syncLimit - tickTime, true}, {syncLimit + tickTime, false}} {
		t.Run(tc.frozen.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f1, _ := three(t)
				leader := c.Leader()
				raw := dialRaw(t, c.Link("p"), leader).open(20 * tickTime)
				far := connect(t, c.Link("far"), oneServer(f1.Addr()), 20*tickTime)
				leader.Freeze()
				raw.send(creation(1, "/pending", 0), existence(2, "/new"))
				answer := later(raw.answer)
				require.False(t, far.has("/new"), "the others go on to answer reads")
				hangs(t, answer, tc.frozen)
				if !tc.stays {
					far.until(zk.StateHasSession)
					far.create("/new", 0)
				}
				leader.Thaw()
				require.Equal(t, tc.stays, leader.Leading())
				if !tc.stays {
					require.Equal(
						t, outcome{}, soon(t, answer),
						"it serves no old state as a leader",
					)
					require.Equal(t, []string{"/new"}, c.Znodes())
					require.True(t, connectTo(t, c, leader).has("/new"))
					return
				}
				require.Equal(t, outcome{1, 0}, soon(t, answer))
				require.Equal(t, outcome{2, -101}, raw.answer())
			})
		})
	}
}

func TestASingleServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t, zktest.WithTick(tickTime))
		only := c.Server(0)
		cl := connect(t, c.Link("g"), oneServer(only.Addr()), sessionTimeout)
		cl.create("/a", 0)
		cl.create("/mine", zk.FlagEphemeral)
		id, zxid := cl.SessionID(), only.Zxid()
		only.Stop()
		cl.until(zk.StateDisconnected)
		require.Nil(t, c.Leader())
		pass(time.Hour)
		require.NotContains(t, cl.passed(), zk.StateConnected)
		only.Start()
		cl.until(zk.StateHasSession)
		require.Equal(
			t, id, cl.SessionID(),
			"sessions do not end while there is nobody to end them",
		)
		require.Equal(t, []string{"/a", "/mine"}, c.Znodes())
		require.Equal(t, zxid, only.Zxid())

		only.Isolate()
		cl.create("/b", 0)
		require.True(t, only.Leading())

		raw := dialRaw(t, c.Link("p"), only).open(20 * tickTime)
		only.Freeze()
		raw.send(creation(1, "/c", 0))
		answer := later(raw.answer)
		hangs(t, answer, 19*tickTime)
		only.Thaw()
		require.Equal(
			t, outcome{1, 0}, soon(t, answer),
			"there is nobody who could have given it up",
		)

		for i, order := range [][]func(){
			{only.Freeze, only.Stop}, {only.Stop, only.Freeze},
		} {
			cl.passed()
			for _, step := range order {
				step()
			}
			only.Start()
			cl.until(zk.StateHasSession)
			cl.create(fmt.Sprintf("/d%d", i), 0)
		}
	})
}

// A follower leaves a dead leader at once, and one that is cut off when nothing has come
// for long.
func TestAFollowerThatMissedTheElection(t *testing.T) {
	for i, name := range []string{"and follows", "and leads"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f1, f2 := three(t)
				isolated := []*zktest.Server{f1, f2}[i]
				raw := dialRaw(t, c.Link("p"), isolated).open(20 * tickTime)
				isolated.Isolate()
				c.Leader().Stop()
				require.Nil(t, c.Leader())
				raw.send(existence(1, "/a"))
				require.Equal(t, outcome{1, -101}, raw.answer())
				isolated.Rejoin()
				pass(time.Second)
				require.Same(t, f2, c.Leader())
				closed := later(raw.closed)
				pass(tickTime)
				require.Len(t, closed, 1)
				connectTo(t, c, f2).create("/a", 0)
				require.True(t, connectTo(t, c, f1).has("/a"))
			})
		})
	}
}

// What was on its way under the old leader is no hindrance under the new one, and what
// was not told him is forgotten.
func TestAServerStartsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, f2 := three(t)
		far := connectTo(t, c, f2)
		f1.Lag(time.Hour)
		far.create("/b", 0)
		f1.Stop()
		f1.Lag(0)
		f1.Start()
		near := connectTo(t, c, f1)
		require.True(t, near.has("/b"))
		began := time.Now()
		far.create("/c", 0)
		near.sync()
		require.True(t, near.has("/c"))
		require.Equal(t, began, time.Now())
	})
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		raw := dialRaw(t, c.Link("p"), f1).open(2 * tickTime)
		pass(2*tickTime - tickTime/4)
		raw.send(ping())
		require.Equal(t, outcome{-2, 0}, raw.answer())
		f1.Stop()
		f1.Start()
		pass(tickTime + tickTime/2)
		require.Empty(t, c.Sessions())
	})
}

// A create that the leader has taken may be on its way still when its client is back at
// the same server: what the client asks there comes behind it, and what it asks at
// another server once that has synced.
func TestSlowCommits(t *testing.T) {
	const slow = 300 * time.Millisecond
	for name, elsewhere := range map[string]bool{
		"same server": false, "another server": true,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := zktest.Start(
					t, zktest.WithServers(3), zktest.WithTick(tickTime),
					zktest.WithSlowCommit(slow),
				)
				from, to := c.Server(0), c.Server(0)
				if elsewhere {
					to = c.Server(1)
				}
				raw := dialRaw(t, c.Link("a"), from).open(sessionTimeout)
				began := time.Now()
				raw.send(creation(1, "/a", 0))
				time.Sleep(slow / 3)
				c.Link("a").Reset()
				again := dialRaw(t, c.Link("a"), to)
				require.True(t, again.reopen(raw))
				require.Less(
					t, time.Since(began), slow, "the session is taken up at once",
				)
				if elsewhere {
					again.send(existence(1, "/a"))
					require.Equal(t, outcome{1, -101}, again.answer(), "not yet")
					again.send(synchrony(2))
					require.Equal(t, outcome{2, 0}, again.answer())
				}
				again.send(existence(3, "/a"))
				require.Equal(t, outcome{3, 0}, again.answer())
				require.Equal(t, slow, time.Since(began))
			})
		})
	}
}
