package zkconn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// refusing is a Conn that ends every call with an error.
type refusing struct {
	zkconn.Client
	err error
}

func (r *refusing) Create(string, []byte, int32, []zk.ACL) (string, error) {
	return "", r.err
}

func (r *refusing) SessionID() int64 { return 1 }

func (r *refusing) State() zk.State { return zk.StateHasSession }

func TestRefusalsNameTheRequest(t *testing.T) {
	wrapped := fmt.Errorf("chroot: %w", zk.ErrNoAuth)
	const lacks = " (the session lacks CREATE on "
	for _, c := range []struct {
		path string
		err  error
		text string
	}{
		{"/a/b", zk.ErrNoAuth, "create /a/b: " + zk.ErrNoAuth.Error() + lacks + "/a)"},
		{"/a", zk.ErrNoAuth, "create /a: " + zk.ErrNoAuth.Error() + lacks + "/)"},
		{"/a", wrapped, "create /a: chroot: " + zk.ErrNoAuth.Error()},
		{"/a", zk.ErrNodeExists, "create /a: " + zk.ErrNodeExists.Error()},
		{"/a", errors.New("unknown error: -6"), "create /a: unknown error: -6 " +
			"(unimplemented: the server does not know the request)"},
		{"/a", zk.ErrConnectionClosed, zk.ErrConnectionClosed.Error()},
	} {
		conn := &refusing{err: c.err}
		s := zkconn.Use(conn, config(0))
		_, err := s.Create(c.path, nil, 0, nil)
		s.Release()
		require.ErrorIs(t, err, c.err)
		require.EqualError(t, err, c.text)
		require.Equal(t, outcome.Unimplemented(c.err), outcome.Unimplemented(err))
	}
}

// answering is a Conn whose calls succeed.
type answering struct{ zkconn.Client }

func (answering) SessionID() int64 { return 1 }

func (answering) State() zk.State { return zk.StateHasSession }

func (answering) Sync(string) (string, error) { return "", nil }

func (answering) Delete(string, int32) error { return nil }

func (answering) Set(string, []byte, int32) (*zk.Stat, error) { return nil, nil }

func (answering) Get(string) ([]byte, *zk.Stat, error) { return nil, nil, nil }

func (answering) Children(string) ([]string, *zk.Stat, error) { return nil, nil, nil }

func (answering) Create(string, []byte, int32, []zk.ACL) (string, error) {
	return "", nil
}

func (answering) CreateContainer(string, []byte, int32, []zk.ACL) (string, error) {
	return "", nil
}

func (answering) GetW(string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	return nil, nil, nil, nil
}

func (answering) ChildrenW(string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	return nil, nil, nil, nil
}

// The leader has a part in each write and each sync, whoever makes it, and in no read.
func TestEachWriteAndSyncKeepsTheClock(t *testing.T) {
	for name, c := range map[string]struct {
		call  func(s *zkconn.Conn) error
		keeps bool
	}{
		"sync":   {func(s *zkconn.Conn) error { return s.Sync("/") }, true},
		"delete": {func(s *zkconn.Conn) error { return s.Delete("/", -1) }, true},
		"set": {func(s *zkconn.Conn) error {
			_, err := s.Set("/", nil, -1)
			return err
		}, true},
		"create": {func(s *zkconn.Conn) error {
			_, err := s.Create("/", nil, 0, nil)
			return err
		}, true},
		"create container": {func(s *zkconn.Conn) error {
			return s.CreateContainer("/", nil)
		}, true},
		"get": {func(s *zkconn.Conn) error {
			_, _, err := s.Get("/")
			return err
		}, false},
		"get and watch": {func(s *zkconn.Conn) error {
			_, _, _, err := s.GetW("/")
			return err
		}, false},
		"list": {func(s *zkconn.Conn) error {
			_, _, err := s.Children("/")
			return err
		}, false},
		"list and watch": {func(s *zkconn.Conn) error {
			_, _, _, err := s.WatchChildren(context.Background(), "/")
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := use(t, &answering{}, time.Hour) // no heartbeat gets into the way
				s.Track("/a", 1, newEphemeral())
				require.NoError(t, c.call(s))
				if c.keeps {
					require.NoError(t, s.Hold("/a", 0))
				} else {
					require.ErrorIs(t, s.Hold("/a", 0), outcome.ErrOutOfTouch)
				}
			})
		})
	}
}

