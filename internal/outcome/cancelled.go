package outcome

import (
	"context"
	"errors"
)

// A cancellation says that a wait ended since its ctx was done, before the answer came.
// The cause of a ctx is its owner's, and may match anything, a server's answer or the
// loss of a lock among them. So it stays hidden from all who judge an outcome, up to
// WithCause.
type cancellation struct{ cause error }

func (c *cancellation) Error() string { return c.cause.Error() }

// Cancelled is why a wait ends whose ctx is done.
func Cancelled(ctx context.Context) error { return &cancellation{context.Cause(ctx)} }

// Cancellation returns the cause of the ctx that has ended a wait, nil where none has.
func Cancellation(err error) (cause error) {
	var c *cancellation
	if !errors.As(err, &c) {
		return nil
	}
	return c.cause
}

// WithCause returns err as the caller receives it: it matches the cause of its ctx, if
// that has ended a wait.
func WithCause(err error) error {
	cause := Cancellation(err)
	var already *told
	if cause == nil || errors.As(err, &already) {
		return err
	}
	return &told{err, cause}
}

type told struct {
	error
	cause error
}

func (t *told) Unwrap() []error { return []error{t.error, t.cause} }
