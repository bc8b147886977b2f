package lock_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A wrapperOfAConn is what most people would write: it hides what it wraps.
type wrapperOfAConn struct{ recipes.Conn }

// One that leads to what it wraps.
type openWrapper struct{ wrapperOfAConn }

func (w openWrapper) Unwrap() recipes.Conn { return w.Conn }

// What a lock does by itself is logged by its Client's logger, unless it has its own.
func TestALockLogsAsItsClientDoes(t *testing.T) {
	for name, wrap := range locktest.ClientWrappers {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			var clients, own journal
			client, err := recipes.Connect(t.Context(), b.Cluster.Names()[0],
				10*time.Second, recipes.WithDialer(b.Cluster.Link("logs").Dial),
				recipes.WithClientLogger(clients.logger(slog.LevelInfo)))
			require.NoError(t, err)
			defer client.Close()
			use := func(opts ...recipes.Option) {
				lock := locktest.NewMutex(t, wrap(client), "/s", opts...)
				held, err := lock.AcquireTimeout(locktest.Owner(t), 0) // it lists
				require.NoError(t, err)
				require.False(t, held)
			}
			require.NoError(t, b.Mutex(t, b.Other, "/s").Acquire(locktest.Owner(t)))
			s := locktest.NewSemaphore(t, b.Other, "/s", 1)
			_, err = s.Acquire(t.Context()) // another recipe at the path
			require.NoError(t, err)
			time.Sleep(time.Second)
			clients.lines()
			use()
			require.Contains(t, strings.Join(clients.lines(), " "), "another recipe")
			use(own.warnings())
			require.Empty(t, clients.lines())
			require.Contains(t, strings.Join(own.lines(), " "), "another recipe")
		})
	}
}

// All observers are called, in the order in which they were given.
func TestSeveralObservers(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		var told []string
		observe := func(name string) recipes.Option {
			return recipes.WithObserver(func(_ context.Context, e recipes.Event) {
				told = append(told, name+" "+e.Kind.String())
			})
		}
		lock := k.MustMake(t, b.Ours, "/lock", observe("a"), observe("b"), observe("c"))
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
		require.NotEmpty(t, told)
		require.Zero(t, len(told)%3)
		for i := range slices.Chunk(told, 3) {
			_, kind, _ := strings.Cut(i[0], " ")
			require.Equal(t, []string{"a " + kind, "b " + kind, "c " + kind}, i)
		}
	})
}

// Where the session timeout is not known a second without an answer is a loss. Whoever
// has that by an oversight is told what to do, at once and in the loss.
func TestAnUnknownSessionTimeoutIsTold(t *testing.T) {
	const option = "see WithSessionTimeout"
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		link := cluster.Link("ours")
		// each has a session of its own, of which nobody told
		bare := func() recipes.Conn {
			return locktest.ConnectBare(t, link, cluster.Leader().Addr(), 4*time.Second)
		}
		client := locktest.ConnectThrough(t, cluster, "ours")
		for name, c := range map[string]struct {
			conn   recipes.Conn
			opts   []recipes.Option
			advice string
		}{
			"bare": {conn: bare(), advice: option},
			"bare, unwrapped": {
				conn: openWrapper{wrapperOfAConn{bare()}}, advice: option,
			},
			"bare, told": {
				conn: bare(),
				opts: []recipes.Option{recipes.WithSessionTimeout(4 * time.Second)},
			},
			"client":    {conn: client},
			"unwrapped": {conn: openWrapper{wrapperOfAConn{client}}},
			"hidden": {
				conn: wrapperOfAConn{client},
				advice: "give lock_test.wrapperOfAConn a method " +
					"Unwrap() recipes.Conn, or " + option,
			},
		} {
			var logged strings.Builder
			opts := append(
				c.opts, recipes.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))),
			)
			lock := locktest.NewMutex(t, c.conn, "/lock", opts...)
			ctx := locktest.Owner(t)
			for range 2 { // it is told once
				require.NoError(t, lock.Acquire(ctx))
				require.NoError(t, lock.Release(ctx))
			}
			require.NoError(t, lock.Acquire(ctx))
			link.Stall(zktest.ToClient)
			<-lock.Hold(ctx).Lost()
			link.Heal()
			err := lock.Release(ctx)
			require.ErrorIs(t, err, recipes.ErrLockLost, name)
			synctest.Wait()
			losses := strings.Count(logged.String(), "the lock was lost\"")
			require.Equal(t, 1, losses, logged.String())
			if c.advice == "" {
				require.Equal(t, 1, strings.Count(logged.String(), "\n"), logged.String())
				require.NotContains(t, err.Error(), option, name)
			} else {
				require.Equal(t, 1, strings.Count(logged.String(), "timeout unknown"))
				require.Contains(t, logged.String(), c.advice, name)
				require.ErrorContains(
					t, err, "its session timeout is unknown: "+c.advice, name,
				)
			}
			time.Sleep(time.Minute)
		}
	})
}
