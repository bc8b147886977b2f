package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/session"
)

// HAZARDS E1: no call of the client takes a ctx, and a mute server can hold it up for ever.
func TestACallerLeavesAHangingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := session.Use(conn, config(time.Hour))
		release := make(chan struct{})
		call := session.Start(s, func() (string, error) {
			<-release
			return "late", zk.ErrNoNode
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnough)
		defer cancel()
		began := time.Now()
		_, err := call.Wait(ctx)
		require.ErrorIs(t, err, errEnough)
		require.Equal(t, began.Add(time.Second), time.Now())

		var followed string
		call.Then(func(value string, err error) { followed = fmt.Sprint(value, ": ", err) })
		s.Release()
		require.Same(t, s, session.Use(conn, config(time.Hour)), "a call under way is a user")
		s.Release()
		close(release)
		<-call.Done()
		synctest.Wait()
		require.Equal(t, "late: zk: node does not exist", followed)
		require.ErrorIs(t, call.Err(), zk.ErrNoNode)
		require.NotSame(t, s, use(t, conn, time.Hour), "and leaves with its end")
	})
}

func TestWaitPrefersTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		s := use(t, conn, time.Hour)
		call := session.Start(s, func() (int, error) { return 7, nil })
		<-call.Done()
		s.ConnClosed()
		for range 100 { // a select chooses at random
			value, err := call.Wait(cancelled(t, errEnough))
			require.NoError(t, err)
			require.Equal(t, 7, value)
		}
	})
}

// HAZARDS E15: on a closed connection every call fails at once, and in an outage calls wait; nothing else tells.
func TestAClosedConnectionIsFoundOut(t *testing.T) {
	const never = time.Duration(0)
	traced := fmt.Errorf("traced: %w", zk.ErrConnectionClosed)
	for name, c := range map[string]struct {
		err     error
		latency time.Duration
		state   zk.State
		within  time.Duration // of the first heartbeat that fails
	}{
		"closed":                     {zk.ErrConnectionClosed, 0, zk.StateDisconnected, 500 * time.Millisecond},
		"closed, behind a wrapper":   {traced, 0, zk.StateDisconnected, 500 * time.Millisecond},
		"closed, and slow to end":    {zk.ErrConnectionClosed, 0, zk.StateConnecting, 4 * time.Second},
		"lost, as in an outage":      {zk.ErrConnectionClosed, time.Second, zk.StateConnecting, never},
		"lost, as nobody has seen":   {zk.ErrConnectionClosed, time.Second, zk.StateDisconnected, never},
		"no server, at once":         {zk.ErrNoServer, 0, zk.StateConnecting, never},
		"no server, as nobody knows": {zk.ErrNoServer, 0, zk.StateDisconnected, never},
		"a refusal, at once":         {zk.ErrNoAuth, 0, zk.StateHasSession, never},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 12 * time.Second
				conn := newFake()
				s := use(t, conn, timeout)
				require.NoError(t, contact(s))
				conn.change(func() { conn.err, conn.latency, conn.state = c.err, c.latency, c.state })
				began := time.Now()
				select {
				case <-s.Closed():
					require.NotEqual(t, never, c.within)
					require.LessOrEqual(t, time.Since(began), timeout/10+c.within)
				case <-time.After(time.Minute):
					require.Equal(t, never, c.within)
				}
			})
		})
	}
}

// A wrapper may play an outage, in which every call fails at once, and tell of it by
// State or not. What goes through it goes on when it is over.
func TestAWrapperThatPlaysAnOutageIsNotTakenForClosed(t *testing.T) {
	const never = time.Duration(0)
	for name, c := range map[string]struct {
		timeout time.Duration
		state   zk.State
		within  time.Duration
	}{
		"state not told":                 {12 * time.Second, zk.StateHasSession, never},
		"connecting":                     {12 * time.Second, zk.StateConnecting, never},
		"disconnected for long":          {12 * time.Second, zk.StateDisconnected, 13 * time.Second},
		"disconnected, a short session":  {time.Second, zk.StateDisconnected, 11 * time.Second},
		"disconnected, nobody knows how": {0, zk.StateDisconnected, 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newFake()
				cfg := config(c.timeout)
				cfg.Plain = false
				s := useWith(t, conn, cfg)
				require.NoError(t, contact(s))
				conn.change(func() { conn.err, conn.state = zk.ErrConnectionClosed, c.state })
				began := time.Now()
				select {
				case <-s.Closed():
					require.InDelta(t, c.within, time.Since(began), float64(time.Second))
				case <-time.After(time.Hour):
					require.Equal(t, never, c.within)
				}
			})
		})
	}
}

