package wait

import (
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A Place is where somebody stands who waits, as the last answer has shown it. The zero
// Place says that it is unknown.
type Place struct {
	Text   string // for readers
	Behind string // the path of the znode to wait for; "": no single one
	Ahead  int    // how many are ahead, as far as is known
}

// A Busy is the end of a wait, by its ctx or by ErrBusy, while others were ahead. It
// matches ErrBusy in both cases.
type Busy struct {
	Place
	Cause error
}

func (b *Busy) Error() string { return fmt.Sprintf("%v: %s", b.Cause, b.Text) }

// Unwrap returns what b matches.
func (b *Busy) Unwrap() []error { return []error{b.Cause, ErrBusy} }

// Explain adds to err what a wait was waiting for when its ctx or ErrBusy ended it; any
// other err it returns as it is. at is the Place when the last answer came. asked is when
// the question was sent. The result is a Busy, or matches zkconn.ErrNoAnswer: if the
// Place is unknown, and if ZooKeeper is unreachable by now, since whoever was ahead can
// be gone.
func Explain(s *zkconn.Conn, err error, at Place, asked time.Time) error {
	cancelled := outcome.Cancellation(err) != nil
	if !errors.Is(err, ErrBusy) && !cancelled {
		return err
	}
	if at.Text != "" && !s.Unavailable() {
		return &Busy{at, err}
	}
	if !cancelled {
		err = errors.New(err.Error()) // for all that is known now, nobody is ahead
	}
	if at.Text == "" {
		return fmt.Errorf("%w: %w", err, s.NoAnswer(asked))
	}
	return fmt.Errorf("%w: %w; before that %s", err, s.NoAnswer(time.Now()), at.Text)
}
