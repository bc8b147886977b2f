package otelrecipes_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// The ages are those of the oldest hold and wait that have not ended; a histogram has
// only those that have. They return to 0.
func TestAges(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		ages := func(hold, wait time.Duration) {
			t.Helper()
			require.Equal(t, []string{
				fmt.Sprintf("lock.hold.age [s] name= recipe=mutex: %.3f", hold.Seconds()),
				fmt.Sprintf("lock.wait.age [s] name= recipe=mutex: %.3f", wait.Seconds()),
			}, of(s.metrics(), "lock.hold.age", "lock.wait.age"))
		}
		client, _ := s.connect("one")
		lock := s.mutex(client)
		first := s.owner()
		require.NoError(t, lock.Acquire(first))
		ages(0, 0)
		time.Sleep(time.Hour)
		ages(time.Hour, 0)
		acquired := make(chan error)
		for range 2 {
			go func() {
				ctx := s.owner()
				err := lock.Acquire(ctx)
				acquired <- err
				time.Sleep(time.Second)
				acquired <- lock.Release(ctx)
			}()
			time.Sleep(time.Minute)
		}
		ages(time.Hour+2*time.Minute, 2*time.Minute)
		s.cluster.ExpireSession(client.SessionID())
		<-lock.Hold(first).Lost()
		require.NoError(t, <-acquired, "the first waiter")
		require.ErrorIs(t, lock.Release(first), recipes.ErrLockLost)
		for range 3 { // it releases, and the other waiter does the same
			require.NoError(t, <-acquired)
		}
		synctest.Wait()
		ages(0, 0)
	})
}

// What remains until a hold is lost shrinks in an outage, and is not there without one.
func TestWhatRemains(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		client, link := s.connect("one")
		other, _ := s.connect("other")
		lock := s.mutex(client)
		ctx := s.owner()
		remains := func() []string { return of(s.metrics(), "lock.hold.remaining") }
		require.NoError(t, lock.Acquire(ctx))
		time.Sleep(time.Minute + 300*time.Millisecond) // no ping is due at this moment
		hold := lock.Hold(ctx)
		left := func() string {
			return fmt.Sprintf("lock.hold.remaining [s] name= recipe=mutex: %.3f",
				time.Until(hold.Until()).Seconds())
		}
		require.Equal(t, []string{left()}, remains())
		link.Cut()
		before := secondsIn(t, remains()[0])
		time.Sleep(2 * time.Second)
		require.InDelta(t, before-2, secondsIn(t, remains()[0]), 0.01)
		// Another one that has more time does not hide it.
		long, err := recipes.NewInterProcessMutex(
			other, path+"2", recipes.WithObserver(s.observer.Lock))
		require.NoError(t, err)
		require.NoError(t, long.Acquire(ctx))
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{left()}, remains())
		<-hold.Lost()
		require.NoError(t, long.Release(ctx))
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
		synctest.Wait() // a loss is reported on a goroutine of its own
		require.Empty(t, remains())
	})
}

var aSecond = regexp.MustCompile(`: ([0-9.]+)$`)

func secondsIn(t *testing.T, line string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(aSecond.FindStringSubmatch(line)[1], 64)
	require.NoError(t, err)
	return n
}

// Between the end of a session and the next one a client is disconnected, too.
func TestAnExpiredSessionIsNoConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		for _, kind := range []recipes.SessionEventKind{
			recipes.SessionConnected, recipes.SessionDisconnected, recipes.SessionExpired,
		} {
			s.observer.Session(recipes.SessionEvent{Kind: kind, Session: 1})
			time.Sleep(time.Second)
		}
		lines := func() []string { return of(s.metrics(), "session.disconnected") }
		require.Equal(t, []string{"session.disconnected [s]: 2.000"}, lines())
		s.observer.Session(recipes.SessionEvent{Kind: recipes.SessionClosed})
		require.Empty(t, lines())
	})
}

// One client that is disconnected shows, however many are connected.
func TestConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		is := func(connected int, disconnected time.Duration) {
			t.Helper()
			require.Equal(t, []string{
				fmt.Sprintf("session.connected [{connection}]: %d", connected),
				fmt.Sprintf("session.disconnected [s]: %.3f", disconnected.Seconds()),
			}, of(s.metrics(), "session.connected", "session.disconnected"))
		}
		client, link := s.connect("one")
		other, _ := s.connect("other")
		is(1, 0)
		link.Cut()
		time.Sleep(5 * time.Second)
		is(0, 5*time.Second)
		s.cluster.ExpireSession(client.SessionID())
		s.cluster.ExpireSession(other.SessionID()) // which connects again at once
		time.Sleep(5 * time.Second)
		is(0, 10*time.Second)
		link.Heal()
		time.Sleep(5 * time.Second)
		is(1, 0)
		client.Close()
		is(1, 0)
		other.Close()
		require.Empty(t, of(s.metrics(), "session.connected", "session.disconnected"))
	})
}

// Observers with the same attributes show together what each of them knows: none hides
// what another has to say.
func TestSeveralObservers(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		holder, link := s.connect("holder")
		lock := s.mutex(holder)
		ctx := s.owner()
		require.NoError(t, lock.Acquire(ctx))
		time.Sleep(time.Minute)
		s.observeAnew()
		other, _ := s.connect("other")
		waiter, waits := s.mutex(other), s.owner()
		acquired := make(chan error, 1)
		go func() { acquired <- waiter.Acquire(waits) }()
		time.Sleep(time.Minute)
		s.observeAnew()
		third, _ := s.connect("third")
		free, err := recipes.NewInterProcessMutex(
			third, path+"2", recipes.WithObserver(s.observer.Lock))
		require.NoError(t, err)
		require.NoError(t, free.Acquire(ctx))
		link.Cut()
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{
			"lock.hold.age [s] name= recipe=mutex: 122.000",
			fmt.Sprintf("lock.hold.remaining [s] name= recipe=mutex: %.3f",
				time.Until(lock.Hold(ctx).Until()).Seconds()),
			"lock.wait.age [s] name= recipe=mutex: 62.000",
			"session.connected [{connection}]: 0",
			"session.disconnected [s]: 2.000",
		}, of(s.metrics(), "lock.hold.age", "lock.hold.remaining", "lock.wait.age",
			"session.connected", "session.disconnected"))
		link.Heal()
		time.Sleep(2 * time.Second)
		require.NoError(t, lock.Release(ctx))
		require.NoError(t, <-acquired)
		require.NoError(t, waiter.Release(waits))
		require.NoError(t, free.Release(ctx))
	})
}
