package leases

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A Maximum returns how many participants a directory may have. With watch it returns a
// channel that ends when that may have changed, nil where it never does.
type Maximum func(
	ctx context.Context, watch bool,
) (most int, changed <-chan zk.Event, err error)

// Fixed is a Maximum that never changes.
func Fixed(most int) Maximum {
	return func(context.Context, bool) (int, <-chan zk.Event, error) {
		return most, nil, nil
	}
}

// Await waits until n participants are allowed, without any znode. In a single
// attempt, wait.ErrBusy says that they are not.
func (m Maximum) Await(
	ctx context.Context, conn *zkconn.Conn, n int, single bool,
) error {
	w := &maximumWaiter{conn: conn, maximum: m, n: n, single: single, asked: time.Now()}
	err := wait.Until(ctx, conn, w)
	return wait.Explain(conn, err, w.where, w.asked)
}

// A maximumWaiter waits for a maximum of n or more. It is of the goroutine in Await.
type maximumWaiter struct {
	conn    *zkconn.Conn
	maximum Maximum
	n       int
	single  bool
	asked   time.Time
	where   wait.Place // what the last answer was
	// watch the maximum with the next look: the first found it too low
	watch   bool
	changed <-chan zk.Event // when to look again; nil without a watch
	// closed once the connection was away, and is back, since the last look began
	reconnected <-chan struct{}
}

// Check implements wait.Goal.
func (w *maximumWaiter) Check(ctx context.Context) (free bool, err error) {
	w.reconnected = w.conn.Reconnected()
	most, changed, err := w.maximum(ctx, w.watch)
	if err != nil {
		return false, err
	}
	w.changed = changed
	w.where.Text = fmt.Sprintf("the maximum is %d, and %d are asked for", most, w.n)
	return most >= w.n, nil
}

// Wait implements wait.Goal, as a batch does.
func (w *maximumWaiter) Wait(ctx context.Context) error {
	if w.single {
		return wait.ErrBusy
	}
	if !w.watch {
		w.watch = true
		return nil
	}
	wake := wait.Wakers{
		Maximum: w.changed, Reconnected: w.reconnected, Poll: wait.NextPoll(),
	}
	_, _, err := wake.Sleep(ctx, w.conn)
	return err
}

// Commit implements wait.Goal: there is nothing to take.
func (w *maximumWaiter) Commit(context.Context) error { return nil }
