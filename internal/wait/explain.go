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

// Late is the Place of one whose turn came when its time was over: nobody is ahead, and
// it did not get what it waited for.
var Late = Place{Text: "its turn came as the wait was over"}

// An unknown is the end of a wait that says nothing of others, though ZooKeeper has
// answered. It matches zkconn.ErrNoAnswer, as all do that say nothing of others.
type unknown struct{ error }

func (u *unknown) Unwrap() []error { return []error{u.error, zkconn.ErrNoAnswer} }

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
// Place is unknown, and if ZooKeeper is unreachable by now, since those that were ahead
// can be gone.
func Explain(conn *zkconn.Conn, err error, at Place, asked time.Time) error {
	cancelled := outcome.Cancellation(err) != nil
	if !errors.Is(err, ErrBusy) && !cancelled {
		return err
	}
	if errors.Is(err, zkconn.ErrNoAnswer) { // it says why itself
		return err
	}
	if at == Late {
		return &unknown{fmt.Errorf("%w: %s", err, Late.Text)}
	}
	switch answers := !conn.Unavailable(); {
	case answers && at.Text != "":
		return &Busy{at, err}
	case answers && outcome.Answered(err): // it says why nobody is known to be ahead
		return &unknown{err}
	}
	if !cancelled {
		err = errors.New(err.Error()) // for all that is known now, nobody is ahead
	}
	if at.Text == "" {
		return fmt.Errorf("%w: %w", err, conn.NoAnswer(asked))
	}
	return fmt.Errorf("%w: %w; before that %s", err, conn.NoAnswer(time.Now()), at.Text)
}
