package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestReconnectedIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 8*time.Second)
		before := s.Reconnected()
		conn.change(func() { conn.state = zk.StateConnecting })
		time.Sleep(time.Second)
		require.Equal(t, before, s.Reconnected(), "it is away still")
		conn.change(func() { conn.state = zk.StateHasSession })
		<-before
		after := s.Reconnected()
		time.Sleep(time.Second)
		require.Equal(t, after, s.Reconnected(), "nothing has happened since")
		// Too short a gap to be seen, but another session.
		conn.change(func() { conn.id = 2 })
		<-after

		// Too short again, but a call was lost in it.
		after = s.Reconnected()
		conn.change(func() {
			conn.deleted = func() error { return zk.ErrConnectionClosed }
		})
		require.Error(t, s.Delete("/x", -1))
		<-after
	})
}
