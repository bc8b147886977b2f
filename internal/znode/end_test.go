package znode_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/stubconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A watchedConn has one znode, whose watch the test fires.
type watchedConn struct {
	lossyConn
	events  chan zk.Event
	removal error   // the answer to a delete
	first   []error // those to the first deletes, instead
	reading func()  // at each read
	removed time.Time
	deletes int
}

func (c *watchedConn) answer(removal error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removal = removal
}

func (c *watchedConn) tries() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deletes
}

func (c *watchedConn) GetW(string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	if c.reading != nil {
		c.reading()
	}
	return nil, &zk.Stat{Czxid: 5}, c.events, nil
}

func (c *watchedConn) Delete(string, int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed = time.Now()
	c.deletes++
	if len(c.first) > 0 {
		answer := c.first[0]
		c.first = c.first[1:]
		return answer
	}
	return c.removal
}

func (c *watchedConn) removedAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removed
}

// A recorder takes note of what becomes of a znode.
type recorder struct {
	znode.NoHooks
	removed []bool
}

func (r *recorder) Removed(gone bool) { r.removed = append(r.removed, gone) }

func join(
	t *testing.T, conn *watchedConn, hooks znode.Hooks, terms znode.Terms,
) *znode.Node {
	t.Helper()
	conn.session, conn.events = 1, make(chan zk.Event, 1)
	s, spec := stubconn.Use(t, conn), stubconn.Spec()
	spec.Terms = terms
	n, err := znode.Create(t.Context(), s, &spec, "", hooks)
	require.NoError(t, err)
	return n
}

// The hooks learn whether the znode is gone for certain.
func TestWhetherARemovedZnodeIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		removal error
		moves   bool
		gone    bool
	}{
		"deleted":       {gone: true},
		"gone before":   {removal: zk.ErrNoNode, gone: true},
		"session ended": {moves: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, hooks := &watchedConn{removal: c.removal}, &recorder{}
				n := join(t, conn, hooks, znode.Terms{})
				if c.moves {
					conn.move()
				}
				n.Withdraw()
				synctest.Wait()
				require.Equal(t, []bool{c.gone}, hooks.removed)
			})
		})
	}
}

// A delete that is refused is tried again, less and less often, until the znode is gone
// or the session has ended. The one who asked for it is told at once.
func TestARefusedDelete(t *testing.T) {
	for name, c := range map[string]struct {
		then func(conn *watchedConn)
		gone bool
	}{
		"allowed":       {func(conn *watchedConn) { conn.answer(nil) }, true},
		"gone":          {func(conn *watchedConn) { conn.answer(zk.ErrNoNode) }, true},
		"session ended": {func(conn *watchedConn) { conn.move() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, hooks := &watchedConn{removal: zk.ErrNoAuth}, &recorder{}
				n := join(t, conn, hooks, znode.Terms{})
				began := time.Now()
				require.ErrorIs(t, n.StartLeaving()(t.Context()), zk.ErrNoAuth)
				require.Zero(t, time.Since(began))
				time.Sleep(time.Hour)
				require.Empty(t, hooks.removed, "it is still there")
				require.InDelta(t, 120, conn.tries(), 10)
				c.then(conn)
				time.Sleep(31 * time.Second)
				require.Equal(t, []bool{c.gone}, hooks.removed)
				conn.answer(zk.ErrNoNode) // once the servers have ended the session, too
				time.Sleep(31 * time.Second)
				before := conn.tries()
				time.Sleep(time.Hour)
				require.Equal(t, before, conn.tries())
			})
		})
	}
}

// A delete that may have been done has been where the next finds nothing, whatever was
// answered between the two: to leave is no loss.
func TestADeleteThatMayHaveBeenDone(t *testing.T) {
	for name, c := range map[string]struct {
		first []error
		want  error
	}{
		"found nothing at once":   {nil, znode.ErrGone},
		"not sent":                {[]error{zk.ErrNoServer}, znode.ErrGone},
		"lost":                    {[]error{zk.ErrConnectionClosed}, nil},
		"lost, and then not sent": {[]error{zk.ErrConnectionClosed, zk.ErrNoServer}, nil},
		"not sent, and then lost": {[]error{zk.ErrNoServer, zk.ErrConnectionClosed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &watchedConn{first: c.first, removal: zk.ErrNoNode}
				n := join(t, conn, znode.NoHooks{}, znode.Terms{})
				require.NoError(t, n.Hold())
				require.ErrorIs(t, n.StartLeaving()(t.Context()), c.want)
				require.Empty(t, conn.first)
			})
		})
	}
}

// The znode stays for the margin only if this process has decided by itself that a hold
// is lost.
func TestWhichEndLeavesAMargin(t *testing.T) {
	for name, c := range map[string]struct {
		holds bool
		cause error
		stays time.Duration
	}{
		"expired":           {true, znode.ErrExpired, time.Second},
		"suspended":         {true, outcome.ErrOutOfTouch, time.Second},
		"suspended, queued": {false, outcome.ErrOutOfTouch, 0},
		"left":              {true, znode.ErrLeft, 0},
		"session ended":     {true, outcome.ErrSessionEnded, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &watchedConn{}
				n := join(t, conn, znode.NoHooks{}, znode.Terms{LossMargin: time.Second})
				if c.holds {
					require.NoError(t, n.Hold())
				}
				began := time.Now()
				if errors.Is(c.cause, znode.ErrLeft) {
					n.Withdraw()
				} else {
					n.Lose(c.cause)
				}
				time.Sleep(time.Minute)
				require.Equal(t, c.stays, conn.removedAt().Sub(began))
			})
		})
	}
}

