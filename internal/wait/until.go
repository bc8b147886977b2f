package wait

import (
	"context"
	"errors"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// ErrBusy says that others were ahead when a wait ended. It ends a single attempt.
var ErrBusy = outcome.Permanent(errors.New("lock is busy"))

// A Goal is what somebody waits for: a turn in the queue, room for leases, a maximum. It
// belongs to the goroutine that waits.
type Goal interface {
	// Check finds out whether it is free.
	Check(ctx context.Context) (free bool, err error)
	// Wait sleeps until it is worth checking again. A goal of a single attempt returns
	// ErrBusy instead.
	Wait(ctx context.Context) error
	// Commit makes it the caller's. An error of any of the three starts over with Check,
	// after a pause that grows (zkconn.Conn.Retry), unless it is permanent, as ErrBusy
	// is.
	Commit(ctx context.Context) error
}

// Until waits until g is free, and commits to it. Locks wait for other processes nowhere
// else; owners of this process wait for each other by a channel. An error that a retry
// may fix, of a request or since the session cannot be relied on just now, ends nothing;
// see zkconn.Conn.Retry.
func Until(ctx context.Context, conn *zkconn.Conn, g Goal) error {
	return conn.Retry(ctx, func() error {
		for {
			free, err := g.Check(ctx)
			switch {
			case err != nil:
				return err
			case free:
				return g.Commit(ctx)
			}
			if err := g.Wait(ctx); err != nil {
				return err
			}
		}
	})
}
