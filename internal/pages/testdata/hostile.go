package page

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

func Run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := zktest.Start(t).Link("")
		client, err := recipes.Connect(t.Context(), "zktest-1:2181", 10*time.Second,
			recipes.WithDialer(link.Dial))
		require.NoError(t, err)
		defer client.Close()
		hostile(t, client, link)
	})
}

func hostile(t *testing.T, client *recipes.Client, link *zktest.Link) {
	//pages:block
	time.Sleep(2 * time.Second) // the client connects again
	_, err := client.Create("/config", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}
