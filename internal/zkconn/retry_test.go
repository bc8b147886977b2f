package zkconn_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b zkconn.Backoff
	var waits []time.Duration
	for range 9 {
		waits = append(waits, b.Next())
	}
	const ms = time.Millisecond
	require.Equal(t, []time.Duration{
		0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 500 * ms, 500 * ms,
	}, waits)
	for range 1000 {
		require.Equal(t, 500*ms, b.Next())
	}
}

func TestReadyAndPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 8*time.Second)
		began := time.Now()
		require.NoError(t, awaitReady(t.Context(), s))
		require.NoError(t, s.Pause(t.Context(), 0))
		require.Equal(t, began, time.Now())
		require.NoError(t, s.Pause(t.Context(), time.Second))
		require.Equal(t, began.Add(time.Second), time.Now())

		conn.change(func() { conn.id = 0 }) // authenticated, but not told the session yet
		ready := make(chan error, 1)
		go func() { ready <- awaitReady(t.Context(), s) }()
		time.Sleep(time.Second)
		require.Empty(t, ready)
		conn.change(func() { conn.id = 1 })
		require.NoError(t, <-ready)

		paused := s.Pause(cancelled(t, errEnough), 0)
		require.Equal(t, errEnough, outcome.Cancellation(paused))
		awaited := awaitReady(cancelled(t, errEnough), s)
		require.Equal(t, errEnough, outcome.Cancellation(awaited))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnough)
		defer cancel()
		began = time.Now()
		require.Equal(t, errEnough, outcome.Cancellation(s.Pause(ctx, time.Hour)))
		require.Equal(t, began.Add(time.Second), time.Now())
	})
}

func TestRetryEndsWithWhatNoRetryMends(t *testing.T) {
	lasting := errors.New("lasting")
	for name, c := range map[string]struct {
		ends  []error // of the tries, one after the other
		want  error
		takes time.Duration
	}{
		"success":        {[]error{nil}, nil, 0},
		"a refusal":      {[]error{zk.ErrNoAuth}, zk.ErrNoAuth, 0},
		"made permanent": {[]error{outcome.Permanent(lasting)}, lasting, 0},
		"in the end": {
			ends:  []error{zk.ErrConnectionClosed, zk.ErrNoServer, lasting, nil},
			takes: 30 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := use(t, newFake(), time.Hour)
				began, tries := time.Now(), 0
				err := s.Retry(t.Context(), func() error {
					tries++
					return c.ends[tries-1]
				})
				require.ErrorIs(t, err, c.want)
				require.Len(t, c.ends, tries)
				require.Equal(t, c.takes, time.Since(began))
			})
		})
	}
}
