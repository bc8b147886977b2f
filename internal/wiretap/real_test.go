package wiretap_test

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// What zktest cannot vouch for: that the packets are a real server's, and that it does
// what the tap says of it.

// realTap gives a tap in front of a real server, an own path there, and checks at the
// test's end that no goroutine is left.
func realTap(t *testing.T) (tap *wiretap.Tap, addr, path string) {
	t.Helper()
	if os.Getenv("MUST") != "" { // else on zktest, which is better than nothing
		zkserver.Real(t, "another author than the tap")
	}
	addr = zkserver.Shared(t).Servers[0].Addr
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	path = zkserver.Path(t)
	direct, _ := connectReal(t, addr, net.DialTimeout, 10*time.Second)
	create(t, direct, path, 0)
	return wiretap.New(nil), addr, path
}

// connectReal opens a session through the dialer and closes it when the test ends.
func connectReal(
	t *testing.T, addr string, dial zk.Dialer, timeout time.Duration,
) (*zk.Conn, <-chan struct{}) {
	t.Helper()
	conn, sessions := connect(t, addr, timeout, dial, zk.NewDNSHostProvider())
	t.Cleanup(conn.Close)
	return conn, sessions
}

func find(t *testing.T, conn *zk.Conn, path string) (bool, *zk.Stat) {
	t.Helper()
	_, err := conn.Sync(path)
	require.NoError(t, err)
	found, stat, err := conn.Exists(path)
	require.NoError(t, err)
	return found, stat
}

func TestRealRequestsAndReplies(t *testing.T) {
	tap, addr, root := realTap(t)
	conn, _ := connectReal(t, addr, tap.Dial, 10*time.Second)
	replies := make(chan wiretap.Packet, 20)
	tap.OnReply(func(_, reply wiretap.Packet) wiretap.Verdict {
		replies <- reply
		return wiretap.Pass
	})
	require.NoError(t, conn.AddAuth("digest", []byte("me:secret")))
	node := create(t, conn, root+"/x-", zk.FlagEphemeral|zk.FlagSequence)
	_, err := conn.CreateContainer(root+"/c", nil, zk.FlagContainer, anyone)
	require.NoError(t, err)
	_, _, _, err = conn.GetW(node)
	require.NoError(t, err)
	_, err = conn.Set(node, []byte("changed"), -1)
	require.NoError(t, err)
	find(t, conn, node)
	_, _, err = conn.Children(root)
	require.NoError(t, err)
	_, err = conn.Multi(&zk.CheckVersionRequest{
		Path: node, Version: 1,
	}, &zk.DeleteRequest{Path: node, Version: -1})
	require.NoError(t, err)
	require.ErrorIs(t, conn.Delete(node, -1), zk.ErrNoNode)

	var requests, answers []string
	for _, p := range tap.Requests() {
		requests = append(requests, p.String())
	}
	require.Equal(t, []string{
		"auth", "create " + root + "/x-", "createContainer " + root + "/c",
		"getData " + node + " +watch", "setData " + node,
		"sync " + node, "exists " + node, "getChildren2 " + root, "multi",
		"delete " + node,
	}, requests)
	for range len(requests) + 1 {
		p := <-replies
		answers = append(answers, p.String())
		if p.Op != wiretap.Event && p.Op != wiretap.Auth {
			require.Positive(t, p.Zxid, p)
		}
	}
	require.Equal(t, []string{
		"auth reply 0", "create reply 0 " + node,
		"createContainer reply 0 " + root + "/c", "getData reply 0",
		"EventNodeDataChanged " + node, "setData reply 0", "sync reply 0 " + node,
		"exists reply 0",
		"getChildren2 reply 0", "multi reply 0", "delete reply -101",
	}, answers)
}

func TestRealLoseReplyAndLoseRequest(t *testing.T) {
	tap, addr, root := realTap(t)
	conn, sessions := connectReal(t, addr, tap.Dial, 10*time.Second)
	other, _ := connectReal(t, addr, net.DialTimeout, 10*time.Second)

	lost := tap.LoseReply(wiretap.Create, 1)
	_, err := conn.Create(root+"/reply", nil, zk.FlagEphemeral, anyone)
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
	<-lost
	found, stat := find(t, other, root+"/reply")
	require.True(t, found, "the server had done it")
	require.Equal(t, conn.SessionID(), stat.EphemeralOwner)

	<-sessions
	lost = tap.LoseRequest(wiretap.Create, 1)
	_, err = conn.Create(root+"/request", nil, zk.FlagEphemeral, anyone)
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
	<-lost
	<-sessions
	// Behind anything that the server may have had of it.
	found, _ = find(t, conn, root+"/request")
	require.False(t, found)
}

