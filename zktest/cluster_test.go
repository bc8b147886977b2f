package zktest_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// overTCP is a dialer of no link.
func overTCP(t *testing.T, addrs []string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(
		addrs, 10*time.Second, zk.WithLogger(noLog{}), zk.WithLogInfo(false),
	)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

func TestOverTCP(t *testing.T) {
	c := zktest.Start(t, zktest.WithServers(3))
	addrs := c.Addrs()
	require.Len(t, addrs, 3)
	require.Equal(t, addrs, c.Addrs(), "they listen once")
	require.Equal(t, strings.Join(addrs, ","), c.ConnectString())
	for i, addr := range addrs {
		conn := overTCP(t, []string{addr})
		_, err := conn.Create(fmt.Sprintf("/%d", i), nil, zk.FlagEphemeral, anyone)
		require.NoError(t, err)
		_, err = conn.Sync("/")
		require.NoError(t, err)
		children, _, err := conn.Children("/")
		require.NoError(t, err)
		require.Len(t, children, i+2, "all servers are of one cluster")
	}
	require.Equal(t, []string{"/0", "/1", "/2"}, c.Znodes())
	require.Len(t, c.Sessions(), 3)
}

// Nobody listens on the port of a stopped server, or behind a cut link.
func TestRefusedConnections(t *testing.T) {
	refused := func(addr string) {
		t.Helper()
		_, err := net.Dial("tcp", addr)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	c := zktest.Start(t, zktest.WithServers(3))
	c.Server(2).Stop()
	addrs := c.Addrs()
	refused(addrs[2])
	for range 3 {
		c.Server(0).Stop()
		refused(addrs[0])
		c.Server(2).Start()
		c.Server(0).Start()
		c.Server(0).Start()
		require.Equal(t, addrs, c.Addrs(), "the ports stay the same")
		for _, addr := range addrs {
			overTCP(t, []string{addr})
		}
	}
	c.Link("").Cut()
	for _, addr := range addrs {
		refused(addr)
	}
	c.Server(0).Start()
	c.Link("other").Heal()
	refused(addrs[0])
	c.Link("").Heal()
	overTCP(t, addrs[:1])
	c.Server(0).Freeze()
	frozen, err := net.Dial("tcp", addrs[0])
	require.NoError(t, err, "the system accepts what a frozen process does not")
	require.NoError(t, frozen.Close())
}

// A server whose port another program has taken meanwhile listens there as soon as it is
// free again.
func TestAStartedServerWaitsForItsPort(t *testing.T) {
	c := zktest.Start(t, zktest.WithTick(10*time.Millisecond))
	addr := c.Addrs()[0]
	c.Server(0).Stop()
	taken, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	c.Server(0).Start()
	time.Sleep(50 * time.Millisecond) // some pings
	require.NoError(t, taken.Close())
	require.Eventually(t, func() bool {
		answer, err := tell(addr, "ruok")
		return err == nil && answer == "imok"
	}, 20*time.Second, 10*time.Millisecond)
}

// What listens on a port that it was free to choose can return to it: no outgoing
// connection is given that port meanwhile.
func TestPortsAreNotThoseOfOutgoingConnections(t *testing.T) {
	for _, c := range []*zktest.Cluster{
		zktest.Start(t, zktest.WithServers(5)),
		zktest.Start(t, zktest.WithServers(5), zktest.WithListen("127.0.0.1:0")),
	} {
		for _, addr := range c.Addrs() {
			at, err := net.ResolveTCPAddr("tcp", addr)
			require.NoError(t, err)
			require.Less(t, at.Port, 20_000)
			require.GreaterOrEqual(t, at.Port, 10_000)
		}
	}
}

// ours counts the goroutines of connections and listeners.
func ours() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "zktest.(*conn).") +
		strings.Count(string(stacks), "zktest.(*Server).accept")
}

func TestCloseEndsItAll(t *testing.T) {
	before := ours()
	c := newCluster(t, zktest.WithServers(3))
	addrs := c.Addrs()
	conn := overTCP(t, addrs)
	idle, err := net.Dial("tcp", addrs[0])
	require.NoError(t, err)
	defer idle.Close()
	require.Greater(t, ours(), before)
	c.Close()
	require.Equal(t, before, ours())
	_, err = net.Dial("tcp", addrs[0])
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = c.Dial("tcp", c.Server(0).Addr(), time.Second)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	conn.Close()

	c.Close()
	c.Server(0).Start()
	c.Server(1).Freeze()
	c.Link("").Stall(zktest.Both)
	c.ExpireSession(1)
	require.Equal(t, addrs, c.Addrs())
	require.Equal(t, before, ours())

	late := newCluster(t)
	late.Close()
	_, err = net.Dial("tcp", late.Addrs()[0])
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "nor does it listen later")
	require.Equal(t, before, ours())
}

