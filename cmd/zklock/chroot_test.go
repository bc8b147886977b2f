package main

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// A chroot has the ACL of --acl when zklock creates it, for which it opens no session
// more, and also when it is recreated because somebody has deleted it meanwhile.
func TestChrootACL(t *testing.T) {
	servers := zktest.Start(t).ConnectString()
	const secret = "user:hunter2"
	to, err := (&connection{
		servers: servers + "/app/one", auth: []string{"digest:" + secret},
		sessionTimeout: patience, connectTimeout: patience,
	}).check()
	require.NoError(t, err)
	var dialled atomic.Int32
	to.options = append(to.options, recipes.WithDialer(
		func(network, address string, timeout time.Duration) (net.Conn, error) {
			dialled.Add(1)
			return net.DialTimeout(network, address, timeout)
		}))
	client, err := to.connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	require.EqualValues(t, 1, dialled.Load())

	own := session(t, servers, secret)
	creator := zk.DigestACL(zk.PermAll, "user", "hunter2")
	for _, path := range []string{"/app", "/app/one"} {
		acl, _, err := own.GetACL(path)
		require.NoError(t, err)
		require.Equal(t, creator, acl, path)
	}
	require.NoError(t, own.Delete("/app/one", -1))
	_, err = client.Create("/a", nil, zk.FlagPersistent, to.acl)
	require.NoError(t, err)
	acl, _, err := own.GetACL("/app/one")
	require.NoError(t, err)
	require.Equal(t, creator, acl)
}
