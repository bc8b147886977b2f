package seqnode

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/session"
)

// A Limit tells how many participants a directory may have. With watch it returns a channel
// that ends when that may have changed, nil where it never does.
type Limit func(ctx context.Context, watch bool) (most int, changed <-chan zk.Event, err error)

// Await waits until n participants are allowed, without any znode. Where it is not to wait,
// ErrBusy says that they are not.
func (l Limit) Await(ctx context.Context, s *session.Session, n int, try bool) error {
	asked := time.Now()
	where, err := l.await(ctx, s, n, try)
	return Standing(ctx, s, err, where, asked)
}

// await is Await, and says what the last answer was.
func (l Limit) await(
	ctx context.Context, s *session.Session, n int, try bool,
) (where string, err error) {
	watch := false
	err = s.Retry(ctx, func() error {
		for ; ; watch = true {
			most, changed, err := l(ctx, watch)
			if err != nil {
				return err
			}
			where = fmt.Sprintf("the maximum is %d, and %d are asked for", most, n)
			switch {
			case most >= n:
				return nil
			case try:
				return ErrBusy
			case watch:
				if err := awaitChange(ctx, s, changed); err != nil {
					return err
				}
			}
		}
	})
	return where, err
}

// awaitChange waits until it is worth asking again.
func awaitChange(ctx context.Context, s *session.Session, changed <-chan zk.Event) error {
	poll := time.NewTimer(safetyPoll)
	defer poll.Stop()
	select {
	case <-changed:
	case <-s.Reconnected():
	case <-poll.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Closed():
		return s.Pause(ctx, 0)
	}
	return nil
}
