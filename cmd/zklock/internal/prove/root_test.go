package prove

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// A lost connection, as after a pause of the machine, ends no run before it has begun,
// and leaves none of its znodes.
func TestARootOutlastsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		link := cluster.Link("")
		client, err := recipes.Connect(t.Context(), cluster.Names()[0], 30*time.Second,
			recipes.WithDialer(link.Dial))
		require.NoError(t, err)
		defer client.Close()
		r := &root{
			client: client, path: "/prove-it", acl: zk.WorldACL(zk.PermAll),
			pace: newLimiter(100),
		}
		meanwhileCut := func(do func() error) {
			link.Freeze()
			done := make(chan error, 1)
			go func() { done <- do() }()
			time.Sleep(time.Second)
			link.Cut()
			time.Sleep(5 * time.Second)
			link.Heal()
			link.Thaw()
			require.NoError(t, <-done)
		}
		meanwhileCut(func() error { return r.claim(t.Context()) })
		require.Contains(t, cluster.Znodes(), "/prove-it/running")
		meanwhileCut(func() error { return r.remove(t.Context()) })
		require.NotContains(t, cluster.Znodes(), "/prove-it")
	})
}
