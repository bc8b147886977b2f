package wait_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/stubconn"
	"github.com/zkrecipes/recipes/internal/wait"
)

// An own is an ephemeral that counts what it learns.
type own struct{ deleted, drained int }

func (*own) Lose(error)    {}
func (o *own) Deleted()    { o.deleted++ }
func (o *own) DrainEvent() { o.drained++ }

var _ wait.OwnZnode = (*own)(nil)

// An unaware one learns nothing.
type unaware struct{}

func (unaware) Lose(error) {}

// Those of this process learn from another's watch that they may be gone.
func TestWhatAWatchTellsOfZnodesOfThisProcess(t *testing.T) {
	of := func(kind zk.EventType) zk.Event { return zk.Event{Type: kind} }
	for name, c := range map[string]struct {
		path             string
		ev               zk.Event
		deleted, drained int
	}{
		"it was deleted": {"/lock/a", of(zk.EventNodeDeleted), 1, 0},
		"another was":    {"/lock/b", of(zk.EventNodeDeleted), 0, 0},
		"it has changed": {"/lock/a", of(zk.EventNodeDataChanged), 0, 0},
		"somebody left":  {"/lock", of(zk.EventNodeChildrenChanged), 0, 1},
		"left elsewhere": {"/other", of(zk.EventNodeChildrenChanged), 0, 0},
		"another has it": {"/lock/a", zk.Event{}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stubconn.Use(t, &stubconn.Conn{})
				events := make(chan zk.Event, 1)
				for as, wake := range map[wait.Wakeup]wait.Wakers{
					wait.WatchFired:  {Watch: events, Path: c.path},
					wait.BeyondFired: {Beyond: events, BeyondPath: c.path},
				} {
					var a own
					s.Track("/lock/a", 1, &a)
					s.Track("/lock/c", 1, unaware{})
					events <- c.ev
					by, ev, err := wake.Sleep(t.Context(), s)
					require.NoError(t, err)
					require.Equal(t, as, by)
					require.Equal(t, c.ev, ev)
					require.Equal(t, own{c.deleted, c.drained}, a)
					s.Untrack("/lock/a", s.Ephemeral("/lock/a"))
					s.Untrack("/lock/c", s.Ephemeral("/lock/c"))
				}
			})
		})
	}
}

// Whichever watch the close of the connection ends, nothing is relied on any more.
func TestAWatchTellsOfTheClose(t *testing.T) {
	for _, ends := range []error{zk.ErrSessionExpired, zk.ErrClosing} {
		t.Run(ends.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := make(chan zk.Event, 1)
				for _, wake := range []wait.Wakers{
					{Watch: events}, {Beyond: events}, {Maximum: events},
				} {
					conn := stubconn.Use(t, &stubconn.Conn{})
					events <- zk.Event{Type: zk.EventNotWatching, Err: ends}
					_, _, err := wake.Sleep(t.Context(), conn)
					require.NoError(t, err)
					isClosed := false
					select {
					case <-conn.Closed():
						isClosed = true
					default:
					}
					require.Equal(t, errors.Is(ends, zk.ErrClosing), isClosed)
				}
			})
		})
	}
}

func TestAPollIsDueInThirtyToSixtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := map[time.Duration]bool{}
		for range 100 {
			began := time.Now()
			<-wait.NextPoll()
			took[time.Since(began)] = true
			require.GreaterOrEqual(t, time.Since(began), 30*time.Second)
			require.Less(t, time.Since(began), time.Minute)
		}
		require.Greater(t, len(took), 90, "those who wait together ask together")
	})
}
