package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// Many answers are slow on a busy machine. So one that is fast counts more than several
// that are not.
func TestARoundTripIsWhatAnAnswerTakesAtLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 10*time.Second)
		sync := func(times int, takes time.Duration) {
			conn.change(func() { conn.latency = takes })
			for range times {
				require.NoError(t, s.Sync("/"))
			}
		}
		sync(7, 20*time.Millisecond)
		require.Less(t, s.RoundTrip(), time.Millisecond)
		sync(2, 20*time.Millisecond)
		require.Greater(t, s.RoundTrip(), time.Millisecond)
		sync(1, time.Millisecond/4)
		require.Equal(t, time.Millisecond/4, s.RoundTrip())
		sync(40, 2*time.Millisecond)
		require.Equal(t, 2*time.Millisecond, s.RoundTrip())
	})
}

// ZooKeeper is unavailable as soon as a request has been without an answer for a second,
// or while there is no session.
func TestUnavailableAfterASecondWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, 10*time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.False(t, s.Unavailable(), "the heartbeat is answered")

		end := conn.silence()
		go func() { _ = s.Sync("/") }()
		synctest.Wait()
		time.Sleep(time.Second - 1)
		require.False(t, s.Unavailable())
		time.Sleep(time.Nanosecond)
		require.True(t, s.Unavailable())
		end()
		require.NoError(t, s.Sync("/"))
		require.False(t, s.Unavailable())

		conn.change(func() { conn.state = zk.StateDisconnected })
		require.True(t, s.Unavailable())
		conn.change(func() { conn.state = zk.StateHasSession })
	})
}

// A long time is told in milliseconds, a short one as it was.
func TestHowLongThereWasNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := use(t, newFake(), 10*time.Second)
		require.NoError(t, s.Sync("/"))
		for silence, told := range map[time.Duration]string{
			1_200_001 * time.Microsecond: " for 1.2s, since ",
			200_001 * time.Microsecond:   " for 200.001ms, since ",
		} {
			err := s.NoAnswer(time.Now().Add(-silence))
			require.ErrorIs(t, err, zkconn.ErrNoAnswer)
			require.ErrorContains(t, err, told)
		}
	})
}

// While nobody uses a connection nobody asks: silence counts from the use on.
func TestNoAnswerCountsFromTheUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := use(t, newFake(), 10*time.Second)
		require.NoError(t, s.Sync("/"))
		s.Release()
		time.Sleep(5 * time.Second)
		s.Retain()
		require.ErrorContains(t, s.NoAnswer(time.Now()), " for 0s, since ")
	})
}
