package seqnode

import (
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/session"
)

// Standing adds to err where a wait stood that its ctx or ErrBusy has ended; any other
// err it returns as it is. where says who was ahead when the last answer came, and is ""
// where nobody knows, by a question asked at the given time. The result matches
// session.ErrNoAnswer where nobody knows, and where ZooKeeper is out of touch by now:
// whoever was ahead can be gone.
func Standing(
	s *session.Session, err error, where string, asked time.Time,
) error {
	if !errors.Is(err, ErrBusy) && session.Cancellation(err) == nil {
		return err
	}
	err = session.Tell(err)
	switch {
	case where == "":
		return fmt.Errorf("%w: %w", err, s.NoAnswer(asked))
	case s.Unavailable():
		return fmt.Errorf("%w: %w; before that %s", err, s.NoAnswer(time.Now()), where)
	default:
		return fmt.Errorf("%w: %s", err, where)
	}
}
