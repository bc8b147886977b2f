package znode_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/stubconn"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A treeConn has directories.
type treeConn struct {
	stubconn.Conn
	there            []string
	created, deleted []string
	denied, stays    string // that one cannot create, or delete
	refused          int    // so many deletes
	moved            atomic.Int64
}

func (c *treeConn) SessionID() int64 { return 1 + c.moved.Load() }

func (c *treeConn) CreateContainer(
	path string, _ []byte, _ int32, _ []zk.ACL,
) (string, error) {
	parent := path[:len(path)-len("/a")]
	switch {
	case path == c.denied:
		return "", zk.ErrNoAuth
	case slices.Contains(c.there, path):
		return "", zk.ErrNodeExists
	case parent != "" && !slices.Contains(c.there, parent):
		return "", zk.ErrNoNode
	}
	c.there, c.created = append(c.there, path), append(c.created, path)
	return path, nil
}

func (c *treeConn) Delete(path string, _ int32) error {
	switch {
	case path == c.stays:
		return zk.ErrNotEmpty
	case c.refused > 0:
		c.refused--
		return zk.ErrNoAuth
	}
	c.deleted = append(c.deleted, path)
	if at := slices.Index(c.there, path); at >= 0 {
		c.there = slices.Delete(c.there, at, at+1)
		return nil
	}
	return zk.ErrNoNode
}

func dirOf(t *testing.T, conn zkconn.Client) *znode.Dir {
	t.Helper()
	return znode.NewDir(stubconn.Use(t, conn), "/a/b/c", nil)
}

// What was created is deleted, from the bottom up, as far as nobody else is there.
func TestADirectoryIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		there, gone      []string
		stays            string
		created, deleted []string
	}{
		"all": {
			created: []string{"/a", "/a/b", "/a/b/c"},
			deleted: []string{"/a/b/c", "/a/b", "/a"},
		},
		"below another's": {
			there:   []string{"/a"},
			created: []string{"/a/b", "/a/b/c"}, deleted: []string{"/a/b/c", "/a/b"},
		},
		"another's": {there: []string{"/a", "/a/b", "/a/b/c"}},
		"one that has gone": {
			gone:    []string{"/a/b/c"},
			created: []string{"/a", "/a/b", "/a/b/c"},
			deleted: []string{"/a/b/c", "/a/b", "/a"},
		},
		"one that is used": {
			stays:   "/a/b",
			created: []string{"/a", "/a/b", "/a/b/c"}, deleted: []string{"/a/b/c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &treeConn{there: c.there, stays: c.stays}
			d := dirOf(t, conn)
			require.NoError(t, d.Make(t.Context()))
			require.Equal(t, c.created, conn.created)
			conn.there = slices.DeleteFunc(conn.there, func(path string) bool {
				return slices.Contains(c.gone, path)
			})
			d.Unmake(t.Context())
			require.Equal(t, c.deleted, conn.deleted)
			d.Unmake(t.Context())
			require.Equal(t, c.deleted, conn.deleted, "it is deleted again")
		})
	}
}

func TestADirectoryWhoseParentIsDenied(t *testing.T) {
	conn := &treeConn{there: []string{"/a"}, denied: "/a/b"}
	require.ErrorIs(t, dirOf(t, conn).Make(t.Context()), zk.ErrNoAuth)
	require.Empty(t, conn.created)
}

// A delete that the rights do not allow is tried again as long as the session lasts.
func TestADirectoryThatMayNotBeTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		moves   int64
		deleted []string
	}{
		"until it may":            {0, []string{"/a/b/c", "/a/b", "/a"}},
		"until the session ended": {1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &treeConn{refused: 3}
				d := dirOf(t, conn)
				require.NoError(t, d.Make(t.Context()))
				began := time.Now()
				d.Unmake(t.Context())
				require.Zero(t, time.Since(began))
				synctest.Wait()
				require.Empty(t, conn.deleted)
				conn.moved.Store(c.moves)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, c.deleted, conn.deleted)
			})
		})
	}
}
