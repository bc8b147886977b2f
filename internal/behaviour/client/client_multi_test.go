package client_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestClientMulti(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, root := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)
		acl := zk.WorldACL(zk.PermAll)
		outside := clientFor(t, servers)
		for _, chroot := range []string{"", "/chroot"} {
			c, below := clientFor(t, servers+root+chroot), func(path string) string {
				return root + chroot + path
			}
			create := &zk.CreateRequest{Path: "/a", Data: []byte("1"), Acl: acl}
			number := &zk.CreateRequest{Path: "/a/", Acl: acl, Flags: zk.FlagSequence}
			responses, err := c.Multi(create, number,
				&zk.SetDataRequest{Path: "/a", Data: []byte("2"), Version: 0},
				&zk.CheckVersionRequest{Path: "/a", Version: 1})
			require.NoError(t, err)
			require.Len(t, responses, 4)
			require.Equal(t, "/a", responses[0].String)
			require.Equal(t, "/a/0000000000", responses[1].String)
			require.Equal(t, int32(1), responses[2].Stat.Version)
			require.Equal(t, zk.MultiResponse{}, responses[3])
			require.Equal(t, "/a", create.Path, "the caller's request is not changed")
			data, _, err := outside.Get(below("/a"))
			require.NoError(t, err)
			require.Equal(t, "2", string(data))

			responses, err = c.Multi(
				&zk.DeleteRequest{Path: "/a/0000000000", Version: -1},
				&zk.CheckVersionRequest{Path: "/a", Version: 7},
				&zk.DeleteRequest{Path: "/a", Version: -1})
			require.ErrorIs(t, err, zk.ErrBadVersion)
			require.Len(t, responses, 3)
			require.NoError(t, responses[0].Error)
			require.ErrorIs(t, responses[1].Error, zk.ErrBadVersion)
			require.EqualError(t, responses[2].Error, "unknown error: -2") // not tried
			_, _, err = outside.Get(below("/a/0000000000"))
			require.NoError(t, err, "nothing was done")
		}

		c := clientFor(t, servers+root+"/chroot")
		_, err := c.Multi(zk.DeleteRequest{Path: "/a", Version: -1})
		require.ErrorIs(t, err, zk.ErrBadArguments)
		require.ErrorContains(t, err, "*zk.DeleteRequest")
		c.Close()
		_, err = c.Multi()
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.ErrorContains(t, err, "client was closed")
	})
}
