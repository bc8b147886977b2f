package page

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

func Run(t *testing.T) {
	servers := zktest.Start(t, zktest.WithSASLUsers(
		map[string]string{"bob": "hunter2"})).Addrs()[0] + "/chroot"
	client, err := connect(t.Context(), servers, "hunter2")
	require.NoError(t, err)
	defer client.Close()
	acl, _, err := client.Unwrap().GetACL("/chroot")
	require.NoError(t, err)
	require.Equal(t, []zk.ACL{{Scheme: "sasl", ID: "bob", Perms: zk.PermAll}}, acl)
	_, err = connect(t.Context(), servers, "guess")
	require.ErrorIs(t, err, zk.ErrAuthFailed)
}

func connect(ctx context.Context, servers, password string) (*recipes.Client, error) {
	//pages:block
	return client, err
}