// zk.ErrClosing is what a closed client ends its watches and pending calls with, and
// nothing else does.
func TestAConnectionThatSaysSoIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		cfg := config(time.Hour)
		cfg.Plain = false
		s := useWith(t, conn, cfg)
		conn.err = fmt.Errorf("traced: %w", zk.ErrClosing)
		require.ErrorIs(t, contact(s), zk.ErrClosing)
		<-s.Closed()
	})
}

func TestAConnectionThatComesBackWasNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFake()
		conn.deleted = func() error { return zk.ErrConnectionClosed }
		s := use(t, conn, time.Hour)
		for range 100 {
			conn.change(func() { conn.state = zk.StateDisconnected })
			for range 200 {
				require.ErrorIs(t, s.Delete("/x", -1), zk.ErrConnectionClosed)
			}
			conn.change(func() { conn.state = zk.StateHasSession })
			time.Sleep(10 * time.Second)
		}
		require.NoError(t, s.Pause(t.Context(), 0))
	})
}

func TestErrorsAreTold(t *testing.T) {
	t.Parallel()
	type class struct{ answered, final, notDone bool }
	var (
		done     = class{answered: true}
		refusal  = class{answered: true, final: true, notDone: true}
		unknown  = class{}
		passing  = class{answered: true, notDone: true}
		between  = class{answered: true} // servers lost one another: it may be done
		byClient = class{final: true, notDone: true}
	)
	for name, c := range map[string]struct {
		err  error
		want class
	}{
		"nil":               {nil, done},
		"no node":           {zk.ErrNoNode, refusal},
		"wrapped":           {fmt.Errorf("traced: %w", zk.ErrNoAuth), refusal},
		"no children":       {zk.ErrNoChildrenForEphemerals, refusal},
		"unimplemented":     {errors.New("unknown error: -6"), refusal},
		"quota":             {errors.New("unknown error: -125"), refusal},
		"read-only server":  {errors.New("unknown error: -119"), passing},
		"throttled":         {errors.New("unknown error: -127"), passing},
		"connection loss":   {errors.New("unknown error: -4"), between},
		"operation timeout": {errors.New("unknown error: -7"), between},
		"connection closed": {zk.ErrConnectionClosed, unknown},
		"session expired":   {zk.ErrSessionExpired, unknown},
		"raw":               {errors.New("write tcp: broken pipe"), unknown},
		"no server":         {zk.ErrNoServer, class{notDone: true}},
		"session moved":     {zk.ErrSessionMoved, class{notDone: true}},
		"invalid path":      {zk.ErrInvalidPath, byClient},
		"closed by owner":   {fmt.Errorf("x: %w", session.ErrClosed), class{final: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := class{session.Answered(c.err), session.Final(c.err), session.NotDone(c.err)}
			if c.err == nil {
				got.notDone = session.NotDone(nil)
			}
			require.Equal(t, c.want, got)
		})
	}
	require.True(t, session.Unimplemented(errors.New("unknown error: -6")))
	require.False(t, session.Unimplemented(errors.New("unknown error: -4")))
	require.False(t, session.Unimplemented(nil))
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b session.Backoff
	var waits []time.Duration
	for range 9 {
		waits = append(waits, b.Next())
	}
	const ms = time.Millisecond
	require.Equal(t, []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 500 * ms, 500 * ms}, waits)
	for range 1000 {
		require.Equal(t, 500*ms, b.Next())
	}
}