func TestCloseEndsWithTheTest(t *testing.T) {
	var c *zktest.Cluster
	t.Run("", func(t *testing.T) { c = zktest.Start(t) })
	_, err := c.Dial("tcp", c.Server(0).Addr(), time.Second)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// A bubble fails if a goroutine is left in it, or waits for ever.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := newCluster(t, zktest.WithServers(3))
		cl := connect(t, c.Link("a"), c.HostProvider(), sessionTimeout)
		silent := dialRaw(t, c.Link("b"), c.Server(0))
		stalled := c.Link("c")
		stalled.Stall(zktest.Both)
		waiting := later(func() error {
			_, err := stalled.Dial("tcp", c.Server(0).Addr(), 48*time.Hour)
			return err
		})
		pass(24 * time.Hour)
		require.Equal(t, zk.StateHasSession, cl.State())
		require.Equal(t, []zk.State(nil), cl.passed())
		c.Close()
		require.True(t, silent.hungUp())
		require.ErrorIs(t, soon(t, waiting), syscall.ECONNREFUSED)
		require.Equal(t, 24*time.Hour, time.Since(began).Truncate(time.Minute))
	})
}

// tell sends what is no packet, and returns all that comes back.
func tell(addr, words string) (string, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, words); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && len(answer) == 0 {
		err = io.EOF
	}
	return string(answer), err
}

func TestFourLetterWords(t *testing.T) {
	for n, modes := range map[int][]string{
		1: {"standalone"}, 3: {"follower", "follower", "leader"},
	} {
		c := zktest.Start(t, zktest.WithServers(n))
		for i, addr := range c.Addrs() {
			answer, err := tell(addr, "ruok")
			require.NoError(t, err)
			require.Equal(t, "imok", answer)
			answer, err = tell(addr, "srvr")
			require.NoError(t, err)
			require.Contains(t, answer, "Mode: "+modes[i]+"\n")
			require.Contains(t, answer, fmt.Sprintf("Zxid: 0x%x\n", c.Server(i).Zxid()))
			require.Contains(
				t, answer, "Node count: 5\n",
				"as in a new server: / counts twice, and three below /zookeeper",
			)
			_, err = tell(addr, "what")
			require.ErrorIs(t, err, io.EOF)
		}
	}
}

func TestFourLetterWordsInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		say := func(s *zktest.Server, words string) <-chan string {
			conn, err := c.Dial("tcp", s.Addr(), time.Second)
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			_, err = io.WriteString(conn, words)
			require.NoError(t, err)
			return later(func() string {
				answer, _ := io.ReadAll(conn) // what matters is what came
				return string(answer)
			})
		}
		f1.Freeze()
		answer := say(f1, "ruok")
		hangs(t, answer, tickTime)
		f1.Thaw()
		require.Equal(t, "imok", soon(t, answer))
		c.Leader().Stop()
		require.Equal(t, "imok", soon(t, say(f1, "ruok")))
		require.Equal(
			t, "This ZooKeeper instance is not currently serving requests\n",
			soon(t, say(f1, "srvr")),
		)
		require.Equal(t, "null", soon(t, say(f1, "isro")))
		require.Contains(t, soon(t, say(f1, "envi")), "\nzookeeper.version=3.8.0-")
	})
}

func TestTooLongAPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		const longest = 0xfffff
		packet := func(length int) []byte {
			return append(ping(), make([]byte, length-8)...)
		}
		raw := dialRaw(t, c.Link(""), c.Server(0)).open(sessionTimeout)
		raw.send(packet(longest))
		require.Equal(t, outcome{-2, 0}, raw.answer())
		write := later(func() error {
			_, err := raw.Write([]byte{0, 0x10, 0, 0})
			return err
		})
		require.NoError(t, soon(t, write))
		require.True(t, raw.hungUp())

		raw = dialRaw(t, c.Link(""), c.Server(0))
		_, err := raw.Write([]byte{0, 0x10, 0, 0})
		require.NoError(t, err)
		require.True(t, raw.hungUp(), "before the handshake, too")

		raw = dialRaw(t, c.Link(""), c.Server(0)).open(sessionTimeout)
		_, err = io.WriteString(raw, "ruok")
		require.NoError(t, err)
		require.True(t, raw.hungUp(), "a word of four letters is nothing else after it")
	})
}

