package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// Of more notes than are kept, the new one is, and another is not.
func TestTheNotesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := use(t, newFake(), time.Second)
		require.Nil(t, s.Noted(0))
		const most = 1000
		for i := range most {
			s.Note(i, 1)
		}
		s.Note(0, 2) // takes no place more
		for i := range most {
			require.NotNil(t, s.Noted(i))
		}
		require.Equal(t, 2, s.Noted(0))
		s.Note(most, 1)
		require.NotNil(t, s.Noted(most))
		kept := 0
		for i := range most {
			if s.Noted(i) != nil {
				kept++
			}
		}
		require.Equal(t, most-1, kept)
	})
}

// What was learned outlasts a pause between two users, and not the use of a connection.
func TestNotesOutlastAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := zkconn.Use(conn, config(time.Second))
		for range 3 {
			s.Note("a", 1)
			s.Release()
			time.Sleep(9 * time.Second)
			require.Same(t, s, zkconn.Use(conn, config(time.Second)))
		}
		s.Release()
		time.Sleep(11 * time.Second)
		require.NotSame(t, s, use(t, conn, time.Second))
	})
}

func TestNotesDoNotOutlastTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := zkconn.Use(conn, config(time.Second))
		s.Note("a", 1)
		s.ConnClosed()
		<-s.Closed()
		s.Release()
		require.NotSame(t, s, use(t, conn, time.Second))
	})
}

// What kept the connection's Session for longer does not count against what is noted
// later.
func TestNotesOutlastEachPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := zkconn.Use(conn, config(time.Second))
		learnt(t, s, "/a")
		s.Release()
		time.Sleep(time.Minute)
		require.Same(t, s, zkconn.Use(conn, config(time.Second)), "a watch is pending")
		conn.fire("/a", zk.EventNodeDeleted)
		s.Note("a", 1)
		s.Release()
		time.Sleep(9 * time.Second)
		require.Same(t, s, use(t, conn, time.Second))
	})
}
