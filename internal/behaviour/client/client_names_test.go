package client_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// clientNames is a name service that knows every name as 127.0.0.1, while it answers.
type clientNames struct{ down atomic.Bool }

// serve makes n the system's name service until the end of the test, which must not be
// parallel to others.
func (n *clientNames) serve(t *testing.T) {
	t.Helper()
	system := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = system })
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go n.answer(theirs)
			return ours, nil
		},
	}
}

// answer speaks DNS as it is spoken over TCP.
func (n *clientNames) answer(conn net.Conn) {
	defer conn.Close()
	for {
		var length [2]byte
		query := make([]byte, 512)
		if _, err := conn.Read(length[:]); err != nil {
			return
		}
		size, err := conn.Read(query[:binary.BigEndian.Uint16(length[:])])
		if err != nil {
			return
		}
		if n.down.Load() {
			continue
		}
		question := query[12:size]
		for question[0] != 0 {
			question = question[1+question[0]:]
		}
		end := size - len(question) + 5
		reply := append(query[:2:2], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
		reply = append(reply, query[12:end]...)
		if binary.BigEndian.Uint16(query[end-4:]) == 1 { // an IPv4 address is asked for
			reply[7] = 1
			reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
		}
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(reply)))
		if _, err := conn.Write(append(framed, reply...)); err != nil {
			return
		}
	}
}

// A name service that is down must not cost the sessions of a healthy ensemble: one
// broken connection, and every lock would be lost.
func TestClientOutlivesItsNameService(t *testing.T) {
	names := &clientNames{}
	names.serve(t)
	cluster := zktest.Start(t)
	_, port, err := net.SplitHostPort(cluster.Addrs()[0])
	require.NoError(t, err)
	c, err := recipes.Connect(clientContext(t), "zk1.corp.internal:"+port, 40*time.Second)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	lock := locktest.NewMutex(t, c, "/lock")
	ctx := locktest.Owner(t)
	require.NoError(t, lock.Acquire(ctx))
	hold, session := lock.Hold(ctx), c.SessionID()

	names.down.Store(true)
	for range 2 {
		cluster.Link("").Reset()
		locktest.Eventually(
			t, func() bool { return c.State() != zk.StateHasSession }, "no fault",
		)
		locktest.Eventually(t, func() bool { _, _, err := c.Get("/"); return err == nil },
			"the client does not come back")
		require.Equal(t, session, c.SessionID())
		require.NoError(t, hold.Err())
	}
}

// One host's name is not answered for; the others are well.
func TestOneNameUnanswered(t *testing.T) {
	names := &clientNames{}
	names.down.Store(true)
	names.serve(t)
	cluster := zktest.Start(t)
	_, port, err := net.SplitHostPort(cluster.Addrs()[0])
	require.NoError(t, err)
	clientLeaks(t)
	servers := "zk2.corp.internal:" + port + ",127.0.0.1:" + port
	began := time.Now()
	c, err := recipes.Connect(clientContext(t), servers, 10*time.Second,
		recipes.WithHostProvider(&clientOrder{}))
	require.NoError(t, err)
	const resolverGivesUp = 10 * time.Second // after two attempts of 5 s
	require.Less(t, time.Since(began), resolverGivesUp, "a lookup has the time of a dial")
	c.Close()
}
