package zkconn_test

import (
	"sync/atomic"
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
		times, before := s.Reconnects(), s.Reconnected()
		conn.change(func() { conn.state = zk.StateConnecting })
		time.Sleep(time.Second)
		require.Equal(t, before, s.Reconnected(), "it is away still")
		conn.change(func() { conn.state = zk.StateHasSession })
		<-before
		require.Equal(t, times+1, s.Reconnects())
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

// A plain connection may have been away unseen, which only its server shows. That it has
// none for a moment says nothing.
func TestAnotherServerIsAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server atomic.Value
		server.Store("a")
		cfg := config(8 * time.Second)
		cfg.Server = func() string { return server.Load().(string) }
		s := useWith(t, newFake(), cfg)
		epoch := s.Epoch()
		for _, next := range []struct {
			server string
			epoch  uint64
		}{
			{"", epoch},
			{"a", epoch},
			{"b", epoch + 1},
			{"", epoch + 1},
			{"a", epoch + 2},
		} {
			server.Store(next.server)
			require.Equal(t, next.epoch, s.Epoch(), next.server)
		}
	})
}
