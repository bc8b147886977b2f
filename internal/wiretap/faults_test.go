package wiretap_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/wiretap"
)

func TestCutKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		session := conn.SessionID()
		tap.Cut()
		synctest.Wait()
		create(t, conn, "/a", 0)
		require.Equal(t, session, conn.SessionID())
		require.Equal(t, 2, tap.Count(wiretap.Connect))
		require.Equal(t, 2, tap.Requests()[0].Conn)
	})
}

func TestAShortPartitionOnlyDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		tap.Partition()
		begin := time.Now()
		result := start(func() error {
			_, err := conn.Create("/a", nil, 0, anyone)
			return err
		})
		time.Sleep(sessionTimeout / 2) // the client would give up after 2/3
		pending(t, result)
		require.False(t, exists(server, "/a"))
		tap.Heal()
		require.NoError(t, <-result)
		require.Equal(t, sessionTimeout/2, time.Since(begin))
		require.Equal(t, 1, tap.Count(wiretap.Connect))
	})
}

func TestALongPartitionEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		session := conn.SessionID()
		tap.Partition()
		begin := time.Now()
		_, err := conn.Create("/a", nil, 0, anyone)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.Equal(t, sessionTimeout*2/3, time.Since(begin))
		time.Sleep(sessionTimeout / 4) // dials hang; the session lasts
		require.Equal(t, 1, tap.Count(wiretap.Connect))
		tap.Heal()
		time.Sleep(2 * time.Second) // a dial and a pause of the client
		create(t, conn, "/b", 0)
		require.Equal(t, session, conn.SessionID())
		require.Equal(t, 2, tap.Count(wiretap.Connect))
		require.False(t, exists(server, "/a"), "what a connection held is lost with it")
	})
}

func TestOneWayPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		tap.PartitionIn()
		in := start(func() error {
			_, err := conn.Create("/in", nil, 0, anyone)
			return err
		})
		pending(t, in)
		require.True(t, exists(server, "/in"))
		tap.Heal()
		require.NoError(t, <-in)

		release := make(chan struct{})
		held := tap.NthReply(wiretap.Sync, 1, wiretap.Hold(release))
		sync := start(func() error { _, err := conn.Sync("/"); return err })
		<-held
		tap.PartitionOut()
		out := start(func() error {
			_, err := conn.Create("/out", nil, 0, anyone)
			return err
		})
		pending(t, out)
		require.False(t, exists(server, "/out"))
		close(release)
		require.NoError(t, <-sync, "replies get through")
		tap.Heal()
		require.NoError(t, <-out)
	})
}

func TestPartitionAtAPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			if p.Path == "/last" {
				tap.Partition()
			}
			return wiretap.Pass
		})
		first := start(func() error {
			_, err := conn.Create("/last", nil, 0, anyone)
			return err
		})
		pending(t, first)
		second := start(func() error {
			_, err := conn.Create("/behind", nil, 0, anyone)
			return err
		})
		pending(t, second)
		require.True(t, exists(server, "/last"))
		require.False(t, exists(server, "/behind"))
		tap.Heal()
		require.NoError(t, <-first)
		require.NoError(t, <-second)
	})
}

func TestRefuseKeepsClientsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		tap.Refuse(true)
		create(t, conn, "/a", 0) // present connections stay
		tap.Cut()
		synctest.Wait()
		_, err := conn.Create("/b", nil, 0, anyone)
		require.ErrorIs(t, err, zk.ErrNoServer)
		tap.Refuse(false)
		time.Sleep(2 * time.Second) // the client pauses for one between dials
		create(t, conn, "/b", 0)
	})
}

func TestDelayCountsRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		tap.Delay(time.Second)
		begin := time.Now()
		create(t, conn, "/a", 0)
		require.Equal(t, 2*time.Second, time.Since(begin))
		create(t, conn, "/b", 0)
		require.Equal(
			t, 4*time.Second, time.Since(begin), "one after the other: two round trips",
		)

		begin = time.Now()
		first := start(func() error { return conn.Delete("/a", -1) })
		second := start(func() error { return conn.Delete("/b", -1) })
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.Equal(
			t, 2*time.Second, time.Since(begin), "at the same time: one round trip",
		)
	})
}

func TestADelayTakenBackKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, _, conn := tapServer(t)
		var arrived []string
		tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			arrived = append(arrived, p.String())
			return wiretap.Pass
		})
		tap.Delay(time.Second)
		first := start(func() error {
			_, err := conn.Create("/a", nil, 0, anyone)
			return err
		})
		synctest.Wait()
		second := start(func() error {
			_, err := conn.Create("/b", nil, 0, anyone)
			return err
		})
		synctest.Wait()
		tap.Delay(0)
		require.NoError(t, conn.Delete("/b", -1))
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		synctest.Wait()
		require.Equal(t, []string{"create /a", "create /b", "delete /b"}, arrived)
	})
}
