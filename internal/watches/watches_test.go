package watches_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/watches"
)

// conn is a connection to a server that has every znode asked for.
type conn struct {
	mu         sync.Mutex
	pending    map[string][]chan zk.Event // by path
	set        int                        // how many watches were set
	lists      int
	fails      error // what GetW and ChildrenW end with
	reconnects int
	next       chan struct{} // closed at each reconnect
}

func newConn() *conn {
	return &conn{pending: map[string][]chan zk.Event{}, next: make(chan struct{})}
}

func (*conn) Retain()                 {}
func (*conn) Release()                {}
func (*conn) Closed() <-chan struct{} { return nil }
func (*conn) InOrder() bool           { return true }

func (c *conn) watch(path string) <-chan zk.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set++
	events := make(chan zk.Event, 1)
	c.pending[path] = append(c.pending[path], events)
	return events
}

func (c *conn) Get(string) ([]byte, *zk.Stat, error) {
	return []byte("now"), &zk.Stat{}, nil
}

func (c *conn) Children(string) ([]string, *zk.Stat, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	return []string{"child"}, &zk.Stat{}, nil
}

func (c *conn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	if c.fails != nil {
		return nil, nil, nil, c.fails
	}
	return []string{"child"}, &zk.Stat{}, c.watch(path), nil
}

func (c *conn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	if c.fails != nil {
		return nil, nil, nil, c.fails
	}
	return nil, &zk.Stat{Czxid: 5}, c.watch(path), nil
}

func (c *conn) Reconnected() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

func (c *conn) AwaySince(reconnected <-chan struct{}) bool {
	select {
	case <-reconnected:
		return true
	default:
		return false
	}
}

func (c *conn) Reconnects() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reconnects
}

func (c *conn) reconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reconnects++
	close(c.next)
	c.next = make(chan struct{})
}

// fire ends all watches on path with an event.
func (c *conn) fire(path string, ev zk.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, events := range c.pending[path] {
		events <- ev
		close(events)
	}
	delete(c.pending, path)
}

var deleted = zk.Event{Type: zk.EventNodeDeleted}

func TestAPathHasOneWatch(t *testing.T) {
	c := newConn()
	ws := watches.New(c)
	for range 3 {
		events, err := ws.Watch(t.Context(), "/a")
		require.NoError(t, err)
		require.NotNil(t, events)
		_, _, _, err = ws.WatchChildren(t.Context(), "/a")
		require.NoError(t, err)
	}
	require.Equal(t, 2, c.set, "one for its data, one for its children")
	require.Equal(t, 2, c.lists, "who shares a watch lists behind it")
	c.fire("/a", deleted)
	_, err := ws.Watch(t.Context(), "/a")
	require.NoError(t, err)
	require.Equal(t, 3, c.set, "the other one is over")
}

// The client asks once that its watches be set again, and the server can turn that away.
func TestAReconnectEndsTheSharing(t *testing.T) {
	c := newConn()
	ws := watches.New(c)
	for reconnects := range 2000 { // however many there were
		for range 3 {
			_, err := ws.Watch(t.Context(), "/a")
			require.NoError(t, err)
			require.Equal(t, reconnects+1, c.set)
			require.Equal(t, 1, ws.Kept())
		}
		c.reconnect()
	}
}

func TestWatchesThatAreOverAreForgotten(t *testing.T) {
	c := newConn()
	ws := watches.New(c)
	for i := range 1000 {
		path := fmt.Sprint("/", i)
		_, err := ws.Watch(t.Context(), path)
		require.NoError(t, err)
		c.fire(path, deleted)
		require.LessOrEqual(t, ws.Kept(), 20)
	}
	require.Zero(t, ws.Sweep())
	c.fails = errors.New("not set")
	_, err := ws.Watch(t.Context(), "/a")
	require.Equal(t, c.fails, err)
	require.Zero(t, ws.Sweep(), "nor is one kept that could not be set")
}

// They are looked for once there are twice as many as were left.
func TestWhenWatchesAreLookedThrough(t *testing.T) {
	c := newConn()
	ws := watches.New(c)
	for i := range 16 {
		path := fmt.Sprint("/", i)
		_, err := ws.Watch(t.Context(), path)
		require.NoError(t, err)
		c.fire(path, deleted)
		require.Equal(t, i+1, ws.Kept())
	}
	_, err := ws.Watch(t.Context(), "/more")
	require.NoError(t, err)
	require.Equal(t, 1, ws.Kept())
}

func TestAListWithAWatch(t *testing.T) {
	c := newConn()
	ws := watches.New(c)
	for range 2 { // once with a watch of its own
		children, stat, events, err := ws.WatchChildren(t.Context(), "/a")
		require.NoError(t, err)
		require.Equal(t, []string{"child"}, children)
		require.NotNil(t, stat)
		require.NotNil(t, events)
	}
	c.fails = errors.New("not set")
	_, _, events, err := ws.WatchChildren(t.Context(), "/b")
	require.Equal(t, c.fails, err)
	require.Nil(t, events)
}

func TestIncarnations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn()
		ws := watches.New(c)
		_, ok := ws.IncarnationNow("/a")
		require.False(t, ok, "nobody wants to know")
		for range 3 {
			require.True(t, ws.WatchIncarnation("/a"))
			czxid, ok := ws.Incarnation(t.Context(), "/a")
			require.True(t, ok)
			require.EqualValues(t, 5, czxid)
			_, ok = ws.IncarnationNow("/a")
			require.True(t, ok)
			c.reconnect()
			_, ok = ws.IncarnationNow("/a")
			require.False(t, ok, "it may be another one by now")
		}
		require.Equal(t, 3, c.set)
		require.False(t, ws.SaidClosed())
		c.fire("/a", zk.Event{Err: zk.ErrClosing})
		require.True(t, ws.SaidClosed())
	})
}
