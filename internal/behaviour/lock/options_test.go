package lock_test

import (
	"log/slog"
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
			lock, err := recipes.NewInterProcessMutex(c.conn, "/lock", opts...)
			require.NoError(t, err, name)
			ctx := locktest.Owner(t)
			for range 2 { // it is told once
				require.NoError(t, lock.Acquire(ctx))
				require.NoError(t, lock.Release(ctx))
			}
			require.NoError(t, lock.Acquire(ctx))
			link.Stall(zktest.ToClient)
			<-lock.Hold(ctx).Lost()
			link.Heal()
			err = lock.Release(ctx)
			require.ErrorIs(t, err, recipes.ErrLockLost, name)
			if c.advice == "" {
				require.Empty(t, logged.String(), name)
				require.NotContains(t, err.Error(), option, name)
			} else {
				require.Equal(
					t, 1, strings.Count(logged.String(), "level=WARN"), logged.String(),
				)
				require.Contains(t, logged.String(), c.advice, name)
				require.ErrorContains(
					t, err, "its session timeout is unknown: "+c.advice, name,
				)
			}
			time.Sleep(time.Minute)
		}
	})
}
