package zktest_test

import (
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

func TestCutAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.WithServers(3))
		require.Same(t, s.Link("a"), s.Link("a"))
		a, b := visit(t, s.Link("a"), s.HostProvider(), term), visit(t, s.Link("b"), s.HostProvider(), term)
		s.Link("a").Reset()
		a.until(zk.StateDisconnected)
		a.until(zk.StateHasSession)
		s.Link("a").Cut()
		a.until(zk.StateDisconnected)
		for _, p := range s.Peers() {
			_, err := s.Link("a").Dial("tcp", p.Addr(), time.Second)
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		pass(term / 2)
		require.Equal(t, zk.StateHasSession, b.State())
		s.Link("a").Heal()
		a.until(zk.StateHasSession)
		require.Equal(t, []zk.State(nil), b.passed(), "links are independent of each other")
	})
}

func TestDialIsTheLinkWithoutAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		s.Link("").Cut()
		_, err := s.Dial("tcp", s.Peer(0).Addr(), time.Second)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// What is sent over a stalled link arrives after Heal, in order. Nothing else gets through, and no connection breaks.
func TestStall(t *testing.T) {
	for name, direction := range map[string]zktest.Direction{"to server": zktest.ToServer, "to client": zktest.ToClient, "both": zktest.Both} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := zktest.Start(t)
				link := s.Link("p")
				p := plugIn(t, link, s.Peer(0)).open(20 * beat)
				other := plugIn(t, s.Link("other"), s.Peer(0)).open(20 * beat)
				link.Stall(direction)
				p.send(creation(1, "/a", 0), existence(2, "/a"))
				answer := later(p.answer)
				hangs(t, answer, 10*beat)
				if direction == zktest.ToClient {
					require.Equal(t, []string{"/a"}, s.Znodes(), "the other direction works")
				} else {
					require.Empty(t, s.Znodes())
				}
				other.send(ping())
				require.Equal(t, outcome{-2, 0}, other.answer())
				link.Heal()
				require.Equal(t, outcome{1, 0}, soon(t, answer))
				require.Equal(t, outcome{2, 0}, p.answer())
				require.Equal(t, []string{"/a"}, s.Znodes())
			})
		})
	}
}

// A server that hears nothing ends the session, though its pings get through to the client.
func TestAStallEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.WithTick(beat))
		link := s.Link("g")
		g := visit(t, link, s.HostProvider(), term)
		g.create("/mine", zk.FlagEphemeral)
		g.passed()
		link.Stall(zktest.ToServer)
		pass(term + beat)
		require.Empty(t, s.Sessions())
		require.Empty(t, s.Znodes())
		link.Heal()
		g.until(zk.StateExpired)
		g.until(zk.StateHasSession)
	})
}

func TestDialsInAStall(t *testing.T) {
	for name, fault := range map[string]struct{ happens, ends func(*zktest.Link) }{
		"stalled one way": {func(l *zktest.Link) { l.Stall(zktest.ToClient) }, (*zktest.Link).Heal},
		"stalled":         {func(l *zktest.Link) { l.Stall(zktest.Both) }, (*zktest.Link).Heal},
		"frozen":          {(*zktest.Link).Freeze, (*zktest.Link).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := zktest.Start(t)
				link := s.Link("a")
				fault.happens(link)
				began := time.Now()
				_, err := link.Dial("tcp", s.Peer(0).Addr(), time.Second)
				require.ErrorIs(t, err, syscall.ETIMEDOUT)
				require.Equal(t, time.Second, time.Since(began))
				dialled := later(func() error {
					conn, err := link.Dial("tcp", s.Peer(0).Addr(), time.Second)
					if err == nil {
						err = conn.Close()
					}
					return err
				})
				hangs(t, dialled, time.Second/2)
				fault.ends(link)
				require.NoError(t, soon(t, dialled))

				fault.happens(link)
				dialled = later(func() error {
					_, err := link.Dial("tcp", s.Peer(0).Addr(), time.Minute)
					return err
				})
				hangs(t, dialled, time.Second)
				link.Cut()
				require.ErrorIs(t, soon(t, dialled), syscall.ECONNREFUSED)
			})
		})
	}
}

func TestFreezeAndThaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.WithTick(beat))
		link := s.Link("p")
		p := plugIn(t, link, s.Peer(0)).open(term)
		p.send(ask(1, 3, func(b *buffer) {
			b.bytes([]byte("/a"))
			b.bool(true)
		}))
		require.Equal(t, outcome{1, -101}, p.answer())
		link.Freeze()
		p.send(existence(2, "/a"))
		answer := later(p.answer)
		visit(t, s.Link("other"), s.HostProvider(), term).create("/a", 0)
		hangs(t, answer, term/2)
		link.Heal()
		hangs(t, answer, 1)
		link.Thaw()
		require.Equal(t, outcome{-1, 0}, soon(t, answer))
		require.Equal(t, outcome{2, 0}, p.answer())

		link.Freeze()
		closed := later(p.closed)
		pass(term + beat)
		require.Len(t, s.Sessions(), 1)
		require.True(t, soon(t, closed), "the process that wakes up finds its connection closed")
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		link := s.Link("p")
		p := plugIn(t, link, s.Peer(0)).open(term)
		const least, most = 10 * time.Millisecond, 30 * time.Millisecond
		link.Delay(least, most)
		var shortest, longest time.Duration = time.Hour, 0
		for range 200 {
			began := time.Now()
			p.send(ping())
			require.Equal(t, outcome{-2, 0}, p.answer())
			shortest, longest = min(shortest, time.Since(began)), max(longest, time.Since(began))
		}
		require.GreaterOrEqual(t, shortest, 2*least)
		require.Less(t, shortest, 2*least+(most-least)/2)
		require.LessOrEqual(t, longest, 2*most)
		require.Greater(t, longest, 2*most-(most-least)/2)

		link.Delay(least, 0)
		began := time.Now()
		p.send(ping())
		require.Equal(t, outcome{-2, 0}, p.answer())
		require.Equal(t, 2*least, time.Since(began), "most is at least least")

		link.Delay(least, time.Second)
		for xid := range int32(100) {
			p.send(existence(xid, "/"))
		}
		for xid := range int32(100) {
			require.Equal(t, outcome{xid, 0}, p.answer(), "packets never overtake each other")
		}
		link.Delay(0, 0)
		began = time.Now()
		p.send(ping())
		require.Equal(t, outcome{-2, 0}, p.answer())
		require.Equal(t, began, time.Now())
	})
}

func TestLoseRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		link := s.Link("p")
		p := plugIn(t, link, s.Peer(0)).open(term)
		link.LoseRequest(zktest.OpCreate)
		p.send(existence(1, "/"), ping())
		require.Equal(t, outcome{1, 0}, p.answer(), "others are not lost")
		require.Equal(t, outcome{-2, 0}, p.answer())
		other := plugIn(t, s.Link("other"), s.Peer(0)).open(term)
		other.send(creation(1, "/other", 0))
		require.Equal(t, outcome{1, 0}, other.answer(), "nor are those on other links")
		p.send(creation(2, "/a", 0))
		require.True(t, p.hungUp())
		require.Equal(t, []string{"/other"}, s.Znodes(), "no server has seen it")
		again := plugIn(t, link, s.Peer(0))
		require.True(t, again.reopen(p))
		again.send(creation(1, "/a", 0))
		require.Equal(t, outcome{1, 0}, again.answer(), "only the next one is")
	})
}

func TestLoseReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		link := s.Link("p")
		f1.Lag(100 * time.Millisecond)
		p := plugIn(t, link, f1).open(term)
		link.LoseReply(zktest.OpCreate)
		p.send(synchrony(1), existence(2, "/a"), creation(3, "/a", 0), existence(4, "/a"))
		require.Equal(t, outcome{1, 0}, p.answer(), "those before it get their answers")
		require.Equal(t, outcome{2, -101}, p.answer())
		require.True(t, p.hungUp())
		require.Equal(t, []string{"/a"}, s.Znodes(), "it has taken effect")
		again := plugIn(t, link, f1)
		require.True(t, again.reopen(p))
		again.send(creation(1, "/b", 0))
		require.Equal(t, outcome{1, 0}, again.answer(), "only the next one is lost")
	})
}

// A throttled request is answered in its turn, by a server that is cut off, too.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		link := s.Link("p")
		p := plugIn(t, link, f1).open(term)
		f1.Isolate()
		for i, op := range []zktest.Op{zktest.OpCreate, zktest.OpSync, zktest.Any} {
			link.Throttle(op)
			request := [][]byte{creation(3, "/a", 0), synchrony(3), existence(3, "/")}[i]
			p.send(ping(), existence(2, "/"), request, existence(4, "/"))
			require.Equal(t, outcome{-2, 0}, p.answer(), "pings never are")
			if op != zktest.Any {
				require.Equal(t, outcome{2, 0}, p.answer(), "others are not")
				require.Equal(t, outcome{3, -127}, p.answer())
			} else {
				require.Equal(t, outcome{2, -127}, p.answer())
				require.Equal(t, outcome{3, 0}, p.answer())
			}
			require.Equal(t, outcome{4, 0}, p.answer(), "only the next one is")
		}
		link.Throttle(zktest.OpExists)
		link.Spare()
		p.send(existence(5, "/"))
		require.Equal(t, outcome{5, 0}, p.answer())
		f1.Rejoin()
		require.Empty(t, s.Znodes())
	})
}

// Any is every kind of request there is.
func TestLoseAny(t *testing.T) {
	auth := ask(1, 100, func(b *buffer) {
		b.int32(0)
		b.bytes([]byte("digest"))
		b.bytes([]byte("user:secret"))
	})
	watches := ask(1, opSetWatches, func(b *buffer) {
		b.int64(0)
		for range 3 {
			b.int32(0)
		}
	})
	for name, request := range map[string][]byte{
		"ping": ping(), "auth": auth, "set watches": watches, "sync": synchrony(1), "create": creation(1, "/a", 0), "close": farewell(1),
	} {
		for _, lose := range []func(*zktest.Link, zktest.Op){(*zktest.Link).LoseRequest, (*zktest.Link).LoseReply} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := zktest.Start(t)
					p := plugIn(t, s.Link("p"), s.Peer(0)).open(term)
					lose(s.Link("p"), zktest.Any)
					p.send(request)
					require.True(t, p.hungUp())
				})
			})
		}
	}
}

func TestEachOpCanBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		link := s.Link("g")
		g := visit(t, link, s.HostProvider(), term)
		g.create("/a", 0)
		for op, call := range map[zktest.Op]func() error{
			zktest.OpCreate:          func() error { _, err := g.Create("/lost", nil, 0, anyone); return err },
			zktest.OpCreateContainer: func() error { _, err := g.CreateContainer("/lost", nil, zk.FlagContainer, anyone); return err },
			zktest.OpDelete:          func() error { return g.Delete("/a", -1) },
			zktest.OpExists:          func() error { _, _, err := g.Exists("/a"); return err },
			zktest.OpGet:             func() error { _, _, err := g.Get("/a"); return err },
			zktest.OpSet:             func() error { _, err := g.Set("/a", nil, -1); return err },
			zktest.OpChildren:        func() error { _, _, err := g.Children("/a"); return err },
			zktest.OpSync:            func() error { _, err := g.Sync("/a"); return err },
			zktest.OpMulti:           func() error { _, err := g.Multi(&zk.DeleteRequest{Path: "/a", Version: -1}); return err },
		} {
			link.LoseRequest(op)
			g.passed()
			require.ErrorIs(t, call(), zk.ErrConnectionClosed)
			g.until(zk.StateHasSession)
			require.Equal(t, []string{"/a"}, s.Znodes())
		}
		link.LoseRequest(zktest.OpPing)
		g.until(zk.StateDisconnected)
	})
}

func TestSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		link := s.Link("p")
		p := plugIn(t, link, s.Peer(0)).open(term)
		link.LoseReply(zktest.OpCreate)
		link.LoseRequest(zktest.Any)
		link.Spare()
		p.send(creation(1, "/a", 0), ping())
		require.Equal(t, outcome{1, 0}, p.answer())
		require.Equal(t, outcome{-2, 0}, p.answer())
	})
}

// Nobody waits to tell something to a client that has closed its end.
func TestAHeldConnectionOfAClientThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		for _, gone := range []bool{true, false} {
			p := plugIn(t, s.Link("p"), s.Peer(0)).open(20 * beat)
			s.Link("p").Stall(zktest.Both)
			if gone {
				require.NoError(t, p.Close())
				synctest.Wait()
			}
			s.ExpireSession(p.session)
			require.NoError(t, p.Close())
			synctest.Wait()
			conn, err := s.Dial("tcp", s.Peer(0).Addr(), time.Second)
			require.NoError(t, err)
			_, err = io.WriteString(conn, "srvr")
			require.NoError(t, err)
			answer, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Contains(t, string(answer), "Connections: 1\n", "the one that asks")
			s.Link("p").Heal()
		}
	})
}

// A connection that closes behind what a link holds back closes when the link lets go, or when it breaks.
func TestAHeldConnectionCloses(t *testing.T) {
	for name, ends := range map[string]func(*zktest.Server){
		"heal":  func(s *zktest.Server) { s.Link("p").Heal() },
		"reset": func(s *zktest.Server) { s.Link("p").Reset() },
		"stop":  func(s *zktest.Server) { s.Peer(0).Stop() },
		"close": (*zktest.Server).Close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := zktest.Start(t)
				p := plugIn(t, s.Link("p"), s.Peer(0)).open(20 * beat)
				s.Link("p").Stall(zktest.ToClient)
				s.ExpireSession(p.session)
				closed := later(p.closed)
				hangs(t, closed, beat)
				ends(s)
				require.True(t, soon(t, closed))
			})
		})
	}
}

// One Op is all the opcodes that the protocol has for it.
func TestAnOpInAllItsForms(t *testing.T) {
	for name, c := range map[string]struct {
		op zktest.Op
		do func(conn *zk.Conn) error
	}{
		"createTTL": {zktest.OpCreate, func(conn *zk.Conn) error {
			_, err := conn.CreateTTL("/a", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Hour)
			return err
		}},
		"getChildren2": {zktest.OpChildren, func(conn *zk.Conn) error {
			_, _, err := conn.Children("/")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := zktest.Start(t)
				g := visit(t, s.Link("a"), s.HostProvider(), term)
				s.Link("a").LoseRequest(c.op)
				require.ErrorIs(t, c.do(g.Conn), zk.ErrConnectionClosed)
				require.NoError(t, c.do(g.Conn))
			})
		})
	}
	for opcode, op := range map[int32]zktest.Op{15: zktest.OpCreate, 8: zktest.OpChildren} {
		synctest.Test(t, func(t *testing.T) {
			s := zktest.Start(t)
			p := plugIn(t, s.Link("a"), s.Peer(0)).open(term)
			s.Link("a").LoseRequest(op)
			p.send(ask(1, opcode, func(*buffer) {}))
			require.True(t, p.hungUp(), "opcode %d", opcode)
		})
	}
}
