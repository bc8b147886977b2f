package locktest

import (
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

// A LateConn is a wrapper that passes the events of watches on by goroutines, each after
// a pause. So an event can come later than answers and events that followed it.
type LateConn struct {
	recipes.Conn
	// Pause is how late an event is that concerns the path.
	Pause func(path string) time.Duration
}

// Late makes the events late that concern paths with this suffix.
func Late(conn recipes.Conn, suffix string, by time.Duration) *LateConn {
	return &LateConn{conn, func(path string) time.Duration {
		if strings.HasSuffix(path, suffix) {
			return by
		}
		return 0
	}}
}

// Unwrap returns the wrapped Conn.
func (c *LateConn) Unwrap() recipes.Conn { return c.Conn }

// GetW is the Conn's, with a late event.
func (c *LateConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	data, stat, events, err := c.Conn.GetW(path)
	return data, stat, c.passOn(path, events), err
}

// ChildrenW is the Conn's, with a late event.
func (c *LateConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	children, stat, events, err := c.Conn.ChildrenW(path)
	return children, stat, c.passOn(path, events), err
}

func (c *LateConn) passOn(path string, from <-chan zk.Event) <-chan zk.Event {
	if from == nil {
		return nil
	}
	to := make(chan zk.Event, 1)
	go func() {
		defer close(to)
		ev, ok := <-from
		time.Sleep(c.Pause(path))
		if ok {
			to <- ev
		}
	}()
	return to
}
