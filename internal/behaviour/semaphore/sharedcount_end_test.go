package semaphore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// An endingConn ends its caller's ctx at one of its requests: before that is sent, or
// once it is done, which the caller does not hear for a second.
type endingConn struct {
	*recipes.Client
	at     int // which request, from 1
	done   bool
	end    func()
	number int // of the requests so far
}

func (c *endingConn) request(send func() error) error {
	c.number++
	if c.number != c.at {
		return send()
	}
	if !c.done {
		c.end()
		time.Sleep(time.Second)
		return send()
	}
	err := send()
	c.end()
	time.Sleep(time.Second)
	return err
}

func (c *endingConn) Set(path string, data []byte, v int32) (stat *zk.Stat, err error) {
	return stat, c.request(func() error {
		stat, err = c.Client.Set(path, data, v)
		return err
	})
}

func (c *endingConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (created string, err error) {
	return created, c.request(func() error {
		created, err = c.Client.Create(path, data, flags, acl)
		return err
	})
}

func (c *endingConn) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (created string, err error) {
	return created, c.request(func() error {
		created, err = c.Client.CreateContainer(path, data, flags, acl)
		return err
	})
}

// Whenever its ctx ends, SetSharedCount says that the outcome is unknown, sends nothing
// more, and leaves the count as it was or as it was to be, and no parent without it.
func TestSetSharedCountThatEndsAtARequest(t *testing.T) {
	const old, wanted = 3, 5
	for there, c := range map[string]struct {
		requests int
		before   func(ctx context.Context, c *recipes.Client) error
	}{
		"nothing": {5, func(context.Context, *recipes.Client) error { return nil }},
		"a parent": {3, func(_ context.Context, c *recipes.Client) error {
			_, err := c.Create("/app", nil, 0, zk.WorldACL(zk.PermAll))
			return err
		}},
		"the count": {1, func(ctx context.Context, c *recipes.Client) error {
			return recipes.SetSharedCount(ctx, c, "/app/a/count", old)
		}},
	} {
		for i := range 2 * c.requests {
			at, done := 1+i/2, i%2 == 1
			name := fmt.Sprintf("%s is there, request %d, done: %t", there, at, done)
			locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
				require.NoError(t, c.before(t.Context(), b.Other))
				znodes, had := b.Cluster.Znodes(), countAt(t, b.Other)
				ctx, cancel := context.WithCancelCause(t.Context())
				conn := &endingConn{
					Client: b.Ours, at: at, done: done,
					end: func() { cancel(locktest.ErrChangedMind) },
				}
				err := recipes.SetSharedCount(ctx, conn, "/app/a/count", wanted)
				require.ErrorIs(t, err, recipes.ErrUnavailable)
				require.ErrorIs(t, err, locktest.ErrChangedMind)
				time.Sleep(5 * time.Second)
				require.Equal(t, at, conn.number)
				if has := countAt(t, b.Other); has == had {
					require.Equal(t, znodes, b.Cluster.Znodes())
				} else {
					require.Equal(t, wanted, has)
				}
			})
		}
	}
}

// countAt is the count at /app/a/count, 0 if there is none.
func countAt(t *testing.T, c *recipes.Client) int {
	t.Helper()
	data, _, err := c.Get("/app/a/count")
	if errors.Is(err, zk.ErrNoNode) {
		return 0
	}
	require.NoError(t, err)
	return int(binary.BigEndian.Uint32(data))
}
