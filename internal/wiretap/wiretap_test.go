package wiretap_test

import (
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

func TestMain(m *testing.M) { os.Exit(zkserver.Main(m)) }

// sessionTimeout of the clients in bubbles, where time costs nothing. They ping every 10
// s and give up a silent connection after 20 s.
const sessionTimeout = 30 * time.Second

// address is any: there is one server.
const address = "zktest:2181"

var anyone = zk.WorldACL(zk.PermAll)

// tapServer gives a client that is connected to a zktest through a tap. It is for a
// bubble, where a goroutine that outlives the client fails the test.
func tapServer(
	t *testing.T, opts ...zktest.Option,
) (*wiretap.Tap, *zktest.Cluster, *zk.Conn) {
	t.Helper()
	server := zktest.Start(t, opts...)
	tap := wiretap.New(server.Dial)
	conn, _ := connect(t, address, sessionTimeout, tap.Dial, server.HostProvider())
	synctest.Wait() // until it has set its watches again, as it does even now
	t.Cleanup(func() {
		conn.Close()
		// A silent connection is noticed by its read deadline only.
		time.Sleep(sessionTimeout)
	})
	return tap, server, conn
}

func exists(server *zktest.Cluster, path string) bool {
	return slices.Contains(server.Znodes(), path)
}

func create(t *testing.T, conn *zk.Conn, path string, flags int32) string {
	t.Helper()
	created, err := conn.Create(path, []byte("data"), flags, anyone)
	require.NoError(t, err)
	return created
}

// start runs call and returns a channel for its error.
func start(call func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- call() }()
	return result
}

func pending(t *testing.T, result <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-result:
		t.Fatalf("the call has returned: %v", err)
	default:
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestCountsTheChildrenOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		var counted []int
		tap.OnReply(func(_, reply wiretap.Packet) wiretap.Verdict {
			if reply.Op == wiretap.GetChildren2 {
				counted = append(counted, reply.Children)
			}
			return wiretap.Pass
		})
		create(t, conn, "/a", 0)
		for _, child := range []string{"/a/b", "/a/c"} {
			_, _, err := conn.Children("/a")
			require.NoError(t, err)
			create(t, conn, child, 0)
		}
		_, _, err := conn.Children("/a")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, counted)
	})
}

func TestListsRequestsInTheOrderSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		create(t, conn, "/a", 0)
		_, _, _, err := conn.ChildrenW("/a")
		require.NoError(t, err)
		_, _, err = conn.Get("/a")
		require.NoError(t, err)
		_, err = conn.Sync("/a")
		require.NoError(t, err)
		time.Sleep(sessionTimeout + time.Second)
		require.NoError(t, conn.AddAuth("digest", []byte("me:secret")))
		require.NoError(t, conn.Delete("/a", -1))

		require.Equal(t, []wiretap.Op{
			wiretap.Create, wiretap.GetChildren2, wiretap.GetData, wiretap.Sync,
			wiretap.Auth, wiretap.Delete,
		}, tap.Ops())
		var lines []string
		for _, p := range tap.Requests() {
			require.Equal(t, 1, p.Conn)
			require.Positive(t, p.Xid)
			require.False(t, p.Reply)
			lines = append(lines, p.String())
		}
		require.Equal(t, []string{
			"create /a", "getChildren2 /a +watch", "getData /a", "sync /a", "auth",
			"delete /a",
		}, lines)
		require.Equal(t, 1, tap.Count(wiretap.Connect))
		require.Equal(t, 3, tap.Count(wiretap.Ping), "one every 10 s, in 31 s")
		require.Equal(
			t, 1, tap.Count(wiretap.Event),
			"the watch on the children of the deleted node",
		)

		tap.Reset()
		require.Empty(t, tap.Requests())
		require.Zero(
			t,
			tap.Count(wiretap.Connect)+tap.Count(wiretap.Ping)+tap.Count(wiretap.Event),
		)
	})
}

func TestHooksSeeEachPacketWithWhatItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		var asked, answered []string
		var xids [][2]int32
		tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			asked = append(asked, p.String())
			return wiretap.Pass
		})
		tap.OnReply(func(request, reply wiretap.Packet) wiretap.Verdict {
			answered = append(answered, request.String()+" > "+reply.String())
			xids = append(xids, [2]int32{request.Xid, reply.Xid})
			return wiretap.Pass
		})
		path := create(t, conn, "/x-", zk.FlagSequence)
		_, _, events, err := conn.GetW(path)
		require.NoError(t, err)
		require.NoError(t, conn.Delete(path, -1))
		require.ErrorIs(t, conn.Delete(path, -1), zk.ErrNoNode)
		require.Equal(t, zk.EventNodeDeleted, (<-events).Type)
		synctest.Wait()

		require.Equal(t, []string{
			"create /x-", "getData /x-0000000000 +watch", "delete /x-0000000000",
			"delete /x-0000000000",
		}, asked)
		require.Equal(t, []string{
			"create /x- > create reply 0 /x-0000000000",
			"getData /x-0000000000 +watch > getData reply 0",
			" > EventNodeDeleted /x-0000000000",
			"delete /x-0000000000 > delete reply 0",
			"delete /x-0000000000 > delete reply -101",
		}, answered)
		for i, pair := range xids {
			if i != 2 {
				require.Equal(t, pair[0], pair[1])
			}
		}
	})
}

func TestLoseReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		lost := tap.LoseReply(wiretap.Create, 2)
		create(t, conn, "/first", 0)
		require.False(t, closed(lost))
		_, err := conn.Create("/second", nil, 0, anyone)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		<-lost
		require.True(t, exists(server, "/second"), "the server had done it")

		synctest.Wait()

		create(t, conn, "/third", 0) // once only
		require.Equal(t, 2, tap.Count(wiretap.Connect))
	})
}

func TestNothingBehindALostReplyReachesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		tap.Delay(time.Second)
		tap.LoseReply(wiretap.Create, 1)
		first := start(func() error {
			_, err := conn.Create("/first", nil, 0, anyone)
			return err
		})
		synctest.Wait()
		second := start(func() error {
			_, err := conn.Create("/second", nil, 0, anyone)
			return err
		})
		require.ErrorIs(t, <-first, zk.ErrConnectionClosed)
		require.ErrorIs(t, <-second, zk.ErrConnectionClosed)
		require.True(t, exists(server, "/first"))
		require.False(t, exists(server, "/second"))
		require.Equal(
			t, []wiretap.Op{wiretap.Create, wiretap.Create}, tap.Ops(), "both were sent",
		)
	})
}

func TestLoseRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		create(t, conn, "/a", 0)
		create(t, conn, "/b", 0)
		lost := tap.LoseRequest(wiretap.Delete, 2)
		require.NoError(t, conn.Delete("/a", -1))
		require.False(t, closed(lost))
		require.ErrorIs(t, conn.Delete("/b", -1), zk.ErrConnectionClosed)
		<-lost
		require.True(t, exists(server, "/b"), "the server never saw it")
	})
}

func TestDropLeavesTheConnectionOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		dropped := tap.NthRequest(wiretap.Create, 1, wiretap.Drop)
		silent := start(func() error {
			_, err := conn.Create("/a", nil, 0, anyone)
			return err
		})
		<-dropped
		lost := tap.NthReply(wiretap.Create, 1, wiretap.Drop)
		alsoSilent := start(func() error {
			_, err := conn.Create("/b", nil, 0, anyone)
			return err
		})
		<-lost
		create(t, conn, "/c", 0)
		time.Sleep(10 * sessionTimeout) // pings and their replies keep the connection
		pending(t, silent)
		pending(t, alsoSilent)
		require.False(t, exists(server, "/a"))
		require.True(t, exists(server, "/b"))
		require.Equal(t, 1, tap.Count(wiretap.Connect))
	})
}

