package lock_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// The cause of a ctx is its owner's: an errgroup passes on why a sibling has failed, and
// Hold.Context why another lock was lost. Whatever it matches, it is no answer of
// ZooKeeper's.

// errConfig is why others of the same errgroup have failed: it has nothing to do with the
// lock.
var errConfig = fmt.Errorf("read /config: %w", zk.ErrNoNode)

// gatedConn holds back requests, and tells of each.
type gatedConn struct {
	locktest.HookedConn
	armed  atomic.Bool
	asked  chan struct{}
	passed chan struct{}
	free   string // the znode whose reads go through; set before armed
}

func newGatedConn(client *recipes.Client) *gatedConn {
	c := &gatedConn{
		HookedConn: locktest.HookedConn{Conn: client},
		asked:      make(chan struct{}, 10), passed: make(chan struct{}),
	}
	c.Before = func(method, path string) error {
		if c.armed.Load() && c.holdsBack(method, path) {
			c.asked <- struct{}{}
			<-c.passed
		}
		return nil
	}
	return c
}

func (c *gatedConn) Unwrap() recipes.Conn { return c.Conn }

func (c *gatedConn) holdsBack(method, path string) bool {
	switch method {
	case "Children", "Get", "Set", "Delete":
		return true
	}
	return method == "GetW" && !strings.Contains(path, c.free)
}

// open lets through what is held back, and all that follows.
func (c *gatedConn) open() {
	c.armed.Store(false)
	close(c.passed)
	time.Sleep(time.Second)
}

// cancelled returns what call does if ctx is cancelled a second after its first request,
// which is held back.
func (c *gatedConn) cancelled(
	ctx context.Context, cause error, call func(ctx context.Context) error,
) error {
	c.armed.Store(true)
	defer c.open()
	ctx, cancel := context.WithCancelCause(ctx)
	done := locktest.Start(func() error { return call(ctx) })
	<-c.asked
	time.Sleep(time.Second)
	cancel(cause)
	return <-done
}

// A waiter whose ctx ends hands nothing on: what it waits for is still held by another
// process.
func TestAWaiterThatIsCancelledHandsNothingOver(t *testing.T) {
	for _, cause := range []error{context.Canceled, errConfig} {
		t.Run(cause.Error(), func(t *testing.T) {
			for range 20 { // it depends on a select
				locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
					theirs := b.Mutex(t, b.Other, "/lock")
					holder := locktest.Owner(t)
					require.NoError(t, theirs.Acquire(holder))
					conn := newGatedConn(b.Ours)
					lock := locktest.NewMutex(t, conn, "/lock")
					first, cancel := context.WithCancelCause(locktest.Owner(t))
					cancelled := make(chan error, 1)
					go func() { cancelled <- lock.Acquire(first) }()
					nodes := locktest.AwaitChildren(t, b.Ours, "/lock", 2)
					time.Sleep(time.Second)
					second := locktest.Owner(t)
					granted := make(chan error, 1)
					go func() { granted <- lock.Acquire(second) }()
					locktest.AwaitChildren(t, b.Ours, "/lock", 3)
					time.Sleep(time.Second)

					// The first looks again, since the data of the znode ahead changes.
					conn.free = nodes[1]
					conn.armed.Store(true)
					hold := theirs.Hold(holder)
					go func() { // its list
						<-conn.asked
						conn.passed <- struct{}{}
					}()
					require.NoError(
						t, recipes.AttemptRevoke(t.Context(), b.Other, hold.Path()),
					)
					<-conn.asked // its watch
					time.Sleep(time.Second)
					cancel(cause)
					require.ErrorIs(t, <-cancelled, cause)
					conn.open()
					require.NoError(t, hold.Err())
					require.Empty(t, granted, "two hold the lock")
					require.NoError(t, theirs.Release(holder))
					require.NoError(t, <-granted)
					require.NoError(t, lock.Release(second))
				})
			}
		})
	}
}

// A downgrade whose ctx ends leaves the write lock alone, whatever the ctx's cause is.
func TestADowngradeThatIsCancelledLeavesTheWriteLock(t *testing.T) {
	for _, cause := range []error{context.Canceled, errConfig} {
		locktest.Run(t, cause.Error(), func(t *testing.T, b *locktest.Bubble) {
			conn := newGatedConn(b.Ours)
			lock := locktest.NewReadWriteLock(t, conn, "/rw")
			owner := locktest.Owner(t)
			require.NoError(t, lock.WriteLock().Acquire(owner))
			hold := lock.WriteLock().Hold(owner)
			err := conn.cancelled(owner, cause, lock.ReadLock().Acquire)
			require.ErrorIs(t, err, cause)
			require.NoError(t, hold.Err())
			require.NoError(t, lock.WriteLock().Release(owner))
		})
	}
}

// answered is err, or one that tells of the answer where there is none.
func answered[T any](answer T, err error) error {
	if err == nil {
		return fmt.Errorf("no error, and %v", answer)
	}
	return err
}

