package wait

import (
	"context"
	"time"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// endingIn is how long before the end of a wait it is asked whether ZooKeeper answers: a
// little longer than a request is unanswered until ZooKeeper counts as unavailable.
const endingIn = 1250 * time.Millisecond

// Ending is the time from now on until a waiter with ctx asks whether ZooKeeper answers,
// shortly before the end; false if ctx does not tell when it ends, or ends before.
func Ending(ctx context.Context) (in time.Duration, ok bool) {
	end, ok := ctx.Deadline()
	in = time.Until(end) - endingIn
	return in, ok && in >= 0
}

// AskBeforeEnd asks whether ZooKeeper answers when that time has come, for one who waits
// while others send requests. These may be far from their turn, and send none.
func AskBeforeEnd(ctx context.Context, conn *zkconn.Conn) (stop func() bool) {
	in, ok := Ending(ctx)
	if !ok {
		return func() bool { return false }
	}
	return time.AfterFunc(in, conn.AskAtRest).Stop
}
