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
	server := zktest.Start(t, zktest.WithSASLUsers(
		map[string]string{"bob": "hunter2", "ann": "secret"})).Addrs()[0]
	require.ErrorIs(t, secure(t.Context(), server+"/app", "guess"), zk.ErrAuthFailed)
	require.NoError(t, secure(t.Context(), server+"/app", "hunter2"))
	ann, err := recipes.Connect(t.Context(), server, 10*time.Second,
		recipes.WithSASL(recipes.SASLDigestMD5("ann", "secret")))
	require.NoError(t, err)
	defer ann.Close()
	// With a quota she could end every acquire of the others.
	for _, path := range []string{"/hers", "/app/hers", "/zookeeper/quota/app"} {
		_, err = ann.Create(path, nil, 0, zk.AuthACL(zk.PermAll))
		require.ErrorIs(t, err, zk.ErrNoAuth)
	}
}

func secure(ctx context.Context, servers, password string) error {
	//pages:block
	return err
}