// What proves that the leader is there: a write that he has judged, also if he refused
// it, in the session in which the request was made. What a follower refuses by itself
// does not (enableEagerACLCheck: NoAuth and InvalidACL).
func TestWhatKeepsTheClock(t *testing.T) {
	wrapped := fmt.Errorf("tap: %w", zk.ErrBadVersion)
	for name, c := range map[string]struct {
		err   error
		id    int64
		keeps bool
	}{
		"an answer":                    {nil, 1, true},
		"a refusal":                    {zk.ErrNoNode, 1, true},
		"not empty":                    {zk.ErrNotEmpty, 1, true},
		"wrapped":                      {wrapped, 1, true},
		"no permission":                {zk.ErrNoAuth, 1, false},
		"a bad ACL":                    {zk.ErrInvalidACL, 1, false},
		"bad arguments":                {zk.ErrBadArguments, 1, false},
		"read-only":                    {errors.New("unknown error: -119"), 1, false},
		"throttled":                    {errors.New("unknown error: -127"), 1, false},
		"a refusal without a name":     {errors.New("unknown error: -125"), 1, false},
		"a lost connection":            {zk.ErrConnectionClosed, 1, false},
		"no server":                    {zk.ErrNoServer, 1, false},
		"a raw network error":          {errors.New("write tcp: broken pipe"), 1, false},
		"an answer to another session": {nil, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				s := use(t, conn, time.Hour) // no heartbeat gets into the way
				s.Track("/a", c.id, newEphemeral())
				conn.deleted = func() error {
					conn.change(func() { conn.id = c.id })
					return c.err
				}
				require.ErrorIs(t, s.Delete("/a", -1), c.err)
				if c.keeps {
					require.NoError(t, s.Hold("/a", 0))
				} else {
					require.ErrorIs(t, s.Hold("/a", 0), outcome.ErrOutOfTouch)
				}
			})
		})
	}
}

// A follower passes every sync on, and whatever fails it is not known to be the leader.
func TestASyncThatFailedDoesNotKeepTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour) // no heartbeat gets into the way
		s.Track("/a", 1, newEphemeral())
		conn.change(func() { conn.err = zk.ErrNoNode })
		require.ErrorIs(t, s.Sync("/a"), zk.ErrNoNode)
		require.ErrorIs(t, s.Hold("/a", 0), outcome.ErrOutOfTouch)
		conn.change(func() { conn.err = nil })
		require.NoError(t, s.Sync("/a"))
		require.NoError(t, s.Hold("/a", 0))
	})
}

func TestContainersIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := zkconn.Use(conn, config(time.Second))
		unimplemented := errors.New("unknown error: -6")
		conn.change(func() { conn.containers = unimplemented })
		require.ErrorIs(t, s.CreateContainer("/a", nil), unimplemented)
		require.NoError(t, s.CreateContainer("/a", nil))
		s.Release()
		time.Sleep(time.Hour)
		again := zkconn.Use(conn, config(time.Second))
		require.NoError(t, again.CreateContainer("/a", nil),
			"to ask again would cost the connection")
		conn.change(func() { conn.state = zk.StateDisconnected }) // closed, as it seems
		again.Release()
		conn.change(func() { conn.state = zk.StateHasSession })
		s = use(t, conn, time.Second)
		require.ErrorIs(t, s.CreateContainer("/a", nil), unimplemented,
			"what was closed is forgotten")
	})
}

func TestACreatesZxidIsKnownIfTheConnectionTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := use(t, newFake(), time.Second)
		require.False(t, s.TellsCreates())
		require.Zero(t, s.CreatedAt("/a"))

		cfg := config(time.Second)
		cfg.CreatedAt = func(path string) int64 { return int64(len(path)) }
		s = useWith(t, newFake(), cfg)
		require.True(t, s.TellsCreates())
		require.Equal(t, int64(2), s.CreatedAt("/a"))
	})
}
