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

// syncLimit is how long a server and its leader wait for each other.
const syncLimit = 5 * beat

func TestALaggingFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		slow, quick := at(t, s, f1), at(t, s, f2)
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
		require.NotContains(t, s.Znodes(), "/slow")
		pass(1)
		require.Contains(t, s.Znodes(), "/slow", "its writes take effect later")
		require.True(t, quick.has("/slow"))
		require.Equal(t, "/slow", soon(t, written))
		require.Equal(t, 2*lag, time.Since(began))
		require.True(t, soon(t, read), "a client reads what it wrote")

		f1.Lag(0)
		pass(lag) // nothing overtakes what is under way
		began = time.Now()
		slow.create("/quick", 0)
		require.Equal(t, began, time.Now())
		s.Leader().Lag(time.Hour)
		at(t, s, s.Leader()).create("/leader", 0)
		require.Less(t, time.Since(began), 2*time.Second, "a leader has no lag")
	})
}

func TestReportsLag(t *testing.T) {
	for lag, kept := range map[time.Duration]bool{beat - beat/4: true, beat + beat/4: false} {
		synctest.Test(t, func(t *testing.T) {
			s, f1, _ := three(t)
			p := plugIn(t, s.Link("p"), f1).open(2 * beat)
			f1.Lag(lag)
			pass(2*beat - beat/4)
			p.send(ping())
			require.Equal(t, outcome{-2, 0}, p.answer())
			pass(beat + beat/2)
			require.Equal(t, kept, len(s.Sessions()) == 1)
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
			s, f1, _ := three(t, zktest.WithSeed(1))
			p := plugIn(t, s.Link("p"), f1).open(2 * beat)
			pass(time.Until(s.NextPing()) + beat + beat/2 - 10*time.Millisecond)
			p.send(ping())
			require.Equal(t, outcome{-2, 0}, p.answer())
			pass(time.Until(s.NextPing()) - before)
			f1.Stop()
			pass(beat + 3*beat/4)
			require.Equal(t, lives, len(s.Sessions()) == 1)
		})
	}
}

func TestAServerBehindItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		f1.Lag(time.Second)
		p := plugIn(t, s.Link(""), f2).open(term)
		p.send(creation(1, "/a", 0))
		require.Equal(t, outcome{1, 0}, p.answer())
		for _, c := range []struct {
			seen int64
			want bool
		}{{f2.Zxid(), false}, {f1.Zxid() + 1, false}, {f1.Zxid(), true}} {
			again := plugIn(t, s.Link(""), f1)
			again.send(greeting(p, term, c.seen))
			require.Equal(t, c.want, again.welcome())
		}
		pass(time.Second)
		again := plugIn(t, s.Link(""), f1)
		again.send(greeting(p, term, f2.Zxid()))
		require.True(t, again.welcome())
	})
}

func TestEventsComeInTheOrderOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		f1.Lag(300 * time.Millisecond)
		slow, quick := at(t, s, f1), at(t, s, f2)
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
		s := zktest.Start(t)
		p := plugIn(t, s.Link(""), s.Peer(0)).open(term)
		p.send(ask(1, 3, func(b *buffer) {
			b.bytes([]byte("/a"))
			b.bool(true)
		}), creation(2, "/a", 0))
		require.Equal(t, outcome{1, -101}, p.answer())
		require.Equal(t, outcome{-1, 0}, p.answer())
		require.Equal(t, outcome{2, 0}, p.answer())
	})
}

// A request that is under way through a server when its session moves to another one is refused.
func TestSessionMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		old := plugIn(t, s.Link("old"), f1).open(term)
		f1.Lag(time.Second)
		old.send(creation(1, "/late", 0))
		moved := plugIn(t, s.Link("new"), f2)
		require.True(t, moved.reopen(old))
		began := time.Now()
		require.True(t, old.closed())
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Empty(t, s.Znodes())
		moved.send(creation(1, "/new", 0))
		require.Equal(t, outcome{1, 0}, moved.answer())
		require.Equal(t, []string{"/new"}, s.Znodes())

		// One that arrives first has its effect, though nobody hears of it.
		moved.send(creation(2, "/early", 0))
		synctest.Wait()
		f1.Lag(0)
		require.True(t, plugIn(t, s.Link("old"), f1).reopen(moved))
		require.Equal(t, []string{"/early", "/new"}, s.Znodes())
	})
}

func TestAnIsolatedFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		near := plugIn(t, s.Link("near"), f1).open(syncLimit - 2*beat)
		g := at(t, s, f2)
		near.send(creation(1, "/mine", zk.FlagEphemeral))
		require.Equal(t, outcome{1, 0}, near.answer())
		f1.Isolate()
		began := time.Now()
		for time.Since(began) < syncLimit-beat {
			near.send(existence(2, "/mine"), ping())
			require.Equal(t, outcome{2, 0}, near.answer())
			require.Equal(t, outcome{-2, 0}, near.answer())
			pass(beat / 2)
		}
		near.send(existence(3, "/mine"))
		require.Equal(t, outcome{3, 0}, near.answer(), "what it knows")
		require.Empty(t, s.Znodes(), "the leader has ended the session meanwhile")
		require.Equal(t, []int64{g.SessionID()}, s.Sessions())
		near.send(synchrony(4), creation(5, "/a", 0))
		require.True(t, near.closed(), "what needs the leader hangs until the server gives up")
		require.GreaterOrEqual(t, time.Since(began), syncLimit-beat/2)
		require.LessOrEqual(t, time.Since(began), syncLimit+beat/2)
		greeted := plugIn(t, s.Link("near"), f1)
		greeted.send(greeting(&plug{}, term, 0))
		require.False(t, greeted.welcome(), "and it takes no clients")
		f1.Rejoin()
		require.True(t, at(t, s, f1).State() == zk.StateHasSession)
		require.Empty(t, s.Znodes())
		require.NotContains(t, g.passed(), zk.StateDisconnected)
	})
}

// A follower that is cut off refuses by itself what it knows to be forbidden, and what else
// needs the leader hangs; what was refused keeps nobody's session.
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
				s, f1, f2 := three(t, opts...)
				g := at(t, s, f2)
				_, err := g.Create("/ro", nil, zk.FlagPersistent, zk.WorldACL(zk.PermRead))
				require.NoError(t, err)
				near := plugIn(t, s.Link("near"), f1).open(syncLimit - 2*beat)
				pass(beat)
				f1.Isolate()
				for range 4 {
					pass(beat)
					near.send(ping())
					require.Equal(t, outcome{-2, 0}, near.answer())
				}
				require.Equal(t, []int64{g.SessionID()}, s.Sessions())
				near.send(creation(1, "/ok", 0), creation(2, "/ro/a", 0), ask(3, 1, func(b *buffer) {
					b.bytes([]byte("/no-acl"))
					b.bytes(nil)
					b.acl(nil)
					b.int32(0)
				}))
				for _, o := range want {
					require.Equal(t, o, near.answer())
				}
			})
		})
	}
}

func TestAFollowerRejoinsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		near, far := at(t, s, f1), at(t, s, f2)
		near.create("/mine", zk.FlagEphemeral)
		far.sync()
		_, _, _, err := near.ExistsW("/far")
		require.NoError(t, err)
		f1.Isolate()
		written := later(func() string { return near.create("/near", 0) })
		synced := later(func() string { path, _ := near.Sync("/"); return path })
		far.create("/far", 0)
		hangs(t, written, syncLimit-3*beat)
		hangs(t, synced, 1)
		require.NotContains(t, s.Znodes(), "/near")
		require.Empty(t, near.told())
		f1.Rejoin()
		require.Equal(t, "/near", soon(t, written))
		require.Equal(t, "/", soon(t, synced))
		require.Equal(t, []string{"EventNodeCreated /far"}, near.told())
		require.True(t, far.has("/mine"))
		require.Equal(t, []zk.State(nil), near.passed())
	})
}

// The leader's ping waits where a path is broken, and is answered with the contact, not only at the next beat. A follower
// that dies takes with it whom it has heard since.
func TestReportsComeWithTheContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		p := plugIn(t, s.Link("p"), f1).open(2 * beat)
		for _, step := range []struct {
			kept   bool
			rejoin func()
		}{{true, f1.Rejoin}, {false, func() {}}} {
			f1.Isolate()
			pass(2*beat - beat/4)
			p.send(ping())
			require.Equal(t, outcome{-2, 0}, p.answer())
			pass(beat)
			step.rejoin()
			pass(beat / 8)
			f1.Stop()
			pass(beat)
			require.Equal(t, step.kept, len(s.Sessions()) == 1)
			f1.Rejoin()
			f1.Start()
			again := plugIn(t, s.Link("p"), f1)
			require.Equal(t, step.kept, again.reopen(p))
			p = again
		}
	})
}

func TestAnIsolatedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		old := s.Leader()
		near := plugIn(t, s.Link("near"), old).open(20 * beat)
		other := plugIn(t, s.Link("other"), old).open(20 * beat)
		far := visit(t, s.Link("far"), s.HostProvider(), 20*beat)
		old.Isolate()
		began := time.Now()
		near.send(creation(1, "/pending", 0))
		far.until(zk.StateDisconnected)
		require.Equal(t, syncLimit, time.Since(began).Round(beat))
		require.Nil(t, s.Leader())
		require.False(t, old.Leading())
		far.until(zk.StateHasSession)
		require.Contains(t, []*zktest.Peer{f1, f2}, s.Leader())
		require.True(t, near.closed())
		require.True(t, other.closed())
		require.LessOrEqual(t, time.Since(began), syncLimit+2*beat)
		far.create("/new", 0)
		old.Rejoin()
		require.True(t, at(t, s, old).has("/new"))
		require.False(t, old.Leading())
		pass(time.Minute)
		require.Equal(t, []string{"/new"}, s.Znodes(), "what was pending never took effect")
	})
}

// What a leader knows by himself he goes on to tell.
func TestWhatAnIsolatedLeaderAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		old := s.Leader()
		near := plugIn(t, s.Link("near"), old).open(term)
		other := plugIn(t, s.Link("other"), old).open(term)
		old.Isolate()
		near.send(creation(1, "/pending", 0))
		other.send(synchrony(1), existence(2, "/pending"), ping())
		require.Equal(t, outcome{1, 0}, other.answer(), "a sync is nothing but a read there")
		require.Equal(t, outcome{2, -101}, other.answer())
		require.Equal(t, outcome{-2, 0}, other.answer())
		again := plugIn(t, s.Link("again"), old)
		require.True(t, again.reopen(other), "he asks nobody about a session")
		behind := plugIn(t, s.Link("behind"), f1)
		behind.send(greeting(other, term, 0))
		welcomed := later(behind.welcome)
		hangs(t, welcomed, beat)
		old.Rejoin()
		require.Equal(t, outcome{1, 0}, near.answer(), "and in time, all goes on")
		require.True(t, soon(t, welcomed))
		require.Equal(t, []string{"/pending"}, s.Znodes())
	})
}

// A leader ends the sessions that he does not hear of, though it is he who is cut off.
func TestAnIsolatedLeaderEndsSessions(t *testing.T) {
	for name, rejoins := range map[string]bool{"and is back": true, "and is replaced": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f1, _ := three(t)
				near := visit(t, s.Link("near"), just(s.Leader().Addr()), 2*beat)
				far := visit(t, s.Link("far"), just(f1.Addr()), 2*beat)
				near.create("/near", zk.FlagEphemeral)
				far.create("/far", zk.FlagEphemeral)
				s.Leader().Isolate()
				pass(syncLimit - beat)
				require.Equal(t, []int64{near.SessionID()}, s.Sessions())
				require.Equal(t, []string{"/far", "/near"}, s.Znodes(), "the end cannot be committed")
				require.Equal(t, []zk.State(nil), far.passed())
				if rejoins {
					s.Leader().Rejoin()
					require.Equal(t, []string{"/near"}, s.Znodes())
					far.until(zk.StateExpired)
					return
				}
				far.until(zk.StateDisconnected)
				far.until(zk.StateHasSession)
				require.Contains(t, s.Sessions(), far.SessionID(), "the new leader knows nothing of it")
				require.Contains(t, s.Znodes(), "/far")
			})
		})
	}
}

func TestTheLeaderDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		old := s.Leader()
		a, b := visit(t, s.Link("a"), s.HostProvider(), 20*beat), visit(t, s.Link("b"), just(f2.Addr()), 20*beat)
		gone := visit(t, s.Link("gone"), just(f2.Addr()), 20*beat)
		a.create("/mine", zk.FlagEphemeral)
		gone.create("/gone", zk.FlagEphemeral)
		f1.Lag(time.Minute)
		last := b.create("/last", 0)
		require.Equal(t, int64(1), old.Zxid()>>32)
		gone.sync()
		s.Link("gone").Cut()
		pass(10 * beat) // of its timeout
		ids := s.Sessions()

		a.passed()
		old.Stop()
		require.Contains(t, a.passed(), zk.StateDisconnected, "all clients lose their connections")
		pass(200*time.Millisecond - 1)
		require.Nil(t, s.Leader())
		pass(1)
		require.Same(t, f2, s.Leader(), "the one that has the longest log")
		require.Equal(t, int64(2)<<32, f2.Zxid(), "an epoch of its own")
		require.Equal(t, int64(1), f1.Zxid()>>32, "the others have it with its first transaction")
		elected := time.Now()
		f1.Lag(0)
		a.until(zk.StateHasSession)
		b.until(zk.StateHasSession)
		require.Equal(t, ids, s.Sessions())
		require.True(t, a.has(last))
		require.True(t, a.has("/mine"))
		a.create("/new", 0)
		require.Equal(t, int64(2)<<32+1, f2.Zxid())

		for len(s.Sessions()) == len(ids) && time.Since(elected) < time.Hour {
			pass(beat / 4)
		}
		require.GreaterOrEqual(t, time.Since(elected), 20*beat, "a whole timeout from then on")
		require.LessOrEqual(t, time.Since(elected), 22*beat)
		old.Start()
		require.Equal(t, []string{"/last", "/mine", "/new"}, s.Znodes())
		require.Equal(t, f2.Zxid(), old.Zxid())
		require.False(t, old.Leading())
	})
}

func TestTheLongestLogLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		f2.Lag(time.Minute)
		at(t, s, f1).create("/a", 0)
		s.Leader().Stop()
		pass(time.Second)
		require.Same(t, f1, s.Leader())
		require.Equal(t, []string{"/a"}, s.Znodes())
	})
}

func TestTheHighestIDLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.WithServers(5))
		for i := range 3 {
			require.Same(t, s.Peer(4-i), s.Leader())
			require.True(t, s.Peer(4-i).Leading())
			s.Leader().Stop()
			pass(time.Second)
		}
		require.Nil(t, s.Leader())
	})
}

func TestNoQuorum(t *testing.T) {
	faults := map[string]struct {
		happens, ends func(*zktest.Peer)
		within        time.Duration
	}{
		"stop":    {(*zktest.Peer).Stop, (*zktest.Peer).Start, 0},
		"isolate": {(*zktest.Peer).Isolate, (*zktest.Peer).Rejoin, syncLimit + beat},
		"freeze":  {(*zktest.Peer).Freeze, (*zktest.Peer).Thaw, syncLimit + beat},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f1, f2 := three(t)
				leader := s.Leader()
				g := visit(t, s.Link("g"), just(leader.Addr()), 20*beat)
				g.create("/mine", zk.FlagEphemeral)
				g.passed()
				fault.happens(f1)
				fault.happens(f2)
				pass(fault.within)
				require.Contains(t, g.passed(), zk.StateDisconnected)
				require.Nil(t, s.Leader())
				pass(time.Hour)
				require.NotContains(t, g.passed(), zk.StateHasSession, "nobody is served")
				fault.ends(f1)
				g.until(zk.StateHasSession)
				require.True(t, g.has("/mine"))
				g.create("/new", 0)
				fault.ends(f2)
				require.True(t, at(t, s, f2).has("/new"))
			})
		})
	}
}

func TestAFrozenFollower(t *testing.T) {
	for _, c := range []struct {
		frozen time.Duration
		stays  bool
	}{{syncLimit - beat, true}, {syncLimit + beat, false}} {
		t.Run(c.frozen.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f1, f2 := three(t)
				p, far := plugIn(t, s.Link("p"), f1).open(20*beat), at(t, s, f2)
				f1.Freeze()
				p.send(existence(1, "/a"))
				answer := later(p.answer)
				far.create("/a", 0)
				hangs(t, answer, c.frozen)
				f1.Thaw()
				if !c.stays {
					require.Equal(t, outcome{}, soon(t, answer), "the others have given it up")
					require.True(t, at(t, s, f1).has("/a"))
					return
				}
				require.Equal(t, outcome{1, 0}, soon(t, answer), "what it missed arrives first")
			})
		})
	}
}

func TestAFrozenLeader(t *testing.T) {
	for _, c := range []struct {
		frozen time.Duration
		stays  bool
	}{{syncLimit - beat, true}, {syncLimit + beat, false}} {
		t.Run(c.frozen.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f1, _ := three(t)
				leader := s.Leader()
				p := plugIn(t, s.Link("p"), leader).open(20 * beat)
				far := visit(t, s.Link("far"), just(f1.Addr()), 20*beat)
				leader.Freeze()
				p.send(creation(1, "/pending", 0), existence(2, "/new"))
				answer := later(p.answer)
				require.False(t, far.has("/new"), "the others go on to answer reads")
				hangs(t, answer, c.frozen)
				if !c.stays {
					far.until(zk.StateHasSession)
					far.create("/new", 0)
				}
				leader.Thaw()
				require.Equal(t, c.stays, leader.Leading())
				if !c.stays {
					require.Equal(t, outcome{}, soon(t, answer), "it serves no old state as a leader")
					require.Equal(t, []string{"/new"}, s.Znodes())
					require.True(t, at(t, s, leader).has("/new"))
					return
				}
				require.Equal(t, outcome{1, 0}, soon(t, answer))
				require.Equal(t, outcome{2, -101}, p.answer())
			})
		})
	}
}

func TestASingleServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.WithTick(beat))
		only := s.Peer(0)
		g := visit(t, s.Link("g"), just(only.Addr()), term)
		g.create("/a", 0)
		g.create("/mine", zk.FlagEphemeral)
		id, zxid := g.SessionID(), only.Zxid()
		only.Stop()
		g.until(zk.StateDisconnected)
		require.Nil(t, s.Leader())
		pass(time.Hour)
		require.NotContains(t, g.passed(), zk.StateConnected)
		only.Start()
		g.until(zk.StateHasSession)
		require.Equal(t, id, g.SessionID(), "sessions do not end while there is nobody to end them")
		require.Equal(t, []string{"/a", "/mine"}, s.Znodes())
		require.Equal(t, zxid, only.Zxid())

		only.Isolate()
		g.create("/b", 0)
		require.True(t, only.Leading())

		p := plugIn(t, s.Link("p"), only).open(20 * beat)
		only.Freeze()
		p.send(creation(1, "/c", 0))
		answer := later(p.answer)
		hangs(t, answer, 19*beat)
		only.Thaw()
		require.Equal(t, outcome{1, 0}, soon(t, answer), "there is nobody who could have given it up")

		for i, order := range [][]func(){{only.Freeze, only.Stop}, {only.Stop, only.Freeze}} {
			g.passed()
			for _, step := range order {
				step()
			}
			only.Start()
			g.until(zk.StateHasSession)
			g.create(fmt.Sprintf("/d%d", i), 0)
		}
	})
}

// A follower leaves a dead leader at once, and one that is cut off when nothing has come for long.
func TestAFollowerThatMissedTheElection(t *testing.T) {
	for i, name := range []string{"and follows", "and leads"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f1, f2 := three(t)
				isolated := []*zktest.Peer{f1, f2}[i]
				p := plugIn(t, s.Link("p"), isolated).open(20 * beat)
				isolated.Isolate()
				s.Leader().Stop()
				require.Nil(t, s.Leader())
				p.send(existence(1, "/a"))
				require.Equal(t, outcome{1, -101}, p.answer())
				isolated.Rejoin()
				pass(time.Second)
				require.Same(t, f2, s.Leader())
				closed := later(p.closed)
				pass(beat)
				require.Len(t, closed, 1)
				at(t, s, f2).create("/a", 0)
				require.True(t, at(t, s, f1).has("/a"))
			})
		})
	}
}

// What was on its way under the old leader is no hindrance under the new one, and what was not told him is forgotten.
func TestAServerStartsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, f2 := three(t)
		far := at(t, s, f2)
		f1.Lag(time.Hour)
		far.create("/b", 0)
		f1.Stop()
		f1.Lag(0)
		f1.Start()
		near := at(t, s, f1)
		require.True(t, near.has("/b"))
		began := time.Now()
		far.create("/c", 0)
		near.sync()
		require.True(t, near.has("/c"))
		require.Equal(t, began, time.Now())
	})
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		p := plugIn(t, s.Link("p"), f1).open(2 * beat)
		pass(2*beat - beat/4)
		p.send(ping())
		require.Equal(t, outcome{-2, 0}, p.answer())
		f1.Stop()
		f1.Start()
		pass(beat + beat/2)
		require.Empty(t, s.Sessions())
	})
}

// A create that the leader has taken may be on its way still when its client is back at the same server: what the client asks there
// comes behind it, and what it asks at another server once that has synced.
func TestSlowCommits(t *testing.T) {
	const slow = 300 * time.Millisecond
	for name, elsewhere := range map[string]bool{"same server": false, "another server": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := zktest.Start(t, zktest.WithServers(3), zktest.WithTick(beat), zktest.WithSlowCommit(slow))
				from, to := s.Peer(0), s.Peer(0)
				if elsewhere {
					to = s.Peer(1)
				}
				p := plugIn(t, s.Link("a"), from).open(term)
				began := time.Now()
				p.send(creation(1, "/a", 0))
				time.Sleep(slow / 3)
				s.Link("a").Reset()
				again := plugIn(t, s.Link("a"), to)
				require.True(t, again.reopen(p))
				require.Less(t, time.Since(began), slow, "the session is taken up at once")
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
