package lock_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// maxReply is the longest reply that a frugal client accepts.
const maxReply = 1 << 14

// A frugal process is one more of a bubble: it counts how often it has connected.
type frugal struct {
	*recipes.Client
	connected atomic.Int32
}

func newFrugal(t *testing.T, b *locktest.Bubble) *frugal {
	t.Helper()
	f := &frugal{}
	var err error
	f.Client, err = recipes.Connect(t.Context(), strings.Join(b.Cluster.Names(), ","),
		10*time.Second, recipes.WithDialer(b.Cluster.Link("frugal").Dial),
		recipes.WithMaxReply(maxReply),
		recipes.WithClientObserver(func(e recipes.SessionEvent) {
			if e.Kind == recipes.SessionConnected {
				f.connected.Add(1)
			}
		}))
	require.NoError(t, err)
	synctest.Wait() // the observer is told on another goroutine
	t.Cleanup(func() {
		f.Close()
		time.Sleep(time.Minute)
	})
	return f
}

// fill creates so many znodes that a list of them is too long.
func fill(t *testing.T, conn recipes.Conn, dir string) {
	t.Helper()
	anyone := zk.WorldACL(zk.PermAll)
	_, err := conn.Create(dir, nil, 0, anyone)
	require.NoError(t, err)
	for i := range maxReply / 50 {
		path := fmt.Sprintf("%s/_c_00000000-0000-0000-0000-%012d-lock-", dir, i)
		_, err := conn.Create(path, nil, zk.FlagEphemeral|zk.FlagSequence, anyone)
		require.NoError(t, err)
	}
}

// A list that is too long fails the calls that need it, for good, and names the option.
// It costs nobody the connection.
func TestAListThatIsTooLong(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		fill(t, b.Other, "/queue")
		c := newFrugal(t, b)
		bystander := locktest.VisitLock(t, b.Mutex(t, c.Client, "/free"))
		hold := bystander.Entered()
		began := time.Now()
		for name, call := range map[string]func(ctx context.Context) error{
			"Acquire": b.Mutex(t, c.Client, "/queue").Acquire,
			"Acquire, cached": b.Mutex(t, c.Client, "/queue",
				recipes.WithCaching(time.Minute, 1)).Acquire,
			"Inspect": func(ctx context.Context) error {
				_, err := recipes.Inspect(ctx, c, "/queue")
				return err
			},
			"WatchParticipants": func(ctx context.Context) (last error) {
				queue := b.Mutex(t, c.Client, "/queue").WatchParticipants(ctx)
				for _, err := range queue {
					last = err
				}
				return last
			},
		} {
			err := call(locktest.Owner(t))
			require.ErrorContains(t, err, "WithMaxReply", name)
			require.ErrorContains(t, err, " bytes", name)
			require.NotErrorIs(t, err, recipes.ErrUnavailable, name)
		}
		require.Less(t, time.Since(began), time.Second)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, c.connected.Load())
		require.NoError(t, hold.Err())
		children := locktest.Children(t, b.Other, "/queue")
		require.Len(t, children, maxReply/50, "what failed is gone")
	})
}

// The data of others is nothing that a waiter needs, nor one who looks at the queue.
func TestAPredecessorWhoseDataIsTooLong(t *testing.T) {
	for _, position := range []string{"the predecessor", "further ahead"} {
		locktest.Run(t, position, func(t *testing.T, b *locktest.Bubble) {
			data := recipes.WithData(bytes.Repeat([]byte("x"), 2*maxReply))
			c := newFrugal(t, b)
			holder := locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock", data))
			holder.Entered()
			var second *locktest.Visit
			if position != "the predecessor" {
				second = locktest.VisitLock(t, b.Mutex(t, b.Other, "/lock"))
			}
			lock := b.Mutex(t, c.Client, "/lock")
			waiter := locktest.VisitLock(t, lock)
			time.Sleep(5 * time.Minute) // polls among it

			queue, err := lock.Participants(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2*maxReply, queue[0].DataSize)
			require.Empty(t, queue[0].Data)
			require.NotZero(t, queue[0].Session)
			require.True(t, queue[0].Holding)
			all, err := recipes.Inspect(t.Context(), c, "/lock")
			require.NoError(t, err)
			require.Equal(t, queue, all)

			require.False(t, waiter.Holds())
			holder.Leave()
			if second != nil {
				second.Entered()
				second.Leave()
			}
			time.Sleep(time.Second) // no poll among it
			require.True(t, waiter.Holds())
			require.EqualValues(t, 1, c.connected.Load())
			waiter.Leave()
		})
	}
}

// Nor does a lock need its own data.
func TestDataThatIsTooLongForItsOwner(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := newFrugal(t, b)
		lock := b.Mutex(t, c.Client, "/lock",
			recipes.WithData(bytes.Repeat([]byte("x"), 2*maxReply)))
		v := locktest.VisitLock(t, lock)
		v.Entered()
		time.Sleep(time.Minute)
		b.Lose(t, v.Hold()) // which is noticed by the watch
		require.EqualValues(t, 1, c.connected.Load())
	})
}

// A leader whose data is too long is shown without it.
func TestALeaderWhoseDataIsTooLong(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		c := newFrugal(t, b)
		long := locktest.NewLatch(t, b.Other, "/lock",
			recipes.WithData(bytes.Repeat([]byte("x"), 2*maxReply)))
		_, err := long.Await(t.Context())
		require.NoError(t, err)
		latch := locktest.NewLatch(t, c, "/lock")
		leader, ok, err := latch.Leader(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 2*maxReply, leader.DataSize)
		seen := 0
		for leader, err := range latch.Leaders(t.Context()) {
			require.NoError(t, err)
			if seen++; leader.Node == "" {
				break
			}
			require.NoError(t, long.Close(t.Context()))
		}
		require.Equal(t, 2, seen)
		require.EqualValues(t, 1, c.connected.Load())
	})
}
