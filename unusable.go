package recipes

import (
	"context"
	"errors"
	"fmt"
)

var (
	errNilCtx = errors.New("ctx is nil; context.Background() is one without an end")
	// errZero is why the zero value of a type cannot be used.
	errZero = errors.New("this is a zero value; use what a constructor returns")
)

// errZeroHold is why the zero Hold holds nothing.
var errZeroHold = fmt.Errorf("%w: %w", ErrNotOwner, errZero)

// notNil returns why a function cannot be called with ctx.
func notNil(ctx context.Context) error {
	if ctx == nil {
		return errNilCtx
	}
	return nil
}

// usable returns why a method cannot do its operation: its value was not made by a
// constructor, as path, which is "" then, tells, or ctx is nil.
func usable(operation, path string, ctx context.Context) error { //nolint:revive // order
	switch {
	case path == "":
		return fmt.Errorf("recipes: %s: %w", operation, errZero)
	case ctx == nil:
		return wrap(operation, path, errNilCtx)
	}
	return nil
}

// failed is a release that has failed before it began.
func failed(err error) (finish func(context.Context) error) {
	return func(context.Context) error { return err }
}