func TestPassAndCutOfAReplyGivesItToTheClientFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		cut := tap.NthReply(wiretap.Create, 1, wiretap.PassAndCut)
		create(t, conn, "/a", 0)
		<-cut
		synctest.Wait()
		create(t, conn, "/b", 0)
		require.Equal(t, 2, tap.Count(wiretap.Connect))
	})
}

func TestARuleDoesNotCountWhatAnotherTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		first := tap.NthRequest(wiretap.Delete, 1, wiretap.Answer(-111))
		second := tap.NthRequest(wiretap.Delete, 1, wiretap.Answer(-103))
		require.ErrorIs(t, conn.Delete("/a", -1), zk.ErrNotEmpty)
		synctest.Wait()
		require.True(t, closed(first))
		require.False(t, closed(second))
		require.ErrorIs(t, conn.Delete("/a", -1), zk.ErrBadVersion)
		require.ErrorIs(t, conn.Delete("/a", -1), zk.ErrNoNode)
	})
}

func TestALostEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		create(t, conn, "/a", 0)
		_, _, events, err := conn.GetW("/a")
		require.NoError(t, err)
		dropped := tap.NthReply(wiretap.Event, 1, wiretap.Drop)
		require.NoError(t, conn.Delete("/a", -1))
		<-dropped
		synctest.Wait()
		require.Empty(t, events)
	})
}

func TestAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			if p.Op == wiretap.CreateContainer {
				return wiretap.Answer(-6)
			}
			return wiretap.Pass
		})
		_, err := conn.CreateContainer("/a", nil, zk.FlagContainer, anyone)
		require.EqualError(t, err, "unknown error: -6")
		require.False(t, exists(server, "/a"))

		tap.NthReply(wiretap.Create, 1, wiretap.Answer(-4))
		_, err = conn.Create("/b", nil, 0, anyone)
		require.EqualError(t, err, "unknown error: -4")
		require.True(
			t, exists(server, "/b"),
			"the server had done it, the client was told otherwise",
		)
		require.Equal(t, 1, tap.Count(wiretap.Connect))
	})
}

func TestAnAnswerWaitsForTheRepliesBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t, zktest.WithSlowCommit(time.Second))
		answered := tap.NthRequest(wiretap.Sync, 1, wiretap.Answer(-6))
		first := start(func() error {
			_, err := conn.Create("/a", nil, 0, anyone)
			return err
		})
		pending(t, first)
		second := start(func() error { _, err := conn.Sync("/"); return err })
		pending(t, second)
		require.False(t, closed(answered))
		require.NoError(t, <-first)
		require.EqualError(t, <-second, "unknown error: -6")
		<-answered
	})
}

func TestAnswerAndCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		session, begin := conn.SessionID(), time.Now()
		tap.Delay(time.Second)
		cut := tap.NthRequest(wiretap.CreateContainer, 1, wiretap.AnswerAndCut(-6))
		first := start(func() error {
			_, err := conn.CreateContainer("/a", nil, zk.FlagContainer, anyone)
			return err
		})
		synctest.Wait()
		second := start(func() error {
			_, err := conn.Create("/b", nil, 0, anyone)
			return err
		})
		require.EqualError(t, <-first, "unknown error: -6")
		require.ErrorIs(t, <-second, zk.ErrConnectionClosed)
		<-cut
		require.Equal(t, 2*time.Second, time.Since(begin))
		require.False(t, exists(server, "/b"))
		synctest.Wait()
		create(t, conn, "/c", 0)
		require.Equal(t, session, conn.SessionID())
	})
}

func TestAnswerToAConnectEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		create(t, conn, "/a", 0)
		_, _, events, err := conn.GetW("/a")
		require.NoError(t, err)
		session := conn.SessionID()
		told := tap.NthRequest(wiretap.Connect, 1, wiretap.Answer(-112))
		tap.Cut()
		<-told
		synctest.Wait()
		require.ErrorIs(t, (<-events).Err, zk.ErrSessionExpired)
		create(t, conn, "/b", 0)
		require.NotEqual(t, session, conn.SessionID())
		require.Equal(t, 3, tap.Count(wiretap.Connect))
	})
}

func TestHoldKeepsBackWhatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		release := make(chan struct{})
		held := tap.NthRequest(wiretap.Create, 1, wiretap.Hold(release))
		first := start(func() error {
			_, err := conn.Create("/a", nil, 0, anyone)
			return err
		})
		<-held
		second := start(func() error {
			_, err := conn.Create("/b", nil, 0, anyone)
			return err
		})
		pending(t, first)
		pending(t, second)
		require.False(t, exists(server, "/a") || exists(server, "/b"))
		close(release)
		require.NoError(t, <-first)
		require.NoError(t, <-second)
	})
}

func TestAHeldPacketEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		held := tap.NthRequest(wiretap.Create, 1, wiretap.Hold(nil))
		result := start(func() error {
			_, err := conn.Create("/a", nil, 0, anyone)
			return err
		})
		<-held
		require.ErrorIs(
			t, <-result, zk.ErrConnectionClosed,
			"the pings are held too: the client gives up",
		)
		create(t, conn, "/b", 0)
		require.False(t, exists(server, "/a"))
	})
}

func TestDialErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := wiretap.New(zktest.Start(t).Dial)
		tap.Refuse(true)
		_, err := tap.Dial("tcp", address, time.Second)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.EqualError(t, err, "dial tcp zktest:2181: connection refused")
		tap.Refuse(false)

		for _, partition := range []func(){
			tap.Partition, tap.PartitionIn, tap.PartitionOut,
		} {
			partition()
			begin := time.Now()
			_, err = tap.Dial("tcp", address, time.Second)
			var timeout net.Error
			require.ErrorAs(t, err, &timeout)
			require.True(t, timeout.Timeout())
			require.Equal(t, time.Second, time.Since(begin))
			time.AfterFunc(time.Second, tap.Heal)
			conn, err := tap.Dial("tcp", address, time.Minute)
			require.NoError(t, err)
			require.Equal(
				t, 2*time.Second, time.Since(begin),
				"the dial goes on when the partition heals",
			)
			require.NoError(t, conn.Close())
		}
	})
}

func TestASilentConnectionHonoursDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := wiretap.New(zktest.Start(t).Dial)
		conn, err := tap.Dial("tcp", address, 0)
		require.NoError(t, err)
		tap.PartitionIn()
		require.NoError(t, conn.SetWriteDeadline(time.Now().Add(time.Second)))
		hello().send(conn)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Second)))
		begin := time.Now()
		_, err = conn.Read(make([]byte, 4))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))

		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		tap.Heal()
		require.Len(t, receive(conn), 36, "the connect response was held, not lost")
		require.NoError(t, conn.Close())
	})
}

func TestTheServersCloseComesBehindItsPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := wiretap.New(zktest.Start(t).Dial)
		conn, err := tap.Dial("tcp", address, 0)
		require.NoError(t, err)
		hello().send(conn)
		require.NotNil(t, receive(conn))
		tap.PartitionIn()
		new(packet).int32(1).int32(-11).send(conn) // the server answers this, and closes
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Second)))
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		tap.Heal()
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		require.Len(t, receive(conn), 16)
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

// A goroutine that is left over fails the bubble.
func TestNoGoroutineOutlivesItsConnection(t *testing.T) {
	waits := map[string]func(tap *wiretap.Tap){
		"delay":     func(tap *wiretap.Tap) { tap.Delay(time.Hour) },
		"partition": func(tap *wiretap.Tap) { tap.Partition() },
		"held": func(tap *wiretap.Tap) {
			tap.NthRequest(wiretap.Sync, 1, wiretap.Hold(nil))
		},
		// The reply is at the client, which does not read it.
		"unread": func(*wiretap.Tap) {},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tap := wiretap.New(zktest.Start(t).Dial)
				conn, err := tap.Dial("tcp", address, 0)
				require.NoError(t, err)
				hello().send(conn)
				require.NotNil(t, receive(conn))
				wait(tap)
				new(packet).int32(1).int32(9).string("/").send(conn)
				synctest.Wait()
				require.NoError(t, conn.Close())
			})
		})
	}
}
