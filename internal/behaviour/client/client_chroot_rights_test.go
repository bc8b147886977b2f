package client_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// From 3.9.2 on ZooKeeper tells whether a znode exists only to those who may read it: a
// refusal says that it does. Whoever uses a chroot need not be allowed to read it.
func TestAChrootThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{
		"as the server does": false, "as ZooKeeper 3.9.2 does": true,
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			servers, path := zkserver.Shared(t).Connect(), zkserver.Path(t)
			acl := zk.DigestACL(zk.PermCreate|zk.PermDelete, "ann", "secret")
			_, err := locktest.SharedPeer(t).Conn.Create(path, nil, 0, acl)
			require.NoError(t, err)
			tap := wiretap.New(zkserver.Dial(t))
			if refused {
				tap.NthRequest(wiretap.Exists, 1, wiretap.Answer(noAuth))
			}
			for _, chroot := range []string{path, path + "/new"} {
				client, err := locktest.Open(t.Context(), t, servers+chroot,
					locktest.Lasting, recipes.WithDialer(tap.Dial),
					recipes.WithAuth("digest", []byte("ann:secret")))
				require.NoError(t, err)
				_, err = client.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
				client.Close()
			}
		})
	}
}

// Where the session goes on through another server, the chroot is asked for there.
func TestAChrootIsAskedForWhereTheSessionHasMovedTo(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		tap := wiretap.New(zkserver.Dial(t))
		refused := tap.NthRequest(wiretap.Exists, 1, wiretap.Answer(sessionMoved))
		client, err := locktest.Open(t.Context(), t,
			zkserver.Shared(t).Connect()+zkserver.Path(t), locktest.Lasting,
			recipes.WithDialer(tap.Dial))
		require.NoError(t, err)
		locktest.Within(t, refused, "nothing was refused")
		client.Close()
	})
}

const (
	noAuth       = -102
	sessionMoved = -118
)
