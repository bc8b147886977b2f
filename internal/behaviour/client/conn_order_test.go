package client_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A listingConn counts the lists, and keeps the order of its Client.
type listingConn struct {
	*recipes.Client
	lists atomic.Int32
}

func (c *listingConn) Children(path string) ([]string, *zk.Stat, error) {
	c.lists.Add(1)
	return c.Client.Children(path)
}

// A countedClient stands in for its Client.
type countedClient struct{ *listingConn }

func (c countedClient) StandsFor(zkconn.Test) zkconn.Client { return c.Client }

// A lateClient has all that a Client has, but its events come late.
type lateClient struct {
	*recipes.Client
	late *locktest.LateConn
}

func (c *lateClient) Unwrap() recipes.Conn { return c.Client }

func (c *lateClient) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	return c.late.GetW(path)
}

func (c *lateClient) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	return c.late.ChildrenW(path)
}

// lateBy is how late an event is: later than all else that a test does.
const lateBy = time.Minute

// lateWrappers make the events late that concern paths with a suffix.
var lateWrappers = map[string]func(c *recipes.Client, suffix string) recipes.Conn{
	"has a Conn inside": func(c *recipes.Client, suffix string) recipes.Conn {
		return locktest.Late(c, suffix, lateBy)
	},
	"embeds a Client": func(c *recipes.Client, suffix string) recipes.Conn {
		return &lateClient{c, locktest.Late(c, suffix, lateBy)}
	},
	"has none of its methods": func(c *recipes.Client, suffix string) recipes.Conn {
		return struct{ recipes.Conn }{locktest.Late(c, suffix, lateBy)}
	},
	"wraps the connection inside": func(c *recipes.Client, suffix string) recipes.Conn {
		return locktest.Late(c.Unwrap(), suffix, lateBy)
	},
}

// A wrapper may pass events on by goroutines, so that answers overtake them. The event
// that tells that a directory was deleted then comes after the answer to a create in the
// next directory of that name, whose number proves nothing.
func TestTheNextNumberWhereEventsComeLate(t *testing.T) {
	for name, wrap := range lateWrappers {
		t.Run(name, func(t *testing.T) {
			locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
				conn := wrap(b.Ours, "/locks")
				lock := locktest.NewMutex(t, conn, "/locks")
				locktest.UseTimes(t, lock, locktest.FrontUses)
				require.NoError(t, b.Other.Delete("/locks", -1))
				theirs := b.Mutex(t, b.Other, "/locks")
				locktest.UseTimes(t, theirs, locktest.FrontUses-1)
				ctx := locktest.Owner(t)
				require.NoError(t, theirs.Acquire(ctx)) // with our last number

				acquired := locktest.Start(func() error {
					return lock.Acquire(locktest.Owner(t))
				})
				time.Sleep(lateBy / 2)
				require.Empty(t, acquired, "two holders")
				require.NoError(t, theirs.Release(ctx))
				require.NoError(t, <-acquired)
			})
		})
	}
}

// A waiter behind one other is granted the lock by the event that tells that this one has
// gone, if its own znode is there. Only a list tells that where the event of its own
// deletion may come later.
func TestTheOwnZnodeWhereEventsComeLate(t *testing.T) {
	for name, wrap := range lateWrappers {
		t.Run(name, func(t *testing.T) {
			locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
				first := locktest.Join(t, b, 1)[0]
				lock, err := recipes.NewInterProcessMutex(
					wrap(b.Ours, "-0000000004"), "/lock") // its znode's number
				require.NoError(t, err)
				acquired := locktest.Start(func() error {
					return lock.Acquire(locktest.Owner(t))
				})
				time.Sleep(time.Second)
				second := locktest.Join(t, b, 1)[0]
				own := locktest.Children(t, b.Other, "/lock")[1]
				require.Contains(t, own, "-0000000004")

				require.NoError(t, b.Other.Delete("/lock/"+own, -1))
				require.NoError(t, b.Other.Delete(first, -1))
				time.Sleep(lateBy / 2)
				require.Empty(t, acquired, "granted beside %s", second)
				require.NoError(t, b.Other.Delete(second, -1))
				require.NoError(t, <-acquired)
			})
		})
	}
}

