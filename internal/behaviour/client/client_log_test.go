package client_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A stuckHandler does not return, from the first record on, until it is released.
type stuckHandler struct {
	slog.Handler
	release chan struct{}
	once    sync.Once
	stuck   chan struct{} // closed with the first record
}

func (h *stuckHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *stuckHandler) Handle(context.Context, slog.Record) error {
	h.once.Do(func() { close(h.stuck) })
	<-h.release
	return nil
}

// A handler or an observer that does not return stops nothing but itself: the client
// connects again, and its locks go on. It was the client's own loop that logged.
func TestALogHandlerThatDoesNotReturn(t *testing.T) {
	for _, observed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cluster := zktest.Start(t)
			link := cluster.Link("ours")
			h := &stuckHandler{
				Handler: slog.DiscardHandler, release: make(chan struct{}),
				stuck: make(chan struct{}),
			}
			with := recipes.WithClientLogger(slog.New(h))
			if observed {
				with = recipes.WithClientObserver(func(recipes.SessionEvent) {
					_ = h.Handle(t.Context(), slog.Record{})
				})
			}
			c, err := recipes.Connect(t.Context(), cluster.Names()[0], 10*time.Second,
				recipes.WithDialer(link.Dial), with)
			require.NoError(t, err)
			<-h.stuck
			for range 3 {
				link.Cut()
				time.Sleep(5 * time.Second)
				link.Heal()
				time.Sleep(5 * time.Second)
				_, _, err = c.Get("/")
				require.NoError(t, err)
				lock := locktest.NewMutex(t, c, "/lock")
				require.NoError(t, lock.Acquire(t.Context()))
				require.NoError(t, lock.Release(t.Context()))
			}
			began := time.Now()
			c.Close()
			require.LessOrEqual(t, time.Since(began), 5*time.Second)
			close(h.release)
			time.Sleep(time.Minute)
		})
	}
}
