package wait

import (
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// Late is where one stood whose turn came when its time was over: nobody is ahead, and it
// did not get what it waited for.
const Late = "its turn came as the wait was over"

// A lateError matches zkconn.ErrNoAnswer, as all do that say nothing of others.
type lateError struct{ error }

func (e *lateError) Error() string { return e.error.Error() + ": " + Late }

func (e *lateError) Unwrap() []error { return []error{e.error, zkconn.ErrNoAnswer} }

// Explain adds to err what a wait was waiting for when its ctx or ErrBusy ended it; any
// other err it returns as it is. where says who was ahead when the last answer came; it
// is "" if that is unknown. asked is when the question was sent. The result matches
// zkconn.ErrNoAnswer if the answer is unknown, and if ZooKeeper is unreachable by now:
// whoever was ahead can be gone.
func Explain(
	s *zkconn.Conn, err error, where string, asked time.Time,
) error {
	if !errors.Is(err, ErrBusy) && outcome.Cancellation(err) == nil {
		return err
	}
	answers := !errors.Is(err, zkconn.ErrNoAnswer)
	err = outcome.WithCause(err)
	switch {
	case !answers: // it says why itself
		return err
	case where == Late:
		return &lateError{err}
	case where == "":
		return fmt.Errorf("%w: %w", err, s.NoAnswer(asked))
	case s.Unavailable():
		return fmt.Errorf("%w: %w; before that %s", err, s.NoAnswer(time.Now()), where)
	default:
		return fmt.Errorf("%w: %s", err, where)
	}
}