// What a wrapper costs, although it keeps the order: one list for each grant that needs
// none on a Client as it is.
func TestCostOfAWrapper(t *testing.T) {
	lists := func(t *testing.T, wrap func(c *listingConn) recipes.Conn) (n int32) {
		locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
			c := &listingConn{Client: b.Ours}
			lock := locktest.NewMutex(t, wrap(c), "/lock")
			first := locktest.Join(t, b, 1)[0]
			acquired := locktest.Start(func() error {
				return lock.Acquire(locktest.Owner(t))
			})
			time.Sleep(time.Second)
			joined := c.lists.Load() // more than one if the first overtook the create
			require.NoError(t, b.Other.Delete(first, -1))
			require.NoError(t, <-acquired)
			n = c.lists.Load() - joined
		})
		return n
	}
	require.Zero(t, lists(t, func(c *listingConn) recipes.Conn {
		return countedClient{c}
	}))
	require.Equal(t, int32(1), lists(t, func(c *listingConn) recipes.Conn { return c }))
}

// The next owner of a process is granted the lock without a list, which would not show
// its znode any more.
func TestTheHandOverInAProcessWhereEventsComeLate(t *testing.T) {
	for name, wrap := range lateWrappers {
		t.Run(name, func(t *testing.T) {
			locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
				conn := wrap(b.Ours, "-0000000004") // the znode of the second owner
				lock := locktest.NewMutex(t, conn, "/lock")
				first := locktest.Owner(t)
				require.NoError(t, lock.Acquire(first))
				acquired := locktest.Start(func() error {
					return lock.Acquire(locktest.Owner(t))
				})
				time.Sleep(time.Second)
				third := locktest.Join(t, b, 1)[0]
				second := locktest.Children(t, b.Other, "/lock")[1]
				require.Contains(t, second, "-0000000004")
				require.NoError(t, b.Other.Delete("/lock/"+second, -1))

				require.NoError(t, lock.Release(first))
				time.Sleep(lateBy / 2)
				require.Empty(t, acquired, "granted beside %s", third)
				require.NoError(t, b.Other.Delete(third, -1))
				require.NoError(t, <-acquired)
			})
		})
	}
}

// What late events cost others: a cached queue entry is given up that much later.
func TestACachedEntryWhereEventsComeLate(t *testing.T) {
	for name, wrap := range lateWrappers {
		t.Run(name, func(t *testing.T) {
			locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
				const passes = 3
				lock := locktest.NewMutex(t, wrap(b.Ours, "/lock"), "/lock",
					recipes.WithCaching(time.Hour, passes))
				locktest.UseTimes(t, lock, 1)
				time.Sleep(time.Second) // the entry is watched
				theirs := b.Mutex(t, b.Other, "/lock")
				began := time.Now()
				acquired := locktest.Start(func() error {
					return theirs.Acquire(locktest.Owner(t))
				})
				hold := func(context.Context, *recipes.Hold) error {
					require.Empty(t, acquired, "two holders")
					time.Sleep(time.Second)
					require.Empty(t, acquired, "two holders")
					return nil
				}
				for len(acquired) == 0 && time.Since(began) < 2*lateBy {
					ctx := locktest.Owner(t)
					err := recipes.Do(ctx, lock, hold, recipes.WaitAtMost(0))
					if err != nil {
						require.ErrorIs(t, err, recipes.ErrBusy)
					}
				}
				require.NoError(t, <-acquired)
				require.LessOrEqual(t, time.Since(began), lateBy+(passes+2)*time.Second)
			})
		})
	}
}

// A holder whose znode somebody deletes is notified that much later, or by its poll.
func TestALossByDeletionWhereEventsComeLate(t *testing.T) {
	for name, wrap := range lateWrappers {
		t.Run(name, func(t *testing.T) {
			locktest.InFrontBubble(t, func(t *testing.T, b *locktest.Bubble) {
				lock := locktest.NewMutex(t, wrap(b.Ours, "-0000000003"), "/lock")
				ctx := locktest.Owner(t)
				require.NoError(t, lock.Acquire(ctx))
				time.Sleep(time.Second) // its znode is watched
				began, hold := time.Now(), lock.Hold(ctx)
				b.Lose(t, hold)
				told := time.Since(began)
				require.Greater(t, told, time.Second)
				require.LessOrEqual(t, told, lateBy+time.Second)
				require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
			})
		})
	}
}