func TestRealCutKeepsSessionAndWatches(t *testing.T) {
	tap, addr, root := realTap(t)
	conn, sessions := connectReal(t, addr, tap.Dial, 10*time.Second)
	session := conn.SessionID()
	node := create(t, conn, root+"/a", zk.FlagEphemeral)
	_, _, changes, err := conn.GetW(node)
	require.NoError(t, err)
	set := tap.NthReply(wiretap.SetWatches, 1, wiretap.Pass)
	tap.Cut()
	<-sessions
	<-set
	require.Equal(t, session, conn.SessionID())
	require.NoError(t, conn.Delete(node, -1))
	require.Equal(t, zk.EventNodeDeleted, (<-changes).Type)
}

func TestRealPartitionExpiresTheSession(t *testing.T) {
	tap, addr, root := realTap(t)
	conn, _ := connectReal(t, addr, tap.Dial, time.Second)
	other, _ := connectReal(t, addr, net.DialTimeout, 10*time.Second)
	node := create(t, conn, root+"/a", zk.FlagEphemeral)
	_, _, own, err := conn.GetW(node)
	require.NoError(t, err)
	_, _, theirs, err := other.GetW(node)
	require.NoError(t, err)
	tap.Partition()
	require.Equal(t, zk.EventNodeDeleted, (<-theirs).Type)
	require.Empty(t, own, "the client cannot know")
	tap.Heal()
	require.ErrorIs(t, (<-own).Err, zk.ErrSessionExpired)
}

func TestRealSessionOutlivesAForgedExpiry(t *testing.T) {
	tap, addr, root := realTap(t)
	conn, sessions := connectReal(t, addr, tap.Dial, 10*time.Second)
	node := create(t, conn, root+"/a", zk.FlagEphemeral)
	_, _, own, err := conn.GetW(node)
	require.NoError(t, err)
	session := conn.SessionID()
	tap.NthRequest(wiretap.Connect, 1, wiretap.Answer(-112))
	tap.Cut()
	require.ErrorIs(t, (<-own).Err, zk.ErrSessionExpired)
	<-sessions
	found, stat := find(t, conn, node)
	require.True(t, found)
	require.Equal(t, session, stat.EphemeralOwner)
	require.NotEqual(t, session, conn.SessionID())
}

func TestRealShiftSequence(t *testing.T) {
	tap, addr, root := realTap(t)
	tap.ShiftSequence(2147483647)
	conn, _ := connectReal(t, addr, tap.Dial, 10*time.Second)
	other, _ := connectReal(t, addr, net.DialTimeout, 10*time.Second)
	create(t, conn, root+"/x-lock-", zk.FlagSequence)
	wrapped := create(t, conn, root+"/x-lock-", zk.FlagSequence)
	require.Equal(t, root+"/x-lock--2147483648", wrapped)
	children, _, err := conn.Children(root)
	require.NoError(t, err)
	require.ElementsMatch(
		t, []string{"x-lock-2147483647", "x-lock--2147483648"}, children,
	)
	_, err = conn.Multi(&zk.CheckVersionRequest{Path: wrapped}, &zk.DeleteRequest{
		Path: root + "/x-lock-2147483647",
	})
	require.NoError(t, err)
	children, _, err = other.Children(root)
	require.NoError(t, err)
	require.Equal(t, []string{"x-lock-0000000001"}, children)
}

// AnswerAndCut(-6) is what a real server does with an operation that it does not know:
// both are asked for one.
func TestRealServersAnswerAndCutUnknownOperations(t *testing.T) {
	for name, op := range map[string]int32{"real": 77, "forged": 9} {
		t.Run(name, func(t *testing.T) {
			tap, addr, _ := realTap(t)
			tap.NthRequest(wiretap.Sync, 1, wiretap.AnswerAndCut(-6))
			conn, err := tap.Dial("tcp", addr, time.Second)
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
			hello().send(conn)
			require.NotNil(t, receive(conn))
			var question packet
			question.int32(1).int32(op).string("/").send(conn)
			answer := receive(conn)
			require.Equal(
				t, []int32{1, -6}, []int32{answer.int32At(0), answer.int32At(12)},
			)
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			require.Len(t, tap.Requests(), 1)
		})
	}
}