// Who is cancelled while it asks has no answer, whatever the ctx's cause is.
func TestACancelledQuestionHasNoAnswer(t *testing.T) {
	for name, ask := range map[string]func(
		context.Context, *gatedConn, *recipes.InterProcessMutex,
	) error{
		"participant nodes": func(
			ctx context.Context, _ *gatedConn, m *recipes.InterProcessMutex,
		) error {
			return answered(m.ParticipantNodes(ctx))
		},
		"participants": func(
			ctx context.Context, _ *gatedConn, m *recipes.InterProcessMutex,
		) error {
			return answered(m.Participants(ctx))
		},
		"inspect": func(
			ctx context.Context, c *gatedConn, _ *recipes.InterProcessMutex,
		) error {
			return answered(recipes.Inspect(ctx, c, "/lock"))
		},
		"revoke": func(
			ctx context.Context, c *gatedConn, m *recipes.InterProcessMutex,
		) error {
			return recipes.AttemptRevoke(ctx, c, m.LockPath(ctx))
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			conn := newGatedConn(b.Ours)
			lock := locktest.NewMutex(t, conn, "/lock")
			owner := locktest.Owner(t)
			require.NoError(t, lock.Acquire(owner))
			err := conn.cancelled(owner, errConfig, func(ctx context.Context) error {
				return ask(ctx, conn, lock)
			})
			require.ErrorIs(t, err, errConfig)
			require.ErrorIs(t, err, recipes.ErrUnavailable)
		})
	}
}

// A release whose ctx ends says that it is not confirmed, whatever the ctx's cause is.
func TestAReleaseThatIsCancelledSaysSo(t *testing.T) {
	for _, cause := range []error{
		context.Canceled, fmt.Errorf("set /other: %w", zk.ErrNoAuth),
	} {
		locktest.Run(t, cause.Error(), func(t *testing.T, b *locktest.Bubble) {
			conn := newGatedConn(b.Ours)
			lock := locktest.NewMutex(t, conn, "/lock")
			owner := locktest.Owner(t)
			require.NoError(t, lock.Acquire(owner))
			err := conn.cancelled(owner, cause, lock.Release)
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, "release not confirmed")
			require.NotErrorIs(t, err, recipes.ErrUnavailable, "Do's fn has run")
		})
	}
}

// A lease that is waited for under a lock that is lost: ZooKeeper can be asked.
func TestTheLossOfAnotherLockIsNoOutage(t *testing.T) {
	for _, how := range []string{"deleted", "released"} {
		locktest.Run(t, how, func(t *testing.T, b *locktest.Bubble) {
			theirs := locktest.NewSemaphore(t, b.Other, "/sem", 1)
			_, err := theirs.Acquire(t.Context())
			require.NoError(t, err)
			ours := locktest.NewSemaphore(t, b.Ours, "/sem", 1)
			owner := locktest.Owner(t)
			require.NoError(t, b.Lock.Acquire(owner))
			hold := b.Lock.Hold(owner)
			ctx := hold.Context(owner)
			done := make(chan error, 1)
			go func() {
				_, err := ours.Acquire(ctx)
				done <- err
			}()
			time.Sleep(time.Second)
			if how == "deleted" {
				b.Lose(t, hold)
			} else {
				require.NoError(t, hold.Release(owner))
			}
			err = <-done
			require.ErrorContains(t, err, "1 ahead, behind /sem/leases/")
			require.NotErrorIs(t, err, recipes.ErrUnavailable)
		})
	}
}

// An Acquire that is cancelled since another lock was busy has failed, it has no time
// that could be up. In an outage nobody knows who is ahead, whatever the ctx's cause is.
func TestACtxCancelledForABusyLockIsToldAsAFailure(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		holder := locktest.Owner(t)
		require.NoError(t, b.Mutex(t, b.Other, "/lock").Acquire(holder))
		busy := recipes.Do(locktest.Owner(t), b.Lock,
			func(context.Context, *recipes.Hold) error { return nil },
			recipes.WaitAtMost(0))
		require.ErrorIs(t, busy, recipes.ErrBusy)

		var events locktest.Recorder
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithObserver(events.Observe))
		acquire := func(outage bool) error {
			ctx, cancel := context.WithCancelCause(locktest.Owner(t))
			done := make(chan error, 1)
			go func() { done <- lock.Acquire(ctx) }()
			time.Sleep(time.Second)
			if outage {
				b.Cluster.Link("ours").Cut()
				time.Sleep(3 * time.Second)
			}
			cancel(busy)
			return <-done
		}
		require.ErrorIs(t, acquire(false), busy)
		kinds := events.Kinds()
		assert.Equal(t, recipes.EventFailed.String(), kinds[len(kinds)-1].String())
		err := acquire(true)
		require.ErrorIs(t, err, busy)
		require.ErrorIs(t, err, recipes.ErrUnavailable)
		b.Cluster.Link("ours").Heal()
	})
}