func TestAddresses(t *testing.T) {
	one := zktest.Start(t)
	conn, err := one.Dial("tcp", "any:1", time.Second)
	require.NoError(t, err)
	require.Equal(t, "any:1", conn.RemoteAddr().String())
	require.NoError(t, conn.Close())

	c := zktest.Start(t, zktest.WithServers(2))
	require.Len(t, c.Servers(), 2)
	addrs := c.Addrs()
	c.Server(1).Stop()
	for _, of := range [][2]string{
		{c.Server(0).Addr(), c.Server(1).Addr()}, {addrs[0], addrs[1]},
	} {
		conn, err := c.Dial("tcp", of[0], time.Second)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		_, err = c.Dial("tcp", of[1], time.Second)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	_, err = c.Dial("tcp", "any:1", time.Second)
	require.ErrorContains(t, err, "no such server")
	require.Panics(t, func() { c.Server(2) })
}

func TestHostProvider(t *testing.T) {
	for n, want := range map[int]string{1: "1 1! 1!", 3: "1 2 3 1! 2 3 1!"} {
		c := zktest.Start(t, zktest.WithServers(n))
		h := c.HostProvider()
		require.NoError(t, h.Init(nil))
		require.Equal(t, n, h.Len())
		round := func() string {
			var all []string
			for range strings.Fields(want) {
				addr, again := h.Next()
				name := strings.TrimSuffix(strings.TrimPrefix(addr, "zktest-"), ":2181")
				if again {
					name += "!"
				}
				all = append(all, name)
			}
			return strings.Join(all, " ")
		}
		require.Equal(
			t, want, round(),
			"one after the other; retryStart after each round that did not connect",
		)
		h.Connected()
		addr, again := h.Next()
		require.False(t, again)
		require.Equal(t, c.Server(1%n).Addr(), addr)
		other, _ := c.HostProvider().Next()
		require.Equal(t, c.Server(0).Addr(), other, "each client has one of its own")
	}
}

func TestZnodesAndWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		require.Empty(t, c.Znodes())
		cl, slow := connectTo(t, c, c.Leader()), connectTo(t, c, f1)
		f1.Lag(time.Second)
		for _, path := range []string{"/b", "/a", "/a/c", "/zookeeperx", "/zookeeper/x"} {
			cl.create(path, 0)
		}
		require.Equal(t, []string{"/a", "/a/c", "/b", "/zookeeperx"}, c.Znodes())
		require.Zero(t, c.Watches())
		_, _, _, err := cl.GetW("/a")
		require.NoError(t, err)
		_, _, _, err = cl.ChildrenW("/a")
		require.NoError(t, err)
		_, _, _, err = slow.ExistsW("/a")
		require.NoError(t, err)
		require.Equal(t, 3, c.Watches(), "over all servers")
		require.NoError(t, cl.Delete("/a/c", -1))
		require.Equal(t, 2, c.Watches())
		pass(time.Second)
		require.Equal(
			t, 1, c.Watches(), "by now the lagging server has heard of the creation",
		)
	})
}

func TestSetSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f1, _ := three(t)
		cl := connectTo(t, c, f1)
		require.ErrorIs(t, c.SetSequence("/a", 1), zk.ErrNoNode)
		cl.create("/a", 0)
		require.NoError(t, c.SetSequence("/a", 41))
		require.Equal(t, "/a/n-0000000041", cl.create("/a/n-", zk.FlagSequence))
		require.Equal(t, "/a/n-0000000042", cl.create("/a/n-", zk.FlagSequence))
		require.NoError(t, c.SetSequence("/a", 7))
		require.Equal(t, "/a/n-0000000007", cl.create("/a/n-", zk.FlagSequence))

		f1.Lag(time.Second)
		created := later(func() string { return cl.create("/a/n-", zk.FlagSequence) })
		pass(1500 * time.Millisecond)
		require.ErrorContains(
			t, c.SetSequence("/a", 1<<31-2), "lags behind", "the create is not there yet",
		)
		require.Equal(t, "/a/n-0000000008", soon(t, created))
		require.NoError(t, c.SetSequence("/a", 1<<31-2))
		c.Leader().Stop()
		cl.until(zk.StateHasSession)
		require.Equal(
			t, "/a/n-2147483646", cl.create("/a/n-", zk.FlagSequence),
			"every server has it",
		)
		require.Equal(t, "/a/m-2147483647", cl.create("/a/m-", zk.FlagSequence))
		require.Equal(
			t, "/a/n-2147483647", cl.create("/a/n-", zk.FlagSequence),
			"the counter sticks at its limit",
		)
		_, err := cl.Create("/a/n-", nil, zk.FlagSequence, anyone)
		require.ErrorIs(t, err, zk.ErrNodeExists)
	})
}

func TestContainersAndTTLsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, f1, _ := three(t)
		cl := connectTo(t, c, f1)
		for _, path := range []string{"/used", "/unused", "/full"} {
			_, err := cl.CreateContainer(path, nil, zk.FlagContainer, anyone)
			require.NoError(t, err)
		}
		_, err := cl.CreateTTL("/short", nil, zk.FlagTTL, anyone, 70*time.Second)
		require.NoError(t, err)
		cl.create("/used/x", 0)
		cl.create("/full/x", 0)
		require.NoError(t, cl.Delete("/used/x", -1))
		_, _, gone, err := cl.ExistsW("/used")
		require.NoError(t, err)
		require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
		require.Equal(t, time.Minute, time.Since(began))
		_, _, gone, err = cl.ExistsW("/short")
		require.NoError(t, err)
		require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
		require.Equal(t, 2*time.Minute, time.Since(began))
		pass(time.Hour)
		require.Equal(t, []string{"/full", "/full/x", "/unused"}, c.Znodes())
	})
}

// What the server itself does depends on the calls and the seed alone.
func TestReplay(t *testing.T) {
	play := func(seed uint64) (transcript []string) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			c, f1, f2 := three(t, zktest.WithSeed(seed))
			note := func(what string) {
				transcript = append(transcript, fmt.Sprintf("%v %s %v %x %x %x %v",
					time.Since(began), what, c.Znodes(), c.Sessions(),
					f1.Zxid(), f2.Zxid(), c.Leader() != nil))
			}
			link := c.Link("a")
			link.Delay(time.Millisecond, 50*time.Millisecond)
			f1.Lag(30 * time.Millisecond)
			raw := dialRaw(t, link, f1).open(sessionTimeout)
			for i := range int32(5) {
				raw.send(creation(i+1, fmt.Sprintf("/%d", i), zk.FlagEphemeral))
				note(fmt.Sprint(raw.answer()))
			}
			c.Leader().Stop()
			note(fmt.Sprint(raw.closed()))
			pass(2 * sessionTimeout)
			note("expired")
			require.Empty(t, c.Znodes())
		})
		return transcript
	}
	first := play(1)
	require.Equal(t, first, play(1))
	require.NotEqual(t, first, play(2), "the delays are drawn from the seed")
}

// The servers listen on ports in a row, and leave them when the Cluster ends.
func TestListen(t *testing.T) {
	var c *zktest.Cluster
	var err error
	// Below the range of outgoing connections; any of them may be taken all the same.
	port := 20_000 + rand.IntN(10_000)
	for range 100 {
		port += 3
		c, err = zktest.New(
			zktest.WithServers(3), zktest.WithListen(fmt.Sprintf("127.0.0.1:%d", port)),
		)
		if err == nil {
			break
		}
	}
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
		port, port+1, port+2), c.ConnectString())
	overTCP(t, c.Addrs()[2:])

	c.Close()

	// Where one port is taken the others are not kept.
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
	require.NoError(t, err)
	first := fmt.Sprintf("127.0.0.1:%d", port)
	_, err = zktest.New(zktest.WithServers(3), zktest.WithListen(first))
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, "zktest: server 2: listen tcp "+taken.Addr().String())
	require.NoError(t, taken.Close())
	again, err := zktest.New(zktest.WithServers(3), zktest.WithListen(first))
	require.NoError(t, err)
	again.Close()

	free := zktest.Start(t, zktest.WithServers(2), zktest.WithListen("127.0.0.1:0"))
	require.Len(t, free.Addrs(), 2)

	var list []string
	for range 2 {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		list = append([]string{free.Addr().String()}, list...)
		defer free.Close()
	}
	two := zktest.WithServers(2)
	_, err = zktest.New(two, zktest.WithListen(list...))
	require.ErrorContains(t, err, "server 1: listen tcp "+list[0])
	_, err = zktest.New(two, zktest.WithListen(free.Addrs()[0], list[1]))
	require.ErrorContains(t, err, "server 1: listen tcp "+free.Addrs()[0])
	_, err = zktest.New(two, zktest.WithListen("127.0.0.1:0", list[1]))
	require.ErrorContains(t, err, "server 2: listen tcp "+list[1])
}

