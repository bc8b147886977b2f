package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// Who is woken by a loss wants to know for how long ZooKeeper was silent, and which
// timeout that was measured by.
func TestALossTellsOfTheLastContact(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(s *zkconn.Conn, conn *fake)
		says string
	}{
		"out of touch": {
			func(*zkconn.Conn, *fake) {},
			"out of touch with ZooKeeper (no response for 6.3s; the last request that " +
				"its leader confirmed is 9.5s old, and the session may end at 10s)",
		},
		"session ended": {
			func(_ *zkconn.Conn, conn *fake) { conn.change(func() { conn.id = 2 }) },
			"the ZooKeeper session has ended (last response 350ms ago, " +
				"session timeout 10s)",
		},
		"closed": {
			func(s *zkconn.Conn, _ *fake) { s.ConnClosed() },
			"the connection was closed by its owner (last response 320ms ago, " +
				"session timeout 10s)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := use(t, conn, 10*time.Second)
				held := hold(t, s, conn, "/held")
				time.Sleep(20 * time.Second)
				require.NoError(t, contact(s))
				defer conn.silence()()
				time.Sleep(320 * time.Millisecond)
				c.end(s, conn)
				held.await(t)
				require.EqualError(t, held.why, c.says)
			})
		})
	}
}
