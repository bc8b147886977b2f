package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// A meteredConn counts what is received.
type meteredConn struct {
	net.Conn
	received *atomic.Int64
}

func (c *meteredConn) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	c.received.Add(int64(n))
	return n, err
}

// Whatever the participants store, watch keeps a little of it, and reads it once: who
// joins and leaves all the time does not have all of it sent each time.
func TestWatchIsBounded(t *testing.T) {
	const crowd, size = 100, 64 << 10
	servers := zktest.Start(t).ConnectString()
	other := session(t, servers, "")
	world := zk.WorldACL(zk.PermAll)
	_, err := other.Create("/q", nil, zk.FlagPersistent, world)
	require.NoError(t, err)
	join := func(i int, data []byte) string {
		node, err := other.Create(fmt.Sprintf("/q/x-lock-%010d", i), data,
			zk.FlagEphemeral, world)
		require.NoError(t, err)
		return node
	}
	for i := range crowd {
		join(i, bytes.Repeat([]byte{'x'}, size))
	}

	var received atomic.Int64
	client, err := recipes.Connect(t.Context(), servers, patience, recipes.WithDialer(
		func(network, address string, timeout time.Duration) (net.Conn, error) {
			conn, err := net.DialTimeout(network, address, timeout)
			return &meteredConn{conn, &received}, err
		}))
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	views, ended := make(chan view), make(chan error, 1)
	go func() {
		ended <- follow(ctx, client, "/q", func(v view) {
			select {
			case views <- v:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})

	next := func(rows int) (now view) {
		for {
			select {
			case now = <-views:
			case <-time.After(patience):
				require.FailNow(t, "watch shows nothing")
			}
			require.NoError(t, now.err)
			if len(now.rows) == rows {
				return now
			}
		}
	}
	now := next(crowd)
	for _, r := range now.rows {
		require.Len(t, r.Data, dataKept)
	}
	before := received.Load()
	for i := range 5 {
		node := join(crowd+i, []byte("new"))
		require.Equal(t, "new", next(crowd + 1).rows[crowd].Data)
		require.NoError(t, other.Delete(node, -1))
		next(crowd)
	}
	require.Less(t, received.Load()-before, int64(crowd*size/10), "of what is stored")
	// What has changed is read again, once something makes watch look.
	_, err = other.Set(now.rows[7].Node, []byte("changed"), -1)
	require.NoError(t, err)
	join(crowd, nil)
	now = next(crowd + 1)
	require.Equal(t, "changed", now.rows[7].Data)
}

// What is kept is of those who are still in the queue.
func TestReadingsForget(t *testing.T) {
	servers := zktest.Start(t).ConnectString()
	client, err := recipes.Connect(t.Context(), servers, patience)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	_, err = client.Create("/q", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	known := &readings{}
	first := &head{Client: client, most: listMost, known: known}
	for range 3 {
		node, err := client.Create("/q/x-lock-", make([]byte, 2*dataKept),
			zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		rows, _, err := first.inspect(t.Context(), "/q")
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, []string{node}, slices.Collect(maps.Keys(known.of)))
		require.LessOrEqual(t, cap(known.of[node].data), dataKept)
		require.NoError(t, client.Delete(node, -1))
	}
	_, _, err = first.inspect(t.Context(), "/q")
	require.NoError(t, err)
	require.Empty(t, known.of)
}
