package zkconn

import (
	"context"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// creatingAtMost is how many creates may be under way on a connection.
const creatingAtMost = 64

// BeginCreate waits for a place among the creates under way, until EndCreate. Every
// waiter needs a create of its own, so without it as many goroutines as there are
// callers, who come and leave, would hang at a mute server.
func (s *Conn) BeginCreate(ctx context.Context) error {
	select {
	case s.creating <- struct{}{}:
		return nil
	case <-ctx.Done():
		return outcome.Cancelled(ctx)
	case <-s.closed:
		return outcome.ClosedError{}
	}
}

// EndCreate is documented at BeginCreate.
func (s *Conn) EndCreate() { <-s.creating }