// A server on its own holds no election: it serves as soon as it is started again.
func TestARestartTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		old := dialRaw(t, c.Link(""), c.Server(0)).open(sessionTimeout)
		old.send(creation(1, "/e", zk.FlagEphemeral))
		old.answer()
		c.Server(0).Stop()
		c.Server(0).Start()
		began := time.Now()
		again := dialRaw(t, c.Link(""), c.Server(0))
		again.send(greeting(old, sessionTimeout, 0))
		require.True(t, again.welcome())
		again.send(existence(1, "/e"))
		require.Equal(t, outcome{1, 0}, again.answer())
		require.Zero(t, time.Since(began))
	})
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for want, opts := range map[string][]zktest.Option{
		"zktest: WithServers(0): want 1 at least": {
			zktest.WithServers(0),
		},
		"zktest: WithTick(1µs): want a millisecond at least": {
			zktest.WithTick(time.Microsecond),
		},
		"zktest: WithMaxSession(3s): want 4s at least, the shortest timeout": {
			zktest.WithMaxSession(3 * time.Second),
		},
		"zktest: WithContainerCheck(0s): want a millisecond at least": {
			zktest.WithContainerCheck(0),
		},
		"zktest: WithSlowClose(-1ns): want 0 at least": {
			zktest.WithSlowClose(-1),
		},
		"zktest: WithMaxSession(-1ns): want 4s at least, the shortest timeout": {
			zktest.WithMaxSession(-1),
		},
		"zktest: WithMinSessionTimeout(-1ns): want a millisecond at least": {
			zktest.WithMinSessionTimeout(-1),
		},
		"zktest: WithMaxSession(40s): want 1m0s at least, the shortest timeout": {
			zktest.WithMinSessionTimeout(time.Minute),
		},
		"zktest: WithListen(here): address here: missing port in address": {
			zktest.WithListen("here"),
		},
		"zktest: WithListen(a:1,b:1): want one address, or one for each of 3 servers": {
			zktest.WithServers(3), zktest.WithListen("a:1", "b:1"),
		},
		"zktest: WithListen(:many): want a port, and 1 in all up to 65535": {
			zktest.WithListen(":many"),
		},
		"zktest: WithListen(:65534): want a port, and 3 in all up to 65535": {
			zktest.WithServers(3), zktest.WithListen(":65534"),
		},
		"zktest: WithTLS: config has no certificate": {
			zktest.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12}),
		},
		"zktest: WithTLS: config is nil":                {zktest.WithTLS(nil)},
		"zktest: WithSuperUser: user is empty":          {zktest.WithSuperUser("", "x")},
		"zktest: option 2 is nil":                       {zktest.WithShuffle(), nil},
		"zktest: WithSlowCommit(-1ns): want 0 at least": {zktest.WithSlowCommit(-1)},
		"zktest: WithServers(-1): want 1 at least":      {zktest.WithServers(-1)},
	} {
		_, err := zktest.New(opts...)
		require.EqualError(t, err, want)
		tb := &fatal{}
		require.Panics(t, func() { zktest.Start(tb, opts...) })
		require.Equal(t, want, tb.said)
	}
}

// As the package doc says.
func TestTheExampleForABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t, zktest.WithServers(3))
		conn, _, err := zk.Connect(cluster.Names(), 4*time.Second,
			zk.WithDialer(cluster.Dial), zk.WithHostProvider(cluster.HostProvider()),
			zk.WithLogInfo(false))
		require.NoError(t, err)
		_, _, err = conn.Exists("/")
		require.NoError(t, err)
		session := conn.SessionID()
		time.Sleep(time.Hour)
		require.Equal(t, []int64{session}, cluster.Sessions())
		conn.Close()
		time.Sleep(time.Minute) // what the client has under way ends by itself
	})
}

// The leader's pings come at a time of their own, which depends on the seed: what it has
// not been told by then is lost with a follower.
func TestTheSeedSetsWhenReportsAre(t *testing.T) {
	lives := map[time.Duration]bool{}
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			c := zktest.Start(
				t, zktest.WithServers(3), zktest.WithTick(tickTime),
				zktest.WithSeed(seed),
			)
			cl := connect(t, c.Link("a"), oneServer(c.Server(0).Addr()), sessionTimeout)
			session := cl.SessionID()
			time.Sleep(10*tickTime + tickTime/7)
			c.Server(0).Stop()
			stopped := time.Now()
			for len(c.Sessions()) > 0 {
				require.Contains(t, c.Sessions(), session)
				time.Sleep(tickTime / 100)
			}
			lives[time.Since(stopped)] = true
		})
	}
	require.Greater(t, len(lives), 1)
}
