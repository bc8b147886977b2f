package zkconn_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

func learnt(t *testing.T, s *zkconn.Conn, path string) {
	t.Helper()
	require.True(t, s.WatchIncarnation(path))
	synctest.Wait()
}

func TestBorn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		conn.czxid, conn.latency = 5, time.Second
		s := use(t, conn, time.Hour)
		_, ok := s.Incarnation(t.Context(), "/a")
		require.False(t, ok, "nobody wants to know")

		began := time.Now()
		for range 10 {
			require.True(t, s.WatchIncarnation("/a"))
		}
		czxid, ok := s.Incarnation(t.Context(), "/a")
		require.True(t, ok)
		require.EqualValues(t, 5, czxid)
		require.Equal(t, time.Second, time.Since(began), "it waits for the answer")
		learnt(t, s, "/a")
		require.Equal(t, 1, conn.watchesSet())

		conn.fire("/a", zk.EventNodeDeleted)
		_, ok = s.Incarnation(t.Context(), "/a")
		require.False(t, ok, "it may be another one by now")
		conn.change(func() { conn.czxid = 6 })
		learnt(t, s, "/a")
		czxid, ok = s.Incarnation(t.Context(), "/a")
		require.True(t, ok)
		require.EqualValues(t, 6, czxid)
		conn.fire("/a", zk.EventNodeDeleted)
	})
}

func TestBornOfWhatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		conn.err = zk.ErrNoNode
		s := use(t, conn, time.Hour)
		learnt(t, s, "/a")
		_, ok := s.Incarnation(t.Context(), "/a")
		require.False(t, ok)
	})
}

// A znode can have been deleted while the connection was away, and the event be late.
func TestBornAfterTheConnectionWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		conn.czxid = 5
		s := use(t, conn, time.Hour)
		learnt(t, s, "/a")
		conn.reconnect()
		_, ok := s.Incarnation(t.Context(), "/a")
		require.False(t, ok)

		conn.change(func() { conn.czxid = 6 })
		learnt(t, s, "/a")
		czxid, ok := s.Incarnation(t.Context(), "/a")
		require.True(t, ok)
		require.EqualValues(t, 6, czxid, "by a read of its own")
		conn.fire("/a", zk.EventNodeDeleted)
	})
}

// The event can come right behind the answer that Incarnation waits for.
func TestBornOfWhatGoesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		conn.czxid = 5
		s := use(t, conn, time.Hour)
		conn.gone = true
		require.True(t, s.WatchIncarnation("/a"))
		_, ok := s.Incarnation(t.Context(), "/a")
		require.False(t, ok)
	})
}

func TestBirthsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour)
		const most = 1000
		for i := range most {
			learnt(t, s, fmt.Sprint("/", i))
		}
		require.False(t, s.WatchIncarnation("/x"))
		require.True(t, s.WatchIncarnation("/7"), "it is known")
		conn.fire("/7", zk.EventNodeDeleted)
		learnt(t, s, "/x")
		require.Equal(t, most+1, conn.watchesSet())

		// A process that runs for weeks sees any number of reconnects.
		for range 100 {
			conn.reconnect()
			learnt(t, s, "/x")
			require.False(t, s.WatchIncarnation("/y"))
		}
		for path := range conn.watches {
			conn.fire(path, zk.EventNodeDeleted)
		}
	})
}

// A watch that may be dead only since nobody has looked is not replaced for each pause
// between two users, which can be many a second.
func TestBirthsOfAnIdleConnectionAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s, uses := zkconn.Use(conn, config(time.Hour)), 0
		for s.WatchIncarnation("/a") {
			require.Less(t, uses, 1001)
			uses++
			synctest.Wait()
			s.Release()
			s = zkconn.Use(conn, config(time.Hour))
		}
		require.Equal(t, uses, conn.watchesSet())
		_, ok := s.Incarnation(t.Context(), "/a")
		require.False(t, ok)

		conn.reconnect()
		learnt(t, s, "/a")
		_, ok = s.Incarnation(t.Context(), "/a")
		require.True(t, ok)
		s.Release()
		conn.fire("/a", zk.EventNodeDeleted)
		time.Sleep(time.Minute)
	})
}

// While nobody uses the connection nobody sees that it is away.
func TestBornAfterAnIdleTime(t *testing.T) {
	for name, tells := range map[string]bool{
		"of a connection that tells of handshakes": true, "of another": false,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, cfg, handshake := newFake(), config(time.Hour), time.Now()
				if tells {
					cfg.LastHandshake = func(int64) (time.Time, bool) {
						return handshake, true
					}
				}
				idle := func() *zkconn.Conn {
					s := zkconn.Use(conn, cfg)
					learnt(t, s, "/a")
					s.Release()
					time.Sleep(time.Minute)
					return s
				}
				s := idle()
				require.Same(t, s, useWith(t, conn, cfg))
				_, ok := s.Incarnation(t.Context(), "/a")
				require.Equal(t, tells, ok, "it may have been away")
				s.Release()

				handshake = handshake.Add(time.Second)
				s = idle()
				handshake = handshake.Add(time.Second)
				zkconn.Use(conn, cfg)
				_, ok = s.Incarnation(t.Context(), "/a")
				require.False(t, ok)
				conn.fire("/a", zk.EventNodeDeleted)
			})
		})
	}
}

// Where nobody may wait, an answer under way is not known yet.
func TestTheIncarnationNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		conn.czxid, conn.latency = 5, time.Second
		s := use(t, conn, time.Hour)
		_, ok := s.IncarnationNow("/a")
		require.False(t, ok, "nobody wants to know")
		for sets := range 3 {
			require.True(t, s.WatchIncarnation("/a"))
			_, ok = s.IncarnationNow("/a")
			require.False(t, ok, "there is no answer yet")
			time.Sleep(2 * time.Second)
			czxid, ok := s.IncarnationNow("/a")
			require.True(t, ok)
			require.EqualValues(t, 5, czxid)
			require.Equal(t, sets+1, conn.watchesSet())
			conn.reconnect()
			_, ok = s.IncarnationNow("/a")
			require.False(t, ok, "it may be another one by now")
		}
		conn.fire("/a", zk.EventNodeDeleted)
	})
}
