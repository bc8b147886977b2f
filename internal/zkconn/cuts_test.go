package zkconn_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A narrow client's server hangs up on data that is longer than its limit, and all that
// is under way with it.
type narrow struct {
	*fake
	limit int

	cutting sync.Mutex
	cuts    int
	cut     chan struct{} // closed by the next cut
}

func newNarrow(limit int) *narrow {
	return &narrow{fake: newFake(), limit: limit, cut: make(chan struct{})}
}

func (n *narrow) Set(_ string, data []byte, _ int32) (*zk.Stat, error) {
	n.cutting.Lock()
	cut := n.cut
	if len(data) > n.limit {
		n.cuts++
		close(n.cut)
		n.cut = make(chan struct{})
	}
	n.cutting.Unlock()
	select {
	case <-cut:
		return nil, zk.ErrConnectionClosed
	case <-time.After(time.Second):
		return &zk.Stat{}, n.answer()
	}
}

func set(t *testing.T, s *zkconn.Conn, path string, size int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	return s.Retry(ctx, func() error {
		_, err := s.Set(path, make([]byte, size), -1)
		return err
	})
}

// What breaks the connection five times in a row is not sent again, nor is anything of
// that length for a while: it costs all others theirs.
func TestARequestThatBreaksTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newNarrow(10_000)
		s := use(t, conn, time.Hour)
		err := set(t, s, "/a", 20_000)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.ErrorContains(t, err, "set /a: ")
		require.ErrorContains(t, err, "20000 bytes of data")
		require.ErrorContains(t, err, "jute.maxbuffer")
		require.True(t, outcome.Final(err))
		require.True(t, outcome.NotDone(err))
		require.False(t, outcome.Refused(err), "it will be no shorter")
		require.Equal(t, 5, conn.cuts)
		require.Error(t, set(t, s, "/b", 30_000))
		require.Equal(t, 5, conn.cuts)
		require.NoError(t, set(t, s, "/b", 10_000))
		time.Sleep(10 * time.Minute)
		require.Error(t, set(t, s, "/b", 30_000))
		require.Equal(t, 10, conn.cuts, "the servers may have another limit by now")
	})
}

// A shorter one that was under way with it is not blamed.
func TestARequestNextToOneThatBreaksTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newNarrow(10_000)
		s := use(t, conn, time.Hour)
		short := make(chan error, 1)
		go func() { short <- set(t, s, "/short", 9000) }()
		require.Error(t, set(t, s, "/long", 20_000))
		require.NoError(t, <-short)
		require.Equal(t, 5, conn.cuts)
	})
}

// What may be an outage is no reason to give up: nothing else is answered in between.
func TestALongRequestInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newNarrow(1 << 20)
		s := use(t, conn, time.Hour)
		conn.change(func() { conn.err = zk.ErrSessionExpired }) // as good as any
		done := make(chan error, 1)
		go func() { done <- set(t, s, "/a", 20_000) }()
		time.Sleep(time.Minute)
		conn.change(func() { conn.err = nil })
		require.NoError(t, <-done)
	})
}

// No server accepts more than that, unless it is told to.
func TestARequestThatIsLongerThanAnyServerAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newNarrow(1 << 30)
		s := use(t, conn, time.Hour)
		require.NoError(t, set(t, s, "/a", zkconn.MaxRequest-8-4-2-4-4))
		err := set(t, s, "/a", zkconn.MaxRequest-8-4-2-4-4+1)
		require.ErrorContains(t, err, "at most 1048575")
		long := "/" + strings.Repeat("x", zkconn.MaxRequest)
		for name, request := range map[string]func() error{
			"list": func() error { _, _, err := s.Children(long); return err },
			"read": func() error { _, _, err := s.Get(long); return err },
			"create": func() error {
				_, err := s.Create(long, nil, 0, nil)
				return err
			},
			"container": func() error { return s.CreateContainer(long, nil) },
			"delete":    func() error { return s.Delete(long, -1) },
			"set":       func() error { _, err := s.Set(long, nil, -1); return err },
			"sync":      func() error { return s.Sync(long) },
		} {
			err := request() // which would panic: the client has no such call
			require.True(t, outcome.NotDone(err) && outcome.Final(err), name)
			require.Less(t, len(err.Error()), 2000, "the whole path is in the error")
		}
		require.Zero(t, conn.cuts)
	})
}
