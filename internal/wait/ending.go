package wait

import (
	"context"
	"time"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// endingIn is how long before the end of a wait is asked whether ZooKeeper answers: a
// little longer than a request is unanswered when it counts as unavailable.
const endingIn = 1250 * time.Millisecond

// Ending is the time until that is to be asked; false if ctx does not tell when it ends,
// or ends before.
func Ending(ctx context.Context) (in time.Duration, ok bool) {
	end, ok := ctx.Deadline()
	in = time.Until(end) - endingIn
	return in, ok && in >= 0
}

// AskBeforeEnd asks it for one who waits while others send requests. These may be far
// from their turn, and send none.
func AskBeforeEnd(ctx context.Context, conn *zkconn.Conn) (stop func() bool) {
	in, ok := Ending(ctx)
	if !ok {
		return func() bool { return false }
	}
	return time.AfterFunc(in, conn.AskAtRest).Stop
}
