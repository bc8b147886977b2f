package main

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

func TestBothAtOnce(t *testing.T) {
	t.Setenv("ZOOKEEPER_SERVERS", zktest.Start(t).ConnectString())
	require.NoError(t, run(t.Context(), 100))
}

// Also while a zk.Lock waits, which nothing but the end of its connection ends.
func TestTheCommandStops(t *testing.T) {
	cluster := zktest.Start(t)
	t.Setenv("ZOOKEEPER_SERVERS", cluster.ConnectString())
	conn, err := connect(t.Context(), cluster.ConnectString())
	require.NoError(t, err)
	defer conn.Close()
	held := zk.NewLock(conn, lockPath, acl)
	require.NoError(t, held.Lock())
	ctx, cancel := context.WithCancel(t.Context())
	ended := locktest.Start(func() error { return run(ctx, 1) })
	locktest.AwaitChildren(t, conn, lockPath, 3)
	cancel()
	require.Error(t, locktest.Within(t, ended, "the command does not stop"))
}
