package seqnode

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/session"
)

// A Limit tells how many participants a directory may have. With watch it returns a
// channel that ends when that may have changed, nil where it never does.
type Limit func(
	ctx context.Context, watch bool,
) (most int, changed <-chan zk.Event, err error)

// Await waits until n participants are allowed, without any znode. Where it is to try
// once, ErrBusy says that they are not.
func (l Limit) Await(
	ctx context.Context, s *session.Session, n int, tryOnce bool,
) error {
	w := &limitWaiter{s: s, limit: l, n: n, asked: time.Now()}
	err := await(ctx, s, tryOnce, w)
	return Standing(s, err, w.where, w.asked)
}

// A limitWaiter waits for a limit of n or more. It is of the goroutine in Await.
type limitWaiter struct {
	s     *session.Session
	limit Limit
	n     int
	asked time.Time
	where string // what the last answer was
	// watch the limit with the next look: the first found it too low
	watch   bool
	changed <-chan zk.Event // when to look again; nil without a watch
	// closed once the connection was away, and is back, since the last look began
	reconnected <-chan struct{}
}

// look implements aim.
func (w *limitWaiter) look(ctx context.Context) (free bool, err error) {
	w.reconnected = w.s.Reconnected()
	most, changed, err := w.limit(ctx, w.watch)
	if err != nil {
		return false, err
	}
	w.changed = changed
	w.where = fmt.Sprintf("the maximum is %d, and %d are asked for", most, w.n)
	return most >= w.n, nil
}

// wait implements aim, as a batch does.
func (w *limitWaiter) wait(ctx context.Context) (free bool, err error) {
	if !w.watch {
		w.watch = true
		return false, nil
	}
	wake := wakers{limit: w.changed, reconnected: w.reconnected, poll: nextPoll()}
	_, _, err = wake.sleep(ctx, w.s)
	return false, err
}

// take implements aim: there is nothing to take.
func (w *limitWaiter) take(context.Context) error { return nil }
