package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

func TestTheExampleRunsTheJobAndStops(t *testing.T) {
	cluster := zktest.Start(t)
	t.Setenv("ZOOKEEPER_SERVERS", cluster.ConnectString())
	client, err := recipes.Connect(t.Context(), cluster.ConnectString(), 10*time.Second)
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, 3) }()
	require.Eventually(t, func() bool {
		queue, _, err := client.Children("/cron/report")
		return err == nil && len(queue) > 0
	}, 10*time.Second, 10*time.Millisecond)
	cancel()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the example does not stop")
	}
}