// A znode is confirmed while a watch on it is set, and has not fired.
func TestConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &watchedConn{}
		n := join(t, conn, znode.NoHooks{}, znode.Terms{})
		confirmed := func() bool { _, ok := n.Confirmation(); return ok }
		require.False(t, confirmed(), "no watch is set")
		n.WatchSelf()
		require.NoError(t, n.AwaitToken(context.WithoutCancel(t.Context())))
		synctest.Wait()
		require.True(t, confirmed())
		n.DrainEvent()
		require.False(t, n.HasEnded())
		n.Withdraw()
		require.False(t, confirmed(), "it has left")
	})
}

// What the watch has received counts before its goroutine gets to know it.
func TestAnEventThatIsDrainedFirst(t *testing.T) {
	cases := map[string]bool{"at once": false, "behind Confirmation": true}
	for name, asked := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := join(t, &watchedConn{}, znode.NoHooks{}, znode.Terms{})
				events := make(chan zk.Event, 1)
				n.SetWatch(events)
				events <- zk.Event{Type: zk.EventNodeDeleted}
				if asked {
					_, ok := n.Confirmation()
					require.False(t, ok)
					require.False(t, n.HasEnded(), "it is left to DrainEvent")
				}
				n.DrainEvent()
				require.ErrorIs(t, n.Cause(), znode.ErrGone)
			})
		})
	}
}

// If the goroutine has the event, it can be that of a close: no request may follow it at
// once.
func TestAnEventThatAnotherHas(t *testing.T) {
	for name, fired := range map[string]bool{"fired": true, "not fired": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &watchedConn{}
				n := join(t, conn, znode.NoHooks{}, znode.Terms{})
				events := make(chan zk.Event)
				n.SetWatch(events)
				if fired {
					close(events)
				}
				n.DrainEvent()
				require.False(t, n.HasEnded())
				began := time.Now()
				n.Withdraw()
				time.Sleep(time.Second)
				took := conn.removedAt().Sub(began)
				require.Equal(t, fired, took == 10*time.Millisecond)
				require.Equal(t, !fired, conn.removedAt().Equal(began))
			})
		})
	}
}

// A node that ends while the session is asked whether it can be relied on is not held.
func TestAZnodeThatEndsMeanwhileIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &watchedConn{}
		n := join(t, conn, znode.NoHooks{}, znode.Terms{})
		leave := func() {
			go n.Withdraw()
			<-n.Ended().Done()
		}
		conn.look.Store(&leave)
		err := n.Hold()
		conn.look.Store(nil)
		require.ErrorIs(t, err, znode.ErrEnded)
		synctest.Wait()
	})
}

type tenant struct{}

func (tenant) Lost(error) {}

// A hold that the session refuses is none.
func TestARefusedHold(t *testing.T) {
	n := join(t, &watchedConn{}, znode.NoHooks{}, znode.Terms{LossMargin: time.Hour})
	require.Error(t, n.Hold())
	require.False(t, n.Attach(tenant{}))
	require.False(t, n.HasEnded())
	n.Withdraw()
}

// A watch that is planned is not put off by another plan.
func TestAWatchIsSetAsSoonAsItWasPlanned(t *testing.T) {
	for name, again := range map[string]time.Duration{
		"the same": znode.Soon, "later": znode.Late,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := join(t, &watchedConn{}, znode.NoHooks{}, znode.Terms{})
				n.WatchSelfLater(znode.Soon)
				time.Sleep(znode.Soon / 2)
				n.WatchSelfLater(again)
				time.Sleep(znode.Soon/2 + time.Millisecond)
				_, ok := n.Confirmation()
				require.True(t, ok)
				n.Withdraw()
			})
		})
	}
}

// A plan for the same time is none that puts the first off, however often it is made.
func TestAWatchThatIsPlannedSoonAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, &watchedConn{}, znode.NoHooks{}, znode.Terms{})
		n.WatchSelfLater(znode.Late)
		for began := time.Now(); time.Since(began) <= 2*znode.Soon; {
			n.WatchSelfLater(znode.Soon)
			time.Sleep(znode.Soon / 2)
		}
		_, ok := n.Confirmation()
		require.True(t, ok)
		n.Withdraw()
	})
}

// A watch whose connection was away while it was set is of the time before.
func TestAReconnectWhileAWatchIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &watchedConn{}
		conn.session, conn.events = 1, make(chan zk.Event, 1)
		s, spec := stubconn.Use(t, conn), stubconn.Spec()
		n, err := znode.Create(t.Context(), s, &spec, "", znode.NoHooks{})
		require.NoError(t, err)
		var once sync.Once
		conn.reading = func() { once.Do(conn.move) }
		n.WatchSelf()
		synctest.Wait()
		epoch, ok := n.Confirmation()
		require.True(t, ok)
		require.Less(t, epoch, s.Epoch())
		n.Withdraw()
	})
}

// What has gone with its session is no znode that stays; what cannot be deleted is.
func TestWhatStaysBeyondItsSessionIsLogged(t *testing.T) {
	for answer, logged := range map[error]bool{
		nil: false, zk.ErrNoNode: false, zk.ErrNoAuth: true,
	} {
		t.Run(fmt.Sprint(answer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &watchedConn{removal: answer}
				conn.session = 1
				var log strings.Builder
				s, spec := stubconn.Use(t, conn), stubconn.Spec()
				spec.Log = slog.New(slog.NewTextHandler(&log, nil))
				n, err := znode.Create(t.Context(), s, &spec, "", znode.NoHooks{})
				require.NoError(t, err)
				conn.move()
				n.Withdraw()
				synctest.Wait()
				require.False(t, conn.removedAt().IsZero())
				tells := strings.Contains(log.String(), "still being deleted")
				require.Equal(t, logged, tells)
				conn.answer(nil)
				time.Sleep(time.Minute)
			})
		})
	}
}
