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
		c := zktest.Start(t, zktest.WithServers(3))
		require.Same(t, c.Link("a"), c.Link("a"))
		a := connect(t, c.Link("a"), c.HostProvider(), sessionTimeout)
		b := connect(t, c.Link("b"), c.HostProvider(), sessionTimeout)
		c.Link("a").Reset()
		a.until(zk.StateDisconnected)
		a.until(zk.StateHasSession)
		c.Link("a").Cut()
		a.until(zk.StateDisconnected)
		for _, s := range c.Servers() {
			_, err := c.Link("a").Dial("tcp", s.Addr(), time.Second)
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		pass(sessionTimeout / 2)
		require.Equal(t, zk.StateHasSession, b.State())
		c.Link("a").Heal()
		a.until(zk.StateHasSession)
		require.Equal(
			t, []zk.State(nil), b.passed(), "links are independent of each other",
		)
	})
}

func TestDialIsTheLinkWithoutAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		c.Link("").Cut()
		_, err := c.Dial("tcp", c.Server(0).Addr(), time.Second)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// What is sent over a stalled link arrives after Heal, in order. Nothing else gets
// through, and no connection breaks.
func TestStall(t *testing.T) {
	for name, direction := range map[string]zktest.Direction{
		"to server": zktest.ToServer, "to client": zktest.ToClient, "both": zktest.Both,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := zktest.Start(t)
				link := c.Link("p")
				raw := dialRaw(t, link, c.Server(0)).open(20 * tickTime)
				other := dialRaw(t, c.Link("other"), c.Server(0)).open(20 * tickTime)
				link.Stall(direction)
				raw.send(creation(1, "/a", 0), existence(2, "/a"))
				answer := later(raw.answer)
				hangs(t, answer, 10*tickTime)
				if direction == zktest.ToClient {
					require.Equal(
						t, []string{"/a"}, c.Znodes(), "the other direction works",
					)
				} else {
					require.Empty(t, c.Znodes())
				}
				other.send(ping())
				require.Equal(t, outcome{-2, 0}, other.answer())
				link.Heal()
				require.Equal(t, outcome{1, 0}, soon(t, answer))
				require.Equal(t, outcome{2, 0}, raw.answer())
				require.Equal(t, []string{"/a"}, c.Znodes())
			})
		})
	}
}

// A server that hears nothing ends the session, though its pings get through to the
// client.
func TestAStallEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t, zktest.WithTick(tickTime))
		link := c.Link("g")
		cl := connect(t, link, c.HostProvider(), sessionTimeout)
		cl.create("/mine", zk.FlagEphemeral)
		cl.passed()
		link.Stall(zktest.ToServer)
		pass(sessionTimeout + tickTime)
		require.Empty(t, c.Sessions())
		require.Empty(t, c.Znodes())
		link.Heal()
		cl.until(zk.StateExpired)
		cl.until(zk.StateHasSession)
	})
}

