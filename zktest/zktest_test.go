package zktest_test

import (
	"fmt"
	"io"
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
	conn, events, err := zk.Connect(addrs, 10*time.Second, zk.WithLogger(mute{}), zk.WithLogInfo(false))
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
	s := zktest.Start(t, zktest.WithServers(3))
	addrs := s.Addrs()
	require.Len(t, addrs, 3)
	require.Equal(t, addrs, s.Addrs(), "they listen once")
	require.Equal(t, strings.Join(addrs, ","), s.ConnectString())
	for i, addr := range addrs {
		conn := overTCP(t, []string{addr})
		_, err := conn.Create(fmt.Sprintf("/%d", i), nil, zk.FlagEphemeral, anyone)
		require.NoError(t, err)
		_, err = conn.Sync("/")
		require.NoError(t, err)
		children, _, err := conn.Children("/")
		require.NoError(t, err)
		require.Len(t, children, i+2, "all servers are of one service")
	}
	require.Equal(t, []string{"/0", "/1", "/2"}, s.Znodes())
	require.Len(t, s.Sessions(), 3)

	s.Peer(0).Stop()
	_, err := readAll(t, addrs[0], "ruok")
	require.True(t, err != nil, "a stopped server hangs up")
	s.Link("").Cut()
	_, err = readAll(t, addrs[1], "ruok")
	require.True(t, err != nil, "a cut link is one to all servers")
}

// ours counts the goroutines of connections and listeners.
func ours() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "zktest.(*conn).") + strings.Count(string(stacks), "zktest.(*Server).accept")
}

func TestCloseEndsItAll(t *testing.T) {
	before := ours()
	s := fresh(t, zktest.WithServers(3))
	addrs := s.Addrs()
	conn := overTCP(t, addrs)
	idle, err := net.Dial("tcp", addrs[0])
	require.NoError(t, err)
	defer idle.Close()
	require.Greater(t, ours(), before)
	s.Close()
	require.Equal(t, before, ours())
	_, err = net.Dial("tcp", addrs[0])
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = s.Dial("tcp", s.Peer(0).Addr(), time.Second)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	conn.Close()

	s.Close()
	s.Peer(0).Start()
	s.Peer(1).Freeze()
	s.Link("").Stall(zktest.Both)
	s.ExpireSession(1)
	require.Equal(t, addrs, s.Addrs())
	require.Equal(t, before, ours())

	late := fresh(t)
	late.Close()
	_, err = net.Dial("tcp", late.Addrs()[0])
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "nor does it listen later")
	require.Equal(t, before, ours())
}

func TestCloseEndsWithTheTest(t *testing.T) {
	var s *zktest.Server
	t.Run("", func(t *testing.T) { s = zktest.Start(t) })
	_, err := s.Dial("tcp", s.Peer(0).Addr(), time.Second)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// A bubble fails if a goroutine is left in it, or waits for ever.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := fresh(t, zktest.WithServers(3))
		g := visit(t, s.Link("a"), s.HostProvider(), term)
		silent := plugIn(t, s.Link("b"), s.Peer(0))
		stalled := s.Link("c")
		stalled.Stall(zktest.Both)
		waiting := later(func() error {
			_, err := stalled.Dial("tcp", s.Peer(0).Addr(), 48*time.Hour)
			return err
		})
		pass(24 * time.Hour)
		require.Equal(t, zk.StateHasSession, g.State())
		require.Equal(t, []zk.State(nil), g.passed())
		s.Close()
		require.True(t, silent.hungUp())
		require.ErrorIs(t, soon(t, waiting), syscall.ECONNREFUSED)
		require.Equal(t, 24*time.Hour, time.Since(began).Truncate(time.Minute))
	})
}

// readAll sends what is no packet, and returns all that comes back.
func readAll(t *testing.T, addr, words string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
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
	for n, modes := range map[int][]string{1: {"standalone"}, 3: {"follower", "follower", "leader"}} {
		s := zktest.Start(t, zktest.WithServers(n))
		for i, addr := range s.Addrs() {
			answer, err := readAll(t, addr, "ruok")
			require.NoError(t, err)
			require.Equal(t, "imok", answer)
			answer, err = readAll(t, addr, "srvr")
			require.NoError(t, err)
			require.Contains(t, answer, "Mode: "+modes[i]+"\n")
			require.Contains(t, answer, fmt.Sprintf("Zxid: 0x%x\n", s.Peer(i).Zxid()))
			require.Contains(t, answer, "Node count: 5\n", "as in a new server: / counts twice, and three below /zookeeper")
			_, err = readAll(t, addr, "what")
			require.ErrorIs(t, err, io.EOF)
		}
	}
}

func TestFourLetterWordsInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		say := func(p *zktest.Peer, words string) <-chan string {
			conn, err := s.Dial("tcp", p.Addr(), time.Second)
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
		hangs(t, answer, beat)
		f1.Thaw()
		require.Equal(t, "imok", soon(t, answer))
		s.Leader().Stop()
		require.Equal(t, "imok", soon(t, say(f1, "ruok")))
		require.Equal(t, "This ZooKeeper instance is not currently serving requests\n", soon(t, say(f1, "srvr")))
	})
}

func TestTooLongAPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		const longest = 0xfffff
		packet := func(length int) []byte { return append(ping(), make([]byte, length-8)...) }
		p := plugIn(t, s.Link(""), s.Peer(0)).open(term)
		p.send(packet(longest))
		require.Equal(t, outcome{-2, 0}, p.answer())
		write := later(func() error { _, err := p.Write([]byte{0, 0x10, 0, 0}); return err })
		require.NoError(t, soon(t, write))
		require.True(t, p.hungUp())

		p = plugIn(t, s.Link(""), s.Peer(0))
		_, err := p.Write([]byte{0, 0x10, 0, 0})
		require.NoError(t, err)
		require.True(t, p.hungUp(), "before the handshake, too")

		p = plugIn(t, s.Link(""), s.Peer(0)).open(term)
		_, err = io.WriteString(p, "ruok")
		require.NoError(t, err)
		require.True(t, p.hungUp(), "a word of four letters is nothing else after it")
	})
}

func TestAddresses(t *testing.T) {
	one := zktest.Start(t)
	conn, err := one.Dial("tcp", "any:1", time.Second)
	require.NoError(t, err)
	require.Equal(t, "any:1", conn.RemoteAddr().String())
	require.NoError(t, conn.Close())

	s := zktest.Start(t, zktest.WithServers(2))
	require.Len(t, s.Peers(), 2)
	addrs := s.Addrs()
	s.Peer(1).Stop()
	for _, of := range [][2]string{{s.Peer(0).Addr(), s.Peer(1).Addr()}, {addrs[0], addrs[1]}} {
		conn, err := s.Dial("tcp", of[0], time.Second)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		_, err = s.Dial("tcp", of[1], time.Second)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	_, err = s.Dial("tcp", "any:1", time.Second)
	require.ErrorContains(t, err, "no such server")
	require.Panics(t, func() { s.Peer(2) })
}

func TestHostProvider(t *testing.T) {
	for n, want := range map[int]string{1: "1 1! 1!", 3: "1 2 3 1! 2 3 1!"} {
		s := zktest.Start(t, zktest.WithServers(n))
		h := s.HostProvider()
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
		require.Equal(t, want, round(), "one after the other; retryStart after each round that did not connect")
		h.Connected()
		addr, again := h.Next()
		require.False(t, again)
		require.Equal(t, s.Peer(1%n).Addr(), addr)
		other, _ := s.HostProvider().Next()
		require.Equal(t, s.Peer(0).Addr(), other, "each client has one of its own")
	}
}

func TestZnodesAndWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		require.Empty(t, s.Znodes())
		g, slow := at(t, s, s.Leader()), at(t, s, f1)
		f1.Lag(time.Second)
		for _, path := range []string{"/b", "/a", "/a/c", "/zookeeperx", "/zookeeper/x"} {
			g.create(path, 0)
		}
		require.Equal(t, []string{"/a", "/a/c", "/b", "/zookeeperx"}, s.Znodes())
		require.Zero(t, s.Watches())
		_, _, _, err := g.GetW("/a")
		require.NoError(t, err)
		_, _, _, err = g.ChildrenW("/a")
		require.NoError(t, err)
		_, _, _, err = slow.ExistsW("/a")
		require.NoError(t, err)
		require.Equal(t, 3, s.Watches(), "over all servers")
		require.NoError(t, g.Delete("/a/c", -1))
		require.Equal(t, 2, s.Watches())
		pass(time.Second)
		require.Equal(t, 1, s.Watches(), "by now the lagging server has heard of the creation")
	})
}

func TestSetSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f1, _ := three(t)
		g := at(t, s, f1)
		require.ErrorIs(t, s.SetSequence("/a", 1), zk.ErrNoNode)
		g.create("/a", 0)
		require.NoError(t, s.SetSequence("/a", 41))
		require.Equal(t, "/a/n-0000000041", g.create("/a/n-", zk.FlagSequence))
		require.Equal(t, "/a/n-0000000042", g.create("/a/n-", zk.FlagSequence))
		require.NoError(t, s.SetSequence("/a", 7))
		require.Equal(t, "/a/n-0000000007", g.create("/a/n-", zk.FlagSequence))

		f1.Lag(time.Second)
		created := later(func() string { return g.create("/a/n-", zk.FlagSequence) })
		pass(1500 * time.Millisecond)
		require.ErrorContains(t, s.SetSequence("/a", 1<<31-2), "lags behind", "the create is not there yet")
		require.Equal(t, "/a/n-0000000008", soon(t, created))
		require.NoError(t, s.SetSequence("/a", 1<<31-2))
		s.Leader().Stop()
		g.until(zk.StateHasSession)
		require.Equal(t, "/a/n-2147483646", g.create("/a/n-", zk.FlagSequence), "every server has it")
		require.Equal(t, "/a/m-2147483647", g.create("/a/m-", zk.FlagSequence))
		require.Equal(t, "/a/n-2147483647", g.create("/a/n-", zk.FlagSequence), "the counter sticks at its limit")
		_, err := g.Create("/a/n-", nil, zk.FlagSequence, anyone)
		require.ErrorIs(t, err, zk.ErrNodeExists)
	})
}

func TestContainersAndTTLsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, f1, _ := three(t)
		g := at(t, s, f1)
		for _, path := range []string{"/used", "/unused", "/full"} {
			_, err := g.CreateContainer(path, nil, zk.FlagContainer, anyone)
			require.NoError(t, err)
		}
		_, err := g.CreateTTL("/short", nil, zk.FlagTTL, anyone, 70*time.Second)
		require.NoError(t, err)
		g.create("/used/x", 0)
		g.create("/full/x", 0)
		require.NoError(t, g.Delete("/used/x", -1))
		_, _, gone, err := g.ExistsW("/used")
		require.NoError(t, err)
		require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
		require.Equal(t, time.Minute, time.Since(began))
		_, _, gone, err = g.ExistsW("/short")
		require.NoError(t, err)
		require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
		require.Equal(t, 2*time.Minute, time.Since(began))
		pass(time.Hour)
		require.Equal(t, []string{"/full", "/full/x", "/unused"}, s.Znodes())
	})
}

// What the server itself does depends on the calls and the seed alone.
func TestReplay(t *testing.T) {
	play := func(seed uint64) (transcript []string) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s, f1, f2 := three(t, zktest.WithSeed(seed))
			note := func(what string) {
				transcript = append(transcript, fmt.Sprintf("%v %s %v %x %x %x %v", time.Since(began), what, s.Znodes(), s.Sessions(),
					f1.Zxid(), f2.Zxid(), s.Leader() != nil))
			}
			link := s.Link("a")
			link.Delay(time.Millisecond, 50*time.Millisecond)
			f1.Lag(30 * time.Millisecond)
			p := plugIn(t, link, f1).open(term)
			for i := range int32(5) {
				p.send(creation(i+1, fmt.Sprintf("/%d", i), zk.FlagEphemeral))
				note(fmt.Sprint(p.answer()))
			}
			s.Leader().Stop()
			note(fmt.Sprint(p.closed()))
			pass(2 * term)
			note("expired")
			require.Empty(t, s.Znodes())
		})
		return transcript
	}
	first := play(1)
	require.Equal(t, first, play(1))
	require.NotEqual(t, first, play(2), "the delays are drawn from the seed")
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for want, opts := range map[string][]zktest.Option{
		"zktest: WithServers(0): want 1 at least":                              {zktest.WithServers(0)},
		"zktest: WithTick(1µs): want a millisecond at least":                   {zktest.WithTick(time.Microsecond)},
		"zktest: WithMaxSession(3s): want 4s at least, the shortest timeout":   {zktest.WithMaxSession(3 * time.Second)},
		"zktest: WithSlowClose(-1ns): want 0 at least":                         {zktest.WithSlowClose(-1)},
		"zktest: WithMaxSession(-1ns): want 4s at least, the shortest timeout": {zktest.WithMaxSession(-1)},
		"zktest: WithMinSessionTimeout(-1ns): want a millisecond at least": {
			zktest.WithMinSessionTimeout(-1),
		},
		"zktest: WithMaxSession(40s): want 1m0s at least, the shortest timeout": {
			zktest.WithMinSessionTimeout(time.Minute),
		},
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
		server := zktest.Start(t, zktest.WithServers(3))
		conn, _, err := zk.Connect(server.Names(), 4*time.Second, zk.WithDialer(server.Dial), zk.WithHostProvider(server.HostProvider()),
			zk.WithLogInfo(false))
		require.NoError(t, err)
		_, _, err = conn.Exists("/")
		require.NoError(t, err)
		session := conn.SessionID()
		time.Sleep(time.Hour)
		require.Equal(t, []int64{session}, server.Sessions())
		conn.Close()
		time.Sleep(time.Minute) // what the client has under way ends by itself
	})
}

// The leader's pings come at a time of their own, which depends on the seed: what it has not been told by then is lost with a follower.
func TestTheSeedSetsWhenReportsAre(t *testing.T) {
	lives := map[time.Duration]bool{}
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			s := zktest.Start(t, zktest.WithServers(3), zktest.WithTick(beat), zktest.WithSeed(seed))
			g := visit(t, s.Link("a"), just(s.Peer(0).Addr()), term)
			session := g.SessionID()
			time.Sleep(10*beat + beat/7)
			s.Link("a").Cut()
			cut := time.Now()
			for len(s.Sessions()) > 0 {
				require.Contains(t, s.Sessions(), session)
				time.Sleep(beat / 100)
			}
			lives[time.Since(cut)] = true
		})
	}
	require.Greater(t, len(lives), 1)
}
