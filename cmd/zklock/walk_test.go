package main

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/zkpath"
	"github.com/zkrecipes/recipes/zktest"
)

// What Inspect shows is a participant, and nothing else is.
func TestParticipants(t *testing.T) {
	client, err := recipes.Connect(t.Context(), zktest.Start(t).ConnectString(),
		30*time.Second)
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	names := strings.Fields(`
		lock-0000000001 _c_x-lock-0000000002 x__READ__0000000003 x__WRIT__0000000004
		lease-0000000005 x-latch-0000000006 x__lock__0000000007 lock--000000008
		lock--2147483648 lock-000000009 x-lock-9999999999 x-lock-2147483648
		lock--2147483649 x-lock-+000000001 lock-00000000010 election-0000000011
		x__rlock__0000000012 leases locks once lock-0000000013x
	`)
	for _, name := range names {
		_, err := client.Create(zkpath.Join("/a", "/"+name), nil, zk.FlagEphemeral,
			zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	queue, err := recipes.Inspect(t.Context(), client, "/a")
	require.NoError(t, err)
	var shown, matched []string
	for _, p := range queue {
		shown = append(shown, strings.TrimPrefix(p.Node, "/a/"))
	}
	for _, name := range names {
		if queues.Stands(name) {
			matched = append(matched, name)
		}
	}
	require.ElementsMatch(t, shown, matched)
	require.Len(t, shown, 9)
}

// A server deletes the gate of a semaphore while nobody passes it. Its leases show what
// it is.
func TestAWalkFindsASemaphoreByItsLeases(t *testing.T) {
	client, err := recipes.Connect(t.Context(), zktest.Start(t).ConnectString(),
		30*time.Second)
	require.NoError(t, err)
	defer client.Close()
	for _, path := range []string{
		"/a", "/a/semaphore", "/a/semaphore/leases",
		"/a/semaphore/leases/x-lease-0000000001",
	} {
		_, err := client.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	var visited []string
	w := &walk{
		client: client, most: 100, each: 100,
		visit: func(path string) error { visited = append(visited, path); return nil },
	}
	require.NoError(t, w.down(t.Context(), "/"))
	require.Equal(t, []string{"/a/semaphore"}, visited)
}