func TestDialsInAStall(t *testing.T) {
	for name, fault := range map[string]struct{ happens, ends func(*zktest.Link) }{
		"stalled one way": {
			func(l *zktest.Link) { l.Stall(zktest.ToClient) }, (*zktest.Link).Heal,
		},
		"stalled": {
			func(l *zktest.Link) { l.Stall(zktest.Both) }, (*zktest.Link).Heal,
		},
		"frozen": {(*zktest.Link).Freeze, (*zktest.Link).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := zktest.Start(t)
				link := c.Link("a")
				fault.happens(link)
				began := time.Now()
				_, err := link.Dial("tcp", c.Server(0).Addr(), time.Second)
				require.ErrorIs(t, err, syscall.ETIMEDOUT)
				require.Equal(t, time.Second, time.Since(began))
				dialled := later(func() error {
					conn, err := link.Dial("tcp", c.Server(0).Addr(), time.Second)
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
					_, err := link.Dial("tcp", c.Server(0).Addr(), time.Minute)
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
		c := zktest.Start(t, zktest.WithTick(tickTime))
		link := c.Link("p")
		raw := dialRaw(t, link, c.Server(0)).open(sessionTimeout)
		raw.send(ask(1, 3, func(b *buffer) {
			b.bytes([]byte("/a"))
			b.bool(true)
		}))
		require.Equal(t, outcome{1, -101}, raw.answer())
		link.Freeze()
		raw.send(existence(2, "/a"))
		answer := later(raw.answer)
		connect(t, c.Link("other"), c.HostProvider(), sessionTimeout).create("/a", 0)
		hangs(t, answer, sessionTimeout/2)
		link.Heal()
		hangs(t, answer, 1)
		link.Thaw()
		require.Equal(t, outcome{-1, 0}, soon(t, answer))
		require.Equal(t, outcome{2, 0}, raw.answer())

		link.Freeze()
		closed := later(raw.closed)
		pass(sessionTimeout + tickTime)
		require.Len(t, c.Sessions(), 1)
		require.True(
			t, soon(t, closed), "the process that wakes up finds its connection closed",
		)
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		link := c.Link("p")
		raw := dialRaw(t, link, c.Server(0)).open(sessionTimeout)
		const least, most = 10 * time.Millisecond, 30 * time.Millisecond
		link.Delay(least, most)
		var shortest, longest time.Duration = time.Hour, 0
		for range 200 {
			began := time.Now()
			raw.send(ping())
			require.Equal(t, outcome{-2, 0}, raw.answer())
			took := time.Since(began)
			shortest, longest = min(shortest, took), max(longest, took)
		}
		require.GreaterOrEqual(t, shortest, 2*least)
		require.Less(t, shortest, 2*least+(most-least)/2)
		require.LessOrEqual(t, longest, 2*most)
		require.Greater(t, longest, 2*most-(most-least)/2)

		link.Delay(least, 0)
		began := time.Now()
		raw.send(ping())
		require.Equal(t, outcome{-2, 0}, raw.answer())
		require.Equal(t, 2*least, time.Since(began), "most is at least least")

		link.Delay(least, time.Second)
		for xid := range int32(100) {
			raw.send(existence(xid, "/"))
		}
		for xid := range int32(100) {
			require.Equal(
				t, outcome{xid, 0}, raw.answer(), "packets never overtake each other",
			)
		}
		link.Delay(0, 0)
		began = time.Now()
		raw.send(ping())
		require.Equal(t, outcome{-2, 0}, raw.answer())
		require.Equal(t, began, time.Now())
	})
}

func TestLoseRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		link := c.Link("p")
		raw := dialRaw(t, link, c.Server(0)).open(sessionTimeout)
		link.LoseRequest(zktest.OpCreate)
		raw.send(existence(1, "/"), ping())
		require.Equal(t, outcome{1, 0}, raw.answer(), "others are not lost")
		require.Equal(t, outcome{-2, 0}, raw.answer())
		other := dialRaw(t, c.Link("other"), c.Server(0)).open(sessionTimeout)
		other.send(creation(1, "/other", 0))
		require.Equal(t, outcome{1, 0}, other.answer(), "nor are those on other links")
		raw.send(creation(2, "/a", 0))
		require.True(t, raw.hungUp())
		require.Equal(t, []string{"/other"}, c.Znodes(), "no server has seen it")
		again := dialRaw(t, link, c.Server(0))
		require.True(t, again.reopen(raw))
		again.send(creation(1, "/a", 0))
		require.Equal(t, outcome{1, 0}, again.answer(), "only the next one is")
	})
}

func TestLoseReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		link := c.Link("p")
		f1.Lag(100 * time.Millisecond)
		raw := dialRaw(t, link, f1).open(sessionTimeout)
		link.LoseReply(zktest.OpCreate)
		raw.send(
			synchrony(1), existence(2, "/a"), creation(3, "/a", 0), existence(4, "/a"),
		)
		require.Equal(t, outcome{1, 0}, raw.answer(), "those before it get their answers")
		require.Equal(t, outcome{2, -101}, raw.answer())
		require.True(t, raw.hungUp())
		require.Equal(t, []string{"/a"}, c.Znodes(), "it has taken effect")
		again := dialRaw(t, link, f1)
		require.True(t, again.reopen(raw))
		again.send(creation(1, "/b", 0))
		require.Equal(t, outcome{1, 0}, again.answer(), "only the next one is lost")
	})
}

// A throttled request is answered in its turn, by a server that is cut off, too.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		link := c.Link("p")
		raw := dialRaw(t, link, f1).open(sessionTimeout)
		f1.Isolate()
		for i, op := range []zktest.Op{zktest.OpCreate, zktest.OpSync, zktest.Any} {
			link.Throttle(op)
			request := [][]byte{creation(3, "/a", 0), synchrony(3), existence(3, "/")}[i]
			raw.send(ping(), existence(2, "/"), request, existence(4, "/"))
			require.Equal(t, outcome{-2, 0}, raw.answer(), "pings never are")
			if op != zktest.Any {
				require.Equal(t, outcome{2, 0}, raw.answer(), "others are not")
				require.Equal(t, outcome{3, -127}, raw.answer())
			} else {
				require.Equal(t, outcome{2, -127}, raw.answer())
				require.Equal(t, outcome{3, 0}, raw.answer())
			}
			require.Equal(t, outcome{4, 0}, raw.answer(), "only the next one is")
		}
		link.Throttle(zktest.OpExists)
		link.Spare()
		raw.send(existence(5, "/"))
		require.Equal(t, outcome{5, 0}, raw.answer())
		f1.Rejoin()
		require.Empty(t, c.Znodes())
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
		"ping": ping(), "auth": auth, "set watches": watches, "sync": synchrony(1),
		"create": creation(1, "/a", 0), "close": farewell(1),
	} {
		for _, lose := range []func(*zktest.Link, zktest.Op){
			(*zktest.Link).LoseRequest, (*zktest.Link).LoseReply,
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := zktest.Start(t)
					raw := dialRaw(t, c.Link("p"), c.Server(0)).open(sessionTimeout)
					lose(c.Link("p"), zktest.Any)
					raw.send(request)
					require.True(t, raw.hungUp())
				})
			})
		}
	}
}

func TestEachOpCanBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		link := c.Link("g")
		cl := connect(t, link, c.HostProvider(), sessionTimeout)
		cl.create("/a", 0)
		for op, call := range map[zktest.Op]func() error{
			zktest.OpCreate: func() error {
				_, err := cl.Create("/lost", nil, 0, anyone)
				return err
			},
			zktest.OpCreateContainer: func() error {
				_, err := cl.CreateContainer("/lost", nil, zk.FlagContainer, anyone)
				return err
			},
			zktest.OpDelete: func() error { return cl.Delete("/a", -1) },
			zktest.OpExists: func() error {
				_, _, err := cl.Exists("/a")
				return err
			},
			zktest.OpGet: func() error {
				_, _, err := cl.Get("/a")
				return err
			},
			zktest.OpSet: func() error {
				_, err := cl.Set("/a", nil, -1)
				return err
			},
			zktest.OpChildren: func() error {
				_, _, err := cl.Children("/a")
				return err
			},
			zktest.OpSync: func() error {
				_, err := cl.Sync("/a")
				return err
			},
			zktest.OpMulti: func() error {
				_, err := cl.Multi(&zk.DeleteRequest{Path: "/a", Version: -1})
				return err
			},
		} {
			link.LoseRequest(op)
			cl.passed()
			require.ErrorIs(t, call(), zk.ErrConnectionClosed)
			cl.until(zk.StateHasSession)
			require.Equal(t, []string{"/a"}, c.Znodes())
		}
		link.LoseRequest(zktest.OpPing)
		cl.until(zk.StateDisconnected)
	})
}

func TestSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		link := c.Link("p")
		raw := dialRaw(t, link, c.Server(0)).open(sessionTimeout)
		link.LoseReply(zktest.OpCreate)
		link.LoseRequest(zktest.Any)
		link.Spare()
		raw.send(creation(1, "/a", 0), ping())
		require.Equal(t, outcome{1, 0}, raw.answer())
		require.Equal(t, outcome{-2, 0}, raw.answer())
	})
}

// Nobody waits to tell something to a client that has closed its end.
func TestAHeldConnectionOfAClientThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		for _, gone := range []bool{true, false} {
			raw := dialRaw(t, c.Link("p"), c.Server(0)).open(20 * tickTime)
			c.Link("p").Stall(zktest.Both)
			if gone {
				require.NoError(t, raw.Close())
				synctest.Wait()
			}
			c.ExpireSession(raw.session)
			require.NoError(t, raw.Close())
			synctest.Wait()
			conn, err := c.Dial("tcp", c.Server(0).Addr(), time.Second)
			require.NoError(t, err)
			_, err = io.WriteString(conn, "srvr")
			require.NoError(t, err)
			answer, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Contains(t, string(answer), "Connections: 1\n", "the one that asks")
			c.Link("p").Heal()
		}
	})
}

// A connection that closes behind what a link holds back closes when the link lets go, or
// when it breaks.
func TestAHeldConnectionCloses(t *testing.T) {
	for name, ends := range map[string]func(*zktest.Cluster){
		"heal":  func(c *zktest.Cluster) { c.Link("p").Heal() },
		"reset": func(c *zktest.Cluster) { c.Link("p").Reset() },
		"stop":  func(c *zktest.Cluster) { c.Server(0).Stop() },
		"close": (*zktest.Cluster).Close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := zktest.Start(t)
				raw := dialRaw(t, c.Link("p"), c.Server(0)).open(20 * tickTime)
				c.Link("p").Stall(zktest.ToClient)
				c.ExpireSession(raw.session)
				closed := later(raw.closed)
				hangs(t, closed, tickTime)
				ends(c)
				require.True(t, soon(t, closed))
			})
		})
	}
}

// One Op is all the opcodes that the protocol has for it.
func TestAnOpInAllItsForms(t *testing.T) {
	for name, tc := range map[string]struct {
		op zktest.Op
		do func(conn *zk.Conn) error
	}{
		"createTTL": {zktest.OpCreate, func(conn *zk.Conn) error {
			_, err := conn.CreateTTL(
				"/a", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Hour,
			)
			return err
		}},
		"getChildren2": {zktest.OpChildren, func(conn *zk.Conn) error {
			_, _, err := conn.Children("/")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := zktest.Start(t)
				cl := connect(t, c.Link("a"), c.HostProvider(), sessionTimeout)
				c.Link("a").LoseRequest(tc.op)
				require.ErrorIs(t, tc.do(cl.Conn), zk.ErrConnectionClosed)
				require.NoError(t, tc.do(cl.Conn))
			})
		})
	}
	for opcode, op := range map[int32]zktest.Op{
		15: zktest.OpCreate, 8: zktest.OpChildren,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := zktest.Start(t)
			raw := dialRaw(t, c.Link("a"), c.Server(0)).open(sessionTimeout)
			c.Link("a").LoseRequest(op)
			raw.send(ask(1, opcode, func(*buffer) {}))
			require.True(t, raw.hungUp(), "opcode %d", opcode)
		})
	}
}
