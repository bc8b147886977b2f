package wait

import (
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

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
	err = outcome.WithCause(err)
	switch {
	case where == "":
		return fmt.Errorf("%w: %w", err, s.NoAnswer(asked))
	case s.Unavailable():
		return fmt.Errorf("%w: %w; before that %s", err, s.NoAnswer(time.Now()), where)
	default:
		return fmt.Errorf("%w: %s", err, where)
	}
}
